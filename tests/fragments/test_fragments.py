"""Parts of texts, markup, images, sound and film, and quotations."""

from __future__ import annotations

import io
import math
import struct
import wave
from pathlib import Path

import av
import pytest
from PIL import Image

from muniment.errors import FragmentError, UsageError
from muniment.fragments import Extract, check_quotation, extract
from muniment.identifiers import Pdi, parse_pdi
from muniment.identifiers.fragments import parse_fragment

PAGE = "<html><head><title>T</title></head><body><p>a</p><p>b</p></body></html>"


@pytest.fixture
def cut(tmp_path: Path):  # type: ignore[no-untyped-def]
    """Cut a part out of octets."""

    def cut_out(data: bytes, media: str, fragment: str, strict: bool = False) -> Extract:
        path = tmp_path / "document"
        path.write_bytes(data)
        return extract(path, media, parse_fragment(fragment, 0), strict=strict)

    return cut_out


@pytest.mark.parametrize(
    ("data", "media", "fragment", "expected"),
    [
        (b"Hello\r\nWorld\r\n", "text/plain", "0,5", "Hello"),
        (b"Hello\r\nWorld\r\n", "text/plain", "5,7", "\r\n"),
        (b"Hello\nWorld\n", "text/plain", "7,12", "World"),
        (b"Hello\rWorld", "text/plain", "char=7,12", "World"),
        ("École".encode(), "text/plain;charset=utf-8", "0,1", "É"),
        ("\U0001d11ex".encode(), "text/plain;charset=utf-8", "1,2", "x"),
        ("\ufeffab".encode(), "text/plain;charset=utf-8", "0,1", "a"),
        ("École".encode("utf-16"), "text/plain;charset=utf-16", "0,2", "Éc"),
        ("École".encode("latin-1"), "text/plain;charset=iso-8859-1", "0,1", "É"),
        ("日本語".encode("shift_jis"), "text/plain;charset=shift_jis", "1,3", "本語"),
        ("Ж".encode("koi8-r"), "text/plain;charset=koi8-r", "0,1", "Ж"),
        (b"", "text/plain", "0,0", ""),
        (PAGE.encode(), "text/html", "elt=4,5", "<p>a</p><p>b</p>"),
        (PAGE.encode(), "text/html", "elt=4,4", "<p>a</p>"),
        (PAGE.encode(), "text/html", "char=6,12", "<head>"),
        (b'<p><a name="x y">one</a><br><a name=z>two</a>', "text/html", "name=x%20y,z", '<a name="x y">one</a><br><a name=z>two</a>'),
        (b"<ul><li>a<li>b</ul>c", "text/html", "elt=1,1", "<li>a"),
        (b"<ul><li>a<li>b</ul>c", "text/html", "elt=2,2", "<li>b"),
        (b"<!-- <p> --><p>a<div>b", "text/html", "elt=1,1", "<div>b"),
        ("<r><a é='>'/><b>ü</b></r>".encode(), "text/xml", "elt=1,2", "<a é='>'/><b>ü</b>"),
        (b"<?xml version='1.0'?><r><b>x</b></r>", "application/xml", "elt=1,1", "<b>x</b>"),
        (b"0123456789" * 10, "application/pdf", "byte=23,57", "3456789" + "0123456789" * 2 + "0123456"),
    ],
)  # fmt: skip
def test_parts_of_texts(cut, data: bytes, media: str, fragment: str, expected: str) -> None:  # type: ignore[no-untyped-def]
    assert cut(data, media, fragment).data.decode() == expected


@pytest.mark.parametrize(
    ("data", "media", "fragment", "status"),
    [
        (b"twelve chars", "text/plain", "10,20", 404),
        (b"x" * 9, "application/pdf", "byte=5,10", 404),
        (b"\xff\xfe\xff", "text/plain", "0,1", 501),
        (PAGE.encode(), "text/html", "elt=4,6", 404),
        (PAGE.encode(), "text/html", "name=a,b", 404),
        (b"<a><b></a>", "text/xml", "elt=0,0", 501),
        (b'<!DOCTYPE a [<!ENTITY x "y">]><a>&x;</a>', "text/xml", "elt=0,0", 501),
        (b"no image", "image/png", "(0,0),(1,1)", 501),
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "image/svg+xml", "(0,0),(1,1)", 501),
        (b"RIFFxxxxWAVE", "audio/wav", "0,1", 501),
        (b"no sound", "audio/mpeg", "0,1", 501),
        (b"no film", "video/mpeg", "0,1", 501),
        (b"no film", "video/x-unheard-of", "0,1", 501),
    ],
)
def test_parts_that_cannot_be_had(cut, data: bytes, media: str, fragment: str, status: int) -> None:  # type: ignore[no-untyped-def]
    with pytest.raises(FragmentError) as caught:
        cut(data, media, fragment)
    assert caught.value.status == status


def test_a_part_across_elements_is_served_but_not_created(cut) -> None:  # type: ignore[no-untyped-def]
    found = cut(PAGE.encode(), "text/html", "elt=2,4")
    assert found.data.decode() == "<title>T</title></head><body><p>a</p>"
    assert "D_FRAG_ILLEGAL" in found.remarks[0]
    with pytest.raises(FragmentError) as caught:
        cut(PAGE.encode(), "text/html", "elt=2,4", strict=True)
    assert caught.value.code == "E_FRAG_ILLEGAL"


def picture(kind: str, frames: int = 1) -> bytes:
    pictures = []
    for frame in range(frames):
        one = Image.new("RGB", (100, 100))
        one.putdata([(x, y, 40 * frame) for y in range(100) for x in range(100)])
        pictures.append(one.quantize(256) if kind == "GIF" else one)
    stream = io.BytesIO()
    extra = {"save_all": True, "append_images": pictures[1:]} if frames > 1 else {}
    pictures[0].save(stream, kind, **extra)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("kind", "media"),
    [
        ("PNG", "image/png"),
        ("TIFF", "image/tiff"),
        ("JPEG", "image/jpeg"),
        ("GIF", "image/gif"),
        ("BMP", "image/bmp"),
    ],
)
def test_rectangles_of_images_keep_every_pixel(cut, kind: str, media: str) -> None:  # type: ignore[no-untyped-def]
    from PIL import Image

    data = picture(kind)
    with (
        Image.open(io.BytesIO(data)) as whole,
        Image.open(io.BytesIO(cut(data, media, "(5,10),(25,30)").data)) as part,
    ):
        assert part.size == (20, 20)
        assert part.convert("RGB").tobytes() == whole.convert("RGB").crop((5, 10, 25, 30)).tobytes()
    with pytest.raises(FragmentError, match="100x100"):
        cut(data, media, "(5,10),(25,101)")


def test_frames_of_animations_are_counted_from_0(cut) -> None:  # type: ignore[no-untyped-def]
    from PIL import Image

    data = picture("TIFF", 3)
    for frame in range(3):
        with Image.open(io.BytesIO(cut(data, "image/tiff", f"(5,10),(6,11),{frame}").data)) as part:
            assert part.convert("RGB").getpixel((0, 0)) == (5, 10, 40 * frame)
    with pytest.raises(FragmentError, match="no frame 3"):
        cut(data, "image/tiff", "(5,10),(6,11),3")
    animated = picture("GIF", 3)
    assert cut(animated, "image/gif", "(0,0),(9,9),2").data


def sound(seconds: int = 3, rate: int = 8000) -> bytes:
    stream = io.BytesIO()
    with wave.open(stream, "wb") as target:
        target.setnchannels(1)
        target.setsampwidth(2)
        target.setframerate(rate)
        values = (
            int(20000 * math.sin(n / 7) * n / (seconds * rate)) for n in range(seconds * rate)
        )
        target.writeframes(struct.pack(f"<{seconds * rate}h", *values))
    return stream.getvalue()


def frames(data: bytes) -> bytes:
    with wave.open(io.BytesIO(data)) as source:
        return source.readframes(source.getnframes())


def test_sound_is_cut_by_time(cut) -> None:  # type: ignore[no-untyped-def]
    data = sound()
    assert frames(cut(data, "audio/wav", "sec=1,2").data) == frames(data)[16000:32000]
    assert frames(cut(data, "audio/wav", "msec=500,750").data) == frames(data)[8000:12000]
    with pytest.raises(FragmentError, match=r"3\.000 seconds"):
        cut(data, "audio/wav", "1,4")


@pytest.mark.parametrize(
    ("container", "codec", "media"),
    [
        ("flac", "flac", "audio/flac"),
        ("au", "pcm_mulaw", "audio/basic"),
        ("mp3", "libmp3lame", "audio/mpeg"),
    ],
)
def test_other_sound_is_decoded_and_cut(cut, container: str, codec: str, media: str) -> None:  # type: ignore[no-untyped-def]
    stream = io.BytesIO()
    with av.open(io.BytesIO(sound())) as source, av.open(stream, "w", format=container) as target:
        out = target.add_stream(codec, rate=8000, layout="mono")
        for frame in source.decode(audio=0):
            for packet in out.encode(frame):
                target.mux(packet)
        for packet in out.encode():
            target.mux(packet)
    found = cut(stream.getvalue(), media, "sec=1,2")
    assert found.media_type == "audio/wav"
    assert len(frames(found.data)) == 16000
    if codec == "flac":
        assert frames(found.data) == frames(sound())[16000:32000]
    with pytest.raises(FragmentError) as caught:
        cut(stream.getvalue(), media, "sec=1,9")
    assert caught.value.status == 404


def test_film_is_cut_by_time_and_cropped(cut) -> None:  # type: ignore[no-untyped-def]
    stream = io.BytesIO()
    with av.open(stream, "w", format="mp4") as target:
        out = target.add_stream("libx264", rate=10)
        out.width, out.height, out.pix_fmt = 64, 48, "yuv420p"
        for number in range(40):
            for packet in out.encode(
                av.VideoFrame.from_image(Image.new("RGB", (64, 48), (5 * number, 0, 0)))
            ):
                target.mux(packet)
        for packet in out.encode():
            target.mux(packet)
    found = cut(stream.getvalue(), "video/mp4", "crop=sec,1,3,(10,10),(30,26)")
    with av.open(io.BytesIO(found.data)) as part:
        pictures = [frame.to_image() for frame in part.decode(video=0)]
    assert [pictures[0].size, len(pictures)] == [(20, 16), 20]
    assert abs(pictures[0].getpixel((3, 3))[0] - 50) < 12
    assert cut(stream.getvalue(), "video/mp4", "msec=0,500").data
    for outside in ("sec=3,9", "crop=sec,0,1,(0,0),(99,9)"):
        with pytest.raises(FragmentError) as caught:
            cut(stream.getvalue(), "video/mp4", outside)
        assert caught.value.status == 404


@pytest.fixture
def documents(tmp_path: Path):  # type: ignore[no-untyped-def]
    kept: dict[str, bytes] = {}

    def open_document(pdi: Pdi) -> Path:
        path = tmp_path / str(abs(hash(str(pdi))))
        path.write_bytes(kept[str(pdi)])
        return path

    return kept, open_document


A, B = "pdi://a.us/1997/11/03/4.text.1", "pdi://a.us/1997/09/01/1.text.1"


def test_a_quotation_is_verified_or_differs(documents) -> None:  # type: ignore[no-untyped-def]
    kept, open_document = documents
    kept[B] = b"x" * 37 + b"fourteen chars" + b"y" * 10
    kept[A] = b"z" * 103 + b"fourteen chars" + b"w"
    citation = parse_pdi(f"{A}@103={B}#37,51")
    found = check_quotation(citation, open_document)
    assert (found.verdict, found.place) == ("verified", "#char=103,117")
    assert found.found.data == b"fourteen chars"
    assert check_quotation(parse_pdi(f"{A}@102={B}#37,51"), open_document).verdict == "differs"
    late = check_quotation(parse_pdi(f"{A}@110={B}#37,51"), open_document)
    assert (late.verdict, len(late.found.remarks)) == ("differs", 1)
    with pytest.raises(UsageError):
        check_quotation(parse_pdi(A), open_document)


def test_quotations_of_quotations_and_of_whole_documents(documents) -> None:  # type: ignore[no-untyped-def]
    kept, open_document = documents
    c = "pdi://c.us/2001/01/01/1.text.1"
    kept[c], kept[B], kept[A] = b"source", b"-- source", b"see: source"
    nested = check_quotation(parse_pdi(f"{A}@5={B}@3={c}#0,6"), open_document)
    assert nested.verdict == "verified" and nested.inner is not None
    assert nested.inner.verdict == "verified"
    assert check_quotation(parse_pdi(f"{A}@5={c}"), open_document).verdict == "verified"
    kept[B] = b"-- sauce!"
    broken = check_quotation(parse_pdi(f"{A}@5={B}@3={c}#0,6"), open_document)
    assert broken.inner is not None and broken.inner.verdict == "differs"


def test_pictures_and_sounds_are_quoted(documents) -> None:  # type: ignore[no-untyped-def]
    kept, open_document = documents
    small, large = "pdi://a.us/2001/01/01/1.png.1", "pdi://a.us/2001/01/01/2.png.1"
    kept[small] = picture("PNG")
    sheet = Image.new("RGB", (200, 200))
    with Image.open(io.BytesIO(kept[small])) as whole:
        sheet.paste(whole.crop((0, 0, 30, 30)), (50, 60))
    stream = io.BytesIO()
    sheet.save(stream, "PNG")
    kept[large] = stream.getvalue()
    quoted = f"{large}@(50,60)={small}#(0,0),(30,30)"
    assert check_quotation(parse_pdi(quoted), open_document).verdict == "verified"
    moved = quoted.replace("(50,60)", "(51,60)")
    assert check_quotation(parse_pdi(moved), open_document).verdict == "differs"
    one, two = "pdi://a.us/2001/01/01/1.wav.1", "pdi://a.us/2001/01/01/2.wav.1"
    kept[one] = kept[two] = sound()
    assert check_quotation(parse_pdi(f"{two}@1={one}#1,2"), open_document).verdict == "verified"
    assert check_quotation(parse_pdi(f"{two}@0={one}#1,2"), open_document).verdict == "differs"

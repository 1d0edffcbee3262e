"""Parts of documents that are unusual, broken or hostile."""

from __future__ import annotations

import io
import random
import shutil
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import av
import pytest
from PIL import Image

from muniment.errors import FormatError, FragmentError
from muniment.fragments import Extract, extract
from muniment.fragments.markup import _html
from muniment.fragments.wav import FLOAT, INTEGER, Wav, read_wav
from muniment.identifiers.formats import CHARSETS, codec_name, media_type
from muniment.identifiers.fragments import parse_fragment

Cut = Callable[[bytes, str, str], Extract]


@pytest.fixture
def cut(tmp_path: Path) -> Cut:
    """Cut a part out of octets."""

    def cut_out(data: bytes, media: str, fragment: str) -> Extract:
        path = tmp_path / "document"
        path.write_bytes(data)
        return extract(path, media, parse_fragment(fragment, 0))

    return cut_out


@pytest.mark.parametrize("charset", sorted(CHARSETS))
def test_characters_are_counted_in_every_character_set(cut: Cut, charset: str) -> None:
    media = media_type(charset) or ""
    codec = codec_name(charset)
    if codec is not None:
        data = "ONE\nTWO".encode(codec)
    elif (program := shutil.which("iconv")) is not None:
        command = [program, "-f", "us-ascii", "-t", charset.replace("ibm0", "ibm")]
        data = subprocess.run(command, input=b"ONE\nTWO", capture_output=True, check=True).stdout
    else:
        pytest.skip("only the program iconv knows this one")
    assert cut(data, media, "0,3").data == b"ONE"
    assert cut(data, media, "5,8").data == b"TWO"  # a lone line feed is two characters


@pytest.mark.parametrize(
    ("data", "media", "fragment", "expected"),
    [
        ("é\n".encode("utf-16-be"), "text/plain;charset=utf-16", "0,1", "é"),  # the high octet first
        ("é".encode("utf-32"), "text/plain;charset=utf-32", "0,1", "é"),
        ("é".encode("utf-32-be"), "text/plain;charset=utf-32", "0,1", "é"),
        ("一丁".encode("gb18030"), "text/plain;charset=gb18030", "1,2", "丁"),
        (b"a\r\n\rb\n\r\n", "text/plain", "0,10", "a\r\n\r\nb\r\n\r\n"),
        ("<meta charset=iso-8859-1><p>é".encode("latin-1"), "text/html", "elt=1,1", "<p>é"),
        ("<meta http-equiv=Content-Type content='text/html; charset=KOI8-R'><p>Ж".encode("koi8-r"),
         "text/html", "elt=1,1", "<p>Ж"),
        ('<?xml version="1.0" encoding="ISO-8859-1"?><r>é</r>'.encode("latin-1"),
         "text/xml", "elt=0,0", "<r>é</r>"),
        ('<?xml version="1.0" encoding="UTF-16"?><r>é</r>'.encode("utf-16"),
         "application/xml", "elt=0,0", "<r>é</r>"),
        ('<?xml version="1.0"?><r>é</r>'.encode("utf-16-le"), "text/xml", "elt=0,0", "<r>é</r>"),
        (b"<p title='>'>a</p><p>b", "text/html", "elt=0,0", "<p title='>'>a</p>"),
        (b"<p>a<!-- <p> --!> <p> --><b>c", "text/html", "elt=1,1", "<b>c"),
        (b"<!--><p>a", "text/html", "elt=0,0", "<p>a"),
        (b"<script>if (a<b) '<p>'</script><p>x", "text/html", "elt=1,1", "<p>x"),
        (b"<title><b></title><i>x", "text/html", "elt=1,1", "<i>x"),
        (b"</p></b><i>x</b></i>y", "text/html", "elt=0,0", "<i>x</b></i>"),
        (b"<b><i>x</b>y</i>", "text/html", "elt=1,1", "<i>x"),
        (b"<a<b>x", "text/html", "elt=0,0", "<a<b>x"),
        (b"1 < 2 <p>x", "text/html", "elt=0,0", "<p>x"),
        (b"<!DOCTYPE html [<!ENTITY p '<p>'>]><i>x", "text/html", "elt=0,0", "<i>x"),
        (b"<p>x<br/>y<img src=a alt='b>c'>", "text/html", "elt=2,2", "<img src=a alt='b>c'>"),
        (b"<a name='x' name='y'>1</a><a NAME=y>2</a>", "text/html", "name=y,y", "<a NAME=y>2</a>"),
        (b"<a name='&lt;&#233;'>1</a>", "text/html", "name=%3c%c3%a9,%3c%c3%a9", "<a name='&lt;&#233;'>1</a>"),
        (b"<p>x<b title='never ends>y</b>", "text/html", "elt=0,0", "<p>x<b title='never ends>y</b>"),
    ],
)  # fmt: skip
def test_parts_of_odd_texts(
    cut: Cut, data: bytes, media: str, fragment: str, expected: str
) -> None:
    assert cut(data, media, fragment).data.decode() == expected


@pytest.mark.parametrize(
    ("data", "media"),
    [
        (b"abc", "text/plain;charset=x-unheard-of"),
        (b"abc", "text/plain;charset=punycode"),  # a codec of Python, but no character set
        (b"<meta charset=base64><p>", "text/html"),
        (b"+2AA-", "text/plain;charset=utf-7"),  # half a character
        (b"\xff\xff", "text/plain;charset=utf-8"),
    ],
)
def test_texts_that_cannot_be_counted(cut: Cut, data: bytes, media: str) -> None:
    with pytest.raises(FragmentError) as caught:
        cut(data, media, "char=0,1")
    assert caught.value.status == 501


@pytest.mark.parametrize(
    "piece",
    ["<", "<a ", "<!--", "<![CDATA[", "<?", "<!", "</", "</a ", "<script>", "&#", '<a b="', "<a b='\"",
     "<!DOCTYPE [", "<a ='", "<a/", "<a>", "<a></b>", "<p><div>", "]>", "<a name=", "<title><!--"],
)  # fmt: skip
def test_markup_takes_time_by_its_length(piece: str) -> None:
    times = []
    for size in (50_000, 400_000):
        words = piece * (size // len(piece))
        started = time.process_time()
        _html(words, False)
        times.append(time.process_time() - started)
    assert times[1] < 40 * times[0] + 0.5


def animated(kind: str, **options: object) -> tuple[bytes, list[Image.Image]]:
    pictures = []
    for frame in range(3):
        one = Image.new("RGB", (40, 30))
        one.putdata([(x, y, 40 * frame) for y in range(30) for x in range(40)])
        pictures.append(one.quantize(64) if kind == "GIF" else one)
    stream = io.BytesIO()
    pictures[0].save(stream, kind, save_all=True, append_images=pictures[1:], **options)
    return stream.getvalue(), pictures


@pytest.mark.parametrize(
    ("kind", "media"),
    [("GIF", "image/gif"), ("WEBP", "image/webp"), ("PNG", "image/apng"), ("TIFF", "image/tiff")],
)
def test_every_frame_of_an_animation_keeps_its_pixels(cut: Cut, kind: str, media: str) -> None:
    data, pictures = animated(kind, **({"lossless": True} if kind == "WEBP" else {}))
    for number, picture in enumerate(pictures):
        found = cut(data, media, f"(5,10),(25,20),{number}")
        with Image.open(io.BytesIO(found.data)) as part:
            assert getattr(part, "n_frames", 1) == 1
            wanted = picture.convert("RGB").crop((5, 10, 25, 20))
            assert part.convert("RGB").tobytes() == wanted.tobytes()
    for beyond in ("(5,10),(25,20),3", "(5,10),(41,20)", "(5,5),(5,9)"):
        with pytest.raises(FragmentError) as caught:
            cut(data, media, beyond)
        assert caught.value.status == 404


@pytest.mark.parametrize("mode", ["CMYK", "L", "I;16", "F", "LA"])
def test_images_of_any_kind_keep_their_values(cut: Cut, mode: str) -> None:
    whole = Image.new(mode, (8, 8))
    stream = io.BytesIO()
    whole.save(stream, "TIFF")
    with Image.open(io.BytesIO(cut(stream.getvalue(), "image/tiff", "(0,0),(4,4)").data)) as part:
        assert (part.mode, part.size) == (mode, (4, 4))
    if mode == "CMYK":
        stream = io.BytesIO()
        whole.save(stream, "JPEG")
        assert cut(stream.getvalue(), "image/jpeg", "(0,0),(4,4)").media_type == "image/tiff"


def test_damaged_images_and_sounds_are_a_clear_refusal(cut: Cut) -> None:
    chance = random.Random(5)
    samples = [
        (animated("GIF")[0], "image/gif", "(1,1),(5,5),1"),
        (animated("TIFF")[0], "image/tiff", "(1,1),(5,5),1"),
        (animated("PNG")[0], "image/png", "(1,1),(5,5),1"),
        (bytes(Wav(INTEGER, 1, 8000, 16, bytes(8000))), "audio/wav", "msec=0,100"),
        (encoded("flac", "flac", "s16"), "audio/flac", "msec=0,100"),
        (encoded("aiff", "pcm_s16be", "s16"), "audio/aiff", "msec=0,100"),
    ]
    for data, media, fragment in samples:
        for _ in range(25):
            broken = bytearray(data)
            for _ in range(chance.randrange(1, 6)):
                broken[chance.randrange(min(len(broken), 600))] = chance.randrange(256)
            if chance.random() < 0.3:
                del broken[chance.randrange(len(broken)) :]
            try:
                cut(bytes(broken), media, fragment)
            except FragmentError as error:
                assert error.status in (404, 501)


@pytest.mark.parametrize("head", [b"RIFF", b"RF64"])
@pytest.mark.parametrize(("kind", "bits"), [
    (INTEGER, 8), (INTEGER, 16), (INTEGER, 24), (INTEGER, 32), (FLOAT, 32), (FLOAT, 64), (6, 8),
])  # fmt: skip
def test_wav_of_every_width_is_cut_as_it_is(cut: Cut, kind: int, bits: int, head: bytes) -> None:
    frames = random.Random(bits).randbytes(2 * 1000 * 2 * bits // 8)
    data = bytes(Wav(kind, 2, 1000, bits, frames))
    if head == b"RF64":  # the length stands in a chunk of its own
        at = data.index(b"data")
        sizes = struct.pack("<QQQI", len(data), len(frames), 1000, 0)
        data = (
            b"RF64" + b"\xff" * 4 + b"WAVE" + b"ds64" + struct.pack("<I", len(sizes)) + sizes
            + data[12 : at + 4] + b"\xff" * 4 + data[at + 8 :]
        )  # fmt: skip
    block = 2 * bits // 8
    found = read_wav(cut(data, "audio/wav", "msec=500,750").data)
    assert found == Wav(kind, 2, 1000, bits, frames[500 * block : 750 * block])
    with pytest.raises(FragmentError, match=r"2\.000 seconds"):
        cut(data, "audio/wav", "sec=0,3")


def encoded(container: str, codec: str, form: str, rate: int = 8000) -> bytes:
    """Two seconds of sound that rises, in a format."""
    stream = io.BytesIO()
    with av.open(stream, "w", format=container) as target:
        out = target.add_stream(codec, rate=rate, layout="mono")
        out.codec_context.format = form
        resampler, fifo = av.AudioResampler(form, "mono", rate), av.AudioFifo()
        for start in range(0, 2 * rate, 1000):
            frame = av.AudioFrame("s16", "mono", 1000)
            frame.planes[0].update(
                struct.pack("<1000h", *(n % 32768 for n in range(start, start + 1000)))
            )
            frame.rate, frame.pts = rate, start
            for each in resampler.resample(frame):
                fifo.write(each)
                size = out.codec_context.frame_size or each.samples
                while (full := fifo.read(size)) is not None:
                    target.mux(out.encode(full))
        target.mux(out.encode())
    return stream.getvalue()


@pytest.mark.parametrize(
    ("container", "codec", "form", "media", "kind", "bits"),
    [
        ("aiff", "pcm_s16be", "s16", "audio/aiff", INTEGER, 16),
        ("aiff", "pcm_s24be", "s32", "audio/aiff", INTEGER, 32),
        ("aiff", "pcm_f32be", "flt", "audio/aiff", FLOAT, 32),
        ("flac", "flac", "s16", "audio/flac", INTEGER, 16),
        ("flac", "flac", "s32", "audio/flac", INTEGER, 32),
        ("ogg", "libopus", "s16", "audio/ogg", INTEGER, 16),
        ("adts", "aac", "fltp", "audio/aac", INTEGER, 16),
        ("wav", "adpcm_ima_wav", "s16p", "audio/wav", INTEGER, 16),
    ],
)
def test_other_sound_becomes_wav_that_holds_every_sample(
    cut: Cut, container: str, codec: str, form: str, media: str, kind: int, bits: int
) -> None:
    rate = 48000 if codec == "libopus" else 8000
    found = read_wav(cut(encoded(container, codec, form, rate), media, "msec=250,500").data)
    assert found is not None
    assert (found.kind, found.bits, found.rate, found.length) == (kind, bits, rate, rate // 4)
    if codec in ("pcm_s16be", "flac") and bits == 16:
        assert found.frames == struct.pack("<2000h", *range(2000, 4000))
    if codec == "pcm_f32be":
        assert found.frames == struct.pack("<2000f", *(n / 32768 for n in range(2000, 4000)))


def film(container: str, codec: str) -> bytes:
    stream = io.BytesIO()
    with av.open(stream, "w", format=container) as target:
        out = target.add_stream(codec, rate=25)
        out.width, out.height, out.pix_fmt = 64, 48, "yuv420p"
        for number in range(25):
            picture = Image.new("RGB", (64, 48), (5 * number, 0, 0))
            target.mux(out.encode(av.VideoFrame.from_image(picture)))
        target.mux(out.encode())
    return stream.getvalue()


@pytest.mark.parametrize(
    ("container", "codec", "media"),
    [
        ("mpeg", "mpeg2video", "video/mpeg"),
        ("mov", "libx264", "video/quicktime"),
        ("webm", "libvpx", "video/webm"),
        ("avi", "mpeg4", "video/x-msvideo"),
    ],
)
def test_film_is_cropped_to_any_size(cut: Cut, container: str, codec: str, media: str) -> None:
    found = cut(film(container, codec), media, "crop=msec,200,600,(10,10),(21,19)")
    with av.open(io.BytesIO(found.data)) as part:
        pictures = list(part.decode(video=0))
    assert [len(pictures), pictures[0].width, pictures[0].height] == [10, 11, 9]
    assert "without sound" in found.remarks[0]


def test_film_that_cannot_be_written_again_is_refused(cut: Cut) -> None:
    with pytest.raises(FragmentError, match="cannot be written; ask for octets") as caught:
        cut(film("matroska", "libx264"), "video/ogg", "msec=0,40")
    assert caught.value.status == 501


KINDS = {
    "text/plain": "0,5", "text/html": "elt=0,0", "text/sgml": "name=a,a", "text/xml": "elt=0,0",
    "text/plain;charset=utf-16": "0,5", "text/plain;charset=gb18030": "0,5",
    "text/plain;charset=ibm1047": "0,5", "text/plain;charset=utf-7": "0,5",
    "image/png": "(0,0),(1,1)", "image/gif": "(0,0),(1,1),9", "audio/wav": "0,1",
    "audio/flac": "0,1", "video/mp4": "0,1", "application/x-siard": "table=(s0,t0)",
}  # fmt: skip


@pytest.mark.parametrize("media", KINDS)
@pytest.mark.parametrize("seed", [b"", b"RIFF\xff\xff\xff\xffWAVE", b"\x89PNG\r\n\x1a\n", b"<?xml"])
def test_a_megabyte_of_anything_is_cut_or_refused(cut: Cut, media: str, seed: bytes) -> None:
    data = (seed + random.Random(media).randbytes(1_000_000))[:1_000_000]
    started = time.process_time()
    try:
        cut(data, media, KINDS[media])
    except FragmentError as error:
        assert error.status in (404, 501) and len(str(error)) < 1000
    except FormatError:
        assert media == "application/x-siard"
    assert time.process_time() - started < 5

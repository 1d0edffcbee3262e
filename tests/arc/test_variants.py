"""ARC and WARC files as others write them: odd, old, and against the rules."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.arc import ArcIndex, build_index, open_record, read_arc_file
from muniment.arc.digests import proved
from muniment.errors import ArcError, DigestMismatch, MunimentError, StoreError
from muniment.repository import Store
from muniment.repository.exchange import import_files
from muniment.repository.reindex import reindex
from muniment.repository.verify import verify


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A new, empty store."""
    with Store.create(tmp_path / "store") as made:
        yield made


def warc(*records: tuple[str, bytes], end: str = "\r\n", version: str = "1.0") -> bytes:
    """Return a WARC file: each record's further fields, and its block."""
    out = b""
    for number, (fields, block) in enumerate(records):
        head = [f"WARC/{version}", f"WARC-Record-ID: <urn:uuid:{number}>",
                "WARC-Date: 2020-01-01T00:00:00Z", *fields.split("\n"),
                f"Content-Length: {len(block)}", "", ""]  # fmt: skip
        out += end.join(head).encode() + block + (end * 2).encode()
    return out


def found(data: bytes) -> list[tuple[str, str, bytes]]:
    stream = io.BytesIO(data)
    return [
        (each.kind, each.identifier, open_record(stream, "x", each, keep_open=True).read())
        for each in read_arc_file(stream, "x")
    ]


RESOURCE = "WARC-Type: resource\nWARC-Target-URI: urn:x:{}\nContent-Type: text/plain"


@pytest.mark.parametrize("end", ["\r\n", "\n"])
@pytest.mark.parametrize("as_a_whole", [False, True])
def test_line_ends_of_both_kinds_and_compression_of_the_whole(end: str, as_a_whole: bool) -> None:
    blocks = [b"", b"one\r\n\r\nWARC/1.0\r\n", bytes(range(256)) * 3000]
    records = [(RESOURCE.format(number), block) for number, block in enumerate(blocks)]
    data = warc(*records, end=end)
    read = found(gzip.compress(data) if as_a_whole else data)
    assert [block for _, _, block in read] == blocks
    assert [uri for _, uri, _ in read] == ["urn:x:0", "urn:x:1", "urn:x:2"]


def test_records_of_a_file_compressed_as_a_whole_are_read_in_any_order() -> None:
    data = gzip.compress(warc(*((RESOURCE.format(n), b"%d" % n * 5000) for n in range(9))))
    stream = io.BytesIO(data)
    records = list(read_arc_file(stream, "x"))
    assert {(each.offset, each.length) for each in records} == {(0, len(data))}
    windows = {n: open_record(stream, "x", records[n], keep_open=True) for n in (7, 2, 8, 2, 0)}
    for number, window in windows.items():
        window.seek(100)
        assert window.read(10) == b"%d" % number * 10
    assert windows[2].read() == b"2" * (5000 - 110)


def test_members_with_several_records_and_with_none() -> None:
    one, two, three = (warc((RESOURCE.format(n), b"block %d" % n)) for n in range(3))
    data = gzip.compress(one + two) + gzip.compress(b"") + gzip.compress(three)
    assert [block for _, _, block in found(data)] == [b"block 0", b"block 1", b"block 2"]


def test_folded_headers_odd_case_and_brackets() -> None:
    fields = (
        "warc-type: Resource\nWarc-Target-URI: <urn:x:\n 1>\ncontent-TYPE:text/plain;\n\tcharset=x"
    )
    ((kind, uri, block),) = found(warc((fields, b"data"), version="0.18"))
    assert (kind, uri.replace(" ", ""), block) == ("resource", "urn:x:1", b"data")


def test_what_is_not_a_whole_document_is_not_delivered_as_one(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(
        warc(
            ("WARC-Type: warcinfo", b"software: x"),
            (f"{RESOURCE.format(1)}\nWARC-Segment-Number: 1", b"the first half, "),
            ("WARC-Type: continuation\nWARC-Target-URI: urn:x:1\nWARC-Segment-Number: 2\n"
             "WARC-Segment-Origin-ID: <urn:uuid:1>", b"the second"),
            ("WARC-Type: revisit\nWARC-Target-URI: urn:x:2", b""),
            ("WARC-Type: request\nWARC-Target-URI: urn:x:2", b"GET /"),
            ("WARC-Type: metadata\nWARC-Target-URI: urn:x:2", b"a: b"),
            (RESOURCE.format(3), b"whole"),
        )
    )  # fmt: skip
    build_index(path, tmp_path / "index")
    index = ArcIndex(tmp_path / "index")
    assert [record.identifier for record in index] == ["urn:x:3"]
    assert index.find("urn:x:3").sha256 == hashlib.sha256(b"whole").hexdigest()
    index.close()


@pytest.mark.parametrize("algorithm", ["md5", "sha1", "sha256", "sha512"])
@pytest.mark.parametrize("spelling", ["hex", "base32", "padded"])
def test_a_stated_digest_of_any_algorithm_is_proved(algorithm: str, spelling: str) -> None:
    digest = hashlib.new(algorithm, b"block", usedforsecurity=False)
    text = digest.hexdigest()
    if spelling != "hex":
        text = base64.b32encode(digest.digest()).decode()
        text = text if spelling == "padded" else text.rstrip("=")
    fields = f"{RESOURCE.format(1)}\nWARC-Block-Digest: {algorithm}:{text}"
    good, bad = warc((fields, b"block")), warc((fields, b"BLOCK"))
    (record,) = read_arc_file(io.BytesIO(good), "x")
    assert proved(io.BytesIO(good), "x", record) == hashlib.sha256(b"block").hexdigest()
    (record,) = read_arc_file(io.BytesIO(bad), "x")
    with pytest.raises(DigestMismatch, match="x, byte 0: urn:x:1 was changed"):
        proved(io.BytesIO(bad), "x", record)


def arc(version: bytes, fields: bytes, *records: bytes, wrong: int = 0) -> bytes:
    block = version + b"\n" + fields + b"\n"
    first = b"filedesc://x.arc 0.0.0.0 20050101000000 text/plain"
    if version.startswith(b"2"):
        first += b" 200 - - 0 x.arc"
    return first + b" %d\n" % (len(block) + wrong) + block + b"\n" + b"".join(records)


FIVE = b"URL IP-address Archive-date Content-type Archive-length"
TEN = (
    b"URL IP-address Archive-date Content-type Result-code Checksum Location Offset Filename "
    b"Archive-length"
)


@pytest.mark.parametrize("wrong", [-1, 0, 1])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize(
    ("version", "fields", "line"),
    [
        (b"1 0 InternetArchive", FIVE, b"http://e.org/ 1.2.3.4 20050101000000 text/html 9"),
        (b"1 0 X", FIVE, b"http://e.org/ 1.2.3.4 20050101000000 text/html; charset=utf-8 9"),
        (b"1 0 X", FIVE, b"http://e.org/a b c 1.2.3.4 20050101000000 no-type 9"),
        (b"1 1 X", FIVE + b"\n<?xml version='1.0'?>\n<arcmetadata>\nx y z\n</arcmetadata>",
         b"http://e.org/ ::1 20050101000000 text/html 9"),
        (b"2 0 X", TEN, b"http://e.org/ 1.2.3.4 20050101000000 text/html 200 - - 123456 x.arc 9"),
    ],
)  # fmt: skip
def test_version_blocks_and_lines_of_all_kinds(
    wrong: int, packed: bool, version: bytes, fields: bytes, line: bytes
) -> None:
    data = arc(version, fields, *(line + b"\nsome data\n" for _ in range(2)), wrong=wrong)
    read = found(gzip.compress(data) if packed else data)
    assert [block for _, _, block in read[1:]] == [b"some data"] * 2
    assert read[1][1].startswith("http://e.org/")


@pytest.mark.parametrize("packed", [False, True])
def test_truncated_files_say_where_and_leave_nothing(
    packed: bool, store: Store, tmp_path: Path
) -> None:
    data = warc((RESOURCE.format(1), b"x" * 5000), (RESOURCE.format(2), b"y" * 5000))
    data = gzip.compress(data, 0) if packed else data
    for cut in range(5, len(data) - 5, 997):  # the last line ends are no loss
        path = tmp_path / ("t.warc.gz" if packed else "t.warc")
        path.write_bytes(data[:-cut])
        with pytest.raises(MunimentError, match=r"t\.warc.*, byte \d+: "):
            import_files(store, [path])
    assert store.places[0].names() == []


@pytest.mark.parametrize("packed", [False, True])
def test_such_files_come_in_and_come_back(packed: bool, store: Store, tmp_path: Path) -> None:
    sha1 = base64.b32encode(hashlib.sha1(b"one").digest()).decode()
    data = warc(
        (f"{RESOURCE.format(1)}\nWARC-Block-Digest: sha1:{sha1}", b"one"),
        (RESOURCE.format(2), b"two" * 100_000),
        end="\n",
    )
    path = tmp_path / ("w.warc.gz" if packed else "w.warc")
    path.write_bytes(gzip.compress(data) if packed else data)
    assert import_files(store, [path]).datastreams == 2
    assert import_files(store, [path]).files == 0
    for _ in range(2):
        for name, block in (("urn:x:2", b"two" * 100_000), ("urn:x:1", b"one")):
            assert store.stream(name).record.sha256 == hashlib.sha256(block).hexdigest()
            with store.open_stream(name) as opened:
                assert opened.read() == block
        reindex(store)
    assert verify(store).problems == []
    bad = tmp_path / "bad.warc"
    bad.write_bytes(warc((f"{RESOURCE.format(3)}\nWARC-Block-Digest: sha1:{sha1}", b"One")))
    with pytest.raises(DigestMismatch, match=r"bad\.warc, byte 0: urn:x:3"):
        import_files(store, [bad])


def test_what_follows_a_record_is_never_guessed() -> None:
    good = warc((RESOURCE.format(1), b"x" * 10))
    for data in (good + b"junk that is no record", good.replace(b": 10", b": 7")):
        for made in (data, gzip.compress(data)):
            with pytest.raises(ArcError, match="byte"):
                found(made)


def test_another_capture_of_a_page_is_not_taken_for_known(store: Store, tmp_path: Path) -> None:
    fields = "WARC-Type: response\nWARC-Target-URI: http://e.org/\nContent-Type: application/http"
    for number, (block, new) in enumerate([(b"one", 1), (b"two", 1), (b"one", 0), (b"two", 0)]):
        path = tmp_path / f"{number}.warc"
        path.write_bytes(warc((fields, block)))
        assert import_files(store, [path]).files == new
    later = tmp_path / "later.warc"
    later.write_bytes(warc((fields, b"one")).replace(b"2020-", b"2021-"))
    assert import_files(store, [later]).files == 1
    assert len(store.catalogue.streams_named("http://e.org/")) == 3


def test_a_datastream_never_changes(store: Store, tmp_path: Path) -> None:
    one, two = tmp_path / "1.warc", tmp_path / "2.warc"
    one.write_bytes(warc((RESOURCE.format(1), b"one")))
    two.write_bytes(warc((RESOURCE.format(2), b"new"), (RESOURCE.format(1), b"two")))
    import_files(store, [one])
    with pytest.raises(StoreError, match=r"2\.warc, byte \d+: urn:x:1 is in the store already"):
        import_files(store, [two])
    assert not store.catalogue.streams_named("urn:x:2")

"""ARC and WARC files: ours in other people's readers, theirs in ours."""

from __future__ import annotations

import base64
import gzip
import hashlib
import io
import json
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from warcio.archiveiterator import ArchiveIterator

from muniment.arc import FORMATS, ArcIndex, ArcRecord, build_index, cdxj, open_record, read_arc_file
from muniment.arc.convert import convert_arc
from muniment.arc.records import arc_version_block, base32
from muniment.errors import ArcError, DigestMismatch

DATE = "2026-01-31T12:00:00Z"
DATA = {
    "urn:uuid:0190a7e2-0000-7000-8000-000000000001": b"",
    "urn:uuid:0190a7e2-0000-7000-8000-000000000002": b"WARC/1.1\r\n\r\n\nfiledesc://x\n" * 3,
    "urn:uuid:0190a7e2-0000-7000-8000-000000000003": bytes(range(256)) * 500,
}


def written(form: str, data: dict[str, bytes] = DATA) -> bytes:
    """Return a whole file."""
    kind = FORMATS[form]
    out = kind.first("urn:uuid:1", f"x{kind.suffix}", DATE, {"software": "Muniment test"})
    for uri, block in data.items():
        digest = hashlib.sha256(block).hexdigest()
        header = kind.header(uri[9:], uri, DATE, "text/plain", len(block), digest)
        out += kind.packed(header + block + kind.end)
    return out


def datastreams(data: bytes, name: str = "file") -> dict[str, bytes]:
    stream = io.BytesIO(data)
    found = {}
    for record in list(read_arc_file(stream, name)):
        if record.kind in ("resource", "response"):
            found[record.identifier] = open_record(stream, name, record, keep_open=True).read()
    return found


@pytest.mark.parametrize("form", FORMATS)
def test_what_was_written_reads_back(form: str) -> None:
    data = written(form)
    assert datastreams(data) == DATA
    records = list(read_arc_file(io.BytesIO(data), "file"))
    assert sum(record.length for record in records) == len(data)
    last = records[-1]
    assert list(read_arc_file(io.BytesIO(data), "file", last.offset)) == [last]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.binary(max_size=3000), max_size=6), st.sampled_from(sorted(FORMATS)))
def test_any_bytes_come_back(blocks: list[bytes], form: str) -> None:
    data = {f"urn:x:{n}": block for n, block in enumerate(blocks)}
    assert datastreams(written(form, data)) == data


@pytest.mark.parametrize("form", FORMATS)
def test_warcio_reads_our_files(form: str) -> None:
    found = {}
    for record in ArchiveIterator(io.BytesIO(written(form)), check_digests="raise"):
        if record.rec_type in ("resource", "response"):
            found[
                record.rec_headers.get_header("WARC-Target-URI")
                or record.rec_headers.get_header("uri")
            ] = record.raw_stream.read()
    assert found == DATA


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of fastwarc's own older names
@pytest.mark.parametrize("form", ["warc", "warc.gz"])
def test_warcio_check_fastwarc_check_and_cdxj_indexer_accept_our_files(
    form: str, tmp_path: Path
) -> None:
    path = tmp_path / f"x.{form}"
    path.write_bytes(written(form))
    scripts = Path(sys.executable).parent
    for command in (["warcio", "check"], ["fastwarc", "check", "-q"]):
        done = subprocess.run(
            [scripts / command[0], *command[1:], str(path)], capture_output=True, text=True
        )
        assert done.returncode == 0, done.stdout + done.stderr
    from fastwarc.warc import ArchiveIterator as Fast

    with path.open("rb") as stream:
        fast = {
            r.headers["WARC-Target-URI"]: r.reader.read()
            for r in Fast(stream)
            if "WARC-Target-URI" in r.headers
        }
    assert fast == DATA


@pytest.mark.parametrize("form", FORMATS)
def test_our_cdxj_agrees_with_cdxj_indexer(form: str, tmp_path: Path) -> None:
    path = tmp_path / f"x.{form}"
    path.write_bytes(written(form))
    indexer = Path(sys.executable).parent / "cdxj-indexer"
    done = subprocess.run([indexer, str(path)], capture_output=True, text=True, check=True)
    theirs = [json.loads(line.split(" ", 2)[2]) for line in done.stdout.splitlines()]
    with path.open("rb") as stream:
        ours = [
            json.loads(line.split(" ", 2)[2])
            for line in cdxj(read_arc_file(stream, "x"), path.name)
        ]
    if form.endswith("gz"):
        assert [(x["url"], x["offset"], x["length"]) for x in theirs] == [
            (x["url"], x["offset"], x["length"]) for x in ours
        ]
    else:  # they leave out what separates records
        assert [(x["url"], x["offset"]) for x in theirs] == [(x["url"], x["offset"]) for x in ours]


@pytest.mark.parametrize("wrong", [-1, 0, 1])
@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("as_a_whole", [False, True])
def test_an_arc_file_is_read_however_its_first_block_is_counted(
    wrong: int, packed: bool, as_a_whole: bool
) -> None:
    block = arc_version_block("x.arc", DATE, "Test")
    line, rest = block.split(b"\n", 1)
    url, length = line.rsplit(b" ", 1)
    first = url + b" %d\n" % (int(length) + wrong) + rest
    if packed:
        first = FORMATS["arc.gz"].packed(first)
    plain = written("arc.gz" if packed else "arc")
    own = FORMATS["arc.gz" if packed else "arc"].first(
        "urn:uuid:1", "x.arc" + (".gz" if packed else ""), DATE, {"software": "Muniment test"}
    )
    data = first + plain[len(own) :]
    assert datastreams(gzip.compress(data) if as_a_whole and not packed else data) == DATA


def test_a_window_seeks_in_plain_and_packed_records() -> None:
    block = bytes(range(256)) * 4000
    for form in ("warc", "arc.gz"):
        data = written(form, {"urn:x:1": b"x", "urn:x:2": block})
        record = list(read_arc_file(io.BytesIO(data), "x"))[-1]
        with open_record(io.BytesIO(data), "x", record) as window:
            for place in (0, 999_000, 5, 500_000, 1_023_999):
                window.seek(place)
                assert window.read(700) == block[place : place + 700]
            assert window.seek(-3, 2) == len(block) - 3
            assert window.read() == block[-3:]


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(sorted(FORMATS)), st.integers(0, 1 << 20), st.binary(max_size=4))
def test_a_damaged_file_gives_an_error_and_never_anything_else(
    form: str, place: int, junk: bytes
) -> None:
    data = written(form, {"urn:x:1": b"some data", "urn:x:2": b"\n" * 50})
    cut = place % len(data)
    try:
        found = datastreams(data[:cut] + junk + data[cut + 1 + place % 5 :])
        assert all(isinstance(block, bytes) for block in found.values())
    except ArcError as error:
        assert str(error).startswith("file")


def test_a_truncated_file_says_where() -> None:
    with pytest.raises(
        ArcError, match=r"file, byte \d+: the file ends within the record urn:uuid:.*3"
    ):
        list(read_arc_file(io.BytesIO(written("warc")[:-5000]), "file"))


def test_the_index_finds_datastreams(tmp_path: Path) -> None:
    path = tmp_path / "x.warc"
    path.write_bytes(written("warc"))
    assert build_index(path, tmp_path / "x.index") == 3
    index = ArcIndex(tmp_path / "x.index")
    for uri, block in DATA.items():
        record = index.find(uri)
        assert record.sha256 == hashlib.sha256(block).hexdigest()
        with open_record(path.open("rb"), "x", record) as window:
            assert window.read() == block
    index.close()


@pytest.mark.parametrize("form", ["warc", "warc.gz"])
def test_arc_becomes_warc(form: str) -> None:
    out = io.BytesIO()
    assert (
        convert_arc(
            io.BytesIO(written("arc")), "x.arc", out, f"x.{form}", FORMATS[form], DATE, "Muniment"
        )
        == 3
    )
    assert datastreams(out.getvalue()) == DATA


def test_a_changed_record_is_not_converted() -> None:
    data = written("warc").replace(b"\x10\x11\x12", b"\x10\x11\x13", 1)
    with pytest.raises(DigestMismatch, match="byte"):
        convert_arc(
            io.BytesIO(data), "x.warc", io.BytesIO(), "y.warc", FORMATS["warc"], DATE, "Muniment"
        )


def sample_records(path: Path) -> list[ArcRecord]:
    with path.open("rb") as stream:
        return list(read_arc_file(stream, path.name))


def test_sample_files_are_read_as_warcio_reads_them(samples: Path) -> None:
    for path in sorted([*samples.glob("../samples/arc/*"), *samples.glob("../samples/warc/*")]):
        with path.open("rb") as stream:
            iterator = ArchiveIterator(stream)
            theirs = [(iterator.get_record_offset(), record.rec_type) for record in iterator]
        ours = [(record.offset, record.kind) for record in sample_records(path)]
        assert [offset for offset, _ in ours] == [offset for offset, _ in theirs]


def test_the_sample_arc_that_warcio_cannot_read_is_read(samples: Path) -> None:
    (path,) = (samples / "adore").glob("*.arc")
    first, image = sample_records(path)
    assert (first.kind, image.media_type, image.size) == ("filedesc", "image/tiff", 1804058)
    with open_record(path.open("rb"), path.name, image) as window:
        assert window.read(4) == b"II*\x00"


def test_sample_arcs_become_warcs_that_warcio_accepts(samples: Path) -> None:
    for path in [*(samples / "arc").iterdir(), *(samples / "adore").glob("*.arc")]:
        out = io.BytesIO()
        with path.open("rb") as stream:
            convert_arc(stream, path.name, out, "x.warc.gz", FORMATS["warc.gz"], DATE, "Muniment")
        out.seek(0)
        kinds = [record.rec_type for record in ArchiveIterator(out, check_digests="raise")]
        assert kinds[0] == "warcinfo"
        assert len(kinds) == 2


@given(st.binary(min_size=32, max_size=32))
def test_digests_are_spelt_as_in_base64(digest: bytes) -> None:
    assert base32(digest.hex()) == f"sha256:{base64.b32encode(digest).decode()}"

"""ZIP64 files: foreign tools agree with what is written, and damage is found."""

from __future__ import annotations

import hashlib
import subprocess
import tempfile
import zipfile
from datetime import date
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from muniment.errors import SiardError, UsageError
from muniment.siard.deflating import COMPRESSIONS, deflate
from muniment.siard.zip import ZipReader, ZipWriter


def write(path: Path, blocks: list[bytes], compression: str = "fast") -> ZipWriter:
    with path.open("wb") as stream:
        writer = ZipWriter(stream, date(2026, 11, 15), compression, ("MD5", "SHA-1", "SHA-256"))
        writer.folder("content/")
        writer.file("content/é.txt", b"known size")
        with writer.stream("content/streamed.bin") as member:
            for block in blocks:
                member.write(deflate(block, compression))
        digests = writer.digests()
        writer.stop_digests()
        writer.folder("header/")
        writer.close()
    reader = ZipReader(path)
    for name, digest in digests.items():
        assert reader.digest(name, reader.offset("header/")) == digest
    return writer


@pytest.mark.parametrize("compression", sorted(COMPRESSIONS))
def test_other_tools_read_what_is_written(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "a.zip"
    write(path, [b"abc" * 100_000, b"", b"x"], compression)
    assert subprocess.run(["unzip", "-tq", path], check=False, capture_output=True).returncode == 0
    with zipfile.ZipFile(path) as archive:
        assert archive.testzip() is None
        assert archive.read("content/streamed.bin") == b"abc" * 100_000 + b"x"
        assert archive.namelist() == [
            "content/",
            "content/é.txt",
            "content/streamed.bin",
            "header/",
        ]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.binary(max_size=2000), max_size=6), st.sampled_from(sorted(COMPRESSIONS)))
def test_members_read_back_exactly(blocks: list[bytes], compression: str) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.zip"
        write(path, blocks, compression)
        assert ZipReader(path).read("content/streamed.bin") == b"".join(blocks)


def test_the_digests_are_those_of_the_bytes_before_the_header(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    write(path, [b"abc"])
    with zipfile.ZipFile(path) as archive:
        end = archive.getinfo("header/").header_offset
    expected = hashlib.sha256(path.read_bytes()[:end]).hexdigest()
    assert ZipReader(path).digest("SHA-256", end) == expected


def test_more_than_four_gigabytes_need_and_get_zip64(tmp_path: Path) -> None:
    path = tmp_path / "a.zip"
    large = deflate(b"\x00" * (1 << 24), "fast")
    with path.open("wb") as stream:
        writer = ZipWriter(stream, date(2026, 1, 1), "fast", ())
        with writer.stream("content/large.bin") as member:
            for _ in range(260):
                member.write(large)
        writer.folder("header/")
        writer.close()
    with zipfile.ZipFile(path) as archive:
        assert archive.getinfo("content/large.bin").file_size == 260 << 24
    assert sum(map(len, ZipReader(path).chunks("content/large.bin"))) == 260 << 24


def test_rolling_back_forgets_what_followed(tmp_path: Path) -> None:
    paths = tmp_path / "a.zip", tmp_path / "b.zip"
    for path in paths:
        with path.open("w+b") as stream:
            writer = ZipWriter(stream, date(2026, 1, 1), "fast", ("MD5",))
            writer.folder("content/")
            if path == paths[0]:
                mark = writer.mark()
                writer.file("content/wrong.txt", b"x" * 1000)
                writer.roll_back(mark)
            writer.file("content/right.txt", b"y")
            digests = writer.digests()
            writer.close()
        with zipfile.ZipFile(path) as archive:
            end = archive.start_dir
        assert digests == {"MD5": hashlib.md5(path.read_bytes()[:end]).hexdigest()}
    assert paths[0].read_bytes() == paths[1].read_bytes()


def test_an_unknown_digest_is_refused(tmp_path: Path) -> None:
    with (tmp_path / "a").open("wb") as stream, pytest.raises(UsageError, match="SHA-512"):
        ZipWriter(stream, date(2026, 1, 1), "fast", ("SHA-512",))


def test_what_is_not_a_zip_file_is_named_so(tmp_path: Path) -> None:
    path = tmp_path / "a.siard"
    path.write_bytes(b"nothing of the kind")
    with pytest.raises(SiardError, match="not a ZIP file"):
        ZipReader(path)


@pytest.mark.parametrize("keep", [0.3, 0.9])
def test_a_truncated_file_is_named_so(tmp_path: Path, keep: float) -> None:
    path = tmp_path / "a.siard"
    write(path, [bytes(range(256)) * 400])
    path.write_bytes(path.read_bytes()[: int(path.stat().st_size * keep)])
    with pytest.raises(SiardError, match="truncated or damaged"):
        ZipReader(path)


def test_a_changed_byte_is_found(tmp_path: Path) -> None:
    path = tmp_path / "a.siard"
    write(path, [b"\x00" * 5000], "none")
    data = bytearray(path.read_bytes())
    data[2500] ^= 1
    path.write_bytes(bytes(data))
    with pytest.raises(SiardError, match="damaged"):
        ZipReader(path).read("content/streamed.bin")


def test_encrypted_and_oddly_packed_members_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "a.siard"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("content/x", b"abc" * 100)
    with pytest.raises(SiardError, match="forbids"):
        ZipReader(path).read("content/x")
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("content/x", b"abc")
    data = bytearray(path.read_bytes())
    data[6] |= 1
    start = data.rindex(b"PK\x01\x02")
    data[start + 8] |= 1
    path.write_bytes(bytes(data))
    with pytest.raises(SiardError, match="encrypted"):
        ZipReader(path).read("content/x")


def test_a_bomb_is_cut_off_at_the_limit(tmp_path: Path) -> None:
    path = tmp_path / "a.siard"
    write(path, [b"\x00" * (1 << 22)] * 8)
    with pytest.raises(SiardError, match="larger than"):
        ZipReader(path).read("content/streamed.bin", limit=1 << 20)


@given(names=st.lists(st.text("ab/é", min_size=1, max_size=9), max_size=300, unique=True))
def test_every_name_is_found_and_no_other(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "a.siard"
        with path.open("wb") as stream:
            writer = ZipWriter(stream, date(2026, 11, 15), "none", ())
            for name in names:
                writer.file(name, name.encode())
            writer.close()
        reader = ZipReader(path)
        assert list(reader.names()) == names
        assert [reader.read(name).decode() for name in names] == names
        assert sorted(entry.number for entry in reader.directory.entries()) == [*range(len(names))]
        assert reader.find("another") is None

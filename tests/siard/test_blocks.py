"""Table files of our own making: cut where their blocks begin, and proven by their checksum."""

from __future__ import annotations

import random
import struct
from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from muniment import transfer
from muniment.errors import SiardError
from muniment.siard import blocks
from muniment.siard.blocks import Blocks, Sum, find_blocks, inflate, inflated_size
from muniment.siard.deflating import deflate
from muniment.siard.source import SiardSource
from muniment.sql.batch import rows_of

ROWS = 40_000


@pytest.fixture(scope="module")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An archive with a table of several megabytes that compress badly."""
    folder = tmp_path_factory.mktemp("blocks")
    draw = random.Random(7)
    db = apsw.Connection(str(folder / "large.db"))
    db.execute("CREATE TABLE t (id INTEGER PRIMARY KEY, noise VARCHAR(200) NOT NULL)")
    with db:
        rows = ((n, draw.randbytes(90).hex()) for n in range(ROWS))
        db.executemany("INSERT INTO t VALUES (?,?)", rows)
    db.close()
    transfer.archive(f"sqlite:///{folder / 'large.db'}", folder / "large.siard")
    return folder / "large.siard"


def _table(source: SiardSource):
    ((schema, table),) = source.describe().tables()
    return schema, table


def test_the_rows_of_all_stretches_are_the_rows_of_the_table(archive: Path) -> None:
    source = SiardSource(archive)
    schema, table = _table(source)
    parts = list(source.parts(schema, table))
    assert len(parts) > 2
    assert all(isinstance(part, Blocks) for part in parts)
    rows = [
        row
        for part in parts
        for batch in source.batches(schema, table, part)
        for row in rows_of(batch)
    ]
    assert [int(row.split(b"\xff")[0]) for row in rows] == list(range(ROWS))


def test_rows_that_are_all_alike_are_read_block_by_block(
    archive: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with SiardSource(archive) as source:
        schema, table = _table(source)
        whole = [
            b for part in source.parts(schema, table) for b in source.batches(schema, table, part)
        ]
    # As if each stretch were much larger than its compressed bytes let expect.
    monkeypatch.setattr(blocks, "_AT_ONCE", 1 << 16)
    monkeypatch.setattr(blocks, "_MOST", 3 << 20)
    with SiardSource(archive) as source:
        parts = list(source.parts(schema, table))
        pieces = [b for part in parts for b in source.batches(schema, table, part)]
    assert len(parts) > 1 and isinstance(parts[0], Blocks)
    assert [row for b in pieces for row in rows_of(b)] == [row for b in whole for row in rows_of(b)]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_restored_database_equals_the_archive(archive: Path, tmp_path: Path, jobs: int) -> None:
    url = f"sqlite:///{tmp_path / 'again.db'}"
    transfer.restore(archive, url, jobs=jobs)
    db = apsw.Connection(str(tmp_path / "again.db"))
    assert db.execute("SELECT count(*), min(id), max(id) FROM t").fetchall() == [
        (ROWS, 0, ROWS - 1)
    ]


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_changed_letter_is_found_by_the_checksum(
    archive: Path, tmp_path: Path, jobs: int
) -> None:
    damaged = tmp_path / "damaged.siard"
    damaged.write_bytes(_with_another_letter(archive))
    url = f"sqlite:///{tmp_path / 'again.db'}"
    with pytest.raises(SiardError, match="damaged"):
        transfer.restore(damaged, url, jobs=jobs)
    assert not (tmp_path / "again.db").exists()


def _with_another_letter(archive: Path) -> bytes:
    """The archive with one block compressed anew after a letter in it was changed."""
    source = SiardSource(archive)
    schema, table = _table(source)
    part = list(source.parts(schema, table))[1]
    name = f"content/{schema.folder}/{table.folder}/{table.folder}.xml"
    read, _ = source._zip.compressed(name)
    packed = read(part.start, part.end - part.start)
    data = archive.read_bytes()
    # Stored blocks keep their length when a letter changes; find one that inflates as before.
    for at in range(len(packed) // 2, len(packed)):
        changed = packed[:at] + bytes([packed[at] ^ 1]) + packed[at + 1 :]
        found = inflate(changed)
        if found and found.endswith(b"</row>\n") and found.count(b"<row>") == _rows(packed):
            break
    begin = data.index(packed)
    return data[:begin] + changed + data[begin + len(packed) :]


def _rows(packed: bytes) -> int:
    return (inflate(packed) or b"").count(b"<row>")


def test_malformed_xml_is_named_by_its_place_in_the_file(archive: Path) -> None:
    source = SiardSource(archive)
    schema, table = _table(source)
    part = list(source.parts(schema, table))[1]
    name = f"content/{schema.folder}/{table.folder}/{table.folder}.xml"
    read, entry = source._zip.compressed(name)
    before = inflated_size(read, part.start)
    whole = source._zip.read(name)
    assert whole[before : before + 5] == b"<row>"
    assert inflated_size(read, entry.packed) == len(whole)


def _member(texts: list[bytes], compression: str = "fast") -> bytes:
    head, tail = deflate(b"<table>\n", compression).data, deflate(b"</table>\n", compression).data
    return head + b"".join(deflate(t, compression).data for t in texts) + tail + b"\x03\x00"


@given(
    st.lists(st.binary(max_size=40), min_size=1, max_size=8),
    st.sampled_from(["fast", "strong", "none"]),
)
def test_stretches_join_to_the_whole(texts: list[bytes], compression: str) -> None:
    rows = [b"<row>" + text + b"</row>\n" for text in texts]
    member = _member(rows, compression)
    found = find_blocks(lambda at, size: member[at : at + size], len(member))
    assert found is not None
    head, blocks, tail = found
    inner = b"".join(inflate(member[b.start : b.end]) or b"?" for b in blocks)
    assert head + inner + tail == b"<table>\n" + b"".join(rows) + b"</table>\n"


@given(st.binary(max_size=300))
def test_other_bytes_are_no_blocks(data: bytes) -> None:
    find_blocks(lambda at, size: data[at : at + size], len(data))


@given(st.binary(), st.binary())
def test_sums_add_up(a: bytes, b: bytes) -> None:
    assert Sum.of(a) + Sum.of(b) == Sum.of(a + b)


def test_the_mark_of_a_flush_in_the_data_is_no_cut() -> None:
    noise = struct.pack("<4B", 0, 0, 255, 255) * 4
    member = _member([b"<row>" + noise + b"</row>\n"], "none")
    found = find_blocks(lambda at, size: member[at : at + size], len(member))
    assert found is not None
    assert [inflate(member[b.start : b.end]) for b in found[1]] == [b"<row>" + noise + b"</row>\n"]

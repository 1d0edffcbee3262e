"""What machine code reads by SQLite's own functions is what SQL reads, for any values."""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import apsw
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from muniment import kernels
from muniment.databases.sqlite import SqliteSource
from muniment.errors import DatabaseError, Unfit
from muniment.sql.batch import Batch, batch_of, rows_of
from muniment.sql.digest import ContentDigest
from muniment.sql.selection import Selection

DECLARED = [
    "INTEGER", "REAL", "DECIMAL(10,2)", "BOOLEAN", "DATETIME", "DATE", "TIME", "BLOB",
    "VARBINARY(9)", "TEXT", "VARCHAR(5)", "NUMERIC",
]  # fmt: skip
USUAL: dict[str, Any] = {
    "INTEGER": -(2**63), "REAL": 0.1, "DECIMAL(10,2)": 1.5, "BOOLEAN": 1,
    "DATETIME": "2024-02-29 23:59:59.5", "DATE": "2024-02-29", "TIME": "23:59:59",
    "BLOB": b"\x00\xff", "VARBINARY(9)": b"", "TEXT": " \0 é字😀 ", "VARCHAR(5)": "12345",
    "NUMERIC": 2**40,
}  # fmt: skip
# Text that is not Unicode gets into SQLite as bytes that are called text.
NOT_TEXT = st.binary(max_size=6).map(lambda data: ("not text", data))
VALUES = st.one_of(
    st.none(),
    st.integers(-(2**63), 2**63 - 1),
    st.sampled_from([0, 1, 2, 0.1, 1e300, -1e-300, 1e15, 12345678901234.5, float("inf"), -0.0]),
    st.floats(allow_nan=False),
    st.builds(lambda n, d: n / 10**d, st.integers(-(10**16), 10**16), st.integers(0, 5)),
    st.builds(lambda n, d: n / 10**d, st.integers(-(10**5), 10**5), st.integers(0, 5)),
    st.text(max_size=8),
    st.text(st.sampled_from("abcdefgh é字😀\0"), min_size=12, max_size=60),
    st.sampled_from(["2024-02-29 10:00:00", "2024-02-29T10:00:00", "éééééé", "ééééé", "a" * 70]),
    st.binary(max_size=80),
    NOT_TEXT,
)
TABLES = st.lists(st.sampled_from(DECLARED), min_size=1, max_size=4).flatmap(
    lambda declared: st.tuples(
        st.just(declared),
        st.lists(st.tuples(*[VALUES | st.just(USUAL[d]) for d in declared]), max_size=5),
    )
)


@pytest.fixture(autouse=True)
def as_before() -> Iterator[None]:
    before = kernels._missing
    yield
    kernels._missing = before


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("steps") / "t.db"


def make(path: Path, declared: list[str], rows: list[tuple[Any, ...]]) -> None:
    path.unlink(missing_ok=True)
    db = apsw.Connection(str(path))
    db.execute("PRAGMA synchronous=OFF").fetchall()
    db.execute("BEGIN")
    columns = ", ".join(f"c{k} {type_}" for k, type_ in enumerate(declared))
    db.execute(f"CREATE TABLE t ({columns})")
    for row in rows:
        slots = ",".join("CAST(? AS TEXT)" if isinstance(v, tuple) else "?" for v in row)
        values = [v[1] if isinstance(v, tuple) else v for v in row]
        db.execute(f"INSERT INTO t VALUES ({slots})", values)
    db.execute("COMMIT")
    db.close()


def read(path: Path, on: bool, selection: Selection | None = None) -> list[bytes] | str:
    """The rows of the table, or the words of the refusal."""
    kernels._missing = 0 if on else kernels._NEVER
    with SqliteSource(path, selection, inline_limit=60) as source:
        ((schema, table),) = source.describe().tables()
        try:
            batches = [b for part in source.parts(schema, table)
                       for b in source.batches(schema, table, part)]  # fmt: skip
        except (DatabaseError, Unfit) as error:
            return str(error)
        return [row for batch in batches for row in rows_of(batch)]


@given(table=TABLES, text=st.booleans())
@example(table=(DECLARED, [tuple(USUAL[d] for d in DECLARED)] * 3), text=False)
@example(table=(["TEXT"], [("a" * 61,), ("é" * 31,), ("a" * 60,)]), text=False)
@example(table=(["BLOB"], [(b"a" * 61,), (b"a" * 60,)]), text=False)
@example(table=(["TEXT"], [(("not text", b"\xed\xa0\x80"),), (("not text", b"\xff"),)]), text=False)
@example(table=(["VARCHAR(5)"], [("a\0bcdef",)]), text=False)
def test_rows_are_the_same_on_both_roads(
    path: Path, table: tuple[list[str], list[tuple[Any, ...]]], text: bool
) -> None:
    declared, rows = table
    make(path, declared, rows)
    selection = Selection(as_text=("*",) if text else ())
    assert read(path, True, selection) == read(path, False, selection)


def test_usual_rows_are_not_left_to_the_other_road(path: Path) -> None:
    make(path, DECLARED, [tuple(USUAL[d] for d in DECLARED)] * 1000)
    kernels._missing = 0
    stepping = kernels.stepping_kernel()
    assert stepping is not None
    with SqliteSource(path) as source:
        ((_, table),) = source.describe().tables()
        types = [column.type for column in table.columns]
        found = list(stepping(source._db, "SELECT rowid, * FROM t", types, 4000))
    assert all(isinstance(batch, Batch) for batch in found)
    assert sum(batch.rows for batch in found if isinstance(batch, Batch)) == 1000


def test_odd_rows_among_others_keep_their_order(path: Path) -> None:
    values = [1e-9 if n % 100 < 60 or n % 7 == 0 else n for n in range(3000)]
    make(path, ["NUMERIC"], [(value,) for value in values])
    rows = read(path, True)
    assert rows == read(path, False)
    assert len(rows) == 3000


def test_a_row_longer_than_the_room_gets_more(path: Path) -> None:
    make(path, ["INTEGER", "VARCHAR(900000)"], [(1, "a"), (2, "b" * 900_000), (3, "c")])
    assert read(path, True) == [b"1\xffa", b"2\xff" + b"b" * 900_000, b"3\xffc"]


def test_a_damaged_page_stops_both_roads_alike(path: Path, tmp_path: Path) -> None:
    make(path, ["INTEGER", "TEXT"], [(n, "x" * 50) for n in range(2000)])
    damaged = tmp_path / "damaged.db"
    shutil.copy(path, damaged)
    data = bytearray(damaged.read_bytes())
    data[20 * 4096 : 20 * 4096 + 100] = b"\xff" * 100
    damaged.write_bytes(data)
    said = read(damaged, True)
    assert isinstance(said, str) and "is damaged" in said
    assert isinstance(read(damaged, False), str)


def test_the_connection_can_be_closed_in_the_middle(path: Path) -> None:
    make(path, ["INTEGER"], [(n,) for n in range(20_000)])
    kernels._missing = 0
    with SqliteSource(path) as source:
        ((schema, table),) = source.describe().tables()
        batches = source.batches(schema, table, (1, 20_000))
        assert next(batches).rows
        batches.close()  # type: ignore[attr-defined]


@given(rows=st.lists(st.lists(st.text() | st.none(), min_size=2, max_size=2), max_size=9))
@example(rows=[["", ""], ["a" * 200, None]])
def test_digests_are_the_same_on_both_roads(rows: list[list[str | None]]) -> None:
    batch, digest = batch_of(rows), ContentDigest()
    kernels._missing = 0
    assert kernels.digest_kernel() is not None
    digest.update(batch)
    total = sum(
        int.from_bytes(hashlib.sha256(row).digest(), "big") for row in rows_of(batch)
    )  # fmt: skip
    assert digest.hexdigest() == f"{total % 2**256:064x}"


def test_without_the_functions_all_works(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(path, ["INTEGER"], [(1,)])
    monkeypatch.setattr(kernels, "_loaded", lambda *_: None)
    assert read(path, True) == [b"1"]
    digest = ContentDigest()
    digest.update(batch_of([["1"]]))
    assert digest.hexdigest() == hashlib.sha256(b"1").hexdigest()

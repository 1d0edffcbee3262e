"""Primary, candidate and foreign keys, in bounded memory however large the tables are.

Workers take the key columns out of the rows, and a file keeps them. When all rows are read, DuckDB
takes them over, groups and joins them, and spills to disk where memory does not suffice. Values are
brought to one spelling first, so that 1 and 1.0, or a text with and without escapes, are one key.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from muniment.kernels import picking_kernel, worth_while
from muniment.normal import FORMS
from muniment.siard.cells import unescape_cells
from muniment.siard.rules.archive import TableFiles
from muniment.siard.rules.sharing import SharedStore
from muniment.sql.batch import CELL
from muniment.sql.model import Database, ForeignKey, Leaf, Schema, Shape, Table, UniqueKey
from muniment.sql.types import Kind

__all__ = ["KeyColumns", "KeyStore", "key_columns", "referenced_columns"]

_MEMORY = "100MB"
_FIRST = 5
_AT_ONCE = 200_000  # rows that DuckDB is given together
_MOST_PICKED = 255
_RUN = struct.Struct("<16sQQ")  # the name of a table, the rows before, and the size of what follows
_FORM = {
    Kind.DECIMAL: "number",
    Kind.FLOAT: "float",  # and then "number": 5.0 refers to 5
    Kind.TIME: "fraction",
    Kind.TIMESTAMP: "fraction",
    Kind.BOOLEAN: "boolean",
}


References = dict[tuple[str, str], set[str]]


def referenced_columns(database: Database) -> References:
    """Return for each table the columns that foreign keys of any table refer to."""
    found: References = {}
    for _, table in database.tables():
        for key in table.foreign_keys:
            goal = found.setdefault((key.referenced_schema, key.referenced_table), set())
            goal.update(reference.referenced for reference in key.references)
    return found


def key_columns(referenced: References, schema: Schema, table: Table) -> list[int]:
    """Return the columns of a table that any key needs, counted from 1."""
    names = set(referenced.get((schema.name, table.name), ()))
    for key in (table.primary_key, *table.candidate_keys):
        names.update(key.columns if key else ())
    for foreign in table.foreign_keys:
        names.update(reference.column for reference in foreign.references)
    return [n for n, column in enumerate(table.columns, 1) if column.name in names]


class KeyColumns:
    """Takes the key columns out of the rows of one table."""

    def __init__(self, numbers: list[int], shapes: tuple[Shape | None, ...]) -> None:
        # Complex values and large objects are no keys that anybody could compare.
        self.numbers = [
            n for n in numbers if isinstance(shape := shapes[n - 1], Leaf) and not shape.type.large
        ]
        self._kinds = [shapes[n - 1].type for n in self.numbers]  # type: ignore[union-attr]
        self._width = len(shapes)
        self._row = self._expression(len(shapes))

    def _expression(self, width: int) -> re.Pattern[bytes]:
        """Find the key cells of a row that is known to be valid; NULL is told from empty."""
        cells, skipped = [], b""
        for n in range(1, width + 1):
            if n in self.numbers:
                cells.append(skipped + rb"(<c%d>[^<]*+)?+(?:</c%d>\s*+)?+" % (n, n))
                skipped = b""
            else:
                skipped += rb"(?:<c%d>[^<]*+</c%d>\s*+)?+" % (n, n)
        return re.compile(rb"<row>\s*+" + b"".join(cells) + (b"()" if len(cells) == 1 else b""))

    def gather(self) -> _Gathered:
        """Start a run."""
        return _Gathered(self)

    def plain(self, xml: bytes) -> list[list[bytes | None]]:
        """Return the key cells of proven rows, by column."""
        rows = self._row.findall(xml)
        columns: list[list[bytes | None]] = []
        for place, n in enumerate(self.numbers):
            tag = len(b"<c%d>" % n)
            columns.append([row[place][tag:] if row[place] else None for row in rows])
        return columns

    def picked(self, xml: bytes) -> list[pa.Array] | None:
        """Return the same as arrays, if machine code can do it."""
        if len(self.numbers) > _MOST_PICKED or not worth_while(len(xml) // 2):
            return None
        found = picking_kernel()(xml, self.numbers, self._width)
        return found and [self._spelt(place, cells) for place, cells in enumerate(found)]

    def _spelt(self, place: int, cells: pa.Array) -> pa.Array:
        if self._kinds[place].kind is Kind.INTEGER:
            try:
                return cells.cast(pa.large_string()).cast(pa.int64())
            except pa.ArrowInvalid:
                pass
        return self.array(place, cells.to_pylist())

    def array(self, place: int, cells: list[bytes | None]) -> pa.Array:
        """Return a key column in one spelling: numbers for integers, bytes for the rest."""
        type_ = self._kinds[place]
        if type_.kind is Kind.INTEGER:
            try:
                return pa.array(cells, pa.binary()).cast(pa.string()).cast(pa.int64())
            except pa.ArrowInvalid:
                return pa.array([_integer(cell) for cell in cells], pa.int64())
        return pa.array(_normal(cells, type_.kind, type_.name), pa.binary())

    def schema(self) -> list[tuple[str, str]]:
        """Return the columns as DuckDB declares them."""
        return [
            (f"c{n}", "BIGINT" if type_.kind is Kind.INTEGER else "BLOB")
            for n, type_ in zip(self.numbers, self._kinds, strict=True)
        ]


class _Gathered:
    """The key cells of one run."""

    def __init__(self, columns: KeyColumns) -> None:
        self._columns = columns
        self._chunks: list[list[pa.Array]] = [[] for _ in columns.numbers]
        self._waiting: list[list[bytes | None]] = [[] for _ in columns.numbers]
        self._plain: list[bytes] = []

    def take_plain(self, xml: bytes) -> None:
        """Take the cells of proven rows."""
        if self._columns.numbers:
            self._plain.append(xml)

    def take_cells(self, row: dict[int, Any]) -> None:
        """Take the cells of one row that was read into elements."""
        self._take_out()
        for waiting, n in zip(self._waiting, self._columns.numbers, strict=True):
            waiting.append(_raw(row.get(n)))

    def skip(self, rows: int) -> None:
        """Leave out rows that could not be read."""
        self._take_out()
        for waiting in self._waiting:
            waiting += [None] * rows

    def _take_out(self) -> None:
        """Take the cells out of the proven rows that have come together."""
        pieces, self._plain = self._plain, []
        if not pieces:
            return
        if (picked := self._columns.picked(b"".join(pieces))) is not None:
            self._flush()
            for chunks, cells in zip(self._chunks, picked, strict=True):
                chunks.append(cells)
            return
        for xml in pieces:  # pieces stay in the processor's cache
            for waiting, column in zip(self._waiting, self._columns.plain(xml), strict=True):
                waiting += column

    def _flush(self) -> None:
        if self._waiting[0]:
            self._put(self._waiting)
            self._waiting = [[] for _ in self._columns.numbers]

    def _put(self, columns: list[list[bytes | None]]) -> None:
        for place, cells in enumerate(columns):
            self._chunks[place].append(self._columns.array(place, cells))

    def finish(self) -> bytes:
        """Return all of them as an Arrow stream."""
        if not self._columns.numbers:
            return b""
        self._take_out()
        self._flush()
        if not any(map(len, self._chunks[0])):
            return b""
        names = [f"c{n}" for n in self._columns.numbers]
        table = pa.table(
            [pa.chunked_array(chunks).combine_chunks() for chunks in self._chunks], names
        )
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as writer:
            writer.write_table(table)
        data: bytes = sink.getvalue().to_pybytes()
        return data


def _raw(cell: Any) -> bytes | None:
    """A cell's text as it would stand in the file, so that both roads meet."""
    if cell is None or "file" in cell.attrib:
        return None
    text = (cell.text or "").encode("utf-8", "surrogatepass")
    return text.replace(b"&", b"&amp;").replace(b"<", b"&lt;")


def _integer(cell: bytes | None) -> int | None:
    try:
        value = int(cell) if cell is not None else None
    except ValueError:
        return None
    return value if value is not None and -(1 << 63) <= value < 1 << 63 else None


def _normal(cells: list[bytes | None], kind: Kind, name: str) -> list[bytes | None]:
    """One spelling for equal values; malformed ones stay as they are."""
    if kind is Kind.TEXT:
        joined = CELL.join(cell for cell in cells if cell is not None)
        if b"&" in joined or b"\\" in joined:
            cells = [_unescaped(cell) for cell in cells]
        if name in ("CHAR", "NCHAR"):
            return [cell and cell.rstrip(b" ") for cell in cells]
        return cells
    if kind is Kind.BINARY:
        return [cell and cell.strip().upper() for cell in cells]
    form: Callable[[bytes], bytes] = FORMS.get(_FORM.get(kind, ""), bytes)
    if kind is Kind.FLOAT:
        return [None if cell is None else FORMS["number"](form(cell.strip())) for cell in cells]
    return [None if cell is None else form(cell.strip().removesuffix(b"Z")) for cell in cells]


def _unescaped(cell: bytes | None) -> bytes | None:
    if cell is None:
        return None
    try:
        return unescape_cells(cell)
    except ValueError:
        return cell


@dataclass(frozen=True, slots=True)
class KeyCase:
    """A broken key: one of the first cases, or the number of the others."""

    rule: str
    where: str
    message: str
    count: int
    severity: str | None


class KeyStore:
    """Keeps the key columns of all tables, and judges the keys."""

    def __init__(self, folder: Path) -> None:
        """What is added goes to a file first: DuckDB needs the memory that the workers have."""
        self._folder = folder
        self._db: Any = None
        self._tables: dict[int, tuple[str, dict[str, str]]] = {}
        self._runs = (folder / "keys.runs").open("w+b")
        self.outer = SharedStore("outer_files", self._keep)
        self.links = SharedStore("links", self._keep)

    def close(self) -> None:
        self._runs.close()
        if self._db is not None:
            self._db.close()

    def begin(self, number: int, columns: KeyColumns) -> None:
        """Make room for the key columns of the table of a number."""
        if columns.numbers:
            self._tables[number] = f"t{number}", dict(columns.schema())

    def add(self, number: int, data: bytes, rows_before: int) -> None:
        """Take the key columns of a run."""
        if data:
            self._keep(self._tables[number][0], data, rows_before)

    def _keep(self, name: str, data: bytes, rows_before: int) -> None:
        self._runs.write(_RUN.pack(name.encode(), rows_before, len(data)))
        self._runs.write(data)

    def judge(self) -> None:
        """Give DuckDB all that was kept; from here on it answers."""
        import duckdb

        self._db = self.outer.db = self.links.db = duckdb.connect(str(self._folder / "keys.duckdb"))
        for setting, value in (
            ("memory_limit", _MEMORY), ("threads", "2"), ("temp_directory", str(self._folder)),
            ("preserve_insertion_order", "false"), ("checkpoint_threshold", "4MB"),
        ):  # fmt: skip
            self._db.execute(f"SET {setting} = '{value}'")
        for name, typed in self._tables.values():
            listed = ", ".join(f"{column} {type_}" for column, type_ in typed.items())
            self._db.execute(f"CREATE TABLE {name} ({listed}, n BIGINT)")
        for store in (self.outer, self.links):
            store.create()
        held: dict[str, list[pa.Table]] = {}
        rows = 0
        for name, run in self._kept():
            held.setdefault(name, []).append(run)
            rows += run.num_rows
            if rows >= _AT_ONCE:
                self._insert(held)
                rows = 0
        self._insert(held)

    def _kept(self) -> Iterator[tuple[str, pa.Table]]:
        """Yield each run with the name of its table; its rows get their numbers."""
        self._runs.seek(0)
        while head := self._runs.read(_RUN.size):
            name, before, size = _RUN.unpack(head)
            run = pa.ipc.open_stream(self._runs.read(size)).read_all()
            numbers = pa.array(range(before + 1, before + run.num_rows + 1), pa.int64())
            if "n" not in run.column_names:
                run = run.append_column("n", numbers)
            yield name.rstrip(b"\0").decode(), run

    def _insert(self, held: dict[str, list[pa.Table]]) -> None:
        """Give DuckDB what has come together: each time it syncs the disk."""
        for name, runs in held.items():
            self._db.register("run", pa.concat_tables(runs))
            self._db.execute(f"INSERT INTO {name} SELECT * FROM run")
            self._db.unregister("run")
        held.clear()

    def unique(self, number: int, each: TableFiles, key: UniqueKey, kind: str) -> Iterator[KeyCase]:
        """Yield the values that a key has more than once."""
        found = self._columns(number, each, key.columns)
        if found is None:
            return
        name, columns = found
        listed = ", ".join(columns)
        filled = " AND ".join(f"{column} IS NOT NULL" for column in columns)
        grouped = (
            f"SELECT {listed}, count(*) AS times, min(n) AS first, max(n) AS last FROM {name} "
            f"WHERE {filled} GROUP BY {listed} HAVING count(*) > 1"
        )
        where = f"{each.name}.{key.name}"
        yield from self._cases(
            grouped, len(columns), where,
            lambda values, times, first, last: (
                f"{times} rows have the {kind} {values}, the first are {first} and {last}"
            ),
        )  # fmt: skip

    def _cases(
        self,
        query: str,
        width: int,
        where: str,
        say: Callable[..., str],
        severity: str | None = None,
    ) -> Iterator[KeyCase]:
        total = self._db.execute(f"SELECT count(*) FROM ({query})").fetchone()[0]
        if not total:
            return
        rows = self._db.execute(f"{query} ORDER BY first LIMIT {_FIRST}").fetchall()
        for number, row in enumerate(rows):
            message = say(_shown(row[:width]), *row[width:])
            yield KeyCase("T_6.0-1", where, message, 1, severity)
            if number == len(rows) - 1 and total > len(rows):
                yield KeyCase("T_6.0-1", where, message, total - len(rows), severity)

    def foreign(
        self, child: tuple[int, TableFiles], key: ForeignKey, parent: tuple[int, TableFiles]
    ) -> Iterator[KeyCase]:
        """Yield the rows that refer to nothing."""
        ours = self._columns(*child, [r.column for r in key.references])
        theirs = self._columns(*parent, [r.referenced for r in key.references])
        if ours is None or theirs is None:
            return
        pairs = list(zip(self._texts(ours), self._texts(theirs), strict=True))
        where = f"{child[1].name}.{key.name}"
        full = " AND ".join(f"c.{column} IS NOT NULL" for column in ours[1])
        listed = ", ".join(f"c.{column}" for column in ours[1])
        goal = f"{key.referenced_schema}.{key.referenced_table}"
        # Without a collation nobody knows whether case and trailing spaces count: a row that only
        # they keep from its parent is told apart.
        exact, folded = (" AND ".join(same(a, b) for a, b in pairs) for same in (_equal, _alike))
        columns = f"{listed}, 1 AS times, c.n AS first, c.n AS last"
        strict = f"SELECT c.* FROM {ours[0]} c ANTI JOIN {theirs[0]} p ON {exact} WHERE {full}"
        if self._db.execute(f"SELECT count(*) FROM ({strict})").fetchone()[0]:
            self._db.execute(f"CREATE OR REPLACE TEMP TABLE orphan AS {strict}")
            for join, why, severity in (
                ("ANTI", "", None),
                ("SEMI", ", but for case or trailing spaces", "warning"),
            ):
                query = f"SELECT {columns} FROM orphan c {join} JOIN {theirs[0]} p ON {folded}"
                yield from self._cases(
                    query, len(pairs), where,
                    lambda values, _times, first, _last, why=why: (
                        f"row {first} refers to {values}, which {goal} does not have{why}"
                    ),
                    severity,
                )  # fmt: skip
        if len(pairs) > 1 and key.match_type in ("FULL", "PARTIAL"):
            yield from self._partly_null(key, ours, theirs, pairs, where, listed)

    def _partly_null(
        self, key: ForeignKey, ours: Any, theirs: Any, pairs: Any, where: str, listed: str
    ) -> Iterator[KeyCase]:
        """MATCH FULL allows no row of which only a part is NULL; PARTIAL compares the rest."""
        some = " OR ".join(f"c.{column} IS NULL" for column in ours[1])
        not_all = " OR ".join(f"c.{column} IS NOT NULL" for column in ours[1])
        query = (
            f"SELECT {listed}, 1 AS times, c.n AS first, c.n AS last FROM {ours[0]} c "
            f"WHERE ({some}) AND ({not_all})"
        )
        if key.match_type == "PARTIAL":
            rest = " AND ".join(f"(c.{a[0]} IS NULL OR {_equal(a, b)})" for a, b in pairs)
            query += f" AND NOT EXISTS (SELECT 1 FROM {theirs[0]} p WHERE {rest})"
        yield from self._cases(
            query, len(pairs), where,
            lambda values, _times, first, _last: (
                f"row {first} refers to {values}, which MATCH {key.match_type} does not allow"
            ),
        )  # fmt: skip

    def _texts(self, found: tuple[str, list[str]]) -> list[tuple[str, str]]:
        types = next(typed for name, typed in self._tables.values() if name == found[0])
        return [(column, types[column]) for column in found[1]]

    def _columns(self, number: int, each: TableFiles, names: Any) -> tuple[str, list[str]] | None:
        """The stored columns of a key; None if one of them is not there or is no key column."""
        stored = self._tables.get(number)
        if stored is None:
            return None
        numbers = {column.name: n for n, column in enumerate(each.table.columns, 1)}
        columns = [f"c{numbers[name]}" for name in names if name in numbers]
        if len(columns) != len(names) or not set(columns) <= stored[1].keys():
            return None
        return stored[0], columns


def _equal(ours: tuple[str, str], theirs: tuple[str, str]) -> str:
    if ours[1] == theirs[1]:
        return f"c.{ours[0]} = p.{theirs[0]}"
    return f"{_of('c', ours)} = {_of('p', theirs)}"


def _alike(ours: tuple[str, str], theirs: tuple[str, str]) -> str:
    """Whether two values are the same but for case and trailing spaces."""
    if "BIGINT" in (ours[1], theirs[1]):
        return _equal(ours, theirs)
    a, b = (f"lower(rtrim(CAST({side} AS VARCHAR)))" for side in (f"c.{ours[0]}", f"p.{theirs[0]}"))
    return f"{a} = {b}"


def _of(side: str, column: tuple[str, str]) -> str:
    """A column as bytes, whatever it is stored as."""
    name, type_ = column
    return f"{side}.{name}" if type_ == "BLOB" else f"CAST(CAST({side}.{name} AS VARCHAR) AS BLOB)"


def _shown(values: tuple[Any, ...]) -> str:
    texts = [
        value[:60].decode("utf-8", "replace") if isinstance(value, bytes) else str(value)
        for value in values
    ]
    return ", ".join("NULL" if text == "None" else repr(text) for text in texts)

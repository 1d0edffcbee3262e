"""Running a query for citation: normalised, in a total order, its result digested.

The order of the query's author comes first; all columns follow, so that no two different rows can
change places (RDA R5). The digest is siard-digest-1 (R6), over the content of large objects too.
"""

from __future__ import annotations

import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa

from muniment import databases
from muniment.errors import MissingDriver, QueryError
from muniment.query.content import CONTENT_LIMIT
from muniment.sql.digest import OrderedDigest
from muniment.sql.model import shape_of

if TYPE_CHECKING:
    from muniment.query.session import Archives, Result

__all__ = ["Outcome", "run"]

_HELD = 64 << 20  # octets of large objects in memory, and one object more


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a query gave."""

    sql: str
    rows: int
    digest: str
    columns: tuple[tuple[str, str], ...]
    engine: str
    database: str  # URL of a temporary database that holds the result as table ``result``


@contextmanager
def run(sql: str, archives: Mapping[str, Path]) -> Iterator[Outcome]:
    """Run a query over archives; the result lies in a temporary database while the block lasts."""
    try:
        import duckdb

        from muniment.query import Limits, open_archives
    except ImportError as error:
        raise MissingDriver("querying archives", "query") from error
    with tempfile.TemporaryDirectory(prefix="muniment-cite-") as folder:
        path = Path(folder) / "result.duckdb"
        with open_archives(archives, Limits(seconds=None), whole=True) as session:
            width = len(session.execute(f"SELECT * FROM (\n{_bare(sql)}\n) LIMIT 0").columns)
            normal = _normalised(sql, width)
            result = session.execute(normal)
            _store(duckdb, path, _Whole(session, result))
        url = f"duckdb:///{path}"
        rows, digest, columns = _digested(url)
        yield Outcome(normal, rows, digest, columns, f"DuckDB {duckdb.__version__}", url)


def _bare(sql: str) -> str:
    return sql.strip().rstrip(";")


def _normalised(sql: str, width: int) -> str:
    """Return a query in one spelling, with an order that leaves no choice."""
    import sqlglot
    from sqlglot import exp

    try:
        tree = sqlglot.parse_one(_bare(sql), read="duckdb")
    except sqlglot.errors.SqlglotError as error:
        first = str(error).partition("\n")[0]
        raise QueryError(f"the query cannot be brought into one spelling: {first}") from error
    if not isinstance(tree, exp.Query):
        raise QueryError("only a query (SELECT) can be cited")
    order = tree.args.get("order")
    wanted = list(order.expressions) if order is not None else []
    text = ", ".join(each.sql(dialect="duckdb").upper() for each in wanted)
    if not text.startswith("ALL"):
        wanted += [exp.Ordered(this=exp.Literal.number(n)) for n in range(1, width + 1)]
        tree.set("order", exp.Order(expressions=wanted))
    normal: str = tree.sql(dialect="duckdb", comments=False, normalize_functions="upper")
    return normal


class _Whole:
    """A result in which the large objects themselves stand where queries show what they are."""

    def __init__(self, session: Archives, result: Result) -> None:
        self._session, self._batches = session, result.batches
        self._large = [n for n, field in enumerate(result.schema) if _is_object(field.type)]
        fields = list(result.schema)
        for number in self._large:
            fields[number] = pa.field(fields[number].name, pa.large_binary())
        self.schema = pa.schema(fields)

    @property
    def columns(self) -> list[str]:
        return list(self.schema.names)

    @property
    def batches(self) -> Iterator[pa.RecordBatch]:
        """The rows, in batches that are cut where their objects have filled the memory."""
        for batch in self._batches:
            start, held = 0, 0
            for row, size in enumerate(self._sizes(batch)):
                held += size
                if held > _HELD:
                    yield self._read(batch.slice(start, row + 1 - start))
                    start, held = row + 1, 0
            if start < batch.num_rows:
                yield self._read(batch.slice(start))

    def _sizes(self, batch: pa.RecordBatch) -> Iterator[int]:
        """Yield for each row how much its objects take."""
        objects = (batch.column(number).to_pylist() for number in self._large)
        for row in zip(*objects, strict=True):
            yield sum((each or {}).get("size") or 0 for each in row)

    def _read(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        columns = list(batch.columns)
        for number in self._large:
            octets = [self._octets(value) for value in columns[number].to_pylist()]
            columns[number] = pa.array(octets, pa.large_binary())
        return pa.RecordBatch.from_arrays(columns, schema=self.schema)

    def _octets(self, value: dict[str, Any] | None) -> bytes | None:
        if value is None or value["key"] is None:
            return None
        with self._session.open_content(value["key"]) as stream:
            data: bytes = stream.read(CONTENT_LIMIT + 1)
        if len(data) > CONTENT_LIMIT:
            raise QueryError(
                f"the large object {value['key']} is too long for the result of a query; leave its "
                "column out, and cite the object itself: #lob=…"
            )
        return data


def _is_object(kind: pa.DataType) -> bool:
    return pa.types.is_struct(kind) and [f.name for f in kind] == ["size", "type", "key"]


def _store(duckdb: Any, path: Path, result: _Whole) -> None:
    """Write a result into a database of its own, in its order."""
    names: list[str] = []
    for name in result.columns:
        number, unique = 1, name
        while unique.casefold() in {each.casefold() for each in names}:
            number, unique = number + 1, f"{name} ({number + 1})"
        names.append(unique)
    schema = pa.schema([field.with_name(n) for field, n in zip(result.schema, names, strict=True)])
    batches = (pa.RecordBatch.from_arrays(b.columns, schema=schema) for b in result.batches)
    reader = pa.RecordBatchReader.from_batches(schema, batches)
    with duckdb.connect(str(path)) as connection:
        connection.register("rows_of_result", reader)
        connection.execute("CREATE TABLE result AS SELECT * FROM rows_of_result")
        connection.unregister("rows_of_result")


def _digested(url: str) -> tuple[int, str, tuple[tuple[str, str], ...]]:
    with databases.open_source(url) as source:
        database = source.describe()
        schema, table = next(database.tables())
        shapes = [shape_of(database, schema.name, column) for column in table.columns]

        def open_lob(reference: bytes) -> Any:
            return source.open_lob(schema, table, reference)

        digest = OrderedDigest(table.columns, shapes, open_lob)
        rows = 0
        for part in source.parts(schema, table):
            for batch in source.batches(schema, table, part):
                digest.update(batch)
                rows += batch.rows
        columns = tuple((column.name, str(column.type)) for column in table.columns)
    return rows, digest.hexdigest(), columns

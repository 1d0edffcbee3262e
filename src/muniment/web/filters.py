"""What a table page is asked for: a value made from the address, and the SQL that answers it."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from starlette.datastructures import QueryParams

from muniment.errors import UsageError
from muniment.sql.model import Leaf
from muniment.sql.types import PredefinedType

if TYPE_CHECKING:
    from muniment.query.index import IndexColumn, IndexTable

__all__ = [
    "OPERATORS", "SIZES", "Filter", "TableRequest", "is_scalar", "order_sql", "parse_request",
    "search_sql", "where_sql",
]  # fmt: skip

# The operators, and the SQL of each; "text" ones compare the text of a value.
OPERATORS = {
    "eq": "=", "ne": "<>", "lt": "<", "le": "<=", "gt": ">", "ge": ">=",
    "contains": "contains", "starts": "starts_with", "null": "IS NULL", "notnull": "IS NOT NULL",
}  # fmt: skip
SIZES = (50, 100, 500)
_MOST = 50  # filters, columns and facets in one address


@dataclass(frozen=True, slots=True)
class Filter:
    """One condition: a column by its number from 0, an operator and a value."""

    column: int
    operator: str
    value: str = ""


@dataclass(frozen=True, slots=True)
class TableRequest:
    """Which rows and columns of a table somebody wants to see."""

    filters: tuple[Filter, ...] = ()
    search: str = ""
    sort: int | None = None
    descending: bool = False
    columns: tuple[int, ...] = ()  # none: all
    facets: tuple[int, ...] = ()
    start: int = 0
    size: int = SIZES[0]

    @property
    def needs_index(self) -> bool:
        """Whether the archive alone, read from its start, cannot answer this."""
        return bool(self.filters or self.search or self.facets or self.sort is not None)

    def address(self, names: Sequence[str], **changes: Any) -> str:
        """Return the query of the address that asks for this, with changes."""
        wanted = replace(self, **{"start": 0, **changes})
        pairs: list[tuple[str, str]] = []
        for each in wanted.filters:
            pairs += [("c", names[each.column]), ("op", each.operator), ("v", each.value)]
        if wanted.search:
            pairs.append(("q", wanted.search))
        if wanted.sort is not None:
            pairs.append(("desc" if wanted.descending else "sort", names[wanted.sort]))
        pairs += [("col", names[number]) for number in wanted.columns]
        pairs += [("facet", names[number]) for number in wanted.facets]
        if wanted.start:
            pairs.append(("start", str(wanted.start)))
        if wanted.size != SIZES[0]:
            pairs.append(("size", str(wanted.size)))
        return f"?{urlencode(pairs)}" if pairs else "?"


def parse_request(params: QueryParams, keys: Mapping[str, str]) -> TableRequest:
    """Return the request that an address makes; raise UsageError with a sentence.

    ``keys`` are the columns' names, in order, and what stands for them in addresses.
    """
    sort = params.get("desc") or params.get("sort")
    columns, operators, values = (params.getlist(name) for name in ("c", "op", "v"))
    if not len(columns) == len(operators) == len(values):
        raise UsageError("each filter needs a column (c), an operator (op) and a value (v)")
    chosen = [
        Filter(_column(keys, column), operator, value)
        for column, operator, value in zip(columns, operators, values, strict=True)
        if column and (value or operator in ("null", "notnull", "eq", "ne"))
    ]
    for each in chosen:
        if each.operator not in OPERATORS:
            raise UsageError(f"there is no operator {each.operator[:40]!r}")
    return TableRequest(
        tuple(chosen[:_MOST]),
        params.get("q", "").strip(),
        None if not sort else _column(keys, sort),
        bool(params.get("desc")),
        tuple(dict.fromkeys(_column(keys, n) for n in params.getlist("col")[:2000])),
        tuple(dict.fromkeys(_column(keys, n) for n in params.getlist("facet")[:_MOST])),
        _number(params.get("start"), 0, 1 << 50),
        max(1, _number(params.get("size"), SIZES[0], SIZES[-1])),
    )


def _column(keys: Mapping[str, str], name: str) -> int:
    for known in (list(keys.values()), list(keys)):
        if name in known:
            return known.index(name)
    raise UsageError(f"this table has no column {name[:80]!r}")


def _number(text: str | None, default: int, most: int) -> int:
    if not text:
        return default
    if not text.isdecimal():
        raise UsageError(f"{text[:40]!r} is not a number of rows")
    return min(int(text[:18]), most)


def where_sql(table: IndexTable, request: TableRequest) -> tuple[str, list[Any]]:
    """Return the condition for the rows of a request, with its parameters."""
    conditions, parameters = [], []
    for each in request.filters:
        sql, values = _filter_sql(table.columns[each.column], each)
        conditions.append(sql)
        parameters += values
    if request.search:
        sql, values = search_sql(table, request.search)
        conditions.append(f"({sql})")
        parameters += values
    return (f" WHERE {' AND '.join(conditions)}" if conditions else ""), parameters


def _filter_sql(column: IndexColumn, wanted: Filter) -> tuple[str, list[Any]]:
    cell = f"c{wanted.column + 1}"
    if wanted.operator in ("null", "notnull"):
        if column.large == "binary":
            cell = f"coalesce({cell}, {cell}_ref)"
        return f"{cell} {OPERATORS[wanted.operator]}", []
    if column.large == "binary":  # of an object, the type is what one can ask for
        cell, type_ = f"{cell}_type", "VARCHAR"
    else:
        type_ = column.type
    if wanted.operator in ("contains", "starts"):
        function = OPERATORS[wanted.operator]
        return f"{function}(lower(CAST({cell} AS VARCHAR)), lower(?))", [wanted.value]
    if not is_scalar(type_):
        return f"CAST({cell} AS VARCHAR) {OPERATORS[wanted.operator]} ?", [wanted.value]
    return f"{cell} {OPERATORS[wanted.operator]} {_value_sql(type_)}", [wanted.value]


def _value_sql(type_: str) -> str:
    if type_ != "INTERVAL":
        return f"CAST(? AS {type_})"
    from muniment.databases.duckdb.types import Scalar  # the first page does without
    from muniment.databases.duckdb.values import value_sql

    # DuckDB alone does not read what archives and pages spell.
    shape = Leaf(PredefinedType("INTERVAL", interval="DAY TO SECOND(6)"))
    value = value_sql(Scalar("INTERVAL"), shape, "said", "")
    return f"(SELECT {value} FROM (SELECT CAST(? AS VARCHAR) AS said))"


def is_scalar(type_: str) -> bool:
    """Whether a DuckDB type has no parts."""
    return not (type_.endswith("]") or type_.startswith(("STRUCT", "UNION", "MAP")))


def search_sql(table: IndexTable, words: str) -> tuple[str, list[Any]]:
    """Return the condition that some column holds the words: as text, number or day."""
    conditions: list[str] = []
    parameters: list[Any] = []
    pattern = "%" + re.sub(r"([\\%_])", r"\\\1", words) + "%"
    number = re.fullmatch(r"[+-]?\d{1,18}(?:\.\d{1,10})?", words)
    day = re.fullmatch(r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])", words)
    for position, column in enumerate(table.columns, 1):
        if column.type == "VARCHAR" and column.large != "binary":
            conditions.append(f"c{position} ILIKE ? ESCAPE '\\'")
            parameters.append(pattern)
        elif number and column.type.startswith(("SMALLINT", "INTEGER", "BIGINT", "DECIMAL")):
            conditions.append(f"c{position} = TRY_CAST(? AS {column.type})")
            parameters.append(words)
        elif day and column.type in ("DATE", "TIMESTAMP"):
            conditions.append(f"CAST(c{position} AS DATE) = TRY_CAST(? AS DATE)")
            parameters.append(words)
        elif not is_scalar(column.type):
            conditions.append(f"CAST(c{position} AS VARCHAR) ILIKE ? ESCAPE '\\'")
            parameters.append(pattern)
    return " OR ".join(conditions) or "false", parameters


def order_sql(request: TableRequest, table: IndexTable) -> str:
    """Return the order of a request: the archive's own unless a column was chosen."""
    if request.sort is None:
        return " ORDER BY rowid"
    cell = f"c{request.sort + 1}"
    if table.columns[request.sort].large == "binary":
        cell = f"{cell}_size"
    direction = "DESC" if request.descending else "ASC"
    return f" ORDER BY {cell} {direction} NULLS LAST, rowid"

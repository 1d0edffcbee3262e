"""SQL that turns DuckDB's values into the text of a batch, and that text into values again.

``cell_sql`` and ``value_sql`` are mirror images. In between, a complex value is a DuckDB STRUCT
with fields u1, u2, … or a LIST, and every leaf is text in SIARD's lexical form.
"""

from __future__ import annotations

from muniment.databases.duckdb.types import (
    DuckType,
    Enumeration,
    Listing,
    Mapping,
    Record,
    Scalar,
    Union,
    is_wrapped,
    quote,
    quote_text,
)
from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind, PredefinedType

__all__ = ["cell_sql", "interval_parts", "is_spelt_plainly", "value_sql"]

_INTEGERS = {
    "TINYINT", "UTINYINT", "SMALLINT", "USMALLINT", "INTEGER", "UINTEGER", "BIGINT", "UBIGINT",
    "HUGEINT", "UHUGEINT",
}  # fmt: skip
_FRACTION = {"TIME": 6, "TIMESTAMP_S": 0, "TIMESTAMP_MS": 3, "TIMESTAMP": 6}
_DURATION = (
    r"^(-?)P(?:(-?\d+)Y)?(?:(-?\d+)M)?(?:(-?\d+)D)?"
    r"(?:T(?:(-?\d+)H)?(?:(-?\d+)M)?(?:(-?)(\d+)(\.\d+)?S)?)?$"
)


def cell_sql(duck: DuckType | None, shape: Shape, value: str, depth: int = 0) -> str:
    """Return SQL for the text of a value, given SQL for the value; ``depth`` names variables.

    >>> cell_sql(Listing(Scalar("DATE")), Array(Leaf(PredefinedType("DATE")), 3), "d")
    '[CAST(x0 AS VARCHAR) FOR x0 IN d]'
    """
    item = f"x{depth}"
    match duck, shape:
        case Record(fields), Struct(parts):
            cells = [
                cell_sql(kind, part, f"struct_extract({value}, {quote_text(name)})", depth)
                for (name, kind), part in zip(fields, parts, strict=True)
            ]
            return _unless_null(value, _pack(cells))
        case Union(members), Struct((_, *parts)):
            cells = [f"CAST(union_tag({value}) AS VARCHAR)"]
            cells += [
                cell_sql(kind, part, f"union_extract({value}, {quote_text(name)})", depth)
                for (name, kind), part in zip(members, parts, strict=True)
            ]
            return _unless_null(value, _pack(cells))
        case Mapping(key, held), Array(Struct((first, second))):
            pair = _pack(
                [
                    cell_sql(key, first, f"struct_extract({item}, 'key')", depth + 1),
                    cell_sql(held, second, f"struct_extract({item}, 'value')", depth + 1),
                ]
            )
            return f"[{pair} FOR {item} IN map_entries({value})]"
        case Listing(element, length), Array(inner):
            wrapped = is_wrapped(element) and isinstance(inner, Struct)
            inside = inner.parts[0] if wrapped and isinstance(inner, Struct) else inner
            cell = cell_sql(element, inside, item, depth + 1)
            values = f"CAST({value} AS {element}[])" if length else value
            if cell == item and not wrapped:
                return values
            return f"[{_pack([cell]) if wrapped else cell} FOR {item} IN {values}]"
        case (Scalar() | Enumeration(), Leaf(type=archived)):
            return _leaf_text(duck, archived, value)
    return f"CAST({value} AS VARCHAR)"


def _leaf_text(duck: Scalar | Enumeration, archived: PredefinedType, value: str) -> str:
    text = f"CAST({value} AS VARCHAR)"
    name = duck.name if isinstance(duck, Scalar) else ""
    if name == "VARCHAR":
        return value
    if name == "INTERVAL" and archived.name != "CLOB":
        return _interval_text(archived, value)
    match archived.kind:
        case Kind.BINARY:
            return f"hex({value})"
        case Kind.DECIMAL if archived.length == archived.scale:
            # DuckDB writes .5 where XML Schema and everybody else writes 0.5.
            return rf"regexp_replace({text}, '^(-?)\.', '\10.')"
        case Kind.FLOAT:
            return (
                f"CASE WHEN isfinite({value}) THEN {text} WHEN isnan({value}) THEN 'NaN'"
                f" WHEN {value} > 0 THEN 'INF' WHEN {value} < 0 THEN '-INF' END"
            )
        case Kind.TIMESTAMP if name in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"):
            plain = "TIMESTAMP" if name != "TIMESTAMPTZ_NS" else "TIMESTAMP_NS"
            return _timestamp_text(plain, f"timezone('UTC', {value})")
        case Kind.TIMESTAMP:
            return _timestamp_text(name, value)
    return text


def is_spelt_plainly(duck: DuckType | None, shape: Shape) -> bool:
    """Whether ``cell_sql`` spells every usual value as ``kernels.joining`` does."""
    if not isinstance(duck, Scalar) or not isinstance(shape, Leaf):
        return False
    match shape.type.kind:
        case Kind.INTEGER:
            return duck.name in _INTEGERS
        case Kind.DECIMAL:
            return duck == Scalar("DECIMAL", (shape.type.length or 0, shape.type.scale or 0))
        case Kind.BOOLEAN | Kind.DATE:
            return duck.name == shape.type.name
        case Kind.TIMESTAMP:
            return duck.name == "TIMESTAMP"
        case Kind.TEXT:
            return duck.name == "VARCHAR"
    return False


def _timestamp_text(name: str, value: str) -> str:
    """Years beyond 1 to 9999 and infinities stay as DuckDB prints them."""
    text = f"CAST({value} AS VARCHAR)"
    if name == "TIMESTAMP_NS":  # reaches from 1677 to 2262 only
        return f"replace({text}, ' ', 'T')"
    first, after = (f"CAST('{date}' AS {name})" for date in ("0001-01-01", "10000-01-01"))
    return (
        f"CASE WHEN {value} >= {first} AND {value} < {after}"
        f" THEN replace({text}, ' ', 'T') ELSE {text} END"
    )


def interval_parts(value: str) -> tuple[str, str, str]:
    """Return SQL for the three numbers that DuckDB keeps of an interval: months, days, µs."""
    months = f"(datepart('year', {value}) * 12 + datepart('month', {value}))"
    micros = (
        f"(datepart('hour', {value}) * 3600000000 + datepart('minute', {value}) * 60000000"
        f" + datepart('microseconds', {value}))"
    )
    return months, f"datepart('day', {value})", micros


def _interval_text(archived: PredefinedType, value: str) -> str:
    """An xs:duration with one sign, or, for the mixed ones, ISO 8601 with a sign at each part."""
    months, days, micros = interval_parts(value)
    if archived.kind is not Kind.INTERVAL:
        year, month, day, hour, minute, seconds = (
            f"datepart('{part}', {value})"
            for part in ("year", "month", "day", "hour", "minute", "microseconds")
        )
        return _unless_null(
            value,
            f"concat('P', {year}, 'Y', {month}, 'M', {day}, 'DT', {hour}, 'H', {minute}, 'M',"
            f" CASE WHEN {seconds} < 0 THEN '-' ELSE '' END, {_seconds(f'abs({seconds})')}, 'S')",
        )
    if archived.interval.startswith("YEAR"):
        size = f"abs({months})"
        sign = f"CASE WHEN {months} < 0 THEN '-P' ELSE 'P' END"
        return _unless_null(value, f"concat({sign}, {size} // 12, 'Y', {size} % 12, 'M')")
    size = f"abs({micros})"
    sign = f"CASE WHEN {days} < 0 OR {micros} < 0 THEN '-P' ELSE 'P' END"
    return _unless_null(
        value,
        f"concat({sign}, abs({days}), 'DT', {size} // 3600000000, 'H',"
        f" {size} // 60000000 % 60, 'M', {_seconds(f'{size} % 60000000')}, 'S')",
    )


def _seconds(micros: str) -> str:
    """Whole seconds, and the fraction without its trailing zeros."""
    fraction = f"rtrim(concat('.', lpad(CAST({micros} % 1000000 AS VARCHAR), 6, '0')), '0')"
    return (
        f"concat(({micros}) // 1000000,"
        f" CASE WHEN ({micros}) % 1000000 = 0 THEN '' ELSE {fraction} END)"
    )


def value_sql(duck: DuckType, shape: Shape, cell: str, where: str, depth: int = 0) -> str:
    """Return SQL for a value of a type, given SQL for its cell: the inverse of ``cell_sql``.

    Text that would lose digits in the type raises an error that names ``where``.
    """
    item = f"x{depth}"
    match duck, shape:
        case Record(fields), Struct(parts):
            values = [
                f"{quote(name)} := {value_sql(kind, part, _part(cell, number), where, depth)}"
                for number, ((name, kind), part) in enumerate(zip(fields, parts, strict=True), 1)
            ]
            return _unless_null(cell, f"struct_pack({', '.join(values)})")
        case Union(members), Struct((_, *parts)):
            cases = ""
            for number, ((name, kind), part) in enumerate(zip(members, parts, strict=True), 2):
                value = value_sql(kind, part, _part(cell, number), where, depth)
                tagged = f"CAST(union_value({quote(name)} := {value}) AS {duck})"
                cases += f" WHEN {quote_text(name)} THEN {tagged}"
            return f"CASE {_part(cell, 1)}{cases} END"
        case Mapping(key, held), Array(Struct((first, second))):
            pair = (
                f"struct_pack(k := {value_sql(key, first, _part(item, 1), where, depth + 1)},"
                f" v := {value_sql(held, second, _part(item, 2), where, depth + 1)})"
            )
            return f"CAST(map_from_entries([{pair} FOR {item} IN {cell}]) AS {duck})"
        case Listing(element, length), Array(inner):
            inside, of_item = inner, item
            if is_wrapped(element) and isinstance(inner, Struct):
                inside, of_item = inner.parts[0], _part(item, 1)
            value = value_sql(element, inside, of_item, where, depth + 1)
            listed = f"[{value} FOR {item} IN {cell}]"
            # SIARD does not write the NULLs at the end of an array.
            return f"CAST({f'list_resize({listed}, {length})' if length else listed} AS {duck})"
        case (Scalar() | Enumeration(), Leaf(type=archived)):
            return _leaf_value(duck, archived, cell, where)
    raise TypeError(f"cells of {shape} cannot become {duck}")


def _leaf_value(duck: Scalar | Enumeration, archived: PredefinedType, cell: str, where: str) -> str:
    name = duck.name if isinstance(duck, Scalar) else ""
    value = f"CAST({cell} AS {duck})"
    if name == "VARCHAR":
        return cell
    if name == "BLOB" and archived.kind in (Kind.BINARY, Kind.DATALINK):
        return f"unhex({cell})"
    if name == "INTERVAL":
        return _interval_value(cell)
    if name in _INTEGERS:
        whole = f"regexp_full_match({cell}, '[+-]?[0-9]+')"
        return _guard([whole], value, cell, duck, where)
    if isinstance(duck, Scalar) and name == "DECIMAL":
        same = f"CAST({value} AS VARCHAR) = {cell}"
        more = rf"regexp_matches({cell}, '\.\d{{{duck.parameters[1]}}}\d*[1-9]|[eE]')"
        return _guard([same, f"NOT {more}"], value, cell, duck, where)
    if name in ("FLOAT", "DOUBLE"):
        endless = f"{cell} IN ('INF', '+INF', '-INF', 'NaN')"
        return _guard([f"isfinite({value})", endless], value, cell, duck, where)
    if archived.kind in (Kind.TIME, Kind.TIMESTAMP):
        return _time_value(name, archived, cell, where)
    return value


def _time_value(name: str, archived: PredefinedType, cell: str, where: str) -> str:
    value, digits = f"CAST({cell} AS {name})", _FRACTION.get(name, 9)
    if name in ("TIMESTAMP WITH TIME ZONE", "TIMESTAMPTZ_NS"):
        plain = "TIMESTAMP_NS" if name == "TIMESTAMPTZ_NS" else "TIMESTAMP"
        in_utc, digits = f"timezone('UTC', CAST({cell} AS {plain}))", _FRACTION.get(plain, 9)
        has_zone = f"{cell}[-6] IN ('+', '-')"  # as other writers leave it there
        value = f"CASE WHEN {has_zone} THEN CAST({cell} AS {name}) ELSE {in_utc} END"
    elif name == "TIME WITH TIME ZONE":
        value, digits = f"CAST({cell} || '+00' AS {name})", 6
    shortest = (8 if archived.kind is Kind.TIME else 19) + 1 + digits
    more = rf"regexp_matches({cell}, '\.\d{{{digits}}}\d*[1-9]')"
    short = f"strlen({cell}) <= {shortest}"
    return _guard([short, f"NOT {more}"], value, cell, Scalar(name), where)


def _guard(conditions: list[str], value: str, cell: str, duck: DuckType, where: str) -> str:
    """DuckDB rounds what does not fit; an archive must not. Cheap conditions come first."""
    message = f"{quote_text(where + ': ')} || {cell} || {quote_text(f' has no place in {duck}')}"
    cases = " ".join(f"WHEN {condition} THEN {value}" for condition in conditions)
    return f"CASE WHEN {cell} IS NULL THEN NULL {cases} ELSE CAST(error({message}) AS {duck}) END"


def _interval_value(cell: str) -> str:
    names = "['sign', 'y', 'mo', 'd', 'h', 'mi', 'minus', 's', 'f']"
    parts = f"regexp_extract({cell}, '{_DURATION}', {names})"

    def number(part: str) -> str:
        return f"coalesce(TRY_CAST(struct_extract({parts}, '{part}') AS BIGINT), 0)"

    sign = f"CASE WHEN {cell} LIKE '-%' THEN -1 ELSE 1 END"
    fraction = f"rpad(substr(struct_extract({parts}, 'f'), 2, 6), 6, '0')"
    seconds = (
        f"({number('s')} * 1000000 + coalesce(TRY_CAST({fraction} AS BIGINT), 0))"
        f" * CASE struct_extract({parts}, 'minus') WHEN '-' THEN -1 ELSE 1 END"
    )
    micros = f"{number('h')} * 3600000000 + {number('mi')} * 60000000 + {seconds}"
    value = (
        f"to_months(CAST(({number('y')} * 12 + {number('mo')}) * {sign} AS INTEGER))"
        f" + to_days(CAST({number('d')} * {sign} AS INTEGER))"
        f" + to_microseconds(({micros}) * {sign})"
    )
    is_iso = f"regexp_full_match({cell}, '{_DURATION}')"
    # DuckDB may cast a field of a struct before it looks at the condition: keep ISO text from it.
    others = f"CASE WHEN {is_iso} THEN NULL ELSE {cell} END"
    return f"CASE WHEN {is_iso} THEN {value} ELSE CAST({others} AS INTERVAL) END"


def _pack(cells: list[str]) -> str:
    parts = (f"u{number} := {cell}" for number, cell in enumerate(cells, 1))
    return f"struct_pack({', '.join(parts)})"


def _part(cell: str, number: int) -> str:
    return f"struct_extract({cell}, 'u{number}')"


def _unless_null(value: str, result: str) -> str:
    return f"CASE WHEN {value} IS NULL THEN NULL ELSE {result} END"

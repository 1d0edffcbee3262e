"""Results on their way out: CSV, JSON lines and Parquet, batch by batch."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any, BinaryIO

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.parquet

from muniment.query.names import unique_names
from muniment.query.values import json_value, values_of

__all__ = ["guarded", "plain_batch", "write_csv", "write_json_lines", "write_parquet"]

# What spreadsheets take for a formula at the start of a cell.
_FORMULA = r"^[=+\-@\t\r\n＝＋－＠]"
# A number is no formula. Numbers of more digits than DuckDB has are text in its answers.
_NUMBER = r"^-[0-9]+(\.[0-9]+)?([Ee][+-]?[0-9]+)?$"
# Types that Arrow cannot write as text, or not as others do.
_SPELT_OUT = (pa.types.is_nested, pa.types.is_interval, pa.types.is_duration)
_PLAIN_SCALE = 6  # digits behind the point of decimals that Arrow writes with all of them


def write_csv(
    schema: pa.Schema, batches: Iterable[pa.RecordBatch], stream: BinaryIO, exact: bool = False
) -> int:
    """Write CSV as RFC 4180 has it: NULL is nothing, an empty text is two quotes.

    Unless ``exact``, a text that a spreadsheet would run as a formula gets an apostrophe in front.
    """
    rows = 0
    options = pa.csv.WriteOptions(quoting_style="needed")
    empty = plain_batch(_empty(schema), exact)
    # A name may occur twice in a result, and so it may in the heading.
    with pa.csv.CSVWriter(stream, empty.schema, write_options=options) as writer:
        for batch in batches:
            writer.write_batch(plain_batch(batch, exact))
            rows += batch.num_rows
    return rows


def write_json_lines(batches: Iterable[pa.RecordBatch], stream: BinaryIO) -> int:
    """Write one JSON object per row and line; columns of the same name get a number."""
    rows = 0
    for batch in batches:
        names = unique_names(batch.schema.names)
        columns = [values_of(column) for column in batch.columns]
        lines = (
            json.dumps(dict(zip(names, map(json_value, row), strict=True)), ensure_ascii=False)
            for row in zip(*columns, strict=True)
        )
        text = "".join(f"{line}\n" for line in lines)
        stream.write(text.encode("utf-8", "backslashreplace"))
        rows += batch.num_rows
    return rows


def write_parquet(schema: pa.Schema, batches: Iterable[pa.RecordBatch], stream: BinaryIO) -> int:
    """Write a Parquet file; columns of the same name get a number, intervals become text."""
    names = unique_names(schema.names)
    texts = [number for number, field in enumerate(schema) if _has_intervals(field.type)]
    fields = [
        pa.field(name, pa.large_string() if number in texts else field.type)
        for number, (field, name) in enumerate(zip(schema, names, strict=True))
    ]
    rows = 0
    with pa.parquet.ParquetWriter(stream, pa.schema(fields), compression="zstd") as writer:
        for batch in batches:
            columns = [
                _plain(column, exact=True).cast(pa.large_string()) if number in texts else column
                for number, column in enumerate(batch.columns)
            ]
            writer.write_batch(pa.record_batch(columns, schema=pa.schema(fields)))
            rows += batch.num_rows
    return rows


def _has_intervals(kind: pa.DataType) -> bool:
    """Whether a type is one that Parquet cannot hold, or has such a part."""
    if pa.types.is_nested(kind):
        return any(_has_intervals(kind.field(number).type) for number in range(kind.num_fields))
    return bool(pa.types.is_interval(kind))


def plain_batch(batch: pa.RecordBatch, exact: bool = False) -> pa.RecordBatch:
    """Return a batch whose columns are text, numbers, dates and truth values only."""
    columns = [_plain(column, exact) for column in batch.columns]
    names = batch.schema.names if exact else map(guarded, batch.schema.names)
    return pa.record_batch(columns, names=list(names))


def _plain(column: pa.Array, exact: bool) -> pa.Array:
    kind = column.type
    zoned = pa.types.is_timestamp(kind) and kind.tz is not None
    if zoned or any(test(kind) for test in _SPELT_OUT):
        texts = [None if v is None else _text(json_value(v)) for v in values_of(column)]
        column = pa.array(texts, pa.large_string())
    elif pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        texts = [None if v is None else v.hex().upper() for v in column.to_pylist()]
        column = pa.array(texts, pa.large_string())
    elif pa.types.is_null(kind):
        column = column.cast(pa.string())
    elif pa.types.is_decimal(kind) and kind.scale > _PLAIN_SCALE:
        # Arrow writes the small ones with an exponent.
        texts = [None if v is None else format(v, "f") for v in column.to_pylist()]
        return pa.array(texts, pa.large_string())
    is_text = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    return column if exact or not is_text else _guarded_column(column)


def _guarded_column(column: pa.Array) -> pa.Array:
    formulas = pc.and_not(
        pc.match_substring_regex(column, pattern=_FORMULA),
        pc.match_substring_regex(column, pattern=_NUMBER),
    )
    if not pc.any(formulas).as_py():
        return column
    mark, nothing = (pa.scalar(text, column.type) for text in ("'", ""))
    return pc.if_else(formulas, pc.binary_join_element_wise(mark, column, nothing), column)


def guarded(text: str) -> str:
    """Return a text that no spreadsheet runs.

    >>> guarded("=1+1"), guarded("plain")
    ("'=1+1", 'plain')
    """
    return f"'{text}" if text.startswith(tuple("=+-@\t\r\n＝＋－＠")) else text


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _empty(schema: pa.Schema) -> pa.RecordBatch:
    return pa.record_batch([pa.array([], field.type) for field in schema], names=schema.names)

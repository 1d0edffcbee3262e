"""Macros and sequences of a DuckDB file, which SIARD has as routines."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

import duckdb

from muniment.databases.duckdb.connection import Connection
from muniment.databases.duckdb.types import quote
from muniment.sql.model import Routine

__all__ = ["macros", "sequences"]

Row = dict[str, Any]


def sequences(rows: Iterable[Row]) -> Iterator[tuple[str, Routine]]:
    """Yield the schema and the definition of each sequence, which goes on from where it is."""
    for row in rows:
        name = row["sequence_name"]
        following = row["start_value"]
        if row["last_value"] is not None:
            following = row["last_value"] + row["increment_by"]
        source = (
            f"CREATE SEQUENCE {quote(row['schema_name'])}.{quote(name)}"
            f" INCREMENT BY {row['increment_by']} MINVALUE {row['min_value']}"
            f" MAXVALUE {row['max_value']} START {following}"
            f"{' CYCLE' if row['cycle'] else ''}"
        )
        made = Routine(name, name, row["comment"], source=source, characteristic="SEQUENCE")
        yield row["schema_name"], made


def macros(connection: Connection, rows: Iterable[Row]) -> Iterator[tuple[str, Routine]]:
    """Yield the schema and the definition of each macro, given its forms one after the other."""
    seen = set()
    for (home, name, kind, _), found in groupby(rows, _macro):
        forms = list(found)
        as_table = "TABLE " if kind == "table_macro" else ""
        signatures = _signatures(connection, home, name, as_table, forms)
        written = (
            f"({signature}) AS {as_table}{form['macro_definition']}"
            for signature, form in zip(signatures, forms, strict=True)
        )
        source = f"CREATE MACRO {quote(home)}.{quote(name)}{', '.join(written)}"
        # A macro that makes a table may be called like another one.
        specific = f"{name}_2" if (home, name) in seen else name
        seen.add((home, name))
        comment = forms[0]["comment"]
        yield (
            home,
            Routine(specific, name, comment, source=source, characteristic=f"{as_table}MACRO"),
        )


def _macro(row: Row) -> tuple[str, str, str, int]:
    return row["schema_name"], row["function_name"], row["function_type"], row["function_oid"]


def _signatures(
    connection: Connection, home: str, name: str, as_table: str, forms: list[Row]
) -> list[str]:
    """The parameters of all forms with their types and defaults.

    Only the error for too many arguments tells the defaults.
    """
    most = max(len(form["parameters"]) for form in forms)
    call = f"{quote(home)}.{quote(name)}({', '.join(['NULL'] * (most + 1))})"
    told: list[str] = []
    try:
        connection.cursor().execute(f"EXPLAIN {'FROM' if as_table else 'SELECT'} {call}")
    except duckdb.Error as error:
        _, _, candidates = str(error).partition("Candidate macros:\n\t")
        told = candidates.partition("\n\n")[0].split("\n\t")
    if len(told) != len(forms):
        told = [""] * len(forms)
    return [_signature(form["parameters"], text) for form, text in zip(forms, told, strict=True)]


def _signature(names: list[str], told: str) -> str:
    """The names of parameters, each with what DuckDB tells of it.

    >>> _signature(["a", "b c"], "f(a, b c INTEGER := 5)")
    '"a", "b c" INTEGER := 5'
    """
    spelt = (f"(?:{re.escape(name)}|{re.escape(quote(name))})( .*?)?" for name in names)
    found = re.fullmatch(rf".*?\({', '.join(spelt)}\)\s*", told, re.DOTALL)
    rest = [each or "" for each in found.groups()] if found else [""] * len(names)
    return ", ".join(f"{quote(name)}{text}" for name, text in zip(names, rest, strict=True))

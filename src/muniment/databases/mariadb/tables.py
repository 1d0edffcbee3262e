"""Definitions of tables in the server's SQL, from what an archive describes."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field

from muniment.databases.mariadb.connection import Product, quote, quote_names
from muniment.databases.mariadb.loading import NewColumn
from muniment.databases.mariadb.statement import CreateTable
from muniment.databases.mariadb.types import SPATIAL, NativeType, native_type, parse_native
from muniment.sql.model import Column, Database, ForeignKey, Leaf, Schema, Shape, Table, shape_of
from muniment.sql.original import split_original
from muniment.sql.types import Kind, PredefinedType

__all__ = [
    "LONGEST_NAME",
    "NewTable",
    "column_types",
    "foreign_key_sql",
    "orphan_sql",
    "text_literal",
]

LONGEST_NAME = 64  # characters
_ROW_BYTES = 60_000  # of a row; longer text has to lie outside it
_COMMENT = 1024
_ACTIONS = ("CASCADE", "SET NULL", "RESTRICT", "NO ACTION")


@dataclass
class NewTable:
    """A table that is being made: in its own words, or in those of the archive."""

    schema: Schema
    table: Table
    place: str  # its name in the server
    shapes: tuple[Shape, ...]
    types: tuple[str, ...]
    original: CreateTable | None = None
    defaults: Mapping[str, str] = field(default_factory=dict)
    checks: Mapping[str, str] = field(default_factory=dict)
    indexes_made: bool = False

    @property
    def where(self) -> str:
        return f"{self.schema.name}.{self.table.name}"

    def statement(self, product: Product, *, primary: bool = True) -> str:
        """Return the CREATE TABLE: with the primary key, without other keys where they can wait."""
        if self.original is not None:
            return self._original_statement(self.original)
        lines = [
            self._column(column, type_)
            for column, type_ in zip(self.table.columns, self.types, strict=True)
        ]
        if primary and self.table.primary_key:
            lines.append(f"PRIMARY KEY ({quote_names(self.table.primary_key.columns)})")
        lines += [
            f"{constraint_name(name)}CHECK ({condition})" for name, condition in self.checks.items()
        ]
        words, _ = split_original(self.table.description)
        comment = f" COMMENT={text_literal(words)}" if words and len(words) <= 2 * _COMMENT else ""
        options = f"CHARACTER SET utf8mb4 COLLATE {product.exact_collation}{comment}"
        body = ",\n  ".join(lines)
        return f"CREATE TABLE {self.place} (\n  {body}\n) {options}"

    def _original_statement(self, original: CreateTable) -> str:
        columns = []
        for column, type_ in zip(self.table.columns, self.types, strict=True):
            text = original.columns[column.name]
            if type_:  # archived as another thing than it was
                text = f"{quote(column.name)} {type_}"
            columns.append(text)
        self.indexes_made = original.needs_indexes
        keys = [original.primary] if original.primary else []
        keys += original.indexes if self.indexes_made else ()
        body = ",\n  ".join([*columns, *keys, *original.rest])
        return f"CREATE TABLE {self.place} (\n  {body}\n) {original.options}"

    def _column(self, column: Column, type_: str) -> str:
        line = f"{quote(column.name)} {type_}"
        if column.nullable is False:
            line += " NOT NULL"
        if default := self.defaults.get(column.name):
            line += f" DEFAULT ({default})"
        if type_ == "tinyint(1)":
            line += f" CHECK ({quote(column.name)} in (0,1))"
        words = column.description
        if words and len(words) <= _COMMENT:
            line += f" COMMENT {text_literal(words)}"
        return line

    def later(self) -> list[str]:
        """Return the clauses of ALTER TABLE that add the keys which could wait."""
        if self.original is not None:
            return [] if self.indexes_made else [f"ADD {index}" for index in self.original.indexes]
        return [
            f"ADD UNIQUE KEY {quote(key.name[:LONGEST_NAME])} ({quote_names(key.columns)})"
            for key in self.table.candidate_keys
        ]

    def new_columns(
        self, facts: Mapping[str, tuple[str, str | None, str]]
    ) -> tuple[NewColumn, ...]:
        """Return the columns as the server made them, from its type, character set and extras."""
        found = []
        for column, shape in zip(self.table.columns, self.shapes, strict=True):
            type_, charset, extra = facts[column.name]
            computed = re.search(r"(?<!DEFAULT_)GENERATED", extra) is not None
            counts = "auto_increment" in extra
            native = parse_native(type_)
            found.append(NewColumn(column.name, native, shape, charset, computed, counts))
        return tuple(found)


def constraint_name(name: str | None) -> str:
    """The clause that names a constraint; none for a name that is too long."""
    return f"CONSTRAINT {quote(name)} " if name and len(name) <= LONGEST_NAME else ""


def column_types(
    database: Database, schema: Schema, table: Table, product: Product, same: bool
) -> tuple[tuple[str, ...], list[str]]:
    """Return a type for each column, and the columns that became text."""
    types, texts = [], []
    for column in table.columns:
        shape = shape_of(database, schema.name, column)
        type_ = _type(column, shape, product, same)
        types.append(type_)
        becomes_text = type_.startswith(("varchar", "longtext"))
        if becomes_text and not (isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT):
            texts.append(column.name)
    return tuple(_fitting(types)), texts


def _type(column: Column, shape: Shape, product: Product, same: bool) -> str:
    if not isinstance(shape, Leaf):
        return "longtext"
    native = parse_native(column.type_original or "") if same else None
    if native is not None and takes_cells(native, shape.type):
        return str(native)
    return native_type(shape.type, product.scale)


def takes_cells(native: NativeType, archived: PredefinedType) -> bool:
    """Whether a type takes the text of cells: what was archived as X'…' does not go back."""
    octets = native.name in SPATIAL or native.name == "bit" or re.search("binary|blob", native.name)
    if archived.kind is Kind.TEXT and octets:
        return (native.name in SPATIAL and archived.name == "CLOB" and archived.length is None) or (
            native.name == "bit" and archived.name == "CHAR"
        )
    return True


def _fitting(types: list[str]) -> list[str]:
    """Let the longest columns lie outside the row if it would be too long."""

    def size(type_: str) -> int:
        match = re.fullmatch(r"(varchar|varbinary)\((\d+)\)", type_)
        return int(match[2]) * (4 if match[1] == "varchar" else 1) if match else 16

    while sum(map(size, types)) > _ROW_BYTES and max(map(size, types)) > 16:
        longest = max(range(len(types)), key=lambda k: size(types[k]))
        types[longest] = "longtext" if types[longest].startswith("varchar") else "longblob"
    return types


def foreign_key_sql(
    key: ForeignKey, parent: str, original: CreateTable | None, *, named: bool = True
) -> str:
    """Return the clause of ALTER TABLE that adds a foreign key."""
    columns = quote_names([r.column for r in key.references])
    referenced = quote_names([r.referenced for r in key.references])
    actions = "".join(
        f" ON {event} {action}"
        for event, action in (("DELETE", key.delete_action), ("UPDATE", key.update_action))
        if action in _ACTIONS
    )
    if original is not None:  # which tells NO ACTION from nothing
        actions = original.actions.get(key.name, actions)
    head = f"ADD {constraint_name(key.name) if named else ''}FOREIGN KEY ({columns})"
    return f"{head} REFERENCES {parent} ({referenced}){actions}"


def orphan_sql(place: str, key: ForeignKey, parent: str) -> str:
    """Return a query for a row that refers to none."""
    filled = " AND ".join(f"c.{quote(r.column)} IS NOT NULL" for r in key.references)
    same = " AND ".join(f"p.{quote(r.referenced)}=c.{quote(r.column)}" for r in key.references)
    return (
        f"SELECT 1 FROM {place} c WHERE {filled}"
        f" AND NOT EXISTS (SELECT 1 FROM {parent} p WHERE {same}) LIMIT 1"
    )


def text_literal(text: str) -> str:
    """Return text as a literal in a place where the server takes only plain ones."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"

"""An archive in other people's formats: a folder of CSV, JSON lines or Parquet files.

Each table becomes a file, in the order of the archive. Binary large objects become files of their
own in the folder ``lobs``, and the table holds their names.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyarrow as pa

from muniment.databases.duckdb.types import quote
from muniment.errors import MunimentError, UsageError
from muniment.finished import appearing
from muniment.query.formats import write_csv, write_json_lines, write_parquet
from muniment.query.index import IndexTable, Watch
from muniment.query.media import EXTENSIONS
from muniment.query.names import index_catalog, unique_names
from muniment.query.objects import TEXT_LIMIT
from muniment.query.session import Archives, Limits, open_archives

__all__ = ["FORMATS", "Exported", "export_tables", "file_names", "new_folder"]

FORMATS = ("csv", "jsonl", "parquet")
_NAME = "archive"


@dataclass(frozen=True, slots=True)
class Exported:
    """What was written."""

    tables: tuple[tuple[str, str, int, str], ...]  # schema, table, rows, file
    objects: int
    notes: tuple[str, ...]


@contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """Make a folder that appears complete, or not at all."""
    if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
        raise UsageError(f"{folder} exists already and is not an empty folder; name a new one")
    if not folder.absolute().parent.is_dir():
        raise UsageError(f"the folder {folder.parent} does not exist; make it first")
    partial = folder.with_name(f".{folder.name}.{os.getpid()}.partial")
    partial.mkdir()
    try:
        yield partial
        with appearing(folder):
            if folder.exists():
                folder.rmdir()
            partial.rename(folder)
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise


def export_tables(
    path: Path, folder: Path, form: str, *, exact: bool = False, progress: Watch | None = None
) -> Exported:
    """Write every table of an archive into a new folder."""
    if form not in FORMATS:
        raise UsageError(f"{form} is not one of {', '.join(FORMATS)}")
    archives, limits = {_NAME: path}, Limits(seconds=None)
    with new_folder(folder) as place, open_archives(archives, limits, progress) as session:
        tables = session.about[_NAME].tables
        names = file_names([(t.schema, t.name) for t in tables])
        work = _Export(session, place, form, exact)
        written = []
        for number, (table, name) in enumerate(zip(tables, names, strict=True)):
            file = f"{name}.{form}"
            rows = work.table(table, number, name, place / file)
            work.long_texts(table, number, name)
            written.append((table.schema, table.name, rows, file))
        return Exported(tuple(written), work.objects, (*session.notes, *work.notes))


def file_names(names: list[tuple[str, str]]) -> list[str]:
    """File names for tables: SCHEMA.TABLE, with whatever a file system may not like replaced.

    >>> file_names([("main", "guided walk"), ("main", "Tree"), ("main", "tree"), ("..", "a/b")])
    ['main.guided_walk', 'main.Tree', 'main.tree_2', 'x_.a_b']
    """
    plain = []
    for schema, table in names:
        parts = (re.sub(r"[^\w-]", "_", part)[:60] or "x" for part in (schema, table))
        plain.append(re.sub(r"^_", "x", ".".join(parts)))
    return unique_names(plain)


class _Export:
    """The writing of one archive's tables."""

    def __init__(self, session: Archives, folder: Path, form: str, exact: bool) -> None:
        self._session, self._folder, self._form, self._exact = session, folder, form, exact
        self.objects = 0
        self.notes: list[str] = []

    def table(self, table: IndexTable, number: int, name: str, file: Path) -> int:
        """Write a table, and its large objects beside it; return the number of rows."""
        home = f"{quote(index_catalog(_NAME))}.{table.place}"
        columns = ", ".join(
            self._column_sql(table, position) for position in range(1, len(table.columns) + 1)
        )
        result = self._session.ask(f"SELECT {columns or 'rowid'} FROM {home} ORDER BY rowid")
        large = {
            position - 1: self._lob_writer(number, position, name)
            for position, column in enumerate(table.columns, 1)
            if column.large == "binary"
        }
        fields = [
            pa.field(column.name, pa.string() if k in large else result.schema.field(k).type)
            for k, column in enumerate(table.columns)
        ]
        schema = pa.schema(fields)
        batches = (_with_files(batch, large, schema) for batch in result.batches)
        with file.open("xb") as stream:
            return self._write(schema, batches, stream)

    def long_texts(self, table: IndexTable, number: int, name: str) -> None:
        """Write those texts as files of which the index has the start only."""
        home = f"{quote(index_catalog(_NAME))}.{table.place}"
        for position, column in enumerate(table.columns, 1):
            if column.large != "text":
                continue
            long = f"c{position}_ref IS NOT NULL AND strlen(c{position}) > {TEXT_LIMIT}"
            for (row,) in self._session.rows(f"SELECT rowid + 1 FROM {home} WHERE {long}"):
                file = self._lob_writer(number, position, name)(f"{row} text/plain")
                self.notes.append(f"{name}.{column.name}, row {row}: the whole text is in {file}")

    def _write(self, schema: pa.Schema, batches: Iterator[Any], stream: Any) -> int:
        if self._form == "csv":
            return write_csv(schema, batches, stream, self._exact)
        if self._form == "jsonl":
            return write_json_lines(batches, stream)
        return write_parquet(schema, batches, stream)

    @staticmethod
    def _column_sql(table: IndexTable, position: int) -> str:
        if table.columns[position - 1].large != "binary":
            return f"c{position}"
        cell = f"c{position}"
        there = f"{cell} IS NOT NULL OR {cell}_ref IS NOT NULL"
        return f"CASE WHEN {there} THEN (rowid + 1) || ' ' || coalesce({cell}_type, '') END"

    def _lob_writer(self, table: int, position: int, name: str) -> Callable[[str | None], Any]:
        def write(found: str | None) -> str | None:
            if found is None:
                return None
            row, _, media = found.partition(" ")
            file = f"lobs/{name}/{row}-{position}.{EXTENSIONS.get(media, 'bin')}"
            target = self._folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            try:
                key = f"{_NAME}/{table}/{position}/{row}"
                with self._session.open_content(key) as source, target.open("xb") as stream:
                    shutil.copyfileobj(source, stream, 1 << 20)
            except MunimentError as error:
                target.unlink(missing_ok=True)
                self.notes.append(f"{name}, row {row}: {error}")
                return None
            self.objects += 1
            return file

        return write


def _with_files(
    batch: pa.RecordBatch, large: dict[int, Callable[[str | None], Any]], schema: pa.Schema
) -> pa.RecordBatch:
    columns = [
        pa.array([large[k](value) for value in column.to_pylist()], pa.string())
        if k in large
        else column
        for k, column in enumerate(batch.columns[: len(schema)])
    ]
    return pa.record_batch(columns, schema=schema)

"""The laws of a source. A product's test class inherits them and supplies a ``source``."""

from __future__ import annotations

import pickle
import re

from contracts import sample
from muniment.sql.batch import CELL, NULL, ROW, cells_of
from muniment.sql.model import Schema, Table
from muniment.sql.stores import Source


def find(source: Source, name: str) -> tuple[Schema, Table]:
    """Return a table and its schema."""
    return next((s, t) for s, t in source.describe().tables() if t.name == name)


class SourceContract:
    """What every Source does; ``source`` is open and holds ``sample.DATABASE``."""

    def test_all_tables_are_described(self, source: Source) -> None:
        names = {table.name for _, table in source.describe().tables()}
        assert names == set(sample.ROWS)

    def test_columns_keep_their_names_order_and_nullability(self, source: Source) -> None:
        for _, expected in sample.DATABASE.tables():
            _, table = find(source, expected.name)
            assert [(c.name, c.nullable) for c in table.columns] == [
                (c.name, c.nullable) for c in expected.columns
            ]

    def test_keys_are_described(self, source: Source) -> None:
        _, people = find(source, "people")
        assert people.primary_key is not None
        assert people.primary_key.columns == ("id",)
        assert [key.columns for key in people.candidate_keys] == [("big",)]
        (foreign,) = people.foreign_keys
        assert (foreign.referenced_schema, foreign.referenced_table) == ("main", "cities")
        assert [(r.column, r.referenced) for r in foreign.references] == [("city id", "id")]

    def test_folders_are_numbered(self, source: Source) -> None:
        database = source.describe()
        folders = [f"{s.folder}/{t.folder}" for s, t in database.tables()]
        assert len(set(folders)) == len(folders)
        assert all(re.fullmatch(r"schema\d+/table\d+", folder) for folder in folders)

    def test_describing_again_gives_the_same(self, source: Source) -> None:
        assert source.describe() == source.describe()

    def test_the_size_is_roughly_known(self, source: Source) -> None:
        assert source.size() > 0

    def test_rows_arrive_unchanged(self, source: Source) -> None:
        for _, expected in sample.DATABASE.tables():
            schema, table = find(source, expected.name)
            found = sample.read(source, schema, table)
            assert sample.values(sample.DATABASE, expected, found) == sample.values(
                sample.DATABASE, expected, sample.ROWS[expected.name]
            )

    def test_rows_keep_their_order_from_one_reading_to_the_next(self, source: Source) -> None:
        schema, table = find(source, "people")
        assert sample.read(source, schema, table) == sample.read(source, schema, table)

    def test_parts_are_the_same_each_time_and_can_be_pickled(self, source: Source) -> None:
        schema, table = find(source, "people")
        parts = list(source.parts(schema, table))
        assert parts == list(source.parts(schema, table))
        assert pickle.loads(pickle.dumps(parts)) == parts

    def test_batches_are_whole_rows_and_count_them(self, source: Source) -> None:
        schema, table = find(source, "people")
        for part in source.parts(schema, table):
            for batch in source.batches(schema, table, part):
                assert batch.data.endswith(ROW)
                assert batch.data.count(ROW) == batch.rows > 0
                assert batch.data.count(CELL) == batch.rows * (len(table.columns) - 1)

    def test_batches_are_bounded(self, source: Source) -> None:
        schema, table = find(source, "people")
        for part in source.parts(schema, table):
            for batch in source.batches(schema, table, part):
                assert len(batch.data) < 1 << 20 or batch.rows == 1

    def test_null_is_not_empty(self, source: Source) -> None:
        schema, table = find(source, "people")
        cells = [
            cell
            for part in source.parts(schema, table)
            for batch in source.batches(schema, table, part)
            for cell in cells_of(batch)
        ]
        width = len(table.columns)
        assert cells[width + 1] == b""
        assert cells[2 * width + 1] == NULL

    def test_an_empty_table_has_no_batches(self, source: Source) -> None:
        schema, table = find(source, "nobody's table")
        assert sample.read(source, schema, table) == []

    def test_two_tables_can_be_read_at_once(self, source: Source) -> None:
        (schema, people), (_, cities) = find(source, "people"), find(source, "cities")
        one = source.batches(schema, people, next(iter(source.parts(schema, people))))
        next(one)
        assert len(sample.read(source, schema, cities)) == 2
        list(one)

    def test_a_worker_opens_the_same(self, source: Source) -> None:
        opener = source.opener()
        if opener is None:
            return
        with pickle.loads(pickle.dumps(opener))() as again:
            assert again.describe() == source.describe()
            for schema, table in source.describe().tables():
                assert list(again.parts(schema, table)) == list(source.parts(schema, table))
                assert sample.read(again, schema, table) == sample.read(source, schema, table)

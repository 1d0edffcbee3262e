"""The laws of a target. A product's test class inherits them and supplies three fixtures."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import pytest

from contracts import sample
from contracts.source_contract import find
from muniment.errors import UsageError
from muniment.sql.batch import Cell, batch_of
from muniment.sql.model import Column, Database, Schema, Table
from muniment.sql.stores import Source, Target
from muniment.sql.types import PredefinedType

OpenTarget = Callable[[], AbstractContextManager[Target]]
Reopen = Callable[[], AbstractContextManager[Source]]


class Stop(Exception):
    """Raised by a test in the middle of the work."""


class TargetContract:
    """What every Target does.

    ``target`` is a function that opens a new target at ``destination``, and ``reopen`` one that
    opens as a source what was written there. ``nested`` says whether it takes arrays and UDTs.
    """

    suffix = ""
    nested = True

    @pytest.fixture
    def destination(self, tmp_path: Path) -> Path:
        return tmp_path / f"copy{self.suffix}"

    @pytest.fixture
    def written(self, target: OpenTarget) -> dict[str, int]:
        with target() as opened:
            return sample.copy(opened, sample.DATABASE, sample.ROWS)

    def test_the_rows_are_counted(self, written: dict[str, int]) -> None:
        assert written == {name: len(rows) for name, rows in sample.ROWS.items()}

    @pytest.mark.usefixtures("written")
    def test_rows_come_back_unchanged(self, reopen: Reopen) -> None:
        with reopen() as source:
            for _, expected in sample.DATABASE.tables():
                schema, table = find(source, expected.name)
                found = sample.read(source, schema, table)
                assert sample.values(sample.DATABASE, expected, found) == sample.values(
                    sample.DATABASE, expected, sample.ROWS[expected.name]
                )

    @pytest.mark.usefixtures("written")
    def test_columns_come_back_with_names_order_and_nullability(self, reopen: Reopen) -> None:
        with reopen() as source:
            for _, expected in sample.DATABASE.tables():
                _, table = find(source, expected.name)
                assert [(c.name, c.nullable) for c in table.columns] == [
                    (c.name, c.nullable) for c in expected.columns
                ]

    @pytest.mark.usefixtures("written")
    def test_keys_come_back(self, reopen: Reopen) -> None:
        with reopen() as source:
            _, people = find(source, "people")
        assert people.primary_key is not None
        assert people.primary_key.columns == ("id",)
        assert [key.columns for key in people.candidate_keys] == [("big",)]
        (foreign,) = people.foreign_keys
        assert (foreign.referenced_schema, foreign.referenced_table) == ("main", "cities")
        assert [(r.column, r.referenced) for r in foreign.references] == [("city id", "id")]

    def test_arrays_and_udts_come_back(self, target: OpenTarget, reopen: Reopen) -> None:
        if not self.nested:
            return
        with target() as opened:
            sample.copy(opened, sample.NESTED, sample.NESTED_ROWS)
        with reopen() as source:
            schema, table = find(source, "shapes")
            assert sample.read(source, schema, table) == sample.NESTED_ROWS["shapes"]

    def test_an_encoder_works_in_another_process(self, target: OpenTarget, reopen: Reopen) -> None:
        with target() as opened:
            opened.define(sample.DATABASE)
            for schema, table in sample.DATABASE.tables():
                encode = pickle.loads(pickle.dumps(opened.encoder(schema, table)))
                piece = encode(sample.batches(sample.ROWS[table.name]))
                assert piece.rows == len(sample.ROWS[table.name])
                pieces = [pickle.loads(pickle.dumps(piece))]
                opened.write(schema, table, pieces, sample.open_lob)
            opened.finish(sample.DATABASE)
        with reopen() as source:
            schema, table = find(source, "people")
            assert len(sample.read(source, schema, table)) == len(sample.ROWS["people"])

    def test_pieces_keep_their_order(self, target: OpenTarget, reopen: Reopen) -> None:
        table = Table("numbers", "table0", (Column("n", PredefinedType("INTEGER"), nullable=True),))
        database = Database("order", schemas=(Schema("main", "schema0", tables=(table,)),))
        with target() as opened:
            opened.define(database)
            encode = opened.encoder(database.schemas[0], table)
            pieces = (
                encode([batch_of([[str(n)] for n in range(start, start + 100)])])
                for start in range(0, 1000, 100)
            )
            count = opened.write(database.schemas[0], table, pieces, sample.open_lob)
            assert count == 1000
            opened.finish(database)
        with reopen() as source:
            schema, table = find(source, "numbers")
            assert sample.read(source, schema, table) == [[str(n)] for n in range(1000)]

    def test_wide_tables_come_back(self, target: OpenTarget, reopen: Reopen) -> None:
        """Functions, statements and rows have limits that 120 columns of text must not meet."""
        kinds = [PredefinedType("CLOB"), PredefinedType("INTEGER")] * 120
        columns = [Column(f"c{n}", kind, nullable=True) for n, kind in enumerate(kinds)]
        table = Table("wide", "table0", tuple(columns))
        database = Database("width", schemas=(Schema("main", "schema0", tables=(table,)),))
        full: list[Cell] = [str(n) for n in range(240)]
        long = [f"{'long ' * 700}{text}" if n % 40 == 0 else text for n, text in enumerate(full)]
        rows: dict[str, list[list[Cell]]] = {"wide": [full, [None] * 240, long]}
        with target() as opened:
            sample.copy(opened, database, rows)
        with reopen() as source:
            schema, found = find(source, "wide")
            assert sample.read(source, schema, found) == rows["wide"]

    def test_nothing_appears_when_the_work_fails(
        self, target: OpenTarget, destination: Path
    ) -> None:
        def interrupted() -> object:
            schema, table = next(iter(sample.DATABASE.tables()))
            yield opened.encoder(schema, table)(sample.batches(sample.ROWS["people"]))
            raise Stop

        with pytest.raises(Stop), target() as opened:
            opened.define(sample.DATABASE)
            schema, table = next(iter(sample.DATABASE.tables()))
            opened.write(schema, table, interrupted(), sample.open_lob)
        assert list(destination.parent.iterdir()) == []

    @pytest.mark.usefixtures("written")
    def test_an_existing_file_is_refused(self, target: OpenTarget, destination: Path) -> None:
        before = destination.read_bytes()
        with pytest.raises(UsageError, match=destination.name), target():
            pass
        assert destination.read_bytes() == before

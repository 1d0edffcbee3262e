"""Databases of very many tables: no table costs more because there are others."""

import sqlite3
import sys
import threading
import zipfile
from contextlib import closing
from multiprocessing.connection import Connection
from pathlib import Path
from weakref import WeakSet

import duckdb
import pytest

from muniment import transfer
from muniment.compare import compare
from muniment.databases import open_source
from muniment.databases.duckdb import connection
from muniment.databases.sqlite_fitting import Fitter
from muniment.siard import scan, validate
from muniment.siard.rules import keystore
from muniment.workers import start_workers

FEW, MORE, MANY = 20, 40, 80
UNBROKEN = ("UPDATE t3 SET parent = NULL", "SELECT 1")


def database_of(tables, path):
    """Make a database of small tables with keys, indexes, triggers, checks and views."""
    with closing(sqlite3.connect(path)) as db, db:
        for n in range(tables):
            db.execute(
                f"CREATE TABLE t{n} (id INTEGER PRIMARY KEY, name VARCHAR(20) NOT NULL, "
                f"parent INTEGER REFERENCES t{max(n - 1, 0)}, size INT CHECK (size > 0))"
            )
            db.execute(f"CREATE UNIQUE INDEX i{n} ON t{n} (name)")
            db.execute(
                f"CREATE TRIGGER g{n} AFTER INSERT ON t{n} BEGIN UPDATE t{n} SET size = 1; END"
            )
            db.execute(f"CREATE VIEW v{n} AS SELECT name FROM t{n}")
            db.executemany(
                f"INSERT INTO t{n} VALUES (?, ?, 1, 1)", [(r, f"row {r}") for r in range(3)]
            )
    return path


def steps(work):
    """Return how many calls of functions some work comes to, in all threads."""
    count = 0

    def note(_frame, event, _argument):
        nonlocal count
        count += event in ("call", "c_call")

    threading.setprofile(note)
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
        threading.setprofile(None)
    return count


def archive(folder):
    transfer.archive(f"sqlite:///{folder}/a.db", folder / "a.siard")


def validated(folder):
    validation = validate(folder / "a.siard")
    assert not [f for f in validation if f.rule != "M_5.1-1"]


def compared(folder):
    assert compare(f"sqlite:///{folder}/a.db", str(folder / "a.siard")).equal


def restore(folder):
    transfer.restore(folder / "a.siard", f"sqlite:///{folder}/b.db")


@pytest.fixture(scope="module")
def counted(tmp_path_factory):
    """The steps of each work, by its name, for few, for more and for many tables."""
    found = {}
    for tables in (2, FEW, MORE, MANY):  # the first one loads what has to be loaded
        folder = Path(tmp_path_factory.mktemp(f"of_{tables}"))
        database_of(tables, folder / "a.db")
        for work in (archive, validated, compared, restore):
            found[work.__name__, tables] = steps(lambda work=work, folder=folder: work(folder))
    return found


@pytest.mark.parametrize("work", ["archive", "validated", "compared", "restore"])
def test_twice_as_many_tables_are_twice_the_work(counted, work):
    few, more, many = (counted[work, tables] for tables in (FEW, MORE, MANY))
    assert (many - more) / (MANY - MORE) < 1.1 * (more - few) / (MORE - FEW)


def test_tasks_for_other_processes_bring_their_schema_once(tmp_path, monkeypatch):
    database_of(12, tmp_path / "a.db")
    sent = []

    def noted(self, what):
        sent.append(what)
        send(self, what)

    send = Connection.send
    monkeypatch.setattr(Connection, "send", noted)
    with (
        open_source(f"sqlite:///{tmp_path}/a.db") as source,
        start_workers(source, 2, lambda: True) as workers,
    ):
        tables = [*source.describe().tables()]
        keep = Fitter((None,) * len(tables[0][1].columns), ())
        tasks = [(s, t, part, keep) for s, t in tables for part in source.parts(s, t)]
        assert [piece.rows for piece in workers.run(tasks)] == [3] * 12
    assert [task[0] for task in sent if task[0]] == [tables[0][0]] * 2  # one for each process


def test_what_was_compiled_for_one_table_does_not_wait_for_the_end(tmp_path, monkeypatch):
    alive, most = WeakSet(), 0
    compiled = scan.RowChecker

    def noted(*arguments):
        nonlocal most
        checker = compiled(*arguments)
        alive.add(checker)
        most = max(most, len(alive))
        return checker

    monkeypatch.setattr(scan, "RowChecker", noted)
    database_of(12, tmp_path / "a.db")
    archive(tmp_path)
    validated(tmp_path)
    assert 1 <= most <= 2  # the next one is made before the last one goes


def test_keys_of_small_tables_start_no_database(tmp_path, monkeypatch):
    database_of(12, tmp_path / "a.db")
    archive(tmp_path)
    monkeypatch.setattr("duckdb.connect", None)
    validated(tmp_path)


@pytest.mark.parametrize(
    "broken",
    [
        "UPDATE t1 SET parent = 7 WHERE id = 1",
        "DROP INDEX i2; UPDATE t2 SET name = 'row 0'",
        "UPDATE t3 SET parent = NULL",
        "DELETE FROM t0",
        "SELECT 1",
    ],
)
def test_small_and_large_tables_are_judged_alike(tmp_path, monkeypatch, broken):
    database_of(5, tmp_path / "a.db")
    archive(tmp_path)  # its definitions, with the rows of a database that breaks them
    with closing(sqlite3.connect(tmp_path / "a.db")) as db:
        db.executescript(broken)
    exchange_rows(tmp_path)
    small = validate(tmp_path / "b.siard").finish().findings
    monkeypatch.setattr(keystore, "_SMALL", 0)
    assert validate(tmp_path / "b.siard").finish().findings == small
    assert any(f.rule == "T_6.0-1" for f in small) == (broken not in UNBROKEN)


def exchange_rows(folder):
    """Put the rows of the database, as it is now, into a copy of the archive."""
    transfer.archive(f"sqlite:///{folder}/a.db", folder / "now.siard")
    with (
        zipfile.ZipFile(folder / "a.siard") as old,
        zipfile.ZipFile(folder / "now.siard") as now,
        zipfile.ZipFile(folder / "b.siard", "w") as new,
    ):
        for entry in old.infolist():
            rows = entry.filename.endswith(".xml") and entry.filename.startswith("content/")
            new.writestr(entry, (now if rows else old).read(entry.filename))


def test_duckdb_is_asked_little_about_each_small_table(tmp_path, monkeypatch):
    with closing(duckdb.connect(tmp_path / "a.duckdb")) as db:
        for n in range(20):
            db.execute(f"CREATE TABLE t{n} AS SELECT range AS id, 'text' AS name FROM range(9)")
    asked = []

    def noted(*arguments):
        asked.append(arguments[1])
        return ask(*arguments)

    ask = connection.asked
    with open_source(f"duckdb:///{tmp_path}/a.duckdb") as source:
        tables = [*source.describe().tables()]
        monkeypatch.setattr(connection, "asked", noted)
        batches = [
            b for s, t in tables for p in source.parts(s, t) for b in source.batches(s, t, p)
        ]
    assert sum(batch.rows for batch in batches) == 20 * 9
    assert len(asked) <= 20 + 1  # for the last row of each, and once for the list of all

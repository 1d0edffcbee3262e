"""The shop in a private MariaDB server, against the yardsticks that come with MariaDB."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb

from data import TABLES, Shop
from measure import Command, muniment, shell

sys.path.append(str(Path(__file__).resolve().parents[1] / "tests"))

from servers.mariadb import MariadbServer, private_mariadb, program

__all__ = ["ARCHIVE", "COMPARE", "DUMP", "LOAD", "RESTORE", "MariadbShop", "running_shop"]

DUMP, LOAD = "mariadb-dump | gzip -1", "LOAD DATA"
ARCHIVE, COMPARE, RESTORE = "archive mariadb", "compare mariadb", "restore mariadb"
_TABLES = ("customer", "product", "sale")


class MariadbShop:
    """The shop in a running server, and the commands to measure on it."""

    def __init__(self, server: MariadbServer, database: str, work: Path) -> None:
        self._server, self._database, self._work = server, database, work
        self.archive = work / "shop.siard"
        self.restored = server.url(f"{database}_restored")

    def leaving(self) -> list[Command]:
        """Out of MariaDB: the dump, the archive, and the comparison of archive and database."""
        url, dump = self._server.url(self._database), self._work / "shop.sql.gz"
        line = self._program("mariadb-dump", "--single-transaction", self._database)
        return [
            shell(DUMP, f"{line} | gzip -1 > {shlex.quote(str(dump))}", dump),
            muniment(ARCHIVE, "archive", url, str(self.archive), makes=self.archive),
            muniment(COMPARE, "compare", url, str(self.archive)),
        ]

    def returning(self) -> list[Command]:
        """Back into MariaDB, each time into a new database, with the same keys."""
        loaded, restored = f"{self._database}_loaded", f"{self._database}_restored"
        restore = muniment(RESTORE, "restore", str(self.archive), self.restored).arguments
        loads = "; ".join(
            f"LOAD DATA LOCAL INFILE '{self._work / table}.tsv' INTO TABLE {table}"
            for table in _TABLES
        )
        load = self._client(f"CREATE DATABASE {loaded}; USE {loaded}; {tables()}; {loads}")
        return [
            self._fresh(LOAD, loaded, load),
            self._fresh(RESTORE, restored, shlex.join(restore)),
        ]

    def _fresh(self, name: str, database: str, line: str) -> Command:
        drop = self._client(f"DROP DATABASE IF EXISTS {database}")
        return Command(name, ["bash", "-c", f"{drop} && {line}"])

    def _client(self, sql: str) -> str:
        return self._program("mariadb", "--local-infile=1", "-e", sql)

    def _program(self, name: str, *words: str) -> str:
        place = ["--no-defaults", "-uroot", f"--socket={self._server.socket}"]
        return shlex.join([str(program(name)), *place, *words])


def tables() -> str:
    """The shop's tables in MariaDB's words."""
    sql = TABLES.strip().rstrip(";").replace(" REAL", " DOUBLE")
    for parent in ("customer", "product"):
        reference = f"{parent} INTEGER NOT NULL REFERENCES {parent} (id)"
        assert reference in sql, "the bench expects both foreign keys in TABLES"
    return sql


@contextmanager
def running_shop(shop: Shop, work: Path) -> Iterator[MariadbShop]:
    """Start a server that holds a shop; the files of its rows stay beside it."""
    folder = work / f"mariadb-{shop.rows}"
    folder.mkdir()
    for above in (folder, work):  # the server's client runs as another user
        above.chmod(0o755)
    with private_mariadb(innodb_buffer_pool_size="256M") as server:
        database = server.new_database()
        server.run(*tables().split(";"), database=database)
        with duckdb.connect(str(shop.duckdb), read_only=True) as origin:
            for table in _TABLES:
                _fill(server, database, origin, table, folder / f"{table}.tsv")
        yield MariadbShop(server, database, folder)


def _fill(
    server: MariadbServer, database: str, origin: duckdb.DuckDBPyConnection, table: str, file: Path
) -> None:
    described = origin.execute(f"DESCRIBE {table}").fetchall()
    line = ", ".join(_text(name, kind) for name, kind, *_ in described)
    found = origin.execute(f"SELECT concat_ws(chr(9), {line}) FROM {table} ORDER BY id")
    with file.open("w", encoding="utf-8") as stream:
        while rows := found.fetchmany(20_000):
            stream.writelines(f"{text}\n" for (text,) in rows)
    server.script(
        f"LOAD DATA LOCAL INFILE '{file}' INTO TABLE {table}; ANALYZE TABLE {table}", database
    )


def _text(name: str, kind: str) -> str:
    """SQL for a value as LOAD DATA reads it."""
    value = f"CAST({name} AS TINYINT)" if kind == "BOOLEAN" else name
    text = f"CAST({value} AS VARCHAR)"
    return f"coalesce(replace({text}, '\\', '\\\\'), '\\N')"

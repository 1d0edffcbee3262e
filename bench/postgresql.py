"""The shop in a private PostgreSQL server, against the yardsticks that come with PostgreSQL."""

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

from servers.postgresql import Cluster, private_postgresql, program

__all__ = [
    "ARCHIVE", "COMPARE", "DUMP", "LOAD", "QUICK_DUMP", "RESTORE", "STRONG", "PostgresqlShop",
    "running_shop",
]  # fmt: skip

DUMP, QUICK_DUMP, LOAD = "pg_dump -Fc", "pg_dump -Fc -Z1", "pg_restore"
ARCHIVE, STRONG = "archive postgresql", "archive postgresql --compression strong"
COMPARE, RESTORE = "compare postgresql", "restore postgresql"
_TABLES = ("customer", "product", "sale")


class PostgresqlShop:
    """The shop in a running server, and the commands to measure on it."""

    def __init__(self, cluster: Cluster, database: str, work: Path) -> None:
        self._cluster, self._database, self._work = cluster, database, work
        self._dump, self.archive = work / "shop.dump", work / "shop.siard"

    def leaving(self) -> list[Command]:
        """Out of PostgreSQL: dumps, archives, and the comparison of archive and database."""
        url, strong = self._cluster.url(self._database), self._work / "strong.siard"
        quick = self._work / "quick.dump"
        return [
            shell(DUMP, self._program("pg_dump", "-Fc", "-f", self._dump), self._dump),
            shell(QUICK_DUMP, self._program("pg_dump", "-Fc", "-Z1", "-f", quick), quick),
            muniment(ARCHIVE, "archive", url, str(self.archive), makes=self.archive),
            muniment(STRONG, "archive", url, str(strong), "--compression", "strong", makes=strong),
            muniment(COMPARE, "compare", url, str(self.archive)),
        ]

    def returning(self) -> list[Command]:
        """Back into PostgreSQL, each time into a new database."""
        loaded, restored = f"{self._database}_loaded", f"{self._database}_restored"
        self.restored = self._cluster.url(restored)
        restore = muniment(RESTORE, "restore", str(self.archive), self.restored).arguments
        return [
            self._fresh(LOAD, loaded, self._program("pg_restore", self._dump, database=loaded)),
            self._fresh(RESTORE, restored, shlex.join(restore)),
        ]

    def _fresh(self, name: str, database: str, line: str) -> Command:
        """A command that begins with an empty database; making it takes as long for each."""
        drop = self._program("dropdb", "--if-exists", "--force", database, database="")
        create = self._program("createdb", database, database="")
        return Command(name, ["bash", "-c", f"{drop} && {create} && {line}"])

    def _program(self, name: str, *words: str | Path, database: str | None = None) -> str:
        place = ["-h", str(self._cluster.folder), "-p", str(self._cluster.port), "-U", "postgres"]
        wanted = self._database if database is None else database
        named = ["-d", wanted] if wanted else []
        return shlex.join([str(program(name)), *place, *named, *map(str, words)])


@contextmanager
def running_shop(shop: Shop, work: Path) -> Iterator[PostgresqlShop]:
    """Start a server that holds a shop."""
    folder = work / f"postgresql-{shop.rows}"
    folder.mkdir()
    with private_postgresql(shared_buffers="256MB") as cluster:
        database = cluster.new_database()
        tables = TABLES.replace("DATETIME", "TIMESTAMP").replace(" REAL", " DOUBLE PRECISION")
        cluster.psql(database, tables)
        _fill(cluster, database, shop, folder)
        yield PostgresqlShop(cluster, database, folder)


def _fill(cluster: Cluster, database: str, shop: Shop, folder: Path) -> None:
    with duckdb.connect(str(shop.duckdb), read_only=True) as origin:
        for table in _TABLES:
            file = folder / f"{table}.csv"
            options = "(HEADER false, NULLSTR '\\N', FORCE_QUOTE *)"
            origin.execute(f"COPY (SELECT * FROM {table} ORDER BY id) TO '{file}' {options}")
            file.chmod(0o644)
            for above in (folder, folder.parent):
                above.chmod(0o755)
            load = rf"\copy {table} FROM '{file}' WITH (FORMAT csv, NULL '\N')"
            cluster.psql(database, f"{load}\nANALYZE {table};\n")
            file.unlink()

"""What all tests share."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import apsw
import pytest
from hypothesis import settings

from servers.mariadb import MariadbServer, private_mariadb
from servers.postgresql import Cluster, private_postgresql

# One commit gives one answer, here and in continuous integration; `make fuzz` looks further.
settings.register_profile("steady", derandomize=True, deadline=None)
settings.register_profile("fuzz", print_blob=True, deadline=None)
settings.load_profile("fuzz" if os.environ.get("MUNIMENT_FUZZ") else "steady")

SAMPLES = Path(__file__).resolve().parents[2] / "shared" / "samples"


@pytest.fixture(scope="session")
def samples() -> Path:
    """Real archives and databases of other makers; tests that need them carry the mark."""
    if not SAMPLES.is_dir():
        pytest.skip("the corpora of real archives are not beside the project")
    return SAMPLES


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of three megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(folder)]
    if os.getuid() or subprocess.run(command, capture_output=True).returncode:
        pytest.skip("only root can mount a small file system")
    try:
        yield folder
    finally:
        subprocess.run(["umount", str(folder)], check=True)


@pytest.fixture(scope="session")
def postgresql() -> Iterator[Cluster]:
    """A private PostgreSQL server; each process that runs tests has its own."""
    with private_postgresql() as cluster:
        yield cluster


@pytest.fixture(autouse=True, scope="session")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Indexes of the tests lie in a folder of their own."""
    folder = tmp_path_factory.mktemp("cache")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("MUNIMENT_CACHE", str(folder))
        yield folder


@pytest.fixture(scope="session")
def mariadb() -> Iterator[MariadbServer]:
    """A private MariaDB server; each process that runs tests has its own."""
    with private_mariadb() as server:
        yield server


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A small SQLite database with keys, a view, a trigger, large objects and awkward text."""
    path = tmp_path / "shop.db"
    db = apsw.Connection(str(path))
    db.execute(SHOP)
    db.executemany(
        "INSERT INTO item VALUES (?,?,?,?,?,?,?,?)",
        [
            (
                1,
                "SKU-1",
                " two  spaces\t\r\n\\u0041 ",
                1.5,
                1,
                "2024-02-29",
                "2024-02-29 23:59:59.5",
                None,
            ),
            (2, "SKU-2", "", -0.1, 0, None, None, b""),
            (
                3,
                "SKU-3",
                "Ünïcødé 字 \U0001f600 <&>\"'",
                1e300,
                None,
                "0001-01-01",
                "9999-12-31 00:00:00",
                b"\x00\xff" * 5000,
            ),
            (
                4,
                "SKU-4",
                "long " * 2000,
                5e-324,
                1,
                "1999-12-31",
                "1970-01-01 00:00:00",
                b"\x89PNG",
            ),
        ],
    )
    db.executemany(
        "INSERT INTO sale VALUES (?,?,?)", [(n, 1 + n % 4, f"{n}.50") for n in range(1, 50)]
    )
    db.close()
    return path


SHOP = """
CREATE TABLE item (
    id INTEGER PRIMARY KEY, sku VARCHAR(10) NOT NULL UNIQUE, name TEXT, weight REAL,
    sold BOOLEAN, made DATE, changed DATETIME, photo BLOB,
    CONSTRAINT positive CHECK (id > 0)
);
CREATE TABLE sale (
    number INT NOT NULL, item INTEGER REFERENCES item (id) ON DELETE CASCADE, price DECIMAL(8,2),
    PRIMARY KEY (number)
) WITHOUT ROWID;
CREATE INDEX sale_item ON sale (item);
CREATE VIEW dear AS SELECT number, price FROM sale WHERE price > 20;
CREATE TRIGGER no_delete BEFORE DELETE ON item WHEN old.sold BEGIN SELECT raise(ABORT, 'sold'); END;
"""

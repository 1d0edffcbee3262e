"""The databases that the benchmark works on: a web shop, made by DuckDB and copied to SQLite.

Every value comes from DuckDB's ``hash`` of its row and column, so the same version of DuckDB makes
the same rows each time. A finished pair of files is kept and found again by the next run.
"""

from __future__ import annotations

import hashlib
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

import apsw
import duckdb

__all__ = ["Shop", "make_shop"]


@dataclass(frozen=True, slots=True)
class Shop:
    """The same shop in two products; ``rows`` are those of its large table, ``sale``."""

    rows: int
    sqlite: Path
    duckdb: Path


def make_shop(folder: Path, rows: int) -> Shop:
    """Return the shop with so many sales, made under ``folder`` unless it is there already."""
    recipe = hashlib.sha256("".join([TABLES, MACROS, *FILL.values()]).encode()).hexdigest()
    home = folder / f"{rows}-{recipe[:8]}"
    shop = Shop(rows, home / "shop.db", home / "shop.duckdb")
    if not home.exists():
        partial = home.with_name(f"{home.name}.partial")
        shutil.rmtree(partial, ignore_errors=True)
        partial.mkdir(parents=True)
        _fill_duckdb(partial / shop.duckdb.name, rows)
        _fill_sqlite(partial / shop.sqlite.name, partial / shop.duckdb.name)
        partial.rename(home)
    return shop


PRODUCTS = 1000
CUSTOMER_SHARE = 50  # sales per customer

# Both products read this; only REAL means less to DuckDB than to SQLite.
TABLES = """
CREATE TABLE customer (
    id INTEGER PRIMARY KEY, name VARCHAR(60) NOT NULL, city VARCHAR(40), joined DATE NOT NULL,
    credit DECIMAL(12,2), active BOOLEAN NOT NULL
);
CREATE TABLE product (
    id INTEGER PRIMARY KEY, name VARCHAR(60) NOT NULL, price DECIMAL(12,2) NOT NULL, weight REAL
);
CREATE TABLE sale (
    id INTEGER PRIMARY KEY,
    customer INTEGER NOT NULL REFERENCES customer (id),
    product INTEGER NOT NULL REFERENCES product (id),
    line INTEGER NOT NULL,
    quantity INTEGER NOT NULL,
    price DECIMAL(12,2) NOT NULL,
    discount DECIMAL(12,2),
    weight REAL,
    paid BOOLEAN NOT NULL,
    status VARCHAR(10) NOT NULL,
    channel VARCHAR(10),
    ordered DATE NOT NULL,
    shipped DATE,
    changed DATETIME NOT NULL,
    code VARCHAR(10) NOT NULL,
    remark VARCHAR(60)
);
"""

VOCABULARY = (
    "able amber apple arrow autumn basket beacon birch bottle brass bridge bright bronze butter "
    "candle canvas carpet castle cedar cherry circle clever cloud copper corner cotton cousin "
    "crystal dapple delta dinner double dozen dragon early eleven ember fabric falcon family "
    "feather fennel finger flower forest garden gentle ginger golden granite green hammer harbour "
    "hazel heavy honest iron island ivory jacket juniper kettle kitchen ladder lantern lemon "
    "letter linen little maple marble market meadow mirror modern morning narrow nettle nimble "
    "oaken ocean olive orange orchard oyster paper parcel pepper pewter pillow plain pocket proper "
    "purple quiet rabbit ribbon river"
)

WORDS = VOCABULARY.split()

AWKWARD = [
    "R & D <urgent> order",
    'the "blue" one',
    "it's the customer's",
    "C:\\temp\\new",
    "two  spaces  inside",
    "first line\nsecond line",
    "Größe Ångström naïve",
    "日本語 and Ελλάδα",
    "emoji 😀 here",
]


def _sql_list(texts: list[str]) -> str:
    quoted = ", ".join("'" + text.replace("'", "''") + "'" for text in texts)
    return f"[{quoted}]"


MACROS = f"""
CREATE TEMP MACRO draw(i, k, n) AS (hash(i, k) % n)::INTEGER;
CREATE TEMP MACRO word(i, k) AS ({_sql_list(WORDS)})[1 + draw(i, k, {len(WORDS)})];
CREATE TEMP MACRO plain(i, k) AS
    word(i, k) || ' ' || word(i, k + 1) || ' ' || word(i, k + 2) || ' ' || word(i, k + 3)
    || CASE WHEN draw(i, k, 2) = 0 THEN ' ' || word(i, k + 4) ELSE '' END;
CREATE TEMP MACRO sentence(i, k) AS
    CASE WHEN draw(i, k + 5, 100) < 3
        THEN ({_sql_list(AWKWARD)})[1 + draw(i, k + 6, {len(AWKWARD)})] || ' ' || word(i, k)
        ELSE plain(i, k)
    END;
CREATE TEMP MACRO weight(i, k) AS
    CASE WHEN draw(i, k, 10) = 0 THEN sqrt(draw(i, k, 10000)) ELSE draw(i, k, 100000) / 1000 END;
CREATE TEMP MACRO percent(i, k, n, x) AS CASE WHEN draw(i, k, 100) >= n THEN x END;
"""

FILL = {
    "customer": """
        SELECT i::INTEGER, word(i, 1) || ' ' || word(i, 2),
            percent(i, 3, 3, word(i, 4) || ' upon ' || word(i, 5)),
            DATE '2001-01-01' + draw(i, 6, 7000), percent(i, 7, 2, draw(i, 8, 900000) / 100.0),
            draw(i, 9, 10) > 0
        FROM range(1, $customers + 1) AS r (i)""",
    "product": """
        SELECT i::INTEGER, sentence(i, 10), draw(i, 18, 50000) / 100.0, weight(i, 19)
        FROM range(1, $products + 1) AS r (i)""",
    "sale": """
        SELECT i::INTEGER, 1 + draw(i, 20, $customers), 1 + draw(i, 21, $products),
            1 + draw(i, 22, 7), 1 + draw(i, 23, 50), draw(i, 24, 1000000) / 100.0,
            percent(i, 25, 3, draw(i, 26, 11) / 100.0), percent(i, 27, 2, weight(i, 28)),
            draw(i, 29, 5) > 0,
            (['new', 'packed', 'shipped', 'returned', 'cancelled'])[1 + draw(i, 30, 5)],
            percent(i, 31, 2, (['web', 'shop', 'phone'])[1 + draw(i, 32, 3)]),
            DATE '2012-01-01' + draw(i, 33, 4000),
            percent(i, 34, 3, DATE '2012-01-03' + draw(i, 33, 4000)),
            TIMESTAMP '2012-01-01 00:00:00' + to_seconds(draw(i, 35, 345600000)),
            printf('%07X', draw(i, 36, 268435456)), percent(i, 37, 2, sentence(i, 38))
        FROM range(1, $sales + 1) AS r (i)""",
}


def _fill_duckdb(path: Path, rows: int) -> None:
    numbers = {"customers": max(rows // CUSTOMER_SHARE, 1), "products": PRODUCTS, "sales": rows}
    with duckdb.connect(str(path)) as db:
        db.execute(TABLES.replace("REAL", "DOUBLE"))
        db.execute(MACROS)
        for table, query in FILL.items():
            for name, number in numbers.items():
                query = query.replace(f"${name}", str(number))
            db.execute(f"INSERT INTO {table} {query}")


def _fill_sqlite(path: Path, source: Path) -> None:
    db = apsw.Connection(str(path))
    with duckdb.connect(str(source), read_only=True) as origin:
        db.execute("PRAGMA journal_mode = off; PRAGMA synchronous = off")
        db.execute(TABLES)
        with db:
            for table in FILL:
                rows = _values(origin, table)
                first = next(rows)
                marks = ",".join("?" * len(first))
                db.executemany(f"INSERT INTO {table} VALUES ({marks})", chain((first,), rows))
    db.execute("PRAGMA journal_mode = delete")
    db.close()


def _values(origin: duckdb.DuckDBPyConnection, table: str) -> Iterator[tuple[object, ...]]:
    """Yield the rows of a table as SQLite keeps such values: numbers and text."""
    columns = origin.execute(f"DESCRIBE {table}").fetchall()
    cast = ", ".join(f"{name}::{_stored(kind)}" for name, kind, *_ in columns)
    found = origin.execute(f"SELECT {cast} FROM {table} ORDER BY id")
    while rows := found.fetchmany(50_000):
        yield from rows


def _stored(kind: str) -> str:
    if kind.startswith("DECIMAL"):
        return "DOUBLE"
    return {"INTEGER": "INTEGER", "DOUBLE": "DOUBLE", "BOOLEAN": "TINYINT"}.get(kind, "VARCHAR")

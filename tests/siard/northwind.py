"""The table Categories of Northwind, as Appendix E and the E-ARK recommendation have it."""

from __future__ import annotations

import random
from pathlib import Path

import apsw

__all__ = ["SIZES", "make_northwind", "pictures"]

TABLES = (
    "Orders", "Products", "Categories", "Shippers", "Employees", "Territories",
    "CustomerDemographics", "CustomerCustomerDemo", "Suppliers", "EmployeeTerritories", "Customers",
    "Sysdiagrams", "Region",
)  # fmt: skip
SIZES = (10151, 12107, 12007, 9756, 12131, 11280, 12338, 12069)


def pictures(sizes: tuple[int, ...] = SIZES) -> list[bytes]:
    """Bytes that look like no format at all."""
    return [b"\x01\x02\x03\x04" + random.Random(size).randbytes(size - 4) for size in sizes]


def make_northwind(path: Path, sizes: tuple[int, ...] = SIZES) -> str:
    """Make the database and return its URL."""
    db = apsw.Connection(str(path))
    for table in TABLES:
        if table == "Categories":
            db.execute(
                "CREATE TABLE Categories (CategoryID INTEGER PRIMARY KEY, CategoryName VARCHAR(15),"
                " Description VARCHAR(100), Picture BLOB)"
            )
        else:
            db.execute(f"CREATE TABLE {table} (id INTEGER PRIMARY KEY)")
    rows = [(n, f"Category {n}", "", data) for n, data in enumerate(pictures(sizes), 1)]
    db.executemany("INSERT INTO Categories VALUES (?,?,?,?)", rows)
    db.close()
    return f"sqlite:///{path}"

"""Builds the tree register: sample.sql, and what is grown from it the same way each time."""

from __future__ import annotations

import sqlite3
import struct
import zlib
from collections.abc import Iterator
from contextlib import closing
from datetime import date, timedelta
from importlib.resources import files
from pathlib import Path
from random import Random
from typing import TypeVar

__all__ = ["build_sample", "sample_config"]

T = TypeVar("T")

_TREES = 1200
_STREETS = 36
_SPECIES = 28
_PHOTOS = 24
_ORDERS = 2400
_PERMITS = 60
_FIRST_INSPECTION = 1968
_KINDS = ("pruning", "watering", "pruning", "bracing", "felling")
_PRICES = ("1.10", "0.90", "12.00", "48.50", "110.00", "0.05", "7.25")
_NOTES = (
    None,
    None,
    None,
    "",
    "leans towards the water",
    'swing on the lowest branch; "please leave it", say the neighbours\' children',
    "mistletoe in the crown",
    "Höhlung in 4 m Höhe, bewohnt (Waldkauz)",
    "花見の名所",
    "roots lift the pavement:\nsee work orders",
)
_REMARKS = (None, None, "", "no change", "dead wood removed", "fungus at the base", "prüfen!")


def build_sample(path: Path) -> None:
    """Build the sample as a new SQLite database; its contents are the same each time."""
    if path.exists():
        raise FileExistsError(17, "exists already", str(path))
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute("PRAGMA foreign_keys = ON")
        connection.executescript(_resource("sample.sql"))
        for table, rows in _grown(_Chance(1887)):
            for row in rows:
                marks = ", ".join("?" * len(row))
                connection.execute(f'INSERT INTO "{table}" VALUES ({marks})', row)
        # Done only now, so that the trigger writes its events.
        connection.execute(
            "UPDATE work_order SET done_on = date(ordered_on, '+' || (id % 40 + 3) || ' days')"
            " WHERE id % 4 <> 0"
        )
        connection.executemany("INSERT INTO report VALUES (?, ?, ?, ?)", _reports(connection))


def sample_config() -> str:
    """Return a configuration file for archiving the sample, with its descriptions."""
    return _resource("trees.yaml")


def _resource(name: str) -> str:
    return (files("muniment.demo") / name).read_text(encoding="utf-8")


class _Chance:
    """Chance that is the same on every Python: of ``Random``, only ``random()`` is promised."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def share(self) -> float:
        return self._random()

    def below(self, limit: int) -> int:
        return int(self._random() * limit)

    def one_of(self, choices: tuple[T, ...]) -> T:
        return choices[self.below(len(choices))]

    def happens(self, probability: float) -> bool:
        return self._random() < probability

    def day(self, first: date, last: date) -> date:
        return first + timedelta(days=self.below((last - first).days + 1))


Row = tuple[object, ...]


def _grown(chance: _Chance) -> Iterator[tuple[str, Iterator[Row]]]:
    yield "tree", _trees(chance)
    yield "seedling", _seedlings(chance)
    yield "inspection", _inspections(chance)
    yield "work_order", _work_orders(chance)
    yield "photo", _photos(chance)
    yield "guided walk", _walks(chance)
    yield "permit", _permits(chance)


def _trees(chance: _Chance) -> Iterator[Row]:
    for number in range(1, _TREES + 1):
        planted = None if chance.happens(0.06) else chance.day(date(1887, 4, 1), date(2024, 11, 30))
        felled = None
        if planted and planted.year < 2005 and chance.happens(0.08):
            felled = chance.day(date(2006, 1, 10), date(2025, 2, 28)).isoformat()
        age = 2025 - (planted.year if planted else 1870)
        yield (
            number,
            9_007_199_254_740_992 + number * 97,
            chance.below(_SPECIES) + 1,
            chance.below(_STREETS) + 1,
            _house_number(chance),
            round(54.31 + chance.share() * 0.06, 6),
            round(10.08 + chance.share() * 0.11, 6),
            planted.isoformat() if planted else None,
            felled,
            None if chance.happens(0.03) else round(2 + min(age, 80) * 0.3 * chance.share(), 1),
            None if chance.happens(0.05) else 8 + int(age * (1 + chance.share())),
            planted is None or age > 120,
            chance.one_of(_NOTES),
        )


def _house_number(chance: _Chance) -> str | None:
    if chance.happens(0.1):
        return None
    if chance.happens(0.15):
        return ""
    return f"{chance.below(90) + 1}{chance.one_of(('', '', '', 'a', 'b', ' ½'))}"


def _seedlings(chance: _Chance) -> Iterator[Row]:
    for tree in range(101, _TREES + 1):
        if chance.happens(0.1):
            yield tree, chance.below(tree - 1) + 1


def _inspections(chance: _Chance) -> Iterator[Row]:
    for tree in range(1, _TREES + 1):
        for year in range(_FIRST_INSPECTION, 2025):
            if chance.happens(0.35):
                continue
            day = chance.day(date(year, 3, 1), date(year, 10, 31))
            minute, second = chance.below(540), chance.below(60)
            moment = f"{day} {8 + minute // 60:02}:{minute % 60:02}:{second:02}"
            loss = None if chance.happens(0.2) else chance.share() ** 3
            yield tree, moment, chance.below(5), loss, chance.one_of(_REMARKS)


def _work_orders(chance: _Chance) -> Iterator[Row]:
    for number in range(1, _ORDERS + 1):
        ordered = chance.day(date(1991, 1, 1), date(2024, 12, 20)).isoformat()
        starts = (
            None
            if chance.happens(0.3)
            else f"{chance.below(10) + 7:02}:{chance.below(4) * 15:02}:00"
        )
        tree, kind = chance.below(_TREES) + 1, chance.one_of(_KINDS)
        yield number, tree, kind, ordered, None, starts, chance.one_of(_PRICES)


def _photos(chance: _Chance) -> Iterator[Row]:
    for number in range(1, _PHOTOS + 1):
        taken = f"{chance.day(date(2023, 4, 1), date(2024, 10, 31))} 12:{number:02}:00"
        # Small ones stay in the table's XML, large ones become files of their own.
        image: bytes | None = _png(chance, 96 if number % 3 == 0 else 32)
        if number == _PHOTOS - 1:
            image = None
        elif number == _PHOTOS:
            image = b""
        yield number, chance.below(_TREES) + 1, taken, "image/png", image


_PALETTE = bytes.fromhex("bfe3f5 a9cf8f 3f7d32 2c5e26 6fae4a 6b4a2f f2c14e")
_SKY, _GRASS, _LEAF, _SHADE, _LIGHT, _TRUNK, _SUN = range(7)


def _png(chance: _Chance, side: int) -> bytes:
    """Paint a tree, square, in seven colours."""
    crown = side * (0.24 + chance.share() * 0.08)
    lines = [
        b"\0" + bytes(_colour(chance, x / side, y / side, crown / side) for x in range(side))
        for y in range(side)
    ]
    header = struct.pack(">IIBBBBB", side, side, 8, 3, 0, 0, 0)
    # Stored, not compressed: compressors differ from machine to machine, the picture must not.
    pixels = zlib.compress(b"".join(lines), 0)
    chunks = ((b"IHDR", header), (b"PLTE", _PALETTE), (b"IDAT", pixels), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(name, data) for name, data in chunks)


def _colour(chance: _Chance, x: float, y: float, crown: float) -> int:
    if (x - 0.5) ** 2 + (y - 0.4) ** 2 < crown**2:
        return chance.one_of((_LEAF, _LEAF, _LEAF, _SHADE, _LIGHT))
    if abs(x - 0.5) < 0.05 and 0.4 < y < 0.88:
        return _TRUNK
    if y > 0.85:
        return _GRASS
    return _SUN if (x - 0.15) ** 2 + (y - 0.13) ** 2 < 0.006 else _SKY


def _chunk(name: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def _walks(chance: _Chance) -> Iterator[Row]:
    for walk, stops in (("Old giants", 9), ("Rund um den Hafen", 12), ("さくら", 7)):
        for stop in range(1, stops + 1):
            sight = chance.one_of((None, "", "a bench", "Blick auf den Hafen", "blooms in April"))
            yield walk, stop, chance.below(_TREES) + 1, sight


_PURPOSES = (
    "to fell an oak for the roof of St. Nicolai", "to prune the limes of the market",
    "to fell what the storm left", "Fällung wegen Pilzbefalls", "to lop branches over the quay",
)  # fmt: skip


def _permits(chance: _Chance) -> Iterator[Row]:
    for number in range(1, _PERMITS + 1):
        granted = chance.day(date(1607, 3, 1), date(2024, 11, 30))
        tree = chance.below(_TREES) + 1 if granted.year > 1887 else None
        purpose = chance.one_of(_PURPOSES)
        lines = ("City of Ulmenhafen", f"Permit {number} of {granted}", purpose)
        yield number, tree, granted.isoformat(), purpose, _pdf(lines)


def _pdf(lines: tuple[str, ...]) -> bytes:
    """Set a few lines on a page of A5."""
    shown = " ".join(
        f"1 0 0 1 50 {480 - 34 * n} Tm ({_pdf_text(line)}) Tj" for n, line in enumerate(lines)
    )
    page = f"BT /F1 18 Tf {shown} ET".encode("latin-1")
    objects = (
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 420 595] /Contents 4 0 R"
        b" /Resources << /Font << /F1 5 0 R >> >> >>",
        b"<< /Length %d >>\nstream\n%b\nendstream" % (len(page), page),
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Times-Roman /Encoding /WinAnsiEncoding >>",
    )
    data, places = b"%PDF-1.4\n", []
    for number, body in enumerate(objects, 1):
        places.append(len(data))
        data += b"%d 0 obj\n%b\nendobj\n" % (number, body)
    table = b"".join(b"%010d 00000 n \n" % place for place in places)
    size = len(objects) + 1
    return data + (
        b"xref\n0 %d\n0000000000 65535 f \n%btrailer\n<< /Size %d /Root 1 0 R >>\n"
        b"startxref\n%d\n%%%%EOF\n" % (size, table, size, len(data))
    )


def _pdf_text(text: str) -> str:
    return text.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")


def _reports(connection: sqlite3.Connection) -> Iterator[Row]:
    """Yearly reports, long enough to become files of their own, and two awkward ones."""
    for number, year in enumerate(range(2021, 2025), 1):
        body = "\n".join(_report_lines(connection, year))
        yield number, f"The city's trees in {year}", f"{year + 1}-02-15", body
    yield 5, "Notice", "2024-06-01", "The report is <late> & will follow. ]]>"
    yield 6, "Lost in the flood of the cellar", "1962-02-17", None


def _report_lines(connection: sqlite3.Connection, year: int) -> Iterator[str]:
    yield f"Report on the trees of the city, {year}"
    yield ""
    statement = """
        SELECT street.name, district.name, count(*), round(avg(vitality), 2), sum(vitality = 4)
        FROM inspection
        JOIN tree ON tree.id = tree_id
        JOIN street ON street.id = street_id
        JOIN district ON district.code = district_code
        WHERE inspected_at LIKE ?
        GROUP BY street.id ORDER BY street.id"""
    for street, district, trees, vitality, poor in connection.execute(statement, (f"{year}-%",)):
        yield (
            f"{street} ({district}): {trees} inspections, mean vitality {vitality}; "
            f"{poor or 'no'} trees in poor health. \t“Handle with care” – 100 % checked."
        )

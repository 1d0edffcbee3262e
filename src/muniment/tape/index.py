"""The index beside a tape: identifier and date to offset and length. It can always be rebuilt."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime, timedelta
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

import apsw

from muniment.errors import NotFound, TapeError
from muniment.files import disk_errors
from muniment.tape.records import Namespaces, TapeHead, TapeRecord
from muniment.tape.scan import scan

__all__ = [
    "TapeEntry",
    "TapeIndex",
    "build_index",
    "moment",
    "moment_of",
    "write_entries",
    "write_index",
]

_SCHEMA = """
CREATE TABLE tape (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE record (
    number INTEGER PRIMARY KEY, identifier TEXT NOT NULL, date TEXT NOT NULL,
    offset INTEGER NOT NULL, length INTEGER NOT NULL, namespaces TEXT
);
"""
_INDEXES = """
CREATE UNIQUE INDEX by_identifier ON record (identifier);
CREATE INDEX by_date ON record (date, number);
"""
_CACHE = 32 << 10  # KiB: what is inserted stays at hand until it is sorted
_DATE = re.compile(  # xs:date and xs:dateTime of four digits' years
    r"(\d{4}-\d\d-\d\d)(?:T(\d\d:\d\d:\d\d)(?:\.\d+)?)?(Z|[+-]\d\d:\d\d)?", re.ASCII
)
_UTC = re.compile(r"\d{4}-[01]\d-[0-3]\dT[0-2]\d:[0-5]\d:[0-5]\dZ", re.ASCII)


class TapeEntry(NamedTuple):
    """Where one record lies on a tape; the date is UTC, to the second."""

    number: int
    identifier: str
    date: str
    offset: int
    length: int
    namespaces: Namespaces = ()


@lru_cache(maxsize=16)
def moment(date: str) -> str:
    """Return an xs:date or xs:dateTime as UTC to the second, the form that OAI-PMH sorts by.

    >>> moment("2005-09-09T23:00:04.5+02:00"), moment("2005-09-09")
    ('2005-09-09T21:00:04Z', '2005-09-09T00:00:00Z')
    """
    match = _DATE.fullmatch(date)
    if not match:
        raise ValueError(f"{date!r} is not a date")
    day, clock, zone = match[1], match[2] or "00:00:00", match[3] or "Z"
    midnight = clock == "24:00:00"  # the end of that day
    text = f"{day}T{'00:00:00' if midnight else clock}{zone.replace('Z', '+00:00')}"
    found = datetime.fromisoformat(text) + timedelta(days=midnight)
    return found.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def moment_of(record: TapeRecord, name: str) -> str:
    """Return the date of a record on a tape as UTC; what is none is refused with its place."""
    try:
        return moment(record.date)
    except (ValueError, OverflowError):
        raise TapeError(name, record.start, f"{record.date!r} is not a date") from None


def build_index(tape: Path, index: Path) -> int:
    """Write the index of a tape, complete or not at all; return how many records it has."""
    with tape.open("rb") as stream:
        head, records = scan(stream, str(tape))
        return write_index(index, str(tape), head, tape.stat().st_size, records)


def write_index(
    index: Path, name: str, head: TapeHead, size: int, records: Iterable[TapeRecord]
) -> int:
    """Write an index from records; a second record of one identifier is refused."""
    return write_entries(index, name, head, size, _rows(name, records))


@disk_errors()
def write_entries(
    index: Path, name: str, head: TapeHead, size: int, rows: Iterable[tuple[object, ...]]
) -> int:
    """Write an index from rows: number, identifier, date, offset, length, namespaces in JSON."""
    partial = index.with_name(f"{index.name}.partial")
    partial.unlink(missing_ok=True)
    db = apsw.Connection(str(partial))
    try:
        db.pragma("journal_mode", "off")
        db.pragma("synchronous", "off")
        db.pragma("cache_size", -_CACHE)
        db.execute("BEGIN")
        db.execute(_SCHEMA)
        db.executemany("INSERT INTO record VALUES (?, ?, ?, ?, ?, ?)", rows)
        try:
            db.execute(_INDEXES)
        except apsw.ConstraintError:
            raise _duplicate(db, name) from None
        db.executemany("INSERT INTO tape VALUES (?, ?)", _facts(head, size).items())
        count = int(db.execute("SELECT count(*) FROM record").get)
        db.execute("COMMIT")
    except BaseException:
        db.close(True)
        partial.unlink(missing_ok=True)
        raise
    db.close()
    partial.replace(index)
    return count


def _rows(name: str, records: Iterable[TapeRecord]) -> Iterator[tuple[object, ...]]:
    for number, record in enumerate(records):
        identifier, date, offset, length, _, _, _, around = record
        if not _UTC.fullmatch(date):
            date = moment_of(record, name)
        yield number, identifier, date, offset, length, json.dumps(around) if around else None


def _duplicate(db: apsw.Connection, name: str) -> TapeError:
    identifier, first, second = next(
        db.execute(
            "SELECT identifier, min(offset), max(offset) FROM record GROUP BY identifier "
            "HAVING count(*) > 1 ORDER BY 2"
        )
    )
    problem = f"the identifier {identifier} was used already, at byte {first}"
    return TapeError(name, int(str(second)), problem)


def _facts(head: TapeHead, size: int) -> dict[str, object]:
    return {
        "size": size,
        "tape_id": head.tape_id,
        "arc_ids": json.dumps(head.arc_ids),
        "software": head.software,
        "time": head.time,
        "encoding": head.encoding,
        "prologue": head.prologue,
        "prefix": head.prefix,
        "namespaces": json.dumps(head.namespaces),
        "entities": json.dumps(head.entities),
    }


class TapeIndex:
    """An index that is read."""

    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        facts = dict(self._db.execute("SELECT key, value FROM tape"))
        self.size = int(facts["size"])
        self.head = TapeHead(
            encoding=facts["encoding"],
            prologue=facts["prologue"],
            prefix=facts["prefix"],
            namespaces=_pairs(facts["namespaces"]),
            entities=json.loads(facts["entities"]),
            tape_id=facts["tape_id"],
            arc_ids=tuple(json.loads(facts["arc_ids"])),
            software=facts["software"],
            time=facts["time"],
        )

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM record").get)

    def find(self, identifier: str) -> TapeEntry:
        """Return where a record lies."""
        row = self._db.execute(
            "SELECT * FROM record WHERE identifier = ?", (identifier,)
        ).fetchone()
        if row is None:
            raise NotFound(f"there is no record {identifier} on this tape")
        return _entry(row)

    def between(self, start: str = "", end: str = "9999-12-31T23:59:59Z") -> Iterator[TapeEntry]:
        """Yield the records of an interval, both ends included, in the order of their dates."""
        question = "SELECT * FROM record WHERE date BETWEEN ? AND ? ORDER BY date, number"
        return map(_entry, self._db.execute(question, (start, end)))

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def _entry(row: tuple[object, ...]) -> TapeEntry:
    return TapeEntry(*row[:5], _pairs(row[5]))  # type: ignore[arg-type, call-arg]


def _pairs(text: object) -> Namespaces:
    return tuple((prefix, uri) for prefix, uri in json.loads(str(text))) if text else ()

"""What each kind of record of the journal means for the index.

Kinds: ``mint`` (a block of serials), ``name`` (a mnemonic or foreign id), ``bind``, ``locate``,
``ended`` (an indirect location that changed), ``tombstone``, ``assert``; all others are events,
kept whole and read by those who wrote them. ``targets`` of an event, which its subject was assigned
to, are found by name as well.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import apsw

from muniment.names.index import Index, index_id

__all__ = ["RULES", "apply"]

Record = dict[str, Any]
RULES = frozenset(  # these change what is allowed
    {"book", "series", "mandate", "interval", "token", "access", "key", "key-revoked", "scheme"}
)


def apply(db: apsw.Connection, index: Index, line: int, record: Record) -> None:
    """Bring one record into the index."""
    kind = record["kind"]
    if kind in _KINDS:
        _KINDS[kind](db, index, line, record)
    else:
        subject = record.get("subject") or record.get("series")
        db.execute("INSERT INTO event VALUES (?,?,?,?)", (line, kind, subject, json.dumps(record)))
        for target in record.get("targets", ()):
            db.execute("INSERT OR IGNORE INTO target VALUES (?,?,?)", (target, line, subject))


def _mint(db: apsw.Connection, index: Index, _line: int, record: Record) -> None:
    series, first = index.series_made(record["series"]), record["first"]
    last = first + record["count"] - 1
    # A block that goes on from the one before makes it longer: a row each would be millions.
    row = db.execute(
        "SELECT first, last FROM block WHERE series=? AND day=? AND first<? AND format=? "
        "ORDER BY first DESC LIMIT 1",
        (series, record["day"], first, record["format"]),
    ).fetchone()
    if row is not None and row[1] == first - 1:
        db.execute(
            "UPDATE block SET last=? WHERE series=? AND day=? AND first=?",
            (last, series, record["day"], row[0]),
        )
    else:
        values = series, record["day"], first, last, record["format"], record["at"]
        db.execute("INSERT INTO block VALUES (?,?,?,?,?,?)", values)


def _name(db: apsw.Connection, index: Index, _line: int, record: Record) -> None:
    foreign = record.get("foreign") or {}
    values = (
        index.series_made(record["series"]), record["day"], index_id(record["id"]),
        record["id"].lower(), record["format"], record["at"],
        foreign.get("kind"), foreign.get("value"),
    )  # fmt: skip
    db.execute("INSERT INTO name VALUES (?,?,?,?,?,?,?,?)", values)


def _key(index: Index, record: Record) -> tuple[int, int, str | int, int, str]:
    series = index.series_made(record["series"])
    return series, record["day"], index_id(record["id"]), record["version"], record["format"]


def _bind(db: apsw.Connection, index: Index, _line: int, record: Record) -> None:
    series, day = index.series_made(record["series"]), record["day"]
    version, token, at = record["version"], record["format"], record["at"]
    db.executemany(
        "INSERT INTO binding VALUES (?,?,?,?,?,?,?,?,?)",
        (
            (series, day, index_id(each[0]), version, token, bytes.fromhex(each[1]), *each[2:], at)
            for each in record["items"]
        ),
    )


def _locate(db: apsw.Connection, index: Index, _line: int, record: Record) -> None:
    values = (*_key(index, record), record["location"], record.get("source"), record["at"])
    db.execute("INSERT OR IGNORE INTO location VALUES (?,?,?,?,?,?,?,?,NULL)", values)


def _ended(db: apsw.Connection, index: Index, _line: int, record: Record) -> None:
    values = (record["at"], *_key(index, record), record["location"])
    db.execute(
        "UPDATE location SET ended=? "
        "WHERE series=? AND day=? AND id=? AND version=? AND format=? AND location=?",
        values,
    )


def _tombstone(db: apsw.Connection, index: Index, _line: int, record: Record) -> None:
    # Version 0 and an empty format stand for all of them.
    key = _key(
        index, {**record, "version": record["version"] or 0, "format": record["format"] or ""}
    )
    values = (*key, record["at"], json.dumps(record))
    db.execute("INSERT OR REPLACE INTO tombstone VALUES (?,?,?,?,?,?,?)", values)


def _assert(db: apsw.Connection, _index: Index, line: int, record: Record) -> None:
    value = json.dumps(record["value"], sort_keys=True)
    values = line, record["subject"], record["predicate"], value, record["by"], record["at"]
    db.execute("INSERT INTO assertion VALUES (?,?,?,?,?,?)", values)


_KINDS: dict[str, Callable[[apsw.Connection, Index, int, Record], None]] = {
    "mint": _mint, "name": _name, "bind": _bind, "locate": _locate, "ended": _ended,
    "tombstone": _tombstone, "assert": _assert,
}  # fmt: skip

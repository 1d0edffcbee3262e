"""The index beside an ARC or WARC file: datastream identifier to offset, length, type, digest."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import apsw

from muniment.arc.digests import digested
from muniment.arc.reader import read_arc_file
from muniment.arc.records import ArcRecord, compact_date, is_datastream
from muniment.errors import NotFound
from muniment.files import disk_errors

__all__ = ["ArcIndex", "ArcIndexWriter", "build_index", "cdxj", "write_index"]

_SCHEMA = """
CREATE TABLE arc (key TEXT PRIMARY KEY, value) WITHOUT ROWID;
CREATE TABLE record (
    identifier TEXT NOT NULL, kind TEXT NOT NULL, date TEXT NOT NULL, media_type TEXT NOT NULL,
    sha256 TEXT NOT NULL, offset INTEGER NOT NULL, length INTEGER NOT NULL, block INTEGER NOT NULL,
    size INTEGER NOT NULL
);
"""


def build_index(arc: Path, index: Path) -> int:
    """Write the index of a file, complete or not at all; return how many datastreams it has."""
    with arc.open("rb") as stream:
        records = digested(stream, str(arc), read_arc_file(stream, str(arc)))
        return write_index(index, arc.stat().st_size, records)


def write_index(index: Path, size: int, records: Iterable[ArcRecord]) -> int:
    """Write an index from records; of an identifier used twice, the first record counts."""
    writer = ArcIndexWriter(index)
    try:
        writer.add(records)
        return writer.finish(size)
    except BaseException:
        writer.abandon()
        raise


class ArcIndexWriter:
    """An index that grows with its file, and appears when it is finished."""

    def __init__(self, index: Path) -> None:
        self._index = index
        self._partial = index.with_name(f"{index.name}.partial")
        self._partial.unlink(missing_ok=True)
        self._db = apsw.Connection(str(self._partial))
        self._db.pragma("journal_mode", "off")
        self._db.pragma("synchronous", "off")
        self._db.execute("BEGIN")
        self._db.execute(_SCHEMA)

    @disk_errors()
    def add(self, records: Iterable[ArcRecord]) -> None:
        """Add the datastreams among some records."""
        self._db.executemany(
            "INSERT INTO record VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (record[:9] for record in records if is_datastream(record)),
        )

    @disk_errors()
    def finish(self, size: int) -> int:
        """Let the index of a file of ``size`` bytes appear; return how many datastreams it has."""
        self._db.execute("CREATE INDEX by_identifier ON record (identifier)")
        self._db.execute("INSERT INTO arc VALUES ('size', ?)", (size,))
        count = int(self._db.execute("SELECT count(*) FROM record").get)
        self._db.execute("COMMIT")
        self._db.close()
        self._partial.replace(self._index)
        return count

    def abandon(self) -> None:
        """Leave nothing behind."""
        self._db.close(True)
        self._partial.unlink(missing_ok=True)


class ArcIndex:
    """An index that is read."""

    def __init__(self, path: Path) -> None:
        self._db = apsw.Connection(str(path), flags=apsw.SQLITE_OPEN_READONLY)
        self.size = int(self._db.execute("SELECT value FROM arc WHERE key = 'size'").get)

    def __len__(self) -> int:
        return int(self._db.execute("SELECT count(*) FROM record").get)

    def find(self, identifier: str) -> ArcRecord:
        """Return the first record of this name."""
        question = "SELECT * FROM record WHERE identifier = ? ORDER BY offset LIMIT 1"
        row = self._db.execute(question, (identifier,)).fetchone()
        if row is None:
            raise NotFound(f"there is no datastream {identifier} in this file")
        return ArcRecord(*row)

    def __iter__(self) -> Iterator[ArcRecord]:
        rows = self._db.execute("SELECT * FROM record ORDER BY offset")
        return (ArcRecord(*row) for row in rows)

    def close(self) -> None:
        """Let go of the file."""
        self._db.close()


def cdxj(records: Iterable[ArcRecord], filename: str) -> list[str]:
    """Return the lines of a CDXJ file for the records, sorted bytewise."""
    lines = []
    for record in filter(is_datastream, records):
        facts = {
            "url": record.identifier,
            "mime": record.media_type.partition(";")[0] or "unk",
            "digest": f"sha-256:{record.sha256}" if record.sha256 else None,
            "length": str(record.length),
            "offset": str(record.offset),
            "filename": filename,
        }
        known = {name: value for name, value in facts.items() if value is not None}
        key = surt(record.identifier)
        lines.append(f"{key} {compact_date(record.date)} {json.dumps(known, ensure_ascii=False)}")
    return sorted(lines, key=str.encode)


def surt(uri: str) -> str:
    """Return the key under which CDXJ sorts a URI: host names from the right, others as they are.

    >>> surt("http://www.Example.com:8080/a?b"), surt("urn:uuid:1")
    ('com,example:8080)/a?b', 'urn:uuid:1')
    """
    try:
        parts = urlsplit(uri)
        host, port = parts.hostname, parts.port
    except ValueError:
        return uri
    if parts.scheme not in ("http", "https") or not host:
        return uri
    host = ",".join(reversed(host.removeprefix("www.").split(".")))
    query = f"?{parts.query}" if parts.query else ""
    return f"{host}{f':{port}' if port else ''}){(parts.path or '/').lower()}{query.lower()}"

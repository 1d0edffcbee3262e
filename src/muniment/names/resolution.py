"""What names stand for (draft 3.6.3).

Without a version the highest one is meant, with a fragment version 1 (docs/decisions.md); the
answer always carries the full name. Patterns are answered as far as this book knows.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TYPE_CHECKING, Any

from muniment.identifiers import Pdi
from muniment.identifiers.foreign import encapsulate
from muniment.identifiers.pdi import WILDCARD
from muniment.names.binding import day_number, is_minted
from muniment.names.index import Index, index_id
from muniment.names.values import Binding, Resolution, Series

if TYPE_CHECKING:
    from muniment.names.book import Names

__all__ = [
    "all_bindings", "find_archive", "find_foreign", "listing", "look_up", "resolve", "sources",
]  # fmt: skip

_ROW = "version, format, digest, length, location, at"


def resolve(names: Names, pdi: Pdi) -> Resolution:
    """Say what a name stands for; patterns are for ``listing``."""
    if pdi.wildcards:
        return Resolution(pdi, "pattern")
    state = names.journal.state()
    index = names.current(state)
    bindings, tombstones = _kept(index, pdi)
    series = names.rules(state).series.get(pdi.series)
    status = _status(index, pdi, bindings, tombstones, series)
    if status is not None:
        return status
    remarks = []
    version = pdi.version
    if version is None and (pdi.fragment is not None or pdi.citation is not None):
        version = 1
        remarks.append("no version was given for a part of a document: version 1 is taken")
    chosen = _choose(bindings, pdi.format, version)
    latest = max(_number(binding) for binding in bindings)
    if chosen is None:
        return Resolution(pdi, "unknown", latest=latest, renditions=tuple(bindings))
    same = tuple(b for b in bindings if b.pdi.version == chosen.pdi.version)
    return Resolution(pdi, "bound", chosen, same, latest, remarks=tuple(remarks))


def _status(
    index: Index, pdi: Pdi, bindings: list[Binding], tombstones: list[_Tombstone],
    series: Series | None,
) -> Resolution | None:  # fmt: skip
    """Return the answer for a name that nothing can be shown for."""
    reason = _reason(tombstones, pdi) if tombstones else None
    if reason is not None:
        return Resolution(pdi, "withdrawn", reason=reason)
    if series is not None and (resolver := series.resolver(day_number(pdi))):
        return Resolution(pdi, "elsewhere", resolver=resolver)
    if bindings:
        return None
    return Resolution(pdi, "minted" if is_minted(index, pdi) else "unknown")


_Tombstone = tuple[int, str, str]  # version, format, body
# One question for both: each takes the lock of the file, which costs more than the looking up.
_KEPT = (
    f"SELECT {_ROW} FROM binding WHERE series=?1 AND day=?2 AND id=?3 UNION ALL "
    "SELECT version, format, NULL, 0, body, at FROM tombstone WHERE series=?1 AND day=?2 AND id=?3"
)


def _kept(index: Index, pdi: Pdi) -> tuple[list[Binding], list[_Tombstone]]:
    """Return the bindings of a document, by version and format, and its tombstones."""
    key = index.series(pdi.series), day_number(pdi), index_id(pdi.unique_id)
    rows = index.db.execute(_KEPT, key).fetchall()
    if len(rows) > 1:
        rows.sort(key=lambda row: row[:2])
    document = pdi[:5]
    bindings = [
        Binding(Pdi(*document, row[1], row[0]), *row[2:]) for row in rows if row[2] is not None
    ]
    return bindings, [(row[0], row[1], row[4]) for row in rows if row[2] is None]


def _bindings(index: Index, pdi: Pdi) -> list[Binding]:
    return _kept(index, pdi)[0]


def all_bindings(names: Names, pdi: Pdi) -> list[Binding]:
    """Return what is bound to a document, by version and format, but for what is withdrawn."""
    bindings, tombstones = _kept(names.current(), pdi)
    return [each for each in bindings if _reason(tombstones, each.pdi) is None]


def _number(binding: Binding) -> int:
    return binding.pdi.version if isinstance(binding.pdi.version, int) else 0


def _choose(bindings: list[Binding], token: str | None, version: Any) -> Binding | None:
    """Return the highest version that there is in the wanted format."""
    fitting = [
        binding
        for binding in bindings
        if token in (None, binding.pdi.format) and version in (None, binding.pdi.version)
    ]
    return max(fitting, key=_number, default=None)


def _reason(tombstones: list[_Tombstone], pdi: Pdi) -> dict[str, Any] | None:
    """Return the reason why a document, this version or this format of it is withdrawn."""
    version = pdi.version if isinstance(pdi.version, int) else 0
    for of_version, of_format, text in tombstones:
        if of_version in (0, version) and of_format in ("", pdi.format or ""):
            body = json.loads(text)
            return {key: body[key] for key in ("reason", "by", "law", "at")}
    return None


# Many at a time


_TOGETHER = 1000  # names that are looked up by one question
_LOOK_UP = (
    "SELECT j.key, b.digest, b.length, b.location, b.at FROM json_each(?) j CROSS JOIN binding b "
    "ON b.series=? AND b.day=? AND b.id=j.value AND b.version=? AND b.format=?"
)


def look_up(names: Names, pdis: Iterable[Pdi]) -> Iterator[Binding | None]:
    """Yield the binding of each fully qualified name, or None."""
    index, stream = names.current(), iter(pdis)
    while chunk := list(islice(stream, _TOGETHER)):
        kinds: dict[tuple[Any, ...], list[int]] = {}
        for place, pdi in enumerate(chunk):
            kinds.setdefault((*pdi[:4], *pdi[5:7]), []).append(place)
        found: list[Binding | None] = [None] * len(chunk)
        for places in kinds.values():
            first = chunk[places[0]]
            ids = json.dumps([index_id(chunk[place].unique_id) for place in places])
            series, day = index.series(first.series), day_number(first)
            values = ids, series, day, first.version, first.format
            for key, *row in index.db.execute(_LOOK_UP, values):
                place = places[key]
                found[place] = Binding(chunk[place].document, *row)
        yield from found


# Patterns


def listing(names: Names, pattern: Pdi, after: Pdi | None) -> Iterator[Pdi]:
    """Yield the names that a pattern stands for, day after day."""
    index = names.current()
    number = index.series(pattern.series)
    if number is None:
        return
    start = None if after is None else after.sort_key
    for day in _days(index, number, pattern):
        text = f"{day:08d}"
        stem = Pdi(pattern.series, text[:4], text[4:6], text[6:], WILDCARD)
        if start is not None and (stem.series, *stem[1:4]) < start[:4]:
            continue
        found = _of_day(index, number, day, stem, pattern)
        yield from (pdi for pdi in found if start is None or pdi.sort_key > start)


def _days(index: Index, series: int, pattern: Pdi) -> list[int]:
    like = "".join(
        "_" * width if part == WILDCARD else part
        for part, width in ((pattern.year, 4), (pattern.month, 2), (pattern.day, 2))
    )
    rows = index.db.execute(
        "SELECT DISTINCT day FROM block WHERE series=?1 AND printf('%08d', day) LIKE ?2 "
        "UNION SELECT DISTINCT day FROM name WHERE series=?1 AND printf('%08d', day) LIKE ?2",
        (series, like),
    )
    return sorted(day for (day,) in rows)


def _of_day(index: Index, series: int, day: int, stem: Pdi, pattern: Pdi) -> Iterator[Pdi]:
    versions = pattern.format is not None
    for unique_id in _ids(index, series, day, pattern.unique_id):
        pdi = stem._replace(unique_id=str(unique_id))
        if not versions:
            yield pdi
            continue
        rows = _bindings(index, pdi)
        if pattern.version is None:
            highest = _choose(rows, None if pattern.format == WILDCARD else pattern.format, None)
            rows = [] if highest is None else [highest]
        for binding in rows:
            wanted = (pattern.format, binding.pdi.format), (pattern.version, binding.pdi.version)
            if all(a in (WILDCARD, None, b) for a, b in wanted):
                yield binding.pdi


def _ids(index: Index, series: int, day: int, wanted: str) -> Iterator[str | int]:
    """Yield the ids of a day: serials as numbers, then the others."""
    if wanted != WILDCARD:
        if is_minted(index, Pdi(_series_name(index, series), *_parts(day), wanted)):
            yield index_id(wanted)
        return
    names = index.db.execute(
        "SELECT id FROM name WHERE series=? AND day=? ORDER BY id", (series, day)
    ).fetchall()
    numbers = iter([id_ for (id_,) in names if isinstance(id_, int)])
    pending = next(numbers, None)
    for first, last in index.db.execute(
        "SELECT first, last FROM block WHERE series=? AND day=? ORDER BY first", (series, day)
    ).fetchall():
        while pending is not None and pending < first:
            yield pending
            pending = next(numbers, None)
        yield from range(first, last + 1)
    if pending is not None:
        yield pending
    yield from numbers
    yield from (id_ for (id_,) in names if isinstance(id_, str))


def _series_name(index: Index, number: int) -> str:
    row = index.db.execute("SELECT name FROM series WHERE id=?", (number,)).fetchone()
    return str(row[0])


def _parts(day: int) -> tuple[str, str, str]:
    text = f"{day:08d}"
    return text[:4], text[4:6], text[6:]


def sources(names: Names) -> Iterator[tuple[Pdi, str, bytes, int]]:
    """Yield each address that a name is bound to now: name, address, digest and length."""
    rows = names.current().db.execute(
        "SELECT s.name, b.day, b.id, b.format, b.version, l.source, b.digest, b.length "
        "FROM location l JOIN binding b USING (series, day, id, version, format) "
        "JOIN series s ON s.id=l.series WHERE l.source IS NOT NULL AND l.ended IS NULL "
        "ORDER BY l.series, l.day, l.id, l.version, l.format"
    )
    for series, day, id_, token, version, source, digest, length in rows:
        yield Pdi(series, *_parts(day), str(id_), token, version), source, digest, length


def find_archive(names: Names, digest: bytes) -> Pdi | None:
    """Return the oldest name under which the octets of a SIARD archive are bound and shown."""
    rows = names.current().db.execute(
        "SELECT s.name, b.day, b.id, b.format, b.version FROM binding b "
        "JOIN series s ON s.id=b.series WHERE b.digest=? AND b.format='siard' ORDER BY b.at",
        (digest,),
    )
    for series, day, id_, token, version in rows.fetchall():
        pdi = Pdi(series, *_parts(day), str(id_), token, version)
        if resolve(names, pdi).binding is not None:
            return pdi
    return None


def find_foreign(names: Names, kind: str, value: str) -> list[Pdi]:
    """Return the names that hold a foreign identifier, oldest first."""
    index = names.current()
    _, canonical = encapsulate(kind, value)
    rows = index.db.execute(
        "SELECT s.name, n.day, n.id, n.format FROM name n JOIN series s ON s.id=n.series "
        "WHERE foreign_kind=? AND foreign_value=? ORDER BY n.at",
        (kind, canonical),
    )
    return [
        Pdi(series, *_parts(day), str(id_), token, 1)
        for series, day, id_, token in islice(rows, 1000)
    ]

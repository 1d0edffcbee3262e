"""Binding octets to names (draft 2.1, 2.6, 3.6.2).

The octets of a version in a format never change: the digest decides. A changed document is a new
version for all formats; another format of the same content joins the latest version. Nothing is
deleted; a tombstone says why something is no longer shown.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from operator import itemgetter
from typing import TYPE_CHECKING, Any

from muniment.errors import NameRefused, NotFound, UsageError
from muniment.identifiers import Pdi
from muniment.names.index import Index, index_id
from muniment.names.values import NewBinding

if TYPE_CHECKING:
    from muniment.names.book import Names

__all__ = ["bind", "day_number", "end_source", "is_minted", "locate", "withdraw"]

_ITEMS = 20_000  # bindings in one record


def bind(
    names: Names,
    bindings: Sequence[NewBinding],
    by: str,
    new_version: bool = False,
    source: str | None = None,
) -> list[Pdi]:
    """Bind all of them, or raise NameRefused and bind none."""
    for new in bindings:
        _check_form(new)
        if source is not None and new.location in ("", source):
            raise NameRefused(
                f"{source} may change; it is bound only with a copy that is kept", 405
            )
    with names.turn() as state:
        index = names.current(state)
        settled = _settle(index, bindings, new_version)
        fresh = [new for new, known in settled if known is None]
        records = list(_records(fresh, by))
        for new, known in settled:
            if source is not None or (known is not None and known != new.location):
                records.append({"kind": "locate", **_key(new.pdi), **_place(new, source)})
        after = names.append(state, records) if records else state
    names.journal.sync(after.end)
    return [new.pdi for new, _ in settled]


def _place(new: NewBinding, source: str | None) -> dict[str, Any]:
    return {"location": source or new.location, "source": source}


def _check_form(new: NewBinding) -> None:
    pdi = new.pdi
    if pdi.fragment is not None or pdi.citation is not None or pdi.wildcards:
        raise NameRefused(f"{pdi} is a part or a pattern; only whole documents are bound", 405)
    if pdi.format is None:
        raise NameRefused(f"{pdi} has no format; octets are bound to a format of a document", 405)
    if len(new.digest) != 32:
        raise UsageError("a binding needs the SHA-256 digest of the octets")


def _settle(
    index: Index, bindings: Sequence[NewBinding], new_version: bool
) -> list[tuple[NewBinding, str | None]]:
    """Give each binding its version, and the location it is known at if it exists already."""
    keys = [_index_key(new.pdi) for new in bindings]
    known = _known(index, keys)
    minted = _Minted(index)
    settled = []
    for new, key in zip(bindings, keys, strict=True):
        pdi = new.pdi
        there = known.setdefault(key, {})
        if not there and not minted(*key):
            raise NameRefused(f"{pdi.generic} was never minted here", 404)
        version = pdi.version if isinstance(pdi.version, int) else None
        chosen = _version(there, new, version, new_version)
        if chosen != pdi.version:
            new = replace(new, pdi=pdi._replace(version=chosen))
        place = (chosen, str(pdi.format))
        settled.append((new, there[place][1] if place in there else None))
        there.setdefault(place, (new.digest, new.location))
    return settled


Key = tuple[str, int, str | int]  # series, day and id as the index keeps them


def _index_key(pdi: Pdi) -> Key:
    return pdi.series, _day(pdi.year, pdi.month, pdi.day), index_id(pdi.unique_id)


Known = dict[tuple[int, str], tuple[bytes, str]]  # version and format: digest and location


def _version(there: Known, new: NewBinding, wanted: int | None, new_version: bool) -> int:
    """Return the version under which octets are bound, or raise NameRefused."""
    if not there and wanted in (1, None):
        return 1
    highest = max((version for version, _ in there), default=0)
    if wanted is not None:
        if wanted > highest + 1:
            raise NameRefused(f"{new.pdi} would leave a gap: the highest version is {highest}")
        found = there.get((wanted, str(new.pdi.format)))
        if found is not None and found[0] != new.digest:
            raise NameRefused(
                f"{new.pdi} is bound to other octets (SHA-256 {found[0].hex()}), which never "
                "change; a changed document is a new version"
            )
        return wanted
    latest = there.get((highest, str(new.pdi.format)))
    if new_version:
        return highest + 1
    formats = {token for _, token in there}
    if latest is None:
        # A format that the document never had is a rendition; one it had was changed.
        return highest if str(new.pdi.format) not in formats else highest + 1
    return highest if latest[0] == new.digest else highest + 1


def _known(index: Index, keys: Sequence[Key]) -> dict[Key, Known]:
    """Return what is bound to the names already, asked for all of them at once."""
    found: dict[Key, Known] = {}
    wanted: dict[tuple[str, int], list[str | int]] = {}
    for series, day, id_ in keys:
        wanted.setdefault((series, day), []).append(id_)
    for (series, day), listed in wanted.items():
        number = index.series(series)
        ids = json.dumps(listed)
        # Each id is looked up by the primary key: a scan of the table would not end.
        rows = index.db.execute(
            "SELECT b.id, b.version, b.format, b.digest, b.location "
            "FROM json_each(?) j CROSS JOIN binding b "
            "ON b.series=? AND b.day=? AND b.id=j.value",
            (ids, number, day),
        )
        for id_, version, token, digest, location in rows:
            there = found.setdefault((series, day, id_), {})
            there[version, token] = (digest, location)
    return found


class _Minted:
    """Answers whether names were minted, with one question per day for serials."""

    def __init__(self, index: Index) -> None:
        self._index = index
        self._blocks: dict[tuple[str, int], list[tuple[int, int]]] = {}

    def __call__(self, series: str, day: int, key: str | int) -> bool:
        if isinstance(key, int):
            blocks = self._blocks.get((series, day))
            if blocks is None:
                sql = "SELECT first, last FROM block WHERE series=? AND day=?"
                rows = self._index.db.execute(sql, (self._index.series(series), day))
                blocks = self._blocks[series, day] = rows.fetchall()
            for first, last in blocks:
                if first <= key <= last:
                    return True
        sql = "SELECT 1 FROM name WHERE series=? AND day=? AND id=?"
        values = self._index.series(series), day, key
        return self._index.db.execute(sql, values).fetchone() is not None


def is_minted(index: Index, pdi: Pdi) -> bool:
    """Whether a name was given by this book."""
    return _Minted(index)(pdi.series, day_number(pdi), index_id(pdi.unique_id))


def _records(fresh: Iterable[NewBinding], by: str) -> Iterable[dict[str, Any]]:
    """Yield records of many bindings each, in the order of the index."""
    groups: dict[tuple[str, int, Any, Any], list[list[Any]]] = {}
    for new in fresh:
        series, year, month, day, unique_id, token, version, *_ = new.pdi
        items = groups.setdefault((series, _day(year, month, day), version, token), [])
        items.append([unique_id, new.digest.hex(), new.length, new.location])
    for (series, number, version, token), items in sorted(groups.items(), key=itemgetter(0)):
        head = {"series": series, "day": number, "version": version, "format": token, "by": by}
        for start in range(0, len(items), _ITEMS):
            yield {"kind": "bind", **head, "items": items[start : start + _ITEMS]}


def day_number(pdi: Pdi) -> int:
    """Return the day of a name as the index keeps it: YYYYMMDD."""
    return _day(pdi.year, pdi.month, pdi.day)


@lru_cache(maxsize=1 << 14)
def _day(year: str, month: str, day: str) -> int:
    return int(year + month + day)


def _key(pdi: Pdi) -> dict[str, Any]:
    return {
        "series": pdi.series,
        "day": day_number(pdi),
        "id": pdi.unique_id,
        "version": pdi.version,
        "format": pdi.format,
    }


def _bound(names: Names, pdi: Pdi) -> Pdi:
    found = names.resolve(pdi.document)
    if found.binding is None:
        raise NotFound(f"nothing is bound to {pdi}")
    return found.binding.pdi


def locate(names: Names, pdi: Pdi, location: str, source: str | None) -> None:
    """Record another place of the same octets."""
    record = {"kind": "locate", **_key(_bound(names, pdi)), "location": location, "source": source}
    names.write([record])


def end_source(names: Names, pdi: Pdi, source: str, found: str, by: str) -> None:
    """End an indirect binding whose URI changed (PDI-102); the kept copy goes on."""
    record = {"kind": "ended", **_key(_bound(names, pdi)), "location": source, "found": found}
    names.write([{**record, "by": by}])


def withdraw(names: Names, pdi: Pdi, reason: str, by: str, law: str) -> None:
    """Put up a tombstone for a document, a version, or a format of one."""
    if not reason.strip():
        raise UsageError("a tombstone needs a reason")
    if pdi.wildcards or not is_minted(names.current(), pdi):
        raise NotFound(f"{pdi.generic} was never minted here")
    record = {"kind": "tombstone", **_key(pdi.document), "reason": reason, "by": by, "law": law}
    names.write([record])

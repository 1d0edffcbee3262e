"""When harvesters have to hear of a record again: a decision who may read it is news to them.

The date of a record on its tape never changes. Where a decision came later, the catalogue notes its
date; it can always be worked out again from the book of names.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from muniment.repository import harvest
from muniment.repository.access import EVERYTHING, access_of
from muniment.repository.catalogue import Found
from muniment.repository.harvest import Wanted
from muniment.repository.naming import is_pdi

if TYPE_CHECKING:
    from muniment.repository.store import Store

__all__ = ["follow", "stamp_of"]

_KEY = "decisions"  # how many have been followed
_ALL = 1 << 62


def stamp_of(store: Store, found: Found) -> str:
    """Return the date of a record as harvesters see it."""
    access = access_of(store.names)
    return max(found.date, access.changed(found)) if access.history else found.date


def follow(store: Store) -> None:
    """Let the catalogue know the dates that new decisions give to records."""
    access, catalogue = access_of(store.names), store.catalogue
    if not access.history or catalogue.state(_KEY) == len(access.history):
        return
    with catalogue.change():
        known = catalogue.state(_KEY) or 0
        found = {each.identifier: each for each in _covered(store, access.history[known:])}
        stamps = ((each, access.changed(each)) for each in found.values())
        catalogue.set_stamps(
            (each.file, each.number, stamp) for each, stamp in stamps if stamp > each.date
        )
        catalogue.set_state(_KEY, len(access.history))


def _covered(store: Store, events: Iterable[Any]) -> Iterator[Found]:
    """Yield the records that decisions may be about."""
    for subject in {subject for event in events for subject in event["subjects"]}:
        if subject == EVERYTHING:
            yield from _select(store, Wanted())
        elif not is_pdi(subject):
            yield from filter(None, [store.catalogue.record(subject)])
        elif subject.endswith("/") or "*" in subject:
            series = subject.removeprefix("pdi://").partition("/")[0]
            yield from _select(store, Wanted(series=series))
        else:
            yield from store.catalogue.named(str(store.names.read(subject).generic), "pdi")


def _select(store: Store, wanted: Wanted) -> Iterator[Found]:
    return (found for _, found in harvest.select(store.catalogue, wanted, _ALL, None, -1))

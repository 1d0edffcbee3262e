"""The indexes beside sealed files, from what the catalogue knows already: nothing is read again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from muniment.arc import index as arc_index
from muniment.tape import index as tape_index
from muniment.tape.exact import read_head

if TYPE_CHECKING:
    from muniment.repository.store import Store

__all__ = ["index_arc", "index_tape"]


def index_tape(store: Store, number: int) -> None:
    """Write the index beside a tape of our own that was sealed just now."""
    file = store.catalogue.file(number)
    place, base = store.places[file.place], file.base
    with place.open(file.name) as stream:
        head = read_head(stream, file.name)
    rows = (
        (each.number, each.identifier, each.date, base + each.offset, each.length, each.namespaces)
        for each in store.catalogue.on_file(number)
    )
    tape_index.write_entries(place.index(file.name), file.name, head, file.end, rows)


def index_arc(store: Store, number: int) -> None:
    """Write the index beside an ARC or WARC file."""
    file = store.catalogue.file(number)
    index = store.places[file.place].index(file.name)
    arc_index.write_index(index, file.end, store.catalogue.streams_in(number))

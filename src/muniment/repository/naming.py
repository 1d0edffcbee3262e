"""PDIs for what the store keeps: minted and bound in its book of names, kept on its tapes.

The book's journal goes onto the tapes line by line, in records of its own. So the book, too, can be
deleted: it is written again from the tapes, to the byte.
"""

from __future__ import annotations

import re
from base64 import b64decode, b64encode
from collections import Counter, defaultdict
from collections.abc import Callable, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from lxml import etree

from muniment.errors import MunimentError, NotFound, StoreError
from muniment.files import new_file
from muniment.identifiers import Pdi, parse_pdi
from muniment.identifiers.formats import token_for
from muniment.markup import escape
from muniment.names import Names, NewBinding
from muniment.objects import Datastream, didl_statement
from muniment.tape.records import STORE

if TYPE_CHECKING:
    from muniment.repository.store import Store

__all__ = [
    "assign", "bind", "bound", "is_pdi", "names_record", "open_names", "restore_names", "unused",
]  # fmt: skip

JOURNAL = "names.jsonl"
SIARD = "application/x-siard"
_LONGEST = 4 << 20  # bytes of the journal in one record
_NOT_XML = re.compile("[^\t\n\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
_BATCH = 1000


class Draft(Protocol):
    """An object that needs a name."""

    contents: tuple[str, ...]
    streams: tuple[Datastream, ...]
    pdi: str
    settle: Callable[[Store], str] | None


def _only(streams: Sequence[Datastream]) -> Datastream | None:
    """The file that an object is: its only one, or an archive before its large objects."""
    if len(streams) == 1 or (streams and streams[0].media_type == SIARD):
        return streams[0]
    return None


def media_type(streams: Sequence[Datastream]) -> str:
    """The format that a PDI names: that of the file that the object is, or of the package."""
    only = _only(streams)
    return "text/xml" if only is None else only.media_type.partition(";")[0].strip()


def assign(store: Store, series: str, drafts: Sequence[Draft]) -> None:
    """Give each draft its PDI: the next version of known content, or a new one."""
    latest: dict[str, str] = {}
    fresh: dict[str, list[Draft]] = defaultdict(list)
    counts = Counter(name for draft in drafts for name in draft.contents)
    named = store.catalogue.which_named(counts)
    for draft in drafts:
        if draft.settle is not None:
            draft.pdi = draft.settle(store)
            continue
        known = _known(store, draft, latest, named)
        if known:
            draft.pdi = _next_version(store, known, media_type(draft.streams))
        else:
            fresh[media_type(draft.streams)].append(draft)
        repeated = [name for name in draft.contents if counts[name] > 1]
        if repeated:  # the second one in this group must know the name of the first
            _mint(store, series, fresh)
            latest.update(dict.fromkeys(repeated, draft.pdi))
    _mint(store, series, fresh)


def _mint(store: Store, series: str, fresh: dict[str, list[Draft]]) -> None:
    for kind, drafts in fresh.items():
        if drafts:
            for draft, name in zip(drafts, unused(store, series, len(drafts), kind), strict=True):
                draft.pdi = name
    fresh.clear()


def unused(store: Store, series: str, count: int, kind: str) -> list[str]:
    """Mint names that nothing has, not even what was imported from a store of the same series."""
    names: list[str] = []
    while len(names) < count:
        minted = list(store.names.mint(series, count - len(names), kind).texts())
        taken = store.catalogue.which_named(name.rsplit(".", 2)[0] for name in minted)
        names += [name for name in minted if name.rsplit(".", 2)[0] not in taken]
    return names


def _known(store: Store, draft: Draft, latest: dict[str, str], named: set[str]) -> str:
    """Return the latest PDI of a draft's content; a PDI among its names must be known."""
    for name in draft.contents:
        if name in latest:
            return latest[name]
        if is_pdi(name):
            versions = store.versions(str(parse_pdi(name).generic))
            if not versions:
                raise NotFound(f"{name} names nothing in this store, so there is no new version")
            draft.contents = tuple(other for other in draft.contents if other != name)
            pdi = latest.get(str(parse_pdi(name).generic), versions[-1].pdi)
            latest[str(parse_pdi(name).generic)] = _raised(pdi)
            return pdi
        if name not in named:
            continue
        found = [each for each in store.catalogue.named(name, "content") if each.pdi]
        if found:
            return max((each.pdi for each in found), key=lambda pdi: _version(pdi))
    return ""


def is_pdi(name: str) -> bool:
    """Whether a content identifier is a PDI."""
    return name.lower().startswith(("pdi:", "urn:pdi:"))


def _version(pdi: str) -> int:
    return int(pdi.rpartition(".")[2])


def _raised(pdi: str) -> str:
    return f"{pdi.rpartition('.')[0]}.{_version(pdi) + 1}"


def _next_version(store: Store, pdi: str, media: str) -> str:
    token = token_for(media, store.names.rules().tokens) or pdi.rsplit(".", 2)[1]
    return f"{pdi.rsplit('.', 2)[0]}.{token}.{_version(pdi) + 1}"


def bound(
    pdi: Pdi | str, streams: Sequence[Datastream], package: str, sha256: str, length: int
) -> NewBinding:
    """Return what a PDI is bound to: the file that it names, or the package's document."""
    parsed = parse_pdi(pdi) if isinstance(pdi, str) else pdi
    if (only := _only(streams)) is not None:
        return NewBinding(parsed, bytes.fromhex(only.sha256), only.size, only.identifier)
    return NewBinding(parsed, bytes.fromhex(sha256), length, package)


def bind(store: Store, bindings: Sequence[NewBinding]) -> None:
    """Write bindings into the book; those that it has already change nothing."""
    for start in range(0, len(bindings), _BATCH):
        store.names.bind_many(bindings[start : start + _BATCH])


# The book on the tapes


def names_record(store: Store, package: str, created: str) -> tuple[bytes, int] | None:
    """Return a document with the next lines of the journal, and where it ends; None if none."""
    start = int(store.catalogue.state("names_end") or 0)
    with store.names.turn() as state:
        end = state.end.offset
    if end <= start:
        return None
    with (store.folder / "names" / JOURNAL).open("rb") as stream:
        stream.seek(start)
        data = stream.read(min(end - start, _LONGEST))
        while not data.endswith(b"\n"):
            data += stream.readline()
    text, coding = data.decode(), ""
    if _NOT_XML.search(text):
        text, coding = b64encode(data).decode(), ' encoding="base64"'
    document = (
        f'<mu:names xmlns:mu="{STORE}" store="{store.settings.id}" from="{start}" '
        f'to="{start + len(data)}"{coding}>'
        f"{escape(text)}</mu:names>"
    )
    return didl_statement(package, created, document.encode()), start + len(data)


def statement(document: bytes, name: str) -> etree._Element:
    """Return what a document of the store's own says."""
    found = etree.fromstring(document).find(f".//{{{STORE}}}{name}")
    return etree.Element(name) if found is None else found


def open_names(store: Store) -> Names:
    """Open the book of names, written again from the tapes if it is not there."""
    if not (store.folder / "names" / JOURNAL).exists():
        restore_names(store)
    return Names.open(store.folder / "names")


def restore_names(store: Store) -> None:
    """Write the journal again from the tapes, and add what was bound after its last lines."""
    pieces = []
    for found in store.catalogue.records(kind="names"):
        root = statement(store.read(found), "names")
        if root.get("store") != store.settings.id:
            continue  # it came with an imported tape
        text = root.text or ""
        data = b64decode(text) if root.get("encoding") == "base64" else text.encode()
        pieces.append((int(root.get("from", "0")), data))
    folder = store.folder / "names"
    folder.mkdir(exist_ok=True)
    end = 0
    if pieces:
        with new_file(folder / JOURNAL) as stream:
            for start, data in sorted(pieces):
                if start != end:
                    raise StoreError(f"the tapes lack the lines of the book of names from {end}")
                stream.write(data)
                end += len(data)
    else:
        Names.create(folder).close()
    store.catalogue.set_state("names_end", end)
    _catch_up(store, folder)


def _catch_up(store: Store, folder: Path) -> None:
    """Mint and bind again what the tapes know and the book does not."""
    missing: dict[tuple[str, str], list[NewBinding]] = defaultdict(list)
    with Names.open(folder) as names:
        if store.settings.series not in {series.name for series in names.all_series()}:
            names.add_series(store.settings.series)
        for found in store.catalogue.records(kind="object"):
            if not found.pdi:
                continue
            pdi = parse_pdi(found.pdi)
            if names.resolve(pdi).binding is None:
                thing = store.object(found)
                binding = bound(pdi, thing.streams, found.identifier, found.sha256, found.length)
                missing[f"{pdi.year}-{pdi.month}-{pdi.day}", pdi.series].append(binding)
    for (day, series), bindings in sorted(missing.items()):
        _mint_again(folder, day, series, bindings)


def _mint_again(folder: Path, day: str, series: str, bindings: list[NewBinding]) -> None:
    moment = datetime.fromisoformat(f"{day}T12:00:00+00:00").astimezone(UTC)
    serials = [int(each.pdi.unique_id) for each in bindings if each.pdi.unique_id.isdecimal()]
    with Names.open(folder, clock=lambda: moment) as names:
        try:
            first = names.mint(series, 1).first
            if max(serials, default=0) > first:
                names.mint(series, max(serials) - first)
            names.bind_many(bindings)
        except MunimentError:
            return  # the catalogue resolves them all the same

"""Citing documents and their parts in words that people can read in fifty years."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from muniment.errors import NotFound, UsageError
from muniment.fragments import extract
from muniment.identifiers import Pdi, Profile
from muniment.identifiers.database_parts import parse_place
from muniment.identifiers.fragments import format_position, functional_fragment
from muniment.names import Names
from muniment.names.content import digest_file, keep, open_kept
from muniment.siard import open_siard

__all__ = ["cite_part", "name_archive", "open_document", "title_of", "words_of"]

_DESCRIPTION = 120  # characters of it in a citation
_SCHEMES = {
    "char": "characters", "byte": "octets", "elt": "elements", "name": "elements by name",
    "rect": "rectangle", "sec": "seconds", "msec": "milliseconds", "crop": "part",
}  # fmt: skip


def open_document(names: Names, pdi: Pdi) -> Path:
    """Return the file that a name stands for, checked against its digest."""
    found = names.resolve(pdi.document)
    if found.binding is None:
        raise NotFound(f"nothing can be shown for {pdi.document}: it is {found.status}")
    return open_kept(names, found.binding)


def name_archive(names: Names, series: str, path: Path, by: str) -> Pdi:
    """Return the name of an archive, a new one if its octets have none yet."""
    known = names.find_archive(digest_file(path))
    if known is not None:
        return known
    title = archive_title(path)
    pdi = names.mint(series, format="siard", by="")[0]
    kept, length, location = keep(names, path)
    names.bind(pdi, kept, length, location, by=by)
    names.say(str(pdi), "title", title, by or "muniment")
    return pdi


def archive_title(path: Path) -> str:
    """Return what an archive calls its database, or else how it describes it."""
    with open_siard(path) as source:
        database = source.describe()
    lines = (database.description or "").strip().splitlines()
    return database.dbname.strip() or (lines[0][:_DESCRIPTION] if lines else path.stem)


def title_of(names: Names, pdi: Pdi, path: Path | None) -> str | None:
    """Return what a document is called: by an assertion, else by the archive that it is."""
    titles = names.assertions(str(pdi), "title", inherited=True)
    if titles:
        return str(titles[-1].value)
    return archive_title(path) if path is not None and pdi.format == "siard" else None


def cite_part(
    names: Names, text: str, opened: Callable[[Pdi], Path] | None = None
) -> tuple[Pdi, str]:
    """Return a citation of a document or a part of one, after checking that the part is there.

    ``opened`` gives documents that are kept elsewhere than beside the names, as files.
    """
    pdi = names.read(text, Profile.CITE)
    if pdi.citation is not None:
        raise UsageError(f"{pdi} is a citation already; check it with: muniment pdi check")
    found = names.resolve(pdi)
    if found.binding is None or found.pdi is None:
        raise NotFound(f"nothing can be shown for {pdi}: it is {found.status}")
    path = open_kept(names, found.binding) if opened is None else None
    if pdi.fragment is not None and opened is not None:
        path = opened(found.binding.pdi)
    title = title_of(names, found.binding.pdi, path)
    words = ["Document" if title is None else title]
    if pdi.fragment is not None:
        assert path is not None
        extract(path, pdi.media_type, pdi.fragment, strict=True)
        words += words_of(path, pdi)
    digest = found.binding.digest.hex()
    today = names.clock().date().isoformat()
    return (
        found.pdi,
        f"{', '.join(words)}. {found.pdi}. SHA-256 {digest}. Seen {today}.",
    )


def words_of(path: Path, pdi: Pdi) -> list[str]:
    """Put the names of schema, table and column beside their numbers."""
    fragment = pdi.fragment
    if fragment is None:
        return []
    if pdi.media_type != "application/x-siard":
        meant = functional_fragment(fragment, pdi.media_type)
        positions = ",".join(map(format_position, meant.positions))
        return [f"{_SCHEMES.get(str(meant.scheme), meant.scheme)} {positions}"]
    place = parse_place(fragment.positions[0])
    with open_siard(path) as source:
        schema = source.describe().schemas[place.schema]
    words = [schema.name]
    if place.table is not None:
        table = schema.tables[place.table]
        words[0] += f".{table.name}"
        if place.row is not None:
            words.append(f"row {place.row}")
        if place.column is not None:
            words.append(f"column {table.columns[place.column - 1].name}")
    return words

"""Citing documents and their parts in words that people can read in fifty years."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from muniment.errors import NotFound, UsageError
from muniment.fragments import extract
from muniment.identifiers import Pdi, Profile
from muniment.identifiers.database_parts import parse_place
from muniment.names import Names
from muniment.names.content import digest_file, keep, open_kept
from muniment.siard import open_siard

__all__ = ["cite_part", "name_archive", "open_document", "words_of"]


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
    with open_siard(path) as source:
        title = source.describe().dbname
    pdi = names.mint(series, format="siard", by="")[0]
    kept, length, location = keep(names, path)
    names.bind(pdi, kept, length, location, by=by)
    names.say(str(pdi), "title", title, by or "muniment")
    return pdi


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
    words = []
    titles = names.assertions(str(found.binding.pdi), "title", inherited=True)
    if titles:
        words.append(str(titles[-1].value))
    if pdi.fragment is not None:
        path = path if opened is None else opened(found.binding.pdi)
        assert path is not None
        extract(path, pdi.media_type, pdi.fragment, strict=True)
        words += words_of(path, pdi)
    digest = found.binding.digest.hex()
    today = names.clock().date().isoformat()
    return (
        found.pdi,
        f"{', '.join(words) or 'Document'}. {found.pdi}. SHA-256 {digest}. Seen {today}.",
    )


def words_of(path: Path, pdi: Pdi) -> list[str]:
    """Put the names of schema, table and column beside their numbers."""
    fragment = pdi.fragment
    if fragment is None or pdi.media_type != "application/x-siard":
        return [str(fragment)]
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

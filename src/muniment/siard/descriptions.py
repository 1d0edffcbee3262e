"""Descriptions in metadata.xml: found, read and set in place, all else left as it stands.

The XML is edited, not written anew from the model: what other makers put there stays.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from lxml import etree

from muniment.errors import SiardError, UsageError
from muniment.siard.metadata import parse_metadata, refuse_doctype
from muniment.siard.text import escape_metadata, unescape
from muniment.sql.original import notes_in, refuse_imitation, split_notes, with_words

__all__ = ["Place", "places", "set_descriptions"]

# Which elements may be described: its kind in a place's name, and the elements that stand before
# the description; where none are listed, the description comes last (metadata.xsd).
_KINDS: dict[str, tuple[str, frozenset[str]]] = {
    "siardArchive": ("database", frozenset({"dbname"})),
    "schema": ("schema", frozenset({"name", "folder"})),
    "type": ("type", frozenset()),
    "attribute": ("attribute", frozenset()),
    "table": ("table", frozenset({"name", "folder"})),
    "column": ("column", frozenset()),
    "primaryKey": ("primary-key", frozenset({"name"})),
    "foreignKey": ("foreign-key", frozenset()),
    "candidateKey": ("candidate-key", frozenset({"name"})),
    "checkConstraint": ("check", frozenset()),
    "trigger": ("trigger", frozenset()),
    "view": ("view", frozenset({"name", "query", "queryOriginal"})),
    "routine": ("routine", frozenset({"specificName", "name"})),
    "parameter": ("parameter", frozenset()),
    "user": ("user", frozenset()),
    "role": ("role", frozenset()),
}
_LISTS = {
    "schemas", "types", "attributes", "tables", "columns", "foreignKeys", "candidateKeys",
    "checkConstraints", "triggers", "views", "routines", "parameters", "users", "roles",
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Place:
    """Something that can be described: its kind, its name, and what is said about it.

    ``notes`` are what the archive itself says; they stay, whatever people write.
    """

    kind: str
    name: str
    description: str | None
    notes: tuple[str, ...] = ()

    def __str__(self) -> str:
        return f"{self.kind} {self.name}".strip()


def places(metadata: bytes) -> list[Place]:
    """Return everything in a metadata.xml that can be described, in its order."""
    return [place for place, _ in _walk(_parse(metadata))]


def set_descriptions(metadata: bytes, changes: Mapping[tuple[str, str], str]) -> bytes:
    """Return the metadata.xml with descriptions set, by kind and name; "" takes one away."""
    for (kind, name), words in changes.items():
        refuse_imitation(f"{kind} {name}".rstrip(), words)
    root = _parse(metadata)
    left = dict(changes)
    for place, element in list(_walk(root)):
        text = left.pop((place.kind, place.name), None)
        if text is not None:
            _set(element, text)
    if left:
        kind, name = next(iter(left))
        raise UsageError(f"the archive has no {kind} {name}".rstrip())
    changed: bytes = etree.tostring(
        root.getroottree(), encoding="UTF-8", xml_declaration=True, standalone=None
    )
    _prove(metadata, changed)
    return changed


def _parse(metadata: bytes) -> Any:
    refuse_doctype(metadata)
    parser = etree.XMLParser(
        resolve_entities=False, no_network=True, load_dtd=False, huge_tree=True
    )
    try:
        return etree.fromstring(metadata, parser)
    except etree.XMLSyntaxError as error:
        raise SiardError(f"metadata.xml is not well-formed XML: {error.msg}") from error


def _walk(element: Any, names: tuple[str, ...] = ()) -> Iterator[tuple[Place, Any]]:
    local = _local(element)
    if local in _KINDS:
        kind = _KINDS[local][0]
        own = _text(element, "specificName") or _text(element, "name") or ""
        path = names if local == "siardArchive" else (*names, own)
        if local == "column" and names and _local(_home(element)) == "view":
            kind = "view-column"
        text = _text(element, "description")
        words, notes = split_notes(text)[0], tuple(notes_in(text))
        yield Place(kind, ".".join(map(_spelt, path)), words, notes), element
        names = path
    for child in element:
        if isinstance(child.tag, str) and (_local(child) in _LISTS or _is_level(child, element)):
            yield from _walk(child, names)


def _is_level(child: Any, parent: Any) -> bool:
    """Whether an element is one that can be described, and not the column of a key, say."""
    local = _local(child)
    if local not in _KINDS or not len(child):
        return False
    return _local(parent) in _LISTS or local == "primaryKey"


def _home(element: Any) -> Any:
    return element.getparent().getparent()


def _spelt(name: str) -> str:
    """A name as part of a place: quoted where a full stop would divide it."""
    if "." in name or '"' in name or not name:
        return '"' + name.replace('"', '""') + '"'
    return name


def _local(element: Any) -> str:
    return str(etree.QName(element).localname) if isinstance(element.tag, str) else ""


def _find(element: Any, name: str) -> Any:
    return next((child for child in element if _local(child) == name), None)


def _text(element: Any, name: str) -> str | None:
    found = _find(element, name)
    return None if found is None else unescape(found.text or "")


def _set(element: Any, words: str) -> None:
    found = _find(element, "description")
    text = with_words(None if found is None else unescape(found.text or ""), words or None)
    if not text:
        if found is not None:
            element.remove(found)
        return
    if found is None:
        home = etree.QName(element).namespace
        found = etree.Element(etree.QName(home, "description"))
        _insert(element, found)
    found.text = escape_metadata(text)


def _insert(element: Any, new: Any) -> None:
    before = _KINDS[_local(element)][1]
    children = [child for child in element if isinstance(child.tag, str)]
    leading = [child for child in children if _local(child) in before] if before else children
    if not leading:
        element.insert(0, new)
        return
    last = leading[-1]
    new.tail, at = last.tail, element.index(last)
    if at + 1 == len(element) and at:
        last.tail = element[at - 1].tail
    element.insert(at + 1, new)


def _prove(before: bytes, after: bytes) -> None:
    """Raise unless the definitions differ in their descriptions alone."""
    if _bare(parse_metadata(before)) != _bare(parse_metadata(after)):
        raise SiardError("the descriptions could not be set without changing something else")


def _bare(value: Any) -> Any:
    """A part of the model without its descriptions."""
    if isinstance(value, tuple):
        return tuple(map(_bare, value))
    if hasattr(value, "__dataclass_fields__"):
        return type(value), tuple(
            _bare(getattr(value, name))
            for name in value.__dataclass_fields__
            if name != "description"
        )
    return value

"""Elements of HTML, SGML and XML documents (draft 3.4.2).

Start tags are counted from 0 in the order of the source; nothing that a parser would add counts. An
element reaches from its start tag to its end tag, or to what closes it where that is left out.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import Counter
from dataclasses import dataclass
from xml.parsers import expat

from muniment.errors import FragmentError
from muniment.fragments.result import Extract, not_possible, out_of_range
from muniment.fragments.tags import Tag, attribute, tags
from muniment.fragments.text import canonical_text
from muniment.identifiers.characters import decode
from muniment.identifiers.fragments import Fragment

__all__ = ["Element", "elements"]

_VOID = frozenset(
    """area base basefont bgsound br col embed frame hr img input keygen link meta param source
    track wbr""".split()  # noqa: SIM905 - a list of names reads better so
)
_BLOCKS = frozenset(
    """address article aside blockquote div dl fieldset footer form h1 h2 h3 h4 h5 h6 header hr main
    nav ol p pre section table ul""".split()  # noqa: SIM905 - a list of names reads better so
)
# A start tag of the second kind ends an open element of the first.
_CLOSES = {
    "p": _BLOCKS, "li": {"li"}, "dt": {"dt", "dd"}, "dd": {"dt", "dd"}, "option": {"option"},
    "tr": {"tr", "tbody", "tfoot"}, "td": {"td", "th", "tr"}, "th": {"td", "th", "tr"},
    "thead": {"tbody", "tfoot"}, "tbody": {"tbody", "tfoot"}, "head": {"body"},
}  # fmt: skip


@dataclass(slots=True)
class Element:
    """One element: its extent in the text, its parent by number, its name attribute."""

    tag: str
    start: int
    end: int
    parent: int
    name: str | None = None


def elements(data: bytes, media: str, fragment: Fragment, strict: bool) -> Extract:
    """Return the source from one element up to and including another."""
    kind = media.partition(";")[0]
    words = canonical_text(data, media)
    found = _xml(words) if "xml" in kind else _html(words, kind == "text/sgml")
    first, last = (_number(found, fragment, str(each)) for each in fragment.positions)
    start, end = found[first].start, found[last].end
    if end < start:
        raise out_of_range("the last element ends before the first begins")
    remarks: tuple[str, ...] = ()
    if found[first].parent != found[last].parent:
        if strict:
            raise FragmentError("the part is not made of whole elements", 409, "E_FRAG_ILLEGAL")
        remarks = ("the part is not made of whole elements (D_FRAG_ILLEGAL)",)
    return Extract(f"{kind};charset=utf-8", words[start:end].encode(), remarks)


def _number(found: list[Element], fragment: Fragment, position: str) -> int:
    if fragment.scheme == "elt":
        if int(position) >= len(found):
            raise out_of_range(f"there is no element {position}: there are {len(found)}")
        return int(position)
    wanted = decode(position)
    for number, element in enumerate(found):
        if element.name == wanted:
            return number
    raise out_of_range(f"no element has the name {wanted!r}")


class _Tree:
    """Finds the extents of elements in HTML or SGML, tag by tag."""

    def __init__(self, words: str, sgml: bool) -> None:
        self.found: list[Element] = []
        self._words, self._sgml = words, sgml
        self._open: list[int] = []
        self._counts: Counter[str] = Counter()  # of the open ones, by name

    def start(self, tag: Tag) -> None:
        while self._open and tag.name in _CLOSES.get(self.found[self._open[-1]].tag, ()):
            self._close(tag.start)
        parent = self._open[-1] if self._open else -1
        name = attribute(self._words, tag, "name")
        self.found.append(Element(tag.name, tag.start, tag.end, parent, name))
        if not tag.empty and (self._sgml or tag.name not in _VOID):
            self._open.append(len(self.found) - 1)
            self._counts[tag.name] += 1

    def end(self, tag: Tag) -> None:
        if not self._counts[tag.name]:
            return  # it ends nothing that is open
        while self.found[self._open[-1]].tag != tag.name:
            self._close(tag.start)
        self._close(tag.end)

    def finish(self) -> None:
        while self._open:
            self._close(len(self._words))

    def _close(self, at: int) -> None:
        element = self.found[self._open.pop()]
        element.end = at
        self._counts[element.tag] -= 1


def _html(words: str, sgml: bool) -> list[Element]:
    tree = _Tree(words, sgml)
    for tag in tags(words, sgml):
        (tree.end if tag.closing else tree.start)(tag)
    tree.finish()
    return tree.found


_TAG_END = re.compile(rb"""(?:[^>"']|"[^"]*"|'[^']*')*+>""")


def _xml(words: str) -> list[Element]:
    """Find the elements of an XML document; entities of its own are refused."""
    # The declaration may name another encoding than that of the text at hand.
    octets = words.encode()
    found: list[Element] = []
    open_: list[int] = []
    parser = expat.ParserCreate("utf-8")

    def start(tag: str, attributes: dict[str, str]) -> None:
        at = parser.CurrentByteIndex
        parent = open_[-1] if open_ else -1
        found.append(Element(tag, at, at, parent, attributes.get("name")))
        open_.append(len(found) - 1)

    def end(_tag: str) -> None:
        at = parser.CurrentByteIndex
        match = _TAG_END.match(octets, at)
        found[open_.pop()].end = match.end() if match else len(octets)

    def entity(*_: object) -> None:
        raise not_possible("the document declares entities of its own, which are not read")

    parser.StartElementHandler, parser.EndElementHandler = start, end
    parser.EntityDeclHandler = entity
    try:
        parser.Parse(octets, True)
    except expat.ExpatError as error:
        raise not_possible(f"the document is no well-formed XML: {error}") from None
    if len(octets) != len(words):
        _count_characters(words, found)
    return found


def _count_characters(words: str, found: list[Element]) -> None:
    """Turn offsets of octets into offsets of characters."""
    chunk = 1024
    octets = [0]
    for at in range(0, len(words), chunk):
        octets.append(octets[-1] + len(words[at : at + chunk].encode()))

    def characters(offset: int) -> int:
        number = bisect_right(octets, offset) - 1
        piece = words[number * chunk : (number + 1) * chunk].encode()
        return number * chunk + len(piece[: offset - octets[number]].decode("utf-8", "ignore"))

    for element in found:
        element.start, element.end = characters(element.start), characters(element.end)

"""The tags of HTML and SGML as they stand in the source, found in one pass.

The rules are those of the HTML standard for what is a tag, a comment, or text that looks like one.
Each search that finds nothing ends the document, so the time is that of its length.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from dataclasses import dataclass

__all__ = ["Tag", "attribute", "tags"]

_START = re.compile(r"<(?:(!--)|([!?])|(/?)([A-Za-z][^\s/>]*+)|/)")
# A value in quotes may hold what would end a tag; where its end is missing, so is that of the tag.
_REST = re.compile(r"""(?:[^>=]++|=\s*+(?:"[^"]*+"|'[^']*+'|(?!["'])))*+>""")
_ATTRIBUTE = re.compile(
    r"""([^\s/>=][^\s/>=]*+)(?:\s*+=\s*+(?:"([^"]*+)"|'([^']*+)'|([^\s>]*+)))?+"""
)
# Elements whose content is text up to their end tag, whatever it looks like.
_TEXT = {
    name: re.compile(rf"(?i)</{name}(?=[\s/>])")
    for name in ("script", "style", "textarea", "title", "xmp", "iframe", "noembed", "noframes")
}


@dataclass(frozen=True, slots=True)
class Tag:
    """One tag: where it begins and ends, its name in lower case, and which kind it is."""

    name: str
    start: int
    end: int
    closing: bool
    empty: bool


def tags(words: str, sgml: bool = False) -> Iterator[Tag]:
    """Yield the tags of a document in the order of its source."""
    at, subsets = 0, True
    while (at := words.find("<", at)) >= 0:
        match = _START.match(words, at)
        if match is None:
            at += 1
            continue
        comment, other, slash, name = match.groups()
        if name is None:
            end, subsets = _no_tag(words, at, bool(comment), bool(other), subsets)
        else:
            rest = _REST.match(words, match.end())
            end = rest.end() if rest else -1
        if end < 0:
            return
        if name is not None:
            tag = Tag(name.lower(), at, end, bool(slash), words[end - 2] == "/")
            yield tag
            if not sgml and not tag.closing and not tag.empty and tag.name in _TEXT:
                close = _TEXT[tag.name].search(words, end)
                end = close.start() if close else len(words)
        at = end


def _no_tag(words: str, at: int, comment: bool, other: bool, subsets: bool) -> tuple[int, bool]:
    """Return where a comment or a declaration ends, and whether more may have a subset in [ ]."""
    if comment:
        end = words.find("-->", at + 2)  # <!--> is one, too
        return (end + 3 if end >= 0 else -1), subsets
    end = words.find(">", at)
    if other and subsets and "[" in words[at : at + 1000].partition(">")[0]:
        close = words.find("]>", at)
        if close >= 0:
            return close + 2, subsets
        subsets = False
    return (end + 1 if end >= 0 else -1), subsets


def attribute(words: str, tag: Tag, wanted: str) -> str | None:
    """Return the value of an attribute of a tag; the first one counts."""
    text = words[tag.start + 1 + len(tag.name) : tag.end - 1]
    if wanted not in text.lower():
        return None
    for match in _ATTRIBUTE.finditer(text):
        if match[1].lower() == wanted:
            return html.unescape(match[2] or match[3] or match[4] or "")
    return None

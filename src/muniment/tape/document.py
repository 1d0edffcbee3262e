"""A record of a tape as a document of its own, readable without the tape around it."""

from __future__ import annotations

import re

from muniment.markup import quoteattr
from muniment.tape.records import Namespaces, TapeHead

__all__ = ["standalone"]

_START_TAG = re.compile(r"""<[^\s/>]+((?:\s+[^\s=<>/]+\s*=\s*(?:"[^"]*"|'[^']*'))*)\s*/?>""")
_DECLARED = re.compile(r"\sxmlns(?::([^\s=]+))?\s*=")
_PASSED_OVER = re.compile(r"<!--.*?-->|<!\[CDATA\[.*?\]\]>|<\?.*?\?>|&([^\s&;#]+);", re.DOTALL)


def standalone(data: bytes, head: TapeHead, namespaces: Namespaces = ()) -> bytes:
    """Return a record's bytes as they are on the tape, or if it leans on the tape, as UTF-8 XML.

    A record leans on its tape if the tape is not in UTF-8, if it uses prefixes or the default
    namespace that the elements around it declare, or entities that the tape defines.
    """
    inherited = {**dict(head.namespaces), **dict(namespaces)}
    if head.encoding == "utf-8" and not head.entities and _stands(data, inherited):
        return data
    text = data.decode(_codec(head))
    if head.entities:
        text = _PASSED_OVER.sub(lambda match: _replaced(match, head.entities), text)
    return _with_namespaces(text, inherited).encode()


def _codec(head: TapeHead) -> str:
    if not head.encoding.startswith("utf-16"):
        return head.encoding
    return "utf-16-be" if head.prologue[:2] in (b"\xfe\xff", b"\x00<") else "utf-16-le"


def _stands(data: bytes, inherited: dict[str, str]) -> bool:
    """Whether a record, by a quick look that errs on the safe side, needs nothing from around."""
    if any(prefix and prefix.encode() + b":" in data for prefix in inherited):
        return False
    return not inherited.get("")


def _replaced(match: re.Match[str], entities: dict[str, str]) -> str:
    name = match[1]
    return entities[name] if name in entities else match[0]


def _with_namespaces(text: str, inherited: dict[str, str]) -> str:
    tag = _START_TAG.match(text)
    if tag is None:
        return text
    declared = set(_DECLARED.findall(tag[1]))
    missing = [
        f" xmlns:{prefix}={quoteattr(uri)}" if prefix else f" xmlns={quoteattr(uri)}"
        for prefix, uri in inherited.items()
        if prefix not in declared and ((f"{prefix}:" in text) if prefix else uri)
    ]
    name_end = re.match(r"<[^\s/>]+", text)
    assert name_end is not None  # the tag matched
    return text[: name_end.end()] + "".join(missing) + text[name_end.end() :]

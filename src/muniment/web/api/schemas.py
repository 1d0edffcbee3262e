"""The shapes that the API takes and gives, as JSON Schemas."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from muniment.identifiers.formats import TOKENS

__all__ = [
    "ACCESS", "ASSERTION", "ASSERTIONS", "BINDING", "CITATION", "ENTRY", "LOCATED", "MINTED",
    "NAME", "NEW_ASSERTION", "NEW_BINDING", "NEW_NAME", "NEW_NAMES", "OBJECT", "OBJECTS", "PDI",
    "PROBLEM", "QUOTATION", "REGISTRY", "REGISTRY_ACTS", "RESOLUTION", "SERIES", "STORE",
    "VERSION", "Schema", "array", "maybe", "text", "thing",
]  # fmt: skip

Schema = Mapping[str, Any]


def text(longest: int = 2000, **more: Any) -> Schema:
    """A text that is not empty."""
    return {"type": "string", "minLength": 1, "maxLength": longest, **more}


def thing(required: Mapping[str, Any], **optional: Any) -> Schema:
    """An object with parts that are always there, and others that may be."""
    return {
        "type": "object", "properties": {**required, **optional}, "required": list(required),
    }  # fmt: skip


def body(required: Mapping[str, Any], **optional: Any) -> Schema:
    """An object that is sent to us: with nothing else in it."""
    return {**thing(required, **optional), "additionalProperties": False}


def array(items: Schema, **more: Any) -> Schema:
    """A list."""
    return {"type": "array", "items": items, **more}


def maybe(kind: str) -> Schema:
    """A value or null."""
    return {"type": [kind, "null"]}


_TEXT, _COUNT, _FLAG = {"type": "string"}, {"type": "integer", "minimum": 0}, {"type": "boolean"}
_SHA256 = {"type": "string", "pattern": "^([0-9a-f]{64})?$"}
_DAY = "[0-9]{4}/[0-9]{2}/[0-9]{2}"
_SERIES = r"([A-Za-z0-9-]{1,63}\.){1,5}[A-Za-z]{2}"
_TOKENS = "|".join(sorted(token for token in TOKENS if token.isalnum()))
NAME = text(600, pattern="^[!-~]+$")
SERIES = text(255, pattern=f"^{_SERIES}$")
PDI = text(600, pattern=f"^(urn:)?pdi://{_SERIES}/{_DAY}/[!-~]+$")
DOCUMENT = text(
    600, pattern=f"^pdi://{_SERIES}/{_DAY}/[A-Za-z0-9_-]+\\.[a-z0-9-]+(\\.[1-9][0-9]{{0,5}})?$"
)
_LEVEL = {"type": "string", "enum": ["open", "staff", "closed"]}

PROBLEM = thing({"status": {"type": "integer"}, "title": _TEXT})
STORE = thing(
    {
        "id": _TEXT, "created": _TEXT, "series": _TEXT, "base_url": _TEXT, "access": _LEVEL,
        "counts": thing(dict.fromkeys(("records", "objects", "bytes", "datastreams"), _COUNT)),
        "document_series": array(
            thing({"name": _TEXT, "state": _TEXT, "title": _TEXT, "steward": _TEXT})
        ),
    }
)  # fmt: skip
VERSION = thing(
    {"package": maybe("string"), "date": _TEXT, "kind": _TEXT, "pdi": maybe("string"),
     "access": _LEVEL},
    bytes=_COUNT, datastreams=_COUNT, tape=_TEXT, base_url=_TEXT, url=_TEXT,
)  # fmt: skip
DATASTREAM = thing(
    {"arc": _TEXT, "base_url": _TEXT, "url": _TEXT, "media_type": _TEXT, "bytes": _COUNT,
     "sha256": _SHA256}
)  # fmt: skip
LOCATED = thing({"id": _TEXT, "versions": array(VERSION)}, datastream=DATASTREAM)
OBJECTS = thing({"objects": array(VERSION), "next": maybe("string")})
OBJECT = thing(
    {
        **VERSION["properties"],
        "contents": array(_TEXT),
        "metadata": array(thing({"name": _TEXT, "value": _TEXT})),
        "files": array(
            thing({"id": _TEXT, "path": _TEXT, "media_type": _TEXT, "sha256": _SHA256,
                   "bytes": {"type": "integer"}, "url": maybe("string")})
        ),
    }
)  # fmt: skip
ACCESS = thing(
    {"access": _LEVEL, "subject": _TEXT, "reason": maybe("string"), "law": maybe("string"),
     "at": maybe("string")}
)  # fmt: skip
BINDING = thing(
    {"pdi": _TEXT, "media_type": maybe("string"), "sha256": _SHA256, "length": _COUNT,
     "location": _TEXT, "bound": _TEXT}
)  # fmt: skip
RESOLUTION = thing(
    {
        "asked": _TEXT,
        "status": {"enum": ["bound", "minted", "withdrawn", "elsewhere", "pattern", "unknown"]},
        "pdi": maybe("string"),
        "binding": {"anyOf": [BINDING, {"type": "null"}]},
        "renditions": array(BINDING),
        "latest_version": maybe("integer"),
        "resolver": maybe("string"),
        "reason": maybe("object"),
        "remarks": array(_TEXT),
        "access": _LEVEL,
    }
)
CITATION = thing({"pdi": _TEXT, "citation": _TEXT})
QUOTATION = thing(
    {"citing": _TEXT, "cited": _TEXT, "place": _TEXT, "verdict": {"enum": ["verified", "differs"]},
     "found": {"type": "object"}, "expected": {"type": "object"}, "inner": maybe("object")}
)  # fmt: skip
NEW_NAMES = body(
    {},
    series=SERIES,
    format=text(100, pattern=f"^({_TOKENS}|[a-z]{{2,20}}/[a-z][a-z0-9.+-]*)$"),
    count={"type": "integer", "minimum": 1, "maximum": 1000},
)
NEW_NAME = body(
    {"id": text(100, pattern="^[A-Za-z0-9_-]+$")},
    series=SERIES, format=NEW_NAMES["properties"]["format"],
)  # fmt: skip
MINTED = thing({"pdis": array(_TEXT)})
NEW_BINDING = body({"pdi": DOCUMENT, "datastream": NAME}, new_version=_FLAG)
ASSERTION = thing(
    {"subject": _TEXT, "predicate": _TEXT, "value": {}, "by": _TEXT, "at": _TEXT,
     "line": {"type": "integer"}}
)  # fmt: skip
ASSERTIONS = thing({"assertions": array(ASSERTION), "complete": _FLAG})
NEW_ASSERTION = body({"subject": NAME, "predicate": text(200, pattern="^[!-~]+$"), "value": {}})
ENTRY = thing(
    {"kind": _TEXT, "name": _TEXT, "state": _TEXT, "steward": _TEXT, "version": _COUNT,
     "reserved_until": maybe("string"), "observed": array(_TEXT),
     "history": array({"type": "object"})},
    digest=maybe("string"),
)  # fmt: skip
REGISTRY = thing(
    {"root": _TEXT, "entries": array(ENTRY), "series": array({"type": "object"}),
     "fragment_schemes": array({"type": "object"})}
)  # fmt: skip
_WORDS = {"type": "string", "maxLength": 2000}
_TEXTS = {"type": "object", "additionalProperties": _TEXT}
_THINGS = {"type": "object", "additionalProperties": {"type": "object"}}
_PAIR = array(_TEXT, minItems=2, maxItems=2)
_REGISTRATION = {  # muniment registry template prints a whole one
    "type": "object",
    "properties": {
        "snid": text(32), "title": _TEXT, "description": _TEXT, "sections": _TEXTS,
        "syntax": {
            "type": "object",
            "properties": {
                "abnf": _TEXT, "start": _TEXT, "max_octets": {"type": "integer"}, "percent": _FLAG,
                "assignable": {"type": "object"}, "limits": _THINGS,
            },
        },
        "equivalence": {
            "type": "object",
            "properties": {
                "steps": array({"type": "string", "enum": ["case", "hex-case"]}),
                "equal": array(_PAIR), "different": array(_PAIR),
            },
        },
        "attributes": _THINGS, "assignment": {"type": "object"}, "services": {"type": "object"},
        "examples": {
            "type": "object", "properties": {"valid": array(_TEXT), "invalid": array(_TEXT)},
        },
    },
}  # fmt: skip
_DAYS = {"type": "integer", "minimum": 1, "maximum": 3660}
_ACTS: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "notice": ({}, {}), "withdraw": ({}, {}), "close": ({}, {}), "steward": ({}, {}),
    "freeze": ({}, {}), "release": ({}, {}),
    "observe": ({"sample": text(500)}, {}),
    "reserve": ({}, {"days": _DAYS}),
    "extend": ({}, {"days": _DAYS}),
    "propose": ({"document": _REGISTRATION}, {}),
    "decide": ({"approve": _FLAG}, {"waiver": _WORDS}),
    "hand-on": ({"to": text(500)}, {}),
}  # fmt: skip
REGISTRY_ACTS = {
    action: body(required, **optional, reason=_WORDS)
    for action, (required, optional) in _ACTS.items()
}

"""Assertions: statements about names, made by somebody at some time, and never taken back.

A statement about a more general name holds for all that it covers: series, then interval, document,
version, format, fragment. The most specific one wins; all are shown (draft 2.5, 3.6.5).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from typing import TYPE_CHECKING, Any

from muniment.errors import UsageError
from muniment.identifiers import Pdi, parse_pdi, parse_series
from muniment.identifiers.pdi import WILDCARD
from muniment.names.values import Assertion

if TYPE_CHECKING:
    from muniment.names.book import Names

__all__ = [
    "PREDICATES", "as_json_ld", "covering", "covering_pdi", "find", "say", "say_many",
    "subject_key", "with_value",
]  # fmt: skip

# What the draft and the citation of queries need; others are allowed.
PREDICATES = {
    "type": "http://www.w3.org/1999/02/22-rdf-syntax-ns#type",
    "title": "http://purl.org/dc/terms/title",
    "creator": "http://purl.org/dc/terms/creator",
    "created": "http://purl.org/dc/terms/created",
    "extent": "http://purl.org/dc/terms/extent",
    "source": "http://purl.org/dc/terms/source",
    "replaces": "http://purl.org/dc/terms/replaces",
    "isPartOf": "http://purl.org/dc/terms/isPartOf",
    "sameAs": "http://www.w3.org/2002/07/owl#sameAs",
    "accessRights": "http://purl.org/dc/terms/accessRights",
    "wasDerivedFrom": "http://www.w3.org/ns/prov#wasDerivedFrom",
    "wasAttributedTo": "http://www.w3.org/ns/prov#wasAttributedTo",
    "signature": "https://w3id.org/security#proof",
}
_OWN = "urn:example:muniment:"


def subject_key(subject: str, read: Callable[[str], Pdi] = parse_pdi) -> str:
    """Return the key under which statements about a subject are found.

    A subject is a PDI of any kind, a pattern of an interval (``pdi://a.ch/1997/*/*/*``), or a
    series (``pdi://a.ch/``).
    """
    if subject.endswith("/") or ("/" not in subject and ":" not in subject):
        return f"pdi://{parse_series(subject)}/"
    return read(subject).functional_key


def say(names: Names, subject: str, predicate: str, value: Any, by: str) -> Assertion:
    """Write a statement down."""
    return say_many(names, [(subject, predicate, value)], by)[0]


def say_many(names: Names, statements: Iterable[tuple[str, str, Any]], by: str) -> list[Assertion]:
    """Write several statements down together."""
    records = []
    for subject, predicate, value in statements:
        if not predicate.strip() or any(c.isspace() for c in predicate):
            raise UsageError(f"{predicate!r} is not a predicate: one word, or a URI")
        key = subject_key(subject, names.read)
        record = {"kind": "assert", "subject": key, "predicate": predicate}
        records.append({**record, "value": value, "by": by})
    names.write(records)
    at = names.stamp()
    return [Assertion(r["subject"], r["predicate"], r["value"], by, at) for r in records]


def find(
    names: Names, subject: str | None, predicate: str | None, inherited: bool
) -> list[Assertion]:
    """Return statements, from the most general subject to the most specific."""
    index = names.current()
    if subject is None:
        return list(_select(index.db, None, predicate))
    own = subject_key(subject, names.read)
    keys = list(dict.fromkeys(covering(own, names.read))) if inherited else [own]
    return [each for key in keys for each in _select(index.db, key, predicate)]


def _select(db: Any, subject: str | None, predicate: str | None) -> Iterator[Assertion]:
    rows = db.execute(
        "SELECT subject, predicate, value, actor, at, line FROM assertion "
        "WHERE (?1 IS NULL OR subject=?1) AND (?2 IS NULL OR predicate=?2) ORDER BY line",
        (subject, predicate),
    )
    for row in rows.fetchall():
        yield Assertion(row[0], row[1], json.loads(row[2]), row[3], row[4], row[5])


def with_value(names: Names, predicate: str, value: Any) -> list[Assertion]:
    """Return the statements that a predicate has a value, oldest first."""
    rows = names.current().db.execute(
        "SELECT subject, predicate, value, actor, at, line FROM assertion "
        "WHERE predicate=? AND value=? ORDER BY line",
        (predicate, json.dumps(value, sort_keys=True)),
    )
    return [Assertion(r[0], r[1], json.loads(r[2]), r[3], r[4], r[5]) for r in rows.fetchall()]


def covering(subject: str, read: Callable[[str], Pdi] = parse_pdi) -> Iterator[str]:
    """Yield the subjects that cover one, the most general first."""
    own = subject_key(subject, read)
    if own.endswith("/"):
        yield from _series(own.removeprefix("pdi://").rstrip("/"))
    else:
        yield from covering_pdi(read(own))
    yield own


def _series(series: str) -> Iterator[str]:
    parts = series.split(".")
    for count in range(len(parts) - 2, -1, -1):
        yield f"pdi://{'.'.join(parts[count:])}/"


def covering_pdi(pdi: Pdi) -> Iterator[str]:
    """Yield the subjects that cover a document, itself included; quick, since doors ask often."""
    yield from _series(pdi.series)
    stem, every = f"pdi://{pdi.series}/", WILDCARD
    yield f"{stem}{every}/{every}/{every}/{every}"
    yield f"{stem}{pdi.year}/{every}/{every}/{every}"
    yield f"{stem}{pdi.year}/{pdi.month}/{every}/{every}"
    day = f"{stem}{pdi.year}/{pdi.month}/{pdi.day}/"
    yield f"{day}{every}"
    if pdi.wildcards:
        return
    generic = f"{day}{pdi.unique_id}"
    yield generic
    if pdi.version is not None:
        yield f"{generic}.{every}.{pdi.version}"
    if pdi.format is not None:
        yield f"{generic}.{pdi.format}"
        if pdi.version is not None:
            yield f"{generic}.{pdi.format}.{pdi.version}"


def as_json_ld(assertions: Iterable[Assertion]) -> dict[str, Any]:
    """Return statements as JSON-LD: each one reified, with who made it and when."""
    context: dict[str, Any] = {
        "@vocab": _OWN,
        "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
        "prov": "http://www.w3.org/ns/prov#",
        "xsd": "http://www.w3.org/2001/XMLSchema#",
        "statements": "@graph",
        "subject": {"@id": "rdf:subject", "@type": "@id"},
        "predicate": {"@id": "rdf:predicate", "@type": "@vocab"},
        "object": {"@id": "rdf:object"},
        "by": {"@id": "prov:wasAttributedTo"},
        "at": {"@id": "prov:generatedAtTime", "@type": "xsd:dateTime"},
        **PREDICATES,
    }
    del context["statements"]
    graph = [
        {
            "@id": f"_:s{each.line}",
            "@type": "rdf:Statement",
            "subject": each.subject,
            "predicate": each.predicate,
            "object": _object(each.value),
            "by": each.actor,
            "at": each.at,
        }
        for each in assertions
    ]
    return {"@context": context, "@graph": graph}


def _object(value: Any) -> Any:
    if isinstance(value, str) and value.startswith(("pdi://", "urn:", "http://", "https://")):
        return {"@id": value}
    if isinstance(value, (dict, list)):
        return {"@type": "@json", "@value": value}
    return value

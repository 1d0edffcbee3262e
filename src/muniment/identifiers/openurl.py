"""OpenURL 1.0 (Z39.88-2004) in its key/encoded-value form: a ContextObject in a query string.

Six entities (referent, referring entity, requester, service type, resolver, referrer), each by
identifiers, by metadata in a named format, by reference, or by private data.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import parse_qsl, quote, urlencode

from muniment.identifiers.problems import Problem

__all__ = ["ENTITIES", "ContextObject", "Entity", "format_kev", "parse_kev"]

VERSION = "Z39.88-2004"
KEV = "info:ofi/fmt:kev:mtx:ctx"
ENTITIES = {
    "rft": "referent", "rfe": "referring entity", "req": "requester", "svc": "service type",
    "res": "resolver", "rfr": "referrer",
}  # fmt: skip
_MOST, _LONGEST = 1000, 1 << 20  # pairs, and characters of a query string
_ADMINISTRATIVE = ("ctx_id", "ctx_tim", "ctx_enc")


@dataclass(frozen=True, slots=True)
class Entity:
    """What is said about one entity."""

    ids: tuple[str, ...] = ()
    value_format: str | None = None
    metadata: tuple[tuple[str, str], ...] = ()
    reference_format: str | None = None
    reference: str | None = None
    data: str | None = None

    def first(self, key: str) -> str | None:
        """Return the first value of a metadata key."""
        return next((value for name, value in self.metadata if name == key), None)


@dataclass(frozen=True, slots=True)
class ContextObject:
    """A request: the referent, and who asks whom for what about it."""

    entities: tuple[tuple[str, Entity], ...]
    administrative: tuple[tuple[str, str], ...] = ()
    foreign: tuple[tuple[str, str], ...] = ()

    def entity(self, prefix: str) -> Entity:
        """Return an entity by its prefix; one that was not mentioned is empty."""
        return dict(self.entities).get(prefix, Entity())

    @property
    def referent(self) -> Entity:
        """What the request is about."""
        return self.entity("rft")


def parse_kev(query: str) -> ContextObject:
    """Read a ContextObject from a query string, or raise IdentifierError.

    >>> parse_kev("url_ver=Z39.88-2004&rft_id=info%3Apmid%2F1").referent.ids
    ('info:pmid/1',)
    """
    pairs = _pairs(query)
    for key in ("url_ver", "ctx_ver"):
        for version in pairs_of(pairs, key):
            if version != VERSION:
                message = f"{key}={version} is not OpenURL 1.0, whose version is {VERSION}"
                raise Problem("E_OPENURL_VERSION", message).error()
    entities = tuple((prefix, _entity(pairs, prefix)) for prefix in ENTITIES)
    known = {"url_ver", "url_tim", "url_ctx_fmt", "ctx_ver", *_ADMINISTRATIVE}
    return ContextObject(
        tuple((prefix, entity) for prefix, entity in entities if entity != Entity()),
        tuple((key, value) for key, value in pairs if key in _ADMINISTRATIVE),
        tuple((k, v) for k, v in pairs if k not in known and k[:3] not in ENTITIES),
    )


def _pairs(query: str) -> list[tuple[str, str]]:
    if len(query) > _LONGEST:
        raise Problem("E_LENGTH", f"an OpenURL has at most {_LONGEST} characters here").error()
    try:
        return parse_qsl(query, keep_blank_values=True, max_num_fields=_MOST, errors="strict")
    except UnicodeDecodeError:
        raise Problem("E_OPENURL_ENCODING", "the escapes are not UTF-8").error() from None
    except ValueError:
        raise Problem("E_OPENURL_SIZE", f"there are more than {_MOST} keys").error() from None


def pairs_of(pairs: list[tuple[str, str]], key: str) -> Iterator[str]:
    """Yield the values of a key."""
    return (value for name, value in pairs if name == key)


def _entity(pairs: list[tuple[str, str]], prefix: str) -> Entity:
    def one(key: str) -> str | None:
        values = list(pairs_of(pairs, f"{prefix}_{key}"))
        if len(values) > 1:
            message = f"{prefix}_{key} is given {len(values)} times"
            raise Problem("E_OPENURL_REPEATED", message).error()
        return values[0] if values else None

    dot = f"{prefix}."
    return Entity(
        tuple(pairs_of(pairs, f"{prefix}_id")),
        one("val_fmt"),
        tuple((key.removeprefix(dot), value) for key, value in pairs if key.startswith(dot)),
        one("ref_fmt"),
        one("ref"),
        one("dat"),
    )


def format_kev(request: ContextObject) -> str:
    """Return a ContextObject as the query string of an OpenURL."""
    pairs = [("url_ver", VERSION), ("url_ctx_fmt", KEV), ("ctx_ver", VERSION)]
    pairs += request.administrative
    for prefix, entity in request.entities:
        pairs += [(f"{prefix}_id", each) for each in entity.ids]
        single = (
            ("val_fmt", entity.value_format), ("ref_fmt", entity.reference_format),
            ("ref", entity.reference), ("dat", entity.data),
        )  # fmt: skip
        pairs += [(f"{prefix}_{key}", value) for key, value in single if value is not None]
        pairs += [(f"{prefix}.{key}", value) for key, value in entity.metadata]
    pairs += request.foreign
    return urlencode(pairs, quote_via=quote, safe="")

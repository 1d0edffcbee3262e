"""What the API does for those with a token: names minted and bound, assertions, the registry."""

from __future__ import annotations

from typing import Any

from muniment.errors import NameRefused, NotFound
from muniment.identifiers import parse_pdi, parse_series
from muniment.names.assertions import subject_key
from muniment.registry import Entry, Registry
from muniment.repository import Store
from muniment.repository.access import access_of
from muniment.repository.catalogue import Stream
from muniment.repository.naming import unused
from muniment.web.api.operations import Call, Handler
from muniment.web.doors.answers import Refusal
from muniment.web.doors.permission import refuse_unreadable

__all__ = ["act", "add_assertion", "bind", "mint", "mint_name"]

# What Muniment itself looks names up by is not for others to say.
_OURS = {
    "idempotencyKey", "queryKey", "sha256", "siard-digest-1", "query", "executedAgainst",
    "executedAt", "rowCount", "columns", "engine",
}  # fmt: skip


def mint(store: Store, call: Call) -> Any:
    """Give new names."""
    body, series = call.body, _series(store, call)
    return {"pdis": unused(store, series, body.get("count", 1), body.get("format", "text"))}


def mint_name(store: Store, call: Call) -> Any:
    """Give a name that people can remember."""
    form, series = call.body.get("format", "text"), _series(store, call)
    return {"pdis": [str(store.names.mint_name(series, call.body["id"], form))]}


def _series(store: Store, call: Call) -> str:
    series = parse_series(call.body.get("series", store.settings.series))
    call.need(f"series:{series}")
    return series


def bind(store: Store, call: Call) -> Any:
    """Bind a datastream that is in the store to a name."""
    pdi = parse_pdi(call.body["pdi"])
    token = call.need(f"series:{pdi.series}")
    name = call.body["datastream"]
    stream = store.catalogue.stream(name)
    if stream is None:
        raise NotFound(f"there is no datastream {name} in this store")
    decision = access_of(store.names).of_stream(store.catalogue.named(name, "stream"))
    refuse_unreadable(call.reader, decision, name)
    digest = bytes.fromhex(stream.record.sha256) or _digest(store, stream)
    bound = store.names.bind(
        pdi, digest, stream.record.size, name,
        new_version=call.body.get("new_version", False), by=token.holder,
    )  # fmt: skip
    return {
        "pdi": str(bound), "media_type": bound.media_type, "sha256": digest.hex(),
        "length": stream.record.size, "location": name, "bound": store.names.stamp(),
    }  # fmt: skip


def _digest(store: Store, stream: Stream) -> bytes:
    """Compute the digest that a file of another maker does not state."""
    import hashlib

    digest = hashlib.sha256()
    with store.open_stream(stream.record.identifier) as source:
        while chunk := source.read(1 << 20):
            digest.update(chunk)
    return digest.digest()


def add_assertion(store: Store, call: Call) -> Any:
    """Say something about a name."""
    body = call.body
    key = subject_key(body["subject"], store.names.read)
    series = key.removeprefix("pdi://").partition("/")[0]
    token = call.need("describe", f"series:{series}")
    store.names.series(series)  # says that it is not here
    if body["predicate"] in _OURS:
        raise Refusal(422, f"{body['predicate']} is said by Muniment itself")
    if not key.endswith("/"):
        decision = access_of(store.names).of_subject(str(store.names.read(key).document))
        refuse_unreadable(call.reader, decision, body["subject"])
    said = store.names.say(body["subject"], body["predicate"], body["value"], token.holder)
    return said.as_json()


def act(action: str) -> Handler:
    """Return what does something in the registry, in the name of the token's holder."""

    def handle(store: Store, call: Call) -> Any:
        by, body = call.need("registry").holder, call.body
        kind, name, why = call.values["kind"], call.values["name"], body.get("reason", "")
        registry = Registry(store.names)
        match action:
            case "close":
                entry = registry.close(kind, name, by, why)
            case "observe":
                entry = registry.act(action, kind, name, by, why, sample=body["sample"])
            case "reserve":
                entry = registry.reserve(kind, name, by, body.get("days", 90), why)
            case "extend":
                entry = registry.extend(kind, name, by, body.get("days", 90), why)
            case "propose":
                entry = _proposed(registry, kind, name, by, body["document"], why)
            case "decide":
                waiver = body.get("waiver", "")
                entry = registry.decide(kind, name, by, body["approve"], why, waiver)
            case "hand-on":
                entry = registry.hand_on(kind, name, by, body["to"], why)
            case _:
                entry = registry.act(action, kind, name, by, why)
        return entry.as_json()

    return handle


def _proposed(
    registry: Registry, kind: str, name: str, by: str, document: dict[str, Any], why: str
) -> Entry:
    snid = str(document.get("snid", ""))
    if kind == "namespace" and snid.lower() != name.lower():
        raise NameRefused(f"the registration is for {snid!r}, not for {name!r}")
    return registry.propose(kind, name, by, document, why)

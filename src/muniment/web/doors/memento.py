"""Versions by date: each name without a version is a TimeGate, and has a TimeMap (RFC 7089)."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

from starlette.requests import Request
from starlette.responses import Response

from muniment.errors import NotFound
from muniment.identifiers import Pdi
from muniment.names import Binding
from muniment.repository import Store
from muniment.web.doors.answers import Refusal, best, safe_text
from muniment.web.doors.desk import Desk
from muniment.web.doors.finding import Named, bindings_of, pdi_named
from muniment.web.doors.locating import pdi_url
from muniment.web.doors.octets import http_date

__all__ = ["at_date", "memento_links", "redirect", "timemap", "timemap_url", "wanted_date"]

_KINDS = ("application/link-format", "application/json")


def wanted_date(text: str) -> datetime:
    """Return the date that a client asks for."""
    try:
        found = parsedate_to_datetime(text)
    except ValueError:
        raise Refusal(400, "Accept-Datetime is a date as HTTP has it", Vary=_VARY) from None
    return found.replace(tzinfo=found.tzinfo or UTC)


_VARY = "Accept-Datetime, Accept"


def at_date(store: Store, pdi: Pdi, date: datetime) -> Named:
    """Return the version that was the latest at a date, or the first if there was none yet."""
    named = pdi_named(store, pdi)
    bindings = _mementos(store, pdi)
    earlier = [each for each in bindings if _moment(each) <= date] or bindings[:1]
    if not earlier:
        return named
    chosen = max(earlier, key=lambda each: (_version(each), each.pdi == named.pdi))
    same = tuple(each for each in bindings if each.pdi.version == chosen.pdi.version)
    return Named(chosen.pdi, chosen, same, named.latest)


def redirect(store: Store, named: Named, base: str) -> Response:
    """Send a client to the version of a date."""
    headers = {
        "Location": safe_text(pdi_url(base, str(named.pdi))),
        "Vary": _VARY,
        "Link": ", ".join(memento_links(store, named, base)),
    }
    return Response(None, 302, headers)


def memento_links(store: Store, named: Named, base: str) -> list[str]:
    """Return the links that lead from a version to the others (RFC 7089, and RFC 5829)."""
    generic = safe_text(str(named.pdi.generic))
    links = [
        f'<{pdi_url(base, generic)}>; rel="original timegate"',
        f'<{base}/timemap/{generic[6:]}>; rel="timemap"; type="application/link-format"',
    ]
    for binding, relation in _neighbours(store, named):
        url = safe_text(pdi_url(base, str(binding.pdi)))
        dated = f'; datetime="{http_date(binding.at)}"' if "memento" in relation else ""
        links.append(f'<{url}>; rel="{relation}"{dated}')
    return links


def _neighbours(store: Store, named: Named) -> list[tuple[Binding, str]]:
    """Return the latest version and those beside this one, as versions and as mementos."""
    own = named.binding
    if named.latest == own.pdi.version == 1:
        return [(own, "latest-version"), (own, "first last memento")]
    versions = {_version(own): own}
    for each in bindings_of(store, own.pdi):
        number = _version(each)
        if number not in versions or (each.pdi.format == own.pdi.format and each.pdi != own.pdi):
            versions[number] = each
    numbers = sorted(versions)
    first, last, place = numbers[0], numbers[-1], numbers.index(_version(own))
    before, after = numbers[max(place - 1, 0) : place], numbers[place + 1 : place + 2]
    found = [(versions[last], "latest-version")]
    found += [(versions[each], "predecessor-version") for each in before]
    found += [(versions[each], "successor-version") for each in after]
    said: dict[int, list[str]] = {}
    places = {"first": [first], "prev": before, "next": after, "last": [last]}
    for relation, those in places.items():
        for number in those:
            said.setdefault(number, []).append(relation)
    return found + [(versions[each], " ".join([*rels, "memento"])) for each, rels in said.items()]


def timemap_url(base: str, pdi: Pdi) -> str:
    """The address of the list of versions."""
    return f"{base}/timemap/{str(pdi).removeprefix('pdi://')}"


async def timemap(request: Request) -> Response:
    """List the versions of a document with their dates."""
    kind = best(request.headers.get("accept", ""), _KINDS)
    if kind is None:
        raise Refusal(406, f"a list of versions can be had as {', '.join(_KINDS)}")
    desk: Desk = request.app.state.desk
    try:
        text = request.scope["raw_path"].decode("ascii").partition("/timemap/")[2]
    except UnicodeDecodeError:
        raise Refusal(400, "a PDI is ASCII, with percent-escapes") from None
    pdi = desk.store().names.read(f"pdi://{text}")
    if pdi.version is not None or pdi.fragment is not None or pdi.citation is not None:
        raise Refusal(400, "a list of versions is of a name without version and fragment")
    found = await desk.ask(lambda store: _mementos(store, pdi), quick=True)
    if not found:
        raise NotFound(f"{pdi} has no versions here")
    headers = {"Vary": "Accept", "Cache-Control": "public, max-age=60"}
    make = _json if kind == "application/json" else _link_format
    return Response(make(pdi, found, desk.base), headers=headers, media_type=kind)


def _mementos(store: Store, pdi: Pdi) -> list[Binding]:
    """Return the versions, oldest first, in all formats or in the one that is named."""
    found = [each for each in bindings_of(store, pdi) if pdi.format in (None, each.pdi.format)]
    return sorted(found, key=lambda each: (_version(each), each.at))


def _link_format(pdi: Pdi, found: list[Binding], base: str) -> bytes:
    own, gate = timemap_url(base, pdi), pdi_url(base, str(pdi))
    first, last = http_date(found[0].at), http_date(found[-1].at)
    lines = [
        f'<{safe_text(gate)}>; rel="original timegate"',
        f'<{safe_text(own)}>; rel="self"; type="application/link-format"; '
        f'from="{first}"; until="{last}"',
    ]
    for number, each in enumerate(found):
        ends = [name for name, at in (("first", 0), ("last", len(found) - 1)) if at == number]
        relation = " ".join([*ends, "memento"])
        media = f'; type="{each.pdi.media_type}"' if each.pdi.media_type else ""
        url = safe_text(pdi_url(base, str(each.pdi)))
        lines.append(f'<{url}>; rel="{relation}"; datetime="{http_date(each.at)}"{media}')
    return ",\n".join(lines).encode() + b"\n"


def _json(pdi: Pdi, found: list[Binding], base: str) -> bytes:
    versions = [
        {
            "uri": pdi_url(base, str(each.pdi)),
            "pdi": str(each.pdi),
            "datetime": each.at,
            "media_type": each.pdi.media_type,
            "bytes": each.length,
            "sha256": each.digest.hex(),
        }
        for each in found
    ]
    facts = {
        "original_uri": pdi_url(base, str(pdi)),
        "timegate_uri": pdi_url(base, str(pdi)),
        "timemap_uri": timemap_url(base, pdi),
        "mementos": versions,
    }
    return json.dumps(facts).encode()


def _moment(binding: Binding) -> datetime:
    return datetime.fromisoformat(binding.at).astimezone(UTC).replace(microsecond=0)


def _version(binding: Binding) -> int:
    return binding.pdi.version if isinstance(binding.pdi.version, int) else 1

"""The form for descriptions: what has none yet, and the words of those who know the data.

Words go into the archive's header alone; its content keeps every byte. A file is changed where it
lies; in a store, which never changes anything, it becomes a new version.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable
from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response

from muniment.errors import UsageError
from muniment.siard.descriptions import Place, places, set_descriptions
from muniment.siard.header import read_metadata
from muniment.web.archive_pages import frame, open_archive
from muniment.web.page import Page, text_of
from muniment.web.site import Site
from muniment.web.urls import Urls

__all__ = ["describe_page", "save_descriptions"]

_MOST = 400  # fields on one page
_LARGEST = 4 << 20  # bytes of a form
_LONGEST_NAME = 500  # a longer one cannot stand in an address
_INSIDE = ("column", "primary-key", "candidate-key", "foreign-key", "check", "trigger", "attribute",
           "parameter")  # fmt: skip


def describe_page(
    request: Request,
    problem: str = "",
    nothing: bool = False,
    written: dict[str, str] | None = None,
) -> Page:
    """Everything in an archive that can be described, a part at a time.

    After a ``problem`` the form still holds what was ``written`` in it.
    """
    archive = open_archive(request)
    site: Site = request.app.state.site
    metadata = read_metadata(archive.path)
    there = places(metadata)
    within = request.query_params.get("in", "")
    shown = _shown(there, within)
    urls = Urls(archive)
    facts = {
        "in": within or None,
        "places": len(there),
        "missing": sum(not place.description for place in there),
        "list": [
            {"number": number, "kind": place.kind, "place": place.name,
             "description": (written or {}).get(f"d{number}", place.description or "")}
            for number, place in shown[:_MOST]
        ],
        "saved": 0 if nothing else _saved(request),
    }  # fmt: skip
    only_page = {
        "more": max(0, len(shown) - _MOST),
        "state": hashlib.sha256(metadata).hexdigest(),
        "describe_url": urls.page("describe", **({"in": within} if within else {})),
        "inside": [
            (name, urls.page("describe", **{"in": name}), *counts)
            for name, counts in _counts(there).items()
            if counts[0] and len(name) <= _LONGEST_NAME
        ][:_MOST],
        "problem": problem,
        "possible": site.describable,
        "knows_token": site.knows(request),
    }
    return Page("describe.html", facts, {**frame(archive), **only_page}, 400 if problem else 200)


def _shown(there: list[Place], within: str) -> list[tuple[int, Place]]:
    """The places of the page: those of one table, or all but what lies inside tables."""
    every = list(enumerate(there))
    if within:
        return [(n, p) for n, p in every if p.name == within or p.name.startswith(f"{within}.")]
    return [(n, p) for n, p in every if p.kind not in _INSIDE]


def _counts(there: list[Place]) -> dict[str, list[int]]:
    """How many things lie inside each table, and how many of them have no description."""
    counts = {p.name: [0, 0] for p in there if p.kind in ("table", "view", "routine", "type")}
    for place in there:
        home = place.name
        while (home := home.rpartition(".")[0]) and home not in counts:
            pass
        if home and place.name not in counts:
            counts[home][0] += 1
            counts[home][1] += not place.description
    return counts


def _changes(form: dict[str, str], there: list[Place]) -> dict[tuple[str, str], str]:
    changes = {}
    for key, words in form.items():
        if not key.startswith("d") or not key[1:].isdecimal():
            continue
        number = int(key[1:9])
        if number >= len(there):
            raise UsageError("the form does not belong to this archive; open it again")
        place, words = there[number], words.replace("\r\n", "\n").strip()
        if words != (place.description or ""):
            changes[place.kind, place.name] = words
    return changes


async def save_descriptions(
    request: Request, answered: Callable[[Request, Callable[[], Response]], Awaitable[Response]]
) -> Response:
    """Take the form, and lead back to the archive as it is then."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > _LARGEST:
            raise UsageError(f"a form may have {_LARGEST} bytes; describe a part at a time")
    form = _form(body)
    return await answered(request, lambda: _save(request, form))


def _form(body: bytes) -> dict[str, str]:
    try:
        pairs = parse_qsl(body.decode("ascii"), keep_blank_values=True, max_num_fields=2 * _MOST,
                          errors="strict")  # fmt: skip
    except ValueError:
        raise UsageError(
            "the form cannot be read: it is not UTF-8, or has too many fields"
        ) from None
    return dict(pairs)


def _save(request: Request, form: dict[str, str]) -> Response:
    from muniment.web.page import render

    site: Site = request.app.state.site
    archive = open_archive(request)
    if not site.may_describe(request, form.get("token", "").strip()):
        page = describe_page(request, problem=text_of("describe_refused"), written=form)
        page.status = 403
        return render(request, page)
    metadata = read_metadata(archive.path)
    if form.get("state") != hashlib.sha256(metadata).hexdigest():
        return render(request, describe_page(request, problem=text_of("describe_changed")))
    changes = _changes(form, places(metadata))
    if not changes:
        return render(request, describe_page(request, nothing=True))
    home = site.described(archive, set_descriptions(metadata, changes), request)
    return RedirectResponse(f"{home}/describe?saved={len(changes)}", 303)


def _saved(request: Request) -> int | None:
    """How many descriptions the form before this page has set."""
    text = request.query_params.get("saved", "")
    return int(text) if text.isdecimal() and len(text) < 7 else None

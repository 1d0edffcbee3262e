"""A page and its JSON twin: one set of facts, two ways to show them."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from starlette.requests import Request
from starlette.responses import HTMLResponse, Response

from muniment.citations.styles import Reference
from muniment.web.cells import Cell, size_text
from muniment.web.words import WORDS

__all__ = ["Page", "render", "render_file", "text_of", "wants_json"]


@dataclass
class Page:
    """What a page says: ``facts`` are for people and programs, ``only_page`` for the template."""

    template: str
    facts: dict[str, Any]
    only_page: dict[str, Any] = field(default_factory=dict)
    status: int = 200
    references: Sequence[Reference] = ()  # what can be had for bibliographies


def wants_json(request: Request) -> bool:
    """Whether the JSON twin was asked for: ``?format=json``, or by the Accept header."""
    asked = request.query_params.get("format")
    return asked == "json" or (not asked and request.headers.get("accept") == "application/json")


def render(request: Request, page: Page) -> Response:
    """Return a page as HTML or as JSON."""
    form = request.query_params.get("format", "")
    if form in _BIBLIOGRAPHIES and page.references:
        return _bibliography(form, page.references)
    if wants_json(request):
        text = json.dumps(page.facts, default=_json, ensure_ascii=False, indent=1)
        data = text.encode("utf-8", "backslashreplace")
        return Response(data, page.status, media_type="application/json")
    template = _environment().get_template(page.template)
    html = template.render(
        t=text_of,
        request=request,
        site=request.app.state.site,
        json_url=str(request.url.include_query_params(format="json").replace(scheme="", netloc="")),
        **page.facts,
        **page.only_page,
    )
    return HTMLResponse(html.encode("utf-8", "backslashreplace"), page.status)


_BIBLIOGRAPHIES = {
    "bibtex": ("application/x-bibtex", "bib"),
    "ris": ("application/x-research-info-systems", "ris"),
    "csl": ("application/vnd.citationstyles.csl+json", "json"),
}


def _bibliography(form: str, references: Sequence[Reference]) -> Response:
    """Return citations as a file that reference managers read."""
    if form == "csl":
        items = [item for each in references for item in each.csl()]
        text = json.dumps(items, ensure_ascii=False, indent=1)
    else:
        text = "\n".join(each.bibtex() if form == "bibtex" else each.ris() for each in references)
    kind, ending = _BIBLIOGRAPHIES[form]
    headers = {"Content-Disposition": f'attachment; filename="citation.{ending}"'}
    data = text.encode("utf-8", "backslashreplace")
    return Response(data, 200, headers, media_type=f"{kind}; charset=utf-8")


def render_file(template: str, **facts: Any) -> str:
    """Return a page that stands alone, without a server around it."""
    text: str = _environment().get_template(template).render(t=text_of, **facts)
    return text


def _json(value: Any) -> Any:
    return value.as_json() if isinstance(value, Cell) else str(value)


def text_of(key: str, **values: Any) -> str:
    """Return a text of the pages; all of them stand in words.py."""
    return WORDS[key].format(**values) if values else WORDS[key]


_cached: list[Any] = []


def _environment() -> Any:
    if not _cached:
        from jinja2 import Environment, PackageLoader, StrictUndefined

        environment = Environment(
            loader=PackageLoader("muniment.web"),
            autoescape=True,
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.filters["short"] = short
        environment.filters["number"] = lambda n: f"{n:,}".replace(",", "\u202f")
        environment.filters["bytes"] = size_text
        _cached.append(environment)
    return _cached[0]


def short(text: str | None, longest: int = 80) -> str:
    """Return a name or sentence that fits on a page, whatever its length.

    >>> short("Metasequoia", 5)
    'Meta…'
    """
    text = text or ""
    return text if len(text) <= longest else text[: longest - 1] + "…"

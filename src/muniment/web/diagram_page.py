"""The page of the entity-relationship diagram."""

from __future__ import annotations

from typing import Any

from starlette.requests import Request

from muniment.errors import UsageError
from muniment.web.archive_pages import frame, open_archive
from muniment.web.diagram import draw
from muniment.web.page import Page
from muniment.web.urls import Urls

__all__ = ["diagram_page"]

_DEPTHS = (1, 2, 3)
_ZOOMS = (10, 25, 50, 75, 100, 150, 200)
_MANY = 60  # boxes that are shown smaller at first


def diagram_page(request: Request) -> Page:
    """Tables and foreign keys, all of them or those near one table."""
    archive = open_archive(request)
    focus = request.query_params.get("focus", "")
    depth = request.query_params.get("depth", "1")
    zoom = request.query_params.get("zoom", "")
    if depth not in map(str, _DEPTHS) or (zoom and zoom not in map(str, _ZOOMS)):
        raise UsageError("the diagram knows steps of 1 to 3 and zooms of 10 to 200")
    urls = Urls(archive)
    names = {urls.focus_name(s, t): f"{s.name}.{t.name}" for s, t in archive.tables[:2000]}
    if focus and focus not in names:
        raise UsageError(f"there is no table {focus[:80]!r} to show")
    diagram = draw(archive, focus, int(depth))
    facts: dict[str, Any] = {
        "focus": focus or None,
        "depth": int(depth),
        "tables": [
            {"name": box.name, "url": box.url, "x": round(box.x), "y": round(box.y)}
            for box in diagram.boxes
        ],
        "foreign_keys": [line.title for line in diagram.lines],
    }
    only_page = {
        "diagram": diagram, "names": names, "depths": _DEPTHS, "zooms": _ZOOMS,
        "zoom": int(zoom) if zoom else 50 if len(diagram.boxes) > _MANY else 100,
    }  # fmt: skip
    return Page("diagram.html", facts, {**frame(archive), **only_page})

"""Rows and definitions of archived databases as CSV, JSON, XML or HTML, with NULL made explicit."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import Any

from muniment.fragments.result import Extract, not_possible
from muniment.siard.cells import escape_cells
from muniment.siard.text import escape_metadata

__all__ = ["Fields", "render_definition", "render_rows"]

_MOST = 256 << 20  # octets of one rendering

Rows = Iterable[Sequence[Any]]


class Fields(list[Any]):
    """The fields of a UDT; an array is a plain list."""


def render_rows(names: Sequence[str], numbers: Sequence[int], rows: Rows, wanted: str) -> Extract:
    """Return rows in the wanted form; CSV is the usual one.

    In CSV nothing at all is NULL, and "" is the empty text. In XML, as in SIARD, NULL is left out.
    """
    match wanted or "text/csv":
        case "text/csv":
            return Extract("text/csv;charset=utf-8", _joined(_csv(names, rows)))
        case "application/json":
            return Extract("application/json", _joined(_json(names, rows)))
        case "application/xml" | "text/xml":
            return Extract("application/xml", _joined(_xml(numbers, rows)))
        case "text/html":
            return Extract("text/html;charset=utf-8", _joined(_html(names, rows)))
    raise not_possible(f"rows are given as CSV, JSON, XML or HTML, not as {wanted}")


def _joined(pieces: Iterator[str]) -> bytes:
    parts, size = [], 0
    for piece in pieces:
        parts.append(piece.encode("utf-8", "backslashreplace"))
        size += len(parts[-1])
        if size > _MOST:
            raise not_possible("the part is too large to be given at once; ask for fewer rows")
    return b"".join(parts)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _csv(names: Sequence[str], rows: Rows) -> Iterator[str]:
    yield ",".join(map(_csv_field, names)) + "\r\n"
    for row in rows:
        yield ",".join("" if v is None else _csv_field(_text(v)) for v in row) + "\r\n"


def _csv_field(text: str) -> str:
    plain = text and not any(c in text for c in ',"\r\n')
    return text if plain else '"' + text.replace('"', '""') + '"'


def _json(names: Sequence[str], rows: Rows) -> Iterator[str]:
    yield '{"columns": ' + json.dumps(list(names)) + ', "rows": ['
    between = "\n"
    for row in rows:
        yield between + json.dumps(list(row))
        between = ",\n"
    yield "\n]}\n"


def _xml(numbers: Sequence[int], rows: Rows) -> Iterator[str]:
    yield '<?xml version="1.0" encoding="utf-8"?>\n<table>'
    for row in rows:
        cells = (_xml_cell(f"c{n}", value) for n, value in zip(numbers, row, strict=True))
        yield f"<row>{''.join(cells)}</row>\n"
    yield "</table>\n"


def _xml_cell(tag: str, value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, list):
        letter = "u" if isinstance(value, Fields) else "a"
        inner = "".join(_xml_cell(f"{letter}{n}", part) for n, part in enumerate(value, 1))
        return f"<{tag}>{inner}</{tag}>"
    text = escape_cells(value.encode("utf-8", "surrogatepass")).decode()
    return f"<{tag}>{text}</{tag}>"


def _html(names: Sequence[str], rows: Rows) -> Iterator[str]:
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in names)
    yield '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>Rows</title></head>'
    yield f"<body><table><thead><tr>{head}</tr></thead><tbody>\n"
    for row in rows:
        cells = ("<em>NULL</em>" if value is None else escape(_text(value)) for value in row)
        yield "<tr>" + "".join(f"<td>{cell}</td>" for cell in cells) + "</tr>\n"
    yield "</tbody></table></body></html>\n"


def render_definition(facts: dict[str, Any], wanted: str) -> Extract:
    """Return a definition in the wanted form; JSON is the usual one."""
    match wanted or "application/json":
        case "application/json":
            return Extract("application/json", json.dumps(facts, indent=1).encode())
        case "application/xml" | "text/xml":
            return Extract("application/xml", f"{_facts_xml('definition', facts)}\n".encode())
        case "text/html":
            page = (
                '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
                f"<title>Definition</title></head><body>{_facts_html(facts)}</body></html>\n"
            )
            return Extract("text/html;charset=utf-8", page.encode("utf-8", "backslashreplace"))
    raise not_possible(f"definitions are given as JSON, XML or HTML, not as {wanted}")


def _facts_xml(tag: str, value: Any) -> str:
    if isinstance(value, dict):
        inner = "".join(_facts_xml(key, each) for key, each in value.items())
    elif isinstance(value, list):
        inner = "".join(_facts_xml("item", each) for each in value)
    else:
        inner = escape(escape_metadata(str(value)))
    return f"<{tag}>{inner}</{tag}>"


def _facts_html(value: Any) -> str:
    if isinstance(value, dict):
        rows = (f"<dt>{escape(k)}</dt><dd>{_facts_html(v)}</dd>" for k, v in value.items())
        return f"<dl>{''.join(rows)}</dl>"
    if isinstance(value, list):
        return f"<ul>{''.join(f'<li>{_facts_html(each)}</li>' for each in value)}</ul>"
    return escape(str(value))

"""Values checked against the same JSON Schemas that the OpenAPI document shows.

Only the words of JSON Schema that these schemas use are known here.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

from muniment.web.doors.answers import Refusal

__all__ = ["check", "parse_json", "parse_text"]

Schema = Mapping[str, Any]
_SURROGATE = re.compile("[\ud800-\udfff]")
_DEEPEST = 50
_TYPES: dict[str, Callable[[Any], bool]] = {
    "string": lambda value: isinstance(value, str),
    "integer": lambda value: isinstance(value, int) and not isinstance(value, bool),
    "boolean": lambda value: isinstance(value, bool),
    "object": lambda value: isinstance(value, dict),
    "array": lambda value: isinstance(value, list),
    "null": lambda value: value is None,
}


def check(schema: Schema, value: Any, where: str) -> None:
    """Refuse a value that is not what a schema says (422)."""
    for problem in _problems(schema, value, where):
        raise Refusal(422, problem)


def _problems(schema: Schema, value: Any, where: str) -> Iterator[str]:
    kind = schema.get("type")
    if kind is not None and not _TYPES[kind](value):
        yield f"{where} should be of the type {kind}"
        return
    if "enum" in schema and value not in schema["enum"]:
        yield f"{where} should be one of {', '.join(map(str, schema['enum']))}"
    if isinstance(value, str):
        yield from _text_problems(schema, value, where)
    elif isinstance(value, bool):
        return
    elif isinstance(value, int):
        low, high = schema.get("minimum", value), schema.get("maximum", value)
        if not low <= value <= high:
            yield f"{where} should be between {low} and {high}"
    elif isinstance(value, dict):
        yield from _object_problems(schema, value, where)
    elif isinstance(value, list):
        if len(value) > schema.get("maxItems", len(value)):
            yield f"{where} has more than {schema['maxItems']} items"
        if len(value) < schema.get("minItems", 0):
            yield f"{where} has less than {schema['minItems']} items"
        for number, each in enumerate(value):
            yield from _problems(schema.get("items", {}), each, f"{where}[{number}]")


def _text_problems(schema: Schema, value: str, where: str) -> Iterator[str]:
    if len(value) < schema.get("minLength", 0):
        yield f"{where} is empty" if not value else f"{where} is too short"
    elif len(value) > schema.get("maxLength", len(value)):
        yield f"{where} has more than {schema['maxLength']} characters"
    elif _SURROGATE.search(value):
        yield f"{where} is not Unicode"
    elif "pattern" in schema and not _pattern(schema["pattern"]).search(value):
        yield f"{where} is not as it should be ({schema['pattern']})"


@cache
def _pattern(text: str) -> re.Pattern[str]:
    # In Python $ also matches before a line end; in JSON Schema it does not.
    return re.compile(text.removesuffix("$") + r"\Z" if text.endswith("$") else text)


def _object_problems(schema: Schema, value: dict[str, Any], where: str) -> Iterator[str]:
    known, other = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        if name not in value:
            yield f"{where} lacks {name}"
    for name, each in value.items():
        if _SURROGATE.search(name):
            yield f"{where} has a name that is not Unicode"
        elif name in known:
            yield from _problems(known[name], each, f"{where}.{name}")
        elif other is False:
            yield f"{where} has no {name[:80]}; there are {', '.join(known)}"
        else:
            yield from _problems({} if other is True else other, each, f"{where}.{name[:80]}")


def parse_text(schema: Schema, text: str, where: str) -> Any:
    """Return a value that stands in an address, as its schema says (400)."""
    value: Any = text
    if schema.get("type") == "integer":
        if not re.fullmatch("-?[0-9]{1,18}", text):
            raise Refusal(400, f"{where} should be a whole number")
        value = int(text)
    elif schema.get("type") == "boolean":
        if text not in ("true", "false"):
            raise Refusal(400, f"{where} should be true or false")
        value = text == "true"
    for problem in _problems(schema, value, where):
        raise Refusal(400, problem)
    return value


def parse_json(data: bytes) -> Any:
    """Return a JSON document; names that stand twice and what is no JSON are refused (400)."""
    try:
        value = json.loads(
            data.decode("utf-8"), object_pairs_hook=_once, parse_constant=_no_constant,
            parse_float=_number,
        )  # fmt: skip
    except (ValueError, RecursionError):
        raise Refusal(400, "the body is not a JSON document in UTF-8") from None
    if _depth(value) > _DEEPEST:
        raise Refusal(400, f"the body is nested more than {_DEEPEST} levels deep")
    return value


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) != len(pairs):
        raise ValueError("a name stands twice")
    return found


def _number(text: str) -> float | int:
    """1.0 is a whole number in JSON Schema; what is too large for a number is refused."""
    value = float(text)
    if not math.isfinite(value):
        raise ValueError("too large")
    return int(value) if value.is_integer() and abs(value) < 1e15 else value


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _depth(value: Any) -> int:
    depth, level = 0, [value]
    while level and depth <= _DEEPEST:
        depth += 1
        level = [
            inner
            for each in level
            if isinstance(each, (dict, list))
            for inner in (each.values() if isinstance(each, dict) else each)
        ]
    return depth

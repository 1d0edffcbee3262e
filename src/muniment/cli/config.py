"""What ``archive`` can be told, by options or by a YAML file (docs/config.md).

Every option of the command is a key of the file under the same name; ``descriptions`` has no
option. The file is read as YAML nodes, not as Python values: each text stays as it was written
(1.10, 2019-05, no), each node knows its line, and nothing is ever constructed from it. All faults
are reported together.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from datetime import date
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from muniment.cli.lobs import LAYOUTS, PLACES, SMALLEST, VERSIONS, parse_size
from muniment.errors import UsageError

if TYPE_CHECKING:
    from yaml import Node

__all__ = ["COMPRESSIONS", "DIGESTS", "MISSING", "Settings", "load", "parse_date"]

MISSING = ("stop", "report")
DIGESTS = ("MD5", "SHA-1", "SHA-256")
COMPRESSIONS = ("fast", "strong", "none")
_DIGITS = 18  # of a number that all counters hold
_LARGEST = 8 << 20  # bytes of a file


@dataclass(frozen=True)
class Settings:
    """Everything ``archive`` can be told; what nobody said is None or empty."""

    schema: tuple[str, ...] = ()
    table: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    where: Mapping[str, str] = field(default_factory=dict)
    order: Mapping[str, str] = field(default_factory=dict)
    columns: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    view: tuple[str, ...] = ()
    query: Mapping[str, str] = field(default_factory=dict)
    as_text: tuple[str, ...] = ()
    lobs: str | None = None
    lob_threshold: int | None = None
    lobs_for: Mapping[str, str] = field(default_factory=dict)
    lob_threshold_for: Mapping[str, int] = field(default_factory=dict)
    lob_mixed: bool | None = None
    lob_layout: str | None = None
    segment_files: int | None = None
    segment_size: int | None = None
    segment_zip: bool | None = None
    lob_map: Mapping[str, str] = field(default_factory=dict)
    split: int | None = None
    siard_version: str | None = None
    datalink: tuple[str, ...] = ()
    datalink_root: str | Path | None = None
    missing_files: str | None = None
    digest: tuple[str, ...] = ()
    compression: str | None = None
    jobs: int | None = None
    statement_timeout: float | None = None
    dbname: str | None = None
    owner: str | None = None
    timespan: str | None = None
    description: str | None = None
    archiver: str | None = None
    contact: str | None = None
    archival_date: str | None = None
    descriptions: Mapping[str, Mapping[str, str]] = field(default_factory=dict)

    def overridden_by(self, other: Settings) -> Settings:
        """Return these settings with what ``other`` says in their place.

        Lists and single values are replaced; where, order, columns, query and descriptions are
        replaced name by name.
        """
        merged: dict[str, Any] = {}
        for each in fields(self):
            mine, theirs = getattr(self, each.name), getattr(other, each.name)
            if isinstance(mine, Mapping):
                merged[each.name] = {**mine, **theirs}
            else:
                merged[each.name] = mine if theirs is None or theirs == () else theirs
        return Settings(**merged)


def parse_date(text: str) -> str:
    """Return a date as it was written, YYYY-MM-DD, or raise ValueError."""
    if len(text) != 10 or date.fromisoformat(text).isoformat() != text:
        raise ValueError(f"{text!r} is not a date of the form YYYY-MM-DD")
    return text


def load(path: Path) -> Settings:
    """Read a configuration file; raise a UsageError that lists every fault with its line."""
    import yaml

    with path.open("rb") as stream:
        text = stream.read(_LARGEST + 1)
    if len(text) > _LARGEST:
        raise UsageError(f"{path} is larger than any file of settings")
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else 1
        raise UsageError(f"{path}, line {line}: not YAML: {error.problem}") from error
    except RecursionError as error:
        raise UsageError(f"{path}: brackets are nested too deeply for settings") from error
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        if getattr(error, "encoding", "unicode") != "unicode":  # bytes, rather than a character
            raise UsageError(f"{path}: not YAML in UTF-8; save the file as UTF-8") from error
        raise UsageError(f"{path}: not YAML: {error}") from error
    faults = _Faults(path)
    found = {} if root is None else _read_keys(root, _KEYS, "the file", faults)
    if faults.messages:
        raise UsageError("\n".join(faults.messages))
    return Settings(**{key.replace("-", "_"): value for key, value in found.items()})


class _Faults:
    """The faults found so far, each as a sentence with the file and the line."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.messages: list[str] = []

    def add(self, node: Node, message: str) -> None:
        line = node.start_mark.line + 1 if node.start_mark else 1
        self.messages.append(f"{self.path}, line {line}: {message}")


# A reader takes a node, the key it belongs to, and where to put faults.
_Reader = Callable[["Node", str, _Faults], Any]


def _read_keys(
    node: Node, known: Mapping[str, _Reader], name: str, faults: _Faults
) -> dict[str, Any]:
    """Read a mapping whose keys are known beforehand."""
    found: dict[str, Any] = {}
    for key, value in _entries(node, name, faults):
        if key in known:
            found[key] = known[key](value, key, faults)
        else:
            faults.add(value, f"unknown key {key!r}{_suggestion(key, known)}")
    return found


def _suggestion(key: str, known: Iterable[str]) -> str:
    names = list(known)
    close = get_close_matches(key.lower().replace("_", "-"), names, 1, 0.5)
    return f"; did you mean {close[0]!r}?" if close else f"; known are {', '.join(names)}"


def _entries(node: Node, name: str, faults: _Faults) -> list[tuple[str, Node]]:
    """Return the keys and values of a mapping; complain of keys that are given twice."""
    from yaml import MappingNode, ScalarNode

    if not isinstance(node, MappingNode):
        faults.add(node, f"{name} should hold names, each with a colon and a value")
        return []
    entries: dict[str, Node] = {}
    for key, value in node.value:
        if not isinstance(key, ScalarNode):
            faults.add(key, f"{name} should hold names, each with a colon and a value")
        elif key.value in entries:
            faults.add(key, f"{name} has {key.value!r} twice")
        else:
            entries[key.value] = value
    return list(entries.items())


def _text(node: Node, name: str, faults: _Faults) -> str:
    from yaml import ScalarNode

    if not isinstance(node, ScalarNode):
        faults.add(node, f"{name} should be one text")
        return ""
    if not str(node.value).strip() or node.tag == "tag:yaml.org,2002:null":
        faults.add(node, f"{name} is empty; give it a value or remove it")
    return str(node.value).strip()


def _texts(node: Node, name: str, faults: _Faults) -> tuple[str, ...]:
    """One text, or a list of them."""
    from yaml import SequenceNode

    if isinstance(node, SequenceNode):
        return tuple(_text(item, name, faults) for item in node.value)
    return (_text(node, name, faults),)


def _by_name(reader: _Reader) -> _Reader:
    """A mapping from names of the user's own, such as tables."""

    def read(node: Node, name: str, faults: _Faults) -> dict[str, Any]:
        entries = _entries(node, name, faults)
        return {key: reader(value, f"{name} of {key}", faults) for key, value in entries}

    return read


def _choice(choices: tuple[str, ...]) -> _Reader:
    def read(node: Node, name: str, faults: _Faults) -> str:
        text = _text(node, name, faults)
        if text and text not in choices:
            faults.add(node, f"{name} should be one of {', '.join(choices)}, not {text!r}")
        return text

    return read


def _choices(choices: tuple[str, ...]) -> _Reader:
    one = _choice(choices)

    def read(node: Node, name: str, faults: _Faults) -> tuple[str, ...]:
        from yaml import SequenceNode

        nodes = node.value if isinstance(node, SequenceNode) else [node]
        return tuple(one(item, name, faults) for item in nodes)

    return read


def _number(node: Node, name: str, faults: _Faults) -> int:
    text = _text(node, name, faults)
    if text.isascii() and text.isdigit() and len(text) <= _DIGITS:
        return int(text)
    if text:
        faults.add(node, f"{name} should be a whole number, not {text!r}")
    return 0


def _count(node: Node, name: str, faults: _Faults) -> int:
    number = _number(node, name, faults)
    if node.value == "0":
        faults.add(node, f"{name} should be a whole number above 0, not '0'")
    return number


def _flag(node: Node, name: str, faults: _Faults) -> bool:
    text = _text(node, name, faults)
    if text and text not in ("true", "false"):
        faults.add(node, f"{name} should be true or false, not {text!r}")
    return text == "true"


def _size(node: Node, name: str, faults: _Faults) -> int | None:
    text = _text(node, name, faults)
    try:
        return parse_size(text, SMALLEST)
    except ValueError as error:
        if text:
            faults.add(node, f"{name}: {error}")
        return None


def _seconds(node: Node, name: str, faults: _Faults) -> float:
    text = _text(node, name, faults)
    try:
        seconds = float(text or 1)
    except ValueError:
        seconds = 0
    if not 0 < seconds < float("inf"):
        faults.add(node, f"{name} should be a number of seconds above 0, not {text!r}")
    return seconds


def _date(node: Node, name: str, faults: _Faults) -> str:
    text = _text(node, name, faults)
    try:
        return parse_date(text)
    except ValueError:
        faults.add(node, f"{name} should be a date of the form YYYY-MM-DD, not {text!r}")
        return ""


def _folder(node: Node, name: str, faults: _Faults) -> str:
    text = _text(node, name, faults)
    if text and not Path(text).is_dir():
        faults.add(node, f"{name}: there is no folder {text}")
    return text


def _descriptions(node: Node, name: str, faults: _Faults) -> dict[str, Any]:
    known = {kind: _by_name(_text) for kind in ("schemas", "tables", "columns")}
    return _read_keys(node, known, name, faults)


_KEYS: dict[str, _Reader] = {
    "schema": _texts,
    "table": _texts,
    "exclude": _texts,
    "where": _by_name(_text),
    "order": _by_name(_text),
    "columns": _by_name(_texts),
    "view": _texts,
    "query": _by_name(_text),
    "as-text": _texts,
    "lobs": _choice(PLACES),
    "lob-threshold": _number,
    "lobs-for": _by_name(_choice(PLACES)),
    "lob-threshold-for": _by_name(_number),
    "lob-mixed": _flag,
    "lob-layout": _choice(LAYOUTS),
    "segment-files": _count,
    "segment-size": _size,
    "segment-zip": _flag,
    "lob-map": _by_name(_text),
    "split": _size,
    "siard-version": _choice(VERSIONS),
    "datalink": _texts,
    "datalink-root": _folder,
    "missing-files": _choice(MISSING),
    "digest": _choices(DIGESTS),
    "compression": _choice(COMPRESSIONS),
    "jobs": _number,
    "statement-timeout": _seconds,
    "dbname": _text,
    "owner": _text,
    "timespan": _text,
    "description": _text,
    "archiver": _text,
    "contact": _text,
    "archival-date": _date,
    "descriptions": _descriptions,
}

"""Files that somebody sent: YAML or JSON, small, and nothing in them that grows by itself."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from muniment.errors import UsageError

__all__ = ["REGISTRATION", "read_mapping"]

_LARGEST = 1 << 18  # octets; the example of GFD.191 has a fiftieth of that
REGISTRATION = "a registration (see: muniment registry template)"


class _Loader(yaml.SafeLoader):
    """Plain YAML without references: ten lines of them can stand for a billion values."""

    def compose_node(self, parent: Any, index: Any) -> Any:
        if self.check_event(yaml.AliasEvent):
            raise yaml.YAMLError("references (*name) are not allowed here")
        return super().compose_node(parent, index)


def read_mapping(path: Path, what: str = REGISTRATION) -> dict[str, Any]:
    """Return the content of a file in the types of JSON; ``what`` is what it should hold."""
    size = path.stat().st_size
    if size > _LARGEST:
        raise UsageError(f"{path} has {size:,} octets, more than {what} can have ({_LARGEST:,})")
    try:
        body = yaml.load(path.read_text(encoding="utf-8"), _Loader)
        if not isinstance(body, dict):
            raise UsageError(f"{path} does not hold {what}")
        plain: dict[str, Any] = _plain(body)
    except RecursionError:
        raise UsageError(f"{path} is nested too deep for {what}") from None
    except (yaml.YAMLError, ValueError, TypeError) as error:
        raise UsageError(f"{path} is neither YAML nor JSON: {error!s:.300}") from None
    return plain


def _plain(value: Any) -> Any:
    """Return what YAML gave in the types of JSON: days become texts."""
    if isinstance(value, dict):
        return {str(key): _plain(each) for key, each in value.items()}
    if isinstance(value, list):
        return [_plain(each) for each in value]
    return value if isinstance(value, (str, int, float, bool, type(None))) else str(value)

"""Live databases, one module per product, found by the scheme of a URL."""

from __future__ import annotations

import importlib
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from urllib.parse import parse_qsl, unquote, urlencode

from muniment.databases.mapping import TypeRow
from muniment.errors import MissingDriver, UsageError
from muniment.sql.selection import Selection
from muniment.sql.stores import Source, Target

__all__ = ["is_url", "open_source", "open_target", "redact", "type_tables"]


@dataclass(frozen=True, slots=True)
class _Product:
    """Where the code for a product is, and which extra brings its driver."""

    name: str
    source: str  # the modules with open_source and create_target
    target: str
    extra: str
    server: bool = False  # whether it takes the whole URL, rather than the path of a file
    types: str = ""  # the module with TYPES, the table of its types


_PRODUCTS = {
    "sqlite": _Product(
        "SQLite", "muniment.databases.sqlite", "muniment.databases.sqlite_target", "sqlite"
    ),
    "duckdb": _Product(
        "DuckDB", "muniment.databases.duckdb", "muniment.databases.duckdb", "duckdb"
    ),
}

_SECRETS = {"password", "passwd", "pwd", "sslpassword"}  # in the query of a URL


def is_url(text: str) -> bool:
    """Whether a text names a database rather than a file."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def open_source(
    url: str, selection: Selection | None = None, *, inline_limit: int = 4000
) -> AbstractContextManager[Source]:
    """Open a database for reading."""
    product = _find(url)
    source: AbstractContextManager[Source] = _load(product, product.source).open_source(
        _place(product, url), selection or Selection(), inline_limit=inline_limit
    )
    return source


def open_target(url: str, *, replace: bool = False) -> AbstractContextManager[Target]:
    """Open a new database for writing."""
    product = _find(url)
    target: AbstractContextManager[Target] = _load(product, product.target).create_target(
        _place(product, url), replace=replace
    )
    return target


def redact(url: str) -> str:
    """Return the URL without any password.

    >>> redact("postgresql://reader:secret@db/registry")
    'postgresql://reader@db/registry'
    >>> redact("sqlite:///shop.db")
    'sqlite:///shop.db'
    >>> redact("postgresql:///registry?host=/run/pg&password=secret")
    'postgresql:///registry?host=/run/pg'
    """
    scheme, mark, rest = url.partition("://")
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    path, question, query = path.partition("?")
    if question:
        kept = [pair for pair in parse_qsl(query, True) if pair[0].lower() not in _SECRETS]
        query = urlencode(kept, safe="/:")
    path = f"{path}?{query}" if query else path
    return f"{scheme}{mark}{user.partition(':')[0]}{at}{host}{slash}{path}"


def type_tables() -> dict[str, tuple[TypeRow, ...]]:
    """Return, for each product that has one, the table of how its types travel."""
    products = {product.name: product for product in _PRODUCTS.values() if product.types}
    return {name: _load(p, p.types).TYPES for name, p in sorted(products.items())}


def _find(url: str) -> _Product:
    product = _PRODUCTS.get(url.partition(":")[0].lower())
    if not is_url(url) or product is None:
        known = ", ".join(f"{name}:///…" for name in _PRODUCTS)
        if Path(url).is_file():
            raise UsageError(f"{url} is a file; name a database by its URL, as in sqlite:///{url}")
        raise UsageError(
            f"{redact(url)} is not a database URL that Muniment knows; it knows {known}"
        )
    return product


def _load(product: _Product, module: str) -> ModuleType:
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("muniment"):
            raise
        raise MissingDriver(product.name, product.extra) from error


def _place(product: _Product, url: str) -> Path | str:
    """What a product's module is given: the URL of a server, the path of a file."""
    return url if product.server else _path(url)


def _path(url: str) -> Path:
    """The file of sqlite:///relative.db or sqlite:////absolute.db."""
    scheme, _, rest = url.partition("://")
    if not rest.startswith("/") or len(rest) < 2:
        raise UsageError(
            f"write {scheme}:///file for a file here, {scheme}:////folder/file elsewhere"
        )
    return Path(unquote(rest[1:]))

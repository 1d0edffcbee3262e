"""Live databases, one module per product, found by the scheme of a URL."""

from __future__ import annotations

import errno
import importlib
import inspect
import os
import re
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import unquote, unquote_plus

from muniment.databases.mapping import TypeRow
from muniment.databases.mistaken import meant_url, refuse_mistaken, refuse_mistaken_folder
from muniment.databases.trial import refuse_wrong_sql
from muniment.errors import MissingDriver, UsageError
from muniment.sql.selection import Selection
from muniment.sql.stores import Source, Target

__all__ = [
    "file_of", "is_url", "open_source", "open_target", "product_of", "redact", "takes_nul",
    "type_tables",
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class _Product:
    """Where the code for a product is, and which extra brings its driver."""

    name: str
    source: str  # the modules with open_source and create_target
    target: str
    extra: str
    server: bool = False  # whether it takes the whole URL, rather than the path of a file
    types: str = ""  # the module with TYPES, the table of its types
    nul: bool = False  # whether names may have the character 0


_PRODUCTS = {
    "sqlite": _Product(
        "SQLite", "muniment.databases.sqlite", "muniment.databases.sqlite_target", "sqlite"
    ),
    "duckdb": _Product(
        "DuckDB", "muniment.databases.duckdb", "muniment.databases.duckdb", "duckdb", nul=True
    ),
    "access": _Product(
        "Microsoft Access",
        "muniment.databases.access",
        "muniment.databases.access",
        "",  # no driver but the distribution's mdbtools
        types="muniment.databases.access_values",
    ),
}

_PRODUCTS["postgresql"] = _PRODUCTS["postgres"] = _Product(
    "PostgreSQL",
    "muniment.databases.postgresql",
    "muniment.databases.postgresql",
    "postgresql",
    server=True,
    types="muniment.databases.postgresql.types",
)
_PRODUCTS["mariadb"] = _PRODUCTS["mysql"] = _Product(
    "MariaDB and MySQL",
    "muniment.databases.mariadb",
    "muniment.databases.mariadb",
    "mysql",
    server=True,
    types="muniment.databases.mariadb.types",
)
_PRODUCTS["firebird"] = _Product(
    "Firebird",
    "muniment.databases.firebird",
    "muniment.databases.firebird",
    "firebird",
    server=True,
    types="muniment.databases.firebird",
)
# Their dialects have drivers to choose from: oracle+oracledb://, mssql+pymssql://, …
_GENERIC = {
    scheme: _Product(
        name,
        "muniment.databases.generic",
        "muniment.databases.generic_target",
        "sqlalchemy",
        server=True,
    )
    for scheme, name in {
        "sqlalchemy": "a database through SQLAlchemy",
        "oracle": "Oracle",
        "mssql": "Microsoft SQL Server",
        "db2": "Db2",
    }.items()
}
_PRODUCTS |= _GENERIC

_SECRETS = {"password", "passwd", "pwd", "sslpassword"}  # in the query of a URL


def is_url(text: str) -> bool:
    """Whether a text names a database rather than a file."""
    return re.match(r"[A-Za-z][A-Za-z0-9+.-]*://", text) is not None


def open_source(
    url: str,
    selection: Selection | None = None,
    *,
    inline_limit: int = 4000,
    statement_timeout: float | None = None,
) -> AbstractContextManager[Source]:
    """Open a database for reading; products without a ``statement_timeout`` (seconds) refuse it."""
    product = _find(url)
    open_product = _load(product, product.source, "open_source")
    options = _wanted(product, open_product, statement_timeout=statement_timeout)
    place = _place(product, url)
    if isinstance(place, Path) and place.exists() and not os.access(place, os.R_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(place))
    if isinstance(place, Path):
        refuse_mistaken(product.name, url, place)
    if isinstance(place, Path) and selection is not None:
        refuse_wrong_sql(product.name, place, selection)
    source: AbstractContextManager[Source] = open_product(
        place, selection or Selection(), inline_limit=inline_limit, **options
    )
    return source


def open_target(
    url: str,
    *,
    replace: bool = False,
    resume: bool = False,
    roles: bool = False,
    index_memory: int | None = None,
) -> AbstractContextManager[Target]:
    """Open a new database for writing.

    ``resume`` goes on where an interrupted run stopped; products that are restored all at once or
    not at all refuse it. ``roles`` makes users and roles, where the product has some.
    ``index_memory`` is how many bytes indexes may take, where they are in the memory.
    """
    product = _find(url)
    create = _load(product, product.target, "create_target")
    options = _wanted(
        product, create, resume=resume or None, roles=roles or None, index_memory=index_memory
    )
    place = _place(product, url)
    if replace and isinstance(place, Path) and place.is_symlink() and place.exists():
        place = place.resolve()  # the database is replaced, and not the link that leads to it
    if isinstance(place, Path):
        refuse_mistaken_folder(url, place)
    target: AbstractContextManager[Target] = create(place, replace=replace, **options)
    return target


def file_of(url: str) -> Path | None:
    """Return the file of a database that is one."""
    product = _find(url)
    # Firebird has both; without a host it is a file.
    is_server = product.server and not url.lower().startswith("firebird:///")
    return None if is_server else _path(url)


def product_of(url: str) -> str:
    """Return the name of the product that a URL names."""
    return _find(url).name


def takes_nul(url: str) -> bool:
    """Whether names in a database may have the character 0."""
    return _find(url).nul


def redact(url: str) -> str:
    """Return the URL without any password.

    >>> redact("postgresql://reader:secret@db/registry")
    'postgresql://reader@db/registry'
    >>> redact("sqlite:///shop.db")
    'sqlite:///shop.db'
    >>> redact("postgresql:///registry?host=/run/pg&password=secret")
    'postgresql:///registry?host=/run/pg'
    >>> redact("sqlite:///what?.db")
    'sqlite:///what?.db'
    """
    scheme, mark, rest = url.partition("://")
    product = _PRODUCTS.get(scheme.lower())
    if product and not product.server and rest.startswith("/"):
        return url  # all of it is the name of a file
    place, slash, path = rest.partition("/")
    user, at, host = place.rpartition("@")
    path, question, query = path.partition("?")
    if question:  # what is kept stays as it is spelt: products read + and % in different ways
        pairs = ((unquote_plus(pair.partition("=")[0]), pair) for pair in query.split("&"))
        query = "&".join(pair for name, pair in pairs if name.lower() not in _SECRETS)
    path = f"{path}?{query}" if query else path
    return f"{scheme}{mark}{user.partition(':')[0]}{at}{host}{slash}{path}"


def type_tables() -> dict[str, tuple[TypeRow, ...]]:
    """Return, for each product that has one, the table of how its types travel."""
    products = {product.name: product for product in _PRODUCTS.values() if product.types}
    return {name: _load(p, p.types, "TYPES") for name, p in sorted(products.items())}


def _find(url: str) -> _Product:
    scheme = url.partition(":")[0].lower()
    product = _PRODUCTS.get(scheme) or _GENERIC.get(scheme.partition("+")[0])
    if not is_url(url) or product is None:
        files = [name for name, each in _PRODUCTS.items() if not each.server]
        if advice := meant_url(redact(url), list(_PRODUCTS), files):
            raise UsageError(advice)
        known = ", ".join(
            f"{name}://{'…' if known.server else '/…'}" for name, known in _PRODUCTS.items()
        )
        raise UsageError(
            f"{redact(url) or 'an empty text'} is not a database URL that Muniment knows; it knows "
            f"{known}"
        )
    return product


_REFUSALS = {
    "statement_timeout": "{} has no statement timeout; leave out --statement-timeout",
    "resume": "{} is restored all at once or not at all: there is nothing to go on from; "
    "leave out --resume",
    "index_memory": "{} needs no memory of Muniment's for its indexes; leave out --index-memory",
    "roles": "{} has no users and roles that Muniment could make; leave out --roles",
}


def _wanted(product: _Product, function: Any, **options: Any) -> dict[str, Any]:
    """Return the options that were asked for; refuse those that the product does not have."""
    asked = {name: value for name, value in options.items() if value is not None}
    known = inspect.signature(function).parameters
    for name in asked:
        if name not in known:
            raise UsageError(_REFUSALS[name].format(product.name))
    return asked


def _load(product: _Product, module: str, name: str) -> Any:
    """Return what a product's module calls by a name; some load their parts only now."""
    try:
        return getattr(importlib.import_module(module), name)
    except ModuleNotFoundError as error:
        if (error.name or "").startswith("muniment"):
            raise
        raise MissingDriver(product.name, product.extra) from error


def _place(product: _Product, url: str) -> Path | str:
    """What a product's module is given: the URL of a server, the path of a file."""
    if not product.server:
        return _path(url)
    if (torn := _TORN.match(url)) and not torn["port"].isdigit():
        # What follows would be taken for the host, and named in messages.
        raise UsageError(
            "the password in the URL has a character that ends it: write %2F for /, %3F for ? and "
            "%23 for #, or leave it out and set MUNIMENT_PASSWORD"
        )
    return url


_TORN = re.compile(r"[\w+.-]+://[^:/?#\[\]@]*:(?P<port>[^/?#@]*)[/?#].*@")


def _path(url: str) -> Path:
    """The file of sqlite:///relative.db or sqlite:////absolute.db."""
    scheme, _, rest = url.partition("://")
    if not rest.startswith("/") or len(rest) < 2:
        raise UsageError(
            f"write {scheme}:///file for a file here, {scheme}:////folder/file elsewhere"
        )
    path = Path(unquote(rest[1:]))
    try:
        str(path).encode()
    except UnicodeEncodeError:
        raise UsageError(
            f"{path} is not a name in UTF-8, which databases need; rename the file or its folder"
        ) from None
    return path

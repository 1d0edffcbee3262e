"""URLs that are nearly right, and what was meant by them."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from difflib import get_close_matches
from pathlib import Path

from muniment.errors import DatabaseError, UsageError

__all__ = ["meant_url", "refuse_mistaken", "refuse_mistaken_folder"]

_NEAR = 0.75  # how much of a scheme has to be right
_ENDINGS = {
    "duckdb": (".duckdb", ".ddb"),
    "access": (".mdb", ".accdb"),
    "sqlite": (".db", ".db3", ".sqlite", ".sqlite3"),
}


def meant_url(text: str, schemes: Collection[str], files: Collection[str]) -> str:
    """Say which URL was perhaps meant by a text that is none; nothing if nobody can tell.

    >>> meant_url("sqllite:///a.db", ["sqlite"], ["sqlite"])
    'sqllite:///a.db is not a database URL that Muniment knows; did you mean sqlite:///a.db?'
    >>> meant_url("new.duckdb", [], [])
    'new.duckdb is not a database URL, but a path; did you mean duckdb:///new.duckdb?'
    """
    unknown = f"{text} is not a database URL that Muniment knows; did you mean"
    scheme, colon, rest = text.partition(":")
    if colon and scheme.lower() in files:  # sqlite:a.db
        return f"{unknown} {scheme}:///{rest}?"
    if rest.startswith("//"):
        near = get_close_matches(scheme.lower(), schemes, 1, _NEAR)
        return f"{unknown} {near[0]}:{rest}?" if near else ""
    path = Path(text)
    spelt = text.replace("%", "%25")
    if path.is_file() and path.suffix.lower() == ".siard":
        return f"{text} is an archive and no database"
    if path.is_file():
        return (
            f"{text} is a file; name a database by its URL, as in {_scheme_of(path) or 'sqlite'}"
            f":///{spelt}"
        )
    if not colon and (found := _scheme_of(path)):
        return f"{text} is not a database URL, but a path; did you mean {found}:///{spelt}?"
    return ""


def refuse_mistaken(product: str, url: str, path: Path) -> None:
    """Raise DatabaseError for a file that is elsewhere, or of another product."""
    if not path.exists() and (other := _from_root(url, path, Path.is_file)):
        raise DatabaseError(f"there is no {product} database {path} in this folder; {other}")
    if product == "SQLite" and _begins(path) == "duckdb":
        raise DatabaseError(
            f"{path} is a DuckDB database; name it by a URL that starts with duckdb:///"
        )


def refuse_mistaken_folder(url: str, path: Path) -> None:
    """Raise UsageError for a new file in a folder that is elsewhere."""
    if not path.parent.exists() and (other := _from_root(url, path.parent, Path.is_dir)):
        raise UsageError(f"the folder {path.parent} does not exist here; {other}")


def _from_root(url: str, path: Path, is_there: Callable[[Path], bool]) -> str:
    """Offer the URL with four slashes, if that leads to something."""
    scheme, _, rest = url.partition("://")
    with suppress(OSError):  # where nobody may look
        if not path.is_absolute() and is_there(Path("/") / path):
            return f"did you mean {scheme}:///{rest}, with four slashes?"
    return ""


def _scheme_of(path: Path) -> str:
    """Return the scheme for a file, by how it begins or by how its name ends."""
    ending = path.suffix.lower()
    named = (scheme for scheme, endings in _ENDINGS.items() if ending in endings)
    return _begins(path) or next(named, "")


def _begins(path: Path) -> str:
    """Return the scheme for a file that begins as a database does."""
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        start = stream.read(16)
    if start.startswith(b"SQLite format 3"):
        return "sqlite"
    return "duckdb" if start[8:12] == b"DUCK" else ""

"""The options on large objects that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muniment.cli.options import ROWS, pairs
from muniment.cli.terminal import count, cut

if TYPE_CHECKING:
    from muniment.siard.lobs.folders import Root
    from muniment.siard.lobs.storing import External

__all__ = [
    "LAYOUTS", "PLACES", "SMALLEST", "VERSIONS", "as_size", "external_of", "lob_options",
    "lob_roots", "parse_size", "roots_of",
]  # fmt: skip

PLACES = ("inline", "internal", "external")
LAYOUTS = ("siard-2.2", "eark-2.0")
VERSIONS = ("2.2", "2.0")
SMALLEST = 10_000  # bytes of a part or segment: smaller ones would be more files than anyone wants
_LARGEST = 1 << 60
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,18})\s*(?:([KMGT])(i?B)?|B)?", re.IGNORECASE)

F = TypeVar("F", bound=Callable[..., Any])


def parse_size(text: str, smallest: int = 1) -> int:
    """Return a number of bytes, or raise ValueError: also if it is smaller than makes sense.

    >>> parse_size("45000"), parse_size("4GB"), parse_size("4 GiB"), parse_size("8M")
    (45000, 4000000000, 4294967296, 8388608)
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a size such as 45000, 700MB or 8GiB")
    number, unit, ending = int(match[1]), (match[2] or "").upper(), (match[3] or "").upper()
    decimal = ending == "B" and unit
    bytes_ = number * (1000 ** (1 + "KMGT".index(unit)) if decimal else _UNITS[unit])
    if bytes_ < smallest:
        raise ValueError(f"{text!r} is too small; it takes at least {count(smallest, 'byte')}")
    if bytes_ > _LARGEST:
        raise ValueError(f"{text!r} is larger than any disk")
    return bytes_


def as_size(smallest: int = 1) -> Callable[..., int | None]:
    """Return the callback of an option that takes a size, of at least so many bytes."""

    def parse(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
        try:
            return None if value is None else parse_size(value, smallest)
        except ValueError as error:
            raise click.BadParameter(str(error), param=param) from error

    return parse


def _places(ctx: click.Context, param: click.Parameter, values: tuple[str, ...]) -> dict[str, str]:
    chosen = pairs("WHAT=PLACE")(ctx, param, values)
    for place in chosen.values():
        if place not in PLACES:
            message = f"{place!r} is not a place; choose {', '.join(PLACES)}"
            raise click.BadParameter(message, param=param)
    return chosen


def _thresholds(
    ctx: click.Context, param: click.Parameter, values: tuple[str, ...]
) -> dict[str, int]:
    chosen = pairs("WHAT=N")(ctx, param, values)
    for number in chosen.values():
        if not re.fullmatch(r"[0-9]{1,18}", number):
            raise click.BadParameter(f"{cut(number, 40)!r} is not a whole number", param=param)
    return {name: int(number) for name, number in chosen.items()}


_OPTIONS = (
    click.option(
        "--lobs",
        type=click.Choice(PLACES),
        help="Where large values go: into the table's XML, into files of their own inside the "
        "archive, or into folders beside it.",
    ),
    click.option(
        "--lob-threshold",
        type=ROWS,
        metavar="N",
        help="A value of more bytes, or characters of text, is large.",
    ),
    click.option(
        "--lobs-for",
        multiple=True,
        metavar="WHAT=PLACE",
        callback=_places,
        help="The same for a type (BLOB) or a column S.T.C (repeatable).",
    ),
    click.option(
        "--lob-threshold-for",
        multiple=True,
        metavar="WHAT=N",
        callback=_thresholds,
        help="The threshold for a type or a column (repeatable).",
    ),
    click.option(
        "--lob-mixed",
        is_flag=True,
        default=None,
        help="Decide value by value; otherwise all values of a column lie in files once one of "
        "them is large.",
    ),
    click.option(
        "--lob-layout",
        type=click.Choice(LAYOUTS),
        help="How folders beside the archive are laid out.  [default: siard-2.2]",
    ),
    click.option(
        "--segment-files",
        type=click.IntRange(min=1),
        metavar="N",
        help="The most files in one folder beside the archive.  [default: 10000]",
    ),
    click.option(
        "--segment-size",
        metavar="SIZE",
        callback=as_size(SMALLEST),
        help="The most bytes in one such folder (45000, 700MB, 8GiB); larger values are split.",
    ),
    click.option(
        "--segment-zip", is_flag=True, default=None, help="Pack each such folder as a ZIP file."
    ),
    click.option(
        "--lob-map",
        multiple=True,
        metavar="SEG=URI",
        callback=pairs("SEGMENT=URI"),
        help="Put segments elsewhere, as in 's0_t2_c4/seg_*=file:///mnt/store/', and say so in "
        "mapping.txt (repeatable).",
    ),
    click.option(
        "--split",
        metavar="SIZE",
        callback=as_size(SMALLEST),
        help="Split the SIARD file itself into parts of this size (700MB, 8GiB).",
    ),
    click.option(
        "--siard-version",
        type=click.Choice(VERSIONS),
        help="The version of SIARD that is written; 2.0 is for tools that read nothing newer.  "
        "[default: 2.2]",
    ),
)


def lob_options(command: F) -> F:
    """Add the options on where large objects go."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


def lob_roots(command: F) -> F:
    """Add --lob-root, passed as ``lob_root``."""
    return click.option(
        "--lob-root",
        multiple=True,
        metavar="[URI=]DIR",
        help="A folder in which large objects may lie, besides the archive's own; with a URI, "
        "the one that the archive calls so (repeatable).",
    )(command)


def roots_of(values: tuple[str, ...]) -> tuple[Root, ...]:
    """Return the folders that --lob-root allows."""
    from muniment.siard.lobs.folders import Root

    roots = []
    for value in values:
        uri, equals, folder = value.rpartition("=")
        if not (equals and uri.startswith("file:")):
            uri, folder = "", value
        if not Path(folder).is_dir():
            raise click.BadParameter(f"there is no folder {folder}", param_hint="--lob-root")
        roots.append(Root(Path(folder), uri))
    return tuple(roots)


def external_of(given: dict[str, Any]) -> External:
    """Return how folders beside the archive are laid out, from the options given."""
    from muniment.siard.lobs.layout import Limits
    from muniment.siard.lobs.storing import External

    files, most = given.get("segment_files"), given.get("segment_size")
    return External(
        layout=given.get("lob_layout") or LAYOUTS[0],
        limits=Limits(files or Limits().files, most),
        zipped=bool(given.get("segment_zip")),
        places=given.get("lob_map") or {},
    )

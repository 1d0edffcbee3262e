"""The options on large objects that several commands share."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from muniment.cli.options import pairs

if TYPE_CHECKING:
    from muniment.siard.lobs.folders import Root
    from muniment.siard.lobs.storing import External

__all__ = [
    "LAYOUTS", "PLACES", "VERSIONS", "as_size", "external_of", "lob_options", "lob_roots",
    "parse_size", "roots_of",
]  # fmt: skip

PLACES = ("inline", "internal", "external")
LAYOUTS = ("siard-2.2", "eark-2.0")
VERSIONS = ("2.2", "2.0")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_SIZE = re.compile(r"(\d{1,18})\s*(?:([KMGT])(i?B)?|B)?", re.IGNORECASE)

F = TypeVar("F", bound=Callable[..., Any])


def parse_size(text: str) -> int:
    """Return a number of bytes, or raise ValueError.

    >>> parse_size("45000"), parse_size("4GB"), parse_size("4 GiB"), parse_size("8M")
    (45000, 4000000000, 4294967296, 8388608)
    """
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise ValueError(f"{text!r} is not a size such as 45000, 700MB or 8GiB")
    number, unit, ending = int(match[1]), (match[2] or "").upper(), (match[3] or "").upper()
    if ending == "B" and unit:
        return int(number * 1000 ** "KMGT".index(unit) * 1000)
    return number * _UNITS[unit]


def as_size(_ctx: click.Context, param: click.Parameter, value: str | None) -> int | None:
    try:
        size = None if value is None else parse_size(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error
    if size == 0:
        raise click.BadParameter("there must be room for at least one byte", param=param)
    return size


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
        if not (number.isascii() and number.isdecimal()):
            raise click.BadParameter(f"{number!r} is not a whole number", param=param)
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
        type=click.IntRange(min=0),
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
        callback=as_size,
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
        callback=as_size,
        help="Split the SIARD file itself into parts of this size.",
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

    files, size = given.get("segment_files"), given.get("segment_size")
    return External(
        layout=given.get("lob_layout") or LAYOUTS[0],
        limits=Limits(files or Limits().files, size),
        zipped=bool(given.get("segment_zip")),
        places=given.get("lob_map") or {},
    )

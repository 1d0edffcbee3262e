"""From archive to archive: newer versions, objects in other places, parts split and joined."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from pathlib import Path

from muniment.errors import SiardError, Unfit, UsageError
from muniment.siard import LobOptions, create_siard, open_siard
from muniment.siard.lobs import mapping
from muniment.siard.lobs.folders import Disks, Root
from muniment.siard.lobs.placement import EXTERNAL, INTERNAL, Placements
from muniment.siard.lobs.storing import External
from muniment.sql.model import Column, Database, Field
from muniment.transfer import Progress, Report, copy, reported

__all__ = ["ConvertOptions", "convert", "remap"]

_NEVER_TOO_LONG = 1 << 40


@dataclass(frozen=True)
class ConvertOptions:
    """How the new archive is written; what is None stays as it was."""

    place: str | None = None
    threshold: int | None = None
    mixed: bool = False
    places: Mapping[str, str] = field(default_factory=dict)
    thresholds: Mapping[str, int] = field(default_factory=dict)
    external: External = field(default_factory=External)
    digests: tuple[str, ...] = ("SHA-256",)
    compression: str = "fast"
    split: int | None = None
    version: str = "2.2"  # of SIARD; or "2.0"
    jobs: int = 0


def convert(
    path: Path,
    out: Path,
    options: ConvertOptions | None = None,
    roots: Sequence[Root] = (),
    progress: Callable[[Progress], None] = lambda _: None,
) -> Report:
    """Write the archive at ``path`` anew; every object's digest is checked."""
    options = options or ConvertOptions()
    if out.suffix != ".siard":
        raise UsageError(f"{out}: the name of a SIARD file ends with .siard (G_4.1-5)")
    started = time.monotonic()
    with ExitStack() as stack:
        source = stack.enter_context(open_siard(path, roots))
        database = source.describe()
        target = stack.enter_context(
            create_siard(
                out,
                _day(database.archival_date),
                compression=options.compression,
                digests=options.digests,
                lobs=LobOptions(_placements(database, options), options.external),
                split=options.split,
                version=options.version,
            )
        )
        try:
            counts = copy(source, target, database, options.jobs, progress)
        except Unfit as unfit:
            raise SiardError(
                f"{unfit.fact}. Nothing was written; muniment validate shows what is wrong with "
                f"{path.name}"
            ) from unfit
        notes = [*source.changed(), *target.notes]
        if database.version != options.version:
            notes.append(
                f"the archive was SIARD {database.version} and is SIARD {options.version} now"
            )
        written, digests = target.bytes_written, target.digests
    return reported(counts, notes, started, written, digests)


def remap(path: Path, moves: Mapping[str, str], roots: Sequence[Root] = ()) -> dict[str, str]:
    """Rewrite the mapping.txt beside an archive after its segments were moved; return it.

    Nothing is written unless every segment is found in its new place.
    """
    file = path.with_name(mapping.NAME)
    if not file.is_file():
        raise UsageError(f"there is no {file} to be rewritten")
    entries = mapping.remapped(mapping.Mapping.read(file), moves)
    disks = Disks(path, roots)
    for folder, uri in entries.items():
        base = disks.base(uri)
        if base is None:
            raise UsageError(f"{uri} is not allowed yet; name its folder with --lob-root")
        if disks.folder(base, tuple(folder.split("/"))) is None:
            raise UsageError(f"{folder} is not beneath {uri}; nothing was changed")
    partial = file.with_name(f".{file.name}.partial")
    partial.write_bytes(mapping.format_mapping(sorted(entries.items())))
    partial.replace(file)
    return entries


def _placements(database: Database, options: ConvertOptions) -> Placements:
    """Return where objects go; where nobody said anything, they stay where they are."""
    if options.place is not None:
        threshold = 4000 if options.threshold is None else options.threshold
        return Placements(
            options.place, threshold, options.mixed, options.places, options.thresholds
        )
    outside = {
        f"{s.name}.{t.name}.{c.name}": EXTERNAL
        for s, t in database.tables()
        for c in t.columns
        if _lies_outside(c, database)
    }
    threshold = _NEVER_TOO_LONG if options.threshold is None else options.threshold
    places = {**outside, **options.places}
    return Placements(INTERNAL, threshold, options.mixed, places, options.thresholds)


def _lies_outside(column: Column, database: Database) -> bool:
    """The ruling: a column's folder means outside. DBPTK writes one for objects inside, too."""
    inside = (database.lob_folder or "").strip("./") == "content"
    return not inside and _has_folder(column)


def _has_folder(level: Column | Field) -> bool:
    return bool(level.lob_folder) or any(map(_has_folder, level.fields))


def _day(text: str) -> date:
    try:
        return date.fromisoformat(text[:10])
    except ValueError:
        return datetime.now(UTC).date()

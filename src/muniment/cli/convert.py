"""``muniment convert``: an archive is written anew, in another version or with other folders."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from muniment.cli.config import COMPRESSIONS, DIGESTS
from muniment.cli.lobs import external_of, lob_options, lob_roots, roots_of
from muniment.cli.options import (
    ARCHIVE,
    check_input,
    check_output,
    examples,
    jobs_option,
    json_option,
    pairs,
)
from muniment.cli.signals import done_with
from muniment.errors import UsageError

__all__ = ["convert"]


@click.command(
    epilog=examples(
        "muniment convert trees.siard trees-new.siard",
        "muniment convert trees.siard outside.siard --lobs external --segment-size 8GiB",
        "muniment convert trees.siard parts.siard --split 500KB",
    )
)
@click.argument("file", type=ARCHIVE, metavar="IN.siard")
@click.argument("out", type=click.Path(path_type=Path), metavar="[OUT.siard]", required=False)
@lob_options
@lob_roots
@click.option(
    "--digest",
    multiple=True,
    type=click.Choice(DIGESTS),
    help="Digests over the primary data (repeatable).  [default: SHA-256]",
)
@click.option("--compression", type=click.Choice(COMPRESSIONS), help="[default: fast]")
@click.option(
    "--remap",
    multiple=True,
    metavar="OLD=NEW",
    callback=pairs("OLD=NEW"),
    help="Without OUT.siard: segments were moved from one URI to another; rewrite mapping.txt.",
)
@jobs_option
@json_option
def convert(
    file: Path,
    out: Path | None,
    lob_root: tuple[str, ...],
    remap: dict[str, str],
    as_json: bool,
    **given: Any,
) -> None:
    """Write an archive anew as SIARD 2.2.

    Versions 1.0, 2.0 and 2.1 become 2.2; --siard-version 2.0 goes back. Large objects stay where
    they are (inside, outside, inline) unless --lobs says otherwise; their lengths and digests are
    checked on the way. An archive in parts is joined, unless --split cuts it again.
    """
    check_input(file)
    if (out is None) == (not remap):
        raise UsageError("give either OUT.siard, or --remap to rewrite mapping.txt alone")

    from muniment.cli import report

    if out is None:
        _remap(file, remap, lob_root, as_json)
        return
    check_output(out)

    from muniment import convert as converting
    from muniment.cli import progress

    options = converting.ConvertOptions(
        place=given["lobs"],
        threshold=given["lob_threshold"],
        mixed=bool(given["lob_mixed"]),
        places=given["lobs_for"],
        thresholds=given["lob_threshold_for"],
        external=external_of(given),
        digests=given["digest"] or ("SHA-256",),
        compression=given["compression"] or "fast",
        split=given["split"],
        version=given["siard_version"] or "2.2",
        jobs=given["jobs"] or 0,
    )
    done_with(out)
    with progress.shown("converting") as tell:
        result = converting.convert(file, out, options, roots_of(lob_root), tell)
    if as_json:
        report.print_json({"file": str(out), **report.transfer_json(result)})
        return
    report.print_tables(result.tables)
    report.print_summary(str(out), result)
    report.print_notes(result.notes)
    command = ["muniment", "compare", report.named(file), report.named(out)]
    report.print_advice("to prove that both archives hold the same", command)


def _remap(file: Path, moves: dict[str, str], roots: tuple[str, ...], as_json: bool) -> None:
    from muniment import convert as converting
    from muniment.cli import report
    from muniment.cli.terminal import safe

    entries = converting.remap(file, moves, roots_of(roots))
    if as_json:
        report.print_json({"file": str(file), "mapping": entries})
        return
    rows = [[safe(folder), safe(uri)] for folder, uri in entries.items()]
    report.print_table(["segment", "place"], rows)

"""``muniment archive``: a live database becomes one SIARD file."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.config import COMPRESSIONS, DIGESTS, MISSING, Settings, parse_date
from muniment.cli.lobs import external_of, lob_options
from muniment.cli.options import (
    check_output,
    examples,
    jobs_option,
    json_option,
    ssh_option,
    timeout_option,
)
from muniment.cli.selecting import chosen_by, selection_of, selection_options, settings_of
from muniment.cli.signals import done_with
from muniment.errors import DatabaseError, WorkerDied

if TYPE_CHECKING:
    from muniment.transfer import ArchiveOptions, Progress

    Tell = Callable[[Progress], None]

__all__ = ["archive"]


def _date(_ctx: click.Context, param: click.Parameter, value: str | None) -> str | None:
    try:
        return None if value is None else parse_date(value)
    except ValueError as error:
        raise click.BadParameter(str(error), param=param) from error


@click.command(
    epilog=examples(
        "muniment archive sqlite:///trees.db trees-2025.siard",
        "muniment archive sqlite:///trees.db described.siard --config trees.yaml",
        "muniment archive sqlite:///trees.db felled.siard --table tree \\",
        "    --where 'tree=felled_on IS NOT NULL' --owner 'City of Ulmenhafen'",
    )
)
@click.argument("database")
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE.siard")
@selection_options
@click.option(
    "--as-text",
    multiple=True,
    metavar="S.T.C",
    help="Archive a column as text, whatever its type says.",
)
@lob_options
@click.option(
    "--datalink",
    multiple=True,
    metavar="S.T.C",
    help="A column that holds paths or URLs of files: archive the files, too (repeatable).",
)
@click.option(
    "--datalink-root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="The folder that such paths start from; no path may lead out of it.",
)
@click.option(
    "--missing-files",
    type=click.Choice(MISSING),
    help="Whether a linked file that is missing stops the work or is only reported.  "
    "[default: stop]",
)
@click.option(
    "--digest",
    multiple=True,
    type=click.Choice(DIGESTS),
    help="Digests over the primary data (repeatable).  [default: SHA-256]",
)
@click.option("--compression", type=click.Choice(COMPRESSIONS), help="[default: fast]")
@jobs_option
@timeout_option
@ssh_option
@click.option("--dbname", metavar="TEXT", help="The name of the database in the archive.")
@click.option("--owner", metavar="TEXT", help="Whose data it is.")
@click.option("--timespan", metavar="TEXT", help="When the data came to be: '1998 to 2024'.")
@click.option("--description", metavar="TEXT", help="What the database was for.")
@click.option("--archiver", metavar="TEXT", help="Who archived it.")
@click.option("--contact", metavar="TEXT", help="How to reach the archiver.")
@click.option(
    "--archival-date", metavar="DATE", callback=_date, help="YYYY-MM-DD.  [default: today]"
)
@click.option(
    "--resume",
    is_flag=True,
    help="Keep the tables that are complete if the work is interrupted, and go on from there when "
    "the same command is run again.",
)
@json_option
def archive(
    database: str,
    file: Path,
    config: Path | None,
    ssh: str | None,
    resume: bool,
    as_json: bool,
    **given: Any,
) -> None:
    """Archive a database as a new SIARD 2.2 file.

    DATABASE is a URL such as sqlite:///trees.db. FILE.siard must not exist yet; it appears when it
    is complete, or not at all.
    """
    check_output(file)
    settings = settings_of(given, config)

    from muniment import transfer
    from muniment.cli import progress, report
    from muniment.databases import redact

    done_with(file)
    selection = selection_of(settings)
    options = replace(options_of(settings), ssh=ssh, resume=resume)
    with progress.shown("archiving") as tell, advised(tell, resume) as watch:
        result = transfer.archive(database, file, selection, options, watch)
    if as_json:
        report.print_json({"file": str(file), **report.transfer_json(result)})
        return
    report.print_tables(result.tables)
    report.print_summary(str(file), result)
    report.print_notes(result.notes)
    way = [*chosen_by(Settings(**given), config), *(["--ssh", ssh] if ssh else [])]
    report.print_advice(
        "to prove that the archive equals its source",
        ["muniment", "compare", redact(database), report.named(file), *way],
    )


@contextmanager
def advised(tell: Tell, resume: bool) -> Iterator[Tell]:
    """Tell those who lose work that it could have been kept."""
    begun = False

    def watch(progress: Progress) -> None:
        nonlocal begun
        begun = True
        tell(progress)

    try:
        yield watch
    except (DatabaseError, WorkerDied) as error:
        if begun and not resume:
            error.add_note("With --resume, complete tables are kept, and the next run goes on")
        raise


def options_of(settings: Settings) -> ArchiveOptions:
    """Return how the archive is written; what nobody said is left to the defaults."""
    from muniment.datalinks import Links
    from muniment.transfer import ArchiveOptions, Description

    description = Description(
        dbname=settings.dbname,
        description=settings.description,
        data_owner=settings.owner,
        data_origin_timespan=settings.timespan,
        archiver=settings.archiver,
        archiver_contact=settings.contact,
        archival_date=settings.archival_date,
        schemas=settings.descriptions.get("schemas", {}),
        tables=settings.descriptions.get("tables", {}),
        columns=settings.descriptions.get("columns", {}),
    )
    said: dict[str, Any] = {
        "lobs": settings.lobs,
        "lob_threshold": settings.lob_threshold,
        "lobs_for": settings.lobs_for,
        "lob_threshold_for": settings.lob_threshold_for,
        "lob_mixed": settings.lob_mixed,
        "external": external_of(vars(settings)),
        "split": settings.split,
        "version": settings.siard_version,
        "links": Links(settings.datalink, _folder(settings), settings.missing_files == "report"),
        "digests": settings.digest or None,
        "compression": settings.compression,
        "jobs": settings.jobs,
        "statement_timeout": settings.statement_timeout,
    }
    said = {name: value for name, value in said.items() if value is not None}
    return ArchiveOptions(description=description, **said)


def _folder(settings: Settings) -> Path | None:
    return None if settings.datalink_root is None else Path(settings.datalink_root)

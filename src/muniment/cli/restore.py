"""``muniment restore``: a SIARD file becomes a live database again."""

from __future__ import annotations

from pathlib import Path

import click

from muniment.cli.lobs import as_size, lob_roots, roots_of
from muniment.cli.options import (
    ARCHIVE,
    check_input,
    examples,
    jobs_option,
    json_option,
    pairs,
    ssh_option,
)
from muniment.cli.signals import done_with
from muniment.errors import UsageError

__all__ = ["restore"]

_LEAST_INDEX_MEMORY = 32_000_000  # what DuckDB keeps of all its tables


@click.command(
    epilog=examples(
        "muniment restore trees.siard sqlite:///trees-new.db",
        "muniment restore trees.siard duckdb:///trees-new.duckdb --schema-map main=register",
    )
)
@click.argument("file", type=ARCHIVE, metavar="FILE.siard")
@click.argument("database")
@click.option(
    "--table", multiple=True, metavar="T", help="Only these tables: T or S.T, with * and ?."
)
@click.option(
    "--schema-map",
    multiple=True,
    metavar="OLD=NEW",
    callback=pairs("OLD=NEW"),
    help="Restore a schema under another name (repeatable).",
)
@click.option("--no-constraints", is_flag=True, help="Leave out keys, checks and NOT NULL.")
@click.option(
    "--replace",
    is_flag=True,
    help="Replace the database if it holds these tables and nothing else.",
)
@lob_roots
@click.option(
    "--datalink-root",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    metavar="DIR",
    help="Put the files that DATALINK columns link to into this folder.",
)
@click.option(
    "--original-types/--sql-types",
    default=None,
    help="Use the types and definitions of the archive's own product, or SQL:2008 alone.  "
    "[default: original where the database is of that product]",
)
@click.option(
    "--left-out",
    type=click.Path(path_type=Path),
    metavar="FILE.sql",
    help="Where the SQL of what could not be made goes, if there is any.  "
    "[default: beside a new database file, for a server in this folder: NAME.left-out.sql]",
)
@click.option(
    "--resume",
    is_flag=True,
    help="Go on where an interrupted run stopped, in databases that cannot take it all at once.",
)
@click.option(
    "--roles",
    is_flag=True,
    help="Make the users and roles that the server lacks, without password or login, and give "
    "them their rights; for servers of the archive's own product.",
)
@click.option(
    "--index-memory",
    metavar="SIZE",
    callback=as_size(),
    help="How much memory the indexes of keys may take while DuckDB is given rows; keys that take "
    "more are left out, and named.  [default: 80MB]",
)
@ssh_option
@jobs_option
@json_option
def restore(
    file: Path,
    database: str,
    table: tuple[str, ...],
    schema_map: dict[str, str],
    no_constraints: bool,
    replace: bool,
    lob_root: tuple[str, ...],
    datalink_root: Path | None,
    original_types: bool | None,
    left_out: Path | None,
    resume: bool,
    roles: bool,
    index_memory: int | None,
    ssh: str | None,
    jobs: int | None,
    as_json: bool,
) -> None:
    """Restore an archive into a database.

    DATABASE is a URL such as sqlite:///again.db, of a database that is not there yet. With
    --replace it may be there, if it holds nothing but what the archive brings.
    """
    check_input(file)
    if index_memory is not None and index_memory < _LEAST_INDEX_MEMORY:
        raise UsageError("--index-memory takes at least 32MB")

    from muniment import transfer
    from muniment.cli import progress, report
    from muniment.databases import file_of, redact
    from muniment.finished import DATABASE

    done_with(file_of(database) or DATABASE)
    with progress.shown("restoring") as tell:
        result = transfer.restore(
            file,
            database,
            tables=table,
            schema_map=schema_map,
            constraints=not no_constraints,
            replace=replace,
            original_types=original_types,
            left_out=left_out,
            resume=resume,
            roles=roles,
            index_memory=index_memory,
            ssh=ssh,
            jobs=jobs or 0,
            progress=tell,
            roots=roots_of(lob_root),
            datalink_root=datalink_root,
        )
    shown = redact(database)
    if as_json:
        transfer_json, left_out_json = report.transfer_json(result), report.left_out_json(result)
        report.print_json({"database": shown, **transfer_json, **left_out_json})
        return
    report.print_tables(result.tables)
    report.print_summary(shown, result)
    report.print_notes(result.notes)
    report.print_left_out(result)
    purpose = "to prove that the database equals the archive"
    if table or no_constraints or original_types is False or result.left_out:
        purpose = "to see that only what was left out differs"
    command = ["muniment", "compare", report.named(file), shown, *(["--ssh", ssh] if ssh else [])]
    for old, new in schema_map.items():
        command += ["--schema-map", f"{old}={new}"]
    report.print_advice(purpose, command)

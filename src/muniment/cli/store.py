"""``muniment store``: the write-once store of digital objects."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.naming import NamesGroup
from muniment.cli.options import examples, json_option
from muniment.cli.store_access import access
from muniment.cli.store_care import convert, reindex, trust, verify
from muniment.cli.store_move import cdxj, export, import_
from muniment.cli.store_objects import add, get, query
from muniment.cli.store_objects import show as show_stored
from muniment.cli.terminal import count, safe, size

if TYPE_CHECKING:
    from muniment.repository import Store
    from muniment.repository.catalogue import Found

__all__ = ["store"]

STORE = click.argument("store", type=click.Path(path_type=Path), metavar="STORE")


@click.group(
    cls=NamesGroup,
    epilog=examples(
        "muniment store init archive --series db.example.ch",
        "muniment store add archive trees.siard --content-id urn:example:trees",
        "muniment store versions archive urn:example:trees",
    ),
)
def store() -> None:
    """Keep archives and files in a write-once store, and prove that they are unchanged.

    A store is a folder: objects are described on XMLtapes, their files lie in WARC or ARC files.
    Nothing in it is ever changed; every index can be deleted and is made again.
    """


@store.command(epilog=examples("muniment store init archive --series db.example.ch"))
@STORE
@click.option("--series", help="The document series in which names (PDIs) are given.")
@click.option("--base-url", help="Where the store will be served; it goes into its documents.")
@click.option("--place", "places", multiple=True, help="A folder for the files; repeatable.")
@click.option("--format", "form", help="warc (the default), warc.gz, arc or arc.gz.")
@click.option("--arc-limit", help="The size at which a new WARC or ARC file is begun, as 1G.")
@json_option
def init(
    store: Path, series: str | None, base_url: str | None, places: tuple[str, ...],
    form: str | None, arc_limit: str | None, as_json: bool,
) -> None:  # fmt: skip
    """Make a new store in the folder STORE."""
    from muniment.cli.store_objects import byte_count
    from muniment.repository import Store

    choices: dict[str, Any] = {
        "series": series,
        "base_url": base_url.rstrip("/") if base_url else None,
        "places": tuple(places) or None,
        "format": form,
        "arc_limit": byte_count(arc_limit) if arc_limit else None,
    }
    chosen = {name: value for name, value in choices.items() if value is not None}
    with Store.create(store, **chosen) as made:
        settings = made.settings
    if as_json:
        _json({"store": str(store), "id": settings.id, "series": settings.series})
        return
    click.echo(f"{safe(str(store))}: a new store; names will be given in {settings.series}")
    if series is None:
        click.echo("note: this series is an example; --series sets your own", err=True)


@store.command("place", epilog=examples("muniment store place archive /disk2/archive"))
@STORE
@click.argument("folder", type=click.Path(path_type=Path))
@json_option
def place(store: Path, folder: Path, as_json: bool) -> None:
    """Let a store spread over another folder, which must be empty."""
    from muniment.repository import Store

    with Store(store) as opened:
        opened.add_place(folder)
        if as_json:
            _json({"store": str(store), "places": [str(each.root) for each in opened.places]})
            return
        click.echo(f"{safe(str(store))}: {count(len(opened.places), 'place')}")


@store.command(
    "list",
    epilog=examples("muniment store list archive", "muniment store list archive --files --json"),
)
@STORE
@click.option("--since", default="", help="Objects from this date on.")
@click.option("--until", default="9999", help="Objects up to this date.")
@click.option("--limit", type=click.IntRange(1, 1 << 48), help="How many at most.")
@click.option("--files", is_flag=True, help="List tapes and ARC files instead of objects.")
@click.option("--all", "everything", is_flag=True, help="Logs and other records as well.")
@json_option
def list_(
    store: Path, since: str, until: str, limit: int | None, files: bool, everything: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """List the objects of a store by date, or its files."""
    from muniment.repository import Store

    until = until if len(until) > 10 or until == "9999" else f"{until}T23:59:59Z"
    with Store(store) as opened:
        if files:
            _print_files(opened, as_json)
            return
        kind = "" if everything else "object"
        found = opened.catalogue.records(since, until, kind, limit=limit or -1)
        if as_json:
            _json({"objects": [_record_json(each) for each in found]})
            return
        for each in found:
            click.echo(safe(f"{each.date}  {each.identifier}  {each.pdi}  {size(each.size)}"))
        counts = opened.catalogue.counts()
        facts = [count(counts[name], name[:-1]) for name in ("objects", "datastreams")]
        click.echo(safe(f"{store}: {', '.join(facts)}, {size(counts['bytes'])}"), err=True)


def _print_files(opened: Store, as_json: bool) -> None:
    rows = [
        {
            "id": file.uri,
            "kind": file.kind,
            "file": opened.label(file),
            "bytes": file.end,
            "sealed": file.sealed,
        }
        for file in opened.catalogue.files()
    ]
    if as_json:
        _json({"files": rows})
        return
    for row in rows:
        state = "" if row["sealed"] else "  still open"
        click.echo(safe(f"{row['kind']:<4}  {row['id']}  {row['file']}  {row['bytes']}{state}"))


@store.command(epilog=examples("muniment store versions archive urn:example:trees"))
@STORE
@click.argument("name")
@json_option
@click.pass_context
def versions(ctx: click.Context, store: Path, name: str, as_json: bool) -> None:
    """Locate NAME: a content identifier, PDI, package, datastream, tape or ARC identifier.

    All versions are listed with the date, the package, and the address of the tape it is on.
    """
    from muniment.repository import Store

    with Store(store) as opened:
        found = opened.versions(name)
        file = opened.catalogue.find_file(name) if not found else None
        if as_json:
            _json({"name": name, **_located(opened, found, name), "file": _file_json(opened, file)})
        elif file is not None:
            click.echo(safe(f"{file.kind}  {file.uri}  {opened.label(file)}"))
        for each in [] if as_json else found:
            tape = opened.catalogue.file(each.file)
            click.echo(
                safe(f"{each.date}  {each.identifier}  {each.pdi}  {base_url(opened, tape)}")
            )
        if not found and file is None:
            click.echo(f"muniment: there is nothing called {safe(name)} in {store}", err=True)
            ctx.exit(1)


def base_url(opened: Store, file: Any) -> str:
    """The address under which a tape is harvested, or an ARC file resolved."""
    kind = "oai" if file.kind == "tape" else "openurl"
    return f"{opened.settings.base_url}/{kind}/{file.uri.removeprefix('urn:uuid:')}"


def _located(opened: Store, found: list[Found], name: str) -> dict[str, Any]:
    stream = opened.catalogue.stream(name)
    return {
        "versions": [
            {
                **_record_json(each),
                "tape": opened.catalogue.file(each.file).uri,
                "base_url": base_url(opened, opened.catalogue.file(each.file)),
            }
            for each in found
        ],
        "datastream": None
        if stream is None
        else {
            "arc": opened.catalogue.file(stream.file).uri,
            "base_url": base_url(opened, opened.catalogue.file(stream.file)),
            "media_type": stream.record.media_type,
            "bytes": stream.record.size,
        },
    }


def _file_json(opened: Store, file: Any) -> dict[str, Any] | None:
    if file is None:
        return None
    return {"id": file.uri, "kind": file.kind, "base_url": base_url(opened, file)}


def _record_json(each: Found) -> dict[str, Any]:
    return {
        "package": each.identifier,
        "date": each.date,
        "kind": each.kind,
        "pdi": each.pdi or None,
        "datastreams": each.streams,
        "bytes": each.size,
        "sha256": each.sha256,
    }


def _json(value: Any) -> None:
    from muniment.cli.report import print_json

    print_json(value)


for _command in (
    add,
    access,
    get,
    show_stored,
    query,
    verify,
    trust,
    reindex,
    import_,
    export,
    convert,
    cdxj,
):
    store.add_command(_command)

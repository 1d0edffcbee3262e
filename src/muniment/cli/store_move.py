"""``muniment store import``, ``export`` and ``cdxj``: between stores and other programs."""

from __future__ import annotations

from pathlib import Path

import click

from muniment.cli.options import examples, json_option
from muniment.cli.terminal import count, safe
from muniment.errors import NotFound, UsageError

__all__ = ["cdxj", "export", "import_"]

_STORE = click.argument("store", type=click.Path(path_type=Path), metavar="STORE")


@click.command(
    "import",
    epilog=examples(
        "muniment store import archive exported",
        "muniment store import archive tape.xml files.arc",
        "muniment store import archive --records harvest.xml",
    ),
)
@_STORE
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option("--records", is_flag=True, help="XML documents or OAI-PMH answers, not tapes.")
@json_option
def import_(store: Path, paths: tuple[Path, ...], records: bool, as_json: bool) -> None:
    """Take in tapes, ARC and WARC files, or a folder that was exported.

    Everything is read and checked first; what is there already changes nothing.
    """
    from muniment.repository import Store
    from muniment.repository.exchange import import_files, import_records

    with Store(store) as opened:
        moved = (import_records if records else import_files)(opened, paths)
    if as_json:
        from muniment.cli.report import print_json

        print_json({"store": str(store), **moved._asdict()})
        return
    facts = [count(moved.records, "record"), count(moved.datastreams, "datastream")]
    click.echo(safe(f"{store}: {', '.join(facts)} imported; {moved.known} known already"))


@click.command(
    epilog=examples(
        "muniment store export archive moving",
        "muniment store export archive trees --id urn:example:trees",
    )
)
@_STORE
@click.argument("folder", type=click.Path(path_type=Path))
@click.option("--id", "names", multiple=True, help="Only these: any identifier; repeatable.")
@click.option("--since", default="", help="Only objects from this date on.")
@click.option("--until", default="", help="Only objects up to this date.")
@json_option
def export(
    store: Path, folder: Path, names: tuple[str, ...], since: str, until: str, as_json: bool
) -> None:
    """Write tapes and ARC files into a new folder, with a manifest for sha256sum -c."""
    from muniment.repository import Store
    from muniment.repository.exchange import export_selection, export_store

    with Store(store) as opened:
        if not (names or since or until):
            moved = export_store(opened, folder)
        else:
            end = until if len(until) > 10 else f"{until or '9999-12-31'}T23:59:59Z"
            if names:
                chosen = [found for name in names for found in opened.versions(name)]
                chosen = [each for each in chosen if since <= each.date <= end]
            else:
                chosen = list(opened.catalogue.records(since, end, "object"))
            if not chosen:
                raise NotFound("nothing in the store was chosen, so nothing was exported")
            unique = {each.identifier: each for each in chosen}
            moved = export_selection(opened, folder, unique.values())
    if as_json:
        from muniment.cli.report import print_json

        print_json({"folder": str(folder), **moved._asdict()})
        return
    facts = [count(moved.files, "file"), count(moved.records, "record")]
    click.echo(safe(f"{folder}: {', '.join(facts)}, {count(moved.datastreams, 'datastream')}"))


@click.command(epilog=examples("muniment store cdxj archive > archive.cdxj"))
@_STORE
@click.argument("arc", required=False)
def cdxj(store: Path, arc: str | None) -> None:
    """Print the datastreams of all ARC and WARC files, or of one, as CDXJ."""
    from muniment.arc import cdxj as lines
    from muniment.arc.index import ArcIndex
    from muniment.repository import Store

    with Store(store) as opened:
        files = opened.catalogue.files("arc")
        if arc is not None:
            found = opened.catalogue.find_file(arc)
            if found is None or found.kind != "arc":
                raise UsageError(f"there is no ARC file {arc} in {store}")
            files = [found]
        for file in files:
            if file.sealed:
                index = ArcIndex(opened.places[file.place].index(file.name))
                for line in lines(index, file.name):
                    click.echo(safe(line))
                index.close()

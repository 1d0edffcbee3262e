"""``muniment store add`` and ``get``: objects into a store, and out of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.options import ROWS, examples, json_option
from muniment.cli.terminal import byte_output, count, safe, size
from muniment.errors import MunimentError, UsageError

if TYPE_CHECKING:
    from muniment.repository import Added, Session, Store
    from muniment.repository.ingest import Submission

__all__ = ["add", "byte_count", "get", "query", "show"]

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)B?", re.IGNORECASE)
_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12}
_GROUP = 512  # objects that are looked up together
_RANGE = re.compile(r"(\d+)-(\d*)|-(\d+)")


def byte_count(text: str) -> int:
    """Return how many bytes a size like 1G or 250MB is."""
    match = _SIZE.fullmatch(text.strip())
    if not match:
        raise UsageError(f"{text!r} is not a size; write 500M or 1G")
    return int(float(match[1]) * _UNITS[match[2].lower()])


@click.command(
    epilog=examples(
        "muniment store add archive trees.siard --content-id urn:example:trees",
        "muniment store add archive scans --each",
    )
)
@click.argument("store", type=click.Path(path_type=Path), metavar="STORE")
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path), metavar="[FILE|DIR]...")
@click.option("--content-id", help="The identifier that the content has; one object only.")
@click.option(
    "--series", default="", help="The series for new names; the store's own if not given."
)
@click.option("--each", is_flag=True, help="Every file of a folder becomes an object of its own.")
@click.option("--with", "folders", multiple=True, type=click.Path(path_type=Path),
              help="A folder of large objects that belongs to a SIARD archive.")  # fmt: skip
@click.option("--from", "listing", type=click.File(encoding="utf-8"),
              help="A list of files, one a line; behind a tab its content id.")  # fmt: skip
@click.option("--as", "document", type=click.Choice(["didl", "mets"]), default="didl",
              show_default=True, help="The kind of document that describes an object.")  # fmt: skip
@click.option("--sign", "key", type=click.Path(path_type=Path), help="Sign with this PEM key.")
@json_option
def add(
    store: Path, paths: tuple[Path, ...], content_id: str | None, series: str, each: bool,
    folders: tuple[Path, ...], listing: Any, document: str, key: Path | None, as_json: bool,
) -> None:  # fmt: skip
    """Add files and folders to a store, as one batch.

    A file is an object, a SIARD archive together with its external folders; so is a folder with
    all its files. Content that is known by its identifier gets a new version, if it changed. What
    is printed is safe on disk.
    """
    if not paths and listing is None:
        raise UsageError("name the files or folders to be added, or a list of them with --from")

    from muniment.repository import Session, Store
    from muniment.repository.signatures import Signer
    from muniment.repository.verify import trust

    shown = _Shown(as_json)
    with Store(store) as opened:
        signer = Signer(key) if key else None
        if signer:
            trust(opened, signer)
        with (
            shown.noting(),
            Session(opened, series=series, document=document, signer=signer) as session,
        ):
            for submission, known in _with_known(
                opened, _submissions(paths, content_id, each, folders, listing)
            ):
                if known is not None:
                    shown.add([known])
                else:
                    session.add(
                        submission.sources,
                        contents=submission.contents,
                        metadata=submission.metadata,
                        facts=submission.facts,
                    )
                shown.acknowledge(session)
        shown.acknowledge(session)
    shown.end(store)


def _with_known(
    opened: Store, submissions: Iterator[Submission]
) -> Iterator[tuple[Submission, Added | None]]:
    """Yield each object with what the store has of it already, if it has not changed."""
    from muniment.repository.naming import is_pdi

    while group := list(islice(submissions, _GROUP)):
        names = [name for submission in group for name in submission.contents]
        named = opened.catalogue.which_named(names) | set(filter(is_pdi, names))
        for submission in group:
            known = named.intersection(submission.contents) if named else ()
            yield submission, _unchanged(opened, submission) if known else None


class _Shown:
    """Prints what has become safe; only JSON has to wait for the end."""

    def __init__(self, as_json: bool) -> None:
        self._objects: list[dict[str, Any]] | None = [] if as_json else None
        self._count = self._size = 0

    def acknowledge(self, session: Session) -> None:
        """Take what the session has acknowledged since the last time."""
        if session.acknowledged:
            fresh, session.acknowledged = session.acknowledged, []
            self.add(fresh)

    def add(self, objects: Sequence[Added]) -> None:
        """Show objects, new or known."""
        self._count += sum(added.new for added in objects)
        self._size += sum(added.size for added in objects if added.new)
        if self._objects is not None:
            self._objects += map(_added_json, objects)
            return
        click.echo("\n".join(safe(_added_line(added)) for added in objects))

    @contextmanager
    def noting(self) -> Iterator[None]:
        """Say with an error how much is safe."""
        try:
            yield
        except (OSError, MunimentError) as error:
            kept = count(self._count, "object") if self._count else "nothing"
            error.add_note(f"in the store of this batch: {kept}")
            raise

    def end(self, store: Path) -> None:
        """Print the sum."""
        if self._objects is not None:
            from muniment.cli.report import print_json

            print_json({"store": str(store), "objects": self._objects})
            return
        added, total = count(self._count, "object"), size(self._size)
        click.echo(f"{safe(str(store))}: {added} added, {total}", err=True)


def _added_line(added: Added) -> str:
    return f"{added.pdi}  {added.package}  {size(added.size) if added.new else 'unchanged'}"


def _added_json(added: Added) -> dict[str, Any]:
    return {
        "package": added.package,
        "pdi": added.pdi,
        "content_ids": list(added.contents),
        "datastreams": added.streams,
        "bytes": added.size,
        "new": added.new,
    }


def _submissions(
    paths: tuple[Path, ...], content_id: str | None, each: bool, folders: tuple[Path, ...],
    listing: Any,
) -> Iterator[Submission]:  # fmt: skip
    from muniment.repository.ingest import submissions, submit_file

    if content_id and (len(paths) != 1 or each or listing is not None):
        raise UsageError("--content-id names one object; for several, use --from")
    for submission in submissions(paths, each=each, folders=folders):
        yield submission._replace(contents=(content_id,)) if content_id else submission
    for line in listing or ():
        path, _, name = line.rstrip("\n").partition("\t")
        if path:
            yield submit_file(Path(path), contents=(name,) if name else ())


def _unchanged(opened: Store, submission: Submission) -> Added | None:
    """Return the latest version if content that is known has not changed at all."""
    from muniment.repository.ingest import same_as
    from muniment.repository.naming import is_pdi
    from muniment.repository.session import Added

    for name in submission.contents:
        if not opened.catalogue.is_named(name) and not is_pdi(name):
            continue
        for found in opened.versions(name)[-1:]:
            if same_as(submission, opened.object(found)):
                return Added(
                    found.identifier, found.pdi, submission.contents, found.streams, found.size,
                    new=False,
                )  # fmt: skip
    return None


@click.command(
    epilog=examples(
        "muniment store get archive urn:example:trees --to folder",
        "muniment store get archive urn:example:trees --record",
    )
)
@click.argument("store", type=click.Path(path_type=Path), metavar="STORE")
@click.argument("name")
@click.option("--version", type=click.IntRange(min=1), help="This version, not the latest.")
@click.option("--to", "folder", type=click.Path(path_type=Path),
              help="Write the object's files into this folder, as they were added.")  # fmt: skip
@click.option("--file", "path", help="Only the file of this path, on stdout.")
@click.option("--range", "bytes_", help="Only these bytes of it: 0-99, 100- or -20.")
@click.option("--record", is_flag=True, help="The document that describes the object, on stdout.")
@json_option
def get(
    store: Path, name: str, version: int | None, folder: Path | None, path: str | None,
    bytes_: str | None, record: bool, as_json: bool,
) -> None:  # fmt: skip
    """Get an object, one of its files, some bytes of it, or its document.

    NAME is a content identifier, a PDI, a package or a datastream identifier. A datastream, and an
    object that is one file, go to stdout unless --to is given.
    """
    from muniment.repository import Store

    with Store(store) as opened:
        if record:
            byte_output().write(opened.document(opened.find(name, version)) + b"\n")
            return
        if folder is None:
            _write_stream(opened, _one_stream(opened, name, version, path), bytes_)
            return
        if path or bytes_:
            raise UsageError("--file and --range write to stdout; leave out --to")
        made = opened.extract(opened.find(name, version), folder)
        if as_json:
            from muniment.cli.report import print_json

            print_json({"name": name, "files": [str(file) for file in made]})
            return
        for file in made:
            click.echo(safe(str(file)))


def _one_stream(opened: Store, name: str, version: int | None, path: str | None) -> str:
    """Return the datastream that is meant."""
    if opened.catalogue.stream(name) is not None:
        return name
    streams = opened.object(opened.find(name, version)).streams
    chosen = [stream for stream in streams if path in (None, stream.path)]
    if len(chosen) == 1:
        return chosen[0].identifier
    paths = ", ".join(stream.path for stream in streams[:8])
    wanted = f"{path} is not one" if path else "choose one with --file"
    raise UsageError(f"{name} has {len(streams)} files, {wanted}: {paths}")


def _write_stream(opened: Store, identifier: str, bytes_: str | None) -> None:
    total = opened.stream(identifier).record.size
    start, end = _interval(bytes_, total) if bytes_ else (0, total)
    output = byte_output()
    with opened.open_stream(identifier) as stream:
        stream.seek(start)
        while start < end and (chunk := stream.read(min(end - start, 1 << 20))):
            output.write(chunk)
            start += len(chunk)
    output.flush()


def _interval(text: str, total: int) -> tuple[int, int]:
    match = _RANGE.fullmatch(text)
    if not match:
        raise UsageError(f"{text!r} is not a range; write 0-99, 100- or -20")
    if match[3] is not None:
        return max(total - int(match[3]), 0), total
    end = int(match[2]) + 1 if match[2] else total
    if int(match[1]) >= end or int(match[1]) >= total:
        raise UsageError(f"the range {text} lies outside the {total} bytes")
    return int(match[1]), min(end, total)


@click.command(epilog=examples("muniment store show archive urn:example:trees main.tree"))
@click.argument("store", type=click.Path(path_type=Path), metavar="STORE")
@click.argument("name")
@click.argument("table", required=False, metavar="[SCHEMA.TABLE]")
@click.option("--version", type=click.IntRange(min=1), help="This version, not the latest.")
@click.option("--rows", type=ROWS, metavar="N", default=20, show_default=True)
@json_option
@click.pass_context
def show(
    ctx: click.Context, store: Path, name: str, table: str | None, version: int | None, rows: int,
    as_json: bool,
) -> None:  # fmt: skip
    """Show a SIARD archive of the store, or the first rows of a table, without unpacking it."""
    from muniment.cli.show import show_archive
    from muniment.repository import Store

    with Store(store) as opened:
        archive = opened.siard(name, version)
        show_archive(ctx, archive, table, rows, as_json, label=archive.label)


@click.command(
    epilog=examples(
        "muniment store query archive urn:example:trees 'SELECT count(*) FROM main.tree'"
    )
)
@click.argument("store", type=click.Path(path_type=Path), metavar="STORE")
@click.argument("name")
@click.argument("sql")
@click.option("--version", type=click.IntRange(min=1), help="This version, not the latest.")
@click.option("--format", "form", type=click.Choice(["table", "csv", "json", "jsonl", "parquet"]),
              default="table", help="How rows are printed.")  # fmt: skip
@click.option("--out", type=click.Path(path_type=Path), metavar="FILE", help="A new file for them.")
@click.option("--limit", type=ROWS, metavar="N", help="At most so many rows.")
@json_option
def query(
    store: Path, name: str, sql: str, version: int | None, form: str, out: Path | None,
    limit: int | None, as_json: bool,
) -> None:  # fmt: skip
    """Run an SQL query over a SIARD archive of the store, where it lies.

    Its tables are called SCHEMA.TABLE, or TABLE where only one schema has it.
    """
    from muniment.cli.query import run_query
    from muniment.repository import Store

    with Store(store) as opened:
        archive = opened.siard(name, version)
        run_query({"archive": archive}, sql, "json" if as_json else form, out, limit)

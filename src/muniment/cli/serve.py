"""``muniment serve``: the doors of a store."""

from __future__ import annotations

import json
import logging
from pathlib import Path
from urllib.parse import urlsplit

import click

from muniment.cli.browse import LOCAL, listen, shown
from muniment.cli.options import examples, json_option
from muniment.cli.terminal import safe
from muniment.errors import MissingDriver
from muniment.workers import default_jobs

__all__ = ["serve"]


@click.command(
    epilog=examples(
        "muniment serve archive",
        "muniment serve archive --host 0.0.0.0 --base-url https://archive.example.ch",
    )
)
@click.argument("store", type=click.Path(path_type=Path), metavar="STORE")
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8180, show_default=True,
    help="0: any free one.",
)  # fmt: skip
@click.option("--base-url", default="", help="The address that others see; else the store's own.")
@click.option("--email", "emails", multiple=True, help="Who answers harvesters; repeatable.")
@click.option(
    "--workers", type=click.IntRange(1, 64), default=None, metavar="N",
    help="Processes that answer; as many as there are cores, if not given.",
)  # fmt: skip
@click.option(
    "--upstream", "upstreams", nargs=3, multiple=True, metavar="SERIES[:FIRST-LAST] HOW URL",
    help="Who resolves other names, asked by http or thttp, or a redirect leads there; repeatable.",
)  # fmt: skip
@click.option(
    "--context-from", "contexts", multiple=True, metavar="URL",
    help="From where ContextObjects of OpenURL may be fetched; repeatable.",
)  # fmt: skip
@click.option("--access-log", is_flag=True, help="Write a line of JSON per request to stderr.")
@click.option("--largest", default="4G", show_default=True, help="The largest document to put.")
@click.option(
    "--patience", type=click.FloatRange(0.1, 3600), default=30, show_default=True,
    metavar="SECONDS", help="How long a client may take for headers, a form, or to read on.",
)  # fmt: skip
@click.option("--trace", is_flag=True, help="Answer TRACE on names, without credentials.")
@json_option
def serve(
    store: Path, host: str, port: int, base_url: str, emails: tuple[str, ...],
    workers: int | None, upstreams: tuple[tuple[str, str, str], ...],
    contexts: tuple[str, ...], access_log: bool, largest: str, patience: float, trace: bool,
    as_json: bool,
) -> None:  # fmt: skip
    """Open a store to others by standard protocols.

    OAI-PMH at /oai, OpenURL at /openurl, PDIs at /pdi/…, THTTP at /uri-res/…, the locator at
    /locate, the API at /api/openapi.json. Writing takes a token (see muniment token). Objects may
    be added meanwhile. Ctrl-C ends it.
    """
    from muniment.cli.store_objects import byte_count
    from muniment.repository.settings import DEFAULT_BASE

    try:
        import starlette
        import uvicorn
    except ImportError as error:
        raise MissingDriver("The server", "web") from error
    _ = starlette
    from muniment.web.doors.app import create_doors
    from muniment.web.doors.board import Board
    from muniment.web.doors.desk import Desk
    from muniment.web.doors.server import allow_many_files, check_parser, configured
    from muniment.web.doors.upstream import Upstreams, parse_upstream
    from muniment.web.doors.workers import run_workers

    known = tuple(parse_upstream(*each) for each in upstreams)
    allow_many_files()
    check_parser()
    desk = Desk(store, base_url)  # one process repairs what a crash has left, and makes indexes
    desk.close()
    listener = listen(host, port, tries=1)
    address = f"http://{shown(host)}:{listener.getsockname()[1]}/"
    if not base_url and desk.base == DEFAULT_BASE and host in LOCAL:
        base_url = desk.base = address.rstrip("/")  # names lead to where they are answered
    name = urlsplit(desk.base).hostname or "localhost"
    most = byte_count(largest)
    if access_log:
        _log_to_stderr()
    if as_json:
        click.echo(json.dumps({"store": str(store), "url": address, "base_url": desk.base}))
    else:
        click.echo(safe(f"{store}: {address}  (Ctrl-C ends)"))
    # A page of another site must not reach this one under a name of its own (DNS rebinding).
    hosts = (*LOCAL, "[::1]", name) if host in LOCAL else ()

    def config(board: Board) -> uvicorn.Config:
        desk = Desk(store, base_url, emails or (f"archive@{name}",))
        desk.largest, desk.patience, desk.traces = most, patience, trace
        desk.references = tuple(each.rstrip("/") + "/" for each in contexts)
        others = Upstreams(known, f"{desk.store().settings.id} {address}")
        return configured(create_doors(desk, hosts, board, others), patience)

    run_workers(workers or default_jobs(), listener, config)


def _log_to_stderr() -> None:
    log = logging.getLogger("muniment.access")
    handler = logging.StreamHandler()
    handler.setFormatter(logging.Formatter("%(message)s"))
    log.addHandler(handler)
    log.setLevel(logging.INFO)
    log.propagate = False

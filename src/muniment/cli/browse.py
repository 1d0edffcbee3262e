"""``muniment browse``: a local web page on archives."""

from __future__ import annotations

import secrets
import socket
import sys
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.lobs import lob_roots, roots_of
from muniment.cli.options import check_input, examples
from muniment.cli.terminal import safe
from muniment.errors import MissingDriver, UsageError

if TYPE_CHECKING:
    from muniment.siard.lobs.folders import Root

__all__ = ["LOCAL", "browse", "listen", "shown"]

LOCAL = ("127.0.0.1", "localhost", "::1")


@click.command(
    epilog=examples(
        "muniment browse trees.siard", "muniment browse trees.siard town.siard --port 8080"
    )
)
@click.argument(
    "files", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE.siard..."
)
@click.option("--host", default="127.0.0.1", show_default=True, help="Where to listen.")
@click.option(
    "--port", type=click.IntRange(0, 65535), default=8180, show_default=True,
    help="0: any free one; one that is taken is replaced by the next.",
)  # fmt: skip
@click.option(
    "--describe", "describes", is_flag=True,
    help="Let who has the token that is printed write descriptions into the archives.",
)  # fmt: skip
@lob_roots
@click.option("--open/--no-open", "opens", default=None, help="Open a browser (on a terminal).")
def browse(
    files: tuple[Path, ...], host: str, port: int, describes: bool, lob_root: tuple[str, ...],
    opens: bool | None,
) -> None:  # fmt: skip
    """Open archives in a browser: rows, large objects, a diagram, search, and SQL.

    Everything is read from the archives; nothing is written beside them. An index under the user's
    cache folder is built in the background. Ctrl-C ends it.
    """
    for file in files:
        check_input(file)
    token = secrets.token_urlsafe(18) if describes else ""
    site, app = _site(files, host, roots_of(lob_root), token)
    listener = listen(host, port)
    address = f"http://{shown(host)}:{listener.getsockname()[1]}/"
    click.echo(safe(f"{', '.join(f.name for f in files)}: {address}  (Ctrl-C ends)"))
    if token:
        click.echo(f"the token for descriptions: {token}")
    if opens if opens is not None else sys.stdout.isatty():
        webbrowser.open(address)
    _serve(app, listener)
    del site


def _site(
    files: tuple[Path, ...], host: str, roots: tuple[Root, ...], token: str
) -> tuple[Any, Any]:
    try:
        import jinja2
        import starlette
        import uvicorn
    except ImportError as error:
        raise MissingDriver("The web page", "web") from error
    _ = jinja2, starlette, uvicorn
    from muniment.query.names import unique_names
    from muniment.web.app import create_app
    from muniment.web.site import OpenArchive, Site

    names = unique_names((file.stem for file in files), taken=("memory", "system", "temp"))
    archives = {n: OpenArchive(n, f, roots) for n, f in zip(names, files, strict=True)}
    site = Site(archives, token)
    # A page of another site must not reach this one under a name of its own (DNS rebinding).
    return site, create_app(site, hosts=(*LOCAL, "[::1]") if host in LOCAL else ())


def listen(host: str, port: int, tries: int = 20) -> socket.socket:
    """Listen on a port; with several tries, on the next one that is free."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    for candidate in (port, *range(port + 1, port + tries)) if port else (0,):
        # With the protocol named, asyncio turns Nagle's delay off, which costs 40 ms per answer.
        listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((host, candidate))
            listener.listen()  # who reads the address may use it at once
        except OSError as error:
            listener.close()
            refused = error
        else:
            return listener
    raise UsageError(f"{host}:{port} cannot be listened on: {refused.strerror}")


def _serve(app: Any, listener: socket.socket) -> None:
    import uvicorn

    config = uvicorn.Config(app, log_level="warning", access_log=False, lifespan="on", http="h11")
    uvicorn.Server(config).run(sockets=[listener])


def shown(host: str) -> str:
    """Return a host as it stands in an address."""
    return f"[{host}]" if ":" in host else host

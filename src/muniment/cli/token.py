"""``muniment token``: who may write to a store over HTTP, or read what is for staff."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.naming import NamesGroup, by_option
from muniment.cli.options import examples, json_option
from muniment.cli.terminal import safe

if TYPE_CHECKING:
    from muniment.repository.tokens import Token

__all__ = ["token"]

_STORE = click.argument("store", type=click.Path(path_type=Path), metavar="STORE")


@click.group(
    cls=NamesGroup,
    epilog=examples(
        "muniment token create archive --holder 'Land registry' --scope series:db.example.ch",
        "muniment token list archive",
        "muniment token revoke archive 3f6c1a90b2d4 --reason 'the contract ended'",
    ),
)
def token() -> None:
    """Make, list and revoke the tokens with which programs write to a store over HTTP.

    \b
    Scopes:
      series:NAME  give names in a series, and put documents into it
      store        the same in all series, and read what is for staff
      registry     act on the registry of namespaces, series and schemes
      describe     write descriptions and assertions
      staff        read what is for staff
    """


@token.command(
    epilog=examples(
        "muniment token create archive --holder 'Land registry' --scope series:db.example.ch",
        "muniment token create archive --holder 'Reading room' --scope staff --days 30",
    )
)
@_STORE
@click.option("--holder", required=True, metavar="WHO", help="The person or program it is for.")
@click.option("--scope", "scopes", multiple=True, required=True, help="What for; repeatable.")
@click.option(
    "--days", type=click.IntRange(1, 36_500), default=365, show_default=True,
    help="How long it is valid.",
)  # fmt: skip
@click.option("--no-expiry", is_flag=True, help="It is valid until it is revoked.")
@by_option
@json_option
def create(
    store: Path, holder: str, scopes: tuple[str, ...], days: int, no_expiry: bool, by: str,
    as_json: bool,
) -> None:  # fmt: skip
    """Make a token and print it. It cannot be shown again: the store keeps a digest alone."""
    from muniment.cli.report import print_json
    from muniment.repository import Store
    from muniment.repository.tokens import create_token

    with Store(store) as opened:
        made, text = create_token(opened.names, holder, scopes, by, None if no_expiry else days)
        facts = made.as_json(opened.names.stamp())
    if as_json:
        print_json({"token": text, **facts})
        return
    click.echo(text)
    until = f"until {made.expires}" if made.expires else "until it is revoked"
    click.echo(
        safe(f"for {made.holder}: {', '.join(made.scopes)}; {until}. Keep it: it is shown once."),
        err=True,
    )


@token.command("list", epilog=examples("muniment token list archive"))
@_STORE
@json_option
def list_(store: Path, as_json: bool) -> None:
    """List all tokens there ever were, with what they are for and whether they are valid."""
    from muniment.cli.report import print_json, print_table
    from muniment.repository import Store
    from muniment.repository.tokens import list_tokens

    with Store(store) as opened:
        now = opened.names.stamp()
        found = list_tokens(opened.names)
    if as_json:
        print_json({"tokens": [each.as_json(now) for each in found]})
        return
    rows = [[safe(cell) for cell in _row(each, now)] for each in found]
    print_table(["id", "holder", "scopes", "state", "expires"], rows)


def _row(each: Token, now: str) -> list[str]:
    return [each.id, each.holder, " ".join(each.scopes), each.state(now), each.expires or "never"]


@token.command(epilog=examples("muniment token revoke archive 3f6c1a90b2d4"))
@_STORE
@click.argument("id_", metavar="ID")
@click.option("--reason", default="")
@by_option
@json_option
def revoke(store: Path, id_: str, reason: str, by: str, as_json: bool) -> None:
    """End a token at once and for ever, also for servers that are running."""
    from muniment.cli.report import print_json
    from muniment.repository import Store, keep_names
    from muniment.repository.tokens import revoke_token

    with Store(store) as opened:
        found = revoke_token(opened.names, id_, by, reason)
        keep_names(opened)
        facts: dict[str, Any] = found.as_json(opened.names.stamp())
    if as_json:
        print_json(facts)
    else:
        click.echo(safe(f"revoked: {found.id}, {found.holder}"))

"""``muniment store access``: who may read what of a store that is served."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from muniment.cli.naming import by_option
from muniment.cli.options import examples, json_option
from muniment.cli.terminal import safe
from muniment.errors import UsageError

if TYPE_CHECKING:
    from muniment.repository import Store
    from muniment.repository.access import Decision

__all__ = ["access"]


@click.command(
    epilog=examples(
        "muniment store access archive urn:example:trees",
        "muniment store access archive urn:example:trees --level closed "
        "--reason 'personal data' --by archivist",
        "muniment store access archive --everything --level staff --by archivist",
    )
)
@click.argument("store", type=click.Path(path_type=Path), metavar="STORE")
@click.argument("names", nargs=-1, metavar="NAME...")
@click.option("--everything", is_flag=True, help="What holds where nothing else was decided.")
@click.option(
    "--level", type=click.Choice(["open", "staff", "closed", "inherit"]),
    help="Who may read; inherit takes a decision back.",
)  # fmt: skip
@click.option("--reason", default="", help="Why; shown in place of what is closed.")
@click.option("--law", default="", help="The legal basis.")
@by_option
@json_option
def access(
    store: Path, names: tuple[str, ...], everything: bool, level: str | None, reason: str, law: str,
    by: str, as_json: bool,
) -> None:  # fmt: skip
    """Decide who may read documents over HTTP, or say what was decided.

    NAME is a content identifier, PDI, package or datastream; or an interval
    (pdi://db.example.ch/1997/*/*/*) or a series (pdi://db.example.ch/). The most specific decision
    holds. Decisions stay in the book of names; running servers follow at once.
    """
    from muniment.cli.report import print_json
    from muniment.repository import Store, keep_names
    from muniment.repository.access import EVERYTHING, set_access, subjects_of

    if bool(names) == everything:
        raise UsageError("name what it is about, or say --everything")
    with Store(store) as opened:
        wanted = [EVERYTHING] if everything else names
        subjects = [each for name in wanted for each in subjects_of(opened, name)]
        if level is not None:
            if not by:
                raise UsageError("say who decides with --by")
            set_access(opened.names, subjects, level, reason=reason, by=by, law=law)
            keep_names(opened)
        found = [(subject, _holding(opened, subject)) for subject in subjects]
    if as_json:
        print_json({"access": [{"name": name, **each.as_json()} for name, each in found]})
        return
    for name, each in found:
        told = "" if each.subject == name else f"  (by {each.subject})"
        why = f": {each.reason}" if each.reason else ""
        click.echo(safe(f"{each.level:<6}  {name}{told}{why}"))


def _holding(store: Store, subject: str) -> Decision:
    """Return what holds for a subject of any kind."""
    from muniment.repository.access import access_of

    found = store.catalogue.record(subject)
    decisions = access_of(store.names)
    return decisions.of_record(found) if found is not None else decisions.of_subject(subject)

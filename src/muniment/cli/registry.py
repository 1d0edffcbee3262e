"""``muniment registry``: who may give which names, from the first notice to the end."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date
from pathlib import Path
from typing import Any

import click

from muniment.cli.naming import NamesGroup, by_option, names_option, open_names
from muniment.cli.options import examples, json_option
from muniment.cli.terminal import safe
from muniment.errors import UsageError

__all__ = ["registry"]


@click.group(cls=NamesGroup, epilog=examples("muniment registry init", "muniment registry show"))
def registry() -> None:
    """The registry of URN subnamespaces, document series and fragment schemes."""


def _kind_option(command: Any) -> Any:
    return click.option(
        "--kind",
        type=click.Choice(["namespace", "series", "scheme"]),
        default="namespace",
        show_default=True,
    )(command)


def _open(folder: Path) -> Any:
    from muniment.registry import Registry

    return Registry(open_names(folder))


def _shown(entry: Any, as_json: bool) -> None:
    from muniment.cli.report import print_json

    if as_json:
        print_json(entry.as_json())
    else:
        version = f", version {entry.version}" if entry.version else ""
        click.echo(safe(f"{entry.kind} {entry.name}: {entry.state}{version}"))


@registry.command(epilog=examples("muniment registry init --series db.example.ch"))
@click.argument("folder", type=click.Path(path_type=Path), default=Path("names"))
@click.option(
    "--root", default="example", show_default=True, help="The URN namespace of the names."
)
@click.option("--series", multiple=True, help="A document series to begin with (repeatable).")
@click.option("--steward", default="", help="Who the series belong to.")
@json_option
def init(folder: Path, root: str, series: tuple[str, ...], steward: str, as_json: bool) -> None:
    """Make a folder for names and their registry."""
    from muniment.cli.report import print_json
    from muniment.identifiers import parse_series
    from muniment.names import Names
    from muniment.registry.review import check_snid

    for finding in check_snid(root, ()):
        if finding.stops:
            raise UsageError(f"--root: {finding.message}")
    for each in series:
        parse_series(each)
    with Names.create(folder, root) as names:
        for each in series:
            names.add_series(each, steward)
    if as_json:
        print_json({"folder": str(folder), "root": root, "series": list(series)})
    else:
        click.echo(safe(f"{folder}: names below urn:{root}; series: {', '.join(series) or 'none'}"))


@registry.command(
    epilog=examples("muniment registry series db.example.ch --steward 'City Archives'")
)
@click.argument("name")
@click.option("--steward", default="", help="Who it belongs to.")
@click.option("--title", default="")
@click.option("--close", "closing", is_flag=True, help="No new names from now on.")
@click.option("--mandate", nargs=2, metavar="AGENT DOCUMENT", help="Let somebody else mint in it.")
@click.option(
    "--interval", nargs=3, metavar="FIRST LAST RESOLVER",
    help="Who resolves the names of these days (YYYY-MM-DD); - takes them back.",
)  # fmt: skip
@click.option("--reason", default="")
@by_option
@names_option
@json_option
def series(
    name: str, steward: str, title: str, closing: bool, mandate: tuple[str, str] | None,
    interval: tuple[str, str, str] | None, reason: str, by: str, folder: Path, as_json: bool,
) -> None:  # fmt: skip
    """Add a document series, or change who may mint in it and who resolves it."""
    from muniment.cli.report import print_json

    with open_names(folder) as names:
        if closing:
            names.change_series(name, "closed", reason, by)
        elif mandate is not None:
            names.give_mandate(name, *mandate, by)
        elif interval is not None:
            first, last = (_day(text) for text in interval[:2])
            resolver = "" if interval[2] == "-" else interval[2]
            names.delegate_interval(name, first, last, resolver, by)
        else:
            names.add_series(name, steward, title, by)
        found = names.series(name.lower())
    facts = {
        "name": found.name, "state": found.state, "steward": found.steward, "title": found.title,
        "mandates": list(found.mandates), "intervals": [list(each) for each in found.intervals],
    }  # fmt: skip
    if as_json:
        print_json(facts)
    else:
        click.echo(safe(f"series {found.name}: {found.state}"))


def _day(text: str) -> int:
    try:
        day = date.fromisoformat(text)
    except ValueError as error:
        raise UsageError(f"{text!r} is not a day; write YYYY-MM-DD") from error
    return day.year * 10_000 + day.month * 100 + day.day


def _simple(action: str, about: str) -> Callable[..., None]:
    """Make the command of an action that needs a reason and no more."""

    @_kind_option
    @click.argument("name")
    @click.option("--reason", default="")
    @by_option
    @names_option
    @json_option
    def act(kind: str, name: str, reason: str, by: str, folder: Path, as_json: bool) -> None:
        found = _open(folder)
        if action == "close":
            _shown(found.close(kind, name, by, reason), as_json)
        else:
            _shown(found.act(action, kind, name, by, reason), as_json)

    act.__doc__ = about
    made: Callable[..., None] = act
    return made


for _action, _about in (
    ("notice", "Tell the registry of a name that is going to be used."),
    ("ask", "Ask whoever proposed an entry for changes; it is proposed again after them."),
    ("withdraw", "Take back a notice, reservation or proposal."),
    ("close", "End an entry: no new names, all old ones stay."),
    ("steward", "Take over an entry whose organisation is gone."),
    ("freeze", "Stop all changes while there is a dispute."),
    ("release", "End a dispute."),
):
    _example = examples(f"muniment registry {_action} network --by me")
    registry.command(_action, epilog=_example)(_simple(_action, _about))


@registry.command(
    epilog=examples("muniment registry observe network urn:example:network:1 --by me")
)
@_kind_option
@click.argument("name")
@click.argument("sample")
@by_option
@names_option
@json_option
def observe(kind: str, name: str, sample: str, by: str, folder: Path, as_json: bool) -> None:
    """Record that a name was seen in use: nobody else can get it then."""
    _shown(_open(folder).act("observe", kind, name, by, sample=sample), as_json)


@registry.command(epilog=examples("muniment registry reserve network --days 90 --by me"))
@_kind_option
@click.argument("name")
@click.option("--days", type=click.IntRange(1, 3660), default=90, show_default=True)
@click.option("--extend", "extending", is_flag=True, help="A reservation there is; once only.")
@click.option("--for", "holder", default="", help="Who may propose it then, if it is not --by.")
@click.option("--reason", default="")
@by_option
@names_option
@json_option
def reserve(
    kind: str, name: str, days: int, extending: bool, holder: str, reason: str, by: str,
    folder: Path, as_json: bool,
) -> None:  # fmt: skip
    """Keep a name for some days before it is proposed."""
    found = _open(folder)
    if extending:
        _shown(found.extend(kind, name, by, days, reason), as_json)
    else:
        _shown(found.reserve(kind, name, by, days, reason, holder), as_json)


@registry.command(epilog=examples("muniment registry template trees > trees.yaml"))
@click.argument("name", default="example")
@click.option("--root", help="The URN namespace; as a rule that of the names, else ogf.")
@names_option
def template(name: str, root: str | None, folder: Path) -> None:
    """Print a registration to begin with: the example of GFD.191 with all its sections."""
    from muniment.registry.registration import example

    if root is None:
        root = _open(folder).root if (folder / "names.jsonl").exists() else "ogf"
    click.echo(example(root, name), nl=False)


@registry.command(epilog=examples("muniment registry propose trees --from trees.yaml --by me"))
@_kind_option
@click.argument("name")
@click.option("--from", "source", required=True, type=click.Path(path_type=Path, dir_okay=False))
@click.option("--reason", default="")
@by_option
@names_option
@json_option
def propose(
    kind: str, name: str, source: Path, reason: str, by: str, folder: Path, as_json: bool
) -> None:
    """Hand in a registration (YAML or JSON), or a revision of one; see `registry template`."""
    from muniment.registry.reading import read_mapping

    body = read_mapping(source)
    _shown(_open(folder).propose(kind, name, by, body, reason), as_json)


@registry.command(epilog=examples("muniment registry review trees"))
@_kind_option
@click.argument("name")
@names_option
@json_option
@click.pass_context
def review(ctx: click.Context, kind: str, name: str, folder: Path, as_json: bool) -> None:
    """Make every automated check of a proposal; exit 1 if one stops it."""
    from muniment.cli.report import print_json

    findings = _open(folder).review(kind, name)
    stops = any(finding.stops for finding in findings)
    if as_json:
        listed = [{"check": f.check, "code": f.code, "message": f.message} for f in findings]
        print_json({"name": name, "passes": not stops, "findings": listed})
    else:
        for finding in findings:
            click.echo(safe(f"{finding.check:<8} {finding.code:<20} {finding.message}"))
        click.echo("stopped" if stops else "nothing stops it")
    ctx.exit(1 if stops else 0)


@registry.command(epilog=examples("muniment registry decide trees --approve --by editor"))
@_kind_option
@click.argument("name")
@click.option("--approve/--reject", default=None)
@click.option("--waiver", default="", help="Why it is approved in spite of a check.")
@click.option("--reason", default="")
@by_option
@names_option
@json_option
def decide(
    kind: str, name: str, approve: bool | None, waiver: str, reason: str, by: str, folder: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Approve a proposal or revision, or reject it."""
    if approve is None:
        raise UsageError("say what is decided: --approve or --reject")
    _shown(_open(folder).decide(kind, name, by, approve, reason, waiver), as_json)


@registry.command(
    "hand-on", epilog=examples("muniment registry hand-on trees 'The successor' --by me")
)
@_kind_option
@click.argument("name")
@click.argument("to")
@click.option("--reason", default="")
@by_option
@names_option
@json_option
def hand_on(
    kind: str, name: str, to: str, reason: str, by: str, folder: Path, as_json: bool
) -> None:
    """Give an entry to another organisation; its names go on."""
    _shown(_open(folder).hand_on(kind, name, by, to, reason), as_json)


@registry.command(epilog=examples("muniment registry show", "muniment registry show trees"))
@_kind_option
@click.argument("name", required=False)
@names_option
@json_option
@click.pass_context
def show(ctx: click.Context, kind: str, name: str | None, folder: Path, as_json: bool) -> None:
    """Show the registry, or one entry with its history."""
    from muniment.cli.report import print_json, print_table
    from muniment.registry.export import registry_json

    found = _open(folder)
    if name is not None:
        entry = found.entry(kind, name)
        _shown(entry, as_json)
        if not as_json:
            for event in entry.history:
                reason = f": {event['reason']}" if event.get("reason") else ""
                who = f"{event.get('by', '')}{reason}"
                click.echo(safe(f"  {event['at']}  {event['action']:<9} {who}"))
        ctx.exit(0 if entry.state != "unknown" else 1)
    data = registry_json(found)
    if as_json:
        print_json(data)
        return
    rows = [[e["kind"], e["name"], e["state"], str(e["version"] or "")] for e in data["entries"]]
    known = {row[1] for row in rows if row[0] == "series"}
    rows += [
        ["series", s["name"], s["state"], ""] for s in data["series"] if s["name"] not in known
    ]
    print_table(["kind", "name", "state", "version"], [[safe(c) for c in row] for row in rows])


@registry.command(epilog=examples("muniment registry export trees --format html > trees.html"))
@_kind_option
@click.argument("name", required=False)
@click.option(
    "--format", "format_", type=click.Choice(["markdown", "html", "json"]), default="markdown",
    show_default=True,
)  # fmt: skip
@names_option
def export(kind: str, name: str | None, format_: str, folder: Path) -> None:
    """Print a registration as a document, or without a name the whole registry as a page."""
    from muniment.cli.report import print_json
    from muniment.registry import export as forms

    found = _open(folder)
    if format_ == "json":
        data = forms.registry_json(found)
        print_json(data if name is None else found.entry(kind, name).as_json())
    elif name is None:
        write_page = forms.page_html if format_ == "html" else forms.page_markdown
        click.echo(write_page(found), nl=False)
    else:
        write = forms.document_html if format_ == "html" else forms.document_markdown
        click.echo(write(found, name, kind), nl=False)


@registry.command(epilog=examples("muniment registry verify"))
@names_option
@json_option
def verify(folder: Path, as_json: bool) -> None:
    """Read the whole journal of names and check that nothing was changed, taken out or put in."""
    from muniment.cli.report import print_json

    with open_names(folder) as names:
        records = names.check()
    if as_json:
        print_json({"records": records, "unchanged": True})
    else:
        click.echo(f"{records} records, unchanged")

"""The commands of ``muniment pdi`` that cite, and check what was cited."""

from __future__ import annotations

from pathlib import Path

import click

from muniment.cli.naming import by_option, names_option, open_names, series_of
from muniment.cli.options import examples, json_option
from muniment.cli.terminal import count, safe

__all__ = ["check", "cite", "links", "prove"]


@click.command(epilog=examples("muniment pdi check 'PDI@103=PDI#37,51'"))
@click.argument("name", metavar="CITATION")
@names_option
@json_option
@click.pass_context
def check(ctx: click.Context, name: str, folder: Path, as_json: bool) -> None:
    """Check a quotation: does the citing document hold the cited part there?"""
    from muniment.citations import open_document
    from muniment.cli.report import print_json
    from muniment.fragments import check_quotation

    with open_names(folder) as names:
        found = check_quotation(names.read(name), lambda each: open_document(names, each))
    good, each, steps = True, found, []
    while each is not None:
        steps.append({"citing": f"{each.citing}{each.place}", "verdict": each.verdict})
        good = good and each.verdict == "verified"
        each = each.inner  # type: ignore[assignment]
    if as_json:
        print_json({"citation": name, "verified": good, "steps": steps})
    else:
        for step in steps:
            click.echo(safe(f"{step['verdict']}: {step['citing']}"))
    ctx.exit(0 if good else 1)


@click.command(
    epilog=examples(
        "muniment pdi cite 'pdi://db.example.ch/2025/11/15/3.siard.1#row=(s0,t2,r17)'",
        "muniment pdi cite --query 'SELECT count(*) FROM tree' trees.siard",
    )
)
@click.argument("things", nargs=-1, required=True, metavar="PDI|ARCHIVE...")
@click.option(
    "--query", "sql", help="SQL over the archives: mint a PDI for the query and its result."
)
@click.option("--title", default="", help="What the query asks, in words.")
@click.option("--series", default="", help="The document series; the only one if left out.")
@by_option
@names_option
@json_option
@click.pass_context
def cite(
    ctx: click.Context, things: tuple[str, ...], sql: str | None, title: str, series: str, by: str,
    folder: Path, as_json: bool,
) -> None:  # fmt: skip
    """Cite documents and their parts, or with --query the result of a query over archives.

    A query is kept with its sources, its result and a digest of it (siard-digest-1); the same query
    with the same result has the same PDI. `muniment pdi prove` runs it again.
    """
    from muniment.citations import cite_part, cite_query
    from muniment.cli.report import print_advice, print_json

    with open_names(folder) as names:
        if sql is None:
            cited = [cite_part(names, thing) for thing in things]
            if as_json:
                print_json([{"pdi": str(each), "citation": text} for each, text in cited])
            else:
                click.echo("\n".join(safe(text) for _, text in cited))
            return
        archives = _aliases([Path(thing) for thing in things])
        found = cite_query(names, series_of(names, series), sql, archives, by, title)
    if as_json:
        print_json(found.as_json())
        return
    click.echo(safe(found.text))
    if found.known:
        click.echo("this query with this result was cited before", err=True)
    given = ctx.get_parameter_source("folder") is click.core.ParameterSource.COMMANDLINE
    where = ["--names", str(folder)] if given else []
    print_advice("open it with", ["muniment", "pdi", "resolve", str(found.pdi.generic), *where])


def _aliases(paths: list[Path]) -> dict[str, Path]:
    """Return archives by the names that SQL knows them by, which are those of their files."""
    from muniment.cli.options import check_input
    from muniment.query.session import sql_name

    for path in paths:
        check_input(path)
    return dict(zip(sql_name([path.stem for path in paths]), paths, strict=True))


@click.command(epilog=examples("muniment pdi prove pdi://db.example.ch/2025/11/15/12"))
@click.argument("name", metavar="PDI")
@names_option
@json_option
@click.pass_context
def prove(ctx: click.Context, name: str, folder: Path, as_json: bool) -> None:
    """Run a cited query again and say whether its result is the same."""
    from muniment.citations import prove as prove_again
    from muniment.cli.report import print_json

    with open_names(folder) as names:
        found = prove_again(names, names.read(name))
    if as_json:
        print_json(found.as_json())
    elif found.same:
        click.echo(f"the same: {count(found.rows, 'row')}, siard-digest-1 {found.digest}")
    else:
        click.echo(safe(f"different: {'; '.join(found.differences)}"))
    ctx.exit(0 if found.same else 1)


@click.command(
    epilog=examples("muniment pdi links --allow https://www.example.ch/documents/ --days 7")
)
@click.option("--allow", "allowed", multiple=True, metavar="URI",
              help="Fetch what begins with this file:, http: or https: address.")  # fmt: skip
@click.option("--days", type=click.FloatRange(min=0), default=0,
              help="Leave out what was checked in the last so many days.")  # fmt: skip
@click.option("--timeout", type=click.FloatRange(min=0.1), default=30, show_default=True,
              help="Seconds to wait for an answer.")  # fmt: skip
@by_option
@names_option
@json_option
@click.pass_context
def links(
    ctx: click.Context, allowed: tuple[str, ...], days: float, timeout: float, by: str,
    folder: Path, as_json: bool,
) -> None:  # fmt: skip
    """Check the addresses that names are bound to: do they still give the same octets?

    For a scheduled job. What is found is written down. An address that has changed is not used any
    more; the kept copy is. Exit 1 if an address has changed or cannot be reached.
    """
    from muniment.cli.report import print_json
    from muniment.names.links import check_links

    results = []
    with open_names(folder) as names:
        for found in check_links(names, allowed, by or "muniment", days, timeout):
            results.append(found)
            if not as_json:
                why = f" ({found.found})" if found.verdict == "unreachable" else ""
                click.echo(safe(f"{found.verdict}: {found.source}{why}  {found.pdi}"))
    if as_json:
        print_json({"checked": [found.as_json() for found in results]})
    ctx.exit(1 if any(each.verdict in ("changed", "unreachable") for each in results) else 0)

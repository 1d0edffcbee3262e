"""``muniment urn``: URNs read, compared, and judged by the registration of their namespace."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from muniment.cli.naming import (
    NamesGroup,
    by_option,
    names_option,
    open_names,
    print_problems,
    problems_json,
    texts_of,
)
from muniment.cli.options import examples, json_option
from muniment.cli.terminal import safe
from muniment.errors import IdentifierError, UsageError

__all__ = ["urn"]


@click.group(cls=NamesGroup, epilog=examples("muniment urn parse 'urn:example:a123?=q#f'"))
def urn() -> None:
    """URNs: their parts, whether they are the same, and whether they are valid and assigned."""


def _read(text: str, old: bool) -> Any:
    from muniment.identifiers.urn import parse_urn, parse_urn_2141

    return parse_urn_2141(text) if old else parse_urn(text)


def _old_option(command: Any) -> Any:
    return click.option("--rfc-2141", "old", is_flag=True, help="By the older RFC 2141.")(command)


@urn.command(epilog=examples("muniment urn parse urn:example:a123,z456"))
@click.argument("texts", nargs=-1, required=True, metavar="URN...")
@_old_option
@json_option
@click.pass_context
def parse(ctx: click.Context, texts: tuple[str, ...], old: bool, as_json: bool) -> None:
    """Show the parts of URNs, or what is wrong with them. - reads lines from stdin."""
    from muniment.cli.report import print_json
    from muniment.identifiers.problems import Problem

    good, results = True, []
    for text in texts_of(texts):
        try:
            found = _read(text, old)
        except IdentifierError as error:
            good = False
            problem = Problem(error.code, error.message, error.position)
            results.append({"text": text, "valid": False, "problems": problems_json([problem])})
            if not as_json:
                print_problems(text, [problem])
            continue
        parts = {
            "canonical": str(found), "key": found.key, "nid": found.nid, "nss": found.nss,
            "r": found.resolver, "q": found.query, "f": found.fragment,
        }  # fmt: skip
        results.append({"text": text, "valid": True, **parts, "problems": []})
        if not as_json:
            for name, value in parts.items():
                if value is not None:
                    click.echo(safe(f"{name:<12}{value}"))
    if as_json:
        print_json(results[0] if len(results) == 1 else results)
    ctx.exit(0 if good else 1)


@urn.command(epilog=examples("muniment urn canonical URN:Example:a123%2cz456"))
@click.argument("texts", nargs=-1, required=True, metavar="URN...")
@_old_option
@json_option
def canonical(texts: tuple[str, ...], old: bool, as_json: bool) -> None:
    """Print URNs in the form in which equivalent ones are the same."""
    from muniment.cli.report import print_json

    keys = [_read(text, old).key for text in texts_of(texts)]
    if as_json:
        print_json({"canonical": keys})
    else:
        click.echo("\n".join(keys))


@urn.command(epilog=examples("muniment urn same urn:example:a URN:EXAMPLE:a"))
@click.argument("one")
@click.argument("other")
@_old_option
@click.option("--registered", is_flag=True, help="By the rules of the registered namespace.")
@names_option
@json_option
@click.pass_context
def same(
    ctx: click.Context, one: str, other: str, old: bool, registered: bool, folder: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Say whether two URNs are equivalent (exit 0) or not (exit 1)."""
    from muniment.cli.report import print_json

    if registered:
        from muniment.registry import Registry
        from muniment.registry.validation import same as same_by_rules

        with open_names(folder) as names:
            equal = same_by_rules(Registry(names), one, other)
    else:
        equal = _read(one, old).key == _read(other, old).key
    if as_json:
        print_json({"same": equal})
    else:
        click.echo("the same" if equal else "different")
    ctx.exit(0 if equal else 1)


@urn.command(epilog=examples("muniment urn validate urn:example:trees:17"))
@click.argument("text", metavar="URN")
@click.option(
    "--naptr",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="Follow the DDDS rules with the records of this YAML file: {key: [{order, …}]}.",
)
@names_option
@json_option
@click.pass_context
def validate(
    ctx: click.Context, text: str, naptr: Path | None, folder: Path, as_json: bool
) -> None:
    """Say whether a URN is valid by its registered namespace, and what it is assigned to."""
    from muniment.cli.report import print_json
    from muniment.registry import Registry
    from muniment.registry.validation import follow_rules
    from muniment.registry.validation import validate as judge

    with open_names(folder) as names:
        registry = Registry(names)
        verdict = judge(registry, text)
        outcome = None
        if naptr is not None and verdict.valid:
            outcome = follow_rules(registry, text, _records(naptr))
    good = verdict.valid and verdict.assigned is not False
    if outcome is not None:
        good = outcome.valid
    if as_json:
        ddds = None if outcome is None else {
            "valid": outcome.valid, "keys": list(outcome.keys), "flag": outcome.flag,
            "service": outcome.service, "result": outcome.result, "reason": outcome.reason,
        }  # fmt: skip
        print_json({**verdict.as_json(), "ddds": ddds})
    else:
        _show(verdict, outcome)
    ctx.exit(0 if good else 1)


def _show(verdict: Any, outcome: Any) -> None:
    print_problems(verdict.urn, verdict.problems)
    if verdict.valid:
        assigned = {True: "assigned", False: "not assigned", None: "perhaps assigned elsewhere"}
        click.echo(safe(f"{verdict.canonical}: valid, {assigned[verdict.assigned]}"))
        for target in verdict.resolves:
            click.echo(safe(f"  stands for  {target}"))
        for problem in verdict.assignable if not verdict.assigned else ():
            click.echo(safe(f"  note        {problem.message}"))
    if outcome is not None:
        end = f"{outcome.flag} {outcome.result}" if outcome.valid else outcome.reason
        click.echo(safe(f"  rules       {' → '.join((*outcome.keys, end))}"))


def _records(path: Path) -> dict[str, list[Any]]:
    from muniment.identifiers.ddds import Naptr
    from muniment.registry.reading import read_mapping

    content = read_mapping(path, "NAPTR records")
    try:
        return {
            str(key).lower().rstrip("."): [
                Naptr(
                    int(r["order"]), int(r.get("preference", 0)), str(r.get("flags", "")),
                    str(r.get("service", "")), str(r.get("regexp", "")),
                    str(r.get("replacement", ".")),
                )
                for r in records
            ]
            for key, records in content.items()
        }  # fmt: skip
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise UsageError(f"{path} does not hold NAPTR records: {error}") from error


@urn.command(
    epilog=examples("muniment urn assign urn:example:trees:17 https://example.ch/17 --by me")
)
@click.argument("text", metavar="URN")
@click.argument("targets", nargs=-1, metavar="TARGET...")
@by_option
@names_option
@json_option
def assign(text: str, targets: tuple[str, ...], by: str, folder: Path, as_json: bool) -> None:
    """Assign a URN of a registered namespace, once and for ever."""
    from muniment.cli.report import print_json
    from muniment.registry import Registry
    from muniment.registry.validation import assign as assign_now

    with open_names(folder) as names:
        given = assign_now(Registry(names), text, targets, by)
    if as_json:
        print_json({"urn": given, "targets": list(targets)})
    else:
        click.echo(given)

"""``muniment pdi``: persistent document identifiers, read, compared, given, bound and resolved."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from muniment.cli.naming import (
    NamesGroup,
    known_schemes,
    names_option,
    print_problems,
    problems_json,
    profile_option,
    texts_of,
)
from muniment.cli.options import examples, json_option
from muniment.cli.pdi_citing import check, cite, links, prove
from muniment.cli.pdi_names import assert_, bind, list_names, mint, resolve, withdraw
from muniment.cli.terminal import safe

__all__ = ["pdi"]


@click.group(
    cls=NamesGroup, epilog=examples("muniment pdi parse pdi://db.example.ch/2025/11/15/3.siard.1")
)
def pdi() -> None:
    """Persistent document identifiers: names for documents, their versions and their parts."""


@pdi.command(epilog=examples("muniment pdi parse 'pdi://a.ch/2025/11/15/1.text.1#37,51'"))
@click.argument("texts", nargs=-1, required=True, metavar="PDI...")
@profile_option
@names_option
@json_option
@click.pass_context
def parse(
    ctx: click.Context, texts: tuple[str, ...], profile: str, folder: Path, as_json: bool
) -> None:
    """Show the parts of PDIs, or what is wrong with them. - reads lines from stdin."""
    from muniment.cli.report import print_json
    from muniment.identifiers import Profile, diagnose

    good = True
    results = []
    schemes = known_schemes(folder)
    for text in texts_of(texts):
        found = diagnose(text, Profile(profile), schemes)
        good = good and found.pdi is not None
        if as_json:
            results.append(_diagnosis_json(found))
            continue
        if found.pdi is not None:
            for name, value in _parts(found.pdi).items():
                if value is not None:
                    click.echo(safe(f"{name:<14}{value}"))
        print_problems(text, found.problems)
    if as_json:
        print_json(results[0] if len(results) == 1 else results)
    ctx.exit(0 if good else 1)


def _parts(pdi: Any) -> dict[str, Any]:
    fragment = pdi.fragment
    return {
        "canonical": str(pdi),
        "series": pdi.series,
        "date": f"{pdi.year}-{pdi.month}-{pdi.day}",
        "id": pdi.unique_id,
        "format": pdi.format,
        "media type": pdi.media_type,
        "version": pdi.version,
        "scheme": None if fragment is None else fragment.meant(pdi.media_type),
        "positions": None if fragment is None else str(fragment).rpartition("=")[2],
        "cites": None if pdi.citation is None else str(pdi.citation.cited),
        "at": None if pdi.citation is None else str(pdi.citation).partition("=")[0],
        "meaning": pdi.functional_key if pdi.functional_key != str(pdi) else None,
    }


def _diagnosis_json(found: Any) -> dict[str, Any]:
    pdi = found.pdi
    if pdi is None:
        return {"text": found.text, "valid": False, "problems": problems_json(found.problems)}
    fragment = pdi.fragment
    return {
        "text": found.text,
        "valid": True,
        "problems": problems_json(found.problems),
        "canonical": str(pdi),
        "functional": pdi.functional_key,
        "series": pdi.series,
        "country": pdi.country,
        "year": pdi.year,
        "month": pdi.month,
        "day": pdi.day,
        "unique_id": pdi.unique_id,
        "format": pdi.format,
        "media_type": pdi.media_type,
        "version": pdi.version,
        "wildcards": list(pdi.wildcards),
        "fragment": None
        if fragment is None
        else {
            "scheme": fragment.meant(pdi.media_type),
            "explicit": fragment.scheme is not None,
            "positions": [p if isinstance(p, str) else list(p) for p in fragment.positions],
        },
        "citation": None
        if pdi.citation is None
        else {
            "position": str(pdi.citation).partition("=")[0],
            "cited": str(pdi.citation.cited),
        },
    }


@pdi.command(epilog=examples("muniment pdi canonical URN:PDI://OMA.eop.gov.US/1997/09/01/1.HTML.1"))
@click.argument("texts", nargs=-1, required=True, metavar="PDI...")
@click.option("--functional", is_flag=True, help="With all defaults filled in.")
@click.option("--urn", "root", metavar="ROOT", help="As urn:ROOT:pdi:…")
@profile_option
@names_option
@json_option
@click.pass_context
def canonical(
    ctx: click.Context,
    texts: tuple[str, ...],
    functional: bool,
    root: str | None,
    profile: str,
    folder: Path,
    as_json: bool,
) -> None:
    """Print the canonical form of PDIs. - reads lines from stdin."""
    from muniment.cli.report import print_json
    from muniment.identifiers import Profile, diagnose
    from muniment.identifiers.urn import format_pdi_urn

    good = True
    results = []
    schemes = known_schemes(folder)
    for text in texts_of(texts):
        found = diagnose(text, Profile(profile), schemes)
        shown = None
        if found.pdi is not None:
            shown = found.pdi.functional_key if functional else str(found.pdi)
            shown = format_pdi_urn(found.pdi, root) if root else shown
        good = good and shown is not None
        results.append(
            {"text": text, "canonical": shown, "problems": problems_json(found.problems)}
        )
        if not as_json and shown is not None:
            click.echo(shown)
        elif not as_json:
            print_problems(text, found.problems)
    if as_json:
        print_json(results[0] if len(results) == 1 else results)
    ctx.exit(0 if good else 1)


@pdi.command(epilog=examples("muniment pdi same pdi://a.ch/2025/11/15/1.text.1#0,5 PDI://A.ch/…"))
@click.argument("one")
@click.argument("other")
@click.option(
    "--functional", is_flag=True, help="Compare what they mean, not how they are written."
)
@profile_option
@names_option
@json_option
@click.pass_context
def same(
    ctx: click.Context,
    one: str,
    other: str,
    functional: bool,
    profile: str,
    folder: Path,
    as_json: bool,
) -> None:
    """Say whether two PDIs are the same (exit 0) or not (exit 1)."""
    from muniment.cli.report import print_json
    from muniment.identifiers import Profile, parse_pdi

    schemes = known_schemes(folder)
    a, b = (parse_pdi(text, Profile(profile), schemes) for text in texts_of((one, other)))
    lexical, meaning = a == b, a.functional_key == b.functional_key
    if as_json:
        print_json({"lexical": lexical, "functional": meaning})
    elif lexical:
        click.echo("the same")
    else:
        click.echo("the same in meaning, written differently" if meaning else "different")
    ctx.exit(0 if (meaning if functional else lexical) else 1)


for _command in (mint, bind, resolve, list_names, assert_, withdraw, check, cite, links, prove):
    pdi.add_command(_command)

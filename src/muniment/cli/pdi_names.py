"""The commands of ``muniment pdi`` that give names, bind them and tell what they stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import click

from muniment.cli.naming import by_option, names_option, open_names, series_of
from muniment.cli.options import examples, json_option
from muniment.cli.terminal import byte_output, safe
from muniment.errors import UsageError

__all__ = ["assert_", "bind", "list_names", "mint", "resolve", "withdraw"]


@click.command(epilog=examples("muniment pdi mint --series db.example.ch --format siard --count 3"))
@click.option("--series", default="", help="The document series; the only one if left out.")
@click.option("--format", "format_", default="text", show_default=True, help="Token or media type.")
@click.option("--count", type=click.IntRange(min=1), default=1, show_default=True)
@click.option("--id", "unique_id", help="A mnemonic id instead of a serial number.")
@click.option(
    "--encapsulates", nargs=2, metavar="KIND ID", help="A foreign identifier, such as doi."
)
@by_option
@names_option
@json_option
def mint(
    series: str, format_: str, count: int, unique_id: str | None,
    encapsulates: tuple[str, str] | None, by: str, folder: Path, as_json: bool,
) -> None:  # fmt: skip
    """Give new PDIs. They are on the disk when they are printed, and never given again."""
    from muniment.cli.report import print_json

    with open_names(folder) as names:
        series = series_of(names, series)
        if unique_id is not None or encapsulates is not None:
            if count != 1:
                raise UsageError("--count goes with serial numbers only")
            given = [str(names.mint_name(series, unique_id or "", format_, encapsulates, by))]
        else:
            given = list(names.mint(series, count, format_, by).texts())
    if as_json:
        print_json({"pdis": given})
    else:
        click.echo("\n".join(given))


@click.command(
    epilog=examples("muniment pdi bind pdi://db.example.ch/2025/11/15/3.siard trees.siard")
)
@click.argument("name", metavar="PDI")
@click.argument("file", type=click.Path(path_type=Path, exists=True, dir_okay=False))
@click.option("--uri", help="The address where the document was found; a copy is kept.")
@click.option("--new-version", is_flag=True, help="A new version, even if nothing changed.")
@by_option
@names_option
@json_option
def bind(
    name: str, file: Path, uri: str | None, new_version: bool, by: str, folder: Path, as_json: bool
) -> None:
    """Bind a file to a PDI and keep a copy of it, which never changes.

    With a version in the PDI exactly that one is bound. Without, a changed document becomes a new
    version, and another format joins the latest one.
    """
    from muniment.cli.report import print_json
    from muniment.names.content import keep

    with open_names(folder) as names:
        value = names.read(name)
        digest, length, location = keep(names, file)
        bound = names.bind(value, digest, length, location, uri, new_version, by)
    if as_json:
        print_json({"pdi": str(bound), "sha256": digest.hex(), "length": length})
    else:
        click.echo(f"{bound}\nSHA-256 {digest.hex()}")


@click.command(epilog=examples("muniment pdi resolve pdi://db.example.ch/2025/11/15/3.siard.1"))
@click.argument("name", metavar="PDI")
@click.option("--out", type=click.Path(path_type=Path), help="Write the document or part there.")
@click.option("--content", is_flag=True, help="Write the document or part to stdout.")
@click.option(
    "--as", "wanted", default="", metavar="TYPE", help="Media type for parts of databases."
)
@names_option
@json_option
@click.pass_context
def resolve(
    ctx: click.Context, name: str, out: Path | None, content: bool, wanted: str, folder: Path,
    as_json: bool,
) -> None:  # fmt: skip
    """Say what a PDI stands for, or write it out: a document, a part of one, a quotation."""
    from muniment.cli.report import print_json

    with open_names(folder) as names:
        value = names.read(name)
        found = names.resolve(value)
        if (out is not None or content) and found.binding is not None:
            _write(names, value, out, wanted)
            ctx.exit(0)
        said = names.assertions(str(value), inherited=True) if not value.wildcards else []
        if as_json:
            print_json({**found.as_json(), "assertions": [each.as_json() for each in said]})
        else:
            _show(found, said)
    ctx.exit(0 if found.status == "bound" else 1)


def _show(found: Any, said: list[Any]) -> None:
    binding = found.binding
    click.echo(f"{found.pdi or found.asked}")
    rows: list[tuple[str, Any]] = [("status", found.status)]
    if binding is not None:
        rows += [("media type", binding.pdi.media_type), ("bound", binding.at)]
        rows += [("length", binding.length), ("SHA-256", binding.digest.hex())]
        rows += [("location", binding.location), ("latest version", found.latest)]
        formats = ", ".join(str(each.pdi.format) for each in found.renditions)
        rows += [("formats", formats)]
    if found.reason:
        rows += [(key, value) for key, value in found.reason.items() if value]
    rows += [("resolver", found.resolver)] if found.resolver else []
    rows += [("note", remark) for remark in found.remarks]
    for each in said:
        value = each.value if isinstance(each.value, str) else json.dumps(each.value)
        rows.append((each.predicate, value))
    for name, value in rows:
        click.echo(safe(f"  {name:<16}{value}"))


def _write(names: Any, value: Any, out: Path | None, wanted: str) -> None:
    """Write a document, a part or a quotation; the note on it goes to stderr."""
    import shutil

    from muniment.citations import open_document
    from muniment.files import new_file
    from muniment.fragments import check_quotation, extract

    part: Any = None
    if value.citation is not None:
        found = check_quotation(value, lambda each: open_document(names, each))
        click.echo(f"{found.verdict}: {found.citing}{found.place}", err=True)
        part = found.found
    elif value.fragment is not None:
        qualified = names.resolve(value).pdi
        path = open_document(names, qualified)
        part = extract(path, qualified.media_type, qualified.fragment, wanted)
    if part is None:
        path = open_document(names, value)
        if out is None:
            with path.open("rb") as stream:
                shutil.copyfileobj(stream, byte_output())
        else:
            with path.open("rb") as stream, new_file(out) as target:
                shutil.copyfileobj(stream, target)
        return
    note = f"{part.media_type}{', NULL' if part.null else ''}"
    click.echo("; ".join([note, *part.remarks]), err=True)
    if out is None:
        byte_output().write(part.data)
    else:
        with new_file(out) as target:
            target.write(part.data)


@click.command("list", epilog=examples("muniment pdi list 'pdi://db.example.ch/2025/*/*/*'"))
@click.argument("pattern")
@click.option("--limit", type=click.IntRange(1, 1 << 48), default=1000, show_default=True)
@click.option("--after", metavar="PDI", help="Go on after this one.")
@names_option
@json_option
@click.pass_context
def list_names(
    ctx: click.Context, pattern: str, limit: int, after: str | None, folder: Path, as_json: bool
) -> None:
    """List the PDIs that a pattern with * stands for, as far as they are known here."""
    from itertools import islice

    from muniment.cli.report import print_json

    with open_names(folder) as names:
        start = None if after is None else names.read(after)
        found = [str(each) for each in islice(names.listing(pattern, start), limit + 1)]
        series = names.rules().series.get(names.read(pattern).series)
    more, found = len(found) > limit, found[:limit]
    if as_json:
        complete = series is not None and not series.intervals and not more
        print_json({"pdis": found, "more": more, "complete": complete})
    else:
        for each in found:
            click.echo(each)
        if more:
            click.echo(f"there are more; go on with --after {found[-1]}", err=True)
    ctx.exit(0 if found else 1)


@click.command(
    "assert", epilog=examples("muniment pdi assert PDI title 'The register of trees' --by me")
)
@click.argument("subject", metavar="PDI")
@click.argument("predicate", required=False)
@click.argument("value", required=False)
@click.option("--inherited", is_flag=True, help="Also what holds for everything above.")
@click.option("--json-ld", "linked", is_flag=True, help="Print JSON-LD.")
@by_option
@names_option
@json_option
def assert_(
    subject: str, predicate: str | None, value: str | None, inherited: bool, linked: bool, by: str,
    folder: Path, as_json: bool,
) -> None:  # fmt: skip
    """Say something about a PDI, a part, an interval or a series, or list what was said.

    A value that is JSON is kept as such. Nothing that was said is ever taken back.
    """
    from muniment.cli.report import print_json
    from muniment.names.assertions import as_json_ld

    with open_names(folder) as names:
        if value is not None and predicate is not None:
            if not by:
                raise UsageError("say who says so with --by")
            names.say(subject, predicate, _json_or_text(value), by)
        said = names.assertions(subject, predicate, inherited)
    if linked:
        print_json(as_json_ld(said))
    elif as_json:
        print_json([each.as_json() for each in said])
    else:
        for each in said:
            text = each.value if isinstance(each.value, str) else json.dumps(each.value)
            click.echo(safe(f"{each.at}  {each.actor}: {each.subject} {each.predicate} {text}"))


def _json_or_text(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return text


@click.command(epilog=examples("muniment pdi withdraw PDI --reason 'personal data' --by archivist"))
@click.argument("name", metavar="PDI")
@click.option("--reason", required=True)
@click.option("--law", default="", help="The legal basis.")
@click.option("--by", required=True, metavar="WHO")
@names_option
@json_option
def withdraw(name: str, reason: str, law: str, by: str, folder: Path, as_json: bool) -> None:
    """Put up a tombstone: the document is no longer shown, its name and history stay."""
    from muniment.cli.report import print_json

    with open_names(folder) as names:
        names.withdraw(name, reason, by, law)
        found = names.resolve(name)
    if as_json:
        print_json(found.as_json())
    else:
        click.echo(f"withdrawn: {found.asked}")

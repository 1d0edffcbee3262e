"""``muniment describe``: what people say about an archive and everything in it."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.options import ARCHIVE, check_input, check_output, examples, json_option, pairs
from muniment.cli.terminal import count, cut, safe
from muniment.errors import UsageError

if TYPE_CHECKING:
    from muniment.siard.descriptions import Place

__all__ = ["describe"]

_LONGEST_NOTE = 300  # characters of what an archive says of itself

Changes = dict[tuple[str, str], str]


@click.command(
    epilog=examples(
        "muniment describe trees.siard",
        "muniment describe trees.siard --set 'main.tree.height_m=Height in metres.'",
        "muniment describe trees.siard --dump yaml > words.yaml",
        "muniment describe trees.siard --from words.yaml",
    )
)
@click.argument("file", type=ARCHIVE, metavar="FILE.siard")
@click.option(
    "--set", "given", multiple=True, metavar="PLACE=TEXT", callback=pairs("PLACE=TEXT"),
    help="Describe one thing: main.tree, main.tree.id, or with its kind: 'view main.tree'.",
)  # fmt: skip
@click.option(
    "--from", "source", type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE", help="Set descriptions from a YAML or CSV file.",
)  # fmt: skip
@click.option(
    "--dump", type=click.Choice(("yaml", "csv")), help="Print all descriptions in this form."
)
@click.option("--all", "everything", is_flag=True, help="List what has a description, too.")
@click.option(
    "--out", type=click.Path(path_type=Path), metavar="NEW.siard",
    help="Write a new archive instead of changing this one.",
)  # fmt: skip
@json_option
def describe(
    file: Path,
    given: dict[str, str],
    source: Path | None,
    dump: str | None,
    everything: bool,
    out: Path | None,
    as_json: bool,
) -> None:
    """List what has no description yet; set, load and dump descriptions.

    Only the header of the archive is written anew. The content keeps its bytes, its places in the
    file and its digest, and either all descriptions are set or none. What the archive says of
    itself (that rows were left out, say) stays; --all lists it as notes.
    """
    check_input(file)
    if out is not None:
        check_output(out)

    from muniment.siard.descriptions import places
    from muniment.siard.header import read_metadata

    metadata = read_metadata(file)
    there = places(metadata)
    if given or source:
        changes = _loaded(source, there) if source else {}
        changes.update({_find(there, name): text for name, text in given.items()})
        _write(file, metadata, changes, out, as_json)
    elif dump:
        click.echo(_dumped(there, dump), nl=False)
    else:
        _list(file, there, everything, as_json)


def _write(file: Path, metadata: bytes, changes: Changes, out: Path | None, as_json: bool) -> None:
    from muniment.cli.report import print_json
    from muniment.siard.descriptions import set_descriptions
    from muniment.siard.header import replace_metadata

    changed = set_descriptions(metadata, changes)
    if changed != metadata or out is not None:
        replace_metadata(file, changed, out)
    if as_json:
        print_json({"file": str(out or file), "set": [f"{k} {n}".strip() for k, n in changes]})
    else:
        click.echo(safe(f"{out or file}: {count(len(changes), 'description')} set"))


def _list(file: Path, there: list[Place], everything: bool, as_json: bool) -> None:
    from muniment.cli.report import print_json, print_table

    missing = [place for place in there if not place.description]
    if as_json:
        shown = there if everything else missing
        entries = [
            {"kind": p.kind, "place": p.name, "description": p.description, "notes": list(p.notes)}
            for p in shown
        ]
        print_json({"file": str(file), "places": len(there), "missing": len(missing),
                    "list": entries})  # fmt: skip
        return
    rows = [
        [p.kind, safe(p.name), cut(safe(p.description or ""), 60)]
        for p in (there if everything else missing)
    ]
    if rows:
        print_table(["kind", "place", "description"] if everything else ["kind", "place", ""], rows)
    for place in there if everything else ():
        for note in place.notes:
            click.echo(cut(safe(f"note: {place}: {' '.join(note.split())}"), _LONGEST_NOTE))
    said = f"{len(there) - len(missing)} of {len(there)} things are described"
    click.echo(safe(f"{file}: {said}"), err=bool(rows))


def _find(there: list[Place], text: str) -> tuple[str, str]:
    """Return the one thing that a place names, with or without its kind."""
    exact = [p for p in there if str(p) == text]
    named = exact or [p for p in there if p.name == text and p.name]
    if len(named) == 1:
        return named[0].kind, named[0].name
    if named:
        options = ", ".join(repr(str(place)) for place in named)
        raise UsageError(f"{text!r} can be several things; write one of {options}")
    raise UsageError(f"the archive has nothing called {text!r}; describe --all lists everything")


def _dumped(there: Iterable[Place], form: str) -> str:
    if form == "csv":
        text = io.StringIO()
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(["kind", "place", "description"])
        writer.writerows([p.kind, p.name, p.description or ""] for p in there)
        return text.getvalue()
    import yaml

    tree: dict[str, Any] = {}
    for place in there:
        if place.kind == "database":
            tree["database"] = place.description or ""
        else:
            tree.setdefault(place.kind, {})[place.name] = place.description or ""
    dumped: str = yaml.safe_dump(tree, allow_unicode=True, sort_keys=False, width=100)
    return dumped


def _loaded(source: Path, there: list[Place]) -> Changes:
    """Read a file of descriptions; those that are as they were change nothing."""
    try:
        text = source.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError:
        raise UsageError(f"{source} is not text in UTF-8; save the file as UTF-8") from None
    wanted = _from_csv(source, text) if source.suffix == ".csv" else _from_yaml(source, text)
    known = {(p.kind, p.name): p.description or "" for p in there}
    for kind, name in wanted:
        if (kind, name) not in known:
            raise UsageError(f"{source}: the archive has no {kind} {name}".rstrip())
    return {key: words for key, words in wanted.items() if known[key] != words}


def _from_csv(source: Path, text: str) -> Changes:
    for delimiter in ",;\t":  # spreadsheets write the semicolon where numbers have a comma
        rows = csv.DictReader(io.StringIO(text, newline=""), delimiter=delimiter)
        try:
            if {"kind", "place", "description"} <= set(rows.fieldnames or ()):
                return {(r["kind"] or "", r["place"] or ""): r["description"] or "" for r in rows}
        except csv.Error as error:
            raise UsageError(f"{source}, line {rows.line_num}: not CSV: {error}") from error
    raise UsageError(f"{source} should have the columns kind, place and description")


def _from_yaml(source: Path, text: str) -> Changes:
    import yaml

    try:
        tree = yaml.safe_load(text)
    except yaml.YAMLError as error:
        raise UsageError(f"{source} is not YAML: {str(error).splitlines()[0]}") from error
    if not isinstance(tree, dict):
        raise UsageError(f"{source} should map kinds to places, as --dump yaml writes them")
    changes: Changes = {}
    for kind, named in tree.items():
        if kind == "database" and isinstance(named, str):
            changes["database", ""] = named
        elif isinstance(named, dict) and all(isinstance(w, str) for w in named.values()):
            changes.update({(str(kind), str(name)): words for name, words in named.items()})
        else:
            raise UsageError(f"{source}: {kind} should map names to texts, as --dump yaml has it")
    return changes

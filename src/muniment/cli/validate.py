"""``muniment validate``: whether an archive keeps every rule of its version of SIARD."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from muniment.cli.lobs import lob_roots, roots_of
from muniment.cli.options import ARCHIVE, examples, jobs_option, json_option
from muniment.cli.terminal import count, cut, safe
from muniment.errors import UsageError

if TYPE_CHECKING:
    from muniment.findings import Finding
    from muniment.siard import Validation

__all__ = ["validate"]

_LONGEST = 300  # characters of a message on a terminal
_ORDER = ("error", "warning", "note")


@click.command(
    epilog=examples(
        "muniment validate trees.siard",
        "muniment validate trees.siard --html report.html",
        "muniment validate trees.siard --rule T_6.0-1 --json",
    )
)
@click.argument("file", type=ARCHIVE, metavar="FILE.siard")
@click.option(
    "--rule",
    "rules",
    multiple=True,
    metavar="ID",
    help="Only this rule, such as P_4.2-1; repeatable.",
)
@click.option("--fast", is_flag=True, help="Leave out all that takes a pass over the rows.")
@click.option(
    "--html",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="REPORT",
    help="Write a page to print or to send to the producer of the archive.",
)
@click.option(
    "--junit",
    type=click.Path(path_type=Path, dir_okay=False),
    metavar="REPORT",
    help="Write JUnit XML, one test case per rule.",
)
@lob_roots
@jobs_option
@json_option
@click.pass_context
def validate(
    ctx: click.Context,
    file: Path,
    rules: tuple[str, ...],
    fast: bool,
    html: Path | None,
    junit: Path | None,
    lob_root: tuple[str, ...],
    jobs: int | None,
    as_json: bool,
) -> None:
    """Validate an archive: every rule of its version of SIARD, in one pass over its rows.

    Errors break a mandatory requirement, warnings an optional one, notes a recommendation. Exit
    code 0 means valid, 1 invalid. docs/conformance.md lists the rules.
    """
    _check_input(file)
    for report in (html, junit):
        if report is not None and not report.parent.is_dir():
            raise UsageError(f"there is no folder {report.parent} to write {report.name} into")

    from muniment.cli import progress
    from muniment.cli.report import print_json
    from muniment.siard import validate as validating

    with progress.shown("validating") as tell:
        watch: Any = tell
        result = validating(
            file, rules=rules, fast=fast, jobs=jobs or 0, progress=watch, roots=roots_of(lob_root)
        ).finish()
    _write(result, html, junit)
    if as_json:
        print_json(_as_json(result))
    else:
        _print(result, fast)
    ctx.exit(0 if result.valid else 1)


def _check_input(file: Path) -> None:
    from muniment.siard.volumes import exists

    if not exists(file):
        raise UsageError(f"there is no file {file}")
    if file.is_dir():
        raise UsageError(f"{file} is a folder, not an archive")


def _write(result: Validation, html: Path | None, junit: Path | None) -> None:
    from muniment.cli import validation_files

    if html is not None:
        html.write_text(validation_files.format_html(result), encoding="utf-8")
    if junit is not None:
        junit.write_text(validation_files.format_junit(result), encoding="utf-8")


def _as_json(result: Validation) -> dict[str, Any]:
    return {
        "file": str(result.path),
        "version": result.version,
        "valid": result.valid,
        "findings": [
            {
                "rule": finding.rule,
                "severity": str(finding.severity),
                "where": finding.where,
                "message": finding.message,
                "count": finding.count,
            }
            for finding in result.findings
        ],
        "rules": result.rules,
    }


def by_rule(findings: Iterable[Finding]) -> list[tuple[str, list[Finding]]]:
    """Group findings by their rule, the gravest first, each group in the order of finding."""
    ordered = sorted(findings, key=lambda finding: (_ORDER.index(finding.severity), finding.rule))
    groups = groupby(ordered, key=lambda finding: (finding.severity, finding.rule))
    return [(rule, list(found)) for (_, rule), found in groups]


def _print(result: Validation, fast: bool) -> None:
    from muniment.siard.rules import RULES

    texts = {rule.id: rule.says for rule in RULES}
    for rule, found in by_rule(result.findings):
        click.echo(f"{found[0].severity} {rule}: {safe(texts[rule])}")
        for finding in found:
            message = cut(safe(finding.message), _LONGEST)
            click.echo(f"  {cut(safe(finding.where), _LONGEST)}: {message}")
    click.echo(_conclusion(result, fast))


def _conclusion(result: Validation, fast: bool) -> str:
    counts = result.counts()
    found = ", ".join(count(number, str(kind)) for kind, number in counts.items() if number)
    verdict = "valid" if result.valid else "invalid"
    version = f"SIARD {result.version}" if result.version else "not a readable SIARD archive"
    passed = sum(state == "pass" for state in result.rules.values())
    read = f"{count(result.tables, 'table')}, {count(result.rows, 'row')}"
    read += f", {count(result.lobs, 'large object')}" if result.lobs else ""
    scope = "rows were not read" if fast else f"{read} in {result.seconds:.1f} s"
    return f"{safe(result.path.name)}: {verdict}, {version}; {found or 'no findings'}; {count(passed, 'rule')} passed; {scope}"  # noqa: E501

"""A validation as files for others: a page to read, print and send, and JUnit XML for servers."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from muniment import __version__
from muniment.cli.terminal import count, cut, safe
from muniment.errors import MunimentError
from muniment.siard.rules import RULES

if TYPE_CHECKING:
    from pathlib import Path

    from muniment.findings import Finding
    from muniment.siard import Validation

__all__ = ["format_html", "format_junit"]

_LONGEST = 600
_RULES = {rule.id: rule for rule in RULES}
_HEADINGS = {
    "error": "Errors: they must be corrected, since the archive is not valid with them",
    "warning": "Warnings: they should be corrected",
    "note": "Notes: they need not be corrected",
}
_STATES = {"pass": "kept", "fail": "broken", "warn": "warning", "not-applicable": "does not apply"}
_STYLE = """
@page{margin:18mm 16mm}
body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a;background:#fff}
body{max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0 0 .6rem;overflow-wrap:anywhere}
h2{font-size:1.2rem;margin:2.2rem 0 .4rem;padding-bottom:.2rem;border-bottom:2px solid}
h3{font-size:1.05rem;margin:1.4rem 0 .2rem}
.verdict{font-size:1.2rem;font-weight:600;padding:.6rem 1rem;border-radius:.4rem;border:2px solid}
.verdict small{display:block;font-size:1rem;font-weight:400;color:#1a1a1a}
.valid{color:#14532d;background:#dcfce7}.invalid{color:#7f1d1d;background:#fee2e2}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}
dt{color:#555}dd{margin:0;overflow-wrap:anywhere}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid #ccc}
td{overflow-wrap:anywhere}.where td:first-child{width:30%}
th.number,td.number{text-align:right;white-space:nowrap}
td:first-child.rule{white-space:nowrap}
a{color:inherit}.error{color:#991b1b}.warning{color:#854d0e}.note{color:#1e3a8a}
.says{margin:0;color:#333}.remedy{margin:.2rem 0 .6rem}.remedy b{font-weight:600}
.small{color:#555;font-size:.92rem}
h2,h3,.says,.remedy{break-after:avoid}tr,.verdict,dl{break-inside:avoid}thead{display:table-header-group}
@media print{body{margin:0;padding:0;max-width:none;font-size:10.5pt}.verdict{background:none}}
@media print{.rules{break-before:page}a{text-decoration:none}}
"""


def format_html(result: Validation) -> str:
    """Return one page that needs nothing but itself."""
    from muniment.cli.validate import by_rule

    verdict = "valid" if result.valid else "invalid"
    groups = by_rule(result.findings)
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(result.path.name)}: {verdict}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Validation of {_text(result.path.name)}</h1>"
        f'<p class="verdict {verdict}">{_verdict(result)}</p>{_facts(result)}'
        f"{_summary(groups)}{_sections(groups)}{_rules(result)}"
        "</body></html>\n"
    )


def _verdict(result: Validation) -> str:
    name = f"SIARD {_text(result.version)}" if result.version else "SIARD"
    counts = {str(kind): number for kind, number in result.counts().items()}
    if result.valid:
        more = "" if not counts["warning"] else "What follows should be looked at all the same."
        more = more or "It keeps every mandatory requirement of the standard."
        return f"This archive is valid {name}.<small>{more}</small>"
    found = count(counts["error"], "case")
    return (
        f"This archive is not valid {name}.<small>It breaks mandatory requirements of the "
        f"standard in {found}; what to do is said with each.</small>"
    )


def _facts(result: Validation) -> str:
    counts = ", ".join(count(n, str(kind)) for kind, n in result.counts().items() if n)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    database, sizes = result.database, [path.stat().st_size for path in _files(result)]
    facts = {
        "Findings": counts or "none",
        "Database": database.dbname if database else "",
        "Data owner": (database.data_owner or "") if database else "",
        "Archived": (database.archival_date or "").rstrip("Z") if database else "",
        "Written by": (database.producer_application or "") if database else "",
        "Size": f"{sum(sizes):,} bytes" + (f" in {len(sizes)} parts" if len(sizes) > 1 else ""),
        "Tables, rows": f"{result.tables:,} tables, {result.rows:,} rows",
        "Large objects": f"{result.lobs:,}",
        "Validated": f"{now}, by Muniment {__version__}",
    }
    shown = "".join(f"<dt>{k}</dt><dd>{_text(v)}</dd>" for k, v in facts.items() if v)
    return f"<dl>{shown}</dl>"


def _files(result: Validation) -> tuple[Path, ...]:
    from muniment.siard.volumes import volume_paths

    try:
        return volume_paths(result.path)
    except MunimentError:  # parts are missing, which is a finding
        return ()


def _summary(groups: list[tuple[str, list[Finding]]]) -> str:
    if not groups:
        return "<p>Nothing was found that needs attention.</p>"
    rows = "".join(
        f'<tr><td class="rule"><a href="#{_anchor(rule, found)}">{rule}</a></td>'
        f"<td>{_text(_RULES[rule].says)}</td>"
        f'<td class="{found[0].severity}">{found[0].severity}</td>'
        f'<td class="number">{sum(f.count for f in found):,}</td></tr>'
        for rule, found in groups
    )
    return (
        "<h2>Summary</h2><table><thead><tr><th>Rule</th><th>Requirement</th><th>Kind</th>"
        f'<th class="number">Cases</th></tr></thead><tbody>{rows}</tbody></table>'
    )


def _sections(groups: list[tuple[str, list[Finding]]]) -> str:
    text = ""
    for kind, heading in _HEADINGS.items():
        own = [(rule, found) for rule, found in groups if str(found[0].severity) == kind]
        if own:
            text += f'<h2 class="{kind}">{heading}</h2>'
            text += "".join(_group(rule, found) for rule, found in own)
    return text


def _anchor(rule: str, found: list[Finding]) -> str:
    return f"{rule}-{found[0].severity}"


def _group(rule: str, found: list[Finding]) -> str:
    known = _RULES[rule]
    total = sum(finding.count for finding in found)
    rows = "".join(
        f"<tr><td>{_text(finding.where)}</td><td>{_text(finding.message)}</td>"
        f'<td class="number">{finding.count:,}</td></tr>'
        for finding in found
    )
    remedy = (
        f'<p class="remedy"><b>What to do:</b> {_text(known.remedy)}</p>' if known.remedy else ""
    )
    kind = str(found[0].severity)
    return (
        f'<section id="{_anchor(rule, found)}"><h3 class="{kind}">{rule}: {count(total, kind)}'
        f'</h3><p class="says">{_text(known.says)}</p>{remedy}'
        '<table class="where"><thead><tr><th>Where</th><th>What</th><th class="number">Cases</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _rules(result: Validation) -> str:
    rows = "".join(
        f'<tr><td class="rule">{rule}</td><td>{_text(_RULES[rule].says)}</td>'
        f"<td>{_STATES[state]}</td></tr>"
        for rule, state in result.rules.items()
    )
    return (
        '<section class="rules"><h2>All rules</h2><p class="small">Each requirement of the '
        "archive's version of SIARD, in short. One that does not apply had nothing to check in "
        "this archive.</p><table><thead><tr><th>Rule</th><th>Requirement</th>"
        f"<th>Result</th></tr></thead><tbody>{rows}</tbody></table></section>"
    )


def _text(text: str) -> str:
    return escape(safe(cut(text, _LONGEST)))


def format_junit(result: Validation) -> str:
    """Return JUnit XML: each rule is a test case, and an error its failure."""
    states = result.rules
    failures = sum(state == "fail" for state in states.values())
    skipped = sum(state == "not-applicable" for state in states.values())
    cases = "\n".join(_case(result, rule, state) for rule, state in states.items())
    name = quoteattr(safe(f"SIARD {result.version} {result.path.name}"))
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites><testsuite name={name} tests="{len(states)}" failures="{failures}" '
        f'errors="0" skipped="{skipped}" time="{result.seconds:.3f}">\n{cases}\n'
        "</testsuite></testsuites>\n"
    )


def _case(result: Validation, rule: str, state: str) -> str:
    found = [finding for finding in result.findings if finding.rule == rule]
    lines = escape("\n".join(f"{safe(f.where)}: {safe(f.message)}" for f in found))
    start = f'<testcase classname="{rule.partition("-")[0]}" name={quoteattr(rule)} time="0"'
    if state == "not-applicable":
        return f"{start}><skipped/></testcase>"
    if state == "fail":
        total = sum(f.count for f in found if f.severity == "error")
        message = quoteattr(f"{count(total, 'error')}: {safe(found[0].message)}")
        return f'{start}><failure type="error" message={message}>{lines}</failure></testcase>'
    output = f"<system-out>{lines}</system-out>" if lines else ""
    return f"{start}>{output}</testcase>"

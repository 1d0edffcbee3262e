"""A validation as files for others: a page to read, print and send, and JUnit XML for servers."""

from __future__ import annotations

from datetime import UTC, datetime
from html import escape
from typing import TYPE_CHECKING
from xml.sax.saxutils import quoteattr

from muniment import __version__
from muniment.cli.terminal import count, cut, safe
from muniment.siard.rules import RULES

if TYPE_CHECKING:
    from muniment.findings import Finding
    from muniment.siard import Validation

__all__ = ["format_html", "format_junit"]

_LONGEST = 600
_RULES = {rule.id: rule for rule in RULES}
_STYLE = """
body{font:16px/1.5 system-ui,sans-serif;color:#1a1a1a}
body{max-width:60rem;margin:2rem auto;padding:0 1rem}
h1{font-size:1.6rem;margin:0 0 .5rem;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2rem 0 .3rem}
.verdict{font-size:1.2rem;font-weight:600;padding:.6rem 1rem;border-radius:.4rem;border:2px solid}
.valid{color:#14532d;background:#dcfce7}.invalid{color:#7f1d1d;background:#fee2e2}
dl{display:grid;grid-template-columns:max-content 1fr;gap:.2rem 1rem}dt{color:#555}dd{margin:0}
table{border-collapse:collapse;width:100%;font-size:.92rem}
th,td{text-align:left;vertical-align:top;padding:.3rem .5rem;border-bottom:1px solid #ccc}
td{overflow-wrap:anywhere}td:first-child{width:30%}.number{text-align:right;white-space:nowrap}
.error h2{color:#991b1b}.warning h2{color:#854d0e}.note h2{color:#1e3a8a}
.says{margin:0;color:#333}.remedy{margin:.2rem 0 .6rem;font-style:italic}
section{break-inside:auto}h2,.says,.remedy{break-after:avoid}
tr{break-inside:avoid}
@media print{body{margin:0;max-width:none;font-size:11pt}.verdict{background:none}}
"""


def format_html(result: Validation) -> str:
    """Return one page that needs nothing but itself."""
    from muniment.cli.validate import by_rule

    verdict = "valid" if result.valid else "invalid"
    groups = "".join(_group(rule, found) for rule, found in by_rule(result.findings))
    return (
        '<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f"<title>{_text(result.path.name)}: {verdict}</title><style>{_STYLE}</style></head><body>"
        f"<h1>Validation of {_text(result.path.name)}</h1>"
        f'<p class="verdict {verdict}">{_verdict(result)}</p>{_facts(result)}'
        f"{groups or '<p>Nothing was found that needs attention.</p>'}{_rules(result)}"
        "</body></html>\n"
    )


def _verdict(result: Validation) -> str:
    name = f"SIARD {_text(result.version)}" if result.version else "SIARD"
    if result.valid:
        return f"This archive is valid {name}."
    return f"This archive is not valid {name}: it breaks mandatory requirements."


def _facts(result: Validation) -> str:
    counts = ", ".join(count(n, str(kind)) for kind, n in result.counts().items() if n)
    now = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    facts = {
        "Findings": counts or "none",
        "Tables, rows": f"{result.tables}, {result.rows}",
        "Large objects": str(result.lobs),
        "Validated": f"{now}, by Muniment {__version__}",
    }
    return "<dl>" + "".join(f"<dt>{k}</dt><dd>{_text(v)}</dd>" for k, v in facts.items()) + "</dl>"


def _group(rule: str, found: list[Finding]) -> str:
    known = _RULES[rule]
    total = sum(finding.count for finding in found)
    rows = "".join(
        f"<tr><td>{_text(finding.where)}</td><td>{_text(finding.message)}</td>"
        f'<td class="number">{finding.count}</td></tr>'
        for finding in found
    )
    remedy = f'<p class="remedy">What to do: {_text(known.remedy)}</p>' if known.remedy else ""
    return (
        f'<section class="{found[0].severity}"><h2>{rule}: {count(total, str(found[0].severity))}'
        f'</h2><p class="says">{_text(known.says)}</p>{remedy}'
        "<table><thead><tr><th>Where</th><th>What</th><th>Cases</th></tr></thead>"
        f"<tbody>{rows}</tbody></table></section>"
    )


def _rules(result: Validation) -> str:
    rows = "".join(
        f"<tr><td>{rule}</td><td>{_text(_RULES[rule].says)}</td><td>{state}</td></tr>"
        for rule, state in result.rules.items()
    )
    return (
        "<section><h2>All rules</h2><table><thead><tr><th>Rule</th><th>Requirement</th>"
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
    start = f'<testcase classname="{rule.partition("-")[0]}" name={quoteattr(rule)}'
    if state == "not-applicable":
        return f"{start}><skipped/></testcase>"
    if state == "fail":
        total = sum(f.count for f in found if f.severity == "error")
        message = quoteattr(f"{count(total, 'error')}: {safe(found[0].message)}")
        return f"{start}><failure message={message}>{lines}</failure></testcase>"
    output = f"<system-out>{lines}</system-out>" if lines else ""
    return f"{start}>{output}</testcase>"

"""docs/conformance.md: every rule, what is checked, and which test proves it.

python -m muniment.siard.rules.conformance > docs/conformance.md
"""

from __future__ import annotations

from collections.abc import Iterator

from muniment.siard.rules import RULES, Rule

__all__ = ["format_conformance"]

_CHAPTERS = {
    "G_3": "3 General requirements",
    "G_4": "4.1 The SIARD file",
    "P_4.2": "4.2 Folders and files",
    "P_4.3": "4.3 Metadata and table data correspond",
    "M_5": "5 Metadata",
    "T_6": "6 Table data",
    "L_7": "7 Large objects outside",
    "S_8": "8 Scalability",
}
_HEAD = """# Conformance

Every requirement of SIARD 2.2, what `muniment validate` checks of it, and the test in which an
archive that breaks it is caught. Made from the rules in `src/muniment/siard/rules/` by `make docs`;
a test fails if the page is not up to date.

- **M** is mandatory: breaking it is an error and makes an archive invalid. **O** is optional: a
  warning. What is only recommended is a note. Exceptions stand with the rule.
- Rules that are newer than 1.0 say since when; an archive is judged by the rules of its version.
- The test is `tests/siard/test_rules.py::test_a_broken_rule_is_found[ID]`.
"""


def format_conformance() -> str:
    """Return the page."""
    return "\n".join([_HEAD, *_chapters()])


def _chapters() -> Iterator[str]:
    for start, title in _CHAPTERS.items():
        yield f"## {title}\n"
        yield "| rule | | requirement | checked | test |\n|---|---|---|---|---|"
        yield from (_row(rule) for rule in RULES if rule.id.startswith(start))
        yield ""


def _row(rule: Rule) -> str:
    since = "" if rule.since == "1.0" else f" *(since {rule.since})*"
    checked = rule.checks or f"Not checked. {rule.unchecked}"
    test = f"`[{rule.id}]`" if rule.checks else "none"
    cells = (rule.id, rule.level, rule.says + since, checked, test)
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"


if __name__ == "__main__":
    print(format_conformance(), end="")

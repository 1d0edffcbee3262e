"""An archive whose every name and value means harm."""

from __future__ import annotations

from pathlib import Path

from archives import column, make_archive
from muniment.sql.model import (
    Database,
    ForeignKey,
    Reference,
    Role,
    Routine,
    Schema,
    Table,
    Trigger,
    UniqueKey,
    User,
    View,
)

__all__ = ["HUGE", "SCRIPT", "make_hostile"]

SCRIPT = "<script>document.documentElement.dataset.owned='yes'</script>"
ATTRIBUTE = "\" onmouseover=\"document.documentElement.dataset.owned='yes'\" x='"
HUGE = "n" * (10 << 20)
_SVG = b'<svg xmlns="http://www.w3.org/2000/svg" onload="top.document.documentElement.dataset.owned=1"><script>top.document.documentElement.dataset.owned=1</script></svg>'
_HTML = f"<html><body>{SCRIPT}</body></html>".encode()


def make_hostile(path: Path) -> Path:
    """Write the archive."""
    columns = (
        column("id", "INTEGER"),
        column(SCRIPT),
        column(ATTRIBUTE),
        column("{{ 7 * 7 }}"),
        column("file", "BLOB"),
        column("text", "CLOB"),
    )
    key = ForeignKey(SCRIPT, "s", "..", (Reference("id", "a/b"),), description=SCRIPT)
    tables = (
        Table(SCRIPT, "table0", columns, description=SCRIPT, foreign_keys=(key,),
              primary_key=UniqueKey(SCRIPT, ("id",)),
              triggers=(Trigger(SCRIPT, "BEFORE", "DELETE", SCRIPT),)),
        Table("..", "table1", (column("a/b", "INTEGER"),), primary_key=UniqueKey("k", ("a/b",))),
        Table(HUGE, "table2", (column(HUGE[: 1 << 20]),)),
        Table("x'; DROP", "table3", (column("~1"),)),
    )  # fmt: skip
    view = View(SCRIPT, (column("x"),), query=f"SELECT '{SCRIPT}' AS x", query_original=SCRIPT)
    routine = Routine(SCRIPT, SCRIPT, description=SCRIPT, source=SCRIPT)
    database = Database(
        SCRIPT,
        data_owner=SCRIPT,
        description=SCRIPT,
        schemas=(
            Schema("s", "schema0", SCRIPT, tables=tables, views=(view,), routines=(routine,)),
        ),
        users=(User(SCRIPT, SCRIPT),),
        roles=(Role(SCRIPT, SCRIPT, SCRIPT),),
    )
    rows = {
        ("s", SCRIPT): [
            ["1", SCRIPT, ATTRIBUTE, "=HYPERLINK(\"http://x\")", _SVG, SCRIPT],
            ["2", "javascript:alert(1)", "\u202egnp.exe", "+1", _HTML, "x" * 300_000],
            ["3", "\x00\x1b[2J", "' OR 1=1 --", "-1", b"%PDF-1.4\n", "]]>"],
            ["4", None, "", None, b"MZ\x90\x00" * 10, None],
        ],
        ("s", ".."): [["1"], ["2"]],
        ("s", HUGE): [["v"]],
        ("s", "x'; DROP"): [["w"]],
    }  # fmt: skip
    return make_archive(path, database, rows)

"""``muniment pdi``, ``urn`` and ``registry`` from the outside."""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from commandline import Run

SERIES = "db.example.ch"


def data(result: Any) -> Any:
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


@pytest.fixture
def names(run: Run) -> Run:
    assert run("registry", "init", "--series", SERIES).exit_code == 0
    return run


def test_parse_shows_parts_or_what_is_wrong(run: Run) -> None:
    good = run("pdi", "parse", "PDI://A.ch/2025/11/15/1.text.1#37,51")
    assert (good.exit_code, "text/plain" in good.stdout) == (0, True)
    parts = data(run("pdi", "parse", "PDI://A.ch/2025/11/15/1.text.1#37,51", "--json"))
    assert parts["canonical"] == "pdi://a.ch/2025/11/15/1.text.1#37,51"
    assert parts["fragment"] == {"scheme": "char", "explicit": False, "positions": ["37", "51"]}
    bad = run("pdi", "parse", "pdi://a.ch/2025/13/15/1", "--json")
    assert bad.exit_code == 1
    assert json.loads(bad.stdout)["problems"][0]["code"] == "E_DATE"
    strict = run("pdi", "parse", "pdi://a.ch/2025/11/15/1", "--profile", "mint")
    assert (strict.exit_code, "E_MINT_NEEDS_FORMAT_VERSION" in strict.stdout) == (1, True)


def test_canonical_and_same(run: Run) -> None:
    text = "URN:PDI://A.ch/2025/11/15/1.TEXT.1#0,5"
    assert run("pdi", "canonical", text).stdout == "pdi://a.ch/2025/11/15/1.text.1#0,5\n"
    functional = run("pdi", "canonical", text, "--functional").stdout
    assert functional == "pdi://a.ch/2025/11/15/1.text.1#char=0,5\n"
    urn = run("pdi", "canonical", text, "--urn", "example").stdout
    assert urn == "urn:example:pdi:a.ch:2025:11:15:1.text.1#0,5\n"
    other = functional.strip()
    assert run("pdi", "same", text, other).exit_code == 1
    assert run("pdi", "same", text, other, "--functional").exit_code == 0
    assert data(run("pdi", "same", text, text, "--json")) == {"lexical": True, "functional": True}
    assert run("pdi", "same", text, "nonsense").exit_code == 2
    assert run("pdi", "canonical", "nonsense").exit_code == 1


def test_mint_bind_resolve_and_list(names: Run, tmp_path: Path) -> None:
    first, second = data(names("pdi", "mint", "--count", "2", "--json"))["pdis"]
    (tmp_path / "a.txt").write_text("Hello\nWorld\n")
    bound = data(names("pdi", "bind", first, "a.txt", "--json"))
    assert (bound["pdi"], bound["length"]) == (first, 12)
    found = data(names("pdi", "resolve", first, "--json"))
    assert (found["status"], found["binding"]["sha256"]) == ("bound", bound["sha256"])
    assert names("pdi", "resolve", first, "--content").stdout == "Hello\nWorld\n"
    part = names("pdi", "resolve", f"{first}#7,12", "--content")
    assert part.stdout == "World"
    assert names("pdi", "resolve", second).exit_code == 1
    (tmp_path / "a.txt").write_text("other")
    refused = names("pdi", "bind", first, "a.txt")
    assert (refused.exit_code, "never change" in refused.stderr) == (3, True)
    generic = first.removesuffix(".1")
    assert names("pdi", "bind", generic, "a.txt").stdout.startswith(f"{generic}.2\n")
    assert names("pdi", "resolve", generic, "--out", "out.txt").exit_code == 0
    assert (tmp_path / "out.txt").read_text() == "other"
    listed = data(names("pdi", "list", f"pdi://{SERIES}/*/*/*/*", "--json"))
    assert listed == {
        "pdis": [p.removesuffix(".text.1") for p in (first, second)],
        "more": False,
        "complete": True,
    }
    assert names("pdi", "withdraw", first, "--reason", "law", "--by", "me").exit_code == 0
    assert "withdrawn" in names("pdi", "resolve", first).stdout
    assert "records, unchanged" in names("registry", "verify").stdout


def test_mnemonic_and_foreign_ids(names: Run) -> None:
    assert names("pdi", "mint", "--id", "annex").stdout.endswith("/annex.text.1\n")
    doi = names("pdi", "mint", "--encapsulates", "doi", "10.1000/ABC").stdout
    assert doi.endswith("/10%2e1000%2fabc.text.1\n")
    assert names("pdi", "mint", "--format", "unheard-of").exit_code == 2
    assert names("pdi", "mint", "--series", "other.ch").exit_code == 1


def test_assertions_are_said_and_shown(names: Run) -> None:
    pdi = names("pdi", "mint").stdout.strip()
    assert names("pdi", "assert", pdi, "title", "A report").exit_code == 2
    assert names("pdi", "assert", pdi, "title", "A report", "--by", "clerk").exit_code == 0
    names("pdi", "assert", f"pdi://{SERIES}/", "policy", '{"years": 50}', "--by", "archivist")
    said = data(names("pdi", "assert", pdi, "--inherited", "--json"))
    assert [each["value"] for each in said] == [{"years": 50}, "A report"]
    linked = data(names("pdi", "assert", pdi, "--json-ld"))
    assert linked["@graph"][0]["object"] == "A report"


def test_quotations_are_checked(names: Run, tmp_path: Path) -> None:
    a, b = data(names("pdi", "mint", "--count", "2", "--json"))["pdis"]
    (tmp_path / "a").write_text("see: source")
    (tmp_path / "b").write_text("the source of it")
    names("pdi", "bind", a, "a")
    names("pdi", "bind", b, "b")
    good, bad = f"{a}@5={b}#4,10", f"{a}@4={b}#4,10"
    assert names("pdi", "check", good).stdout.startswith("verified")
    assert data(names("pdi", "check", good, "--json"))["verified"] is True
    assert names("pdi", "check", bad).exit_code == 1
    assert names("pdi", "resolve", good, "--content").stdout == "source"


def test_the_command_that_opens_a_cited_query_works_as_printed(run: Run, shop: str) -> None:
    assert run("registry", "init", "--series", SERIES, "my names").exit_code == 0
    assert run("archive", shop, "shop.siard").exit_code == 0
    cited = run(
        "pdi", "cite", "--query", "SELECT count(*) FROM fruit", "shop.siard", "--names", "my names"
    )
    _, _, command = cited.stderr.partition("open it with: muniment ")
    assert run(*shlex.split(command)).exit_code == 0, command


def test_a_query_is_cited_resolved_and_proved(names: Run, shop: str) -> None:
    assert names("archive", shop, "shop.siard").exit_code == 0
    sql = "select name, price from fruit where price is not null"
    cited = data(names("pdi", "cite", "--query", sql, "shop.siard", "--by", "Reader", "--json"))
    assert (cited["rows"], cited["known"]) == (2, False)
    assert cited["pdi"].removesuffix(".sql.1") in cited["citation"]
    generic = cited["pdi"].removesuffix(".sql.1")
    again = data(names("pdi", "cite", "--query", f"{sql} ;", "shop.siard", "--json"))
    assert (again["pdi"], again["known"]) == (cited["pdi"], True)
    assert names("pdi", "resolve", generic).exit_code == 0
    assert "ORDER BY" in names("pdi", "resolve", cited["pdi"], "--content").stdout
    rows = names("pdi", "resolve", f"{generic}.csv.1", "--content").stdout
    assert rows.splitlines() == ['"name","price"', '"NULL","0.05"', '"apple","1.10"']
    assert names("pdi", "prove", generic).stdout.startswith("the same: 2 rows")
    source = cited["sources"]["shop"]
    part = names("pdi", "cite", f"{source}#cell=(s0,t0,c2,r1)")
    assert "column " in part.stdout and "row 1" in part.stdout
    assert names("pdi", "prove", source).exit_code == 1
    assert names("pdi", "cite", "--query", "DROP TABLE fruit", "shop.siard").exit_code == 3
    assert names("pdi", "cite", f"{source}#cell=(s0,t9,c2,r1)").exit_code == 3


def test_urns_are_read_compared_and_validated(names: Run) -> None:
    parts = data(names("urn", "parse", "URN:Example:a%2cb?=q#f", "--json"))
    assert (parts["key"], parts["q"], parts["f"]) == ("urn:example:a%2Cb", "q", "f")
    assert names("urn", "parse", "urn:a:b").exit_code == 1
    assert names("urn", "canonical", "URN:Example:A").stdout == "urn:example:A\n"
    assert names("urn", "same", "urn:example:a", "URN:EXAMPLE:a").exit_code == 0
    assert names("urn", "same", "urn:example:a", "urn:example:A").exit_code == 1
    assert names("urn", "validate", "urn:example:unknown:1").exit_code == 1


def test_a_namespace_is_registered_and_used(run: Run, tmp_path: Path) -> None:
    assert run("registry", "init", "--root", "ogf").exit_code == 0
    template = run("registry", "template").stdout
    (tmp_path / "example.yaml").write_text(template)
    assert (
        run("registry", "propose", "example", "--from", "example.yaml", "--by", "me").exit_code == 0
    )
    assert run("registry", "review", "example").exit_code == 0
    decided = run("registry", "decide", "example", "--approve", "--by", "editor")
    assert decided.stdout == "namespace example: assigned, version 1\n"
    urn = "urn:ogf:example:cluster:2009:example.net:42"
    verdict = run("urn", "validate", urn, "--json")
    assert (verdict.exit_code, json.loads(verdict.stdout)["assigned"]) == (1, False)
    records = "2009.example.net.cluster.grid.example.net:\n- {order: 1, flags: U, service: I2R, regexp: '!^.*$!http://r!'}\n"
    (tmp_path / "naptr.yaml").write_text(records)
    followed = data(run("urn", "validate", urn, "--naptr", "naptr.yaml", "--json"))
    assert (followed["ddds"]["valid"], followed["ddds"]["result"]) == (True, "http://r")
    assert run("urn", "same", urn, urn.upper(), "--registered").exit_code == 0
    assert run("urn", "assign", urn, "x", "--by", "me").exit_code == 3
    assert "# Registration of urn:ogf:example" in run("registry", "export", "example").stdout
    assert "<h1>" in run("registry", "export", "--format", "html").stdout
    assert data(run("registry", "show", "--json"))["entries"][0]["state"] == "assigned"
    assert run("registry", "show", "nothing").exit_code == 1
    for command in (["notice"], ["reserve", "--days", "3"]):
        assert run("registry", *command, "network", "--by", "me").exit_code == 0
    assert run("registry", "hand-on", "example", "others", "--by", "me").exit_code == 0
    assert run("registry", "close", "example", "--by", "others").stdout.startswith(
        "namespace example: closed"
    )
    (tmp_path / "bad.yaml").write_text("- [")
    assert run("registry", "propose", "x", "--from", "bad.yaml", "--by", "me").exit_code == 2


def test_a_template_is_a_registration_that_passes_below_any_root(run: Run, tmp_path: Path) -> None:
    assert run("registry", "init", "--root", "city-x").exit_code == 0
    (tmp_path / "trees.yaml").write_text(run("registry", "template", "trees").stdout)
    for command in (["propose", "trees", "--from", "trees.yaml"], ["review", "trees"]):
        by = [] if command[0] == "review" else ["--by", "me"]
        assert run("registry", *command, *by).exit_code == 0
    undecided = run("registry", "decide", "trees", "--by", "editor")
    assert undecided.exit_code == 2 and "--approve or --reject" in undecided.stderr
    asked = run("registry", "ask", "trees", "--by", "editor", "--reason", "more in 4.1")
    assert asked.stdout == "namespace trees: proposed\n"
    assert run("registry", "decide", "trees", "--approve", "--by", "editor").exit_code == 0
    name = "urn:city-x:trees:cluster:2009:example.net:42"
    assert json.loads(run("urn", "validate", name, "--json").stdout)["valid"] is True
    assert run("registry", "template", "no/name").exit_code == 2
    page = run("registry", "export", "trees", "--format", "html").stdout
    assert "<h2>History</h2>" in page
    assert "| namespace | trees |" in run("registry", "export").stdout


def test_series_are_added_delegated_and_closed(names: Run) -> None:
    assert names("registry", "series", f"sub.{SERIES}", "--steward", "Others").exit_code == 0
    assert names("pdi", "mint", "--series", f"sub.{SERIES}", "--by", "me").exit_code == 3
    names("registry", "series", f"sub.{SERIES}", "--mandate", "me", "contract")
    assert names("pdi", "mint", "--series", f"sub.{SERIES}", "--by", "me").exit_code == 0
    away = names(
        "registry",
        "series",
        SERIES,
        "--interval",
        "1990-01-01",
        "1999-12-31",
        "https://old.ch",
        "--json",
    )
    assert data(away)["intervals"] == [[19900101, 19991231, "https://old.ch"]]
    assert "https://old.ch" in names("pdi", "resolve", f"pdi://{SERIES}/1995/01/01/1").stdout
    assert names("registry", "series", SERIES, "--close", "--reason", "end").exit_code == 0
    assert names("pdi", "mint", "--series", SERIES).exit_code == 3


def test_without_names_the_command_says_how_to_make_them(run: Run) -> None:
    result = run("pdi", "mint")
    assert (result.exit_code, "muniment registry init" in result.stderr) == (2, True)
    assert run("registry", "init", "--root", "urn").exit_code == 2
    assert run("registry", "init", "--series", "nonsense").exit_code == 2

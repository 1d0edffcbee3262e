"""``muniment validate``: what it prints, writes and returns."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from commandline import Run
from lxml import etree, html

sys.path.insert(0, str(Path(__file__).parents[1] / "siard"))
from broken_archives import ARTIST, META_XML, VALID, changed, write


@pytest.fixture
def broken(tmp_path: Path) -> Path:
    files = changed(VALID, ARTIST, "Jürg", "<b>J</b>")
    files = changed(files, META_XML, "<rows>3</rows>", "<rows>4</rows>")
    return write(tmp_path / "museum.siard", files)


def test_a_valid_archive_is_said_to_be_valid(run: Run, tmp_path: Path) -> None:
    write(tmp_path / "museum.siard")
    result = run("validate", "museum.siard")
    assert result.exit_code == 0
    assert "museum.siard: valid, SIARD 2.2; no findings;" in result.stdout
    assert "2 tables, 6 rows, 3 large objects" in result.stdout


def test_findings_are_grouped_by_rule_and_the_answer_is_no(run: Run, broken: Path) -> None:
    result = run("validate", broken.name)
    assert result.exit_code == 1
    lines = result.stdout.splitlines()
    at = next(n for n, line in enumerate(lines) if line.startswith("error P_4.3-10: "))
    assert lines[at + 1] == "  MAIN.ARTIST: metadata.xml has 4 rows, the file 3"
    assert ": invalid, SIARD 2.2; " in lines[-1]


def test_json_has_the_form_that_scripts_depend_on(run: Run, broken: Path) -> None:
    result = run("validate", broken.name, "--json")
    assert result.exit_code == 1
    answer = json.loads(result.stdout)
    assert list(answer) == ["file", "version", "valid", "findings", "rules"]
    assert (answer["file"], answer["version"], answer["valid"]) == ("museum.siard", "2.2", False)
    found = {(f["rule"], f["severity"], f["where"]) for f in answer["findings"]}
    assert ("P_4.3-10", "error", "MAIN.ARTIST") in found
    assert answer["rules"]["P_4.3-10"] == "fail"
    assert answer["rules"]["P_4.2-1"] == "pass"
    assert answer["rules"]["S_8.2-0"] == "not-applicable"
    assert set(answer["rules"].values()) <= {"pass", "fail", "warn", "not-applicable"}


def test_the_page_stands_alone_and_says_what_to_do(run: Run, broken: Path, tmp_path: Path) -> None:
    assert run("validate", broken.name, "--html", "report.html").exit_code == 1
    text = (tmp_path / "report.html").read_text(encoding="utf-8")
    page = html.fromstring(text)
    assert not page.xpath("//link | //script | //img | //@src | //@href[not(starts-with(., '#'))]")
    words = " ".join(page.text_content().split())
    assert "This archive is not valid SIARD 2.2" in words
    assert "P_4.3-10: 1 error" in words
    assert "What to do: Correct the number in metadata.xml" in words
    assert "MAIN.ARTIST" in words
    assert "@media print" in text
    assert "<b>J</b>" not in text


def test_junit_has_a_case_per_rule(run: Run, broken: Path, tmp_path: Path) -> None:
    run("validate", broken.name, "--junit", "report.xml")
    suite = etree.parse(tmp_path / "report.xml").getroot()[0]
    cases = {case.get("name"): case for case in suite}
    assert int(suite.get("tests")) == len(cases) > 70
    assert cases["P_4.3-10"].find("failure") is not None
    assert cases["S_8.2-0"].find("skipped") is not None
    assert len(cases["P_4.2-1"]) == 0
    failures = suite.findall("testcase/failure")
    assert int(suite.get("failures")) == len(failures)
    # What readers of JUnit's schema ask for.
    assert all(failure.get("type") and failure.get("message") for failure in failures)
    assert all(float(case.get("time")) >= 0 and case.get("classname") for case in suite)


def test_rule_and_fast_narrow_the_work(run: Run, broken: Path) -> None:
    one = json.loads(run("validate", broken.name, "--rule", "P_4.2-1", "--json").stdout)
    assert one["rules"] == {"P_4.2-1": "pass"}
    assert one["valid"] is True
    fast = run("validate", broken.name, "--fast")
    assert "rows were not read" in fast.stdout
    assert fast.exit_code == 0
    unknown = run("validate", broken.name, "--rule", "X_1")
    assert (unknown.exit_code, "there is no rule X_1" in unknown.stderr) == (2, True)


@pytest.mark.parametrize("content", [b"", b"PK\x03\x04", b"hello", b"PK\x05\x06" + bytes(18)])
def test_a_file_that_is_no_archive_is_invalid(run: Run, tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x.siard").write_bytes(content)
    result = run("validate", "x.siard", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["valid"] is False


def test_a_file_that_is_not_there_is_wrong_usage(run: Run) -> None:
    result = run("validate", "nowhere.siard")
    assert (result.exit_code, result.stderr) == (2, "muniment: there is no file nowhere.siard\n")


def test_names_from_the_archive_cannot_play_with_the_terminal(run: Run, tmp_path: Path) -> None:
    files = changed(VALID, META_XML, "<name>PK_ARTIST<", "<name>\\u001b[2J&lt;script&gt;\\u202e<")
    files = changed(
        files, META_XML, "<column>ID</column></primaryKey>", "<column>NO</column></primaryKey>"
    )
    write(tmp_path / "museum.siard", files)
    result = run("validate", "museum.siard", "--html", "r.html")
    assert result.exit_code == 1
    assert "\x1b" not in result.stdout
    assert "\u202e" not in result.stdout
    assert "<script>" not in (tmp_path / "r.html").read_text(encoding="utf-8")

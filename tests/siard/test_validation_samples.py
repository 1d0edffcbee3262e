"""Real archives of other makers: each error is one that is really there."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment.findings import Severity
from muniment.siard import validate

pytestmark = pytest.mark.samples

NO_ZIP = {"G_4.1-1"}
STALE_DIGEST = {"M_5.1-1"}  # a tool upgraded the archive and kept the digest
ORPHANS = {"T_6.0-1"}
# The start and the end of the name, and the rules that the archive breaks. All others are valid.
BROKEN = {
    ("JdbcMsSql", ".bed77aa.siard"): NO_ZIP,
    ("SIARD__SIARD_2.2", ".siard"): {"P_4.2-1"},
    ("SiardCmd", "mysql8.c734606.siard"): NO_ZIP,
    ("arkade5__", "med_blobs.siard"): {"P_4.2-1", "P_4.3-7"},
    ("file-scraper", "schema_errors.siard"): {"P_4.3-3", "T_6.0-1"},
    ("siard-suite__sample", ".siard"): NO_ZIP,
    ("sql2008_2_2", ".siard"): STALE_DIGEST,
    ("SIARD_KR__Install", "_sample.siard"): ORPHANS | {"G_3.3-3", "G_3.3-4"},
    ("SIARD_KR__SiardApi", "_sample.siard"): ORPHANS,
    ("SiardApi__src_test", "_sample.siard"): ORPHANS | STALE_DIGEST,
    ("SiardApi__src_test", "_sfdboe.siard"): STALE_DIGEST,
    ("SiardApi__src_test", "_sfdbsakila.siard"): STALE_DIGEST,
    ("SiardApi__test", ".siard"): ORPHANS,
    ("SiardCmd", "underscore-mysql5.siard"): {"P_4.3-1"} | STALE_DIGEST,
    ("SiardCmd", "submitted-foreign-key.siard"): {"P_4.3-3", "T_6.0-1"},
    ("SiardCmd", "sample-datalink-2.2.siard"): ORPHANS,
    ("SiardCmd__testfiles_siardarchives_sfdboe", ".siard"): {"T_6.0-1", "T_6.0-2"},
    ("SiardCmd__testfiles_siardarchives_test", ".siard"): ORPHANS,
    ("eark-ip", "northwind.siard"): {"P_4.2-4", "P_4.2-6", "G_3.4-1", "T_6.4-5"},
}


def expected(name: str) -> set[str]:
    for (start, end), rules in BROKEN.items():
        if name.startswith(start) and name.endswith(end):
            return rules
    return set()


def test_every_error_in_the_corpus_is_one_that_is_there(samples: Path) -> None:
    found = {}
    paths = sorted((samples / "siard").rglob("*.siard"))
    for path in paths:
        result = validate(path, jobs=1).finish()
        errors = {f.rule for f in result.findings if f.severity is Severity.ERROR}
        if errors != expected(path.name):
            found[path.name] = errors
    assert found == {}
    assert len(paths) > 40


def test_the_name_counts(samples: Path) -> None:
    (path,) = (samples / "siard" / "broken").glob("*.zip")
    result = validate(path, jobs=1).finish()
    assert [f.rule for f in result.findings if f.severity is Severity.ERROR] == ["G_4.1-5"]

"""The documents name every requirement once, with a place and a test that exist."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

PROJECT = Path(__file__).parents[1]
DOCUMENTS = ("names-requirements.md", "store.md")
NUMBERS = {"PDI-": 133, "OGF-": 74, "I-": 42, "F-": 15, "R": 27}
# What a program cannot do, or nobody has to.
WITHOUT_TEST = {"OGF-11", "OGF-69", "I-38"}


@cache
def rows() -> dict[str, list[str]]:
    texts = [(PROJECT / "docs" / name).read_text(encoding="utf-8") for name in DOCUMENTS]
    lines = "\n".join(texts).splitlines()
    cells = [line.strip("| ").split(" | ") for line in lines if line.startswith("| ")]
    found = [row for row in cells if re.fullmatch(r"([A-Z]+-|R)\d+", row[0])]
    assert len({row[0] for row in found}) == len(found)
    return {row[0]: row[1:] for row in found}


@cache
def all_tests() -> set[str]:
    files = (PROJECT / "tests").rglob("test_*.py")
    text = "\n".join(path.read_text(encoding="utf-8") for path in files)
    return set(re.findall(r"def (test_\w+)", text))


@pytest.mark.parametrize("family", NUMBERS)
def test_every_requirement_has_a_row(family: str) -> None:
    wanted = [f"{family}{number}" for number in range(1, NUMBERS[family] + 1)]
    assert [name for name in rows() if re.fullmatch(rf"{family}\d+", name)] == wanted


def test_each_row_names_files_and_tests_that_exist() -> None:
    for name, (asked, where, shown) in rows().items():
        assert asked.strip() and where.strip(), name
        for file in re.findall(r"`([\w/]+\.(?:py|yaml))`", where):
            assert (PROJECT / "src" / "muniment" / file).is_file(), (name, file)
        tests = re.findall(r"`(test_\w+)`", shown)
        assert set(tests) <= all_tests(), (name, set(tests) - all_tests())
        assert bool(tests) != (name in WITHOUT_TEST), name

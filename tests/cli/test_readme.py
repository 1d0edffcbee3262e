"""Every command of the README runs, and prints what the README says."""

from __future__ import annotations

import re
from pathlib import Path

from transcripts import Shell, commands, constant, shortened

README = Path(__file__).parents[2] / "README.md"


def test_the_readme_tells_the_truth(tmp_path: Path) -> None:
    shell = Shell(tmp_path)
    told = list(commands(README.read_text(encoding="utf-8")))
    assert len(told) > 5
    for command in told:
        printed = shortened(shell.run(command.text), command.output)
        assert constant(printed) == constant(command.output), command.text


def test_the_readme_names_files_that_exist() -> None:
    for name in re.findall(r"\]\(([\w./-]+)\)", README.read_text(encoding="utf-8")):
        assert (README.parent / name).exists(), name

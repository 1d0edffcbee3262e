"""``muniment demo`` from the outside."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

from commandline import Run


def test_the_whole_story_goes_well(run: Run) -> None:
    result = run("demo")
    assert result.exit_code == 0, result.output
    assert "$ muniment archive sqlite:///muniment-demo/trees.db" in result.stdout
    assert "equal: 14 tables, 50342 rows" in result.stdout
    assert "different: 1 of 14 tables" in result.stdout
    assert "finance.posting   2400" in result.stdout  # several schemas
    assert "$ muniment serve muniment-demo/store\n(then http://127.0.0.1:8180/)" in result.stdout
    assert "What to try next" in result.stdout
    assert "\x1b" not in result.output
    made = {path.name for path in Path("muniment-demo").iterdir()}
    assert {"trees.db", "trees.yaml", "trees.siard", "again.db"} <= made


def test_what_to_try_next_can_be_tried(run: Run) -> None:
    story = run("demo").stdout
    after = story.partition("What to try next")[2]
    commands = [shlex.split(line) for line in after.splitlines() if line.startswith("  muniment")]
    assert len(commands) > 2
    for _, *arguments in commands:
        if "yours.siard" not in arguments and "browse" not in arguments:
            assert run(*arguments).exit_code == 0, arguments


def test_a_second_demo_takes_a_folder_of_its_own(run: Run) -> None:
    Path("muniment-demo").mkdir()
    Path("muniment-demo", "precious").touch()
    assert run("demo").exit_code == 0
    assert [path.name for path in Path("muniment-demo").iterdir()] == ["precious"]
    assert len(list(Path().glob("muniment-demo-*/trees.siard"))) == 1


def test_a_folder_that_holds_something_is_refused(run: Run) -> None:
    Path("here").mkdir()
    Path("here", "precious").touch()
    result = run("demo", "here")
    assert result.exit_code == 2
    assert [path.name for path in Path("here").iterdir()] == ["precious"]


def test_a_folder_with_an_awkward_name_is_fine(run: Run) -> None:
    assert run("demo", "my trees/100% #1").exit_code == 0


def test_the_json_form_is_stable(run: Run) -> None:
    result = run("demo", "tour", "--json")
    story = json.loads(result.stdout)
    assert set(story) == {"folder", "done", "steps"}
    assert (story["folder"], story["done"]) == ("tour", True)
    assert all(set(step) == {"title", "command", "exit", "result"} for step in story["steps"])
    assert [step["exit"] for step in story["steps"]].count(1) == 1

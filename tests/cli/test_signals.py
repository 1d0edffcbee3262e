"""A signal that comes at a bad moment still stops the command."""

from __future__ import annotations

import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from commandline import database

_SCRIPT = """
import ctypes, os, signal, sys, time
signal.signal(signal.SIGHUP, signal.SIG_DFL)  # it may be ignored here
signal.signal(signal.SIGINT, signal.default_int_handler)
from muniment.cli import main as commands

def signalled():
    os.kill(os.getpid(), {number})
    time.sleep(1)

class Dying:
    def __del__(self):
        signalled()

class Asked:
    @property
    def name(self):
        signalled()

@commands.cli.command()
def last():
    {place}
    time.sleep(60)

sys.argv = ["muniment", "last"]
commands.main()
"""

_PLACES = {
    "a finalizer": "Dying()",
    "a call back": "ctypes.CFUNCTYPE(None)(signalled)()",
    "a question in C": "ctypes.pythonapi.PyObject_HasAttrString(ctypes.py_object(Asked()), b'name')",
    "nothing special": "signalled()",
}


def _run(script: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", script], capture_output=True, encoding="utf-8", timeout=50
    )


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 129)]
)
def test_a_signal_that_python_drops_comes_again(number: int, code: int, place: str) -> None:
    result = _run(_SCRIPT.format(number=int(number), place=_PLACES[place]))
    assert result.returncode == code
    assert result.stderr.strip() == "muniment: stopped; nothing was left behind"


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_an_error_that_a_signal_became_is_the_signal(number: int, code: int) -> None:
    place = """
    try:
        signalled()
    except BaseException:
        raise RuntimeError("Query interrupted") from None"""
    result = _run(_SCRIPT.format(number=int(number), place=place))
    assert result.returncode == code, result.stderr
    assert result.stderr.strip() == "muniment: stopped; nothing was left behind"


@pytest.mark.parametrize("name", ["SIGINT", "SIGHUP"])
def test_an_ignored_signal_stays_ignored(name: str) -> None:
    number = int(getattr(signal, name))
    script = _SCRIPT.format(number=number, place="signalled(); os._exit(7)")
    before = "signal.signal(signal.SIGINT, signal.default_int_handler)"
    script = script.replace(before, f"signal.signal(signal.{name}, signal.SIG_IGN)")
    assert _run(script).returncode == 7


def test_other_faults_in_finalizers_are_shown_as_ever() -> None:
    script = _SCRIPT.format(number=15, place="Dying(); os._exit(7)")
    result = _run(script.replace("signalled()\n", "raise ValueError('seen')\n"))
    assert result.returncode == 7 and "ValueError: seen" in result.stderr


_LAST_MOMENT = """
import os, signal, sys, time
from pathlib import Path
signal.signal(signal.SIGINT, signal.default_int_handler)
from muniment.cli import main as commands
{before}
sys.argv = ["muniment", *sys.argv[1:]]
commands.main()
"""
_STOP = f"os.kill(os.getpid(), {int(signal.SIGTERM)}); time.sleep(0.01)"
# Just before and just after the name is given.
_AROUND = """
rename = Path.rename
def renamed(self, target):
    if not Path(target).name.startswith({name!r}):
        return rename(self, target)
    {before}
    done = rename(self, target)
    {after}
    return done
Path.rename = renamed
"""
_SYNC = f"""
sync = os.fsync
def synced(number):
    sync(number)
    {_STOP}
os.fsync = synced
"""


def _at_the_end(folder: Path, before: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", _LAST_MOMENT.format(before=before), *arguments],
        capture_output=True, encoding="utf-8", timeout=50, cwd=folder,
    )  # fmt: skip


def _around(name: str, when: str) -> str:
    steps = {"before": "pass", "after": "pass", when: _STOP}
    return _AROUND.format(name=name, **steps)


_ENDS = {
    "archive": ("archive", "sqlite:///shop.db", "new.siard"),
    "in parts": ("archive", "sqlite:///big.db", "new.siard", "--split", "10KB"),
    "with folders": (
        "archive", "sqlite:///big.db", "new.siard", "--lobs", "external", "--lob-threshold", "9",
    ),
    "resuming": (
        "archive", "sqlite:///big.db", "new.siard", "--lobs", "external", "--lob-threshold", "9",
        "--resume",
    ),
    "restore to SQLite": ("restore", "old.siard", "sqlite:///new.db"),
    "restore to DuckDB": ("restore", "old.siard", "duckdb:///new.duckdb"),
    "convert": ("convert", "old.siard", "new.siard"),
}  # fmt: skip


@pytest.fixture
def ended(tmp_path: Path, shop: str) -> Path:
    """A folder with databases and an archive; what is made there is called new."""
    rows = "CREATE TABLE t (id INTEGER PRIMARY KEY, b BLOB);"
    rows += "".join(f"INSERT INTO t VALUES ({n}, randomblob(20000));" for n in range(3))
    database(tmp_path / "big.db", rows)
    made = _at_the_end(tmp_path, "", "archive", shop, "old.siard")
    assert made.returncode == 0, made.stderr
    return tmp_path


def _made(folder: Path) -> set[str]:
    known = {"shop.db", "big.db", "old.siard"}
    return {path.name for path in folder.iterdir()} - known


@pytest.mark.parametrize("end", _ENDS)
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_signal_while_the_result_gets_its_name_comes_too_late(
    ended: Path, end: str, when: str
) -> None:
    result = _at_the_end(ended, _around("new", when), *_ENDS[end])
    assert result.returncode == 0, result.stderr
    assert "row" in result.stdout and "stopped" not in result.stderr
    made = _made(ended)
    assert any(name.startswith("new.") for name in made)
    assert not any("partial" in name for name in made), made


_LEAVING = f"""
leave = sys.exit
def left(code):
    {_STOP}
    leave(code)
sys.exit = left
"""
# What Python takes down last; by then signals are the system's again.
_TAKEN_DOWN = """
class Last:
    def __del__(self, kill=os.kill, number=os.getpid(), wait=time.sleep):
        kill(number, {number})
        wait(0.2)
last = Last()
"""


@pytest.mark.parametrize("end", ["archive", "resuming", "restore to DuckDB"])
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_python_ends_comes_too_late(ended: Path, end: str, number: int) -> None:
    for moment in (_LEAVING, _TAKEN_DOWN.format(number=int(number))):
        result = _at_the_end(ended, moment, *_ENDS[end])
        assert result.returncode == 0, result.stderr
        assert "row" in result.stdout and "stopped" not in result.stderr
        for path in ended.iterdir():
            if path.name in _made(ended):
                shutil.rmtree(path) if path.is_dir() else path.unlink()


def test_a_signal_before_the_result_gets_its_name_leaves_nothing(ended: Path) -> None:
    for end, arguments in _ENDS.items():
        if end in ("with folders", "resuming", "restore to SQLite"):
            continue  # folders have their names by then, and SQLite syncs its files itself
        result = _at_the_end(ended, _SYNC, *arguments)
        assert (result.returncode, result.stdout) == (143, ""), (end, result.stderr)
        assert result.stderr.strip() == "muniment: stopped; nothing was left behind", end
        assert _made(ended) == set(), end


def test_folders_and_archive_appear_together(ended: Path) -> None:
    result = _at_the_end(ended, _SYNC, *_ENDS["with folders"])
    assert result.returncode == 0 and {"new.siard", "big_lobs"} <= _made(ended), result.stderr


def test_folders_go_if_the_archive_cannot_be_written(ended: Path) -> None:
    full = """
sync = os.fsync
def synced(number):
    raise OSError(28, "No space left on device")
os.fsync = synced
"""
    result = _at_the_end(ended, full, *_ENDS["with folders"])
    assert result.returncode == 3 and "the disk is full" in result.stderr
    assert _made(ended) == set()


def test_a_command_of_several_steps_is_stopped_after_any_of_them(ended: Path) -> None:
    result = _at_the_end(ended, _around("trees.siard", "after"), "demo", "tour")
    assert result.returncode == 143, result.stderr
    assert result.stderr.splitlines()[-1] == "muniment: stopped; nothing was left behind"
    assert _made(ended) == set()


def test_what_is_complete_is_named_when_more_was_to_come(ended: Path) -> None:
    place = (
        _around("new.txt", "after")
        + """
from muniment.files import new_file
@commands.cli.command()
def several():
    for name in ("new.txt", "other.txt"):
        with new_file(Path(name)) as stream:
            time.sleep(0.5)
"""
    )
    result = _at_the_end(ended, place, "several")
    assert result.returncode == 143, result.stderr
    assert result.stderr.strip() == "muniment: stopped; new.txt is complete"
    assert _made(ended) == {"new.txt"}


def test_a_second_signal_does_not_disturb_the_cleaning(ended: Path) -> None:
    place = f"""
unlink = Path.unlink
def unlinked(self, missing_ok=False):
    {_STOP}
    return unlink(self, missing_ok)
Path.unlink = unlinked
{_SYNC}
"""
    result = _at_the_end(ended, place, *_ENDS["archive"])
    assert (result.returncode, _made(ended)) == (143, set()), result.stderr
    assert result.stderr.strip() == "muniment: stopped; nothing was left behind"

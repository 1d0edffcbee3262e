"""A signal that comes at a bad moment still stops the command."""

from __future__ import annotations

import signal
import subprocess
import sys

import pytest

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

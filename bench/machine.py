"""What the numbers were measured on."""

from __future__ import annotations

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

import apsw

__all__ = ["describe_machine", "use_cores"]

_LIBRARIES = ("muniment", "apsw", "duckdb", "isal", "lxml", "pyarrow", "zlib-ng")


def use_cores(count: int) -> None:
    """Keep this process, and all that it starts, on so many cores."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, sorted(os.sched_getaffinity(0))[:count])


def describe_machine() -> dict[str, str]:
    """Return the facts by name, in the order to show them."""
    used = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return {
        "processor": _field("/proc/cpuinfo", "model name") or platform.processor() or "unknown",
        "cores": f"{os.cpu_count()}, of which {used} used",
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()}",
        "Python": f"{platform.python_implementation()} {platform.python_version()}",
        "libraries": ", ".join(f"{name} {version(name)}" for name in _LIBRARIES),
        "SQLite in apsw": apsw.sqlite_lib_version(),
        "yardsticks": f"sqlite3 {_version('sqlite3')}, gzip {_version('gzip')}",
    }


def _field(path: str, name: str) -> str | None:
    try:
        text = Path(path).read_text()
    except OSError:
        return None
    found = re.search(rf"^{re.escape(name)}\s*:\s*(.*)$", text, re.MULTILINE)
    return found[1] if found else None


def _memory() -> str:
    total = _field("/proc/meminfo", "MemTotal")
    return f"{int(total.split()[0]) * 1024 / 1e9:.1f} GB" if total else "unknown"


def _version(tool: str) -> str:
    """The version that a tool says it has."""
    command = [tool, "--version"]
    try:
        said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "missing"
    found = re.search(r"\d+(?:\.\d+)+", said)
    return found[0] if found else "unknown"

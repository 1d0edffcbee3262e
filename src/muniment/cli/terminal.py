"""What may appear on a terminal: text from archives and drivers, made harmless.

An archive may come from anywhere, and so may every name and value in it. Control characters could
move the cursor or rewrite the screen, bidirectional overrides could show one name as another, and
messages of drivers may repeat a password. Nothing of that reaches a terminal from here.
"""

from __future__ import annotations

import codecs
import io
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from typing import IO, Any, BinaryIO, TextIO, cast
from urllib.parse import unquote, urlsplit

__all__ = [
    "byte_output", "count", "cut", "hide_passwords", "paged", "quoted", "safe", "size",
]  # fmt: skip

_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f"  # C0 and C1 controls
    "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"  # bidirectional marks, overrides, isolates
    "\u2028\u2029\ufeff\U000e0000-\U000e007f"  # separators, the byte order mark, tags
    "\ud800-\udfff]"  # lone surrogates have no UTF-8
)
_SHORT = {"\t": r"\t", "\n": r"\n", "\r": r"\r"}
_TORN_PASSWORD = re.compile(r"://[^:/?#@\[\]]*:([^/?#@]*)([/?#].*)@")
_URL_PASSWORD = re.compile(r"(?P<start>\b[\w+.-]+://[^\s:/@]*:)[^\s/]*@")


def safe(text: str) -> str:
    r"""Return text with everything escaped that a terminal would obey instead of show.

    >>> safe("oak\x1b[2J\nelm")
    'oak\\x1b[2J\\nelm'
    """
    return _UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    character = match[0]
    if character in _SHORT:
        return _SHORT[character]
    code = ord(character)
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def byte_output() -> BinaryIO:
    """Return stdout for bytes: exact into a file or a pipe; to a terminal, text that is safe."""
    sys.stdout.flush()
    if sys.stdout.isatty():
        return cast(BinaryIO, _Shown(sys.stdout.buffer))
    return sys.stdout.buffer


class _Shown(io.RawIOBase):
    """Bytes as lines that a terminal shows; all of them, but none that it would obey."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._decoder = codecs.getincrementaldecoder("utf-8")("backslashreplace")

    def writable(self) -> bool:
        return True

    def write(self, data: Any) -> int:
        lines = self._decoder.decode(bytes(data)).split("\n")
        self._stream.write("\n".join(map(safe, lines)).encode())
        return len(data)

    def flush(self) -> None:
        self._stream.flush()


def quoted(word: str) -> str:
    r"""Return a word that can be pasted into a shell, and that no terminal obeys.

    >>> quoted("my trees.db"), quoted("a\nb"), quoted("trees.db")
    ("'my trees.db'", "$'a\\nb'", 'trees.db')
    """
    if not _UNSAFE.search(word):
        return shlex.quote(word)
    escaped = word.replace("\\", r"\\").replace("'", r"\'")
    return f"$'{_UNSAFE.sub(_shell_escape, escaped)}'"


def _shell_escape(match: re.Match[str]) -> str:
    code = ord(match[0])
    if 0xDC80 <= code <= 0xDCFF:  # a byte that is not UTF-8
        return f"\\x{code - 0xDC00:02x}"
    return f"\\U{code:08x}" if code > 0xFFFF else _escape(match)


def cut(text: str, length: int) -> str:
    """Return at most ``length`` characters, the last of them an ellipsis if there were more.

    >>> cut("Metasequoia", 5)
    'Meta…'
    """
    return text if len(text) <= length else text[: length - 1] + "…"


def size(count: float) -> str:
    """Return a number of bytes as people read it.

    >>> size(999), size(1_234_567), size(999_999)
    ('999 B', '1.2 MB', '1.0 MB')
    """
    for unit in ("B", "kB", "MB", "GB"):
        if round(count, 1) < 1000:
            return f"{count:.0f} {unit}" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1000
    return f"{count:.1f} TB"


class _Piped:
    """The pipe to a pager, which counts as the terminal that the pager writes to."""

    def __init__(self, stream: IO[str]) -> None:
        self._stream = stream

    def isatty(self) -> bool:
        return True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)


@contextmanager
def paged() -> Iterator[None]:
    """Show what the block prints page by page, if it goes to a terminal and is longer than that."""
    command = shlex.split(os.environ.get("PAGER", "less"))
    # A pager waits for keys: without a keyboard it would wait for ever.
    by_hand = sys.stdin is not None and sys.stdin.isatty() and sys.stdout.isatty()
    if not by_hand or not command or not shutil.which(command[0]):
        yield
        return
    environment = {**os.environ, "LESS": os.environ.get("LESS", "-FRX")}  # -F: short ones at once
    pager = subprocess.Popen(command, stdin=subprocess.PIPE, env=environment, encoding="utf-8",
                             errors="backslashreplace")  # fmt: skip
    assert pager.stdin is not None
    before, sys.stdout = sys.stdout, cast(TextIO, _Piped(pager.stdin))
    try:
        yield
    except BrokenPipeError:
        pass  # the reader has seen enough
    finally:
        sys.stdout = before
        with suppress(BrokenPipeError):
            pager.stdin.close()
        pager.wait()


def count(number: int, noun: str) -> str:
    """Return a number with its noun.

    >>> count(1, "table"), count(3, "row")
    ('1 table', '3 rows')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def hide_passwords(text: str, arguments: Iterable[str] | None = None) -> str:
    """Return text without the passwords of URLs, of the command line and of the environment.

    >>> hide_passwords("refused: mysql://root:tiger@db/shop")
    'refused: mysql://root:***@db/shop'
    """
    for secret in _secrets(sys.argv if arguments is None else arguments):
        text = text.replace(secret, "***")
    return _URL_PASSWORD.sub(r"\g<start>***@", text)


def _secrets(arguments: Iterable[str]) -> Iterator[str]:
    if password := os.environ.get("MUNIMENT_PASSWORD"):
        yield password
    for argument in arguments:
        # One that holds a / or the like is none by the rules, but somebody's all the same.
        if (torn := _TORN_PASSWORD.search(argument)) and not torn[1].isdigit():
            yield torn[1] + torn[2]
        try:
            password = urlsplit(argument).password if "://" in argument else None
        except ValueError:  # not a URL after all
            continue
        if password:
            yield password
            yield unquote(password)

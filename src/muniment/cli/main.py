"""The ``muniment`` command: finds the command, runs it, turns errors into sentences and exit codes.

Exit codes: 0 done and good, 1 the answer is no, 2 wrong usage, 3 the work failed; 130 and 143 when
it was stopped by Ctrl-C or SIGTERM, 129 when its terminal was closed, 141 when nobody read the
rest of the output. Commands import what is heavy when they run, so that help is quick.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import signal
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from difflib import get_close_matches
from importlib import import_module
from typing import Any, NoReturn

import click

from muniment import __version__, finished
from muniment.cli.options import examples
from muniment.cli.signals import (
    Terminated,
    expect_nothing,
    is_done,
    stoppable,
    stopped_by,
    within,
)
from muniment.cli.terminal import hide_passwords, safe
from muniment.errors import MunimentError, UsageError

__all__ = ["COMMANDS", "cli", "main"]

_WRONG_USAGE, _FAILED, _INTERRUPTED = 2, 3, 130
_UNREAD = 128 + signal.SIGPIPE  # as shells have it of every program in a pipe
_NAMED = 4  # of the things that a stopped command has made


# Each stands in the module of its name, which is loaded when the command is run.
COMMANDS = (
    "archive", "browse", "compare", "convert", "demo", "describe", "export", "pdi", "query",
    "registry", "restore", "serve", "show", "store", "token", "urn", "validate",
)  # fmt: skip


class _NobodyReads(Exception):
    """Who reads our output has seen enough of it, as ``head`` has."""

    def __init__(self, code: int) -> None:
        self.code = code


@contextmanager
def _while_somebody_reads() -> Iterator[None]:
    try:
        yield
    except BrokenPipeError as error:
        # Whose result is there is done. Of others nobody knows: 0 would mean that an archive is
        # valid, 1 that it is not, and nothing has failed.
        raise _NobodyReads(0 if is_done() else _UNREAD) from error


class _Group(click.Group):
    """A group of commands whose errors all end here, however it was started."""

    def list_commands(self, _ctx: click.Context) -> list[str]:
        return sorted(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in COMMANDS:
            return super().get_command(ctx, cmd_name)
        found: click.Command = getattr(import_module(f"muniment.cli.{cmd_name}"), cmd_name)
        return found

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        near = get_close_matches(args[0], COMMANDS, 1)
        if near and self.get_command(ctx, args[0]) is None:
            ctx.fail(f"No such command {args[0]!r}. Did you mean {near[0]!r}?")
        return super().resolve_command(ctx, args)

    def make_context(self, *args: Any, **extra: Any) -> click.Context:
        with _while_somebody_reads():  # a help text, say
            return super().make_context(*args, **extra)

    def invoke(self, ctx: click.Context) -> Any:
        with _while_somebody_reads():
            result = super().invoke(ctx)
            sys.stdout.flush()  # Python would do it later, where nobody can answer for it
            return result

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        run: Callable[..., Any] = super().main
        if standalone_mode:
            finished.forget()
            expect_nothing()
        try:
            with nullcontext() if standalone_mode else within(self):
                code = int(run(*args, standalone_mode=False, **extra) or 0)
        except _NobodyReads as left:
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)  # for what Python has still to write
            code = left.code
        except (Exception, Terminated) as error:
            if not standalone_mode and (stop := stopped_by()):
                raise stop from error  # the command that this is part of is to stop, too
            code = _explain(error)
            if standalone_mode and stopped_by():
                # Threads may still be in code that does not survive the end of Python.
                _leave(code)
        if standalone_mode:
            sys.exit(code)
        return code


@click.group(
    cls=_Group,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    epilog=examples(
        "muniment demo", "muniment archive sqlite:///muniment-demo/trees.db trees.siard"
    ),
    invoke_without_command=True,
)
@click.version_option(__version__, prog_name="muniment", message="%(prog)s %(version)s")
@click.pass_context
def cli(ctx: click.Context) -> None:
    """Archive databases so that they can still be read in a hundred years.

    Databases are named by URL: sqlite:///shop.db, duckdb:///shop.duckdb. Archives are SIARD files:
    shop.siard.
    """
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        ctx.exit(_WRONG_USAGE)


def main() -> None:
    """Run the command line of this process."""
    _open_closed_streams()
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A character that the terminal's encoding lacks is shown escaped; it stops nothing.
            stream.reconfigure(errors="backslashreplace")
    gc.set_threshold(20_000, 20)  # what long runs make dies young, and in no circle
    # Nothing here multiplies matrices, and the threads for that wait busily in every process.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    try:
        with stoppable():
            cli(prog_name="muniment")
    except (KeyboardInterrupt, Terminated) as stop:  # while something else was being explained
        _leave(128 + stop.number if isinstance(stop, Terminated) else _INTERRUPTED)


def _open_closed_streams() -> None:
    """Have what nobody wants to read go nowhere.

    A file would else get the number of a stream that was closed (``>&-``), and messages with it.
    """
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # gets the lowest number that is free
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(number, "r" if name == "stdin" else "w", closefd=False))


def _leave(code: int) -> NoReturn:
    """End the process at once; what it wrote is written."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code)


def _explain(error: BaseException) -> int:
    """Write on stderr what went wrong, as one sentence; return the exit code."""
    if os.environ.get("MUNIMENT_DEBUG") == "1" and not isinstance(error, click.UsageError):
        click.echo(hide_passwords("".join(traceback.format_exception(error))), err=True)
    stop = stopped_by()
    if stop is not None and not isinstance(error, click.Abort | Terminated):
        for note in getattr(error, "__notes__", ()):
            stop.add_note(note)
        return _say(
            _stopped(stop), 128 + stop.number if isinstance(stop, Terminated) else _INTERRUPTED
        )
    match error:
        case click.Abort() if isinstance(error.__cause__, EOFError):
            # click takes it for the end of a prompt; here it is a compressed stream cut short.
            return _say(f"a file ended too early ({error.__cause__})", _FAILED)
        case click.Abort():
            return _say(_stopped(error.__cause__ or error), _INTERRUPTED)
        case Terminated():
            return _say(_stopped(error), 128 + error.number)
        case click.UsageError():
            return _say(_usage_sentence(error), _WRONG_USAGE)
        case click.ClickException():
            return _say(error.format_message(), _FAILED)
        case UsageError():
            return _say(_with_advice(str(error), error), _WRONG_USAGE)
        case MunimentError():
            return _say(_with_advice(str(error), error), _FAILED)
        case OSError():
            return _say(_with_advice(_system_sentence(error), error), _FAILED)
        case MemoryError():
            return _say("there is not enough memory; try fewer --jobs", _FAILED)
    fault = f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
    return _say(
        f"stopped by a fault of its own ({fault}). "
        "Please report it with what MUNIMENT_DEBUG=1 shows.",
        _FAILED,
    )


def _with_advice(sentence: str, error: BaseException) -> str:
    """Add what was noted on the way up: what is left, and how to go on."""
    return "\n".join([sentence, *getattr(error, "__notes__", ())])


def _stopped(error: BaseException) -> str:
    advice, made = _with_advice("", error), finished.things()
    if made:
        more = f" and {len(made) - _NAMED} more" if len(made) > _NAMED else ""
        verb = "is" if len(made) == 1 else "are"
        return f"stopped; {', '.join(made[:_NAMED])}{more} {verb} complete{advice}"
    return f"stopped{advice}" if advice else "stopped; nothing was left behind"


def _say(sentence: str, code: int) -> int:
    # Further lines are indented: no name in a message can pass for a message of its own.
    lines = (safe(line) for line in hide_passwords(sentence).split("\n"))
    with suppress(OSError):  # where nobody can be told, the code says it
        click.echo("muniment: " + "\n  ".join(lines), err=True)
    return code


def _usage_sentence(error: click.UsageError) -> str:
    message = error.format_message()
    if error.ctx is None:
        return message
    return f"{message}\nTry: {error.ctx.command_path} --help"


def _system_sentence(error: OSError) -> str:
    name = os.fsdecode(error.filename) if isinstance(error.filename, (str, bytes)) else None
    place = f"{name}: " if name else ""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        if getattr(error, "__notes__", ()):
            return f"{place}the disk is full; free some space"
        return f"{place}the disk is full. Nothing was left behind; free some space and start again"
    if error.errno == errno.ENAMETOOLONG:
        return f"{place}the name is too long; choose a shorter one"
    match error:
        case FileNotFoundError():
            return f"{place}there is no such file or folder"
        case FileExistsError():
            return f"{place}exists already and was left as it is"
        case PermissionError():
            return f"{place}permission denied"
    return f"{place}{error.strerror or error}"


if __name__ == "__main__":
    main()

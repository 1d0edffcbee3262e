"""Every error Muniment raises on purpose.

MunimentError
├── UsageError             the request itself is wrong (exit code 2)
│   └── UnknownType        a column that can only be archived as text
├── FormatError            a file breaks its format
│   ├── SiardError
│   │   └── LobError       a large object is not what its cell says
│   │       └── LobMissing
│   ├── TapeError          an XMLtape, with the byte where it breaks
│   └── ArcError           an ARC or WARC file, with the byte where it breaks
├── Unfit                  a value has no place in the type of its column
├── DigestMismatch         bytes are not those that were written
├── DatabaseError          a live database refused
│   ├── MissingDriver      names the extra to install
│   └── TableGone          somebody dropped or renamed it meanwhile
├── DamagedSource          a table does not hold the rows that it should
├── WorkerDied             a worker process ended before its work did
├── StoreError             a store refuses: what it keeps would be lost or contradicted
├── IdentifierError        a name breaks its syntax, or the rules of its namespace
├── NameRefused            a name may not be given, bound or changed as was asked
├── FragmentError          a part of a document cannot be had
├── QueryError             a query cannot be answered
│   └── QueryTimeout       it took longer than it may
└── NotFound

Each reads as a sentence that says what is wrong and what to do. Errors become exit codes only in
``cli/main.py``; ``OSError`` passes through untranslated until then.
"""

from __future__ import annotations

import shlex


class MunimentError(Exception):
    """The base of all errors that a user can act on."""


class UsageError(MunimentError):
    """The request contradicts itself or names something that does not exist."""


class UnknownType(UsageError):
    """A column has a type that can only be archived as text, and nobody asked for that."""

    def __init__(self, where: str, type_: str) -> None:
        self.where, self.type = where, type_
        super().__init__(
            f"{self.fact}, which cannot be archived as itself; add: --as-text '{where}'"
        )

    @property
    def fact(self) -> str:
        """What is wrong, without what can be done about it."""
        return f"{self.where} is {self.type}"

    def __reduce__(self) -> tuple[type[UnknownType], tuple[str, str]]:
        return UnknownType, (self.where, self.type)


class FormatError(MunimentError):
    """A file breaks its format."""


class SiardError(FormatError):
    """A file is not a readable SIARD archive."""


class _AtByte(FormatError):
    """A file breaks its format at a known byte."""

    def __init__(self, path: str, offset: int | None, problem: str) -> None:
        self.path, self.offset, self.problem = path, offset, problem
        place = path if offset is None else f"{path}, byte {offset}"
        super().__init__(f"{place}: {problem}")

    def __reduce__(self) -> tuple[type[_AtByte], tuple[str, int | None, str]]:
        return type(self), (self.path, self.offset, self.problem)


class TapeError(_AtByte):
    """A file is not a readable XMLtape."""


class ArcError(_AtByte):
    """A file is not a readable ARC or WARC file."""


class LobError(SiardError):
    """A large object is not where, or not what, its cell says.

    ``where`` names the cell as far as it is known, ``rule`` the requirement that is broken.
    """

    def __init__(self, file: str, problem: str, rule: str, where: str = "") -> None:
        self.file, self.problem, self.rule, self.where = file, problem, rule, where
        place = f"{where}: " if where else ""
        super().__init__(f"{place}the large object {file!r}: {problem}")

    def at(self, where: str) -> LobError:
        """Return the same error with the name of the cell."""
        return type(self)(self.file, self.problem, self.rule, self.where or where)

    def __reduce__(self) -> tuple[type[LobError], tuple[str, str, str, str]]:
        return type(self), (self.file, self.problem, self.rule, self.where)


class LobMissing(LobError):
    """A large object is not there at all."""


class Unfit(MunimentError):
    """A value has no place in the type of its column, and nobody asked for text instead."""

    def __init__(
        self, where: str, row: int | None, value: str, wanted: str, others: tuple[str, ...] = ()
    ) -> None:
        self.where, self.row, self.value, self.wanted, self.others = (
            where,
            row,
            value,
            wanted,
            others,
        )
        columns = sorted({where, *others})
        options = " ".join(f"--as-text {shlex.quote(column)}" for column in columns)
        more = {1: "", 2: " 1 more column holds such values."}.get(
            len(columns), f" {len(columns) - 1} more columns hold such values."
        )
        super().__init__(
            f"{self.fact}.{more} Nothing was archived. "
            f"To archive such columns as text, add: {options}"
        )

    @property
    def fact(self) -> str:
        """What is wrong, without what can be done about it: only archiving knows --as-text."""
        place = self.where if self.row is None else f"{self.where}, row {self.row}"
        return f"{place}: {self.value} is not {self.wanted}"

    def __reduce__(self) -> tuple[type[Unfit], tuple[object, ...]]:
        return Unfit, (self.where, self.row, self.value, self.wanted, self.others)


class DigestMismatch(MunimentError):
    """Bytes are not those that were written."""

    def __init__(self, path: str, algorithm: str, expected: str, found: str) -> None:
        self.path, self.algorithm, self.expected, self.found = path, algorithm, expected, found
        super().__init__(
            f"{path} was changed: its {algorithm} digest should be {expected} and is {found}"
        )

    def __reduce__(self) -> tuple[type[DigestMismatch], tuple[str, str, str, str]]:
        return DigestMismatch, (self.path, self.algorithm, self.expected, self.found)


class DatabaseError(MunimentError):
    """A live database refused."""


class MissingDriver(DatabaseError):
    """The driver for a database product is not installed."""

    def __init__(self, product: str, extra: str) -> None:
        self.product, self.extra = product, extra
        super().__init__(
            f"{product} needs a driver that is not installed: pip install 'muniment[{extra}]'"
        )

    def __reduce__(self) -> tuple[type[MissingDriver], tuple[str, str]]:
        return MissingDriver, (self.product, self.extra)


class TableGone(DatabaseError):
    """Somebody dropped or renamed a table between the moment it was seen and that of its lock."""

    def __init__(self, where: str) -> None:
        self.where = where
        super().__init__(f"{where} was dropped or renamed meanwhile; run the command again")

    def __reduce__(self) -> tuple[type[TableGone], tuple[str]]:
        return TableGone, (self.where,)


class DamagedSource(MunimentError):
    """A table does not hold the rows that it should."""

    def __init__(self, where: str, read: int, counted: int) -> None:
        self.where, self.read, self.counted = where, read, counted
        super().__init__(
            f"{where} should have {counted} rows, and {read} could be read: it is damaged. "
            "Nothing was written; repair or replace it first"
        )


class WorkerDied(MunimentError):
    """A worker process ended before its work did."""


class StoreError(MunimentError):
    """A store refuses: what it keeps would be lost, contradicted or half-written."""


class IdentifierError(MunimentError):
    """A name breaks its syntax, or the rules of its namespace; ``code`` never changes."""

    def __init__(self, code: str, message: str, position: int = 0) -> None:
        self.code, self.message, self.position = code, message, position
        super().__init__(f"{message} ({code})")

    def __reduce__(self) -> tuple[type[IdentifierError], tuple[str, str, int]]:
        return type(self), (self.code, self.message, self.position)


class NameRefused(MunimentError):
    """A name may not be given, bound or changed as was asked; ``status`` is its HTTP code."""

    def __init__(self, message: str, status: int = 409, retry_after: int | None = None) -> None:
        self.status, self.retry_after = status, retry_after
        super().__init__(message)


class FragmentError(MunimentError):
    """A part of a document cannot be had: it is not there (404), or not for this format (501)."""

    def __init__(self, message: str, status: int = 404, code: str = "E_FRAG_OUT_OF_RANGE") -> None:
        self.status, self.code = status, code
        super().__init__(message)


class QueryError(MunimentError):
    """A query cannot be answered."""


class QueryTimeout(QueryError):
    """A query took longer than it may."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        super().__init__(
            f"the query was stopped after {seconds:g} seconds; ask for less, or allow more time"
        )

    def __reduce__(self) -> tuple[type[QueryTimeout], tuple[float]]:
        return QueryTimeout, (self.seconds,)


class NotFound(MunimentError):
    """What was asked for is not there."""

"""Batches to compressed row XML in worker processes; rows with large objects have to wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from muniment.siard.deflating import Block, Deflater
from muniment.siard.lobs.placement import INLINE, Rule
from muniment.siard.rows import RowWriter
from muniment.sql.batch import OPEN, REF, Batch, cells_of, parts_of
from muniment.sql.lengths import may_exceed
from muniment.sql.model import Array, Column, Leaf, Shape, Struct
from muniment.sql.types import Kind

__all__ = ["EncodedPart", "LazyPart", "SiardEncoder"]

_BLOCK = 1 << 20
_ROW_END = b"</row>\n"


@dataclass(frozen=True, slots=True)
class EncodedPart:
    """A part on its way into the archive: compressed rows, or rows whose large objects wait.

    ``inlined`` and ``long`` are the columns with values that stayed inline, and with values that
    are too long for that.
    """

    items: tuple[Block | Batch, ...]
    rows: int
    inlined: frozenset[int] = frozenset()
    long: frozenset[int] = frozenset()


@dataclass(frozen=True)
class SiardEncoder:
    """Turns batches into compressed row XML; runs in worker processes."""

    where: str
    columns: tuple[Column, ...]
    shapes: tuple[Shape, ...]
    compression: str
    rules: tuple[Rule | None, ...]
    stored: frozenset[int]  # columns whose values all lie in files

    @property
    def local(self) -> bool:
        """Whether the work is best done by the process that writes the archive."""
        return bool(self.stored)

    def __call__(self, batches: Iterable[Batch]) -> EncodedPart | LazyPart:
        """Return the part; row numbers in errors count from its first row."""
        part = LazyPart(self, batches)
        if self.stored:
            return part  # each batch brings large objects: they are not all held at once
        items = tuple(part.items)
        return EncodedPart(items, part.rows, frozenset(part.inlined), frozenset(part.long))


class LazyPart:
    """A part that is encoded while it is written; what is known about it grows."""

    def __init__(self, encoder: SiardEncoder, batches: Iterable[Batch]) -> None:
        undecided = [
            k
            for k, rule in enumerate(encoder.rules)
            if rule and rule.place != INLINE and not rule.mixed and k not in encoder.stored
        ]
        self._compression, self._batches = encoder.compression, batches
        self._write = RowWriter(encoder.where, encoder.columns, encoder.shapes, undecided)
        self._waiting = _Waiting(encoder, undecided)
        self.rows = 0

    @property
    def inlined(self) -> set[int]:
        return self._write.inlined | self._waiting.inlined

    @property
    def long(self) -> set[int]:
        return self._waiting.long

    @property
    def items(self) -> Iterator[Block | Batch]:
        """Yield compressed rows, and batches that wait for their large objects."""
        deflater = Deflater(self._compression)
        for batch in self._batches:
            if self._waiting.must(batch):
                # The objects go into the archive in the one process that writes it.
                if deflater.size:
                    yield deflater.block()
                    deflater = Deflater(self._compression)
                self.rows += batch.rows
                yield batch
                continue
            xml, rows = self._write(batch, self.rows + 1), batch.rows
            self.rows += batch.rows
            # A block ends with the first row that fills it, wherever the batches end.
            while (cut := xml.find(_ROW_END, max(0, _BLOCK - deflater.size))) >= 0:
                first = xml[: cut + len(_ROW_END)]
                inside = first.count(_ROW_END)
                deflater.add(first, inside)
                yield deflater.block()
                deflater = Deflater(self._compression)
                xml, rows = xml[len(first) :], rows - inside
            if xml:
                deflater.add(xml, rows)
        if deflater.size:
            yield deflater.block()


class _Waiting:
    """Finds the batches whose values do not all stay inline."""

    def __init__(self, encoder: SiardEncoder, undecided: list[int]) -> None:
        self._encoder = encoder
        self._undecided = undecided
        self._limit = min(
            (rule.threshold for rule in encoder.rules if rule and rule.place != INLINE),
            default=1 << 62,
        )
        self.inlined: set[int] = set()
        self.long: set[int] = set()

    def must(self, batch: Batch) -> bool:
        """Whether a batch has to wait; notes which columns are the reason."""
        if not (self._encoder.stored or REF in batch.data or may_exceed(batch, self._limit)):
            return False
        waits = bool(self._encoder.stored) or REF in batch.data
        width, cells = len(self._encoder.shapes), None
        for k, rule in enumerate(self._encoder.rules):
            if rule is None or rule.place == INLINE:
                continue
            if cells is None:
                cells = cells_of(batch)
            shape = self._encoder.shapes[k]
            long = [cell for cell in cells[k::width] if _is_long(cell, shape, rule)]
            waits = waits or bool(long)
            if k in self._undecided:
                self._note(k, cells[k::width], long)
        return waits

    def _note(self, k: int, column: list[bytes], long: list[bytes]) -> None:
        if long:
            self.long.add(k)
        if len(long) < len(column) and k not in self.inlined:
            short = sum(1 for cell in column if cell not in (b"\xfe", b""))
            if short > len(long):
                self.inlined.add(k)


def _is_long(cell: bytes, shape: Shape, rule: Rule) -> bool:
    if cell.startswith(REF):
        return True
    if len(cell) <= rule.threshold:
        return False
    if isinstance(shape, Leaf):
        return rule.is_long(cell, shape.type.kind is Kind.TEXT)
    if not cell.startswith(OPEN):
        return False
    inner = shape.parts if isinstance(shape, Struct) else None
    return any(
        _is_long(part, inner[n] if inner else _element(shape), rule)
        for n, part in enumerate(parts_of(cell))
    )


def _element(shape: Shape) -> Shape:
    assert isinstance(shape, Array)
    return shape.element

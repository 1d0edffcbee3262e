"""Large objects on their way into the index: texts are taken in, binary ones only described.

Texts up to a mebibyte are kept whole, so that they can be searched; of a longer one the start is
kept, with a last line that says so and how to have all of it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, BinaryIO

import pyarrow as pa

from muniment.databases.duckdb.pieces import CHUNK_BYTES, nested_type, nested_value
from muniment.errors import MunimentError
from muniment.query.encode import as_text, has_references, is_large
from muniment.query.media import HEAD_BYTES, recognise
from muniment.siard.lobs.location import stated
from muniment.sql.batch import OPEN, REF, cell_value, parts_of
from muniment.sql.model import Array, Leaf, Shape, Struct
from muniment.sql.types import Kind

__all__ = ["MISSING", "TEXT_LIMIT", "Objects"]

TEXT_LIMIT = 1 << 20  # bytes of a text that the index keeps
MISSING = "missing"  # the type of an object that cannot be read
_LONGEST_NOTE = 1000  # characters
_STEP = 64  # rows at once: so many texts fit into memory whatever their size
_BYTES, _TEXT = pa.large_binary(), pa.large_string()


class Objects:
    """Opens the objects that the cells of one table name."""

    def __init__(
        self,
        shapes: Sequence[Shape],
        open_lob: Callable[[bytes], BinaryIO],
        note: Callable[[str], None],
    ) -> None:
        self._shapes, self._open, self._note = shapes, open_lob, note

    def resolved(self, chunk: pa.Table) -> Iterator[pa.Table]:
        """Yield a chunk ready to be inserted, cut where its texts have filled the memory."""
        waiting = [n for n, field in enumerate(chunk.schema, 1) if field.type == _BYTES]
        if not waiting:
            yield chunk
            return
        if not any(has_references(chunk[f"c{n}"]) for n in waiting):
            yield self._ready(chunk, waiting)
            return
        for start in range(0, chunk.num_rows, _STEP):
            yield self._ready(chunk.slice(start, _STEP), waiting)

    def _ready(self, chunk: pa.Table, waiting: list[int]) -> pa.Table:
        for number in waiting:
            shape, cells = self._shapes[number - 1], chunk[f"c{number}"].combine_chunks()
            if isinstance(shape, Leaf) and not is_large(shape):
                values = [
                    None if c is None else self._read_parts(c, shape) for c in cells.to_pylist()
                ]
                new = {f"c{number}": pa.array(values, _TEXT)}
            elif not is_large(shape):
                values = [None if c is None else self._nested(c, shape) for c in cells.to_pylist()]
                new = {f"c{number}": pa.array(values, nested_type(shape))}
            elif isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT:
                new = self._texts(number, cells)
            else:
                new = self._binaries(number, cells)
            at = chunk.schema.get_field_index(f"c{number}")
            chunk = chunk.remove_column(at)
            for name, array in reversed(new.items()):
                chunk = chunk.add_column(at, name, array)
        return chunk

    def _texts(self, number: int, cells: pa.Array) -> dict[str, pa.Array]:
        if not has_references(cells):
            return {
                f"c{number}": as_text(cells),
                f"c{number}_ref": pa.nulls(len(cells), _BYTES),
            }
        texts, references = [], []
        for cell in cells.to_pylist():
            is_reference = cell is not None and cell.startswith(REF)
            references.append(cell[1:] if is_reference else None)
            texts.append(self._text(cell[1:]).encode() if is_reference else cell)
        return {
            f"c{number}": as_text(pa.array(texts, _BYTES)),
            f"c{number}_ref": pa.array(references, _BYTES),
        }

    def _text(self, reference: bytes) -> str:
        try:
            with self._open(reference) as stream:
                data = stream.read(TEXT_LIMIT + 1)
        except (MunimentError, OSError) as error:
            self._note(str(error)[:_LONGEST_NOTE])
            return f"[cannot be read: {str(error)[:300]}]"
        if len(data) <= TEXT_LIMIT:
            return data.decode("utf-8", "replace")
        start = data[:TEXT_LIMIT].decode("utf-8", "ignore")
        return f"{start}\n… [cut here; the whole text is longer than {TEXT_LIMIT} bytes]"

    def _binaries(self, number: int, cells: pa.Array) -> dict[str, pa.Array]:
        inline: list[bytes | None] = []
        references: list[bytes | None] = []
        sizes: list[int | None] = []
        kinds: list[str | None] = []
        for cell in cells.to_pylist():
            is_reference = cell is not None and cell.startswith(REF)
            references.append(cell[1:] if is_reference else None)
            data = None if cell is None or is_reference else _octets(cell)
            inline.append(data)
            size, kind = self._look(cell[1:]) if is_reference else _judged(data)
            sizes.append(size)
            kinds.append(kind)
        return {
            f"c{number}": pa.array(inline, _BYTES),
            f"c{number}_ref": pa.array(references, _BYTES),
            f"c{number}_size": pa.array(sizes, pa.int64()),
            f"c{number}_type": pa.array(kinds, pa.string()),
        }

    def _look(self, reference: bytes) -> tuple[int | None, str | None]:
        """The size that the archive states, and the type that the first bytes show."""
        _, size = stated(reference)
        try:
            with self._open(reference) as stream:
                return size, recognise(stream.read(HEAD_BYTES))
        except (MunimentError, OSError) as error:
            self._note(str(error)[:_LONGEST_NOTE])
            return size, MISSING

    def _nested(self, cell: bytes, shape: Shape) -> Any:
        """A complex value with the objects inside it read: they are few and mostly small."""
        return nested_value(self._read_parts(cell, shape), shape)

    def _read_parts(self, cell: bytes, shape: Shape) -> Any:
        if cell.startswith(OPEN):
            parts = list(parts_of(cell))
            match shape:
                case Array(element):
                    return [self._read_parts(part, element) for part in parts]
                case Struct(shapes):
                    return list(map(self._read_parts, parts, shapes))
        if cell.startswith(REF):
            if isinstance(shape, Leaf) and shape.type.kind is not Kind.TEXT:
                return self._hex(cell[1:])
            return self._text(cell[1:])
        value = cell_value(cell)
        if isinstance(value, str):
            return value.encode("utf-8", "backslashreplace").decode()
        return value

    def _hex(self, reference: bytes) -> str | None:
        try:
            with self._open(reference) as stream:
                data = stream.read(CHUNK_BYTES + 1)
        except (MunimentError, OSError) as error:
            self._note(str(error)[:_LONGEST_NOTE])
            return None
        if len(data) > CHUNK_BYTES:
            self._note("a binary value inside a complex one is longer than the index keeps")
            return None
        return data.hex()


def _judged(data: bytes | None) -> tuple[int | None, str | None]:
    return (None, None) if data is None else (len(data), recognise(data[:HEAD_BYTES]))


def _octets(cell: bytes) -> bytes:
    try:
        return bytes.fromhex(cell.decode("ascii"))
    except ValueError:  # a DATALINK holds a URL
        return cell

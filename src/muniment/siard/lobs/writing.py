"""The large objects of one table on their way into an archive.

A batch is *prepared* first: values that go into files become references, references that go inline
become values. Then the row writer asks for the attributes of each reference, and the object behind
it is stored.
"""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from typing import Any, BinaryIO

from muniment.errors import LobMissing, Unfit, UsageError
from muniment.siard.lobs.layout import Cell
from muniment.siard.lobs.location import ALGORITHMS, uri_path
from muniment.siard.lobs.placement import EXTERNAL, INLINE, Rule
from muniment.siard.lobs.recognising import HEAD, recognise
from muniment.siard.lobs.storing import Content, ExternalStore, InternalStore
from muniment.siard.older import prefixed_digest
from muniment.sql.batch import CELL, CLOSE, ITEM, NULL, OPEN, REF, ROW, Batch, cells_of, parts_of
from muniment.sql.model import Array, Column, Field, Leaf, Schema, Shape, Struct, Table
from muniment.sql.stores import OpenLob
from muniment.sql.types import Kind

__all__ = ["LobWriter"]

_CHUNK = 1 << 20
_HERE = b"\x02"  # starts a reference to a value that is in the batch itself
_GIVE_UP = 1000  # unknown objects in a row: looking at each costs as much as storing it
_ALWAYS_INLINE = Rule(INLINE, 0, mixed=False)
_LARGEST_INLINE = 1 << 27  # bytes; a longer row would not be read by anybody


class LobWriter:
    """Puts the large objects of one table where their columns' rules say."""

    def __init__(
        self,
        schema: Schema,
        table: Table,
        shapes: Sequence[Shape],
        rules: Sequence[Rule | None],
        internal: InternalStore,
        external: ExternalStore | None,
        digest_type: str,
        open_lob: OpenLob,
        *,
        prefixed: bool = False,
    ) -> None:
        """With ``prefixed``, digests and links are written as SIARD 2.0 has them."""
        self._prefixed = prefixed
        self._schema, self._table, self._shapes = schema, table, tuple(shapes)
        self._rules, self._internal, self._external = tuple(rules), internal, external
        self._digest_type, self._open_lob = digest_type, open_lob
        self._mimes: dict[int, str | None] = {}
        self._unknown: dict[int, int] = {}  # objects in a row that nobody knows the kind of
        self._outside: dict[int, set[tuple[int, ...]]] = {}
        self.notes: list[str] = []

    def prepare(self, batch: Batch, stored: frozenset[int]) -> Batch:
        """Return the batch with a reference for each value that goes into a file, and no other."""
        cells = cells_of(batch)
        width = len(self._shapes)
        for k, (rule, shape) in enumerate(zip(self._rules, self._shapes, strict=True)):
            column = cells[k::width]
            if rule is None and not any(REF in cell for cell in column):
                continue
            rule = rule or _ALWAYS_INLINE  # other writers put short types into files as well
            whole = rule.stored or k in stored
            cells[k::width] = [self._settle(cell, shape, rule, whole) for cell in column]
        rows = zip(*[iter(cells)] * width, strict=True)
        return Batch(b"".join([CELL.join(row) + ROW for row in rows]), batch.rows)

    def placing(self, rows_before: int) -> Callable[[int, tuple[int, ...], bytes], bytes]:
        """Return what stores the object of a cell and gives the attributes that name it."""

        def place(position: int, parts: tuple[int, ...], reference: bytes) -> bytes:
            row, column = divmod(position, len(self._shapes))
            path = (column + 1, *parts)
            return self._store(
                Cell(self._schema, self._table, path, rows_before + row + 1), reference
            )

        return place

    def facts(self) -> dict[str, Any]:
        """What is known about the table's objects, for a run that goes on with this one."""
        outside = [[k, sorted(map(list, paths))] for k, paths in self._outside.items()]
        return {"mimes": list(self._mimes.items()), "outside": outside}

    def recall(self, facts: Mapping[str, Any]) -> None:
        """Take over what an earlier run knew."""
        self._mimes = dict(facts.get("mimes", ()))
        self._outside = {k: {tuple(p) for p in paths} for k, paths in facts.get("outside", ())}

    def described(self, table: Table) -> Table:
        """Return the table with the folders and the MIME types of its columns."""
        columns = (self._described(k, column) for k, column in enumerate(table.columns))
        return replace(table, columns=tuple(columns))

    def _settle(self, cell: bytes, shape: Shape, rule: Rule, whole: bool) -> bytes:
        """Return a cell as its rule wants it: a value, or a reference."""
        if cell in (NULL, b""):
            return cell
        if not isinstance(shape, Leaf):
            parts = enumerate(parts_of(cell))
            settled = (self._settle(p, _inner(shape, n), rule, whole) + ITEM for n, p in parts)
            return OPEN + b"".join(settled) + CLOSE
        text = shape.type.kind is Kind.TEXT
        if rule.place == INLINE:
            return self._value(cell, text) if cell.startswith(REF) else cell
        if cell.startswith(REF):
            if whole or not rule.mixed:
                return cell
            return self._short(cell, text, rule)
        storable = text or shape.type.kind in (Kind.BINARY, Kind.DATALINK)
        if storable and (whole or rule.is_long(cell, text)):
            return REF + _HERE + cell
        return cell

    def _value(self, cell: bytes, text: bool) -> bytes:
        with self._open(cell[1:]) as stream:
            content = stream.read(_LARGEST_INLINE + 1)
        if len(content) > _LARGEST_INLINE:
            raise UsageError(
                f"{self._schema.name}.{self._table.name} holds an object of more than "
                f"{_LARGEST_INLINE >> 20} MiB, which cannot lie inline; choose internal or external"
            )
        return content if text else content.hex().upper().encode()

    def _short(self, cell: bytes, text: bool, rule: Rule) -> bytes:
        """A reference, or the value itself if it is no longer than the threshold."""
        with self._open(cell[1:]) as stream:
            start = stream.read(4 * rule.threshold + 1)
            if stream.read(1):
                return cell
        value = start if text else start.hex().upper().encode()
        return cell if rule.is_long(value, text) else value

    def _open(self, reference: bytes) -> BinaryIO:
        return self._open_lob(self._schema, self._table, reference)

    def _store(self, cell: Cell, reference: bytes) -> bytes:
        leaf = self._leaf(cell.path)
        text = leaf.type.kind is Kind.TEXT
        if reference.startswith(_HERE):
            value = reference[1:] if text else bytes.fromhex(reference[1:].decode())
            return self._put(cell, leaf, (value,) if value else (), len(value), "")
        try:
            stream = self._open(reference)
        except LobMissing as missing:
            if leaf.type.kind is Kind.DATALINK and missing.rule == "missing-file":
                return _link(missing.file)
            raise
        with stream:
            size = getattr(stream, "size", None)
            link = getattr(stream, "link", "")
            first = stream.read(_CHUNK)
            if len(first) < _CHUNK and not (second := stream.read(1)):
                return self._put(cell, leaf, (first,) if first else (), len(first), link)
            start = (first,) if len(first) == _CHUNK else (first, second)
            return self._put(cell, leaf, chain(start, _read(stream)), size, link)

    def _put(
        self,
        cell: Cell,
        leaf: Leaf,
        chunks: Iterator[bytes] | tuple[bytes, ...],
        size: int | None,
        link: str,
    ) -> bytes:
        measure = _Measure(leaf.type.kind is Kind.TEXT, self._digest_type)
        if isinstance(chunks, tuple):
            head = chunks[0][:HEAD] if chunks else b""
        else:
            first = next(chunks, b"")
            head, chunks = first[:HEAD], chain((first,), chunks)
        extension = self._extension(cell, leaf, head)
        rule = self._rules[cell.path[0] - 1]
        outside = rule is not None and rule.place == EXTERNAL and self._external is not None
        store = self._external if outside and self._external else self._internal
        try:
            if isinstance(chunks, tuple):
                for chunk in chunks:
                    measure.update(chunk)
                file = store.put(cell, Content(chunks, size, extension, measure.hexdigest))
            else:
                watched = measure.watching(chunks)
                file = store.put(cell, Content(watched, size, extension, measure.hexdigest))
            measure.finish()
        except UnicodeDecodeError as error:
            column = self._table.columns[cell.path[0] - 1].name
            where = f"{self._schema.name}.{self._table.name}.{column}"
            value = f"a text of bytes like {error.object[error.start : error.end]!r}"
            raise Unfit(where, cell.row, value, "text in Unicode") from error
        if outside:
            self._outside.setdefault(cell.path[0] - 1, set()).add(cell.path[1:])
        start = f' file="{uri_path(file)}" length="{measure.length}" '
        if self._prefixed:
            digest = prefixed_digest(self._digest_type, measure.hexdigest())
            return f'{start}messageDigest="{digest}"'.encode()
        digest = f'digestType="{self._digest_type}" digest="{measure.hexdigest()}"'
        return f"{start}{digest}".encode() + (_link(link) if link else b"")

    def _extension(self, cell: Cell, leaf: Leaf, head: bytes) -> str:
        if leaf.type.kind is Kind.TEXT:
            return "xml" if leaf.type.name == "XML" else "txt"
        column = cell.path[0] - 1
        if self._unknown.get(column, 0) >= _GIVE_UP:
            return "bin"
        mime, extension = recognise(head) or (None, "bin")
        if self._mimes.setdefault(column, mime) != mime:
            self._mimes[column] = None
        self._unknown[column] = 0 if mime else self._unknown.get(column, 0) + 1
        return extension

    def _leaf(self, path: tuple[int, ...]) -> Leaf:
        shape = self._shapes[path[0] - 1]
        for part in path[1:]:
            shape = _inner(shape, part - 1)
        assert isinstance(shape, Leaf)
        return shape

    def _described(self, k: int, column: Column) -> Column:
        fields = _without_folders(column.fields)
        column = replace(column, lob_folder=None, fields=fields)
        if self._mimes.get(k):
            column = replace(column, mime_type=self._mimes[k])
        if k not in self._outside or self._external is None:
            return column
        folder = self._external.column_folder(Cell(self._schema, self._table, (k + 1,), 0))
        paths = self._outside[k] - {()}
        if paths:
            fields = self._fields(column.name, self._shapes[k], fields, paths)
        return replace(column, lob_folder=folder, fields=fields)

    def _fields(
        self, name: str, shape: Shape, known: tuple[Field, ...], paths: set[tuple[int, ...]]
    ) -> tuple[Field, ...]:
        """The fields of a complex value, with folders for those that have objects (5.7)."""
        assert self._external is not None and not isinstance(shape, Leaf)
        count = max(path[0] for path in paths)
        if isinstance(shape, Struct):
            names = [*(shape.names or (f"u{n + 1}" for n in range(len(shape.parts))))]
        else:
            names = [f"{name}[{number + 1}]" for number in range(max(count, len(known)))]
        fields = []
        for number, own in enumerate(names):
            field = known[number] if number < len(known) else Field(own)
            inner = {path[1:] for path in paths if path[0] == number + 1}
            if inner:
                folder = self._external.field_folder(number + 1)
                deeper = {path for path in inner if path}
                below = field.fields
                if deeper:
                    below = self._fields(field.name, _inner(shape, number), below, deeper)
                field = replace(field, lob_folder=folder, fields=below)
            fields.append(field)
        return tuple(fields)


def _inner(shape: Shape, number: int) -> Shape:
    if isinstance(shape, Array):
        return shape.element
    assert isinstance(shape, Struct)
    return shape.parts[number]


def _without_folders(fields: tuple[Field, ...]) -> tuple[Field, ...]:
    return tuple(replace(f, lob_folder=None, fields=_without_folders(f.fields)) for f in fields)


def _link(link: str) -> bytes:
    """The attribute that keeps a link as the database had it."""
    from urllib.parse import quote

    return f' dlurlpathonly="{quote(link, safe=":/", errors="surrogateescape")}"'.encode()


def _read(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk


class _Measure:
    """Length and digest of an object: bytes, or characters if it is text, which must be UTF-8."""

    def __init__(self, text: bool, digest_type: str) -> None:
        self._digest = hashlib.new(ALGORITHMS[digest_type], usedforsecurity=False)
        self.length = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")() if text else None

    def update(self, chunk: bytes) -> None:
        self._digest.update(chunk)
        self.length += len(self._decoder.decode(chunk)) if self._decoder else len(chunk)

    def watching(self, chunks: Iterator[bytes]) -> Iterator[bytes]:
        for chunk in chunks:
            self.update(chunk)
            yield chunk

    def finish(self) -> None:
        if self._decoder:
            self._decoder.decode(b"", final=True)

    def hexdigest(self) -> str:
        return self._digest.hexdigest()

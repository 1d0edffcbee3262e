"""Large objects in files of their own inside the archive (T_6.2-1, T_6.4-5)."""

from __future__ import annotations

import codecs
import hashlib
from collections.abc import Callable, Iterator
from typing import BinaryIO

from muniment.errors import Unfit
from muniment.siard.zip import ZipWriter, deflate
from muniment.sql.model import Leaf, Schema, Shape, Table
from muniment.sql.stores import OpenLob
from muniment.sql.types import Kind

__all__ = ["LobWriter"]

_CHUNK = 1 << 20


class LobWriter:
    """Puts the large objects of one table into the archive as it meets them."""

    def __init__(
        self,
        archive: ZipWriter,
        compression: str,
        schema: Schema,
        table: Table,
        shapes: tuple[Shape, ...],
        open_lob: OpenLob,
    ) -> None:
        self._zip, self._compression = archive, compression
        self._schema, self._table, self._shapes = schema, table, shapes
        self._open_lob = open_lob

    def placing(self, rows_before: int) -> Callable[[int, bytes], bytes]:
        """Return what stores the object of a cell and gives the attributes that name it."""

        def place(position: int, reference: bytes) -> bytes:
            row, column = divmod(position, len(self._shapes))
            return self._store(rows_before + row, column, reference)

        return place

    def _store(self, row: int, column: int, reference: bytes) -> bytes:
        shape = self._shapes[column]
        text = isinstance(shape, Leaf) and shape.type.kind is Kind.TEXT
        kind = (
            "xml"
            if isinstance(shape, Leaf) and shape.type.name == "XML"
            else "txt"
            if text
            else "bin"
        )
        folder = f"content/{self._schema.folder}/{self._table.folder}/lob{column}"
        name = f"{folder}/record{row}.{kind}"
        measure = _Measure(text)
        with (
            self._open_lob(self._schema, self._table, reference) as stream,
            self._zip.stream(name) as member,
        ):
            try:
                for chunk in _read(stream):
                    measure.update(chunk)
                    member.write(deflate(chunk, self._compression))
                measure.finish()
            except UnicodeDecodeError as error:
                where = f"{self._schema.name}.{self._table.name}.{self._table.columns[column].name}"
                value = f"a text of bytes like {error.object[error.start : error.end]!r}"
                raise Unfit(where, row + 1, value, "text in Unicode") from error
        return (
            f' file="{name}" length="{measure.length}" digestType="SHA-256" '
            f'digest="{measure.digest.hexdigest()}"'
        ).encode()


class _Measure:
    """Length and digest of an object: bytes, or characters if it is text."""

    def __init__(self, text: bool) -> None:
        self.digest = hashlib.sha256()
        self.length = 0
        self._decoder = codecs.getincrementaldecoder("utf-8")() if text else None

    def update(self, chunk: bytes) -> None:
        self.digest.update(chunk)
        self.length += len(self._decoder.decode(chunk)) if self._decoder else len(chunk)

    def finish(self) -> None:
        if self._decoder:
            self._decoder.decode(b"", final=True)


def _read(stream: BinaryIO) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK):
        yield chunk

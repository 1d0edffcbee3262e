"""Large objects in files of their own inside the archive (T_6.2-1, T_6.4-5)."""

from __future__ import annotations

import codecs
import hashlib
import io
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, cast
from urllib.parse import unquote

from muniment.errors import DigestMismatch, NotFound, SiardError, Unfit
from muniment.siard.zip import ZipReader, ZipWriter, deflate
from muniment.sql.model import Database, Leaf, Schema, Shape, Table
from muniment.sql.stores import OpenLob
from muniment.sql.types import Kind

__all__ = ["LobReader", "LobWriter"]

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


class LobReader:
    """Finds and opens the objects that cells name, and proves them against their digests."""

    def __init__(self, archive: ZipReader, database: Database) -> None:
        self._zip, self._database = archive, database

    def open(self, table: Table, reference: bytes) -> BinaryIO:
        """Open the object behind a reference made by RowReader."""
        number, file, _length, digest_type, digest = reference.decode().split("\x00")
        folder = table.columns[int(number) - 1].lob_folder or ""
        name = self._locate(file, folder)
        stream: Any = io.BufferedReader(_Verified(self._zip, name, digest_type, digest), _CHUNK)
        return cast(BinaryIO, stream)

    def _locate(self, file: str, column_folder: str) -> str:
        """Try the ruling's place first (inside, from the root), then what other writers mean."""
        base, path = self._database.lob_folder or "", unquote(file)
        candidates = (
            path,
            f"{column_folder}/{path}",
            f"{base}/{column_folder}/{path}",
            f"content/{column_folder}/{path}",
        )
        for candidate in candidates:
            name = "/".join(part for part in candidate.split("/") if part not in ("", "."))
            if name in self._zip:
                return name
        raise NotFound(
            f"{self._zip.path}: the large object {file} is not inside the archive; "
            "objects in external folders cannot be read yet"
        )


class _Verified(io.RawIOBase):
    """A member as a stream that raises at its end if the bytes are not those archived."""

    def __init__(self, archive: ZipReader, name: str, digest_type: str, digest: str) -> None:
        self._name, self._expected, self._type = f"{archive.path}: {name}", digest, digest_type
        algorithm = {"MD5": "md5", "SHA-1": "sha1", "SHA-256": "sha256"}.get(digest_type.upper())
        if digest and not algorithm:
            raise SiardError(f"{self._name}: unknown digest type {digest_type!r}")
        self._digest = (
            hashlib.new(algorithm, usedforsecurity=False) if algorithm and digest else None
        )
        self._chunks = archive.chunks(name)
        self._rest = b""

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: memoryview) -> int:  # type: ignore[override]
        if not self._rest:
            self._rest = next(self._chunks, b"")
            if self._digest is not None:
                self._digest.update(self._rest)
                if not self._rest:
                    self._check(self._digest.hexdigest())
        size = min(len(buffer), len(self._rest))
        buffer[:size] = self._rest[:size]
        self._rest = self._rest[size:]
        return size

    def _check(self, found: str) -> None:
        self._digest = None
        if found != self._expected.lower():
            raise DigestMismatch(self._name, self._type, self._expected, found)

"""What the pages stand on: the archives that are open, their indexes, and who builds them.

A page can be asked for at once: until its index is ready, the start of a table is read from the
archive itself. The index is built by a process of its own, so that pages stay quick meanwhile.
"""

from __future__ import annotations

import hmac
import io
import json
import os
import pickle
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO
from urllib.parse import quote

from starlette.requests import Request

from muniment.databases.duckdb.types import quote as sql_quote
from muniment.errors import MunimentError, NotFound
from muniment.files import Inside
from muniment.query.cache import digest_of, index_path, locked
from muniment.query.names import index_catalog
from muniment.siard import SiardSource
from muniment.siard.header import replace_metadata
from muniment.siard.lobs.folders import Root
from muniment.siard.volumes import volume_paths
from muniment.sql.model import Database, Schema, Shape, Table, shape_of
from muniment.web.verdict import Verdict, verdict_path

if TYPE_CHECKING:
    from muniment.query.index import About, IndexTable
    from muniment.query.isolated import Isolated
    from muniment.query.session import Archives

__all__ = ["OpenArchive", "Progress", "Site"]

_SHORT = 200  # characters that every page shows of a value
# What glibc reads: memory that comes and goes with every batch stays with the helper.
_ROOM = {"MALLOC_TRIM_THRESHOLD_": f"{1 << 27}", "MALLOC_MMAP_THRESHOLD_": f"{1 << 27}"}
_PAGE_SECONDS = 20.0  # a page's own queries; people do not wait longer
_PAGE_MB = 250  # of memory for them; what is more goes to the disk


@dataclass
class Progress:
    """How far an index has come."""

    state: str = "waiting"  # "building", "ready", "failed"
    table: str = ""
    rows: int = 0
    total: int = 0
    error: str = ""

    @property
    def percent(self) -> int:
        return min(99, 100 * self.rows // self.total) if self.total else 0


class OpenArchive:
    """An archive that people look at."""

    def __init__(
        self, name: str, path: Path, roots: Sequence[Root] = (), file: str = "", pdi: str = ""
    ) -> None:
        self.name, self.path, self.roots = name, path, tuple(roots)
        self.file, self.pdi = file or path.name, pdi  # what it is called, and cited by
        self.source = SiardSource(path, roots)
        self.database: Database = self.source.describe()
        self.progress = Progress(total=sum(t.rows for _, t in self.database.tables()))
        self.verdict = Verdict()
        self.digest = ""
        self.session: Archives | None = None
        self.isolated: Isolated | None = None
        self.tables: list[tuple[Schema, Table]] = list(self.database.tables())
        self._stack = ExitStack()
        self._helper: subprocess.Popen[str] | None = None
        self._closed = False
        self._prepared = threading.Event()
        self._thread = threading.Thread(target=self._work, daemon=True)

    @property
    def about(self) -> About | None:
        """What the index says about itself, once it is there."""
        return self.session.about[self.name] if self.session else None

    @cached_property
    def size(self) -> int:
        if isinstance(self.path, Inside) and self.path.size is not None:
            return self.path.size
        return sum(part.stat().st_size for part in volume_paths(self.path))

    def start(self) -> None:
        """Start building the index in the background; the validation follows."""
        self._thread.start()

    def wait(self, seconds: float | None = None) -> bool:
        """Wait for the index; return whether it is there."""
        self._prepared.wait(seconds)
        return self.session is not None

    def wait_for_verdict(self, seconds: float | None = None) -> bool:
        """Wait for the validation; return whether there is a verdict."""
        self._thread.join(seconds)
        return self.verdict.state == "done"

    def close(self) -> None:
        """End what runs in the background."""
        self._closed = True
        if self._helper is not None and self._helper.poll() is None:
            self._helper.kill()
        if self._thread.is_alive():
            self._thread.join(10)
        if self.isolated is not None:
            self.isolated.close()
        self._stack.close()

    def table_number(self, schema: Schema, table: Table) -> int:
        """The number of a table, which is also the number of its place in the index."""
        for number, (home, other) in enumerate(self.tables):
            if home is schema and other is table:
                return number
        raise NotFound(f"there is no table {schema.name}.{table.name}")

    def shapes(self, schema: Schema, table: Table) -> list[Shape]:
        return [shape_of(self.database, schema.name, column) for column in table.columns]

    def open_object(self, schema: Schema, table: Table, row: int, column: int) -> BinaryIO:
        """Open the large object in a cell; row and column count from 1."""
        if self.session is None:
            raise NotFound("the index of this archive is still being built; try again in a moment")
        number = self.table_number(schema, table)
        index = self.session.about[self.name].tables[number]
        if not index.columns[column - 1].large:
            return self._long_value(index, row, column)
        stream: BinaryIO = self.session.open_content(f"{self.name}/{number}/{column}/{row}")
        return stream

    def _long_value(self, index: IndexTable, row: int, column: int) -> BinaryIO:
        """A value that is no large object, and still too long for a table."""
        assert self.session is not None
        home = f"{sql_quote(index_catalog(self.name))}.{index.place}"
        kind = index.columns[column - 1].type
        cell = f"hex(c{column})" if kind == "BLOB" else f"CAST(c{column} AS VARCHAR)"
        found = self.session.rows(f"SELECT {cell} FROM {home} WHERE rowid = ?", [row - 1])
        if not found or found[0][0] is None or len(str(found[0][0])) <= _SHORT:
            raise NotFound(f"the value in this cell is short; the page of row {row} shows it")
        return io.BytesIO(str(found[0][0]).encode("utf-8", "backslashreplace"))

    def _work(self) -> None:
        try:
            self._prepare()
        finally:
            self._prepared.set()
        self._judge()

    def _prepare(self) -> None:
        try:
            self.digest = digest_of(self.path)
            index = index_path(self.digest, self.roots, self.source.lobs.outside())
            if not index.exists():
                self.progress.state = "building"
                if self._helped("index", self._told):
                    raise NotFound(self.progress.error or "the index could not be built")
            # Loaded now, while nobody waits: the first page does without them.
            from muniment.query.isolated import Isolated
            from muniment.query.session import Limits, attach

            archives, indexes = {self.name: self.path}, {self.name: index}
            limits = Limits(seconds=_PAGE_SECONDS, memory_mb=_PAGE_MB)
            session = self._stack.enter_context(attach(archives, indexes, limits, roots=self.roots))
            self.isolated = Isolated(archives, indexes, self.roots)
            self.progress.state = "ready"
            self.session = session
        except (MunimentError, OSError) as error:
            self.progress.error = self.progress.error or str(error)
            self.progress.state = "failed"

    def _judge(self) -> None:
        """Validate the archive, once for its digest."""
        verdict = self.verdict
        if self._closed or not self.digest or verdict.recall(self.digest):
            return
        with locked(verdict_path(self.digest)):  # the same for all processes of a server
            if self._closed or verdict.recall(self.digest):
                return
            verdict.state = "running"
            failed = self._helped("validate", verdict.told)
            if failed or verdict.state != "done":
                verdict.state = "failed"
            else:
                verdict.keep(self.digest)

    def _helped(self, work: str, told: Callable[[dict[str, Any]], None]) -> int:
        """Let a process of its own do the work; return what it returns."""
        asked = b64encode(pickle.dumps((self.path, self.roots))).decode()
        command = [sys.executable, "-m", "muniment.web.indexer", work]
        environment = {**_ROOM, **os.environ}
        with subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        ) as helper:
            self._helper = helper
            assert helper.stdin is not None
            assert helper.stdout is not None
            with suppress(BrokenPipeError):
                helper.stdin.write(f"{asked}\n")
                helper.stdin.flush()
            for line in helper.stdout:
                with suppress(ValueError):
                    told(json.loads(line))
        return int(helper.returncode)

    def _told(self, facts: dict[str, Any]) -> None:
        progress = self.progress
        progress.table = facts.get("table", progress.table)
        progress.rows = facts.get("rows", progress.rows)
        progress.total = facts.get("total", progress.total)
        progress.error = facts.get("error", "")


@dataclass
class Site:
    """All archives of one server, by the names in their addresses."""

    archives: dict[str, OpenArchive] = field(default_factory=dict)
    token: str = ""  # who knows it may write descriptions
    is_store = False
    base: str = ""  # the address that others see, if names are resolved there

    def open(self, request: Request) -> OpenArchive:
        """Return the archive that an address names."""
        name = request.path_params["archive"]
        if name not in self.archives:
            raise NotFound(f"there is no archive {name[:80]!r} here")
        return self.archives[name]

    @property
    def describable(self) -> bool:
        """Whether anybody may write descriptions here."""
        return bool(self.token)

    def knows(self, _request: Request) -> bool:
        """Whether who asks has shown a token already."""
        return False

    def may_describe(self, _request: Request, token: str) -> bool:
        """Whether who shows this token may write descriptions."""
        return bool(self.token) and hmac.compare_digest(token.encode(), self.token.encode())

    def described(self, archive: OpenArchive, metadata: bytes, _request: Request) -> str:
        """Give an archive another metadata.xml; return the address where it is then."""
        replace_metadata(archive.path, metadata)
        opened = OpenArchive(archive.name, archive.path, archive.roots)
        self.archives[archive.name] = opened
        archive.close()
        opened.start()
        return f"/a/{quote(archive.name, safe='')}"

    def start(self) -> None:
        for archive in self.archives.values():
            archive.start()

    def close(self) -> None:
        for archive in self.archives.values():
            archive.close()

    def facts(self) -> dict[str, Any]:
        return {"archives": sorted(self.archives)}

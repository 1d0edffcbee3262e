"""Where requests meet the store: a few threads, each with the store open, and the event loop."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypeVar

from muniment.repository import Store
from muniment.repository.deposit import Deposits

__all__ = ["Desk"]

T = TypeVar("T")
_THREADS = 8


class Desk:
    """Answers questions about a store, each in a thread that has it open."""

    def __init__(self, folder: Path, base: str = "", emails: tuple[str, ...] = ()) -> None:
        self.folder = folder
        self._local = threading.local()
        self._open: list[Store] = []
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, "desk")
        settings = self.store().settings  # a folder that is no store is refused at once
        self.store().names.current()
        self.base = (base or settings.base_url).rstrip("/")
        self.emails = emails
        self.deposits = Deposits(folder)
        self.largest = 4 << 30  # bytes of a document that is put here
        self.patience = 30.0  # seconds without a byte
        self.traces = False
        self.references: tuple[str, ...] = ()  # addresses from which context objects are fetched
        self.series = settings.series

    def store(self) -> Store:
        """The store of this thread, opened anew if its catalogue was replaced."""
        found: Store | None = getattr(self._local, "store", None)
        if found is not None and not found.catalogue.replaced:
            return found
        with self._lock:
            if found is not None:
                self._open.remove(found)
                found.close()
            opened = self._local.store = Store(self.folder)
            self._open.append(opened)
        return opened

    async def ask(self, question: Callable[[Store], T], quick: bool = False) -> T:
        """Run a function with a store, away from the event loop.

        One that is ``quick``, some look-ups and a small read, runs at once where it is asked:
        changing threads would take longer than the answer.
        """
        if quick and (ready := self._ready()) is not None:
            return question(ready)
        loop = asyncio.get_running_loop()
        answer = await loop.run_in_executor(self._threads, lambda: question(self.store()))
        if quick:
            self.store()  # if it has to be opened anew: another thread has done what takes its time
        return answer

    def _ready(self) -> Store | None:
        """The store of this thread, if it can answer without waiting for anybody."""
        found: Store | None = getattr(self._local, "store", None)
        if found is None or found.catalogue.replaced or not found.names.is_current:
            return None
        return found

    def answer(self, question: Callable[[Store], T]) -> T:
        """Run a function with a store, from a thread that is none of these."""
        return self._threads.submit(lambda: question(self.store())).result()

    def close(self) -> None:
        """Finish what was begun, and let go of all files."""
        self.deposits.close()
        self._threads.shutdown()
        with self._lock:
            while self._open:
                self._open.pop().close()

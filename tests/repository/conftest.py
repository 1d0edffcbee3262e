"""What the tests of the store share."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from muniment.repository import Session, Source, Store


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    """A new, empty store."""
    with Store.create(tmp_path / "store") as made:
        yield made


@pytest.fixture
def filled(store: Store) -> Store:
    """A store with twenty small objects, two versions of one of them, and a folder."""
    with Session(store) as session:
        for number in range(20):
            data = f"object {number}\n".encode() * number
            source = Source(f"file{number}.txt", data, "text/plain")
            session.add(
                [source], contents=[f"urn:test:{number}"], metadata=[("title", f"<{number}>")]
            )
    with Session(store, document="mets") as session:
        session.add([Source("file3.txt", b"changed", "text/plain")], contents=["urn:test:3"])
        session.add(
            [
                Source("a/x.bin", bytes(range(256)), "application/octet-stream"),
                Source("b y.txt", b"", "text/plain"),
            ],
            contents=["urn:test:folder"],
        )
    return store

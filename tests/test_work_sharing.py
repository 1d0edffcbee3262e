"""Workers are as many as can be of use."""

from __future__ import annotations

from pathlib import Path

import pytest

from muniment import workers
from muniment.databases import open_source


def test_no_wish_for_workers_fills_the_machine(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[object] = []

    class Idle:
        def __init__(self, *_: object) -> None:
            started.append(self)

        def is_ready(self) -> bool:
            return True

        def stop(self) -> None: ...

    monkeypatch.setattr(workers, "_Worker", Idle)
    (tmp_path / "empty.db").touch()
    with (
        open_source(f"sqlite:///{tmp_path / 'empty.db'}") as source,
        workers.start_workers(source, 100_000, lambda: True),
    ):
        assert len(started) == 256

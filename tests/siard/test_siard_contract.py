"""A SIARD file keeps the laws of every source and target."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from contracts import sample
from contracts.source_contract import SourceContract
from contracts.target_contract import TargetContract
from muniment.siard import SiardSource, create_siard, open_siard

Opened = AbstractContextManager[Any]
DAY = date(2026, 11, 15)


class TestSiard(SourceContract):
    @pytest.fixture
    def source(self, tmp_path: Path) -> Iterator[SiardSource]:
        with create_siard(tmp_path / "sample.siard", DAY) as target:
            sample.copy(target, sample.DATABASE, sample.ROWS)
        with open_siard(tmp_path / "sample.siard") as source:
            yield source


class TestSiardTarget(TargetContract):
    suffix = ".siard"

    @pytest.fixture
    def target(self, destination: Path) -> Callable[[], Opened]:
        return lambda: create_siard(destination, DAY)

    @pytest.fixture
    def reopen(self, destination: Path) -> Callable[[], Opened]:
        return lambda: open_siard(destination)

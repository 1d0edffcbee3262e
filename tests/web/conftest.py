"""Sites for the tests of the pages: the sample, and an archive that means harm."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from browsing import CHROMIUM, FLAGS
from hostile import make_hostile
from starlette.testclient import TestClient

from muniment import transfer
from muniment.cli.archive import options_of
from muniment.cli.config import load
from muniment.demo import build_sample, sample_config
from muniment.web.app import create_app
from muniment.web.site import OpenArchive, Site


@pytest.fixture(scope="session")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The archive of the demonstration."""
    folder = tmp_path_factory.mktemp("sample")
    build_sample(folder / "trees.db")
    (folder / "trees.yaml").write_text(sample_config(), encoding="utf-8")
    options = options_of(load(folder / "trees.yaml"))
    path = folder / "trees.siard"
    transfer.archive(f"sqlite:///{folder}/trees.db", path, options=options)
    return path


@pytest.fixture(scope="session")
def hostile(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_hostile(tmp_path_factory.mktemp("hostile") / "hostile.siard")


@pytest.fixture(scope="session")
def site(sample: Path, hostile: Path) -> Site:
    return Site({"trees": OpenArchive("trees", sample), "evil": OpenArchive("evil", hostile)})


@pytest.fixture(scope="session")
def client(site: Site) -> Iterator[TestClient]:
    with TestClient(create_app(site), base_url="http://localhost") as client:
        for archive in site.archives.values():
            assert archive.wait(120), archive.progress
        yield client


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    """The distribution's Chromium."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as play:
        opened = play.chromium.launch(executable_path=CHROMIUM, args=FLAGS)
        yield opened
        opened.close()

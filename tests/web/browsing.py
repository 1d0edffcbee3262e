"""A real browser for the tests: the distribution's Chromium, which talks to this machine only.

Screenshots go to the folder named by MUNIMENT_SHOTS (``make docs`` keeps those of the tour).
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import pytest

__all__ = ["AXE", "CHROMIUM", "FLAGS", "MARKS", "Visitor", "faults_of", "wait_until"]

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = [
    "--no-sandbox", "--disable-background-networking", "--disable-component-update",
    "--disable-sync", "--no-first-run", "--disable-quic", "--disable-gpu",
]  # fmt: skip
MARKS = [
    pytest.mark.skipif(not CHROMIUM, reason="Chromium is not installed"),
    # The browser's driver leaves its pipes to the garbage collector.
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
]
AXE = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa"]
SHOTS = os.environ.get("MUNIMENT_SHOTS")


class Visitor:
    """A tab that remembers what went wrong in it."""

    def __init__(self, browser: Any, address: str, **options: Any) -> None:
        size = options.pop("viewport", {"width": 1280, "height": 860})
        self.context = browser.new_context(viewport=size, **options)
        self.page = self.context.new_page()
        self.address = address
        self.complaints: list[str] = []
        self.elsewhere: list[str] = []
        self.page.on("console", self._listen)
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", self._watch)

    def _listen(self, message: Any) -> None:
        if message.type == "error" and "status of 4" not in message.text:
            self.complaints.append(message.text)

    def _watch(self, request: Any) -> None:
        if not request.url.startswith((self.address, "data:", "blob:", "chrome-extension:")):
            self.elsewhere.append(request.url)

    def open(self, path: str) -> Any:
        self.page.goto(self.address + path, wait_until="load")
        return self.page

    def shoot(self, name: str) -> None:
        if SHOTS:
            folder = Path(SHOTS)
            folder.mkdir(parents=True, exist_ok=True)
            self.page.screenshot(path=str(folder / f"{name}.png"))

    def is_owned(self) -> bool:
        return bool(self.page.evaluate("'owned' in document.documentElement.dataset"))


def wait_until(page: Any, condition: str) -> None:
    """Wait for a condition; the pages' own policy forbids the browser's way to do that."""
    for _ in range(150):
        if page.evaluate(condition):
            return
        page.wait_for_timeout(100)
    raise AssertionError(f"not in time: {condition}")


def faults_of(page: Any, scheme: str) -> list[tuple[str, str, list[str]]]:
    """What axe finds on a page that is serious; in the dark, where only colours are others."""
    from axe_playwright_python.sync_playwright import Axe

    rules = {"type": "rule", "values": ["color-contrast"]} if scheme == "dark" else AXE
    options = {"runOnly": rules, "resultTypes": ["violations"]}
    found = Axe().run(page, options=options).response["violations"]
    return [
        (fault["id"], page.url, [node["html"][:120] for node in fault["nodes"][:2]])
        for fault in found
        if fault["impact"] in ("serious", "critical")
    ]

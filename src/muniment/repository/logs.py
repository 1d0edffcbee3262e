"""What verifying found: signed logs on tapes, and the digests that files had earlier."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from lxml import etree

from muniment.markup import escape, quoteattr
from muniment.objects import didl_statement
from muniment.repository.entries import Entry
from muniment.repository.session import Session
from muniment.repository.settings import new_uuid, now
from muniment.repository.signatures import PLACEHOLDER, Signer, check_enveloped
from muniment.repository.signatures import trusted as trusted_keys
from muniment.tape.records import STORE

if TYPE_CHECKING:
    from muniment.repository.store import Store

__all__ = ["Report", "last_digests", "logs", "receipts", "write_log"]

_NOT_XML = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


@dataclass
class Report:
    """What was checked, and what is wrong."""

    started: str = field(default_factory=now)
    scope: str = "all"
    files: int = 0
    records: int = 0
    datastreams: int = 0
    bytes: int = 0
    signatures: int = 0
    problems: list[tuple[str, str]] = field(default_factory=list)
    digests: list[tuple[str, int, str]] = field(default_factory=list)  # file, size, SHA-256
    log: str = ""

    @property
    def good(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems


def write_log(store: Store, report: Report, signer: Signer) -> str:
    """Put a signed report onto a tape of its own; return its identifier."""
    files = "".join(
        f'<mu:file name={quoteattr(name)} size="{size}" sha256="{digest}"/>'
        for name, size, digest in report.digests
    )
    problems = "".join(
        f"<mu:problem place={quoteattr(_plain(place))}>{escape(_plain(words))}</mu:problem>"
        for place, words in report.problems
    )
    identifier, created = f"urn:uuid:{new_uuid()}", now()
    element = (
        f'<mu:verification xmlns:mu="{STORE}" scope={quoteattr(report.scope)} '
        f'started="{report.started}" finished="{now()}" files="{report.files}" '
        f'records="{report.records}" datastreams="{report.datastreams}" '
        f'problems="{len(report.problems)}">{files}{problems}{PLACEHOLDER}</mu:verification>'
    )
    signed = signer.enveloped(didl_statement(identifier, created, element.encode()))
    entry = Entry("verification", hashlib.sha256(signed).hexdigest())
    with Session(store) as session:
        session.add_record(identifier, created, signed, entry)
    return identifier


def _plain(text: str) -> str:
    """What a damaged file says may hold characters that XML cannot."""
    return _NOT_XML.sub("\N{REPLACEMENT CHARACTER}", text)


def last_digests(store: Store) -> dict[str, str]:
    """Return the digests of whole files from the latest log that has them, if it is trusted."""
    digests: dict[str, str] = {}
    keys = trusted_keys(store.folder / "trust")
    for found in store.catalogue.records(kind="verification"):
        document = store.read(found)
        if check_enveloped(document, keys):
            continue
        for file in etree.fromstring(document).iter(f"{{{STORE}}}file"):
            if file.get("sha256"):
                digests[file.get("name", "")] = file.get("sha256", "")
    return digests


def receipts(store: Store) -> dict[str, str]:
    """Return the digests that imported files had when they came."""
    digests = {}
    for found in store.catalogue.records(kind="receipt"):
        for file in etree.fromstring(store.read(found)).iter(f"{{{STORE}}}file"):
            digests[file.get("name", "")] = file.get("sha256", "")
    return digests


def logs(store: Store) -> Iterator[etree._Element]:
    """Yield the logs of earlier verifications, oldest first."""
    for found in store.catalogue.records(kind="verification"):
        yield etree.fromstring(store.read(found))

"""Proving that a store still holds what was put into it: the run, its log, and whom it trusts."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from muniment.repository.checking import Check, Throttle
from muniment.repository.logs import Report, logs, write_log
from muniment.repository.signatures import Signer, fingerprint, new_key

if TYPE_CHECKING:
    from muniment.repository.store import Store

__all__ = ["Report", "logs", "store_key", "trust", "trust_certificate", "verify"]


def verify(
    store: Store, *, sample: float | None = None, rate: float | None = None,
    restart: bool = False, signer: Signer | None = None,
    progress: Callable[[str, int], None] = lambda _name, _bytes: None,
) -> Report:  # fmt: skip
    """Check a store, or a random part of its objects; write the log; return what was found."""
    signer = signer or store_key(store)
    check = Check(store, Throttle(rate), progress)
    report = check.sampled(sample) if sample is not None else check.everything(restart)
    report.bytes = check.throttle.bytes
    report.log = write_log(store, report, signer)
    if sample is None:
        check.forget()
    return report


def store_key(store: Store) -> Signer:
    """The store's own key, made when it is first needed."""
    path = store.folder / "signing.pem"
    if not path.exists():
        new_key(path)
    signer = Signer(path)
    trust(store, signer)
    return signer


def trust(store: Store, signer: Signer) -> None:
    """Let the store trust a key from now on."""
    trust_certificate(store, signer.pem())


def trust_certificate(store: Store, pem: bytes) -> str:
    """Let the store trust what is signed with a certificate; return its fingerprint."""
    name = fingerprint(pem)
    folder = store.folder / "trust"
    folder.mkdir(exist_ok=True)
    path = folder / f"{name}.pem"
    if not path.exists():
        path.write_bytes(pem)
    return name

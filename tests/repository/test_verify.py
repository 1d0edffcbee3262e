"""Whatever is changed in a store, verifying finds it, and xmlsec1 agrees about signatures."""

from __future__ import annotations

import re
import subprocess
import time
from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519

from muniment.errors import UsageError
from muniment.objects import datastream_url
from muniment.repository import Session, Source, Store
from muniment.repository import checking as module
from muniment.repository.catalogue import File
from muniment.repository.signatures import Signer, new_key
from muniment.repository.verify import logs, trust, verify
from muniment.tape.records import STORE


@pytest.fixture(scope="module")
def key(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A private key."""
    path = tmp_path_factory.mktemp("keys") / "key.pem"
    new_key(path)
    return path


def tampered(store: Store, kind: str, old: bytes, new: bytes) -> None:
    """Change bytes in the first file of a kind that has them."""
    for file in store.catalogue.files(kind):
        path = store.path(file)
        data = path.read_bytes()
        if old in data:
            path.chmod(0o644)
            path.write_bytes(data.replace(old, new, 1))
            return
    raise AssertionError(f"{old!r} is in no {kind}")


def test_a_store_as_it_was_written_is_good(filled: Store) -> None:
    report = verify(filled)
    assert report.good
    assert (report.records, report.datastreams, report.files) == (24, 23, 4)
    (log,) = logs(filled)
    found = log.find(f".//{{{STORE}}}verification")
    assert found is not None
    assert found.get("problems") == "0"
    assert len(found.findall(f"{{{STORE}}}file")) == 4
    assert verify(filled).good


@pytest.mark.parametrize(
    ("kind", "old", "new", "words"),
    [
        ("arc", b"object 7\nobject", b"object 7\nabject", "digest in its own header"),
        ("tape", b"&lt;7&gt;", b"&lt;8&gt;", "not what was written"),
        ("tape", b"</ta:record></ta:tapeRecord>", b"</ta:record ></ta:tapeRecord>", "bytes"),
        ("tape", b"</didl:DIDL>", b"</didl:DIDX>", "not well-formed"),
        (
            "arc",
            b"Content-Length: 9\r\n",
            b"Content-Length: 8\r\n",
            "digest in its own header",
        ),
        (
            "arc",
            b"WARC-Target-URI: urn:uuid:",
            b"WARC-Target-URI: urn:uuix:",
            "is not in the store|not know",
        ),
    ],
)
def test_every_change_is_found(
    filled: Store, kind: str, old: bytes, new: bytes, words: str
) -> None:
    tampered(filled, kind, old, new)
    if "uuix" in new.decode():
        folder = filled.folder
        filled.close()
        for path in folder.glob("catalogue.db*"):
            path.unlink()
        filled = Store(folder)
    report = verify(filled)
    assert any(re.search(words, said) for _, said in report.problems), report.problems


def test_a_missing_file_is_found(filled: Store) -> None:
    filled.path(filled.catalogue.files("arc")[0]).unlink()
    assert ("the file is missing") in {words for _, words in verify(filled).problems}


def test_a_change_that_hides_its_traces_is_found_by_the_log(filled: Store) -> None:
    """Whoever changes a datastream, its header and its record still contradicts the signed log."""
    verify(filled)
    (file,) = [
        f for f in filled.catalogue.files("tape") if b"urn:test:5<" in filled.path(f).read_bytes()
    ][:1]
    path = filled.path(file)
    data = path.read_bytes()
    path.chmod(0o644)
    path.write_bytes(data.replace(b"<tb:processSoftware>Muniment", b"<tb:processSoftware>Monument"))
    assert "the file is not the one that was verified before" in {
        words for _, words in verify(filled).problems
    }


def test_a_sample_finds_damage_in_what_it_reads(filled: Store) -> None:
    assert verify(filled, sample=1.0).good
    tampered(filled, "arc", b"object 7\nobject", b"object 7\nabject")
    assert not verify(filled, sample=1.0).good


def test_an_interrupted_run_goes_on_where_it_stopped(
    filled: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[str] = []
    check = module.Check._file

    def stopping(self: module.Check, file: File, earlier: str | None) -> None:
        if len(seen) == 2:
            raise KeyboardInterrupt
        seen.append(file.name)
        check(self, file, earlier)

    monkeypatch.setattr(module.Check, "_file", stopping)
    with pytest.raises(KeyboardInterrupt):
        verify(filled)
    again: list[str] = []

    def counting(self: module.Check, file: File, earlier: str | None) -> None:
        again.append(file.name)
        check(self, file, earlier)

    monkeypatch.setattr(module.Check, "_file", counting)
    report = verify(filled)
    assert report.good
    assert report.files == 4
    assert not set(seen) & set(again)


def test_the_rate_is_kept(filled: Store) -> None:
    started = time.monotonic()
    report = verify(filled, rate=200_000)
    assert report.bytes / (time.monotonic() - started) < 260_000


def key_of_curve(path: Path, curve: ec.EllipticCurve) -> Path:
    """Write a private key, in whose place a certificate is made by us."""
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    private = ec.generate_private_key(curve)
    path.write_bytes(private.private_bytes(serialization.Encoding.PEM, *form))
    return path


@pytest.mark.parametrize(
    ("document", "curve"),
    [
        ("didl", None),
        ("mets", None),
        ("didl", ec.SECP256R1()),
        ("mets", ec.SECP384R1()),
        ("didl", ec.SECP521R1()),
    ],
)
def test_signatures_hold_for_us_and_for_xmlsec1(
    store: Store, key: Path, document: str, curve: ec.EllipticCurve | None, tmp_path: Path
) -> None:
    signer = Signer(key_of_curve(tmp_path / "key.pem", curve) if curve else key)
    with Session(store, signer=signer, document=document) as session:
        session.add([Source("a.txt", b"signed data", "text/plain")], contents=["urn:signed"])
    trust(store, signer)
    report = verify(store)
    assert report.good
    assert report.signatures == 1
    found = store.find("urn:signed")
    (stream,) = store.object(found).streams
    (tmp_path / "record.xml").write_bytes(store.document(found))
    (tmp_path / "data").write_bytes(b"signed data")
    (tmp_path / "cert.pem").write_bytes(signer.pem())
    url = datastream_url(store.settings.base_url, stream.arc, stream.identifier)
    command = ["xmlsec1", "--verify", "--trusted-pem", "cert.pem", f"--url-map:{url}", "data"]
    for wanted in ("not(@Id='datastreams')", "@Id='datastreams'"):
        path = f"//*[local-name()='Signature'][{wanted}]"
        done = subprocess.run(
            [*command, "--node-xpath", path, "record.xml"], cwd=tmp_path, capture_output=True
        )
        assert done.returncode == 0, done.stderr
    (tmp_path / "data").write_bytes(b"forged data")
    done = subprocess.run(
        [*command, "--node-xpath", path, "record.xml"], cwd=tmp_path, capture_output=True
    )
    assert done.returncode != 0


def test_a_signature_of_an_unknown_key_is_no_good(store: Store, key: Path) -> None:
    with Session(store, signer=Signer(key)) as session:
        session.add([Source("a.txt", b"signed data", "text/plain")])
    assert any("does not trust" in words for _, words in verify(store).problems)


def test_xmlsec1_accepts_the_log(filled: Store, tmp_path: Path) -> None:
    report = verify(filled)
    (tmp_path / "log.xml").write_bytes(filled.document(filled.find(report.log)))
    (certificate,) = (filled.folder / "trust").iterdir()
    command = ["xmlsec1", "--verify", "--trusted-pem", str(certificate), "log.xml"]
    subprocess.run(command, cwd=tmp_path, check=True, capture_output=True)


def test_what_is_no_key_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("nothing")
    for name in ("x", "gone"):
        with pytest.raises(UsageError):
            Signer(tmp_path / name)
    form = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    other = ed25519.Ed25519PrivateKey.generate()  # neither signxml nor xmlsec1 can
    (tmp_path / "ed").write_bytes(other.private_bytes(serialization.Encoding.PEM, *form))
    with pytest.raises(UsageError, match="neither an RSA key nor one of the curves"):
        Signer(tmp_path / "ed")


def test_the_key_of_the_store_is_for_its_owner_alone(filled: Store) -> None:
    verify(filled)
    assert (filled.folder / "signing.pem").stat().st_mode & 0o077 == 0

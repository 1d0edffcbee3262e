"""An authority, a server's certificate and a client's, made for one test run."""

from __future__ import annotations

import datetime
import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from servers.processes import server_folder

__all__ = ["Certificates", "certificates"]

_Signer = tuple[x509.Name, ec.EllipticCurvePrivateKey]


@dataclass(frozen=True)
class Certificates:
    """Where the files are; the server's name is localhost, the client's is its user."""

    folder: Path

    def file(self, name: str) -> str:
        return str(self.folder / name)


@contextmanager
def certificates(user: str, client: str) -> Iterator[Certificates]:
    """Make certificates whose server's key belongs to a user of the system."""
    with server_folder("tls", user) as folder:
        authority, stranger = _authority(folder, "ca"), _authority(folder, "stranger")
        _signed(folder, "server", "localhost", authority)
        _signed(folder, "client", client, authority)
        _signed(folder, "unknown", client, stranger)
        if os.geteuid() == 0:
            shutil.chown(folder / "server.key", user)
        yield Certificates(folder)


def _authority(folder: Path, name: str) -> _Signer:
    subject, key = _subject(f"The {name} of a test"), ec.generate_private_key(ec.SECP256R1())
    constraints = x509.BasicConstraints(ca=True, path_length=None)
    builder = _builder(subject, subject, key).add_extension(constraints, critical=True)
    use = x509.KeyUsage(
        digital_signature=True, key_cert_sign=True, crl_sign=True, content_commitment=False,
        key_encipherment=False, data_encipherment=False, key_agreement=False, encipher_only=False,
        decipher_only=False,
    )  # fmt: skip
    _write(folder, name, builder.add_extension(use, critical=True).sign(key, hashes.SHA256()), key)
    return subject, key


def _signed(folder: Path, file: str, name: str, signer: _Signer) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    names = x509.SubjectAlternativeName([x509.DNSName(name)])
    builder = _builder(_subject(name), signer[0], key).add_extension(names, critical=False)
    _write(folder, file, builder.sign(signer[1], hashes.SHA256()), key)


def _subject(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey
) -> x509.CertificateBuilder:
    now = datetime.datetime.now(datetime.UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=2))
    )


def _write(
    folder: Path, name: str, certificate: x509.Certificate, key: ec.EllipticCurvePrivateKey
) -> None:
    pem = serialization.Encoding.PEM
    (folder / f"{name}.crt").write_bytes(certificate.public_bytes(pem))
    secret = key.private_bytes(pem, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    (folder / f"{name}.key").write_bytes(secret)
    (folder / f"{name}.key").chmod(0o600)

"""XML Signatures: enveloped in a record, detached for the datastreams that it refers to.

Records are signed and checked by signxml. A detached signature names each datastream by its OpenURL
and carries its SHA-256, which the store knows already; so nothing large is read again to sign it.
"""

from __future__ import annotations

import base64
import hashlib
import os
from collections.abc import Callable, Iterable, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.utils import (
    decode_dss_signature,
    encode_dss_signature,
)
from cryptography.x509.oid import NameOID
from lxml import etree
from signxml import SignatureConfiguration, SignatureMethod, XMLSigner, XMLVerifier, methods
from signxml.exceptions import InvalidInput, SignXMLException

from muniment.errors import UsageError
from muniment.files import new_file
from muniment.markup import quoteattr
from muniment.objects import Datastream, datastream_url
from muniment.tape.records import STORE

__all__ = [
    "PLACEHOLDER",
    "Signer",
    "check_detached",
    "check_enveloped",
    "fingerprint",
    "new_key",
    "trusted",
]

DSIG = "http://www.w3.org/2000/09/xmldsig#"
_C14N = "http://www.w3.org/2001/10/xml-exc-c14n#"
_SHA256 = "http://www.w3.org/2001/04/xmlenc#sha256"
_RSA = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha256"
_ECDSA = "http://www.w3.org/2001/04/xmldsig-more#ecdsa-sha256"
_CURVES = ("secp256r1", "secp384r1", "secp521r1")  # P-256, P-384, P-521
PLACEHOLDER = f'<ds:Signature xmlns:ds="{DSIG}" Id="placeholder"></ds:Signature>'
_YEARS = 100


PrivateKey = rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey


class Signer:
    """A private key, RSA or of an elliptic curve, and its certificate."""

    def __init__(self, key_file: Path) -> None:
        pem = _read(key_file)
        try:
            key = serialization.load_pem_private_key(pem, None)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{key_file} holds no readable private key: {error}") from None
        self._key, self._method = _usable(key, key_file)
        self.certificate = _certificate(pem, self._key)
        der = self.certificate.public_bytes(serialization.Encoding.DER)
        self._der = base64.b64encode(der).decode()

    def pem(self) -> bytes:
        """The certificate, for those who check."""
        return self.certificate.public_bytes(serialization.Encoding.PEM)

    def detached(self, streams: Sequence[Datastream], base: str) -> bytes:
        """Return a signature over datastreams, and the place where the record's own will stand."""
        references = "".join(
            f"<ds:Reference URI={_url(base, stream)}>"
            f'<ds:DigestMethod Algorithm="{_SHA256}"></ds:DigestMethod>'
            f"<ds:DigestValue>{_b64(stream.sha256)}</ds:DigestValue></ds:Reference>"
            for stream in streams
        )
        if not references:
            return _wrapped(PLACEHOLDER)
        signed_info = (
            f'<ds:SignedInfo xmlns:ds="{DSIG}">'
            f'<ds:CanonicalizationMethod Algorithm="{_C14N}"></ds:CanonicalizationMethod>'
            f'<ds:SignatureMethod Algorithm="{self._method}"></ds:SignatureMethod>{references}'
            "</ds:SignedInfo>"
        )
        value = _sign(self._key, _canonical(signed_info))
        inner = signed_info.replace(f' xmlns:ds="{DSIG}"', "", 1)
        signature = (
            f'<ds:Signature xmlns:ds="{DSIG}" Id="datastreams">{inner}'
            f"<ds:SignatureValue>{base64.b64encode(value).decode()}</ds:SignatureValue>"
            "<ds:KeyInfo><ds:X509Data><ds:X509Certificate>"
            f"{self._der}</ds:X509Certificate></ds:X509Data></ds:KeyInfo></ds:Signature>"
        )
        return _wrapped(PLACEHOLDER + signature)

    def enveloped(self, document: bytes) -> bytes:
        """Return a document with its signature, where the placeholder stood or at its end."""
        root = etree.fromstring(document)
        signer = XMLSigner(
            method=methods.enveloped,
            signature_algorithm=SignatureMethod(self._method),
            c14n_algorithm=_C14N,
        )
        signed = signer.sign(root, key=self._key, cert=[self.certificate])
        return bytes(etree.tostring(signed, encoding="utf-8"))


def check_enveloped(document: bytes, trust: Iterable[x509.Certificate]) -> str:
    """Return what is wrong with a record's signature, "" if nothing is."""
    root = etree.fromstring(document)
    if any(not _fault(root, certificate) for certificate in trust):
        return ""
    own = root.findtext(f".//{{{DSIG}}}X509Certificate")
    try:
        certificate = x509.load_der_x509_certificate(base64.b64decode(own or ""))
    except ValueError:
        return "its signature names no certificate that can be read"
    if fault := _fault(root, certificate):
        return f"its signature does not hold: {fault}"
    name = certificate.fingerprint(hashes.SHA256()).hex()
    return f"it was signed with a key that this store does not trust ({name})"


def _fault(root: etree._Element, certificate: x509.Certificate) -> str:
    """Return why a signature does not hold with a certificate."""
    config = SignatureConfiguration(location=".//", expect_references=1)
    try:
        XMLVerifier().verify(root, x509_cert=certificate, expect_config=config)
    except (InvalidInput, SignXMLException, ValueError) as error:
        return str(error).strip(" :") or type(error).__name__
    return ""


def check_detached(
    document: bytes, digest_of: Callable[[str], str], trust: Iterable[x509.Certificate]
) -> list[str]:
    """Return what is wrong with signatures over datastreams; ``digest_of`` a URL is in hex."""
    problems = []
    for signature in etree.fromstring(document).iter(f"{{{DSIG}}}Signature"):
        if signature.get("Id") == "datastreams":
            problems += _check_one(signature, digest_of, list(trust))
    return problems


def _check_one(
    signature: etree._Element, digest_of: Callable[[str], str], trust: list[x509.Certificate]
) -> list[str]:
    info = signature.find(f"{{{DSIG}}}SignedInfo")
    value = signature.findtext(f"{{{DSIG}}}SignatureValue") or ""
    if info is None:
        return ["the signature over its datastreams is damaged"]
    data = etree.tostring(info, method="c14n", exclusive=True)
    if not any(_signed(certificate, base64.b64decode(value), data) for certificate in trust):
        return ["the signature over its datastreams does not hold, or its key is not trusted"]
    problems = []
    for reference in info.iter(f"{{{DSIG}}}Reference"):
        url = reference.get("URI", "")
        stated = base64.b64decode(reference.findtext(f"{{{DSIG}}}DigestValue") or "").hex()
        if digest_of(url) != stated:
            problems.append(f"{url} is not what was signed")
    return problems


def _usable(key: object, key_file: Path) -> tuple[PrivateKey, str]:
    """Return a key with its algorithm of XML Signature, SHA-256 with each."""
    if isinstance(key, rsa.RSAPrivateKey):
        return key, _RSA
    if isinstance(key, ec.EllipticCurvePrivateKey) and key.curve.name in _CURVES:
        return key, _ECDSA
    raise UsageError(
        f"{key_file} is neither an RSA key nor one of the curves {', '.join(_CURVES)}, which "
        "signatures here are made with"
    )


def _sign(key: PrivateKey, data: bytes) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(data, padding.PKCS1v15(), hashes.SHA256())
    # XML Signature has the two numbers one behind the other, not as ASN.1.
    numbers = decode_dss_signature(key.sign(data, ec.ECDSA(hashes.SHA256())))
    width = (key.curve.key_size + 7) // 8
    return b"".join(number.to_bytes(width, "big") for number in numbers)


def _signed(certificate: x509.Certificate, value: bytes, data: bytes) -> bool:
    key = certificate.public_key()
    try:
        if isinstance(key, rsa.RSAPublicKey):
            key.verify(value, data, padding.PKCS1v15(), hashes.SHA256())
        elif isinstance(key, ec.EllipticCurvePublicKey):
            half = len(value) // 2
            numbers = (int.from_bytes(part, "big") for part in (value[:half], value[half:]))
            key.verify(encode_dss_signature(*numbers), data, ec.ECDSA(hashes.SHA256()))
        else:
            return False
    except InvalidSignature:
        return False
    return True


def new_key(path: Path) -> None:
    """Make a new private key that only its owner may read."""
    key = rsa.generate_private_key(public_exponent=65537, key_size=3072)
    with new_file(path) as stream:
        os.fchmod(stream.fileno(), 0o600)
        stream.write(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        stream.write(_self_signed(key).public_bytes(serialization.Encoding.PEM))


def fingerprint(pem: bytes) -> str:
    """Return the SHA-256 of a certificate, in hex."""
    try:
        return x509.load_pem_x509_certificate(pem).fingerprint(hashes.SHA256()).hex()
    except ValueError as error:
        raise UsageError(f"this is no certificate in PEM: {error}") from None


def trusted(folder: Path) -> list[x509.Certificate]:
    """Return the certificates that a store trusts."""
    if not folder.is_dir():
        return []
    return [
        x509.load_pem_x509_certificate(path.read_bytes()) for path in sorted(folder.glob("*.pem"))
    ]


def _certificate(pem: bytes, key: PrivateKey) -> x509.Certificate:
    """Return the certificate in the key's file, or one signed by the key itself."""
    if b"-----BEGIN CERTIFICATE-----" not in pem:
        return _self_signed(key)
    certificate = x509.load_pem_x509_certificate(pem[pem.index(b"-----BEGIN CERTIFICATE-----") :])
    if certificate.public_key() != key.public_key():
        raise UsageError("the certificate in the key's file belongs to another key")
    return certificate


def _self_signed(key: PrivateKey) -> x509.Certificate:
    """Return the same certificate for the same key, every time."""
    public = key.public_key().public_bytes(
        serialization.Encoding.DER, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    number = hashlib.sha256(public).digest()[:16]
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"Muniment store {number.hex()}")])
    start = datetime(2020, 1, 1, tzinfo=UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(int.from_bytes(number, "big") >> 1)
        .not_valid_before(start)
        .not_valid_after(start + timedelta(days=365 * _YEARS))
        .sign(key, hashes.SHA256())
    )


def _read(path: Path) -> bytes:
    if not path.is_file():
        raise UsageError(f"there is no key {path}")
    return path.read_bytes()


def _canonical(text: str) -> bytes:
    return bytes(etree.tostring(etree.fromstring(text), method="c14n", exclusive=True))


def _wrapped(signatures: str) -> bytes:
    """One element, since a statement in DIDL may hold no more."""
    return f'<mu:signatures xmlns:mu="{STORE}">{signatures}</mu:signatures>'.encode()


def _b64(digest: str) -> str:
    return base64.b64encode(bytes.fromhex(digest)).decode()


def _url(base: str, stream: Datastream) -> str:
    return quoteattr(datastream_url(base, stream.arc, stream.identifier))

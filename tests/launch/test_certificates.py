"""A participant's certificate: for TLS in both roles, for some years, and unable to vouch for another certificate."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, load_pem_private_key
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from launch.keys import make_keys
from smpc.engine.tls import Contexts, Identity
from smpc.errors import InputError
from tests.launch.test_keys import shake


def load(key: Path, certificate: Path) -> tuple[ec.EllipticCurvePrivateKey, x509.Certificate]:
    secret = load_pem_private_key(key.read_bytes(), password=None)
    assert isinstance(secret, ec.EllipticCurvePrivateKey)
    return secret, x509.load_pem_x509_certificate(certificate.read_bytes())


def test_what_the_certificate_says(tmp_path: Path) -> None:
    key, certificate = load(*make_keys("a", tmp_path))
    assert isinstance(key.curve, ec.SECP256R1)
    assert key.public_key() == certificate.public_key()
    certificate.verify_directly_issued_by(certificate)  # its own signature
    assert certificate.subject == certificate.issuer
    now = datetime.datetime.now(datetime.timezone.utc)
    hours, year = datetime.timedelta(hours=12), datetime.timedelta(days=365)
    assert certificate.not_valid_before_utc < now - hours  # clocks differ
    assert now + 2 * year < certificate.not_valid_after_utc < now + 5 * year
    assert not certificate.extensions.get_extension_for_class(x509.BasicConstraints).value.ca
    uses = certificate.extensions.get_extension_for_class(x509.ExtendedKeyUsage).value
    assert set(uses) == {ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH}


def test_a_participant_cannot_vouch_for_another_certificate(tmp_path: Path) -> None:
    """TLS itself refuses what the pinned key of `a` signs, whatever name it carries."""
    keys = {name: make_keys(name, tmp_path) for name in ("a", "b")}
    pinned = {name: pair[1] for name, pair in keys.items()}
    key, certificate = load(*keys["a"])
    other = ec.generate_private_key(ec.SECP256R1())
    issued = (
        x509.CertificateBuilder()
        .subject_name(x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "c")]))
        .issuer_name(certificate.subject)
        .public_key(other.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(certificate.not_valid_before_utc)
        .not_valid_after(certificate.not_valid_after_utc)
        .sign(key, hashes.SHA256())
    )
    chain, secret = tmp_path / "c.crt", tmp_path / "c.key"
    chain.write_bytes(issued.public_bytes(Encoding.PEM) + certificate.public_bytes(Encoding.PEM))
    secret.touch(0o600)
    secret.write_bytes(other.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
    honest = Contexts(Identity("b", *keys["b"]), pinned)
    forger = Contexts(Identity("c", secret, chain), pinned)
    for server, client in ((honest, forger), (forger, honest)):
        with pytest.raises(OSError, match=r"unknown ca|invalid ca|CERTIFICATE_VERIFY_FAILED"):
            shake(server, client)


def test_links_that_lead_nowhere_are_not_followed(tmp_path: Path) -> None:
    """A key is written where its name says or not at all, and never without its certificate."""
    for suffix in ("key", "crt"):
        folder = tmp_path / suffix
        folder.mkdir()
        link = folder / f"a.{suffix}"
        link.symlink_to(tmp_path / "elsewhere")
        with pytest.raises(InputError):
            make_keys("a", folder)
        assert list(folder.iterdir()) == [link]
        assert not (tmp_path / "elsewhere").exists()

"""A participant's key and self-signed certificate, which the job file pins."""

from __future__ import annotations

import datetime
import os
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from smpc.errors import InputError

VALID_DAYS = 3 * 365


def make_keys(name: str, directory: Path) -> tuple[Path, Path]:
    """Write NAME.key (readable by its owner only) and NAME.crt into `directory`; their paths.

    Raises InputError if either exists already: a key is never overwritten.
    """
    key_path, certificate_path = directory / f"{name}.key", directory / f"{name}.crt"
    for path in (key_path, certificate_path):
        if path.exists():
            raise InputError(f"{path} exists already; keys are never overwritten: choose another folder or name")
    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
    now = datetime.datetime.now(datetime.timezone.utc)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))  # clocks differ
        .not_valid_after(now + datetime.timedelta(days=VALID_DAYS))
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(
            x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH, ExtendedKeyUsageOID.CLIENT_AUTH]), critical=False
        )
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
    with open(os.open(key_path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "wb") as file:
        file.write(pem)
    certificate_path.write_bytes(certificate.public_bytes(Encoding.PEM))
    return key_path, certificate_path

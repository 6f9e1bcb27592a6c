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

from launch.jobfile.endpoints import NAME, NAME_RULE
from smpc.errors import InputError

VALID_DAYS = 3 * 365


def make_keys(name: str, directory: Path) -> tuple[Path, Path]:
    """Write NAME.key (readable by its owner only) and NAME.crt into `directory`; their paths.

    Raises InputError if either exists already: a key is never overwritten.
    """
    if not NAME.fullmatch(name):
        raise InputError(f"name {name!r}: must be {NAME_RULE}")
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
    written: list[Path] = []
    try:
        for path, content, mode in (
            (key_path, pem, 0o600),
            (certificate_path, certificate.public_bytes(Encoding.PEM), 0o644),
        ):
            descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
            written.append(path)
            with open(descriptor, "wb") as file:
                file.write(content)
    except OSError as error:
        for path in written:
            path.unlink()
        raise InputError(f"folder {directory}: cannot be written to ({error.strerror}); choose another --dir") from None
    return key_path, certificate_path

"""Mutual TLS 1.3 between participants whose certificates the job pins.

There is no certificate authority that could issue a second identity: a peer is who holds the private key of the
certificate listed under its name.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from smpc.errors import InputError

Address = tuple[str, int]


@dataclass(frozen=True)
class Identity:
    """This process's name with its private key and certificate (PEM files)."""

    name: str
    key: Path
    certificate: Path


def certificate_der(path: Path) -> bytes:
    """The DER bytes of a PEM certificate file."""
    try:
        return x509.load_pem_x509_certificate(path.read_bytes()).public_bytes(Encoding.DER)
    except FileNotFoundError:
        raise InputError(
            f"certificate {path}: does not exist; get it from its owner, who makes it with `smpc keys new`"
        ) from None
    except (OSError, ValueError) as error:
        raise InputError(
            f"certificate {path}: cannot be read as PEM ({error}); make one with `smpc keys new`"
        ) from None


def fingerprint(path: Path) -> str:
    """SHA-256 of a PEM certificate file's DER bytes, in hex."""
    return hashlib.sha256(certificate_der(path)).hexdigest()


def check_private(key: Path) -> None:
    """Raises InputError for a file with a secret that others than its owner may read; none for one that is absent."""
    mode = key.stat().st_mode if key.exists() else 0
    if mode & 0o077:
        raise InputError(f"key {key}: others on this host can read it (mode {mode & 0o777:o}); chmod 600 {key}")


class Contexts:
    """The two TLS contexts of one participant, trusting exactly the pinned certificates."""

    def __init__(self, identity: Identity, certificates: Mapping[str, Path]) -> None:
        self.me = identity.name
        self.names = {certificate_der(path): name for name, path in certificates.items()}
        self.server = self._context(ssl.PROTOCOL_TLS_SERVER, identity)
        self.client = self._context(ssl.PROTOCOL_TLS_CLIENT, identity)

    def _context(self, protocol: int, identity: Identity) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the certificate itself is pinned, not a host name
        context.verify_mode = ssl.CERT_REQUIRED
        context.options |= ssl.OP_NO_TICKET
        check_private(identity.key)
        try:
            context.load_cert_chain(identity.certificate, identity.key, password="")  # or OpenSSL asks for one
        except FileNotFoundError:
            raise InputError(f"key {identity.key}: does not exist; `smpc keys new` makes one, --key names it") from None
        except (OSError, ValueError):
            raise InputError(
                f"key {identity.key}: is no private key (PEM, no password) of the certificate {identity.certificate}; "
                "name its key with --key, or make both anew with `smpc keys new` and give the others the certificate"
            ) from None
        for der in self.names:
            context.load_verify_locations(cadata=der)
        return context

    def peer(self, connection: ssl.SSLSocket) -> str | None:
        """The name under which the other end's certificate is pinned."""
        return self.names.get(connection.getpeercert(binary_form=True) or b"")


def listen(address: Address, backlog: int = 64) -> socket.socket:
    """A listening socket on `address`; port 0 takes a free one."""
    try:
        family = socket.AF_INET6 if ":" in address[0] else socket.AF_INET
        return socket.create_server(address, family=family, backlog=backlog)
    except OSError as error:
        raise InputError(
            f"address {address[0]} port {address[1]}: cannot listen there ({str(error.strerror).partition(' (')[0]}); "
            "it must be a free port of this host"
        ) from None

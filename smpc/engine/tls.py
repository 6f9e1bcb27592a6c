"""Mutual TLS 1.3 between participants whose certificates the job pins.

There is no certificate authority that could issue a second identity: a peer is who holds the private key of the
certificate listed under its name.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.serialization import Encoding

from smpc.errors import InputError, PeerError

Address = tuple[str, int]
_HANDSHAKE_SECONDS = 10.0
_RETRY_SECONDS = 0.05
_MOST_THREADS = 200


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
    except (OSError, ValueError) as error:
        raise InputError(
            f"certificate {path}: cannot be read as PEM ({error}); make one with `smpc keys new`"
        ) from None


def fingerprint(path: Path) -> str:
    """SHA-256 of a PEM certificate file's DER bytes, in hex."""
    return hashlib.sha256(certificate_der(path)).hexdigest()


class Contexts:
    """The two TLS contexts of one participant, trusting exactly the pinned certificates."""

    def __init__(self, identity: Identity, certificates: Mapping[str, Path]) -> None:
        self.names = {certificate_der(path): name for name, path in certificates.items()}
        self.server = self._context(ssl.PROTOCOL_TLS_SERVER, identity)
        self.client = self._context(ssl.PROTOCOL_TLS_CLIENT, identity)

    def _context(self, protocol: int, identity: Identity) -> ssl.SSLContext:
        context = ssl.SSLContext(protocol)
        context.minimum_version = ssl.TLSVersion.TLSv1_3
        context.check_hostname = False  # the certificate itself is pinned, not a host name
        context.verify_mode = ssl.CERT_REQUIRED
        context.options |= ssl.OP_NO_TICKET
        try:
            context.load_cert_chain(identity.certificate, identity.key, password="")  # or OpenSSL asks for one
        except FileNotFoundError:
            raise InputError(f"key {identity.key}: does not exist; `smpc keys new` makes one, --key names it") from None
        except (OSError, ValueError):
            raise InputError(
                f"key {identity.key}: is no private key (PEM, no password) of the certificate {identity.certificate}"
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


def connect_all(
    contexts: Contexts,
    order: Sequence[str],
    me: str,
    addresses: Mapping[str, Address],
    listener: socket.socket,
    seconds: float,
) -> dict[str, ssl.SSLSocket]:
    """One authenticated connection to every other participant of `order`; earlier names listen, later ones connect.

    Raises PeerError that names whoever is missing after `seconds`.
    """
    end = time.monotonic() + seconds
    rank = order.index(me)
    found: dict[str, ssl.SSLSocket] = {}
    wrong: dict[str, str] = {}
    refused: list[str] = []
    change = threading.Condition()

    def keep(name: str | None, connection: ssl.SSLSocket, expected: Sequence[str]) -> None:
        with change:
            if name is None or name not in expected or name in found:  # a stranger, or a second claim to a name
                connection.close()
                return
            found[name] = connection
            change.notify_all()

    def accept(raw: socket.socket) -> None:
        raw.settimeout(_HANDSHAKE_SECONDS)
        try:
            connection = contexts.server.wrap_socket(raw, server_side=True)
        except (OSError, ssl.SSLError) as error:
            refused.extend(_about_certificates(error))
            raw.close()
            return
        keep(contexts.peer(connection), connection, order[rank + 1 :])

    def accept_loop() -> None:
        listener.settimeout(_RETRY_SECONDS)
        while not done.is_set():
            try:
                raw, _ = listener.accept()
            except TimeoutError:
                continue
            except OSError:
                return
            if threading.active_count() > _MOST_THREADS:  # strangers that never finish their handshake
                raw.close()
                continue
            threading.Thread(target=accept, args=(raw,), daemon=True).start()

    def dial(name: str) -> None:
        while time.monotonic() < end and not done.is_set():
            try:
                raw = socket.create_connection(addresses[name], timeout=_HANDSHAKE_SECONDS)
            except OSError:
                time.sleep(_RETRY_SECONDS)  # the peer may not have started yet
                continue
            try:
                connection = contexts.client.wrap_socket(raw)
            except ssl.SSLCertVerificationError:
                wrong[name] = "shows another certificate than the job lists"
                raw.close()
            except (OSError, ssl.SSLError):
                raw.close()
            else:
                if contexts.peer(connection) == name:
                    keep(name, connection, [name])
                    return
                wrong[name] = "shows the certificate of another participant"
                connection.close()
            time.sleep(_RETRY_SECONDS * 4)

    done = threading.Event()
    threads = [threading.Thread(target=accept_loop, daemon=True)]
    threads += [threading.Thread(target=dial, args=(name,), daemon=True) for name in order[:rank]]
    for thread in threads:
        thread.start()
    with change:
        change.wait_for(lambda: len(found) == len(order) - 1, timeout=max(0.0, end - time.monotonic()))
        done.set()
        missing = [name for name in order if name != me and name not in found]
    threads[0].join()
    listener.close()
    if missing:
        for connection in found.values():
            connection.close()
        name = next((name for name in missing if name in wrong), missing[0])
        host, port = addresses[name]
        reason = wrong.get(name, "did not answer")
        if name in order[rank + 1 :]:
            reason = f"did not connect{f', {refused[0]}' if refused else ''}"
        raise PeerError(
            f"{name} ({host} port {port}) {reason}; start it, or correct the job file ({seconds:g} s passed)"
        )
    return found


def _about_certificates(error: OSError) -> list[str]:
    """What a failed TLS handshake tells about the two ends' certificates, if anything."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ["but somebody whose certificate the job does not list did"]
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        return ["but somebody who does not know our certificate did"]
    return []

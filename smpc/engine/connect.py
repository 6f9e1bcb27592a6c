"""Finds the other participants: one authenticated connection to each, whoever of them starts first."""

from __future__ import annotations

import socket
import ssl
import threading
import time
from collections.abc import Mapping, Sequence

from smpc.engine.door import HANDSHAKE_SECONDS, Door
from smpc.engine.tls import Address, Contexts
from smpc.errors import PeerError

_RETRY_SECONDS = 0.05


def connect_all(
    contexts: Contexts,
    order: Sequence[str],
    me: str,
    addresses: Mapping[str, Address],
    listener: socket.socket,
    seconds: float,
) -> dict[str, ssl.SSLSocket]:
    """One authenticated connection to every other participant of `order`; earlier names listen, later ones connect.

    Raises PeerError that names whoever is missing after `seconds`. `listener` is closed at the end.
    """
    end = time.monotonic() + seconds
    rank = order.index(me)
    found: dict[str, ssl.SSLSocket] = {}
    wrong: dict[str, str] = {}
    callers: dict[str, None] = {}  # what failed handshakes told of certificates, each once
    change = threading.Condition()
    done = threading.Event()

    def keep(name: str | None, connection: ssl.SSLSocket, expected: Sequence[str]) -> None:
        with change:
            if name is None or name not in expected or name in found or done.is_set():
                connection.close()  # a stranger, a second claim to a name, or too late
                return
            found[name] = connection
            change.notify_all()

    def dial(name: str) -> None:
        while time.monotonic() < end and not done.is_set():
            try:
                raw = socket.create_connection(addresses[name], timeout=HANDSHAKE_SECONDS)
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

    door = Door(
        listener,
        contexts.server,
        lambda connection: keep(contexts.peer(connection), connection, order[rank + 1 :]),
        lambda error: callers.update(dict.fromkeys(_about_certificates(error))),
    )
    for name in order[:rank]:
        threading.Thread(target=dial, args=(name,), daemon=True).start()
    try:
        with change:
            change.wait_for(lambda: len(found) == len(order) - 1, timeout=max(0.0, end - time.monotonic()))
            done.set()
    finally:
        done.set()
        door.close()
    missing = [name for name in order if name != me and name not in found]
    if missing:
        for connection in found.values():
            connection.close()
        name = next((name for name in missing if name in wrong), missing[0])
        host, port = addresses[name]
        reason = wrong.get(name, "did not answer")
        if name in order[rank + 1 :]:
            reason = f"did not connect{f', {next(iter(callers))}' if callers else ''}"
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

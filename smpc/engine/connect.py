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
_WELCOME = b"+"  # from who listens: it keeps the connection


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

    def admit(connection: ssl.SSLSocket) -> None:
        name = contexts.peer(connection)
        with change:
            wanted = name in order[rank + 1 :] and name not in found and not done.is_set()
            if name is None or not wanted or not _welcomed(connection):
                connection.close()  # a stranger, a second claim to a name, too late, or gone
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
                connection = _call(contexts, name, raw, end)
            except _Wrong as error:
                wrong[name] = str(error)
            except OSError:
                pass  # among other reasons, its door was crowded
            else:
                with change:
                    if done.is_set():
                        connection.close()
                    else:
                        found[name] = connection
                        change.notify_all()
                return
            time.sleep(_RETRY_SECONDS * 4)

    door = Door(
        listener,
        contexts.server,
        admit,
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
        rest = ", ".join(other for other in missing if other != name)
        absent = "did not answer"
        if name in order[rank + 1 :]:
            absent = f"did not connect{f', {next(iter(callers))}' if callers else ''}"
        reason = wrong.get(name, f"{absent}; start it, or correct the job file")
        raise PeerError(
            f"{name} ({host} port {port}) {reason} ({seconds:g} s passed){f'; missing, too: {rest}' if rest else ''}"
        )
    return found


class _Wrong(Exception):
    """What is wrong with whoever answers."""


def _call(contexts: Contexts, name: str, raw: socket.socket, end: float) -> ssl.SSLSocket:
    """The connection, once `name` has said that it keeps it. Raises _Wrong, or OSError if it does not.

    In TLS 1.3 the caller's side of the handshake is done before the other end has seen the caller's certificate.
    """
    try:
        connection = contexts.client.wrap_socket(raw)
    except ssl.SSLCertVerificationError:
        raise _Wrong("shows another certificate than the job lists; ask it for its present one") from None
    finally:
        raw.close()  # of a socket that TLS has not taken over
    try:
        if contexts.peer(connection) != name:
            raise _Wrong("shows the certificate of another participant; correct the addresses in the job file")
        # no shorter: what it keeps and we gave up would stay the one connection under our name
        connection.settimeout(max(_RETRY_SECONDS, end - time.monotonic()))
        if connection.recv(1) != _WELCOME:
            raise ConnectionError("closed")
    except BaseException as error:
        connection.close()
        if isinstance(error, ssl.SSLError) and "UNKNOWN_CA" in (error.reason or ""):
            raise _Wrong("refuses our certificate, its job file lists another; send it the present one") from None
        raise
    return connection


def _welcomed(connection: ssl.SSLSocket) -> bool:
    """Tell the caller that it is kept; whether it was still there."""
    try:
        return connection.send(_WELCOME) == len(_WELCOME)
    except OSError:
        return False


def _about_certificates(error: OSError) -> list[str]:
    """What a failed TLS handshake tells about the two ends' certificates, if anything."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return ["but somebody whose certificate the job does not list did"]
    if isinstance(error, ssl.SSLError) and "ALERT" in (error.reason or ""):
        return ["but somebody who does not know our certificate did"]
    return []

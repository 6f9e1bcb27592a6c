"""Only who holds the key of a pinned certificate takes part; everybody else is refused, and named where it can be."""

from __future__ import annotations

import hashlib
import re
import socket
import ssl
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from launch.keys import make_keys
from smpc.engine.connect import connect_all
from smpc.engine.door import Door
from smpc.engine.tls import Address, Contexts, Identity, fingerprint, listen
from smpc.errors import InputError, PeerError
from tests.harness import keys

NAMES = ("p0", "p1", "p2")
PINNED = {name: keys(name)[1] for name in NAMES}


def identity(name: str) -> Identity:
    return Identity(name, *keys(name))


def connected(
    *,
    identities: Mapping[str, Identity],
    seconds: float = 1.2,
    pinned: Mapping[str, Path] = PINNED,
    meanwhile: Callable[[Mapping[str, Address]], Any] = lambda addresses: None,
    talk: bool = False,
) -> dict[str, Any]:
    """Everybody's connections, or error; `meanwhile` runs when p0 alone is there.

    `talk`: all who are connected send their name to each other at once, and must receive each other's.
    """
    listeners = {name: listen(("127.0.0.1", 0)) for name in NAMES}
    addresses = {name: listener.getsockname() for name, listener in listeners.items()}

    def start(name: str) -> Any:
        try:
            contexts = Contexts(identities[name], pinned)
            links = connect_all(contexts, NAMES, name, addresses, listeners[name], seconds)
        except (PeerError, InputError) as error:
            return error
        for peer, link in links.items() if talk else ():
            link.settimeout(5)
            link.sendall(f"{name}{peer}".encode())
        for peer, link in links.items() if talk else ():
            assert link.recv(4).decode() == f"{peer}{name}"
        return links

    with ThreadPoolExecutor() as threads:
        running = {"p0": threads.submit(start, "p0")}
        meanwhile(addresses)
        running |= {name: threads.submit(start, name) for name in identities if name != "p0"}
        found = {name: future.result() for name, future in running.items()}
    for listener in listeners.values():
        assert listener.fileno() == -1 or len(identities) < len(NAMES)
        listener.close()
    for links in found.values():
        for link in links.values() if isinstance(links, dict) else ():
            link.close()
    return found


def test_all_pairs_connect_with_mutual_tls_1_3() -> None:
    found = connected(identities={name: identity(name) for name in NAMES}, seconds=10, talk=True)
    assert {name: set(links) for name, links in found.items()} == {name: set(NAMES) - {name} for name in NAMES}


def test_no_old_tls_and_no_session_tickets() -> None:
    contexts = Contexts(identity("p0"), PINNED)
    for context in (contexts.server, contexts.client):
        assert context.minimum_version is ssl.TLSVersion.TLSv1_3
        assert context.verify_mode is ssl.CERT_REQUIRED
        assert context.options & ssl.OP_NO_TICKET


@pytest.fixture(scope="module")
def forged(tmp_path_factory: pytest.TempPathFactory) -> Identity:
    """Another key under p1's name."""
    return Identity("p1", *make_keys("p1", tmp_path_factory.mktemp("forged")))


def test_another_certificate_under_a_name_is_refused_and_named(forged: Identity) -> None:
    found = connected(identities={"p0": identity("p0"), "p1": forged, "p2": identity("p2")})
    assert "p1" in str(found["p0"]) and isinstance(found["p0"], PeerError)
    assert "p1" in str(found["p2"]) and "shows another certificate than the job lists" in str(found["p2"])


def test_one_participant_cannot_pose_as_another() -> None:
    """p2's pinned certificate, shown by who answers at p1's address."""
    posing = {"p0": identity("p0"), "p1": Identity("p1", *keys("p2")), "p2": identity("p2")}
    found = connected(identities=posing)
    assert isinstance(found["p0"], PeerError) and "p1" in str(found["p0"])
    assert "shows the certificate of another participant" in str(found["p2"])


def test_who_is_missing_is_named_with_its_address() -> None:
    found = connected(identities={"p0": identity("p0"), "p2": identity("p2")}, seconds=0.3)
    assert re.match(r"p1 \(127\.0\.0\.1 port \d+\) did not connect; .*\(0\.3 s passed\)", str(found["p0"]))
    assert re.match(r"p1 \(127\.0\.0\.1 port \d+\) did not answer; .*\(0\.3 s passed\)", str(found["p2"]))


def test_strangers_and_half_open_connections_do_not_disturb() -> None:
    def disturb(addresses: Mapping[str, Address]) -> None:
        plain = socket.create_connection(addresses["p0"])
        plain.sendall(b"GET / HTTP/1.1\r\n\r\n")
        idle = [socket.create_connection(addresses["p0"]) for _ in range(20)]
        anonymous = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        anonymous.check_hostname, anonymous.verify_mode = False, ssl.CERT_NONE
        with socket.create_connection(addresses["p0"]) as raw, anonymous.wrap_socket(raw) as without_certificate:
            without_certificate.settimeout(5)
            with pytest.raises(ssl.SSLError):
                without_certificate.recv(1)
        for connection in (plain, *idle):
            connection.close()

    found = connected(identities={name: identity(name) for name in NAMES}, seconds=10, meanwhile=disturb)
    assert {name: set(links) for name, links in found.items()} == {name: set(NAMES) - {name} for name in NAMES}


def test_a_second_claim_to_a_name_is_closed() -> None:
    """p1 connects to p0 twice before p2 is there: the first connection stays."""
    listener = listen(("127.0.0.1", 0))
    address = listener.getsockname()
    result: list[Any] = []
    server = threading.Thread(
        target=lambda: result.append(connect_all(Contexts(identity("p0"), PINNED), NAMES, "p0", {}, listener, 10))
    )
    server.start()
    client = Contexts(identity("p1"), PINNED).client
    first = client.wrap_socket(socket.create_connection(address))
    time.sleep(0.2)
    second = client.wrap_socket(socket.create_connection(address))
    second.settimeout(5)
    assert second.recv(1) == b""
    third = Contexts(identity("p2"), PINNED).client.wrap_socket(socket.create_connection(address))
    server.join(10)
    result[0]["p1"].sendall(b"x")
    first.settimeout(5)
    assert first.recv(1) == b"+" and first.recv(1) == b"x"
    for connection in (first, second, third, *result[0].values()):
        connection.close()


@pytest.mark.parametrize("evicted", [1, 3])
def test_who_is_dropped_behind_its_own_handshake_calls_again(evicted: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """In TLS 1.3 the caller is done first: a door that gives up just then must not leave it with a dead connection."""
    dropped: list[ssl.SSLSocket] = []
    real = Door.__init__

    def crowded(self: Door, listener: socket.socket, context: ssl.SSLContext, arrived: Any, refused: Any) -> None:
        def evict(connection: ssl.SSLSocket) -> None:
            if len(dropped) < evicted:
                dropped.append(connection)
                connection.close()
            else:
                arrived(connection)

        real(self, listener, context, evict, refused)

    monkeypatch.setattr(Door, "__init__", crowded)
    start = time.monotonic()
    found = connected(identities={name: identity(name) for name in NAMES}, seconds=10, talk=True)
    assert len(dropped) == evicted
    assert {name: set(links) for name, links in found.items()} == {name: set(NAMES) - {name} for name in NAMES}
    assert time.monotonic() - start < 8, "nobody waited for a deadline"


def test_a_caller_that_comes_too_late_has_no_connection() -> None:
    """Its handshake succeeds at a door whose owner has just found that somebody is missing."""
    listener = listen(("127.0.0.1", 0))
    accepted: list[ssl.SSLSocket] = []

    def turn_away(connection: ssl.SSLSocket) -> None:
        accepted.append(connection)
        connection.close()

    door = Door(listener, Contexts(identity("p0"), PINNED).server, turn_away, lambda error: None)
    addresses = {"p0": listener.getsockname()}
    with pytest.raises(PeerError, match=r"^p0 \(.*\) did not answer; .*\(0\.8 s passed\)"):
        connect_all(Contexts(identity("p1"), PINNED), ("p0", "p1"), "p1", addresses, listen(("127.0.0.1", 0)), 0.8)
    door.close()
    assert len(accepted) > 1


def test_who_listens_and_knows_another_certificate_of_ours_is_named(forged: Identity) -> None:
    """p1 shows p0 another certificate than p0 lists."""
    found = connected(identities={"p0": identity("p0"), "p1": forged, "p2": identity("p2")})
    assert re.match(
        r"p0 \(.*\) refuses our certificate, its job file lists another; send it the present", str(found["p1"])
    )


def test_a_fingerprint_is_the_certificates() -> None:
    der = ssl.PEM_cert_to_DER_cert(keys("p0")[1].read_text())
    assert fingerprint(keys("p0")[1]) == hashlib.sha256(der).hexdigest()
    with pytest.raises(InputError, match="cannot be read as PEM"):
        fingerprint(keys("p0")[0])


def test_a_taken_port_and_a_wrong_key_are_one_line() -> None:
    with listen(("127.0.0.1", 0)) as listener, pytest.raises(InputError, match="cannot listen there"):
        listen(listener.getsockname())
    with pytest.raises(InputError) as caught:
        Contexts(Identity("p0", keys("p1")[0], keys("p0")[1]), PINNED)
    assert "\n" not in str(caught.value)

"""Brings one participant into a job: connect to everybody, compare public facts, agree on keys."""

from __future__ import annotations

import socket
from collections.abc import Mapping

from smpc.cast import Cast
from smpc.engine.connect import connect_all
from smpc.engine.handshake import Agreement, shake_hands
from smpc.engine.link import Link
from smpc.engine.network import Network, Tap
from smpc.engine.recorder import Recorder
from smpc.engine.tls import Address, Contexts

PATIENCE = 3600.0  # seconds, for a peer that is alive and does not do what is due, its goodbye included


def join(
    cast: Cast,
    contexts: Contexts,
    addresses: Mapping[str, Address],
    listener: socket.socket,
    facts: Mapping[str, str],
    *,
    deadline: float,
    start_deadline: float,
    tap: Tap | None = None,
    recorder: Recorder | None = None,
) -> tuple[Network, Agreement]:
    """The open network and what the handshake agreed. Raises PeerError or InputError, one line each.

    `facts` are public and must be equal wherever two participants state the same key. `listener` is taken over.
    """
    connections = connect_all(contexts, cast.everyone, contexts.me, addresses, listener, start_deadline)
    links = {name: Link(name, connection) for name, connection in connections.items()}
    # whoever sends heartbeats has found everybody: its hello is due at once
    network = Network(
        contexts.me, cast.everyone, links, deadline=deadline, patience=deadline, tap=tap, recorder=recorder
    )
    try:
        agreement = shake_hands(network, facts)
    except BaseException as error:
        network.abort(error)
        raise
    network.patience = PATIENCE
    return network, agreement

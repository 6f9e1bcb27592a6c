from __future__ import annotations

import socket

from tests.bench.sockets import traffic


def test_counts_are_exact_in_both_directions_on_one_connection() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as listener,
        socket.create_connection(listener.getsockname()) as near,
        listener.accept()[0] as far,
    ):
        for chunk in (1, 1000, 30_000):
            near.sendall(bytes(chunk))
            far.recv(chunk, socket.MSG_WAITALL)
        far.sendall(bytes(77))
        near.recv(77, socket.MSG_WAITALL)
        ends = {connection.local: connection for connection in traffic()}

        mine, other = ends[near.getsockname()], ends[far.getsockname()]
        assert (mine.sent, mine.received) == (other.received, other.sent) == (31_001, 77)
        assert mine.remote == other.local

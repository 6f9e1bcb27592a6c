"""Bytes of this process's TCP connections as the kernel counts them, whatever library opened them (Linux)."""

from __future__ import annotations

import os
import socket
import stat
import struct
from dataclasses import dataclass

_BYTES_RECEIVED = 128  # offsets in the kernel's struct tcp_info (uapi linux/tcp.h)
_BYTES_SENT = 200  # of payload, with what was sent again; since Linux 4.19
_BYTES_RESENT = 208
_SIZE = 216


@dataclass(frozen=True)
class Traffic:
    """One connection: its end in this process, its other end, payload bytes sent and received since it was opened."""

    local: tuple[str, int]
    remote: tuple[str, int]
    sent: int
    received: int


def traffic() -> list[Traffic]:
    """All connected TCP sockets of this process. Raises OSError where the kernel is too old to count."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            duplicate = os.dup(int(name))
        except OSError:  # the listing's own descriptor is gone by now
            continue
        if not stat.S_ISSOCK(os.fstat(duplicate).st_mode):
            os.close(duplicate)
            continue
        with socket.socket(fileno=duplicate) as connection:
            if connection.family not in (socket.AF_INET, socket.AF_INET6) or connection.type != socket.SOCK_STREAM:
                continue
            try:
                remote = connection.getpeername()[:2]
            except OSError:  # listening
                continue
            info = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _SIZE)
            if len(info) < _SIZE:
                raise OSError("this kernel's TCP_INFO has no byte counters (Linux 4.19 has them)")
            (received,) = struct.unpack_from("=Q", info, _BYTES_RECEIVED)
            sent, resent = (struct.unpack_from("=Q", info, at)[0] for at in (_BYTES_SENT, _BYTES_RESENT))
            found.append(Traffic(connection.getsockname()[:2], remote, sent - resent, received))
    return found

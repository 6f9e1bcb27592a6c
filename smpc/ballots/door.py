"""A voter's way to the compute parties: doors that open again where a connection is lost, and receipts from all."""

from __future__ import annotations

import random
import socket
import ssl
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from smpc.ballots.envelope import Envelope
from smpc.ballots.wire import GREETING, RECEIPT, SLOWEST, ballot_bytes, exactly, send_at_once
from smpc.engine.tls import Address, certificate_der
from smpc.errors import InputError, PeerError, printable

_ANSWER_SECONDS = 30.0
_FIRST_WAIT, _LONGEST_WAIT = 0.2, 3.0
_CHANCE = random.SystemRandom()


class Door:
    """One compute party's. Raises PeerError with one line where it cannot be had within `seconds`."""

    def __init__(self, party: str, address: Address, certificate: Path, *, seconds: float) -> None:
        self.party = party
        self._address = address
        self._end = time.monotonic() + seconds
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        self._context.minimum_version = ssl.TLSVersion.TLSv1_3
        self._context.check_hostname = False  # the certificate itself is pinned, not a host name
        self._pinned = certificate_der(certificate)
        self._context.load_verify_locations(cadata=self._pinned)
        self.job, self.run, self.closed = self._connect()

    def _connect(self) -> tuple[bytes, bytes, bool]:
        """The party's greeting: its job, its run, and whether the vote is closed."""
        wait = _FIRST_WAIT
        while True:
            try:
                raw = socket.create_connection(self._address, timeout=_ANSWER_SECONDS)
                send_at_once(raw)
                self._connection = self._context.wrap_socket(raw)
                if self._connection.getpeercert(binary_form=True) != self._pinned:
                    self.close()
                    raise self._other_certificate()
                end = time.monotonic() + _ANSWER_SECONDS
                job, run, closed = GREETING.unpack(exactly(self._connection, GREETING.size, end))
                return job, run, closed
            except ssl.SSLCertVerificationError:
                raise self._other_certificate() from None
            except (OSError, EOFError) as error:  # it may not be listening yet, or be full
                if time.monotonic() > self._end:
                    reason = getattr(error, "strerror", None) or str(error) or "it hung up"
                    host, port = self._address[:2]
                    raise PeerError(f"{self.party} ({host} port {port}) takes no ballots ({reason})") from None
                time.sleep(wait * _CHANCE.uniform(0.5, 1))  # so that voters who were sent away do not come back at once
                wait = min(2 * wait, _LONGEST_WAIT)

    def _other_certificate(self) -> PeerError:
        return PeerError(f"{self.party} shows another certificate than the job lists; correct the job file")

    def put(self, envelope: Envelope) -> str:
        """Hand in a ballot; the receipt. The same ballot is sent again where the connection is lost before that.

        Raises InputError with the party's reason where it is refused, PeerError where time is out.
        """
        data = ballot_bytes(envelope)
        patience = _ANSWER_SECONDS + len(data) / SLOWEST
        while True:
            try:
                self._connection.settimeout(patience)
                self._connection.sendall(data)
                end = time.monotonic() + patience
                kept, length = RECEIPT.unpack(exactly(self._connection, RECEIPT.size, end))
                text = exactly(self._connection, length, end).decode(errors="replace")
                break
            except (OSError, EOFError):
                self.close()
                if time.monotonic() > self._end:
                    raise PeerError(f"{self.party} gave no receipt before the connection was lost") from None
                self._connect_again()
        line = printable(text)
        if not kept:
            raise InputError(f"{self.party}: {line}")
        return f"{self.party}: {line}"

    def _connect_again(self) -> None:
        job, run, self.closed = self._connect()
        if (job, run) != (self.job, self.run):
            raise PeerError(f"{self.party} has begun another run, which needs another ballot")

    def close(self) -> None:
        self._connection.close()


def open_doors(addresses: Mapping[str, Address], certificates: Mapping[str, Path], *, seconds: float) -> list[Door]:
    """All compute parties', for the same run. Raises PeerError with one line that names those that fail."""
    doors: list[Door] = []
    failures: list[str] = []
    end = time.monotonic() + seconds
    for party, address in addresses.items():
        try:
            doors.append(Door(party, address, certificates[party], seconds=end - time.monotonic()))
        except PeerError as error:
            failures.append(str(error))
    if not failures and len({door.run for door in doors}) > 1:
        failures.append(f"{' and '.join(addresses)} are in different runs of the job")
    if failures:
        for door in doors:
            door.close()
        raise PeerError(f"{'; '.join(failures)}; nothing was sent: vote while the job runs")
    return doors


def hand_in(ballot: Mapping[str, Envelope], doors: Sequence[Door]) -> list[str]:
    """One voter's ballot to all compute parties; their receipts.

    One after the other, until one fails, the first party last: it counts what it has, and a ballot that is not yet
    everywhere can be sent again. Of two ballots of one voter the one that is first at the first party asked wins, since
    all voters ask in this order. Raises one line that says whose receipts came (the party that failed may have the
    ballot all the same): InputError where it is refused, else PeerError.
    """
    first, *others = doors
    receipts: dict[str, str] = {}
    for door in (*others, first):
        try:
            receipts[door.party] = door.put(ballot[door.party])
        except InputError as error:
            raise InputError(f"{_so_far(receipts)}{error}") from None
        except PeerError as error:
            raise PeerError(
                f"{_so_far(receipts)}{error}; run the same command again: in the same run it sends the same ballot"
            ) from None
    return [receipts[door.party] for door in doors]


def _so_far(receipts: Mapping[str, str]) -> str:
    return f"the ballot counts when all have it; receipts so far: {' and '.join(receipts)}; " if receipts else ""

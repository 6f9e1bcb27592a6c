"""A party and its table in a job: read before any connection, charged and compared before any of it is used."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Sequence

import numpy as np

from launch.jobfile.parties import PartySpec
from launch.tables.table import Table, read_table
from launch.terminal import tell
from mechanisms.guarantee import Guarantee
from mechanisms.ledger import Ledger
from protocols.schema import Floats
from smpc.cast import Cast
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.errors import PeerError
from smpc.values import Held

SAME_IDS = "keep the same people in all tables, each id written alike ('0017' is not '17', nor '17.0')"


def own_table(parties: Sequence[PartySpec], me: str, *, clip: bool | None) -> Table | None:
    """The table of the party `me`; None for a participant without one."""
    for spec in parties:
        if spec.name == me:
            table = read_table(spec, clip=clip)
            for column, count in table.clipped.items():
                tell(f"{me}: {count} values of {column} were clipped to its bounds")
            if table.alike:
                tell(
                    f"{me}: {table.alike} ids of {spec.id} differ from others in zeros in front only; one person needs "
                    "one row, or noise hides less of it"
                )
            return table
    return None


def agreed_rows(agreement: Agreement) -> int:
    """How many rows the parties' tables have, as the handshake found it."""
    try:
        return int(agreement.facts["rows"])
    except (KeyError, ValueError):
        raise PeerError("the parties did not state their rows; is everybody's software the same?") from None


def unnamed(parties: Sequence[PartySpec], *, dealer: bool) -> Cast:
    """A cast before the participants beside the parties have names."""
    return Cast(tuple(party.name for party in parties), "the server", "the dealer" if dealer else None)


def check_affordable(parties: Sequence[PartySpec], me: str, guarantee: Guarantee, *, collusion: int) -> None:
    """Raises BudgetError, before any connection, for a release that the party's ledger would refuse."""
    for spec in parties:
        if spec.name == me and spec.ledger is not None:
            Ledger(spec.ledger).check(spec.data_set, guarantee.worst(collusion))


def charge(parties: Sequence[PartySpec], me: str, guarantee: Guarantee, *, collusion: int, job: str) -> None:
    """Charge the release to the party's ledger before anything of its data is sent. Raises BudgetError over the cap.

    The charge is the worst row with at most `collusion` parties.
    """
    for spec in parties:
        if spec.name != me:
            continue
        if spec.ledger is None:
            tell(f"{me}: no ledger in the job file: nobody keeps count of releases of {spec.table.name}")
            return
        account = Ledger(spec.ledger).reserve(spec.data_set, guarantee.worst(collusion), job=job)
        tell(f"{me}: {account}")


def admit(
    parties: Sequence[PartySpec],
    cast: Cast,
    network: Network,
    agreement: Agreement,
    table: Table | None,
    guarantee: Guarantee,
    *,
    job: str,
) -> None:
    """Ids are compared before the release is charged, and both before anything of the tables is sent."""
    if table is not None:
        compare_ids(network, agreement, cast, table)
    charge(parties, network.me, guarantee, collusion=cast.tolerated, job=job)


def compare_ids(network: Network, agreement: Agreement, cast: Cast, table: Table) -> None:
    """Refuse rows that are not the same people in the same order. Server and dealer learn nothing of it.

    Each party tells each other party a keyed digest of its ids. The key is the two's alone, new in every job and
    another one for each direction: nobody can send a digest back. A peer whose ids are the same learns that. One whose
    ids differ can try guesses of the whole list against the digest.
    """
    network.step = "row ids"
    others = [name for name in cast.parties if name != network.me]
    for name in others:
        mine = keyed_digest(agreement.key(name, "ids of", network.me), table)
        network.send(name, "row ids", np.frombuffer(mine, dtype=np.uint8))
    for name in others:
        theirs = network.receive(name, "row ids", np.uint8, (32,)).tobytes()
        if not hmac.compare_digest(theirs, keyed_digest(agreement.key(name, "ids of", name), table)):
            raise PeerError(f"{network.me} and {name} do not hold the same ids: {SAME_IDS}")


def keyed_digest(key: bytes, table: Table) -> bytes:
    """A digest of the table's ids, in their order."""
    digest = hmac.new(key, digestmod=hashlib.sha256)
    for start in range(0, len(table.ids), 1 << 14):  # piece by piece: the ids as Python strings would be a second table
        piece = [str(value) for value in table.ids[start : start + (1 << 14)].to_pylist()]
        digest.update(json.dumps(piece).encode())
    return digest.digest()


def held_tables(parties: Sequence[PartySpec], me: str, table: Table | None) -> dict[str, Held[Floats]]:
    """Every party's columns as this process has them: its own, and the others' as handles."""
    return {
        spec.name: Held(spec.name, table.columns if table is not None and spec.name == me else None) for spec in parties
    }

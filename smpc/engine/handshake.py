"""The first messages of a job: public facts compared, one nonce for all, one key for every two participants."""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Mapping
from dataclasses import dataclass

from smpc.engine import public_json
from smpc.engine.network import Network
from smpc.errors import PeerError, printable

MAX_FACT_KEY = 120
MAX_FACT_VALUE = 300
_LABEL = "hello"


@dataclass(frozen=True)
class Agreement:
    """What a finished handshake leaves: the job's nonce, a secret key per peer, the facts that peers added."""

    nonce: bytes
    keys: Mapping[str, bytes]
    facts: Mapping[str, str]

    def key(self, peer: str, *purpose: object) -> bytes:
        """A 256-bit key known to this process and `peer` alone, fresh for every purpose."""
        return derive(self.keys[peer], *purpose)


def derive(key: bytes, *purpose: object) -> bytes:
    """HMAC-SHA256 of the purpose under `key`: independent keys for different purposes."""
    return hmac.new(key, repr(purpose).encode(), hashlib.sha256).digest()


def shake_hands(network: Network, facts: Mapping[str, str]) -> Agreement:
    """Exchange facts and key halves with every peer.

    Both ends contribute to a pair's key and everybody to the nonce, so no single participant fixes either. Raises
    PeerError with both sides of every public fact that differs.
    """
    halves: dict[str, bytes] = {}
    told: dict[str, dict[str, str]] = {network.me: dict(facts)}
    nonce = os.urandom(32)
    mine = {name: os.urandom(32) for name in network.peers}
    for name in network.peers:
        public_json.send(network, name, _LABEL, {"facts": dict(facts), "half": mine[name].hex(), "nonce": nonce.hex()})
    nonces = {network.me: nonce}
    for name in network.peers:
        message = public_json.receive_facts(network, name, _LABEL)
        try:
            halves[name] = bytes.fromhex(str(message["half"]))
            nonces[name] = bytes.fromhex(str(message["nonce"]))
            theirs = message["facts"]
            if len(halves[name]) != 32 or len(nonces[name]) != 32 or not isinstance(theirs, dict):
                raise ValueError
        except (KeyError, ValueError):
            raise PeerError(f"{name}: its hello is malformed; is it the same version of the software?") from None
        told[name] = {key: str(value) for key, value in theirs.items()}
    common = _compare(network, told)
    joint = hashlib.sha256(b"".join(nonces[name] for name in network.order)).digest()
    keys = {}
    for name in network.peers:
        first, second = sorted((network.me, name), key=network.order.index)
        both = {network.me: mine[name], name: halves[name]}
        keys[name] = derive(both[first] + both[second], "pair", first, second, joint.hex())
    network.enter("handshake", joint.hex())
    return Agreement(joint, keys, common)


def _compare(network: Network, told: Mapping[str, Mapping[str, str]]) -> dict[str, str]:
    seen: dict[str, tuple[str, str]] = {}
    differences = []
    for name in network.order:
        for key, value in sorted(told[name].items()):
            first, known = seen.setdefault(key, (name, value))
            if known != value:
                mine, other = printable(known[:MAX_FACT_VALUE]), printable(value[:MAX_FACT_VALUE])
                differences.append(f"{printable(key[:MAX_FACT_KEY])}: {first} has {mine}, {name} has {other}")
    if differences:
        more = f" (and {len(differences) - 3} more)" if len(differences) > 3 else ""
        raise PeerError(f"the participants do not run the same job: {'; '.join(differences[:3])}{more}")
    return {printable(key[:MAX_FACT_KEY]): printable(value[:MAX_FACT_VALUE]) for key, (_, value) in seen.items()}

"""Split decryption of one pair's sums: party k holds x, party l holds y, nobody else can open them, nor either alone.

The server sends l the sums C of products of k's columns (G1, under X_k) and l's (G2, under Y_l). Then

step  from -> to  message              the receiver learns
1     l -> k      C + Enc(eta_l)       nothing: encrypted under y too, all three exponents fresh
2     k -> l      C + Enc(eta_l + eta_k), again fresh; u^x, v^x of it, with a proof
                                       g^(m + eta_k + eta_l), whose own eta_l it may subtract: noisy by eta_k
3     l -> server the integer          m + eta_k + eta_l

Order matters. The noise goes in before anything opens. The last re-randomisation is by the one who partially decrypts:
of products as they come, v^x is a function of k's column and of l's own randomness, with which l tests guesses of
that column (tests/attacks/test_bgn_guess.py). The proof shows l that u^x and v^x belong to k's published key; it does
not show that the server summed what was agreed: the server is honest but curious here.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from mechanisms.randomness import RandomWords
from smpc.bgn.curve import G1, GT, Elements, Encoded
from smpc.bgn.keys import SecretKey
from smpc.bgn.proofs import PROOF_BYTES, Context, Powers, prove, verify
from smpc.errors import PeerError

COMPONENTS = 4  # s, t, u, v
_PURPOSE = "partial decryption"


def read_ciphertexts(message: Encoded, count: int, *, what: str) -> Elements:
    """Level-2 ciphertexts (count, 4, words) of a received message (count, 4, 576). Raises PeerError, naming `what`.

    Cost: a check of the order for each of 4 elements, as much as two powers each.
    """
    if message.shape != (count, COMPONENTS, GT.size):
        raise PeerError(f"{what}: {message.shape} bytes, {count} ciphertexts need {(count, COMPONENTS, GT.size)}")
    return GT.decode(message, what=what)


@dataclass(frozen=True)
class Partial:
    """What k publishes: the ciphertexts it touched last and their u^x, v^x (n, words), proven."""

    ciphertexts: Elements
    u: Elements
    v: Elements
    proof: Encoded

    def encode(self) -> Encoded:
        """One message of `partial_bytes` bytes."""
        parts = (self.ciphertexts, self.u, self.v)
        return np.concatenate([*(GT.encode(part).reshape(-1) for part in parts), self.proof])

    @classmethod
    def decode(cls, message: Encoded, count: int, *, what: str) -> Partial:
        """Raises PeerError, naming `what`, for any other length and for elements that are none of GT."""
        if message.dtype != np.uint8 or message.shape != (partial_bytes(count),):
            raise PeerError(f"{what}: {message.shape} bytes, needs {partial_bytes(count)}")
        values = GT.decode(message[:-PROOF_BYTES].reshape(-1, GT.size), what=what)
        ciphertexts, u, v = np.split(values, [COMPONENTS * count, (COMPONENTS + 1) * count])
        return cls(ciphertexts.reshape(count, COMPONENTS, GT.words), u, v, message[-PROOF_BYTES:])


def partial_bytes(count: int) -> int:
    """Length of the message for `count` ciphertexts."""
    return count * (COMPONENTS + 2) * GT.size + PROOF_BYTES


def decrypt_partly(
    ciphertexts: Elements, secret: SecretKey, session: bytes, party: str, random: RandomWords
) -> Partial:
    """k's last act, on ciphertexts (n, 4, words) that it has itself made fresh. Cost: 4 powers in GT a value."""
    u, v = (GT.power(ciphertexts[:, i], secret.exponent) for i in (2, 3))
    statement = _statement(ciphertexts, secret.public, u, v)
    return Partial(ciphertexts, u, v, prove(secret.exponent, statement, Context(session, party, _PURPOSE), random))


def finish(partial: Partial, key: Elements, secret: SecretKey, session: bytes, party: str) -> Elements:
    """l's half: g^m (n, words) from `party`'s partial decryption under its published `key`. Cost: 5 powers a value.

    Raises PeerError that names the party if the proof does not hold.
    """
    statement = _statement(partial.ciphertexts, key, partial.u, partial.v)
    if not verify(partial.proof, statement, Context(session, party, _PURPOSE)):
        raise PeerError(f"{party}: its partial decryption is not by its published key; the party is faulty or cheats")
    s, t = partial.ciphertexts[:, 0], partial.ciphertexts[:, 1]
    masks = GT.power(GT.op(partial.v, GT.inverse(t)), secret.exponent)
    return GT.op(GT.op(s, GT.inverse(partial.u)), masks)


def _statement(ciphertexts: Elements, key: Elements, u: Elements, v: Elements) -> list[Powers]:
    bases = np.concatenate([ciphertexts[:, 2], ciphertexts[:, 3]])
    return [Powers(G1, G1.generator[None], key[None]), Powers(GT, bases, np.concatenate([u, v]))]

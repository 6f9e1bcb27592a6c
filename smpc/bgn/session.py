"""The session on pairing-based encryption: no dealer, an untrusted server that multiplies ciphertexts.

`protocols.functional` runs on it unchanged. With noise on shares, what travels is

step  from -> to      message             the receiver learns
1     P_k -> P_l      keys                P_k's public keys, proven
2     P_k -> server   encrypted columns   nothing: encrypted under P_k's own keys
3     server -> P_l   encrypted sums      nothing: under P_k's key too
4     P_l -> P_k      noisy sums          nothing: under P_l's key too, made fresh, with P_l's noise
5     P_k -> P_l      partial decryption  the sums of their columns' products with both noises, epsilon-DP
6     P_k -> server   noisy coefficients  the same, and each party's own ones with its noise
7     server -> all   model               post-processing of step 6

So the server with any parties learns, of two others, what it is told in step 6; of a party and one of them, values
with the other's full draw. `ASSUMPTIONS` says what this rests on; a server that hands out a multiple of a ciphertext
instead of the agreed sum is outside the model. A value opened `unprotected` is seen by its pair's second party, too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt

from mechanisms.discrete_gaussian import DiscreteGaussian
from mechanisms.discrete_laplace import DiscreteLaplace
from mechanisms.joint_laplace import JointLaplace
from mechanisms.randomness import RandomWords, SecureRandom
from smpc.bgn.curve import G1, G2, Elements, Group
from smpc.bgn.dlog import OVERFLOW, window
from smpc.bgn.entries import BoundedNoise, Entries, Pair
from smpc.bgn.keys import SecretKey, key_bytes, read_key
from smpc.bgn.opening import NOISY, PARTIAL, SUMS, Opener, opening_bytes, serve
from smpc.bgn.scheme import Encryptor
from smpc.bgn.upload import ENCRYPTED, groups_of, multiply, upload, upload_bytes
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.session import CryptenSession
from smpc.errors import InputError
from smpc.products import MASKED, ProductPlan, own_gram
from smpc.ring import Integers
from smpc.session import Cast, Held, Mechanism, Noise, Shared, value_of
from smpc.transcript import DEALER, OTHER_PARTY, PARTY, SERVER

ASSUMPTIONS = (  # of a release on this backend, for its guarantee, instead of those on a dealer
    "the server sums the ciphertexts it was given: partial decryptions are proven, sums are not",
    "SXDH, and DDH in GT, hold on BLS12-381",
    "a value leaves its decryption window with probability at most 2^-40 in all, and the release then fails",
)
KEYS = "keys"
_VALUES = "values"


class BgnSession(CryptenSession):
    """One participant's session: what is local, sent or published goes as there; products and openings do not.

    `random` is the source of noise (for tests); keys and encryption always use the operating system's.
    """

    def __init__(
        self, cast: Cast, network: Network, agreement: Agreement, *, random: RandomWords | None = None
    ) -> None:
        if cast.dealer is not None:
            raise InputError(f"dealer = {cast.dealer!r}: the bgn backend has none; leave it out of the cast")
        super().__init__(cast, network, agreement, random=random)
        self._secure = SecureRandom()
        self._noises = self._openings = self._tail = 0
        self._opener: Opener | None = None
        self._encryptors: dict[Group, Encryptor] = {}

    # noise that is known to stay in a window

    def draw_noise(self, mechanism: Mechanism, contributors: Mapping[str, npt.NDArray[np.bool_]]) -> BoundedNoise:
        """As in every session; the mechanism has to have a tail bound of its own for each coordinate.

        The n-th noise of a session may exceed its bound with probability 2^-n times the session's 2^-40.
        """
        if not isinstance(mechanism, DiscreteLaplace | DiscreteGaussian):
            raise InputError(f"mechanism = {mechanism}: the bgn backend adds discrete Laplace or Gaussian noise only")
        noise = super().draw_noise(mechanism, contributors)
        counts = np.add.reduce([mask.astype(np.int64) for mask in contributors.values()])
        self._noises += 1
        tail = int(counts.max()) * mechanism.tail(OVERFLOW / 2**self._noises / int(counts.sum()))
        self._tail = max(self._tail, tail)
        return BoundedNoise(noise.size, noise.draws, contributors, tail)

    # products

    def inner(self, x: Held[Integers], y: Held[Integers], *, rows: int, widths: tuple[int, int], bits: int) -> Shared:
        """As in every session, for values up to 2^bits in size: decryption needs the bound."""
        self._one = 1 << bits
        return super().inner(x, y, rows=rows, widths=widths, bits=bits)

    def _gram(self, columns: Mapping[str, Held[Integers]], rows: int, widths: Mapping[str, int], one: int) -> Entries:
        sums = self._multiply(ProductPlan.gram(rows, widths), columns, one)
        local = own_gram(widths, self.me, value_of(columns[self.me]) if self.me in widths else None, one)
        local[0, 0] = rows * one * one
        return Entries.of_gram(self.cast.parties, widths, local, sums, rows * one * one)

    def _inner(self, x: Held[Integers], y: Held[Integers], rows: int, widths: tuple[int, int]) -> Entries:
        pair = (x.holder, y.holder)
        plan = ProductPlan(rows, dict(zip(pair, widths, strict=True)), (pair,))
        sums = self._multiply(plan, {x.holder: x, y.holder: y}, self._one)
        return Entries.of_pair(self.cast.parties, pair, widths, sums, rows * self._one**2)

    def _multiply(self, plan: ProductPlan, columns: Mapping[str, Held[Integers]], one: int) -> Mapping[Pair, Elements]:
        """The sums of all pairs, at the server only. What could not be decrypted is refused before it is encrypted."""
        window(plan.rows, one.bit_length() - 1, self._tail)
        if self._opener is None:
            self._opener = self._exchange_keys()
        if self.me == self.cast.server:
            with self.phase("multiply"):
                return multiply(self.network, plan)
        if self.me in plan.widths:
            own = value_of(columns[self.me])
            if own.shape != (plan.widths[self.me], plan.rows) or np.any((own > one) | (own < -one)):
                raise InputError(f"{self.me}: columns must be {plan.widths[self.me]} x {plan.rows} within +-{one}")
            with (
                self.counted("product", upload_bytes(plan, self.me), [self.cast.server]),
                self.phase("encrypt"),
            ):
                encryptors = {group: self._encryptor(group) for group in groups_of(plan, self.me)}
                upload(self.network, self.cast.server, plan, own, encryptors, self._secure)
        return {}

    def _encryptor(self, group: Group) -> Encryptor:
        if group not in self._encryptors and self._opener is not None:
            self._encryptors[group] = Encryptor(group, self._opener.secrets[group].public)
        return self._encryptors[group]

    def _exchange_keys(self) -> Opener:
        """Every party sends every other one its public keys, proven; once a session."""
        others = [name for name in self.cast.parties if name != self.me]
        groups = (G1, G2)
        if not self.is_party:
            return Opener(self.network, self.cast.server, {}, {}, self._secure)
        secrets = {group: SecretKey.make(group, self._secure) for group in groups}
        session = self._agreement.nonce
        message = np.concatenate([secrets[group].publish(session, self.me, self._secure) for group in groups])
        for name in others:
            self.network.send(name, KEYS, message)
        public = {self.me: {group: secrets[group].public for group in groups}}
        for name in others:
            received = self.network.receive(name, KEYS, np.uint8, message.shape).view(np.uint8)
            parts = dict(zip(groups, np.split(received, [key_bytes(G1)]), strict=True))
            public[name] = {group: read_key(group, part, session, name) for group, part in parts.items()}
        return Opener(self.network, self.cast.server, secrets, public, self._secure)

    # values by holder

    def _share(self, held: Held[Integers], shape: tuple[int, ...]) -> Entries:
        local = value_of(held).reshape(shape) if held.holder == self.me else np.zeros(shape, np.int64)
        return Entries.of_party(self.cast.parties, held.holder, local)

    def _take(self, share: Entries, index: tuple[npt.NDArray[np.intp], ...], times: Integers | int) -> Entries:
        return share.take(index, times)

    def _add_noise(self, share: Entries, noise: Noise) -> Entries:
        if not isinstance(noise, BoundedNoise):
            raise InputError("noise of another session: draw it with this one")
        return share.with_noise(noise)

    def _total(self, shares: Sequence[Entries]) -> Entries:
        raise _unsupported("total")

    def _add_joint_noise(self, shared: Shared, mechanism: JointLaplace) -> Entries:
        raise _unsupported("add_joint_noise")

    def _check_zero(self, shared: Shared) -> bool:
        raise _unsupported("check_zero")

    # opening

    def reveal(self, shared: Shared, *, to: str, message: str, unprotected: bool = False) -> Held[Integers]:
        """Open to one receiver. A pair's entries are decrypted by the two; the second one sees them first.

        Cost: 4 rounds, 7 KB an entry of a pair (`opening_bytes`); the time is independent of the rows.
        """
        if (shared.noise or unprotected) and any(True for _ in shared.share.pairs()):
            self._record(SERVER, OTHER_PARTY, SUMS, (), "reveal")
            self._record(OTHER_PARTY, PARTY, NOISY, (), "reveal", shared.noise)
            self._record(PARTY, OTHER_PARTY, PARTIAL, (), "reveal", shared.noise)
        return super().reveal(shared, to=to, message=message, unprotected=unprotected)

    def _reveal(self, shared: Shared, to: str) -> Held[Integers]:
        entries: Entries = shared.share
        shape, entries = shared.shape, entries.flat()
        self._openings += 1
        values = np.zeros(entries.local.shape, np.int64)
        if self.is_party:
            values = self._open(entries)
        elif self.me == self.cast.server:
            serve(self.network, entries)
        for name in self.cast.parties:
            places = entries.output_by(name)
            if not places.size or name == to:
                continue
            if name == self.me:
                self.network.send(to, _VALUES, values[places])
            elif to == self.me:
                values[places] = self.network.receive(name, _VALUES, np.int64, places.shape)
        return Held(to, values.reshape(shape) if to == self.me else None)

    def _open(self, entries: Entries) -> Integers:
        """The values that this party is to tell."""
        own = entries.noise.draws.get(self.me) if entries.noise else None
        # without keys nothing was multiplied: every entry is its holder's own
        opener = self._opener or Opener(self.network, self.cast.server, {}, {}, self._secure)
        others = [name for name in self.cast.parties if name != self.me]
        session = self._agreement.nonce + self._openings.to_bytes(8, "big")
        predicted = opening_bytes((((k, l), len(places)) for k, l, places in entries.pairs()), self.me)
        with self.counted("opening", predicted, others):
            return opener.open(entries, None if own is None else value_of(own), session)

    # what is recorded

    def _record(
        self, sender: str, receiver: str, message: str, shape: tuple[int, ...], verb: str, noise: tuple[str, ...] = ()
    ) -> None:
        """There is no dealer, and columns go encrypted to the server where other sessions mask them for each other."""
        if sender == DEALER:
            return
        if message == MASKED:
            if self._opener is None:
                super()._record(PARTY, OTHER_PARTY, KEYS, (), verb)
            receiver, message = SERVER, ENCRYPTED
        super()._record(sender, receiver, message, shape, verb, noise)


def _unsupported(verb: str) -> InputError:
    return InputError(
        f"{verb}: the bgn backend opens each party's and each pair's values, with noise of their holders, and computes "
        "nothing else on them; choose backend = 'crypten'"
    )

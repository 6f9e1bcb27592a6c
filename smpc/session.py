"""The verbs in which protocols are written. One script, the same text for every participant and every backend.

Every value has a holder. A step that reads what another party holds raises HolderError in all backends, so a plain
unit test in one process finds a protocol that reads what it may not.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from fractions import Fraction
from time import perf_counter
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from mechanisms.joint_laplace import JointLaplace
from mechanisms.randomness import RandomWords
from smpc.cast import Cast
from smpc.errors import HolderError, InputError, UnprotectedError
from smpc.fixedpoint import check_sum
from smpc.products import MASKED
from smpc.ring import Integers
from smpc.transcript import ALL, COMMITMENT, DEALER, ECHO, OPENING, OTHER_PARTY, PARTY, SERVER, Message, Transcript
from smpc.values import Held, Noise, Posted, Shared, check_holder

T = TypeVar("T")
MASKED_ENTRIES = "masked entries"
MASKED_COMPARISONS = "masked comparisons"
JOINT = "joint"  # stands where a contributor's name would: everybody made this noise, nobody knows it


class Mechanism(Protocol):
    """What `draw_noise` needs of a mechanism: exact integers in ring units."""

    def draw(self, count: int, random: RandomWords) -> Integers: ...


class Session(ABC):
    """A running job. Subclasses say where local functions run and how shares are made, multiplied and opened."""

    def __init__(self, cast: Cast) -> None:
        self.cast = cast
        self.transcript = Transcript()
        self.seconds: dict[str, float] = {}
        self._within = 0.0  # seconds of the phases that have ended within the current one

    def agree(self, what: str, *public: object) -> None:
        """Stop everybody whose public numbers are not the same, before anything follows from them. Cost: none.

        They enter what each message says of its sender's steps, so the first message of another plan is refused.
        """
        self._enter(f"{what}: {public!r}", ())

    # local computation

    def at(self, party: str, f: Callable[..., T], *args: Any) -> Held[T]:
        """Run f(*args) in `party`'s process only. Arguments may be, or contain, values that `party` holds."""
        self._known(party)
        for argument in args:
            check_holder(party, argument)
        with self.phase("local"):
            return self._at(party, f, args)

    # joint computation

    def gram(self, columns: Mapping[str, Held[Integers]], *, rows: int, widths: Mapping[str, int], bits: int) -> Shared:
        """Shares of the exact Gram matrix of all parties' integer columns (each held as (width, rows)).

        A column of ones comes first, then each party's columns in the order of `widths`: shape (1 + D, 1 + D). A one
        stands as 2^bits, as in the columns, and the result has 2 * bits fraction bits. Method: `smpc.products`.

        Cost: 1 round; each party sends 8 rows width (K - 1) bytes and framing (`smpc.cost.product_bytes`, compared with
        the sockets after every run); from the dealer, 8 widths[k] widths[l] bytes for each pair, in parallel.
        """
        for party, held in columns.items():
            check_holder(party, held)
        if list(columns) != list(widths) or list(widths) != [p for p in self.cast.parties if p in widths]:
            raise InputError(f"columns {list(columns)} and widths {list(widths)} must name the parties in their order")
        check_sum(rows, Fraction(1), bits, 0)
        self._record(DEALER, PARTY, "corrections", (), "gram")
        self._record(PARTY, OTHER_PARTY, MASKED, (rows,), "gram")
        with self.phase("product"):
            share = self._gram(columns, rows, widths, 1 << bits)
        size = 1 + sum(widths.values())
        return Shared((size, size), 2 * bits, share)

    def inner(self, x: Held[Integers], y: Held[Integers], *, rows: int, widths: tuple[int, int], bits: int) -> Shared:
        """Shares of the exact inner products of two parties' integer columns: (a, rows) with (b, rows) gives (a, b).

        The result has 2 * bits fraction bits. Method and cost: as `gram`, for one pair.
        """
        for held in (x, y):
            self._party(held.holder)
        if x.holder == y.holder:
            raise InputError(f"{x.holder} holds both factors: compute their product locally with `at`")
        self._record(DEALER, PARTY, "corrections", (), "inner")
        self._record(PARTY, OTHER_PARTY, MASKED, (rows,), "inner")
        with self.phase("product"):
            return Shared(widths, 2 * bits, self._inner(x, y, rows, widths, 1 << bits))

    def share(self, held: Held[Integers], shape: Sequence[int], *, bits: int = 0) -> Shared:
        """Secret-share integers (value * 2^bits) between all parties. Cost: none, masks come from the pairs' keys."""
        self._party(held.holder)
        with self.phase("share"):
            return Shared(tuple(shape), bits, self._share(held, tuple(shape)))

    def total(self, shared: Sequence[Shared]) -> Shared:
        """The sum of shared arrays of one shape and scale; noise on any of them is noise on the sum."""
        first = shared[0]
        if any((other.shape, other.fraction_bits) != (first.shape, first.fraction_bits) for other in shared):
            raise InputError("a total needs arrays of one shape and one scale")
        noise = tuple(dict.fromkeys(name for other in shared for name in other.noise))
        return replace(first, share=self._total([other.share for other in shared]), noise=noise)

    def take(self, shared: Shared, *index: npt.NDArray[np.intp], times: Integers | int = 1) -> Shared:
        """The entries at a public index (one array per dimension), as a vector; each `times` a public integer."""
        if shared.noise:
            raise InputError("take entries before noise is added: each opened entry needs its own contributors")
        return Shared((len(index[0]),), shared.fraction_bits, self._take(shared.share, index, times))

    def adopt(self, shares: Mapping[str, Held[Integers]], shape: Sequence[int], *, bits: int = 0) -> Shared:
        """What an outsider secret-shared: every party holds its share already, integers of `shape`. Cost: none."""
        self._with_dealer("adopt")
        if tuple(shares) != self.cast.parties or any(held.holder != party for party, held in shares.items()):
            raise InputError(f"shares {list(shares)}: need one of each party {list(self.cast.parties)}, held by it")
        return Shared(tuple(shape), bits, self._adopt(shares))

    def linear(
        self,
        shared: Shared,
        f: Callable[..., Integers],
        shape: Sequence[int],
        *common: Mapping[str, Held[Any]],
        bits: int = 0,
    ) -> Shared:
        """f(shared), f integer-linear and public: every party applies it to its own share. Cost: none.

        The result has `shape` and `bits` more fraction bits. `common`: further arguments of f that all parties hold
        alike, as a tossed seed.
        """
        if shared.noise:
            raise InputError("a linear function is taken before noise is added: each entry needs its own contributors")
        with self.phase("local"):
            return Shared(tuple(shape), shared.fraction_bits + bits, self._linear(shared.share, f, common))

    def square(self, shared: Shared) -> Shared:
        """Every entry squared, exactly mod 2^64. Cost: 1 round, 8 bytes an entry to each party and from the dealer."""
        self._with_dealer("square")
        self._record(DEALER, PARTY, "corrections", (), "square")
        self._record(PARTY, OTHER_PARTY, MASKED_ENTRIES, shared.shape, "square")
        with self.phase("square"):
            return Shared(shared.shape, 2 * shared.fraction_bits, self._square(shared))

    def argmax(self, shared: Shared) -> Shared:
        """The row of the largest entry of each column, the first of equal ones: shape (rows, n) gives (n,).

        Entries differ by less than 2^63. By CrypTen's comparisons on shares; cost: 12 rounds and 248 n bytes to each
        other party for each row but one, with two parties; with more, `smpc.openings.comparison`.
        """
        self._with_dealer("argmax")
        self._record(DEALER, PARTY, "corrections", (), "argmax")
        self._record(PARTY, OTHER_PARTY, MASKED_COMPARISONS, shared.shape, "argmax")
        with self.phase("argmax"):
            return Shared(shared.shape[1:], 0, self._argmax(shared))

    # noise, before anything opens

    def draw_noise(self, mechanism: Mechanism, contributors: Mapping[str, npt.NDArray[np.bool_]]) -> Noise:
        """Each contributor draws its exact noise for the coordinates of its mask, from its own secure randomness.

        Called first thing in a protocol, so that the time it takes says nothing about values that meet it later.
        """
        masks = list(contributors.values())
        if not masks or not np.logical_or.reduce(masks).all():
            raise InputError("every coordinate needs a noise contributor")

        def draw(random: RandomWords, mask: npt.NDArray[np.bool_]) -> Integers:
            noise = np.zeros(mask.size, dtype=np.int64)
            noise[mask] = mechanism.draw(int(mask.sum()), random)
            return noise

        draws = {party: self.at(party, draw, self._random(party), mask) for party, mask in contributors.items()}
        return Noise(masks[0].size, draws)

    def add_noise(self, shared: Shared, noise: Noise) -> Shared:
        """Every contributor adds its draws to its own share; exact in the ring, before anything is opened."""
        if shared.shape != (noise.size,):
            raise InputError(f"noise for {noise.size} coordinates does not fit shares of shape {shared.shape}")
        if shared.noise:
            raise InputError(f"these shares carry noise of {', '.join(shared.noise)} already")
        with self.phase("noise"):
            share = self._add_noise(shared.share, noise)
        return replace(shared, share=share, noise=tuple(noise.draws))

    def add_joint_noise(self, shared: Shared, mechanism: JointLaplace) -> Shared:
        """One draw for every entry, made by all parties together on shares and known to nobody, however many collude.

        The law is finite: add `mechanism.delta(entries, epsilon)` to the guarantee. Its work depends on sizes only.
        Cost with l digits: 7 rounds, 39.5 l bytes a draw from each party to each other, draws rounded up to 64s.
        """
        if shared.noise:
            raise InputError(f"these shares carry noise of {', '.join(shared.noise)} already")
        self.agree("joint noise", mechanism, shared.shape)
        self._record(DEALER, PARTY, "corrections", (), "add_joint_noise")
        self._record(PARTY, OTHER_PARTY, "masked noise bits", shared.shape, "add_joint_noise")
        with self.phase("noise"):
            share = self._add_joint_noise(shared, mechanism)
        return replace(shared, share=share, noise=(JOINT,))

    def toss(self) -> dict[str, Held[bytes]]:
        """A fresh common seed of 32 bytes, held by every party: uniform, no K - 1 parties can foresee or choose it.

        Method: `smpc.coin_tossing`. Raises CoinTossError. Cost: 3 rounds, 193 + 129 K bytes from each to each.
        """
        for message in (COMMITMENT, ECHO, OPENING):
            self._record(PARTY, OTHER_PARTY, message, (), "toss")
        with self.phase("toss"):
            return self._toss()

    # opening and telling

    def reveal(self, shared: Shared, *, to: str, message: str, unprotected: bool = False) -> Held[Integers]:
        """Open to one receiver: everybody else sends it a freshly re-shared share. Ring integers, not rescaled.

        Without noise this needs `unprotected=True` in the protocol's text. Cost: 1 round, 8 bytes an entry from each
        party but the receiver.
        """
        if not shared.noise and not unprotected:
            raise UnprotectedError(f"'{message}' carries no noise: add it, or say unprotected=True")
        sender = PARTY if to == self.cast.server else OTHER_PARTY
        self._record(sender, self._role(to), message, shared.shape, "reveal", shared.noise)
        with self.phase("reveal"):
            return self._reveal(shared, to)

    def check_zero(self, shared: Shared, *, message: str) -> bool:
        """Whether every entry is zero: all participants learn this one bit, by CrypTen's comparisons on shares.

        Cost with two parties: 19 rounds and 432 bytes an entry to each other one (`smpc.openings.any_nonzero`).
        """
        self._with_dealer("check_zero")
        self._record(DEALER, PARTY, "corrections", (), "check_zero")
        self._record(PARTY, OTHER_PARTY, MASKED_COMPARISONS, shared.shape, "check_zero")
        self._record(PARTY, ALL, message, (), "check_zero")
        with self.phase("check_zero"):
            return self._check_zero(shared)

    def send(
        self, held: Held[npt.NDArray[Any]], *, to: str, shape: Sequence[int], message: str
    ) -> Held[npt.NDArray[Any]]:
        """Hand a plain array to one receiver. Integers of a public shape. Cost: 1 round, 8 bytes an entry."""
        self._record(*self._roles(held.holder, to), message, tuple(shape), "send")
        with self.phase("send"):
            return self._send(held, to, tuple(shape), message)

    def post(
        self,
        held: Held[npt.NDArray[Any]],
        *,
        to: str,
        shape: Sequence[int],
        message: str,
        dtype: type[np.generic] = np.int64,
    ) -> Posted:
        """Send without waiting: the receiver takes it with `collect`, in the order posted, also after other steps."""
        posted = Posted(held, to, message, tuple(shape), dtype)
        self._record(*self._roles(held.holder, to), message, posted.shape, "post")
        with self.phase("send"):
            self._post(posted)
        return posted

    def collect(self, posted: Posted) -> Held[npt.NDArray[Any]]:
        """What was posted, at its receiver, who waits for it. Cost: the round of `post`."""
        with self.phase("send"):
            return self._collect(posted)

    def publish(self, held: Held[npt.NDArray[Any]], *, shape: Sequence[int], message: str) -> npt.NDArray[np.float64]:
        """Tell an array of float64 to all parties and the server. Cost: 1 round, 8 bytes an entry to each."""
        self._record(self._role(held.holder), ALL, message, tuple(shape), "publish")
        with self.phase("publish"):
            return self._publish(held, tuple(shape), message)

    # bookkeeping

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        """Seconds spent inside are added to `seconds[name]`, those of phases within it to theirs only."""
        start, outer = perf_counter(), self._within
        self._within = 0.0
        try:
            yield
        finally:
            spent = perf_counter() - start
            self.seconds[name] = self.seconds.get(name, 0.0) + spent - self._within
            self._within = outer + spent

    def _record(
        self, sender: str, receiver: str, message: str, shape: tuple[int, ...], verb: str, noise: tuple[str, ...] = ()
    ) -> None:
        self.transcript.add(Message(verb, sender, receiver, message, shape, noise))
        self._enter(f"{verb}: {message}", shape)

    def _role(self, name: str) -> str:
        self._known(name)
        return SERVER if name == self.cast.server else self.cast.roles.get(name, PARTY)

    def _roles(self, sender: str, receiver: str) -> tuple[str, str]:
        roles = self._role(sender), self._role(receiver)
        return roles if roles != (PARTY, PARTY) else (PARTY, OTHER_PARTY)

    def _known(self, name: str) -> None:
        if name not in self.cast.parties and name != self.cast.server:
            raise HolderError(f"{name!r} holds no values here: the parties are {', '.join(self.cast.parties)}")

    def _with_dealer(self, verb: str) -> None:
        if self.cast.dealer is None:
            raise InputError(f"{verb}: works on additive shares, which need a dealer; choose backend = 'crypten'")

    def _party(self, name: str) -> None:
        if name not in self.cast.parties:
            raise HolderError(f"{name!r} is no party: only {', '.join(self.cast.parties)} hold columns and shares")

    @abstractmethod
    def _enter(self, step: str, shape: tuple[int, ...]) -> None:
        """Take note of a step that all participants take together."""

    @abstractmethod
    def _at(self, party: str, f: Callable[..., T], args: tuple[Any, ...]) -> Held[T]: ...

    @abstractmethod
    def _random(self, party: str) -> Held[RandomWords]: ...

    @abstractmethod
    def _gram(self, columns: Mapping[str, Held[Integers]], rows: int, widths: Mapping[str, int], one: int) -> Any: ...

    @abstractmethod
    def _inner(self, x: Held[Integers], y: Held[Integers], rows: int, widths: tuple[int, int], one: int) -> Any: ...

    @abstractmethod
    def _share(self, held: Held[Integers], shape: tuple[int, ...]) -> Any: ...

    @abstractmethod
    def _total(self, shares: Sequence[Any]) -> Any: ...

    @abstractmethod
    def _take(self, share: Any, index: tuple[npt.NDArray[np.intp], ...], times: Integers | int) -> Any: ...

    @abstractmethod
    def _adopt(self, shares: Mapping[str, Held[Integers]]) -> Any: ...

    @abstractmethod
    def _linear(self, share: Any, f: Callable[..., Integers], common: Sequence[Mapping[str, Held[Any]]]) -> Any: ...

    @abstractmethod
    def _square(self, shared: Shared) -> Any: ...

    @abstractmethod
    def _argmax(self, shared: Shared) -> Any: ...

    @abstractmethod
    def _add_noise(self, share: Any, noise: Noise) -> Any: ...

    @abstractmethod
    def _add_joint_noise(self, shared: Shared, mechanism: JointLaplace) -> Any: ...

    @abstractmethod
    def _toss(self) -> dict[str, Held[bytes]]: ...

    @abstractmethod
    def _reveal(self, shared: Shared, to: str) -> Held[Integers]: ...

    @abstractmethod
    def _check_zero(self, shared: Shared) -> bool: ...

    @abstractmethod
    def _send(self, held: Held[Any], to: str, shape: tuple[int, ...], message: str) -> Held[Any]: ...

    @abstractmethod
    def _post(self, posted: Posted) -> None: ...

    @abstractmethod
    def _collect(self, posted: Posted) -> Held[Any]: ...

    @abstractmethod
    def _publish(self, held: Held[Any], shape: tuple[int, ...], message: str) -> npt.NDArray[np.float64]: ...

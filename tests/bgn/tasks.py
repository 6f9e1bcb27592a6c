"""What pool processes run on the bgn session."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from mechanisms.discrete_laplace import DiscreteLaplace
from protocols.functional.options import Options
from protocols.functional.plan import Plan
from protocols.functional.protocol import fit
from protocols.schema import Floats, Schema
from smpc.bgn import linear, pair_mode, threshold_mode
from smpc.bgn.curve import GT, Group
from smpc.bgn.decrypt import Partial
from smpc.bgn.dlog import WINDOW
from smpc.bgn.entries import Entries
from smpc.bgn.modes import Keys
from smpc.bgn.session import BgnSession
from smpc.bgn.threshold import Round
from smpc.values import Held, value_of
from tests.support import held, words_of

PAIR = Keys()


def bgn(s: Any, keys: Keys = PAIR) -> BgnSession:
    """A new session on the pool's open network, with the noise words that the clear sessions of tests use."""
    return BgnSession(s.cast, s.network, s._agreement, keys, random=words_of(s.me))


def fit_on_bgn(
    pool_session: Any,
    of: Schema,
    values: Mapping[str, Floats],
    epsilon: str | None,
    noise: str,
    options: Options,
    keys: Keys = PAIR,
) -> Any:
    s = bgn(pool_session, keys)
    plan = Plan.make(of, epsilon=Fraction(epsilon) if epsilon else None, noise=noise, options=options, room=WINDOW)
    release = fit(s, held(s, values), plan)
    return release, s.transcript.steps(), s.report(), s.cost.warnings()


def gram_of(pool_session: Any, columns: Mapping[str, Any], bits: int, receiver: str, keys: Keys = PAIR) -> Any:
    s = bgn(pool_session, keys)
    widths = {name: len(column) for name, column in columns.items()}
    rows = next(iter(columns.values())).shape[1]
    gram = s.gram(held(s, columns), rows=rows, widths=widths, bits=bits)
    opened = s.reveal(gram, to=receiver, message="all of it", unprotected=True)
    s.report()
    return (value_of(opened) if s.me == receiver else None), s.cost.warnings()


def openings_of(pool_session: Any, columns: Mapping[str, Any], keys: Keys, frames: list[Any]) -> list[Any]:
    """The ciphertexts that this process received while `gram_of` ran, in order: label and elements (n, 4, 576)."""
    gram_of(pool_session, columns, 4, "server", keys)
    labels = (pair_mode.SUMS, pair_mode.NOISY, pair_mode.PARTIAL, threshold_mode.FINAL)
    seen = [(f.label, f.payload.reshape(-1)) for direction, _, f in frames if direction == "received"]
    size = 8 * 4 * GT.size
    return [(label, m[:size].reshape(8, 4, -1).copy()) for label, m in seen if label in labels and m.nbytes >= size]


def inner_of(pool_session: Any, x: Any, y: Any, names: tuple[str, str], keys: Keys) -> Any:
    s = bgn(pool_session, keys)
    factors = held(s, dict(zip(names, (x, y), strict=True)))
    rows, widths = x.shape[1], (len(x), len(y))
    product = s.inner(factors[names[0]], factors[names[1]], rows=rows, widths=widths, bits=6)
    part = s.take(product, np.array([0, widths[0] - 1]), np.array([widths[1] - 1, 0]), times=np.array([-3, 2]))
    opened = s.reveal(part, to=s.cast.server, message="two of them", unprotected=True)
    return value_of(opened) if s.me == s.cast.server else None


def refused(pool_session: Any) -> list[str]:
    """Every call that the session refuses before anything is sent; the messages."""
    s = bgn(pool_session)
    first, second = s.cast.parties[:2]
    everything, some = np.ones(2, np.bool_), np.array([True, False])
    mine = s.share(Held(first, np.array([4, 5]) if s.me == first else None), (2,))
    huge = s.draw_noise(DiscreteLaplace(Fraction(2**40)), {first: everything})
    of_another = s.draw_noise(DiscreteLaplace(Fraction(3)), {first: everything, second: some})
    ones = np.ones((1, 2), np.int64)
    columns = {name: Held(name, ones if s.me == name else None) for name in (first, second)}
    calls = (
        lambda: s.total([mine, mine]),
        lambda: s.check_zero(mine, message="zero"),
        lambda: s.add_noise(mine, of_another),
        lambda: s.gram(columns, rows=2, widths={first: 1, second: 1}, bits=3),
        lambda: s.draw_noise(_NoTail(), {first: everything}),
        lambda: s.linear(mine, np.negative, (2,)),
    )
    messages = []
    for call in calls:
        try:
            call()
        except Exception as error:
            messages.append(f"{type(error).__name__}: {error}")
        else:
            messages.append("accepted")
    noisy = s.add_noise(mine, huge)  # of its holder: that is fine
    s.reveal(noisy, to=s.cast.server, message="noisy")
    return messages


def out_of_range(pool_session: Any, keys: Keys) -> str:
    """One party's column holds one value above its bound: what that party is told, before it encrypts anything."""
    s = bgn(pool_session, keys)
    first, second = s.cast.parties[:2]
    columns = {first: np.full((1, 3), 8), second: np.array([[8, 9, 8]])}
    s.gram(held(s, columns), rows=3, widths={first: 1, second: 1}, bits=3)
    return "accepted"


class _NoTail:
    def draw(self, count: int, random: Any) -> Any:
        return np.zeros(count, np.int64)


def cheat(pool_session: Any, columns: Mapping[str, Any], cheater: str, how: str, keys: Keys) -> Any:
    """`gram_of` with one dishonest process."""
    if pool_session.me == cheater:
        CHEATS[how]()
    return gram_of(pool_session, columns, 4, "server", keys)


def _garbage_upload() -> None:
    honest = Group.encode

    def garbage(self: Group, elements: Any) -> Any:
        data = honest(self, elements)
        return np.zeros_like(data) if elements.ndim == 4 else data  # keys stay right

    Group.encode = garbage  # type: ignore[method-assign]


def _wrong_power() -> None:
    honest = pair_mode.decrypt_partly

    def wrong(*arguments: Any) -> Any:
        partial = honest(*arguments)
        return Partial(partial.ciphertexts, GT.op(partial.u, partial.u), partial.v, partial.proof)

    pair_mode.decrypt_partly = wrong


def _wrong_share() -> None:
    honest = Round.answer

    def wrong(self: Round, *arguments: Any) -> Any:
        images, proof = honest(self, *arguments)
        return GT.op(images, images), proof

    Round.answer = wrong  # type: ignore[method-assign]


def _silence() -> None:
    raise RuntimeError("this party stops")


def _larger_sums() -> None:
    """The server hands out a multiple of the agreed sums."""
    honest = Entries.ciphertexts

    def larger(self: Entries, *arguments: Any) -> Any:
        return GT.power(honest(self, *arguments), 2**30)

    Entries.ciphertexts = larger  # type: ignore[method-assign]


def _larger_noise() -> None:
    honest = linear.add_noise

    def larger(ciphertexts: Any, key: Any, noise: Any, random: Any) -> Any:
        return honest(ciphertexts, key, [2**40 for _ in noise], random)

    linear.add_noise = larger


CHEATS = {
    "garbage upload": _garbage_upload,
    "wrong power": _wrong_power,
    "wrong share": _wrong_share,
    "silence": _silence,
    "larger sums": _larger_sums,
    "larger noise": _larger_noise,
}

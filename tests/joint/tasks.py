"""What pool processes run."""

from __future__ import annotations

from typing import Any

import numpy as np

from mechanisms import joint_laplace
from mechanisms.joint_laplace import JointLaplace
from mechanisms.randomness import SecureRandom
from smpc.engine import joint_noise
from smpc.engine.session import CryptenSession
from smpc.ring import Integers
from smpc.values import Held, value_of
from tests.joint.adversaries import fixed_words
from tests.support import words_of


def draw_task(
    s: CryptenSession,
    law: JointLaplace,
    count: int,
    words: str = "own",
    honest: str | None = None,
    piece_digits: int | None = None,
) -> Any:
    """Joint draws on zeros, opened to the server. `words`: everybody's "own", "replayed" or an adversary's.

    The server gives the draws; a party the rounds, the bytes by formula and by counter, and the seconds.
    """
    s._own_random = SecureRandom()
    if words == "replayed":
        s._own_random = words_of(s.me)
    elif words != "own" and s.me != honest:
        s._own_random = fixed_words(words)
    usual = joint_laplace._PIECE_DIGITS
    joint_laplace._PIECE_DIGITS = piece_digits or usual
    owner = s.cast.parties[0]
    zeros = Held(owner, np.zeros(count, dtype=np.int64) if s.me == owner else None)
    shared = s.share(zeros, (count,))
    rounds, s.cost.predicted, s.cost.counted = s.network.round, {}, {}
    noisy = s.add_joint_noise(shared, law)
    rounds = s.network.round - rounds
    joint_laplace._PIECE_DIGITS = usual
    opened = s.reveal(noisy, to=s.cast.server, message="noisy")
    if s.me == s.cast.server:
        return value_of(opened)
    return rounds, s.cost.predicted, s.cost.counted


def opened_bits(s: CryptenSession, law: JointLaplace, count: int, unmasked: bool = False) -> Any:
    """What a party sees: the values opened between the parties, each as one array. `unmasked`: a wrong variant."""
    if s.me == s.cast.server:
        s.add_joint_noise(s.share(Held(s.cast.parties[0]), (count,)), law)
        return None
    opened: list[Integers] = []
    gather = joint_noise.beaver.comm.get().all_gather
    communicator = joint_noise.beaver.comm.get()

    def watch(tensor: Any, async_op: bool = False) -> Any:
        parts = gather(tensor, async_op)
        opened.append(np.bitwise_xor.reduce([part.numpy() for part in parts]))
        return parts

    deal = s._provider.B2A_rng

    def zero_masks(size: Any, device: Any = None) -> Any:
        ring, bit = deal(size, device)
        bit.share.zero_()
        return ring, bit

    communicator.all_gather = watch
    if unmasked:
        s._provider.B2A_rng = zero_masks
    try:
        owner = s.cast.parties[0]
        zeros = Held(owner, np.zeros(count, dtype=np.int64) if s.me == owner else None)
        s.add_joint_noise(s.share(zeros, (count,)), law)
    finally:
        del communicator.all_gather
        if unmasked:
            del s._provider.B2A_rng
    return opened

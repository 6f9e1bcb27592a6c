"""Draws for records 0 .. 199 from the memo in argv[1]; argv[2]: is killed at this step of its account."""

from __future__ import annotations

import os
import signal
import sys
from fractions import Fraction

import numpy as np

from mechanisms.randomness import SecureRandom
from protocols.split.memo import Account, Memo
from protocols.split.perturb import perturbation

IDS = [str(i) for i in range(200)]


def live(epsilon: Fraction, delta: Fraction) -> None:
    pass


def die(epsilon: Fraction, delta: Fraction) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


if __name__ == "__main__":
    labels = np.zeros(200, dtype=np.int64)
    law = perturbation("laplace", 1)
    steps = {"check": die if "check" in sys.argv else live, "charge": die if "charge" in sys.argv else live}
    account = Account("", **steps, spent=lambda: (Fraction(0), Fraction(0))) if sys.argv[2:] else None
    print(Memo(sys.argv[1]).draw(IDS, labels, law, SecureRandom(), account=account).tolist())

"""The public linear map before the noise: samples are turned so that they spread alike in every direction.

Noise of one size in all directions of S drowns those in which the samples hardly differ, where a model reacts most. So
not S is released but S T with T near (X'X/N + FLOOR I)^(-1/2), public like the samples: the matrix of the rows x T has
an operator norm of about sqrt N at most, so that the sensitivity stays 1/M (sqrt 2 / M), and S = (S T) T^-1 is computed
in the clear: its noise has the shape of the samples' own spread. The exact sensitivity is that of the integer rows.

All parties must multiply their shares by the same integers: only T is computed in floats, and rounded to 2^-10; from
there on everything is exact.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from protocols.ensemble.auxiliary import Auxiliary
from protocols.schema import Floats
from smpc.ring import Integers

FLOOR = 2.0**-12  # of the eigenvalues: below it a direction counts as empty
_BITS = 10  # of T
_GRAM_BITS = 62  # the products of the rows with each other stay below, over samples and over columns


@dataclass(frozen=True)
class Whitened:
    """Rows x T as integers / 2^bits, shape (N, d), and T."""

    rows: Integers
    bits: int
    t: Floats

    @classmethod
    def of(cls, auxiliary: Auxiliary) -> Whitened:
        values, vectors = np.linalg.eigh(auxiliary.x.T @ auxiliary.x / auxiliary.count)
        root = (vectors / np.sqrt(np.maximum(values, 0.0) + FLOOR)) @ vectors.T
        whole = np.rint(root * (1 << _BITS)).astype(np.int64)
        rows, bits = auxiliary.rows @ whole, auxiliary.bits + _BITS
        largest = max(1, int(np.abs(rows).max()))
        excess = max(rows.shape) * largest * largest >> _GRAM_BITS
        shift = min(bits, (excess.bit_length() + 1) // 2 + (1 if excess else 0))
        if shift:
            rows = (rows + (1 << (shift - 1))) >> shift  # to the nearest
        return cls(rows, bits - shift, np.ldexp(whole.astype(np.float64), -_BITS))

    def back(self, turned: Floats) -> Floats:
        """S from S T, shape (width, d)."""
        return np.asarray(np.linalg.solve(self.t.T, turned.T).T)

"""Checks of the primitives, each of which must pass on the real code and fail on its mutants.

Statistical ones: every byte of everything that colluders see, and of every sum or difference they can form with what
they know, must be uniform, and equally distributed for two very different secrets. The false-alarm rate of one check
is ALPHA, split over all its tests; the sample sizes are fixed here, before any data is seen.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import combinations, product

import numpy as np
from scipy.stats import chi2

from smpc.ring import Integers

ALPHA = 1e-9
WORDS = 4096  # of each array of a view: 16 expected a byte value
_AT_ONCE = 3  # arrays that colluders add up

View = Mapping[str, Mapping[str, Integers]]  # group -> name -> array; names in capitals were received, others are known


def linear_forms(arrays: Mapping[str, Integers]) -> dict[str, Integers]:
    """All sums and differences of at most three arrays of which one or more were received."""
    forms = {}
    for count in range(1, _AT_ONCE + 1):
        for names in combinations(arrays, count):
            if not any(name.isupper() for name in names):
                continue
            for signs in product((1, -1), repeat=count - 1):
                text = names[0] + "".join(
                    f" {'+' if s > 0 else '-'} {n}" for s, n in zip(signs, names[1:], strict=True)
                )
                total = arrays[names[0]].copy()
                for sign, name in zip(signs, names[1:], strict=True):
                    total = total + arrays[name] if sign > 0 else total - arrays[name]
                forms[text] = total
    return forms


def byte_counts(words: Integers) -> np.ndarray[tuple[int, int], np.dtype[np.int64]]:
    """How often each value stands in each of the 8 byte places, shape (8, 256)."""
    places = np.ascontiguousarray(words).view(np.uint8).reshape(-1, 8)
    return np.stack([np.bincount(place, minlength=256) for place in places.T])


def assert_hidden(view_of: Callable[[int], View], secrets: Sequence[int] = (0, 2**62)) -> None:
    """What `view_of(secret)` gives tells nothing about the secret: neither by itself nor beside another's view."""
    views = [
        {f"{group}: {text}": form for group, arrays in view.items() for text, form in linear_forms(arrays).items()}
        for view in map(view_of, secrets)
    ]
    assert views[0].keys() == views[1].keys() and views[0]
    limit = chi2.isf(ALPHA / (8 * 3 * len(views[0])), 255)
    for text in views[0]:
        counts = [byte_counts(view[text]) for view in views]
        for table in counts:
            assert table[0].sum() >= WORDS, f"{text}: too few words"
            expected = table[0].sum() / 256
            worst = ((table - expected) ** 2 / expected).sum(axis=1).max()
            assert worst < limit, f"{text} is not uniform (chi^2 = {worst:.0f})"
        both = counts[0] + counts[1]
        worst = ((counts[0] - counts[1]) ** 2 / np.maximum(both, 1)).sum(axis=1).max()
        assert worst < limit, f"{text} depends on the secret (chi^2 = {worst:.0f})"


def subset_sums(arrays: Sequence[Integers]) -> list[Integers]:
    """The sum of every non-empty subset of arrays of one shape."""
    sums: list[Integers] = []
    for array in arrays:
        sums += [array, *(total + array for total in sums)]
    return sums

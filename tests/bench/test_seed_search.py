from __future__ import annotations

import numpy as np
import pytest
import torch

from tests.bench.seed_search import draws, outputs, search

SEEDS = [0, 1, 2**31, 0xC0FFEE, 2**32 - 1]


@pytest.mark.parametrize("seed", SEEDS)
def test_draws_are_torchs_and_depend_on_32_bits_of_the_seed(seed: int) -> None:
    wide = torch.Generator().manual_seed(seed + (0x1234567 << 32))
    words = torch.randint(-(2**63), 2**63 - 1, (400,), generator=wide, dtype=torch.long)
    assert np.array_equal(draws(seed, 400), words.numpy())


@pytest.mark.parametrize("position", [0, 1, 3, 226])
def test_outputs_of_many_seeds_at_once_are_the_generators(position: int) -> None:
    expected = [np.random.RandomState(seed).randint(2**32, size=227, dtype=np.uint32)[position] for seed in SEEDS]
    assert np.array_equal(outputs(np.array(SEEDS, dtype=np.uint32), position), expected)


def test_search_finds_the_seed_to_the_last_of_the_range_and_nothing_else() -> None:
    mask = int(draws(2**32 - 1, 2)[1])
    assert search(mask, 1, 2**32 - 40_000, 2**32) == 2**32 - 1
    assert search(mask, 1, 2**32 - 40_000, 2**32 - 1) is None
    assert search(mask ^ 1, 1, 2**32 - 20_000, 2**32) is None  # the high half fits, the low half doesn't

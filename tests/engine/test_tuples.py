"""Correlated tuples: right for what was asked, and worthless to a first party that asks for something else."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import numpy as np
import pytest
import torch

from smpc.engine import tuples
from smpc.engine.sharing import keyed
from smpc.engine.tuples import correction, shares

SEEDS = [bytes([k]) * 32 for k in range(3)]
SIZE = (4, 3)
WORDS = 12


def dealt(kind: str, sizes: list[tuple[int, ...]], operation: str = "mul", **options: Any) -> list[list[torch.Tensor]]:
    """All parties' shares, by position, the first party's dependent value corrected."""
    result = tuples.product_shape(sizes, operation, options) if len(sizes) == 2 else sizes[0]
    own = [shares(kind, seed, 5, sizes, operation, options, result) for seed in SEEDS]
    own[0][-1] = torch.from_numpy(correction(kind, SEEDS, 5, sizes, operation, options))
    return [list(column) for column in zip(*own, strict=True)]


def test_a_triple_multiplies() -> None:
    a, b, c = (sum(column) for column in dealt("additive", [(2, 3), (3, 4)], "matmul"))
    assert torch.equal(a @ b, c)
    signal, kernel, out = (sum(column) for column in dealt("additive", [(1, 1, 6), (1, 1, 2)], "conv1d", stride=(2,)))
    assert torch.equal(torch.nn.functional.conv1d(signal, kernel, stride=(2,)), out)


@pytest.mark.parametrize("kind", ["binary", "B2A", "square", "additive"])
def test_asking_for_an_empty_product_tells_nothing_of_what_the_others_use(
    kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The correction of an empty product is minus the sum of the others' words: they must be words of no other use."""
    sizes = [SIZE, SIZE] if kind in ("binary", "additive") else [SIZE]

    def stolen() -> int:
        """How many of the last party's first words the first party reads, the other one colluding."""
        asked = correction("additive", SEEDS, 5, [(WORDS, 0), (0, 1)], "matmul", {}).ravel()
        known = shares("additive", SEEDS[1], 5, [(WORDS, 0), (0, 1)], "matmul", {}, (WORDS, 1))[-1].numpy().ravel()
        read = (-asked - known).reshape(SIZE)
        used = shares(kind, SEEDS[2], 5, sizes, "mul", {}, SIZE)[0].numpy()
        return int(np.count_nonzero((read & 1 if kind == "B2A" else read) == used))

    assert stolen() < WORDS  # a bit is met by chance half of the time
    if kind != "B2A":
        assert stolen() == 0
    monkeypatch.setattr(tuples, "keyed", lambda seed, *purpose: keyed(seed, *purpose[:2]))  # the number alone
    assert stolen() == WORDS


@pytest.mark.parametrize(
    "sizes", [((2, 3), (2, 3)), ((2, 1), (1, 3)), ((), (4,)), ((0, 4), (0, 4)), ((5, 1, 2), (3, 1))]
)
def test_the_shape_of_a_product_is_torchs(sizes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    assert tuples.product_shape(sizes, "mul", {}) == tuple((torch.empty(sizes[0]) * torch.empty(sizes[1])).shape)


def test_factors_that_do_not_fit_have_no_product() -> None:
    with pytest.raises(ValueError, match="mismatch"):
        tuples.product_shape([(2,), (3,)], "mul", {})


@pytest.mark.mpc
def test_a_product_needs_no_second_of_imports() -> None:
    """Every party and the dealer would pay it at their first tuple."""
    code = (
        "import sys; from smpc.engine.tuples import product_shape as p; p([(2,), (2,)], 'mul', {}); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "sympy" not in done.stdout.split()

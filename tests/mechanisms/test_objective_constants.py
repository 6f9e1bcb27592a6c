"""The papers' constants against their own definition, twice the largest L1 norm of one record's coefficients."""

from fractions import Fraction
from itertools import product

import numpy as np
import pytest

from mechanisms import objective_constants as constants


def coefficients(kind: str, x: tuple[int, ...], y: int, ordered: bool) -> dict[tuple[str, int, int], Fraction]:
    """One record's coefficients, keyed by (sort, a, b)."""
    linear = kind == "linear"
    out = {("label", a, a): Fraction(-2 * y * v) if linear else (Fraction(1, 2) - y) * v for a, v in enumerate(x)}
    for a, b in product(range(len(x)), repeat=2):
        if ordered or a <= b:
            out["pair", a, b] = Fraction(x[a] * x[b]) / (1 if linear else 8)
    if linear:
        out["square", 0, 0] = Fraction(y * y)
    return out


def largest(kind: str, d: int, counted, *, ordered: bool = True) -> Fraction:
    labels = (-1, 0, 1) if kind == "linear" else (0, 1)
    return 2 * max(
        sum(abs(value) for key, value in coefficients(kind, x, y, ordered).items() if counted(*key))
        for x in product((-1, 0, 1), repeat=d)
        for y in labels
    )


@pytest.mark.parametrize("d", [1, 2, 3, 4])
def test_whole_record(d: int) -> None:
    for ordered in (True, False):
        assert constants.linear(d, ordered=ordered) == largest(
            "linear", d, lambda sort, a, b: sort != "square", ordered=ordered
        )
        assert constants.linear(d, label_square=True, ordered=ordered) == largest(
            "linear", d, lambda sort, a, b: True, ordered=ordered
        )
        assert constants.logistic(d, ordered=ordered) == largest(
            "logistic", d, lambda sort, a, b: True, ordered=ordered
        )


@pytest.mark.parametrize("d", [1, 2, 3])
@pytest.mark.parametrize("kind", ["linear", "logistic"])
def test_replacing_a_record_moves_no_further(kind: str, d: int) -> None:
    labels = (-1, 0, 1) if kind == "linear" else (0, 1)
    rows = [coefficients(kind, x, y, True) for x in product((-1, 0, 1), repeat=d) for y in labels]
    table = np.array([[float(v) for key, v in sorted(row.items()) if key[0] != "square"] for row in rows])
    moved = np.abs(table[:, None] - table[None]).sum(axis=2).max()
    constant = constants.linear(d) if kind == "linear" else constants.logistic(d)
    assert moved <= constant


@pytest.mark.parametrize(("d", "held"), [(1, 1), (2, 1), (3, 1), (3, 2), (4, 2)])
def test_parties(d: int, held: int) -> None:
    def touches(a: int, b: int) -> bool:
        return a < held or b < held

    for kind, function in (("linear", constants.linear_party), ("logistic", constants.logistic_party)):
        assert function(d, held, label=True) == largest(
            kind, d, lambda sort, a, b: sort == "label" or (sort == "pair" and touches(a, b))
        )
        assert function(d, held, label=False) == largest(kind, d, lambda sort, a, b: sort != "square" and touches(a, b))
    assert constants.linear_party(d, held, label=True, label_square=True) == largest(
        "linear", d, lambda sort, a, b: sort != "pair" or touches(a, b)
    )


@pytest.mark.parametrize(("first", "second"), [(1, 1), (1, 2), (2, 2)])
def test_blocks(first: int, second: int) -> None:
    d = first + second
    for kind, block, cross in (
        ("linear", constants.linear_block, constants.linear_cross_block),
        ("logistic", constants.logistic_block, constants.logistic_cross_block),
    ):

        def inside(a: int, b: int) -> bool:
            return a < first and b < first

        def across(a: int, b: int) -> bool:
            return (a < first) != (b < first)

        assert block(first, label=True) == largest(kind, d, lambda sort, a, b: sort != "square" and inside(a, b))
        assert block(first, label=False) == largest(kind, d, lambda sort, a, b: sort == "pair" and inside(a, b))
        assert cross(first, second, label=False) == largest(kind, d, lambda sort, a, b: sort == "pair" and across(a, b))
        assert cross(first, second, label=True) == largest(
            kind, d, lambda sort, a, b: (sort == "pair" and across(a, b)) or (sort == "label" and a >= first)
        )


@pytest.mark.parametrize("widths", [(3, 2), (1, 4, 2), (2, 2, 2, 1)])
def test_blocks_add_up_to_the_parties(widths: tuple[int, ...]) -> None:
    d = sum(widths)
    for party, block, cross in (
        (constants.linear_party, constants.linear_block, constants.linear_cross_block),
        (constants.logistic_party, constants.logistic_block, constants.logistic_cross_block),
    ):
        for k, width in enumerate(widths):
            total = block(width, label=k == 0)
            for other, columns in enumerate(widths):
                if k == 0 and other:
                    total += cross(width, columns, label=True)
                elif other and other != k:
                    total += cross(width, columns, label=False)
                elif other == 0 and k:
                    total += cross(columns, width, label=True)
            assert party(d, width, label=k == 0) == total


def test_published_values() -> None:
    assert constants.logistic(100) == 2600
    assert constants.logistic(100, ordered=False) == Fraction(2725, 2)
    assert constants.linear(800) == 2 * 800**2 + 4 * 800
    assert constants.linear(13, label_square=True) == 2 * 14**2


@pytest.mark.parametrize("held", [-1, 4, True])
def test_refuses_impossible_parties(held: int) -> None:
    with pytest.raises((TypeError, ValueError), match=r"=.*: "):
        constants.logistic_party(3, held, label=False)

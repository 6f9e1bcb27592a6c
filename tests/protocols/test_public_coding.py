"""Raw tables become numbers by declared rules only."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from protocols.public_coding import Category, Numeric, encode
from smpc.errors import InputError

TABLE: dict[str, Any] = {
    "age": np.array([17, 50, 120]),
    "colour": np.array([" red", "blue ", "green"]),
    "size": np.array([1.0, 8.0, 4.0]),
    "rich": np.array(["no", "yes", "no"]),
}
FEATURES = (
    Numeric("age", 0, 100),
    Category("colour", ("red", "green", "blue", "grey")),
    Numeric("size", 0, 4, np.log2),
)


def test_columns_by_hand() -> None:
    found = encode(TABLE, FEATURES, Category("rich", ("no", "yes")))
    assert found.names == ("age", "colour=green", "colour=blue", "colour=grey", "size")
    assert found.x.tolist() == [[17, 0, 0, 0, 0], [50, 0, 1, 0, 3], [100, 1, 0, 0, 2]]
    assert found.y.tolist() == [0, 1, 0]
    assert found.loss == "logistic"
    assert [(c.low, c.high) for c in found.columns] == [(0, 100), (0, 1), (0, 1), (0, 1), (0, 4)]
    assert found.indicators.tolist() == [False, True, True, True, False]


def test_scaling_maps_bounds_to_one() -> None:
    found = encode(TABLE, FEATURES, Numeric("size", 0, 10))
    x, y = found.scaled()
    assert x[1].tolist() == [0, -1, 1, -1, 0.5]
    assert y == pytest.approx([-0.8, 0.6, -0.2])
    unsigned, _ = found.scaled(signed=False)
    assert unsigned[1].tolist() == [0, 0, 1, 0, 0.5]
    assert encode(TABLE, FEATURES, Category("rich", ("no", "yes"))).scaled()[1].tolist() == [0, 1, 0]


def test_the_coding_of_a_row_does_not_depend_on_the_others() -> None:
    whole = encode(TABLE, FEATURES, Category("rich", ("no", "yes")))
    for i in range(3):
        alone = encode({k: v[i : i + 1] for k, v in TABLE.items()}, FEATURES, Category("rich", ("no", "yes")))
        assert np.array_equal(alone.x[0], whole.x[i]) and alone.columns == whole.columns
        assert np.array_equal(alone.scaled()[0][0], whole.scaled()[0][i])


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"colour": np.array(["red", "pink", "blue"])}, "'pink' is none of its categories red, green"),
        ({"rich": np.array(["no", "", "yes"])}, "'' is none"),
        ({"age": np.array([1.0, np.nan, 2.0])}, "age: 1 entries are not finite"),
        ({"size": np.array([0.0, 1.0, 2.0])}, "size: 1 entries are not finite"),
    ],
)
def test_what_the_rules_do_not_foresee_is_refused(change: dict[str, Any], message: str) -> None:
    with np.errstate(divide="ignore"), pytest.raises(InputError, match=message):
        encode({**TABLE, **change}, FEATURES, Category("rich", ("no", "yes")))


def test_missing_columns_are_named() -> None:
    with pytest.raises(InputError, match="column height is missing; the table has age, colour"):
        encode(TABLE, (Numeric("height", 0, 3),), Category("rich", ("no", "yes")))

"""A model file is the voter's own code: whatever it raises, and however it tries to end the program, is one line."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from protocols.ensemble.voter import labels, load_classifier
from smpc.errors import InputError

RAISED = [
    SystemExit(0),
    SystemExit("bye"),
    GeneratorExit(),
    StopIteration(),
    KeyError("a"),
    RecursionError("one line\nand another"),
    MemoryError(),
]


def fail(error: BaseException) -> None:
    raise error


class Unpickled:
    def __init__(self, error: BaseException) -> None:
        self.error = error

    def __reduce__(self) -> tuple[Callable[[BaseException], None], tuple[BaseException]]:
        return fail, (self.error,)


class Failing:
    """A model that raises where a test says."""

    def __init__(self, where: str, error: BaseException) -> None:
        self.where, self.error = where, error

    @property
    def feature_names_in_(self) -> list[str]:
        if self.where == "names":
            raise self.error
        return ["a"]

    def predict(self, features: np.ndarray) -> Any:
        if self.where == "predict":
            raise self.error
        return np.array([self] * len(features))

    def __str__(self) -> str:
        raise self.error


@pytest.mark.parametrize("error", RAISED, ids=repr)
def test_what_unpickling_raises_is_one_line(tmp_path: Path, error: BaseException) -> None:
    joblib = pytest.importorskip("joblib")
    pytest.importorskip("sklearn")
    joblib.dump(Unpickled(error), tmp_path / "model")
    with pytest.raises(InputError, match=rf"model: is no model written by joblib \({type(error).__name__}[:)]") as told:
        load_classifier(tmp_path / "model")
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("where", ["names", "predict", "classes"])
@pytest.mark.parametrize("error", RAISED, ids=repr)
def test_what_a_model_raises_is_one_line(where: str, error: BaseException) -> None:
    message = rf"^Failing: cannot predict on the auxiliary samples \({type(error).__name__}[:)]"
    with pytest.raises(InputError, match=message) as told:
        labels(Failing(where, error), np.zeros((2, 1)), ["a"], ("down", "up"))
    assert "\n" not in str(told.value)


@pytest.mark.parametrize("where", ["names", "predict", "classes"])
def test_ctrl_c_stays_an_interrupt(where: str) -> None:
    with pytest.raises(KeyboardInterrupt):
        labels(Failing(where, KeyboardInterrupt()), np.zeros((2, 1)), ["a"], ("down", "up"))

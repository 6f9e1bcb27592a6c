"""A voter's classifier of any kind becomes one class number for each auxiliary sample."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smpc.errors import InputError, printable


def load_classifier(path: Path) -> Any:
    """A fitted scikit-learn estimator written with joblib. Loading runs code of the file: it is the voter's own."""
    try:
        import joblib
        import sklearn  # noqa: F401  # what it unpickles
    except ImportError:
        raise InputError("voting needs scikit-learn and joblib: pip install 'sharewise[ensemble]'") from None
    with _own_code(f"{path}: is no model written by joblib"):
        try:
            model = joblib.load(path)
        except OSError as error:
            raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
        if not hasattr(model, "predict"):
            raise InputError(f"{path}: a {type(model).__name__} predicts nothing; save a fitted classifier")
        return model


def labels(model: Any, features: Any, columns: Sequence[str], classes: Sequence[str]) -> npt.NDArray[np.int64]:
    """Class numbers, shape (samples,): the places of the model's predictions, as text, among `classes`.

    A model that has seen some of the classes only votes for these. Raises InputError for a prediction that is none of
    `classes`, for a model that cannot predict on these samples, and for one that was fitted on columns of other names
    than `columns`, or in another order: without names only their number can be compared.
    """
    name = type(model).__name__
    with _own_code(f"{name}: cannot predict on the auxiliary samples"):
        trained = getattr(model, "feature_names_in_", None)
        if trained is not None and list(trained) != list(columns):
            told = printable(", ".join(map(str, trained)))[:200]
            raise InputError(
                f"{name}: was trained on {told}; the samples have {', '.join(columns)[:200]}, in this order"
            )
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")  # compared above
            predicted = np.asarray(model.predict(features))
        if predicted.shape != (len(features),):
            raise InputError(f"{name}: predictions of shape {predicted.shape}, need ({len(features)},)")
        numbers = {text: number for number, text in enumerate(classes)}
        found = np.array([numbers.get(_text(value), -1) for value in predicted.tolist()], dtype=np.int64)
        if (found < 0).any():
            first = repr(predicted.tolist()[int((found < 0).argmax())])[:80]
            raise InputError(f"{name}: predicts {first}, which is none of the classes {', '.join(classes)}")
        return found


@contextmanager
def _own_code(failure: str) -> Iterator[None]:
    """The model's code runs inside, which may raise whatever it likes, and may try to end the program."""
    try:
        yield
    except InputError:
        raise
    except (Exception, SystemExit, GeneratorExit) as error:
        told = [type(error).__name__, *str(error).splitlines()[:1]]
        raise InputError(f"{failure} ({': '.join(told)[:200]})") from None


def _text(value: object) -> str:
    """1, 1.0 and True are written "1"."""
    if isinstance(value, bool | float) and float(value).is_integer():
        return str(int(value))
    return str(value)

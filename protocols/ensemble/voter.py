"""A voter's classifier of any kind becomes one class number for each auxiliary sample."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from smpc.errors import InputError


def load_classifier(path: Path) -> Any:
    """A fitted scikit-learn estimator written with joblib. Loading runs code of the file: it is the voter's own."""
    try:
        import joblib
        import sklearn  # noqa: F401  # what it unpickles
    except ImportError:
        raise InputError("voting needs scikit-learn and joblib: pip install 'sharewise[ensemble]'") from None
    try:
        model = joblib.load(path)
    except OSError as error:
        raise InputError(f"{path}: cannot be read ({error.strerror or error})") from None
    except Exception as error:  # unpickling raises whatever the file says
        raise InputError(
            f"{path}: is no model written by joblib ({type(error).__name__}: {first_line(error)})"
        ) from None
    if not hasattr(model, "predict"):
        raise InputError(f"{path}: a {type(model).__name__} predicts nothing; save a fitted classifier")
    return model


def labels(model: Any, features: Any, classes: Sequence[str]) -> npt.NDArray[np.int64]:
    """Class numbers, shape (samples,): the places of the model's predictions, as text, among `classes`.

    A model that has seen some of the classes only votes for these. Raises InputError for a prediction that is none of
    `classes`, and for a model that cannot predict on these samples.
    """
    try:
        predicted = np.asarray(model.predict(features))
    except Exception as error:  # a model that is not fitted, or on other columns
        raise InputError(
            f"{type(model).__name__}: cannot predict on the auxiliary samples: {first_line(error)}"
        ) from None
    if predicted.shape != (len(features),):
        raise InputError(f"{type(model).__name__}: predictions of shape {predicted.shape}, need ({len(features)},)")
    numbers = {name: number for number, name in enumerate(classes)}
    found = np.array([numbers.get(_text(value), -1) for value in predicted.tolist()], dtype=np.int64)
    if (found < 0).any():
        first = repr(predicted.tolist()[int((found < 0).argmax())])[:80]
        raise InputError(f"{type(model).__name__}: predicts {first}, which is none of the classes {', '.join(classes)}")
    return found


def _text(value: object) -> str:
    """1, 1.0 and True are written "1"."""
    if isinstance(value, bool | float) and float(value).is_integer():
        return str(int(value))
    return str(value)


def first_line(error: Exception) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:200]

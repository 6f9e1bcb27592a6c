"""CrypTen 0.4.1 made importable on a current torch: the one place that imports it."""

from __future__ import annotations

import importlib
import sys
from types import ModuleType

_MOVED = "torch.onnx._internal.registration"
_MOVED_TO = "torch.onnx._internal.torchscript_exporter.registration"


def load_crypten() -> ModuleType:
    """The crypten package. Its ONNX converter, which is never used, imports a module that torch has moved."""
    if _MOVED not in sys.modules:
        sys.modules[_MOVED] = importlib.import_module(_MOVED_TO)
    return importlib.import_module("crypten")

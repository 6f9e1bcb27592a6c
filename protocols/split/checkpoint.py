"""One party's state on disk: the last two checkpoints, so that two parties that stopped apart have one in common."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from smpc.errors import InputError

KEPT = 2
_NAME = "batch-{:012d}.pt"


class Checkpoints:
    """In a folder of its own; None keeps nothing."""

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        if folder is not None:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def positions(self) -> list[int]:
        """Batch numbers of the checkpoints, newest first; 0, the start, always is one."""
        found = [] if self.folder is None else [int(path.stem[6:]) for path in self.folder.glob("batch-*.pt")]
        return [*sorted(found, reverse=True)[:KEPT], 0]

    def save(self, position: int, state: dict[str, Any]) -> None:
        """Whole or not at all; older ones than the last two go."""
        if self.folder is None:
            return
        temporary = self.folder / "unfinished"
        with open(temporary, "wb") as file:
            torch.save(state, file)
            file.flush()
            os.fsync(file.fileno())
        temporary.rename(self.folder / _NAME.format(position))
        for old in self.positions_on_disk()[KEPT:]:
            (self.folder / _NAME.format(old)).unlink()

    def positions_on_disk(self) -> list[int]:
        if self.folder is None:
            return []
        return sorted((int(path.stem[6:]) for path in self.folder.glob("batch-*.pt")), reverse=True)

    def load(self, position: int) -> dict[str, Any]:
        """The state saved at `position`. Raises InputError for a damaged file."""
        if self.folder is None:
            raise InputError(f"no checkpoint of batch {position}: none is kept")
        path = self.folder / _NAME.format(position)
        try:
            state = torch.load(path, weights_only=True)  # tensors and plain values, no code
        except Exception as error:
            raise InputError(f"{path}: cannot be read ({type(error).__name__}): delete it to go back further") from None
        if not isinstance(state, dict):
            raise InputError(f"{path}: is no checkpoint: delete it to go back further")
        return state

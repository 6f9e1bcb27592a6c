"""One party's state on disk: the last two checkpoints, so that two parties that stopped apart have one in common."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import torch

from protocols.split.plan import Plan
from smpc.errors import InputError

KEPT = 2
_NAME = "batch-{:012d}.pt"
_NAMES = f"batch-{'[0-9]' * 12}.pt"


class Checkpoints:
    """In a folder of its own; None keeps nothing.

    `job` is text that tells a job from every other, beside its plan: each checkpoint has its digest.
    """

    def __init__(self, folder: Path | None = None, job: str = "") -> None:
        self.folder = folder
        self.job = job
        if folder is not None:
            with _told(folder):
                folder.mkdir(mode=0o700, parents=True, exist_ok=True)

    def positions(self, plan: Plan) -> list[int]:
        """Batch numbers of the checkpoints, newest first; 0, the start, always is one. Raises InputError as `load`."""
        found = self._on_disk()[:KEPT]
        for position in found:
            self.load(position, plan)
        return [*found, 0]

    def save(self, position: int, plan: Plan, state: dict[str, Any]) -> None:
        """Whole or not at all. Older ones than the last two go, and newer ones, of a run that the peer has left.

        Raises InputError where the folder cannot be written to.
        """
        if self.folder is None:
            return
        content = BytesIO()  # torch tells a full disk in many lines
        torch.save({**state, "job": self._mark(plan)}, content)
        temporary = self.folder / "unfinished"
        with _told(self.folder):
            with open(temporary, "wb") as file:
                file.write(content.getbuffer())
                file.flush()
                os.fsync(file.fileno())
            others = self._on_disk()
            _drop(self.folder, [other for other in others if other > position])
            temporary.rename(self.folder / _NAME.format(position))
            _drop(self.folder, [other for other in others if other < position][KEPT - 1 :])

    def load(self, position: int, plan: Plan) -> dict[str, Any]:
        """The state saved at `position`. Raises InputError for a damaged file, and for one of another job."""
        if self.folder is None:
            raise InputError(f"no checkpoint of batch {position}: none is kept")
        path = self.folder / _NAME.format(position)
        try:
            state = torch.load(path, "cpu", weights_only=True)  # tensors and plain values, no code
        except Exception as error:
            raise InputError(f"{path}: cannot be read ({type(error).__name__}): delete it to go back further") from None
        if not isinstance(state, dict) or state.get("job") != self._mark(plan):
            raise InputError(f"{path}: a checkpoint of another job: delete {self.folder.name} to start this one anew")
        return state

    def _on_disk(self) -> list[int]:
        """Newest first."""
        if self.folder is None:
            return []
        return sorted((int(path.stem[6:]) for path in self.folder.glob(_NAMES)), reverse=True)

    def _mark(self, plan: Plan) -> str:
        return hashlib.sha256(f"{plan!r}\n{self.job}".encode()).hexdigest()


@contextmanager
def _told(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise InputError(
            f"{folder}: no checkpoint can be written ({error.strerror}): make room, and let one job use it"
        ) from None


def _drop(folder: Path, positions: list[int]) -> None:
    for position in positions:
        (folder / _NAME.format(position)).unlink()

"""The public facts of a vote: who may vote, who computes, on how many samples and classes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PublicKey

from smpc.errors import InputError
from smpc.ring import Integers

MAX_VOTER_BYTES = 64
ID_BYTES = 32


@dataclass(frozen=True)
class Poll:
    """`job` (32 bytes) stands for all public facts of the job, `run` (32 bytes) for one run of it: ballots are bound to
    both. `seals`: the compute parties in order with the keys to seal to.

    `voters`: name -> Ed25519 public key, in the order of their numbers. With two classes a ballot has one entry a
    sample, 1 for class 1; with more it has one row of entries a class, in which the sample's class has the 1.
    """

    job: bytes
    run: bytes
    seals: Mapping[str, X25519PublicKey]
    voters: Mapping[str, Ed25519PublicKey]
    samples: int
    classes: int

    def __post_init__(self) -> None:
        for name, value in (("job", self.job), ("run", self.run)):
            if len(value) != ID_BYTES:
                raise InputError(f"{name} of {len(value)} bytes: need {ID_BYTES}")
        if len(self.seals) < 2:
            raise InputError(f"{len(self.seals)} compute party: need at least two, or it would see all votes")
        if not self.voters or self.samples < 1 or self.classes < 2:
            given = f"voters = {len(self.voters)}, samples = {self.samples}, classes = {self.classes}"
            raise InputError(f"{given}: need at least 1, 1, 2")
        for voter in self.voters:
            if not 0 < len(voter.encode()) <= MAX_VOTER_BYTES:
                raise InputError(f"voter {voter!r}: names have 1 to {MAX_VOTER_BYTES} bytes")

    @cached_property
    def id(self) -> bytes:
        """What a ballot is made for."""
        return hashlib.sha256(self.job + self.run).digest()

    @property
    def parties(self) -> tuple[str, ...]:
        return tuple(self.seals)

    @property
    def width(self) -> int:
        """Entries a sample."""
        return 1 if self.classes == 2 else self.classes

    @property
    def entries(self) -> int:
        return self.width * self.samples

    @cached_property
    def numbers(self) -> dict[str, int]:
        return {voter: number for number, voter in enumerate(self.voters)}

    def encode(self, labels: npt.ArrayLike) -> Integers:
        """The votes, shape (width, samples), of one class number a sample. Raises InputError for other labels."""
        classes = np.asarray(labels)
        if classes.shape != (self.samples,) or classes.dtype.kind not in "iu":
            raise InputError(f"labels are {classes.dtype} {classes.shape}: need {self.samples} class numbers")
        outside = (classes < 0) | (classes >= self.classes)
        if outside.any():
            raise InputError(
                f"label {classes[outside][0]} of sample {int(outside.argmax())}: need 0 to {self.classes - 1}"
            )
        if self.classes == 2:
            return classes.astype(np.int64).reshape(1, -1)
        return np.asarray(classes == np.arange(self.classes)[:, None], dtype=np.int64)

"""What leaves a protocol: named values and the guarantee under which they were released."""

from __future__ import annotations

from dataclasses import dataclass

from mechanisms.guarantee import Guarantee
from protocols.schema import Floats


@dataclass(frozen=True)
class Release:
    """Values of shape (len(names),), and who is protected against whom.

    `indefinite` counts the directions in which the noise left the objective without a minimum, before repair.
    """

    names: tuple[str, ...]
    values: Floats
    guarantee: Guarantee
    indefinite: int = 0

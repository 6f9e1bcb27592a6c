"""The modes by name, and what a release in each rests on."""

from __future__ import annotations

from dataclasses import dataclass, replace

from smpc.bgn import linear_mode, pair_mode, threshold_mode
from smpc.bgn.linear_mode import LinearMode
from smpc.bgn.mode import Mode
from smpc.bgn.pair_mode import PairMode
from smpc.bgn.threshold_mode import ThresholdMode
from smpc.cast import Cast
from smpc.errors import InputError

MODES = ("pair", "threshold", "linear")
_COMMON = (
    "SXDH, and DDH in GT, hold on BLS12-381",
    "a value leaves its decryption window with probability at most 2^-40 in all, and the release then fails",
)
_SERVER_SUMS = (
    "server and parties hand on the sums of the ciphertexts they were given, no multiples: keys and partial "
    "decryptions are proven, sums are not"
)
_PARTY_SUMS = (
    "a pair's second party returns the sum of the ciphertexts it was given, no multiple: keys are proven, sums are not"
)


@dataclass(frozen=True)
class Keys:
    """Who holds keys: the mode and, in `threshold`, how many parties decrypt together (None: all of them)."""

    mode: str = "pair"
    threshold: int | None = None

    def __post_init__(self) -> None:
        if self.mode not in MODES:
            raise InputError(f"mode = {self.mode!r}: must be one of {', '.join(MODES)}")
        if self.threshold is not None and self.mode != "threshold":
            raise InputError(f"threshold = {self.threshold}: only mode = 'threshold' has one; leave it out")

    def cast(self, cast: Cast) -> Cast:
        """The cast with what its secrecy rests on. Raises InputError for a dealer and a threshold out of range."""
        if cast.dealer is not None:
            raise InputError(f"dealer = {cast.dealer!r}: the bgn backend has none; leave it out")
        if self.mode != "threshold":
            sums = _PARTY_SUMS if self.mode == "linear" else _SERVER_SUMS
            return replace(cast, assumptions=(sums, *_COMMON))
        most = len(cast.parties)
        needed = most if self.threshold is None else self.threshold
        if not 2 <= needed <= most:
            raise InputError(f"threshold = {self.threshold}: must be from 2 to the number of parties, {most}")
        return replace(cast, assumptions=(_SERVER_SUMS, *_COMMON), quorum=needed)

    @property
    def table(self) -> str:
        """The docstring with the mode's table of messages, of noise on shares."""
        module = {"pair": pair_mode, "threshold": threshold_mode, "linear": linear_mode}[self.mode]
        return module.__doc__ or ""

    @property
    def type(self) -> type[Mode]:
        """The mode; an object of it is one participant's part."""
        return {"pair": PairMode, "threshold": ThresholdMode, "linear": LinearMode}[self.mode]

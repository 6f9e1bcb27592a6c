"""Secret sharing over CrypTen: sessions, exact products, ballots, noise on shares, transcript and cost."""

from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.errors import HolderError, InputError, PeerError, SmpcError, UnprotectedError
from smpc.session import Session
from smpc.values import Held, Noise, Shared

__all__ = [
    "Cast",
    "ClearSession",
    "Held",
    "HolderError",
    "InputError",
    "Noise",
    "PeerError",
    "Session",
    "Shared",
    "SmpcError",
    "UnprotectedError",
]

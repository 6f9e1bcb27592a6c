"""The backend of a job: which session runs the protocol's text, who takes part in it, and what has to fit into it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from launch.jobfile.fields import Fields, JobError
from protocols.schema import Floats
from smpc.bgn.dlog import WINDOW
from smpc.bgn.forecast import BgnForecast
from smpc.bgn.mcl import library
from smpc.bgn.modes import MODES, Keys
from smpc.bgn.session import BgnSession
from smpc.cast import Cast
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.engine.network_session import NetworkSession
from smpc.engine.session import CryptenSession
from smpc.errors import InputError
from smpc.fixedpoint import RING, Room
from smpc.forecast import Forecast

BACKENDS = ("crypten", "bgn")
BACKEND_KEYS = ("backend", "mode", "threshold")
_MOST_PARTIES = 1000


@dataclass(frozen=True)
class Backend:
    """`keys`: of the bgn backend's mode; None is CrypTen with a dealer."""

    keys: Keys | None = None

    @classmethod
    def read(cls, job: Fields, parties: tuple[str, ...]) -> Backend:
        """`backend`, `mode` and `threshold` of [job]."""
        name = job.text("backend", "crypten", among=BACKENDS)
        if name == "crypten":
            extra = next((key for key in ("mode", "threshold") if job.has(key)), None)
            if extra:
                raise job.fail(extra, "left out: only backend = 'bgn' has modes")
            return cls()
        try:
            keys = Keys(job.text("mode", "pair", among=MODES), job.whole("threshold", 2, _MOST_PARTIES))
            keys.cast(Cast(parties, dealer=None))
        except JobError:
            raise
        except InputError as error:
            raise JobError(f"{job.where}: {error}") from None
        return cls(keys)

    @property
    def room(self) -> Room:
        """What holds a joint result."""
        return RING if self.keys is None else WINDOW

    def facts(self) -> dict[str, str]:
        """What participants must agree on."""
        if self.keys is None:
            return {"backend": "crypten"}
        return {"backend": "bgn", "mode": self.keys.mode, "threshold": str(self.keys.threshold or "all parties")}

    def cast(self, cast: Cast) -> Cast:
        """The cast with what its secrecy rests on."""
        return cast if self.keys is None else self.keys.cast(cast)

    def check(self) -> None:
        """Raises CurveUnavailable where the backend's library does not work: before any connection."""
        if self.keys is not None:
            library()

    def forecast(self, cast: Cast, published: Iterable[Floats] = ()) -> Forecast:
        """A session that only counts what will be sent, where this is published."""
        return Forecast(cast, published) if self.keys is None else BgnForecast(cast, self.keys, published)

    def session(self, cast: Cast, network: Network, agreement: Agreement) -> NetworkSession:
        """This participant's session. It sends nothing yet."""
        if self.keys is None:
            return CryptenSession(cast, network, agreement)
        return BgnSession(cast, network, agreement, self.keys)

"""What a protocol adds to a job: its part of the job file, and what each participant does in a run."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar

from launch.backend import Backend
from launch.jobfile.endpoints import Endpoint
from launch.jobfile.fields import Fields
from launch.tasks.trial import CLEAR, CRYPTEN, ROWS, Size, Trial
from mechanisms.guarantee import Guarantee
from smpc.cast import Cast
from smpc.engine.handshake import Agreement
from smpc.engine.network import Network
from smpc.forecast import Forecast


@dataclass(frozen=True)
class Outlook:
    """What is known of a run before it starts. `table` has the docstring of the protocol's text.

    `supposed`: what the forecast takes for granted, if anything that only the run decides. `noise`: how much it is.
    """

    table: str
    guarantee: Guarantee
    forecast: Forecast
    supposed: str = ""
    noise: str = ""


@dataclass(frozen=True)
class Prepared:
    """What a participant has before it connects: its own data, and the public facts that these add to the job's.

    `check_budget` raises BudgetError for a release that the participant's ledger would refuse.
    """

    data: Any = None
    facts: Mapping[str, str] = field(default_factory=dict)
    check_budget: Callable[[], None] = lambda: None


class Task(ABC):
    """One protocol's part of a job. Everything in it is public, but where a party's own files are.

    `TABLES` are the tables of a job file that belong to it, `KEYS` its keys in [job]; `parties` in the file's order.
    `backend` is CrypTen unless the protocol can be run on another one and its job says so. `SERVER`: whether one takes
    part. `roles`: what the protocol's text calls parties that play different parts. `SIZES`: what a profile can vary,
    `BACKENDS`: on what.
    """

    TABLES: ClassVar[tuple[str, ...]]
    KEYS: ClassVar[tuple[str, ...]]
    SERVER: ClassVar[bool] = True
    SIZES: ClassVar[Mapping[str, Size]] = {"rows": ROWS, "parties": Size((2, 3), 2, 64)}
    BACKENDS: ClassVar[tuple[str, ...]] = (CRYPTEN, CLEAR)
    parties: tuple[Endpoint, ...]
    backend: Backend = Backend()

    @property
    def roles(self) -> Mapping[str, str]:
        return {}

    @property
    def without_dealer(self) -> str | None:
        """The choice that makes this a job without a dealer; None: it has one."""
        return None if self.backend.keys is None else "backend = 'bgn'"

    @classmethod
    @abstractmethod
    def read(cls, path: Path, top: Fields, job: Fields) -> Task:
        """Read and check the protocol's part of a job file: `top` is the file, `job` its table [job]."""

    @abstractmethod
    def facts(self) -> dict[str, str]:
        """What participants must agree on, flat, so that a handshake can name what differs. No place of a table."""

    @abstractmethod
    def prepare(self, me: str) -> Prepared:
        """Read and check a participant's own data: faults are told on its terminal before any connection.

        The ledger is not asked yet.
        """

    @abstractmethod
    def run(self, cast: Cast, network: Network, agreement: Agreement, mine: Prepared) -> dict[str, str | bytes]:
        """Take part and return this participant's result files, cost.json among them."""

    def leftovers(self, me: str) -> Sequence[Path]:
        """Folders that this participant needs until its result files are written, and which are in the way then."""
        return ()

    @abstractmethod
    def outlook(self, cast: Cast, rows: int) -> Outlook:
        """What a run on `rows` rows will send, and what it guarantees."""

    @abstractmethod
    def trial(self, sizes: Mapping[str, int], backend: str) -> Trial:
        """The protocol with one value of each of its SIZES, on one of its BACKENDS."""

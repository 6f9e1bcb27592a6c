"""Job files: what every participant of a job must agree on, and where each finds its own table."""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path

from launch.jobfile.endpoints import ENDPOINT_KEYS, Endpoint, check_distinct, read_endpoint
from launch.jobfile.fields import MAX_NAME, Fields, JobError
from launch.tasks.data_release import ReleaseTask
from launch.tasks.ensemble import EnsembleTask
from launch.tasks.functional import FunctionalTask
from launch.tasks.split import SplitTask
from launch.tasks.task import Task
from smpc.cast import Cast
from smpc.engine.tls import Address, fingerprint

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROTOCOLS: dict[str, type[Task]] = {
    "functional": FunctionalTask,
    "data_release": ReleaseTask,
    "ensemble": EnsembleTask,
    "split": SplitTask,
}
_TABLES = ("job", "server", "dealer", "party", "network")
_KEYS = ("name", "protocol")


@dataclass(frozen=True)
class Job:
    """A checked job file."""

    path: Path
    name: str
    protocol: str
    task: Task
    server: Endpoint | None
    dealer: Endpoint | None
    deadline: float
    start_deadline: float

    @property
    def cast(self) -> Cast:
        """Who takes part."""
        parties = tuple(party.name for party in self.task.parties)
        server, dealer = self.server.name if self.server else "", self.dealer.name if self.dealer else None
        return self.task.backend.cast(Cast(parties, server, dealer, self.task.roles))

    @property
    def participants(self) -> tuple[Endpoint, ...]:
        """Parties in the file's order, server, dealer."""
        return (*self.task.parties, *filter(None, (self.server, self.dealer)))

    def endpoints(self) -> tuple[dict[str, Address], dict[str, Path]]:
        """Addresses and certificates of all participants. Raises InputError where one is missing or given twice."""
        addresses, certificates = {}, {}
        owners: dict[str, str] = {}
        for endpoint in self.participants:
            if endpoint.address is None or endpoint.certificate is None:
                raise JobError(
                    f"{self.path}: {endpoint.name} needs an address and a certificate to take part on its own host; "
                    "make the certificate with `smpc keys new`, or use `smpc run`"
                )
            addresses[endpoint.name], certificates[endpoint.name] = endpoint.address, endpoint.certificate
            owner = owners.setdefault(fingerprint(endpoint.certificate), endpoint.name)
            if owner != endpoint.name:
                raise JobError(
                    f"{self.path}: {owner} and {endpoint.name} have the same certificate; each needs its own, "
                    "`smpc keys new` makes one"
                )
        return addresses, certificates

    def public_facts(self) -> dict[str, str]:
        """What participants must agree on, flat, so that a handshake can name what differs. No table paths."""
        names = {f"participant {number}": endpoint.name for number, endpoint in enumerate(self.participants, 1)}
        facts = {"job": self.name, "protocol": self.protocol, "number of parties": str(len(self.task.parties))}
        facts["deadline"] = str(self.deadline)  # who is to blame for silence depends on it
        return {**facts, **names, **self.task.backend.facts(), **self.task.facts()}


def load_job(path: Path) -> Job:
    """Read and check a job file. Raises JobError, one line, at the first fault."""
    text = ""
    try:
        text = path.read_text(encoding="utf-8-sig")
        data = tomllib.loads(text, parse_float=Decimal)
    except OSError as error:
        raise JobError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a whole number of thousands of digits
        told = str(error).splitlines()[0][:200]
        raise JobError(f"{path}: is not TOML: {told}{_hint(told, text)}") from None
    protocol = Fields(str(path), data).inner("job").text("protocol", among=tuple(PROTOCOLS))
    task_type = PROTOCOLS[protocol]
    top = Fields(str(path), data, (*_TABLES, *task_type.TABLES))
    job = top.inner("job", (*_KEYS, *task_type.KEYS))
    name = job.text("name", longest=MAX_NAME)
    network = top.inner("network", ("deadline", "start_deadline"), optional=True)
    task = task_type.read(path, top, job)
    result = Job(
        path=path,
        name=name,
        protocol=protocol,
        task=task,
        server=_server(path, top, task),
        dealer=_dealer(path, top, task),
        deadline=network.number("deadline", 30, 1, 3600),
        start_deadline=network.number("start_deadline", 300, 1, 86400),
    )
    check_distinct(path, result.participants)
    return result


_HINTS = {
    r"[^#\"']*=\s*[0-9]+,[0-9]": "the decimal sign is a point, like 0.5",
    r"[^#']*\"[^\"]*\\": "write places of files with / in place of \\",
    r"[^#\"']*=\s*[A-Za-z]": "text stands in quotes; true and false are small",
}


def _hint(told: str, text: str) -> str:
    """What is wrong with the line that an error names, if it is a common slip."""
    named = re.search(r"at line ([0-9]+)", told)
    if named is None:
        return ""
    line = text.split("\n")[int(named[1]) - 1]
    return next((f": {hint}" for form, hint in _HINTS.items() if re.match(form, line)), "")


def _server(path: Path, top: Fields, task: Task) -> Endpoint | None:
    if task.SERVER:
        return read_endpoint(top.inner("server", ENDPOINT_KEYS), path)
    if top.has("server"):
        raise JobError(f"{path}: [server] beside a protocol that has none; leave the table out")
    return None


def _dealer(path: Path, top: Fields, task: Task) -> Endpoint | None:
    if task.without_dealer is None:
        return read_endpoint(top.inner("dealer", ENDPOINT_KEYS), path)
    if top.has("dealer"):
        raise JobError(f"{path}: [dealer] beside {task.without_dealer}, which has no dealer; leave the table out")
    return None

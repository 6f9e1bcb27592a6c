"""Job files: what every participant of a job must agree on, and where each finds its own table."""

from __future__ import annotations

import re
import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

from launch.fields import Fields, JobError, is_number, is_plain, shown
from launch.job_options import OPTION_KEYS, option_facts, read_budgets, read_epsilon, read_options
from protocols.options import Options
from protocols.plan import NOISE_ORDERS
from protocols.schema import Column
from smpc.engine.tls import Address, fingerprint
from smpc.errors import InputError
from smpc.fixedpoint import MAX_FRACTION_BITS

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PROTOCOLS = ("functional",)
NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
NAME_RULE = "small letters, digits, - and _, at most 32, a letter first"
MAX_NAME = 64  # of a column or a job: public facts must fit into a handshake
_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*|\[[0-9a-fA-F:.]{2,45}\]")


@dataclass(frozen=True)
class Endpoint:
    """A participant: its name, where it listens, its pinned certificate (both optional for local runs)."""

    name: str
    address: Address | None
    certificate: Path | None


@dataclass(frozen=True)
class PartySpec(Endpoint):
    """A party and its table: CSV or Parquet, with an id column and the job's columns.

    The label, if the party holds it, stands last in `columns`. `ledger`, if given, is where the party keeps count of
    what releases of `data_set` have cost.
    """

    table: Path
    id: str
    columns: tuple[Column, ...]
    ledger: Path | None
    data_set: str


@dataclass(frozen=True)
class Job:
    """A checked job file."""

    path: Path
    name: str
    protocol: str
    epsilon: Fraction | None
    noise: str
    options: Options
    fraction_bits: int | None
    clip: bool
    label_party: str
    label: Column
    parties: tuple[PartySpec, ...]
    server: Endpoint
    dealer: Endpoint
    deadline: float
    start_deadline: float

    @property
    def plan_arguments(self) -> dict[str, Any]:
        """What `Plan.make` needs beside the schema."""
        return {"epsilon": self.epsilon, "noise": self.noise, "bits": self.fraction_bits, "options": self.options}

    @property
    def participants(self) -> tuple[Endpoint, ...]:
        """Parties in the file's order, server, dealer."""
        return (*self.parties, self.server, self.dealer)

    def party(self, name: str) -> PartySpec | None:
        """The party of this name; None for server and dealer."""
        return next((spec for spec in self.parties if spec.name == name), None)

    def features(self, party: str) -> tuple[Column, ...]:
        """The columns of `party` without the label."""
        spec = self.party(party)
        columns = spec.columns if spec is not None else ()
        return tuple(column for column in columns if (party, column) != (self.label_party, self.label))

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
        facts = {
            "job": self.name,
            "protocol": self.protocol,
            "epsilon": str(self.epsilon or "the budgets' sum"),
            "noise": self.noise,
            "fraction_bits": str(self.fraction_bits or "chosen from the rows"),
            "clip": str(self.clip),
            "label": f"{self.label.name} of {self.label_party}",
            **option_facts(self.options),
            "number of parties": str(len(self.parties)),
        }
        for number, endpoint in enumerate(self.participants, 1):
            facts[f"participant {number}"] = endpoint.name
        for party in self.parties:
            facts[f"number of columns of {party.name}"] = str(len(party.columns))
            for number, column in enumerate(party.columns, 1):
                facts[f"column {number} of {party.name}"] = f"{column.name} in [{column.low!r}, {column.high!r}]"
        return facts


def load_job(path: Path) -> Job:
    """Read and check a job file. Raises JobError, one line, at the first fault."""
    try:
        data = tomllib.loads(path.read_text(encoding="utf-8-sig"), parse_float=Decimal)
    except OSError as error:
        raise JobError(f"{path}: cannot be read ({error.strerror})") from None
    except (ValueError, RecursionError) as error:  # not TOML, not UTF-8, a whole number of thousands of digits
        raise JobError(f"{path}: is not TOML: {str(error).splitlines()[0][:200]}") from None
    top = Fields(str(path), data, ("job", "label", "server", "dealer", "party", "network", "budgets"))
    job = top.inner("job", ("name", "protocol", "noise", "fraction_bits", "clip", *OPTION_KEYS))
    label = top.inner("label", ("party", "column"))
    network = top.inner("network", ("deadline", "start_deadline"), optional=True)
    parties = _parties(path, top)
    server = _endpoint(top.inner("server", ("name", "address", "certificate")), path)
    dealer = _endpoint(top.inner("dealer", ("name", "address", "certificate")), path)
    _check_names(path, [*parties, server, dealer])
    budgets = read_budgets(top, [party.name for party in parties])
    if budgets and job.has("epsilon"):
        raise JobError(f"{path}: epsilon beside [budgets]: bottom-up it is the budgets' sum; leave one of them out")
    holder = label.text("party", among=[party.name for party in parties])
    columns = {column.name: column for party in parties if party.name == holder for column in party.columns}
    target = columns.pop(label.text("column", among=list(columns)))
    parties = tuple(
        replace(party, columns=(*columns.values(), target)) if party.name == holder else party for party in parties
    )
    result = Job(
        path=path,
        name=job.text("name", longest=MAX_NAME),
        protocol=job.text("protocol", among=PROTOCOLS),
        epsilon=None if budgets else read_epsilon(job, "epsilon"),
        noise=job.text("noise", "shares", among=NOISE_ORDERS),
        options=read_options(str(path), job, budgets),
        fraction_bits=job.whole("fraction_bits", 1, MAX_FRACTION_BITS),
        clip=job.switch("clip"),
        label_party=holder,
        label=target,
        parties=parties,
        server=server,
        dealer=dealer,
        deadline=network.number("deadline", 30, 1, 3600),
        start_deadline=network.number("start_deadline", 300, 1, 86400),
    )
    for party in parties:
        if not result.features(party.name):
            raise JobError(f"{path}: party {party.name} has no feature column; give it one or leave it out of the job")
    return result


def _parties(path: Path, top: Fields) -> tuple[PartySpec, ...]:
    items = top.get("party")
    if not isinstance(items, list) or len(items) < 2:
        raise JobError(
            f"{path}: needs at least two [[party]] tables, has {len(items) if isinstance(items, list) else 0}"
        )
    parties = []
    for number, item in enumerate(items, 1):
        where = f"{path}: [[party]] {number}"
        fields = Fields(where, item, ("name", "table", "id", "columns", "ledger", "data_set", "address", "certificate"))
        endpoint = _endpoint(fields, path)
        columns = _columns(f"{path}: columns of {endpoint.name}", fields.get("columns"))
        identifier = fields.text("id", longest=MAX_NAME)
        if identifier in {column.name for column in columns}:
            raise JobError(
                f"{where}: id = {identifier!r} is one of the columns; ids are no feature, take it out of columns"
            )
        parties.append(
            PartySpec(
                **vars(endpoint),
                table=path.parent / fields.text("table"),
                id=identifier,
                columns=columns,
                ledger=path.parent / fields.text("ledger") if fields.has("ledger") else None,
                data_set=fields.text("data_set", endpoint.name, longest=MAX_NAME),
            )
        )
    return tuple(parties)


def _endpoint(fields: Fields, path: Path) -> Endpoint:
    name = fields.text("name")
    if not NAME.fullmatch(name):
        raise fields.fail("name", NAME_RULE)
    address = _address(fields) if fields.has("address") else None
    certificate = path.parent / fields.text("certificate") if fields.has("certificate") else None
    return Endpoint(name, address, certificate)


def _address(fields: Fields) -> Address:
    host, _, port = fields.text("address").rpartition(":")
    if (
        len(host) > 253
        or not _HOST.fullmatch(host)
        or not re.fullmatch("[0-9]{1,5}", port)
        or not 1 <= int(port) <= 65535
    ):
        raise fields.fail("address", "host:port with a port from 1 to 65535, like 10.0.0.7:7001 or [fd00::7]:7001")
    return host.strip("[]"), int(port)


def _columns(where: str, table: Any) -> tuple[Column, ...]:
    if not isinstance(table, Mapping) or not table:
        raise JobError(f"{where}: must be a table of NAME = [low, high], the public bounds; at least one")
    columns = []
    for name, bounds in table.items():
        if not is_plain(name, MAX_NAME):
            raise JobError(f"{where}: the name {shown(name)} must be 1 to {MAX_NAME} printable characters; rename it")
        try:
            if not isinstance(bounds, list) or len(bounds) != 2 or not all(is_number(bound) for bound in bounds):
                raise ValueError
            columns.append(Column(name, float(bounds[0]), float(bounds[1])))
        except InputError as error:
            raise JobError(f"{where}: {error}") from None
        except (ValueError, OverflowError):
            raise JobError(
                f"{where}: {name} = {shown(bounds)} must be [low, high], two numbers: the public bounds of its values"
            ) from None
    return tuple(columns)


def _check_names(path: Path, endpoints: list[Endpoint]) -> None:
    names = [endpoint.name for endpoint in endpoints]
    for endpoint in endpoints:
        if names.count(endpoint.name) > 1:
            raise JobError(f"{path}: the name {endpoint.name!r} is given {names.count(endpoint.name)} times; rename")
    addresses = [endpoint.address for endpoint in endpoints if endpoint.address is not None]
    twice = next((a for a in addresses if addresses.count(a) > 1), None)
    if twice:
        raise JobError(f"{path}: two participants have the address {twice[0]}:{twice[1]}; give each its own port")
    columns = [column.name for endpoint in endpoints if isinstance(endpoint, PartySpec) for column in endpoint.columns]
    repeated = next((name for name in columns if columns.count(name) > 1), None)
    if repeated:
        raise JobError(f"{path}: the column {repeated!r} is given twice; model.json names columns, rename one")

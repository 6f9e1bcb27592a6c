"""Participants in a job file: name, address and pinned certificate of each."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from launch.jobfile.fields import Fields, JobError
from smpc.engine.tls import Address

ENDPOINT_KEYS = ("name", "address", "certificate")
NAME = re.compile(r"[a-z][a-z0-9_-]{0,31}")
NAME_RULE = "small letters, digits, - and _, at most 32, a letter first"
_HOST = re.compile(r"[A-Za-z0-9_-]{1,63}(\.[A-Za-z0-9_-]{1,63})*|\[[0-9a-fA-F:.]{2,45}\]")


@dataclass(frozen=True)
class Endpoint:
    """A participant: its name, where it listens, its pinned certificate (both optional for local runs)."""

    name: str
    address: Address | None
    certificate: Path | None


def read_endpoint(fields: Fields, path: Path) -> Endpoint:
    """The participant of one table of the job file at `path`."""
    name = fields.text("name")
    if not NAME.fullmatch(name):
        raise fields.fail("name", NAME_RULE)
    address = read_address(fields, "address") if fields.has("address") else None
    certificate = path.parent / fields.text("certificate") if fields.has("certificate") else None
    return Endpoint(name, address, certificate)


def read_address(fields: Fields, key: str) -> Address:
    """host:port of a key that must be there."""
    host, _, port = fields.text(key).rpartition(":")
    if (
        len(host) > 253
        or not _HOST.fullmatch(host)
        or not re.fullmatch("[0-9]{1,5}", port)
        or not 1 <= int(port) <= 65535
    ):
        raise fields.fail(key, "host:port with a port from 1 to 65535, like 10.0.0.7:7001 or [fd00::7]:7001")
    return host.strip("[]"), int(port)


def check_distinct(path: Path, endpoints: Iterable[Endpoint]) -> None:
    """Refuse two participants of one name or of one address."""
    names: set[str] = set()
    addresses: set[Address] = set()
    for endpoint in endpoints:
        if endpoint.name in names:
            raise JobError(f"{path}: the name {endpoint.name!r} is given twice; rename one")
        names.add(endpoint.name)
        if endpoint.address in addresses and endpoint.address is not None:
            host, port = endpoint.address
            raise JobError(f"{path}: two participants have the address {host}:{port}; give each its own port")
        if endpoint.address is not None:
            addresses.add(endpoint.address)

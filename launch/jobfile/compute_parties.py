"""The compute parties of an ensemble job, and the classes that voters choose from."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from pathlib import Path

from launch.ballot_keys import KEY_RULE, public_sealing_key
from launch.jobfile.endpoints import ENDPOINT_KEYS, Endpoint, check_distinct, read_address, read_endpoint
from launch.jobfile.fields import MAX_NAME, Fields, JobError
from smpc.engine.tls import Address

_PARTY_KEYS = (*ENDPOINT_KEYS, "ballots", "sealing_key")


@dataclass(frozen=True)
class ComputeParty(Endpoint):
    """A compute party: where voters hand in ballots, and the public key (hex) that they seal to."""

    ballots: Address
    sealing_key: str


def read_classes(samples: Fields) -> tuple[str, ...]:
    """The classes of the samples, two or more."""
    names = samples.get("classes")
    good = isinstance(names, list) and all(isinstance(name, str) and 0 < len(name) <= MAX_NAME for name in names)
    if not good or len(names) < 2 or len(set(names)) < len(names) or not all(name.isprintable() for name in names):
        raise samples.fail("classes", "two or more different names in quotes, as the voters' models predict them")
    return tuple(names)


def read_compute_parties(path: Path, top: Fields) -> tuple[ComputeParty, ...]:
    """All [[party]] tables, in the file's order: two or three."""
    items = top.get("party")
    if not isinstance(items, list) or not 2 <= len(items) <= 3:
        count = len(items) if isinstance(items, list) else 0
        raise JobError(f"{path}: needs two or three [[party]] tables, the compute parties, has {count}")
    parties: list[ComputeParty] = []
    for number, item in enumerate(items, 1):
        fields = Fields(f"{path}: [[party]] {number}", item, _PARTY_KEYS)
        endpoint = read_endpoint(fields, path)
        if endpoint.certificate is None:
            raise JobError(
                f"{fields.where}: certificate is missing: voters know the party by it; `smpc keys new` makes one"
            )
        key = fields.text("sealing_key").lower()
        try:
            public_sealing_key(key)
        except ValueError:
            raise fields.fail("sealing_key", f"{KEY_RULE}, as `smpc keys sealing` prints them") from None
        for other in parties:
            if other.sealing_key == key:
                raise fields.fail("sealing_key", f"its own: who has that of {other.name} too sees all votes")
        parties.append(ComputeParty(**asdict(endpoint), ballots=read_address(fields, "ballots"), sealing_key=key))
    check_distinct(path, parties)
    return tuple(parties)

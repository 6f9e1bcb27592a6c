"""Who failed a coin toss takes part in no later one: each participant's own list, JOB.excluded beside its job file.

A party that sees the coin first and then stops can try again until it likes it. A line is a name, the fingerprint of
its certificate (or -) and what happened. Whoever has settled the matter with the party deletes the line.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from launch.jobfile.endpoints import Endpoint
from launch.jobfile.fields import JobError
from smpc.coin_tossing import CoinTossError
from smpc.engine.tls import fingerprint


@contextmanager
def excluding(job: Path, parties: Sequence[Endpoint]) -> Iterator[None]:
    """Inside, whom this participant itself sees fail a coin toss is put on the list of this job file."""
    try:
        yield
    except CoinTossError as error:
        for party in parties:
            if party.name in error.at_fault:
                _exclude(_list_of(job), party, str(error))
        raise


def check_excluded(job: Path, parties: Sequence[Endpoint]) -> None:
    """Raises JobError if one of the parties is on the list, by its name or by its certificate."""
    path = _list_of(job)
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise JobError(f"{path}: cannot be read ({why}); it says who is excluded: mend it") from None
    for line in lines:
        name, _, rest = line.partition(" ")
        mark, _, reason = rest.partition(" ")
        for party in parties:
            if party.name == name or (mark not in ("", "-") and mark == _mark(party)):
                why = "".join(filter(str.isprintable, reason[:200]))
                raise JobError(
                    f"{path}: {party.name} is excluded ({why}); leave it out of the job, or delete its line once you "
                    "know that it was no cheating"
                )


def _exclude(path: Path, party: Endpoint, reason: str) -> None:
    try:
        with open(path, "a", encoding="utf-8") as file:
            file.write(f"{party.name} {_mark(party)} {reason}\n")
    except OSError as error:  # what happened must be told in any case
        print(f"{path}: cannot be written ({error.strerror}); keep {party.name} out of later jobs", file=sys.stderr)


def _list_of(job: Path) -> Path:
    return job.with_suffix(".excluded")


def _mark(party: Endpoint) -> str:
    return fingerprint(party.certificate) if party.certificate is not None else "-"

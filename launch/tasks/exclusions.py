"""Who failed a coin toss takes part in no later one: each participant's own list, JOB.excluded beside its job file.

A party that sees the coin first and then stops can try again until it likes it. A line is a name, the fingerprint of
its certificate (or -) and what happened. Whoever has settled the matter with the party deletes the line.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from pathlib import Path

from launch.jobfile.endpoints import Endpoint
from launch.jobfile.fields import JobError
from smpc.engine.tls import fingerprint


def exclude(job: Path, party: Endpoint, reason: str) -> None:
    """Put `party` on the list of this job file."""
    line = f"{party.name} {_mark(party)} {reason}\n"
    with contextlib.suppress(OSError), open(_list_of(job), "a", encoding="utf-8") as file:  # the error is told anyway
        file.write(line)


def check_excluded(job: Path, parties: Sequence[Endpoint]) -> None:
    """Raises JobError if one of the parties is on the list, by its name or by its certificate."""
    path = _list_of(job)
    if not path.is_file():
        return
    for line in path.read_text(encoding="utf-8").splitlines():
        name, _, rest = line.partition(" ")
        mark, _, reason = rest.partition(" ")
        for party in parties:
            if party.name == name or (mark not in ("", "-") and mark == _mark(party)):
                raise JobError(
                    f"{path}: {party.name} is excluded ({reason[:200]}); leave it out of the job, or delete its line "
                    "once you know that it was no cheating"
                )


def _list_of(job: Path) -> Path:
    return job.with_suffix(".excluded")


def _mark(party: Endpoint) -> str:
    return fingerprint(party.certificate) if party.certificate is not None else "-"

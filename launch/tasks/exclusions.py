"""Who failed a coin toss takes part in no later one of this job file: each participant's own list, JOB.excluded.

A party that sees the coin first and then stops can try again until it likes it. A line is a name, the fingerprint of
its certificate (or -) and what happened. Whoever has settled the matter with the party deletes the line. The list is
edited by hand: a line that is none keeps nobody out, so it ends the job. A job file under another name, or in another
folder, has a list of its own.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from launch.jobfile.endpoints import NAME, Endpoint
from launch.jobfile.fields import JobError
from launch.terminal import tell
from smpc.coin_tossing import CoinTossError
from smpc.engine.tls import fingerprint
from smpc.errors import InputError

_LINE = re.compile(rf"({NAME.pattern})\s+(-|[0-9a-f]{{64}})\s+(.*)")


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
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except FileNotFoundError:
        return
    except (OSError, UnicodeDecodeError) as error:
        why = error.strerror if isinstance(error, OSError) else "it is no UTF-8 text"
        raise JobError(f"{path}: cannot be read ({why}); it says who is excluded: mend it") from None
    for number, line in enumerate(map(str.strip, lines), 1):
        if not line:
            continue
        entry = _LINE.fullmatch(line)
        if entry is None:
            raise JobError(
                f"{path}: line {number} is not NAME FINGERPRINT REASON (the fingerprint in 64 small hex digits, or -); "
                "it says who is excluded: mend or delete it"
            )
        name, mark, reason = entry.groups()
        for party in parties:
            if party.name == name or (mark != "-" and mark == _mark(party)):
                why = "".join(filter(str.isprintable, reason[:200]))
                raise JobError(
                    f"{path}: {party.name} is excluded ({why}); leave it out of the job, or delete its line once you "
                    "know that it was no cheating"
                )


def _exclude(path: Path, party: Endpoint, reason: str) -> None:
    try:
        unended = path.exists() and not path.read_bytes().endswith(b"\n")  # as some editors leave it
        with open(path, "a", encoding="utf-8") as file:
            file.write("\n" * unended + f"{party.name} {_mark(party)} {reason}\n")
    except (OSError, InputError) as error:  # what happened must be told in any case
        why = error.strerror if isinstance(error, OSError) else error
        tell(f"{path}: cannot be written ({why}); keep {party.name} out of later jobs")


def _list_of(job: Path) -> Path:
    return job.with_suffix(".excluded")


def _mark(party: Endpoint) -> str:
    return fingerprint(party.certificate) if party.certificate is not None else "-"

"""`smpc vote`: one voter's classifier labels the public samples, and the ballot goes to the compute parties."""

from __future__ import annotations

import contextlib
import fcntl
import math
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from launch.ballot_keys import VOTER, read_voter_key
from launch.job import load_job
from launch.kept_ballot import KeptBallot
from launch.tasks.ensemble import EnsembleTask
from mechanisms.ledger import Ledger
from protocols.ensemble.voter import labels, load_classifier
from smpc.ballots import envelope, shares
from smpc.ballots.door import hand_in, open_doors
from smpc.errors import InputError


@dataclass(frozen=True)
class Account:
    """Where the voter keeps count of what its data have cost, and their name there."""

    ledger: Path
    data_set: str


def vote(
    job_path: Path,
    voter: str,
    model: Path,
    *,
    table: Path | None = None,
    key: Path | None = None,
    account: Account | None = None,
    seconds: float,
) -> list[str]:
    """Hand in the ballot of `voter`; the receipts. What the model says leaves this host as shares only.

    The model is a fitted scikit-learn classifier in a joblib file, trained on the job's columns in their order and
    units; `table` is where this host has the samples, `key` the voter's own. When all compute parties can be reached,
    and before anything is sent, the account is charged by the worst row with all compute parties but one, once for this
    voter and run of the job. Until all receipts are here the sealed ballot is kept beside the key: the same call sends
    it again, whatever the model says by then, and tells so.
    """
    if not 0 <= seconds < math.inf:
        raise InputError(f"--seconds {seconds}: must be a number, 0 or more")
    job = load_job(job_path)
    task = job.task
    if not isinstance(task, EnsembleTask):
        raise InputError(f"{job_path}: is no ensemble job: only these take votes")
    if voter not in task.voters:
        raise InputError(f"--as {voter}: is no voter in {task.roster}; register the line that `smpc keys voter` prints")
    key = key or Path(f"{voter}{VOTER}")
    signer = read_voter_key(key)
    if signer.public_key() != task.voters[voter]:
        raise InputError(f"--as {voter}: this key is not the one that {task.roster} lists for {voter}")
    samples = task.table.at(table)
    features = samples.features()
    auxiliary = samples.scaled(features)
    columns = [column.name for column in samples.columns]
    chosen = labels(load_classifier(model), features, columns, task.classes)
    task.job_hash(auxiliary)  # a certificate's fault is told now
    addresses = {party.name: party.ballots for party in task.parties}
    certificates = {party.name: party.certificate for party in task.parties if party.certificate is not None}
    with contextlib.ExitStack() as stack:
        stack.enter_context(_alone(voter, key))
        doors = open_doors(addresses, certificates, seconds=seconds)
        for door in doors:
            stack.callback(door.close)
        plan = task.plan(auxiliary, doors[0].run)
        poll = plan.poll
        kept = KeptBallot(key.with_name(f"{voter}.{poll.job.hex()[:16]}.ballot"))
        strangers = [door.party for door in doors if door.job != poll.job]
        if strangers:
            raise InputError(
                f"{' and '.join(strangers)}: another job runs there than {job_path}, or with other samples, "
                "another roster or other certificates; nothing was sent: compare the files"
            )
        ballot = kept.read(poll, voter)
        new = ballot is None
        if ballot is None:
            if doors[0].closed:
                raise InputError(f"{doors[0].party}: the vote is closed; nothing was sent")
            contents = shares.split(poll.encode(chosen), poll.parties)
            ballot = envelope.make(contents, poll=poll.id, voter=voter, key=signer, seals=poll.seals)
            kept.write(ballot)
        if account is not None:
            worst = plan.guarantee(job.cast, len(task.voters)).worst(len(task.parties) - 1)
            ballot_of = f"{task.job} {poll.id.hex()} {voter}"  # one data set may stand behind two voters
            try:
                Ledger(account.ledger).reserve(account.data_set, worst, job=ballot_of, once=True)
            except BaseException:  # whatever it is, nothing of a new one was sent
                if new:
                    kept.remove()
                raise
        try:
            receipts = hand_in(ballot, doors)
        except InputError:  # refused, and so it would be again
            kept.remove()
            raise
    kept.remove()
    return receipts if new else [*receipts, f"{kept.path} was sent, an earlier call's ballot, not a new one of {model}"]


@contextlib.contextmanager
def _alone(voter: str, key: Path) -> Iterator[None]:
    """Two calls at once for one voter would send two ballots, one to each compute party perhaps: neither counts."""
    place = key.with_name(f".{voter}.lock")  # some file systems lock only what can be written to
    with contextlib.ExitStack() as stack:
        try:
            fcntl.flock(stack.enter_context(open(place, "ab")), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InputError(
                f"--as {voter}: another `smpc vote` is under way with {key}; wait for its receipts"
            ) from None
        except OSError as error:
            raise InputError(
                f"{place}: cannot be locked ({error.strerror}); copy the key to a folder of this host that can be "
                "written to"
            ) from None
        yield

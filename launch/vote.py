"""`smpc vote`: one voter's classifier labels the public samples, and the ballot goes to the compute parties."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from launch.ballot_keys import VOTER, read_voter_key
from launch.job import load_job
from launch.tasks.ensemble import EnsembleTask
from mechanisms.ledger import Ledger
from protocols.ensemble.voter import labels, load_classifier
from smpc.ballots import envelope, shares
from smpc.ballots.wire import hand_in
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
    units; `table` is where this host has the samples, `key` the voter's own. The account is charged before anything is
    sent, by the worst row with all compute parties but one.
    """
    job = load_job(job_path)
    task = job.task
    if not isinstance(task, EnsembleTask):
        raise InputError(f"{job_path}: is no ensemble job: only these take votes")
    if voter not in task.voters:
        raise InputError(f"--as {voter}: is no voter in {task.roster}; register the line that `smpc keys voter` prints")
    signer = read_voter_key(key or Path(f"{voter}{VOTER}"))
    if signer.public_key() != task.voters[voter]:
        raise InputError(f"--as {voter}: this key is not the one that {task.roster} lists for {voter}")
    samples = task.table.at(table)
    plan = task.plan(samples.load())
    poll = plan.poll
    votes = poll.encode(labels(load_classifier(model), samples.features(), task.classes))
    contents = shares.split(votes, poll.parties)
    ballot = envelope.make(contents, job=poll.job, voter=voter, key=signer, seals=poll.seals)
    addresses = {party.name: party.ballots for party in task.parties}
    certificates = {party.name: party.certificate for party in task.parties if party.certificate is not None}
    if account is not None:
        worst = plan.guarantee(job.cast, len(task.voters)).worst(len(task.parties) - 1)
        Ledger(account.ledger).reserve(account.data_set, worst, job=task.job)
    return hand_in(ballot, addresses, certificates, seconds=seconds)

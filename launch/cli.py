"""The command line: smpc run, party, keys new, ledger, audit, reproduce, demo."""

from __future__ import annotations

import argparse
import json
import os
import select
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType

from mechanisms.guarantee import UNITS
from mechanisms.ledger import BudgetError, Ledger, LedgerError
from protocols.functional.options import LOSSES
from smpc.errors import InputError, SmpcError, printable

INTERRUPTED = 130
UNREAD = 141  # as a shell tells a program that SIGPIPE ended
_TRACE = "also write trace.json: who did what when, for ui.perfetto.dev"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command. Every failure is one line on standard error and a non-zero exit code."""
    parser = _parser()
    options = parser.parse_args(arguments)
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, _interrupt)
    try:
        options.command(options)
        print(end="", flush=True)  # at the interpreter's end a failure would be told in several lines
    except (SmpcError, BudgetError, LedgerError) as error:
        print(f"smpc: {printable(str(error))}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("smpc: interrupted", file=sys.stderr)
        return INTERRUPTED
    except MemoryError:
        print("smpc: out of memory; use fewer rows or columns", file=sys.stderr)
        return 1
    except OSError as error:  # a full disk, a closed pipe
        if _give_up_output() and isinstance(error, BrokenPipeError):  # `head` has read enough
            return UNREAD
        print(printable(f"smpc: {error.filename or 'system'}: {error.strerror or error}"), file=sys.stderr)
        return 1
    return 0


def _give_up_output() -> bool:
    """Whether nobody reads any more what is printed. What cannot be written goes nowhere from here on."""
    unread = False
    for stream in filter(None, (sys.stdout, sys.stderr)):
        try:
            handle = stream.fileno()
        except OSError:  # a notebook's
            continue
        try:
            stream.flush()
            poll = select.poll()
            poll.register(handle, 0)  # asks for errors alone: of a pipe, that it has no reader
            if not poll.poll(0):
                continue
            unread = True
        except OSError as error:
            unread = unread or isinstance(error, BrokenPipeError)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, handle)
        os.close(nowhere)
    return unread


def _interrupt(number: int, frame: FrameType | None) -> None:
    """End like Ctrl-C, by way of everybody's clean-up."""
    raise KeyboardInterrupt


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="smpc", description="Joint statistics on secret shares, with noise before anything is opened."
    )
    commands = parser.add_subparsers(required=True, metavar="COMMAND")

    run = commands.add_parser("run", help="run every participant of a job on this machine")
    run.add_argument("job", type=Path, help="job file (TOML)")
    run.add_argument("--out", type=Path, required=True, help="new folder for the results")
    run.add_argument("--trace", action="store_true", help=_TRACE)
    run.set_defaults(command=_run)

    party = commands.add_parser("party", help="take part in a job as one participant")
    party.add_argument("job", type=Path, help="job file (TOML), the same for everybody")
    party.add_argument("--as", dest="name", required=True, help="whose part to play: a party, the server or the dealer")
    party.add_argument("--key", type=Path, help="private key; default: NAME.key beside the certificate")
    party.add_argument("--out", type=Path, required=True, help="new folder for the results")
    party.add_argument("--trace", action="store_true", help=_TRACE)
    party.add_argument("--ledger", type=Path, help="charge this ledger, whatever the job file names")
    party.add_argument("--data-set", help="your name for the data in --ledger; default: the job file's")
    for internal in ("--endpoints", "--listen-fd", "--progress-fd"):  # how `smpc run` starts a participant
        party.add_argument(internal, help=argparse.SUPPRESS)
    party.set_defaults(command=_party)

    keys = commands.add_parser("keys", help="make a participant's key and certificate")
    actions = keys.add_subparsers(required=True, metavar="ACTION")
    new = actions.add_parser("new", help="write NAME.key (secret) and NAME.crt (for the job file)")
    new.add_argument("name", help="the participant's name in the job")
    new.add_argument("--dir", type=Path, default=Path(), help="folder to write to (default: here)")
    new.set_defaults(command=_new_keys)
    for action, what, command in (
        ("sealing", "write NAME.seal (secret) and print the public key: what voters seal ballots to", _sealing_key),
        ("voter", "write NAME.voter (secret) and print the voter's line for the roster", _voter_key),
    ):
        made = actions.add_parser(action, help=what)
        made.add_argument("name", help="the compute party's or the voter's name in the job")
        made.add_argument("--dir", type=Path, default=Path(), help="folder to write to (default: here)")
        made.set_defaults(command=command)

    vote = commands.add_parser("vote", help="label an ensemble job's samples with your classifier, in secret")
    vote.add_argument("job", type=Path, help="job file (TOML), the same for everybody")
    vote.add_argument("--as", dest="name", required=True, help="your name in the roster")
    vote.add_argument("--model", type=Path, required=True, help="a fitted scikit-learn classifier, written by joblib")
    vote.add_argument("--aux", type=Path, help="the samples on this host (default: where the job file has them)")
    vote.add_argument("--key", type=Path, help="your signing key; default: NAME.voter here")
    vote.add_argument("--ledger", type=Path, help="your ledger: the vote is charged to it before anything is sent")
    vote.add_argument("--data-set", help="the name of your data in the ledger; default: your name in the roster")
    vote.add_argument("--seconds", type=float, default=60.0, help="how long to try to reach the parties (default 60)")
    vote.set_defaults(command=_vote)

    ledger = commands.add_parser("ledger", help="what a party's data sets have cost so far, and their caps")
    actions = ledger.add_subparsers(required=True, metavar="ACTION")
    show = actions.add_parser("show", help="print every data set's spending and cap")
    show.add_argument("ledger", type=Path, help="the party's ledger file")
    show.set_defaults(command=_show_ledger)
    cap = actions.add_parser("cap", help="set the most that may ever be spent on a data set")
    cap.add_argument("ledger", type=Path, help="the party's ledger file; made if it does not exist")
    cap.add_argument("data_set", help="the owner's name for the data set, as in the job file")
    cap.add_argument("epsilon", help="like 2, 0.5 or 1/3")
    cap.add_argument("--delta", default="0", help="default 0")
    cap.add_argument("--unit", default="record", choices=sorted(UNITS.values()), help="what is protected: one ...")
    cap.set_defaults(command=_cap_ledger)

    init = commands.add_parser("init", help="write a commented job file to start from")
    init.add_argument("job", type=Path, help="the new job file")
    init.add_argument("--party", action="append", required=True, metavar="NAME=TABLE", help="once for each party")
    init.add_argument("--label", required=True, metavar="NAME.COLUMN", help="what to predict, and who holds it")
    init.add_argument("--id", required=True, metavar="COLUMN", help="the column that names a person, in every table")
    init.add_argument("--epsilon", default="1", help="default 1")
    init.add_argument("--loss", default="linear", choices=LOSSES, help="logistic for a label of 0 and 1")
    init.set_defaults(command=_init)

    explain = commands.add_parser("explain", help="what a job will send, reveal, guarantee and cost, before it runs")
    explain.add_argument("job", type=Path, help="job file (TOML)")
    explain.add_argument("--rows", type=int, help="number of rows; default: counted in a table on this machine")
    explain.set_defaults(command=_explain)

    fit = commands.add_parser("fit", help="train a model on a released data set alone")
    fit.add_argument("released", type=Path, nargs="+", help="released.parquet, or the files of its parts")
    fit.add_argument("--solver", help="default: what suits the release; see docs/protocols/data_release.md")
    fit.add_argument("--ridge", type=float, help="added to the second moments (default 1e-5)")
    fit.add_argument("--out", type=Path, help="file for the model, as `smpc predict` takes it")
    fit.set_defaults(command=_fit)

    profile = commands.add_parser("profile", help="what a job's protocol costs at other sizes, on synthetic tables")
    profile.add_argument("job", type=Path, help="job file (TOML)")
    profile.add_argument(
        "--vary", action="append", default=[], metavar="WHAT=N,N", help="rows=1e4,1e5 parties=2,3 voters=20"
    )
    profile.add_argument(
        "--backend",
        default="crypten",
        help="some of crypten,bgn,clear as far as the protocol has them (default crypten)",
    )
    profile.add_argument("--out", type=Path, required=True, help="new folder for profile.csv and profile.png")
    profile.add_argument("--repeats", type=int, default=3, help="runs of each size (default 3)")
    profile.add_argument(
        "--run-up-to", type=int, default=1_000_000, metavar="ROWS", help="above, extrapolate (1000000)"
    )
    profile.set_defaults(command=_profile)

    predict = commands.add_parser("predict", help="a released model's predictions for a table")
    predict.add_argument("model", type=Path, help="result folder, or its model.json")
    predict.add_argument("table", type=Path, help="CSV or Parquet with the model's columns")
    predict.add_argument("--out", type=Path, help="file for the predictions (default: print them)")
    predict.set_defaults(command=_predict)

    report = commands.add_parser("report", help="a run's results as one page to read: DIR/report.html")
    report.add_argument("results", type=Path, metavar="DIR", help="folder that a run wrote with --out")
    report.add_argument(
        "--table", type=Path, help="a complete table of yours: also how the model does on it, in a page of its own"
    )
    report.set_defaults(command=_report)

    audit = commands.add_parser("audit", help="run a job's protocol on worst-case neighbours: claim against evidence")
    audit.add_argument("job", type=Path, help="job file (TOML)")
    audit.add_argument("--trials", type=int, default=20_000, help="runs of each neighbour (default 20,000)")
    audit.set_defaults(command=_audit)

    reproduce = commands.add_parser("reproduce", help="measure a paper's comparisons: one page with tables and figures")
    reproduce.add_argument("protocol", choices=["functional", "data_release", "ensemble", "split"], help="whose page")
    reproduce.add_argument("--out", type=Path, required=True, help="new folder for the page and its figures")
    reproduce.add_argument("--quick", action="store_true", help="few seeds and small tables: under two minutes")
    reproduce.set_defaults(command=_reproduce)

    demo = commands.add_parser("demo", help="train a private model on the RAND health insurance data, three parties")
    demo.add_argument("--out", type=Path, default=Path("demo-out"), help="new folder for the demo's files")
    demo.add_argument("--seeds", type=int, default=20, help="runs for each epsilon (default 20)")
    demo.set_defaults(command=_demo)
    return parser


def _run(options: argparse.Namespace) -> None:
    from launch.run import run_locally

    run_locally(options.job, options.out, trace=options.trace)
    _tell(options.out)


def _party(options: argparse.Namespace) -> None:
    from launch.job import load_job
    from launch.outputs import remove_leftovers
    from launch.participant import Endpoints, take_part, with_own_account
    from launch.progress import Progress
    from smpc.engine.tls import Identity, listen

    job = load_job(options.job)
    if options.data_set and options.ledger is None:
        raise InputError(f"--data-set {options.data_set}: names an account of --ledger; give that, too")
    if options.ledger is not None:
        job = with_own_account(job, options.name, options.ledger, options.data_set)
    names = [endpoint.name for endpoint in job.participants]
    if options.name not in names:
        raise InputError(f"--as {options.name}: the job's participants are {', '.join(names)}")
    if options.endpoints:
        given = json.loads(Path(options.endpoints).read_text())
        endpoints = Endpoints(
            {name: tuple(given[name]["address"]) for name in names},
            {name: Path(given[name]["certificate"]) for name in names},
        )
    else:
        addresses, certificates = job.endpoints()
        endpoints = Endpoints(addresses, certificates)
    certificate = endpoints.certificates[options.name]
    key = options.key or certificate.with_suffix(".key")
    pipe = int(options.progress_fd) if options.progress_fd else None

    def listener() -> socket.socket:
        if options.listen_fd:
            return socket.socket(fileno=int(options.listen_fd))
        return listen(endpoints.addresses[options.name])

    take_part(
        job,
        Identity(options.name, key, certificate),
        endpoints,
        listener,
        options.out,
        Progress(options.name, pipe),
        trace=options.trace,
    )
    if not options.endpoints:  # else `smpc run` has yet to write the results
        remove_leftovers(options.name, job.task.leftovers(options.name))
        if options.name != job.cast.dealer:
            _tell(options.out)


def _tell(out: Path) -> None:
    """The results of a run for people to read."""
    from launch.report.command import report_line
    from launch.summary import summary

    print(f"{summary(out)}\n\n{report_line(out)}")


def _new_keys(options: argparse.Namespace) -> None:
    from launch.keys import make_keys

    key, certificate = make_keys(options.name, options.dir)
    print(f"{key}  secret: keep it on this host\n{certificate}  give it to the others: the job file names it")


def _sealing_key(options: argparse.Namespace) -> None:
    from launch.ballot_keys import make_sealing_key

    path, public = make_sealing_key(options.name, options.dir)
    print(f'{path}  secret: keep it beside the certificate on this host\nsealing_key = "{public}"')


def _voter_key(options: argparse.Namespace) -> None:
    from launch.ballot_keys import make_voter_key

    path, line = make_voter_key(options.name, options.dir)
    print(f"{path}  secret: keep it\n{line}")


def _vote(options: argparse.Namespace) -> None:
    from launch.vote import Account, vote

    account = Account(options.ledger, options.data_set or options.name) if options.ledger else None
    receipts = vote(
        options.job,
        options.name,
        options.model,
        table=options.aux,
        key=options.key,
        account=account,
        seconds=options.seconds,
    )
    print("\n".join(receipts))


def _show_ledger(options: argparse.Namespace) -> None:
    if not options.ledger.is_file():
        raise InputError(f"{options.ledger}: no such ledger; `smpc ledger cap` makes one")
    accounts = Ledger(options.ledger).accounts()
    print("\n".join(str(account) for account in accounts) or f"{options.ledger}: no data set has a cap yet")


def _cap_ledger(options: argparse.Namespace) -> None:
    try:
        Ledger(options.ledger).cap(options.data_set, options.unit, options.epsilon, options.delta)
    except ValueError as error:
        raise InputError(str(error)) from None
    _show_ledger(options)


def _init(options: argparse.Namespace) -> None:
    from launch.init import write_job

    print(write_job(options.job, options.party, options.label, options.id, options.epsilon, options.loss))


def _explain(options: argparse.Namespace) -> None:
    from launch.explain import explain
    from launch.tasks.trial import ROWS

    if options.rows is not None and not 2 <= options.rows <= ROWS.high:
        raise InputError(f"--rows {options.rows}: must be from 2 to {ROWS.high:,}")
    text, refusal = explain(options.job, options.rows)
    print(text)
    if refusal is not None:
        raise refusal


def _fit(options: argparse.Namespace) -> None:
    from launch.fit import fit_released

    print(fit_released(options.released, options.solver, options.ridge, options.out))


def _profile(options: argparse.Namespace) -> None:
    from launch.profile.command import profile

    if options.repeats < 1 or options.run_up_to < 2:
        raise InputError(f"--repeats {options.repeats} --run-up-to {options.run_up_to}: need at least 1 and 2")
    print(
        profile(
            options.job,
            options.out,
            vary=options.vary,
            backend=options.backend,
            repeats=options.repeats,
            run_up_to=options.run_up_to,
        )
    )


def _predict(options: argparse.Namespace) -> None:
    from launch.models import predict_table
    from launch.outputs import write_file

    if options.out is not None and options.out.is_file():
        raise InputError(f"--out {options.out}: exists; name a new file")
    text, warnings = predict_table(options.model, options.table)
    for warning in warnings:
        print(f"smpc: {warning}", file=sys.stderr)
    if options.out is None:
        print(text, end="")
    else:
        write_file(options.out, text)


def _report(options: argparse.Namespace) -> None:
    from launch.report.command import report

    print(report(options.results, options.table))


def _audit(options: argparse.Namespace) -> None:
    from launch.audit import audit

    print(audit(options.job, options.trials))


def _reproduce(options: argparse.Namespace) -> None:
    from launch.reproduce.command import reproduce

    reproduce(options.protocol, options.out, quick=options.quick)


def _demo(options: argparse.Namespace) -> None:
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # five processes share this machine's cores
    from launch.demo import run_demo

    run_demo(options.out, options.seeds)

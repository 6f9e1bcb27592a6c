"""`smpc init`: a commented job file to start from, for tables whose column names are read and whose values are not."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Sequence
from pathlib import Path

from launch.jobfile.endpoints import NAME, NAME_RULE
from launch.jobfile.fields import MAX_NAME, is_plain, shown
from launch.outputs import write_new
from launch.tables.files import check_columns, column_names
from mechanisms import validate
from smpc.errors import InputError

_HEAD = """\
# A job: what every participant must agree on. Everybody has the same file; each table stays with its party.
[job]
name = {name}
protocol = "functional"    # a linear or logistic model of columns that several parties hold about the same people
loss = {loss}
epsilon = {epsilon}              # how much the release may tell about one person; smaller protects more
noise = "shares"           # noise is added before anything is opened
weights = "balanced"       # the sums that matter most get the least of it
repair = {repair}  # how a noisy model is made usable; both lines had the least errors on public tables
clip = false               # true: values outside the bounds below count as the bound; false: they are an error

[label]                    # what the model predicts
party = {holder}
column = {label}

[server]                   # receives the noisy sums and solves for the model
name = "server"
# address = "host:7000"    # addresses and certificates (`smpc keys new NAME`) are for runs on several hosts
# certificate = "server.crt"

[dealer]                   # makes correlated randomness and sees no data; must not collude with a party
name = "dealer"
# address = "host:7001"
# certificate = "dealer.crt"
"""
_OTHERS = ("server", "dealer")
_REPAIRS = {"linear": "posterior", "logistic": "rescaled"}
_PARTY = """
[[party]]
name = {name}
table = {table}
id = {id}                  # names a person, the same in all tables
# ledger = "ledger.db"     # where this party counts what its data set has cost; cap it with `smpc ledger cap`
# data_set = {name}
# address = "host:{port}"
# certificate = {certificate}
[party.columns]            # NAME = [lowest, highest]: what the values *can* be, never what they are
#                            of a column of text: NAME = ["one", "another"], all values that it can have
"""


def write_job(path: Path, parties: Sequence[str], label: str, identifier: str, epsilon: str, loss: str) -> str:
    """Write a job file for parties given as NAME=TABLE and a label given as NAME.COLUMN; what is left to fill in.

    Raises InputError; an existing file is never overwritten.
    """
    if not re.fullmatch(r"[0-9]{1,9}([./][0-9]{1,9})?", epsilon):
        raise InputError(f"--epsilon {epsilon}: must be a number like 0.5, 2 or 1/3")
    try:
        validate.epsilon(epsilon)
    except ValueError:
        raise InputError(
            f"--epsilon {epsilon}: must be above 0 and up to {validate.WEAK_EPSILON}; 1 is common"
        ) from None
    tables = dict(_split(text, "=", "--party", "NAME=TABLE") for text in parties)
    if len(tables) < 2 or len(tables) < len(parties):
        raise InputError(f"--party {' --party '.join(parties)}: needs two or more parties, each name once")
    holder, column = _split(label, ".", "--label", "NAME.COLUMN")
    if holder not in tables:
        raise InputError(f"--label {label}: {holder} is none of the parties {', '.join(tables)}")
    text = _HEAD.format(
        name=_quoted(path.stem),
        loss=_quoted(loss),
        repair=_quoted(_REPAIRS[loss]),
        epsilon=_quoted(epsilon) if "/" in epsilon else epsilon,
        holder=_quoted(holder),
        label=_quoted(column),
    )
    left, remarks = 0, []
    for number, (name, table) in enumerate(tables.items()):
        if not NAME.fullmatch(name):
            raise InputError(f"--party {name}={table}: a name has {NAME_RULE}")
        if name in _OTHERS:
            raise InputError(f"--party {name}={table}: the job's {name} has this name; take another")
        check_columns(Path(table), [identifier, *([column] if name == holder else [])])
        names = column_names(Path(table))
        fit = [feature for feature in names if is_plain(feature, MAX_NAME) and names.count(feature) == 1]
        out = list(dict.fromkeys(feature for feature in names if feature not in fit))
        if out:
            told = ", ".join(map(shown, out[:10]))
            remarks.append(f"{table}: left out, as no job takes such names: {told}")
        text += _PARTY.format(
            name=_quoted(name),
            table=_quoted(_relative(Path(table), path)),
            id=_quoted(identifier),
            port=7002 + number,
            certificate=_quoted(f"{name}.crt"),
        )
        for feature in fit:
            if feature != identifier:
                bounds = "[0, 1]" if loss == "logistic" and (name, feature) == (holder, column) else "[]"
                left += bounds == "[]"
                text += f"{_quoted(feature)} = {bounds}\n"
    write_new(path, text)
    remarks.append(
        f"{path}: fill in the bounds of {left} columns ([lowest, highest] that a value can be), or take columns out; "
        f"then `smpc explain {shlex.quote(str(path))}`"
    )
    return "\n".join(remarks)


def _split(text: str, mark: str, option: str, form: str) -> tuple[str, str]:
    first, found, rest = text.partition(mark)
    if not (first and found and rest):
        raise InputError(f"{option} {text}: must be {form}")
    return first, rest


def _relative(table: Path, job: Path) -> str:
    """A table's place as the job file names it: beside the file if it is there."""
    place, folder = table.absolute(), job.absolute().parent
    return str(place.relative_to(folder) if place.is_relative_to(folder) else place)


def _quoted(text: str) -> str:
    """A TOML string."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")  # in the name of a file, say

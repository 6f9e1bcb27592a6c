"""Multi-party data release for linear regression (paper 2): every party releases its own columns with noise.

`rmgm` mixes the records first, by a sign matrix B that all parties toss together: B D / sqrt(k) + R, k rows. `dgm`
releases D + R, a row a record. A third method under the same interface, `gram`, releases noisy second moments instead
of a data set, from secret shares (`protocols.data_release.gram`).

Exact: columns are mapped to [-1, 1] or [0, 1], rounded to multiples of 2^-20 and multiplied by signs as integers;
discrete Gaussian noise is added to these integers, and only the noisy ones are scaled. Changing one record moves every
one of B's k sums of a column by its change, whatever its signs are: so the guarantee holds for every B, and B may be
public. That nobody can foresee B is for the use of the data: a B of somebody's choice can make them worthless.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

import numpy as np

from mechanisms.guarantee import Guarantee
from protocols.data_release.fit import fit
from protocols.data_release.gram import noisy_gram
from protocols.data_release.plan import BITS, RANGES, ReleasePlan
from protocols.data_release.released_data import ReleasedColumn, ReleasedData
from protocols.data_release.sign_matrix import signed_sums
from protocols.functional.plan import Plan
from protocols.release import Release
from protocols.schema import Floats
from smpc.ring import Integers
from smpc.session import Session
from smpc.values import Held, Noise


@dataclass(frozen=True)
class DataRelease:
    """The model, known to all, and released data by holder: all at the server, unless `gram` its own at a party."""

    model: Release
    data: Mapping[str, Held[ReleasedData]]


def release(s: Session, tables: Mapping[str, Held[Floats]], plan: ReleasePlan | Plan, name: str) -> DataRelease:
    """`tables[p]`, held by p, has shape (width, rows): the columns `plan.schema.columns(p)`.

    `name`: a public name that no other release has. A `Plan` of the functional mechanism, linear with Gaussian noise on
    shares, is the method `gram`.
    """
    guarantee = plan.guarantee(s.cast)
    server = s.cast.server
    if isinstance(plan, Plan):
        s.agree("plan", "gram", plan.bits, *(group.mechanism for group in plan.groups))
        data = noisy_gram(s, tables, plan, name, guarantee)
    else:
        s.agree("plan", plan.method, plan.rows, plan.ranges, plan.mechanisms)
        data = _TEXTS[plan.method](s, tables, plan, name, guarantee)
    names = ("intercept", *(column.name for column in plan.schema.all_features))
    numbers = s.at(server, _solve, data[server])
    published = s.publish(numbers, shape=(1 + len(names),), message="model")
    model = Release(names, published[:-1], guarantee, int(published[-1]))
    return DataRelease(model, {**data, server: s.at(server, _with_model, data[server], model)})


def _mixed(
    s: Session, tables: Mapping[str, Held[Floats]], plan: ReleasePlan, name: str, guarantee: Guarantee
) -> dict[str, Held[ReleasedData]]:
    """Records mixed by B.

    step  from -> to     message        the receiver learns
    1     P_k -> P_l     commitment     nothing: perfectly hiding
    2     P_k -> P_l     echo           which commitments P_k has seen
    3     P_k -> P_l     opening        B, which nobody could choose or foresee
    4     P_k -> server  mixed ones     B 1: nobody's data
    5     P_k -> server  noisy columns  B D + R for P_k's columns: (epsilon, delta)-DP for a record's columns at P_k
    6     server -> all  model          post-processing of step 5
    """
    noises = _draw(s, plan)
    seeds = s.toss()  # 1, 2, 3
    sums = {
        party: s.at(party, _mix, seeds[party], plan.rows, s.at(party, plan.prepare, party, tables[party]))
        for party in plan.mechanisms
    }
    first = next(iter(sums))
    ones = s.send(s.at(first, _row, sums[first], 0), to=s.cast.server, shape=(plan.rows,), message="mixed ones")  # 4
    return _perturb_and_send(s, plan, name, guarantee, sums, noises, ones)  # 5


def _added(
    s: Session, tables: Mapping[str, Held[Floats]], plan: ReleasePlan, name: str, guarantee: Guarantee
) -> dict[str, Held[ReleasedData]]:
    """Records as they are.

    step  from -> to     message        the receiver learns
    1     P_k -> server  noisy columns  D + R for P_k's columns: (epsilon, delta)-DP for a record's columns at P_k
    2     server -> all  model          post-processing of step 1
    """
    noises = _draw(s, plan)
    records = {party: s.at(party, plan.prepare, party, tables[party]) for party in plan.mechanisms}
    ones = s.at(s.cast.server, np.full, plan.rows, 1 << BITS)
    return _perturb_and_send(s, plan, name, guarantee, records, noises, ones)  # 1


_TEXTS = {"rmgm": _mixed, "dgm": _added}


def script(method: str) -> Callable[..., object]:
    """The text of a method; its docstring has the table of who sends what and learns what."""
    return noisy_gram if method == "gram" else _TEXTS[method]


def _draw(s: Session, plan: ReleasePlan) -> dict[str, Noise]:
    return {
        party: s.draw_noise(mechanism, {party: np.ones(plan.rows * plan.schema.widths[party], dtype=np.bool_)})
        for party, mechanism in plan.mechanisms.items()
    }


def _perturb_and_send(
    s: Session,
    plan: ReleasePlan,
    name: str,
    guarantee: Guarantee,
    exact: Mapping[str, Held[Integers]],
    noises: Mapping[str, Noise],
    ones: Held[Integers],
) -> dict[str, Held[ReleasedData]]:
    """Each party adds its noise and sends the noisy integers, a column at a time; what it released it keeps, too."""
    data, columns = {}, [ones]
    for party, width in plan.schema.widths.items():
        noisy = s.at(party, _with_noise, exact[party], noises[party].draws[party])
        data[party] = s.at(party, _data, plan, name, guarantee, [party], [noisy])
        for i in range(1, 1 + width):
            column = s.at(party, _row, noisy, i)
            columns.append(s.send(column, to=s.cast.server, shape=(plan.rows,), message="noisy columns"))
    data[s.cast.server] = s.at(s.cast.server, _data, plan, name, guarantee, list(plan.mechanisms), columns)
    return data


def _mix(seed: bytes, rows: int, columns: Integers) -> Integers:
    return signed_sums(seed, rows, columns)


def _row(integers: Integers, number: int) -> Integers:
    row: Integers = integers[number]
    return row


def _with_noise(integers: Integers, noise: Integers) -> Integers:
    """The column of ones stands first and stays exact."""
    result: Integers = integers.copy()
    result[1:] += noise.reshape(len(integers) - 1, -1)
    return result


def _data(
    plan: ReleasePlan, name: str, guarantee: Guarantee, parties: list[str], integers: list[Integers]
) -> ReleasedData:
    """Released numbers from the integers of these parties, the ones first."""
    columns = []
    for party in parties:
        low, high = RANGES[plan.ranges[party]]
        variance = plan.noise_variance(party)
        columns += [ReleasedColumn(column, low, high, variance) for column in plan.schema.columns(party)]
    return ReleasedData(
        release=name,
        method=plan.method,
        records=plan.schema.rows,
        label=plan.schema.label.name,
        columns=tuple(columns),
        values=np.vstack(integers).T / plan.unit,
        guarantee=guarantee,
    )


def _solve(data: ReleasedData) -> Floats:
    """Intercept, weights, and the number of indefinite directions."""
    fitted = fit(data)
    return np.concatenate([fitted.weights, [float(fitted.indefinite)]])


def _with_model(data: ReleasedData, model: Release) -> ReleasedData:
    return replace(data, model=dict(zip(model.names, model.values.tolist(), strict=True)))

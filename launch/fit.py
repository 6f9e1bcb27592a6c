"""`smpc fit`: a model from released files alone, on a machine that never saw a party."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from launch.outputs import model_json, write_file
from protocols.data_release.fit import DEFAULT, RIDGE, fit
from protocols.data_release.released_file import read_released
from protocols.release import Release
from smpc.errors import InputError


def fit_released(paths: Sequence[Path], solver: str | None, ridge: float | None, out: Path | None) -> str:
    """The model, its guarantee and how it was found, in words. `out` gets the model.json that `smpc predict` takes."""
    if out is not None and out.exists():
        raise InputError(f"--out {out}: exists; name another file, or remove it")
    data = read_released(paths)
    if ridge is not None and data.method == "gram":
        raise InputError(f"--ridge {ridge}: a gram release finds its own; choose among its solvers, or leave it out")
    fitted = fit(data, solver, RIDGE if ridge is None else ridge)
    names = ("intercept", *(item.column.name for item in data.features))
    release = Release(names, fitted.weights, data.guarantee, fitted.indefinite)
    chosen = solver or DEFAULT[data.method]
    about = {
        "job": data.release,
        "protocol": "data_release",
        "loss": "linear",
        "rows": data.records,
        "label": data.label,
        "method": data.method,
        "solver": chosen,
        "released_rows": len(data.values),
        "indefinite": fitted.indefinite,
    }
    if out is not None:
        write_file(out, model_json(release, about))
    width = max(map(len, names))
    lines = [
        f"linear model of {data.label} from {len(data.values):,} released rows ({data.method}) of {data.records:,} "
        f"records, solver {chosen}",
        "",
        *(f"  {name:<{width}}  {value: .6g}" for name, value in zip(names, fitted.weights, strict=True)),
        "",
        str(data.guarantee),
    ]
    return "\n".join(lines)

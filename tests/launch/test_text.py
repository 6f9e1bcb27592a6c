"""Columns of text: public values in the job file, indicators in the computation, text again when a model is used."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet
import pytest

from launch.job import load_job
from launch.jobfile.fields import JobError
from launch.models import predict_table
from launch.outputs import model_json
from launch.tables.files import TableError
from launch.tables.table import read_table
from launch.tasks.functional import FunctionalTask
from mechanisms.weighted_moments import WeightedMoments
from protocols.functional import protocol as functional
from smpc.cast import Cast
from smpc.clear import ClearSession
from smpc.values import Held
from tests.launch.jobs import Raw, valid_job, write_job
from tests.support import silenced

REGIONS = ["north", "south", "far west"]


def job_with(values: Any = REGIONS) -> dict[str, Any]:
    job = valid_job()
    job["party"][0]["columns"] = {"u": [0, 1], "region": values}
    return job


def task_of(folder: Path, job: dict[str, Any]) -> FunctionalTask:
    task = load_job(write_job(folder, job)).task
    assert isinstance(task, FunctionalTask)
    return task


def write_a(folder: Path, *regions: str) -> None:
    rows = "".join(f"{i},{region},{i % 2}\n" for i, region in enumerate(regions))
    (folder / "a.csv").write_text(f"person,region,u\n{rows}")


def test_a_column_of_text_is_an_indicator_for_each_value_but_the_first(tmp_path: Path) -> None:
    write_a(tmp_path, "south", "north", " far west ", "south")
    task = task_of(tmp_path, job_with())
    assert [c.name for c in task.features["a"]] == ["u", "region=south", "region=far west"]
    table = read_table(task.parties[0], clip=False)
    np.testing.assert_array_equal(table.columns, [[0, 1, 0, 1], [1, 0, 0, 1], [0, 0, 1, 0]])
    facts = task.facts()
    assert facts["reference of region"] == "north"
    assert facts["column 3 of a"] == "region=far west in [0.0, 1.0], a value of region"


def test_parquet_with_a_dictionary(tmp_path: Path) -> None:
    column = pa.array(["north", "far west", "south"]).dictionary_encode()
    pa.parquet.write_table(pa.table({"person": [3, 1, 2], "u": [0, 1, 0], "region": column}), tmp_path / "a.csv")
    table = read_table(task_of(tmp_path, job_with()).parties[0], clip=False)
    np.testing.assert_array_equal(table.columns[1:], [[0, 1, 0], [1, 0, 0]])


def test_numbers_as_values(tmp_path: Path) -> None:
    pa.parquet.write_table(pa.table({"person": [1, 2], "u": [0, 1], "region": [7, 9]}), tmp_path / "a.csv")
    table = read_table(task_of(tmp_path, job_with(["7", "9", "11"])).parties[0], clip=False)
    np.testing.assert_array_equal(table.columns[1], [0, 1])


@pytest.mark.parametrize(
    ("regions", "wanted"),
    [
        (("south", "east"), "region is 'east' in data row 2; its values are north, south, far west"),
        (("south", ""), "region is empty in data row 2; give missing values a category of their own"),
        (("South", "south"), "region is 'South' in data row 1"),
    ],
)
def test_text_that_the_job_does_not_list(tmp_path: Path, regions: tuple[str, ...], wanted: str) -> None:
    write_a(tmp_path, *regions)
    with pytest.raises(TableError, match=wanted):
        read_table(task_of(tmp_path, job_with()).parties[0], clip=True)


@pytest.mark.parametrize(
    "values", [["one"], ["a", "a"], ["a", 3], ["a", " b"], ["a", ""], [f"v{i}" for i in range(101)]]
)
def test_bad_values(tmp_path: Path, values: list[Any]) -> None:
    with pytest.raises(JobError, match=r"region = .* must be 2 to 100 different values in quotes"):
        load_job(write_job(tmp_path, job_with(values)))


def test_protocols_without_text_say_what_they_need(tmp_path: Path) -> None:
    job = job_with()
    job["job"] |= {"protocol": "data_release", "delta": Raw("1e-6"), "method": "gram"}
    with pytest.raises(JobError, match=r"region = .* must be \[low, high\]"):
        load_job(write_job(tmp_path, job))


def test_the_sensitivity_is_that_of_one_category(tmp_path: Path) -> None:
    task = task_of(tmp_path, job_with())
    plan = task.plan(1000)
    assert plan.schema.categories == ("region",)
    expected = WeightedMoments(2, 1, 1 << plan.bits, plan_weights()).record
    assert plan.groups[0].mechanism.scale == expected / task.epsilon  # type: ignore[union-attr, operator]


def plan_weights() -> Any:
    from protocols.functional.weights import EQUAL

    return EQUAL


def test_a_model_of_text_predicts_from_text(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    regions = rng.choice(REGIONS, 300)
    write_a(tmp_path, *regions)
    effect = {"north": 0.5, "south": 2.0, "far west": 1.0}
    (tmp_path / "b.csv").write_text(
        "person,w,y\n" + "".join(f"{i},{i % 3},{effect[r]}\n" for i, r in enumerate(regions))
    )
    task = task_of(tmp_path, job_with())
    tables = {p.name: Held(p.name, read_table(p, clip=False).columns) for p in task.parties}
    release = functional.fit(ClearSession(Cast(("a", "b"))), tables, silenced(task.plan(300)))
    about = {"loss": "linear", "label": "y", "categories": {"region": REGIONS}}
    (tmp_path / "model.json").write_text(model_json(release, about))
    names = json.loads((tmp_path / "model.json").read_text())["coefficients"]
    assert list(names) == ["intercept", "u", "region=south", "region=far west", "w"]
    (tmp_path / "new.csv").write_text("w,region,u\n0,far west,0\n1,north,1\n2,south,0\n")
    found = [float(line) for line in predict_table(tmp_path, tmp_path / "new.csv")[0].splitlines()[1:]]
    np.testing.assert_allclose(found, [1.0, 0.5, 2.0], atol=0.2)
    (tmp_path / "new.csv").write_text("w,region,u\n0,east,0\n")
    with pytest.raises(TableError, match="region is 'east' in data row 1"):
        predict_table(tmp_path, tmp_path / "new.csv")


@pytest.mark.parametrize("column", [[["north"], ["south"]], [b"\xff", b"\xfe"]])
def test_values_that_are_no_text(tmp_path: Path, column: Any) -> None:
    pa.parquet.write_table(pa.table({"person": [1, 2], "u": [0, 1], "region": column}), tmp_path / "a.csv")
    with pytest.raises(TableError, match=r"a.csv: region holds .*; its values are whole numbers or text"):
        read_table(task_of(tmp_path, job_with()).parties[0], clip=False)

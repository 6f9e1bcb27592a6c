"""Ten mistakes of a first hour: each is one line that says what to do, and leaves nothing behind."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from launch.cli import main
from launch.keys import make_keys
from tests.launch.jobs import Raw, free_addresses, valid_job, write_job


@pytest.fixture
def job(tmp_path: Path) -> dict[str, Any]:
    """A job whose tables, keys and addresses are all right."""
    made = valid_job()
    places = (*made["party"], made["server"], made["dealer"])
    for place, address in zip(places, free_addresses(["127.0.0.1"] * len(places)), strict=True):
        make_keys(place["name"], tmp_path)
        place |= {"address": address, "certificate": f"{place['name']}.crt"}
    made["network"] = {"start_deadline": 1}
    (tmp_path / "a.csv").write_text("person,u,v\n1,0,0\n2,1,1\n3,1,2\n")
    (tmp_path / "b.csv").write_text("person,w,y\n1,1,0\n2,1,1\n3,2,3\n")
    return made


def line_of(capsys: pytest.CaptureFixture[str], folder: Path, job: dict[str, Any], name: str = "b") -> str:
    path, out = write_job(folder, job), folder / "out"
    assert main(["party", str(path), "--as", name, "--out", str(out)]) == 1
    error = capsys.readouterr().err
    assert error.count("\n") == 1 and error.startswith("smpc: ") and "Traceback" not in error, error
    assert not out.exists()
    return error


def test_a_typo_in_a_key(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]) -> None:
    job["job"]["epsilom"] = 1
    assert "unknown key 'epsilom'; did you mean 'epsilon'?" in line_of(capsys, tmp_path, job)


def test_a_wrong_column(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]) -> None:
    job["party"][1]["columns"] = {"weight": [0, 1], "y": [0, 3]}
    error = line_of(capsys, tmp_path, job)
    assert "b.csv: column 'weight' is missing; the table has 'person', 'w', 'y'" in error


def test_a_label_of_three_classes(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]) -> None:
    job["job"]["loss"] = "logistic"
    assert "needs the bounds [0, 1]" in line_of(capsys, tmp_path, job)
    (tmp_path / "b.csv").write_text("person,w,y\n1,1,0\n2,1,1\n3,2,2\n")
    job["party"][1]["columns"]["y"] = [0, 1]
    assert "y is outside its bounds [0, 1] in 1 rows" in line_of(capsys, tmp_path, job)


@pytest.mark.parametrize("value", [Raw("10_0"), "10%", Raw("5e1_0")])
def test_percent_for_a_fraction(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any], value: Any
) -> None:
    job["job"]["epsilon"] = value
    error = line_of(capsys, tmp_path, job)
    assert "must be a number above 0 and up to 50" in error


def test_delta_in_percent(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]) -> None:
    job["job"] |= {"mechanism": "gaussian", "delta": 5}
    assert "delta = 5 must be a number between 0 and 1 like 1e-6" in line_of(capsys, tmp_path, job)


def test_epsilon_zero(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]) -> None:
    job["job"]["epsilon"] = 0
    assert "epsilon = 0 must be a number above 0" in line_of(capsys, tmp_path, job)


@pytest.fixture
def taken() -> Iterator[int]:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        yield int(other.getsockname()[1])


def test_a_port_in_use(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any], taken: int) -> None:
    job["party"][1]["address"] = f"127.0.0.1:{taken}"
    error = line_of(capsys, tmp_path, job)
    assert str(taken) in error and "in use" in error.lower()


def test_a_missing_key(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]) -> None:
    (tmp_path / "b.key").unlink()
    error = line_of(capsys, tmp_path, job)
    assert "b.key" in error and ("smpc keys new" in error or "--key" in error)


def test_the_table_of_another_party(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]) -> None:
    job["party"][1]["table"] = "a.csv"
    assert "a.csv: column 'w' is missing; the table has 'person', 'u', 'v'" in line_of(capsys, tmp_path, job)


def test_an_unknown_protocol(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]) -> None:
    job["job"]["protocol"] = "fuctional"
    assert "protocol = 'fuctional' must be one of functional, " in line_of(capsys, tmp_path, job)


def test_a_full_disk(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    model = '{"loss": "linear", "label": "y", "coefficients": {"intercept": 0.5, "u": 1.0}}'
    (tmp_path / "model.json").write_text(model)
    (tmp_path / "new.csv").write_text("u\n1\n2\n")
    assert main(["predict", str(tmp_path), str(tmp_path / "new.csv"), "--out", "/dev/full"]) == 1
    error = capsys.readouterr().err
    assert "No space left on device" in error and error.count("\n") == 1


def test_a_ledger_without_a_cap_is_told_before_any_connection(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]
) -> None:
    job["party"][1] |= {"ledger": "ledger.db", "data_set": "patients"}
    error = line_of(capsys, tmp_path, job)
    command = f"smpc ledger cap {tmp_path / 'ledger.db'} patients EPSILON"
    assert f"patients: no cap for one record in ledger.db; set one with `{command}`" in error
    assert main([*command.split()[1:-1], "0.05"]) == 0
    capsys.readouterr()
    assert "epsilon cap 0.05 for one record, 0 spent, 0.1 asked" in line_of(capsys, tmp_path, job)
    assert main(["ledger", "show", str(tmp_path / "ledger.db")]) == 0
    assert "epsilon 0 of 0.05 spent" in capsys.readouterr().out


def test_a_link_as_output_folder(capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "real")
    path = write_job(tmp_path, job)
    assert main(["party", str(path), "--as", "b", "--out", str(tmp_path / "link")]) == 1
    assert "link: is a link; name the folder itself" in capsys.readouterr().err


def test_predictions_overwrite_nothing(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    (tmp_path / "model.json").write_text('{"loss": "linear", "label": "y", "coefficients": {"intercept": 1, "u": 1.0}}')
    (tmp_path / "new.csv").write_text("u\n1\n2\n")
    table = str(tmp_path / "new.csv")
    assert main(["predict", str(tmp_path), table, "--out", table]) == 1
    assert "new.csv: exists; name a new file" in capsys.readouterr().err
    assert (tmp_path / "new.csv").read_text() == "u\n1\n2\n"


def test_other_separators_are_told_without_a_value_of_the_table(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, job: dict[str, Any]
) -> None:
    (tmp_path / "b.csv").write_text("person,w,y\n1,hidden,0\n2,8765,4,1\n")
    error = line_of(capsys, tmp_path, job)
    assert "line 3 has 4 values, the first line 3; commas separate them" in error
    assert "hidden" not in error and "8765" not in error

"""Logarithms at every edge of the window, tables on disk, refusal of windows that cannot be searched."""

from __future__ import annotations

import os
import shutil
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from smpc.bgn import dlog
from smpc.bgn.curve import G1, G2, GT, Group
from smpc.bgn.dlog import WINDOW, WINDOW_BITS, DiscreteLog, OutOfWindow
from smpc.errors import InputError
from smpc.fixedpoint import check_sum


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("tables")
    return path


@pytest.mark.parametrize("group", [G1, GT], ids=str)
def test_every_integer_of_a_small_window_and_none_outside(group: Group, folder: Path) -> None:
    logarithm = DiscreteLog(group, 40, folder)
    values = list(range(-60, 61))
    expected = [value if abs(value) <= 40 else None for value in values]
    assert logarithm(group.power(group.generator, values)) == expected


@pytest.mark.parametrize("group", [G1, GT], ids=str)
@pytest.mark.parametrize("bound", [2**26 + 12345, 2**29])
def test_seams_between_giant_steps_and_ends_of_the_window(group: Group, bound: int, folder: Path) -> None:
    logarithm = DiscreteLog(group, bound, folder)
    n = logarithm.steps
    assert 2 * n + 1 < bound
    inside = [0, 1, n, n + 1, 2 * n, 2 * n + 1, 3 * n + 1, 3 * n + 2, bound - 1, bound]
    for sign in (1, -1):
        values = [sign * value for value in [*inside, bound + 1, bound + n, 3 * bound]]
        assert logarithm(group.power(group.generator, values)) == [*values[:-3], None, None, None]


@given(value=st.integers(-(2**24), 2**24))
@settings(max_examples=25)
def test_any_value(value: int, folder: Path) -> None:
    assert DiscreteLog(GT, 2**24, folder)(GT.power(GT.generator, [value])) == [value]


def test_false_hits_in_the_table_are_not_believed(folder: Path) -> None:
    logarithm = DiscreteLog(GT, 1000, folder)
    logarithm._order = logarithm._order[::-1]
    assert logarithm(GT.power(GT.generator, [17])) == [None]


def test_an_element_that_is_no_small_power_is_outside(folder: Path) -> None:
    assert DiscreteLog(GT, 10**6, folder)(GT.power(GT.generator, [2**200])) == [None]


def test_the_table_is_kept_and_a_damaged_one_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = GT.power(GT.generator, [900, -900])
    assert DiscreteLog(GT, 1000, tmp_path)(values) == [900, -900]
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()
    for damaged in (whole[:-1], whole[:40] + b"x" + whole[41:], b"", whole + b"x"):
        path.write_bytes(damaged)
        assert DiscreteLog(GT, 1000, tmp_path)(values) == [900, -900]
        assert path.read_bytes() == whole
    monkeypatch.setattr(dlog, "_walk", None)  # no table is built any more
    DiscreteLog(GT, 1000, tmp_path)


def test_a_folder_that_cannot_be_written_only_costs_time(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert DiscreteLog(GT, 1000, tmp_path / "file")(GT.power(GT.generator, [5])) == [5]


def test_anothers_table_is_whole_and_not_believed(tmp_path: Path) -> None:
    DiscreteLog(G1, 1000, tmp_path)
    (path,) = tmp_path.iterdir()
    foreign = tmp_path / path.name.replace("G1", "GT")
    shutil.copy(path, foreign)
    assert DiscreteLog(GT, 1000, tmp_path)(GT.power(GT.generator, [900, -900])) == [900, -900]
    assert foreign.read_bytes() != path.read_bytes()


def test_what_is_no_file_of_a_tables_size_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    DiscreteLog(G1, 1000, tmp_path)
    (path,) = tmp_path.iterdir()
    whole = path.read_bytes()

    def pipe() -> None:
        os.mkfifo(path)

    def endless() -> None:
        path.symlink_to("/dev/zero")

    def huge() -> None:
        with path.open("wb") as file:
            file.truncate(1 << 40)

    for make in (pipe, endless, huge):
        path.unlink()
        make()
        with monkeypatch.context() as patch:
            patch.setattr(dlog.Path, "read_bytes", None)
            assert DiscreteLog(G1, 1000, tmp_path)(G1.power(G1.generator, [5])) == [5]
        assert path.read_bytes() == whole


def test_nothing_is_left_of_a_table_that_cannot_be_kept(tmp_path: Path) -> None:
    DiscreteLog(G1, 1000, tmp_path)
    (path,) = tmp_path.iterdir()
    path.unlink()
    path.mkdir()
    assert DiscreteLog(G1, 1000, tmp_path)(G1.power(G1.generator, [5])) == [5]
    assert list(tmp_path.iterdir()) == [path]


def test_a_user_without_a_home_keeps_no_table(monkeypatch: pytest.MonkeyPatch) -> None:
    def none() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(dlog.Path, "home", none)
    assert DiscreteLog(G1, 1000)(G1.power(G1.generator, [5])) == [5]


@pytest.mark.parametrize("bound", [0, -1, 2**WINDOW_BITS + 1])
def test_bounds_out_of_range_are_refused(bound: int) -> None:
    with pytest.raises(InputError, match=r"window = .*2\^42"):
        DiscreteLog(GT, bound)


def test_no_logarithms_in_the_second_group(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="G2"):
        DiscreteLog(G2, 10, tmp_path)


def test_all_of_them_or_one_fixed_outcome(folder: Path) -> None:
    logarithm = DiscreteLog(GT, 1000, folder)
    assert logarithm.all_of(GT.power(GT.generator, [3, -1000]), to_the_end=False).tolist() == [3, -1000]
    messages = set()
    for values in ([3, 1001], [-1001, -1001], [2**200, 3]):
        with pytest.raises(OutOfWindow) as caught:
            logarithm.all_of(GT.power(GT.generator, values), to_the_end=True)
        messages.add(str(caught.value))
    assert len(messages) == 1


def test_the_room_is_what_can_be_searched(folder: Path) -> None:
    check_sum(1, Fraction(1), 20, 2**42 - 2**40 - 1, WINDOW)
    with pytest.raises(InputError, match=r"can leave the window that decryption searches \(2\^42\); .* fits"):
        check_sum(1, Fraction(1), 21, 0, WINDOW)

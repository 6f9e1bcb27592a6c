"""Job files: what is accepted is exact, every fault is one line that names file, key, value and remedy."""

from __future__ import annotations

import copy
import math
import os
import threading
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from launch.job import Job, JobError, load_job
from launch.keys import make_keys
from launch.participant import Endpoints
from launch.tasks.functional import FunctionalTask
from smpc.engine.handshake import MAX_FACT_KEY, MAX_FACT_VALUE
from smpc.errors import InputError
from tests.launch.jobs import Raw, valid_job, write_job

ABSENT = object()


def changed(path: list[Any], value: Any) -> dict[str, Any]:
    """The valid job with one value replaced, added or taken out."""
    job = valid_job()
    place: Any = job
    for key in path[:-1]:
        place = place[key]
    if value is ABSENT:
        del place[path[-1]]
    else:
        place[path[-1]] = value
    return job


def fault(folder: Path, job: dict[str, Any] | str) -> str:
    """The one line that a job file is refused with, checked to name the file."""
    path = write_job(folder, job)
    with pytest.raises(JobError) as caught:
        load_job(path)
    line = str(caught.value)
    assert line.startswith(f"{path}: "), line
    assert line.isprintable() and len(line) < len(str(path)) + 300, line
    return line.removeprefix(f"{path}: ")


def functional_task(job: Job) -> FunctionalTask:
    assert isinstance(job.task, FunctionalTask)
    return job.task


def test_a_valid_job(tmp_path: Path) -> None:
    job = load_job(write_job(tmp_path, valid_job()))
    task = functional_task(job)
    assert (job.name, job.protocol, task.options.loss, task.noise) == ("test", "functional", "linear", "shares")
    assert (task.clip, task.fraction_bits, job.deadline, job.start_deadline) == (False, None, 30.0, 300.0)
    assert [endpoint.name for endpoint in job.participants] == ["a", "b", "server", "dealer"]
    assert [column.name for column in task.features["b"]] == ["w"]
    assert (task.label_party, task.label.name, task.label.low, task.label.high) == ("b", "y", 0.0, 3.0)
    a = task.parties[0]
    assert (a.table, a.id, a.ledger, a.data_set) == (tmp_path / "a.csv", "person", None, "a")
    assert [(column.name, column.low, column.high) for column in a.columns] == [("u", 0, 1), ("v", -2.5, 4)]


def test_a_byte_order_mark_is_no_fault(tmp_path: Path) -> None:
    path = write_job(tmp_path, valid_job())
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes())
    assert load_job(path).name == "test"


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (Raw("0.1"), Fraction(1, 10)),
        (Raw("1e-3"), Fraction(1, 1000)),
        (Raw("0.30000000000000004"), Fraction(30000000000000004, 10**17)),
        (1, Fraction(1)),
        ("0.1", Fraction(1, 10)),
        ("1/3", Fraction(1, 3)),
        (50, Fraction(50)),
    ],
)
def test_epsilon_is_what_the_file_spells(tmp_path: Path, text: Any, value: Fraction) -> None:
    assert functional_task(load_job(write_job(tmp_path, changed(["job", "epsilon"], text)))).epsilon == value


@pytest.mark.parametrize(
    "value",
    [0, -1, Raw("-0.0"), Raw("nan"), Raw("inf"), Raw("-inf"), True, "abc", "", "1/0", "nan", [1], {}, 51, Raw("50.001"),
     Raw("2001-01-01"), Raw("1e-400000000"), "1e-400000000", "1e999999999", Raw("1e400"), Raw("0." + "1" * 100),
     Raw("1" * 100)],
)  # fmt: skip
def test_bad_epsilon(tmp_path: Path, value: Any) -> None:
    line = fault(tmp_path, changed(["job", "epsilon"], value))
    assert line.startswith("[job]: epsilon = ")
    assert "must be a number above 0 and up to 50 like 0.1 or '1/3' (allow_weak = true lifts the limit)" in line


def test_a_weak_epsilon_has_to_be_asked_for(tmp_path: Path) -> None:
    job = changed(["job", "epsilon"], 51)
    job["job"]["allow_weak"] = True
    assert functional_task(load_job(write_job(tmp_path, job))).epsilon == 51
    for value in (0, "yes"):
        job["job"]["allow_weak"] = value
        assert fault(tmp_path, job).startswith("[job]: allow_weak = ")


LEVELS: list[tuple[list[Any], str, str, str]] = [
    ([], "partty", "", "party"),
    (["job"], "epsilom", "[job]", "epsilon"),
    (["label"], "colum", "[label]", "column"),
    (["server"], "adress", "[server]", "address"),
    (["dealer"], "nane", "[dealer]", "name"),
    (["party", 1], "tabel", "[[party]] 2", "table"),
]


@pytest.mark.parametrize(("level", "typo", "where", "meant"), LEVELS)
def test_unknown_key(tmp_path: Path, level: list[Any], typo: str, where: str, meant: str) -> None:
    prefix = f"{where}: " if where else ""
    assert fault(tmp_path, changed([*level, typo], 1)) == f"{prefix}unknown key {typo!r}; did you mean {meant!r}?"
    assert fault(tmp_path, changed([*level, "q\n"], 1)).startswith(f"{prefix}unknown key 'q\\n'; known keys: ")


@pytest.mark.parametrize("key", ["job", "label", "server", "dealer"])
def test_missing_or_mistyped_table(tmp_path: Path, key: str) -> None:
    assert fault(tmp_path, changed([key], ABSENT)) == f"the table [{key}] is missing; add it"
    assert fault(tmp_path, changed([key], 3)) == f"[{key}] is 3: must be a table of keys and values"
    assert fault(tmp_path, changed([key], [1])) == f"[{key}] is [1]: must be a table of keys and values"


@pytest.mark.parametrize(
    ("path", "where"),
    [
        (["job", "name"], "[job]: name"),
        (["job", "protocol"], "[job]: protocol"),
        (["job", "epsilon"], "[job]: epsilon"),
        (["label", "party"], "[label]: party"),
        (["label", "column"], "[label]: column"),
        (["server", "name"], "[server]: name"),
        (["dealer", "name"], "[dealer]: name"),
        (["party", 0, "name"], "[[party]] 1: name"),
        (["party", 0, "table"], "[[party]] 1: table"),
        (["party", 1, "id"], "[[party]] 2: id"),
        (["party", 1, "columns"], "[[party]] 2: columns"),
    ],
)
def test_missing_key(tmp_path: Path, path: list[Any], where: str) -> None:
    assert fault(tmp_path, changed(path, ABSENT)) == f"{where} is missing; add it"


TEXT = "text in quotes, 1 to"
NAME = "small letters, digits, - and _, at most 32, a letter first"
BOUNDS = "must be [low, high], two numbers: the public bounds of its values"
INTERVAL = "need low < high, both within +-1e+100, further apart than 1e-09 of their size"


@pytest.mark.parametrize(
    ("path", "value", "wanted"),
    [
        (["job", "name"], 3, f"[job]: name = 3 must be {TEXT} 64 printable characters"),
        (["job", "name"], "", f"[job]: name = '' must be {TEXT} 64"),
        (["job", "name"], "two\nlines", rf"[job]: name = 'two\nlines' must be {TEXT} 64"),
        (["job", "name"], "x" * 65, f"[job]: name = '{'x' * 59}... must be {TEXT} 64"),
        (["job", "protocol"], "functionl", "[job]: protocol = 'functionl' must be one of functional"),
        (["job", "protocol"], [1], "[job]: protocol = [1] must be one of functional"),
        (["job", "loss"], "logisitc", "[job]: loss = 'logisitc' must be one of linear"),
        (["job", "noise"], True, "[job]: noise = true must be one of shares"),
        (["job", "clip"], "true", "[job]: clip = 'true' must be true or false"),
        (["job", "clip"], 1, "[job]: clip = 1 must be true or false"),
        (["job", "fraction_bits"], 0, "[job]: fraction_bits = 0 must be a whole number from 1 to 30"),
        (["job", "fraction_bits"], 31, "[job]: fraction_bits = 31 must be a whole number from 1 to 30"),
        (["job", "fraction_bits"], True, "[job]: fraction_bits = true must be a whole number from 1 to 30"),
        (["job", "fraction_bits"], Raw("2.0"), "[job]: fraction_bits = 2.0 must be a whole number from 1 to 30"),
        (["job", "mechanism"], "laplacian", "[job]: mechanism = 'laplacian' must be one of laplace, gaussian"),
        (["job", "repair"], 3, "[job]: repair = 3 must be one of ridge"),
        (["job", "margin"], 0, "[job]: margin = 0 must be a number from 0.01 to 100"),
        (["job", "margin"], Raw("nan"), "[job]: margin = nan must be a number from 0.01 to 100"),
        (["job", "delta"], Raw("1e-6"), "delta = 1/1000000: mechanism = 'gaussian' needs one in (0, 1), the others"),
        (["job", "delta"], 0, "[job]: delta = 0 must be a number between 0 and 1 like 1e-6"),
        (["job", "delta"], Raw("1e-999999999"), "[job]: delta = 1E-999999999 must be a number between 0 and 1 like"),
        (["job", "mechanism"], "gaussian", "delta is missing: mechanism = 'gaussian' needs one in (0, 1), the others"),
        (["job", "release"], "ordered", "release = 'ordered' exists to reproduce the source"),
        (["budgets"], 3, "[budgets] is 3: must be a table of keys and values"),
        (["budgets"], {"c": 1}, "[budgets]: unknown key 'c'; known keys: a, b, a+b, b+a"),
        (["budgets"], {"a": 0}, "[budgets]: a = 0 must be a number above 0 and up to 50"),
        (["budgets"], {"a+b": 1, "b+a": 1}, "[budgets]: b+a is given twice, in both orders; leave one out"),
        (["budgets"], {"a": 1}, "epsilon beside [budgets]: bottom-up it is the budgets' sum; leave one of them out"),
        (["label", "party"], "c", "[label]: party = 'c' must be one of a, b"),
        (["label", "party"], "a", "[label]: column = 'y' must be one of u, v"),
        (["label", "column"], "z", "[label]: column = 'z' must be one of w, y"),
        (["label", "column"], 3, "[label]: column = 3 must be one of w, y"),
        (
            ["party", 1, "columns", "y"],
            ["no", "yes"],
            "[label]: column = 'y' must be a column of numbers, and this is one",
        ),
        (["party", 1, "columns", "u"], ["no", "yes"], "the column 'u' is given twice; model.json names columns"),
        (["server", "name"], "Server", f"[server]: name = 'Server' must be {NAME}"),
        (["dealer", "name"], "../x", f"[dealer]: name = '../x' must be {NAME}"),
        (["party", 0, "name"], "a" * 33, f"[[party]] 1: name = '{'a' * 33}' must be {NAME}"),
        (["party", 1, "name"], "a", "the name 'a' is given twice; rename one"),
        (["server", "name"], "b", "the name 'b' is given twice; rename one"),
        (["dealer", "name"], "server", "the name 'server' is given twice; rename one"),
        (["party", 0, "table"], 3, f"[[party]] 1: table = 3 must be {TEXT} 1000 printable characters"),
        (["party", 0, "table"], "a\0b", rf"[[party]] 1: table = 'a\x00b' must be {TEXT} 1000"),
        (["party", 0, "ledger"], True, f"[[party]] 1: ledger = true must be {TEXT} 1000"),
        (["party", 0, "data_set"], {}, f"[[party]] 1: data_set = a table must be {TEXT} 64"),
        (["party", 0, "id"], "u", "[[party]] 1: id = 'u' is one of the columns; ids are no feature"),
        (["party"], [], "needs at least two [[party]] tables, has 0"),
        (["party"], valid_job()["party"][:1], "needs at least two [[party]] tables, has 1"),
        (["party"], 3, "needs at least two [[party]] tables, has 0"),
        (["party", 0], 3, "[[party]] 1 is 3: must be a table of keys and values"),
        (["party", 0, "columns"], {}, "columns of a: must be a table of NAME = [low, high]"),
        (["party", 0, "columns"], ["u"], "columns of a: must be a table of NAME = [low, high]"),
        (["party", 0, "columns", "w"], [0, 1], "the column 'w' is given twice; model.json names columns, rename one"),
        (["party", 0, "columns", "a\tb"], [0, 1], r"columns of a: the name 'a\tb' must be 1 to 64 printable"),
        (
            ["party", 0, "columns", "intercept"],
            [0, 1],
            "columns of a: intercept is what models call their constant term",
        ),
        (["party", 0, "columns", ""], [0, 1], "columns of a: the name '' must be 1 to 64 printable"),
        (["party", 0, "columns", "u"], [1, 0], f"columns of a: bounds of u are [1.0, 0.0]: {INTERVAL}"),
        (["party", 0, "columns", "u"], [1, 1], f"columns of a: bounds of u are [1.0, 1.0]: {INTERVAL}"),
        (["party", 0, "columns", "u"], [0, Raw("inf")], f"columns of a: bounds of u are [0.0, inf]: {INTERVAL}"),
        (["party", 0, "columns", "u"], [0, Raw("1e400")], f"columns of a: bounds of u are [0.0, inf]: {INTERVAL}"),
        (["party", 0, "columns", "u"], [Raw("nan"), 1], f"columns of a: u = [nan, 1] {BOUNDS}"),
        (["party", 0, "columns", "u"], [0, 10**400], f"columns of a: u = [0, 1{'0' * 55}... {BOUNDS}"),
        (["party", 0, "columns", "u"], [0], f"columns of a: u = [0] {BOUNDS}"),
        (["party", 0, "columns", "u"], [0, 1, 2], f"columns of a: u = [0, 1, 2] {BOUNDS}"),
        (["party", 0, "columns", "u"], [False, True], f"columns of a: u = [false, true] {BOUNDS}"),
        (["party", 0, "columns", "u"], "0..1", f"columns of a: u = '0..1' {BOUNDS}"),
        (["network"], {"deadlin": 3}, "[network]: unknown key 'deadlin'; did you mean 'deadline'?"),
        (["network"], {"deadline": 0}, "[network]: deadline = 0 must be a number from 1 to 3600"),
        (["network"], {"deadline": Raw("nan")}, "[network]: deadline = nan must be a number from 1 to 3600"),
        (["network"], {"deadline": "30"}, "[network]: deadline = '30' must be a number from 1 to 3600"),
        (["network"], {"start_deadline": True}, "[network]: start_deadline = true must be a number from 1 to 86400"),
        (["network"], 3, "[network] is 3: must be a table of keys and values"),
    ],
)
def test_bad_value(tmp_path: Path, path: list[Any], value: Any, wanted: str) -> None:
    assert fault(tmp_path, changed(path, value)).startswith(wanted)


@pytest.mark.parametrize(
    "bounds",
    [
        (Raw("-1e308"), Raw("1e308")),  # their distance is no float64
        (Raw("1e308"), Raw("1.7e308")),  # their sum is none
        (0, Raw("5e-324")),  # half of it is 0
        (Raw("1e17"), 10**17 + 16),  # neighbours: nothing lies between
    ],
)
def test_bounds_that_float64_cannot_scale(tmp_path: Path, bounds: tuple[Any, Any]) -> None:
    assert INTERVAL in fault(tmp_path, changed(["party", 0, "columns", "u"], list(bounds)))


@pytest.mark.parametrize(
    "address",
    ["x", "host:", ":5", "host:0", "host:65536", "host:x", "host:-1", "host:٣", "a b:5", "::1:5", "..:5",
     "a" * 64 + ":5", "h\0:5", "h/x:5", 5],
)  # fmt: skip
def test_bad_address(tmp_path: Path, address: Any) -> None:
    assert fault(tmp_path, changed(["party", 0, "address"], address)).startswith("[[party]] 1: address = ")


def test_addresses(tmp_path: Path) -> None:
    for text, address in (("127.0.0.1:7001", ("127.0.0.1", 7001)), ("[::1]:65535", ("::1", 65535))):
        job = load_job(write_job(tmp_path, changed(["dealer", "address"], text)))
        assert job.dealer.address == address
    job = changed(["dealer", "address"], "h:1")
    job["party"][1]["address"] = "h:1"
    assert fault(tmp_path, job) == "two participants have the address h:1; give each its own port"


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", "the table [job] is missing"),
        ("[job", "is not TOML: "),
        ("a = 1\na = 2", "is not TOML: "),
        ("x = " + "[" * 5000, "is not TOML: "),
        ("x = " + "9" * 5000, "is not TOML: "),
        ("# 1,5\n[job]\nepsilon = 0,5", "is not TOML: Expected newline or end of document after a statement"),
    ],
)
def test_not_a_job(tmp_path: Path, text: str, wanted: str) -> None:
    assert fault(tmp_path, text).startswith(wanted)


@pytest.mark.parametrize(
    ("line", "hint"),
    [
        ("epsilon = 0,5", "the decimal sign is a point, like 0.5"),
        (r'table = "C:\data\ward.csv"', "write places of files with / in place of \\"),
        ("table = ward.csv", "text stands in quotes; true and false are small"),
        ("clip = Yes", "text stands in quotes; true and false are small"),
    ],
)
def test_common_slips_are_told(tmp_path: Path, line: str, hint: str) -> None:
    told = fault(tmp_path, f'# x = 1,5\nname = "a = 1,5"\n{line}\n')
    assert "(at line 3, column " in told and told.endswith(f": {hint}")


def test_a_job_from_a_pipe_is_read_once(tmp_path: Path) -> None:
    text = write_job(tmp_path, valid_job()).read_text()
    for content, told in ((text, None), (text + "epsilon = 0,5\n", "the decimal sign is a point")):
        pipe = tmp_path / f"{told}.toml"
        os.mkfifo(pipe)
        writer = threading.Thread(target=pipe.write_text, args=(content,), daemon=True)
        writer.start()
        if told is None:
            assert load_job(pipe).name == "test"
        else:
            with pytest.raises(JobError, match=told):
                load_job(pipe)
        writer.join(10)


def test_of_other_lines_nothing_is_said(tmp_path: Path) -> None:
    for text in ("[job", 'name = "open\nepsilon = 0,5', "a = 1\na = 2"):
        assert fault(tmp_path, text).endswith((")", "document)")), text


def test_unreadable_files(tmp_path: Path) -> None:
    binary = tmp_path / "job.toml"
    binary.write_bytes(b"\xff\xfe\x00")
    for path, reason in (
        (binary, "is not TOML: "),
        (tmp_path, "cannot be read (Is a directory)"),
        (tmp_path / "none.toml", "cannot be read (No such file or directory)"),
    ):
        with pytest.raises(JobError) as caught:
            load_job(path)
        assert str(caught.value).startswith(f"{path}: {reason}") and str(caught.value).isprintable()


def open_job(folder: Path) -> dict[str, Any]:
    """A job for participants on hosts of their own, with real certificates."""
    job = valid_job()
    for number, endpoint in enumerate([*job["party"], job["server"], job["dealer"]], 1):
        _, certificate = make_keys(endpoint["name"], folder)
        endpoint |= {"address": f"127.0.0.{number}:7001", "certificate": certificate.name}
    return job


def test_endpoints_need_address_and_certificate_of_everybody(tmp_path: Path) -> None:
    job = open_job(tmp_path)
    addresses, certificates = load_job(write_job(tmp_path, job)).endpoints()
    assert addresses["server"] == ("127.0.0.3", 7001) and certificates["b"] == tmp_path / "b.crt"
    for key in ("address", "certificate"):
        incomplete = copy.deepcopy(job)
        del incomplete["server"][key]
        with pytest.raises(JobError, match=r"server needs an address and a certificate .* `smpc keys new`"):
            load_job(write_job(tmp_path, incomplete)).endpoints()


def test_a_certificate_for_two_participants_is_refused(tmp_path: Path) -> None:
    job = open_job(tmp_path)
    (tmp_path / "copy.crt").write_bytes((tmp_path / "a.crt").read_bytes())
    job["dealer"]["certificate"] = "copy.crt"
    with pytest.raises(JobError, match="a and dealer have the same certificate; each needs its own, `smpc keys new`"):
        load_job(write_job(tmp_path, job)).endpoints()


def test_an_unusable_certificate_file(tmp_path: Path) -> None:
    job = open_job(tmp_path)
    for content in (None, b"", b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"):
        if content is None:
            (tmp_path / "server.crt").unlink()
        else:
            (tmp_path / "server.crt").write_bytes(content)
        with pytest.raises(InputError) as caught:
            load_job(write_job(tmp_path, job)).endpoints()
        line = str(caught.value)
        assert str(tmp_path / "server.crt") in line and "`smpc keys new`" in line and line.isprintable()


def public(folder: Path, job: dict[str, Any]) -> dict[str, str]:
    loaded = load_job(write_job(folder, job))
    return loaded.public_facts() | Endpoints(*loaded.endpoints()).public_facts()


def test_public_facts_hold_no_place_of_a_table(tmp_path: Path) -> None:
    job = open_job(tmp_path)
    job["party"][0] |= {"table": "secret-table.csv", "ledger": "secret-ledger.db", "data_set": "secret-name"}
    told = repr(public(tmp_path, job))
    assert "secret" not in told and str(tmp_path) not in told and "a.crt" not in told


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (["job", "name"], "other"),
        (["job", "epsilon"], Raw("0.10000000000000001")),
        (["job", "noise"], "paper"),
        (["job", "fraction_bits"], 12),
        (["job", "clip"], True),
        (["label", "column"], "w"),
        (["job", "loss"], "logistic"),
        (["job", "sensitivity"], "paper"),
        (["job", "repair"], "none"),
        (["job", "margin"], 5),
        (["network"], {"deadline": 31}),
        (["server", "name"], "solver"),
        (["dealer", "name"], "helper"),
        (["party"], valid_job()["party"][::-1]),
        (["party", 0, "columns"], {"v": [Raw("-2.5"), 4], "u": [0, 1]}),  # the order is the model's order
        (["party", 0, "columns"], {"u": [0, 1]}),
        (["party", 0, "columns", "t"], [0, 1]),
        (["party", 0, "columns", "u"], [0, Raw("1.0000000000000002")]),
        (["party", 0, "address"], "127.0.0.9:7001"),
        (["party", 0, "certificate"], "a2.crt"),
    ],
)
def test_a_difference_in_the_job_is_a_difference_in_a_fact_that_both_state(
    tmp_path: Path, path: list[Any], value: Any
) -> None:
    make_keys("a2", tmp_path)
    job = open_job(tmp_path)
    other = copy.deepcopy(job)
    place: Any = other
    for key in path[:-1]:
        place = place[key]
    if path == ["party"]:
        value = job["party"][::-1]
    place[path[-1]] = value
    one, two = public(tmp_path, job), public(tmp_path, other)
    assert [key for key in one.keys() & two.keys() if one[key] != two[key]]


def test_budgets_that_only_one_side_has_are_a_difference(tmp_path: Path) -> None:
    job = open_job(tmp_path)
    del job["job"]["epsilon"]
    job["budgets"] = {"a": 1, "b": 1}
    one = public(tmp_path, job)
    job["budgets"]["a+b"] = 1
    two = public(tmp_path, job)
    assert [key for key in one.keys() & two.keys() if one[key] != two[key]] == ["number of budgets"]


def test_the_longest_facts_fit_into_a_handshake(tmp_path: Path) -> None:
    job = open_job(tmp_path)
    job["job"] |= {"name": "n" * 64, "epsilon": "1/" + "3" * 38, "allow_weak": True}
    job["party"][1]["name"] = job["label"]["party"] = "b" * 32
    long = "y" * 64
    job["party"][1]["columns"] = {"w": [0, 1], long: [Raw("-1.2345678901234567e-99"), Raw("1.2345678901234567e99")]}
    job["label"]["column"] = long
    job["server"]["address"] = ".".join(["h" * 63] * 3) + ":65535"
    facts = public(tmp_path, job)
    assert max(map(len, facts)) <= MAX_FACT_KEY and max(map(len, facts.values())) <= MAX_FACT_VALUE


plain = st.one_of(
    st.none().map(lambda _: ABSENT),
    st.booleans(),
    st.integers(-(10**30), 10**30),
    st.floats().map(lambda x: Raw(repr(x).replace("e+", "e"))),
    st.decimals(allow_nan=False, allow_infinity=False).map(lambda d: Raw(f"{d.adjusted()}.5e{d.adjusted()}")),
    st.text(st.characters(codec="utf-8"), max_size=20),
    st.sampled_from([Raw("1979-05-27"), Raw("07:32:00"), Raw("1979-05-27T07:32:00Z"), "a", "b", "y", "1/3", "h:1"]),
)
anything = st.recursive(
    plain.filter(lambda x: x is not ABSENT),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=6,
)


def places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All paths into a nested value."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    return [path, *(place for key, item in items for place in places(item, (*path, key)))]


@given(st.data(), st.integers(1, 3))
@example(None, 0)
def test_a_job_file_changed_at_random_is_a_job_or_one_line(
    tmp_path_factory: pytest.TempPathFactory, data: Any, changes: int
) -> None:
    job = valid_job()
    for _ in range(changes):
        path = list(data.draw(st.sampled_from(places(job)[1:])))
        value = data.draw(plain | anything)
        place: Any = job
        for key in path[:-1]:
            place = place[key]
        if isinstance(place, dict) and data.draw(st.booleans()):
            path[-1] = data.draw(st.text(max_size=8) | st.sampled_from(["address", "loss", "noise", "clip", "network"]))
        if value is ABSENT:
            if path[-1] in place if isinstance(place, dict) else True:
                del place[path[-1]]
        else:
            place[path[-1]] = value
        if not job:
            break
    path = write_job(tmp_path_factory.getbasetemp(), job, "random.toml")
    try:
        loaded = load_job(path)
    except JobError as error:
        assert str(error).startswith(str(path)) and str(error).isprintable()
    else:
        check(loaded)


def check(job: Job) -> None:
    """What every accepted job must have, whatever the file said."""
    task = functional_task(job)
    assert (task.epsilon or 1) > 0 and 1 <= job.deadline <= 3600
    assert len({endpoint.name for endpoint in job.participants}) == len(task.parties) + 2 >= 4
    for party in task.parties:
        assert task.features[party.name] or party.name == task.label_party
        assert all(math.isfinite(column.low) and column.low < column.high for column in party.columns)
    assert all(value.isprintable() for value in job.public_facts().values())

"""Required rows, the four orders of noise, refusals, exact JSON."""

import json
import math
from dataclasses import replace
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from mechanisms.coalition import Coalition, required
from mechanisms.guarantee import INFINITE, OPENED_BEFORE_NOISE, Guarantee, Row
from mechanisms.neighbours import FlipLabel, Neighbours, ReplaceParty, ReplaceRecord

SERVER = frozenset({"server"})


def build(order: str = "shares", **changes: object) -> Guarantee:
    settings: dict[str, object] = {
        "order": order,
        "epsilon": "0.1",
        "parties": ("A", "B", "C"),
        "server": "server",
        "dealer": "dealer",
        "mechanism": "discrete Laplace, scale 100",
    }
    return Guarantee.for_release(**{**settings, **changes})  # type: ignore[arg-type]  # merged keywords


def table(guarantee: Guarantee) -> dict[str, Fraction | float]:
    return {str(row.coalition): row.epsilon for row in guarantee.rows if row.neighbours == ReplaceRecord()}


@pytest.mark.parametrize("order", ["shares", "joint"])
def test_noise_on_shares_holds_against_all_but_one(order: str) -> None:
    tenth = Fraction(1, 10)
    assert table(build(order)) == {
        "server": tenth,
        "server + any 1 party": tenth,
        "server + any 2 parties": tenth,
        "dealer + server": tenth,
        "dealer + any 1 party": INFINITE,
    }


def test_papers_order_holds_against_the_server_only() -> None:
    guarantee = build("paper")
    assert table(guarantee) == {
        "server": Fraction(1, 10),
        "any 1 party": INFINITE,
        "server + any 1 party": INFINITE,
        "server + any 2 parties": INFINITE,
        "dealer + server": Fraction(1, 10),
        "dealer + any 1 party": INFINITE,
    }
    assert any(row.assumptions == (OPENED_BEFORE_NOISE,) for row in guarantee.rows)
    assert set(table(build("paper", server_opens=True)).values()) == {INFINITE}
    assert set(table(build("none", epsilon=None)).values()) == {INFINITE}


def test_without_server_or_dealer() -> None:
    assert table(build(parties=("active", "passive"), server=None, dealer=None)) == {"any 1 party": Fraction(1, 10)}
    assert table(build("paper", parties=("a", "b"), server=None, dealer=None)) == {"any 1 party": INFINITE}
    assert table(build(parties=("only",), dealer=None)) == {"server": Fraction(1, 10)}


def test_rows_of_single_parties() -> None:
    guarantee = build(per_party={"A": Fraction(3, 40), "C": Fraction(1, 50)})
    own = {(str(r.neighbours), str(r.coalition)): r.epsilon for r in guarantee.rows if r.neighbours != ReplaceRecord()}
    assert len(own) == 8
    assert own["replace one record's columns at A", "server + any 2 parties"] == Fraction(3, 40)
    assert own["replace one record's columns at C", "server"] == Fraction(1, 50)
    paper = build("paper", per_party={"A": Fraction(3, 40)})
    assert {str(r.coalition) for r in paper.rows if r.neighbours == ReplaceRecord("A")} == {"server", "dealer + server"}
    assert {r.neighbours for r in build("none", per_party={"A": Fraction(1)}).rows} == {ReplaceRecord()}


@pytest.mark.parametrize("neighbours", [ReplaceParty(), FlipLabel(), ReplaceRecord()])
def test_other_neighbours(neighbours: ReplaceParty | FlipLabel | ReplaceRecord) -> None:
    guarantee = build(neighbours=neighbours, delta=Fraction(1, 10**6))
    assert {row.unit for row in guarantee.rows} <= {"party", "label", "record"}
    assert all(row.neighbours == neighbours for row in guarantee.rows)
    assert {row.delta for row in guarantee.rows if row.epsilon != INFINITE} == {Fraction(1, 10**6)}
    assert Guarantee.from_json(guarantee.to_json()) == guarantee


@pytest.mark.parametrize("parties", [("A",), ("A", "B"), ("A", "B", "C", "D")])
@pytest.mark.parametrize("order", ["shares", "paper", "none"])
def test_every_required_row_is_demanded(parties: tuple[str, ...], order: str) -> None:
    guarantee = build(order, parties=parties)
    for coalition in required(parties, "server", "dealer"):
        rows = tuple(row for row in guarantee.rows if row.coalition != coalition)
        assert len(rows) == len(guarantee.rows) - 1
        with pytest.raises(ValueError, match="lack"):
            replace(guarantee, rows=rows)
    with pytest.raises(ValueError, match="rows=0 lack"):
        replace(guarantee, rows=())


def test_rows_of_one_relation_do_not_stand_in_for_another() -> None:
    guarantee = build()
    mixed = (replace(guarantee.rows[0], neighbours=FlipLabel()), *guarantee.rows[1:])
    with pytest.raises(ValueError, match=r"lack \{server\}"):
        replace(guarantee, rows=mixed)


def test_a_larger_coalition_cannot_learn_less() -> None:
    guarantee = build()
    rows = list(guarantee.rows)
    rows[2] = replace(rows[2], epsilon=Fraction(1, 20))
    with pytest.raises(ValueError, match="a larger coalition learns no less"):
        replace(guarantee, rows=tuple(rows))
    rows[2] = replace(guarantee.rows[2], epsilon=Fraction(1, 5))
    replace(guarantee, rows=tuple(rows))


def test_the_dealer_with_a_party_is_never_finite() -> None:
    guarantee = build()
    rows = tuple(replace(row, epsilon=Fraction(1, 10)) for row in guarantee.rows)
    with pytest.raises(ValueError, match=r"dealer \+ any 1 party: the dealer with a party sees all"):
        replace(guarantee, rows=rows)


@pytest.mark.parametrize("quorum", [2, 3, 4])
@pytest.mark.parametrize("order", ["shares", "paper"])
def test_as_many_parties_as_open_everything_are_told_so(order: str, quorum: int) -> None:
    guarantee = build(order, parties=("A", "B", "C", "D"), dealer=None, quorum=quorum, assumptions=("a note",))
    rows = {str(row.coalition): row for row in guarantee.rows}
    assert (f"any {quorum} parties" in rows) == (quorum < 4)
    for row in rows.values():
        opened = row.coalition.parties >= quorum
        assert (row.epsilon == INFINITE) == (opened or (order == "paper" and row.coalition.parties > 0))
        assert (f"any {quorum} parties together hold the keys to everything" in row.assumptions) == opened
        assert ("a note" in row.assumptions) == (row.epsilon != INFINITE)
    if order == "shares":
        assert guarantee.worst(quorum - 1).epsilon == Fraction(1, 10)
    assert quorum == 4 or guarantee.worst(quorum).epsilon == INFINITE
    assert Guarantee.from_json(guarantee.to_json()) == guarantee


@pytest.mark.parametrize("quorum", [0, 1, 4, True, 2.0])
def test_a_quorum_out_of_range_is_refused(quorum: object) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^quorum="):
        build(parties=("A", "B", "C"), dealer=None, quorum=quorum)


def test_worst_row_is_what_a_ledger_charges() -> None:
    assert build().worst(2).epsilon == Fraction(1, 10)
    assert build("paper").worst(0).epsilon == Fraction(1, 10)
    assert build("paper").worst(1).epsilon == INFINITE
    assert build(per_party={"A": Fraction(1, 50)}).worst(2).epsilon == Fraction(1, 10)
    with pytest.raises(ValueError, match="collusion=-1"):
        build().worst(-1)


@given(st.fractions(Fraction(1, 10**30), 50), st.integers(1, 6), st.sampled_from(["shares", "joint", "paper", "none"]))
def test_json_is_exact(epsilon: Fraction, count: int, order: str) -> None:
    guarantee = build(order, epsilon=epsilon, parties=[f"P{i}" for i in range(count)], per_party={"P0": epsilon / 3})
    text = guarantee.to_json()
    assert Guarantee.from_json(text) == guarantee
    json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '"x"', '{"rows": [1], "parties": ["A"], "server": null, "dealer": null}']
)
def test_from_json_refuses_other_text(text: str) -> None:
    with pytest.raises(ValueError, match=r"^guarantee="):
        Guarantee.from_json(text)


def test_from_json_checks_like_the_constructor() -> None:
    data = json.loads(build().to_json())
    for key, wrong in [("epsilon", "nan"), ("epsilon", "-1"), ("epsilon", "0"), ("delta", "1"), ("delta", "nan")]:
        rows = [{**data["rows"][0], key: wrong}, *data["rows"][1:]]
        with pytest.raises(ValueError, match=r"."):
            Guarantee.from_json(json.dumps({**data, "rows": rows}))
    with pytest.raises(ValueError, match="lack"):
        Guarantee.from_json(json.dumps({**data, "rows": data["rows"][:-1]}))


def test_text_names_every_coalition_and_assumption() -> None:
    guarantee = build("paper", per_party={"B": Fraction(1, 30)})
    text = str(guarantee)
    lines = text.splitlines()
    assert lines[0].split() == ["protects", "against", "neighbours", "epsilon", "delta", "mechanism", "accountant"]
    alike = {(r.neighbours, r.epsilon, r.delta) for r in guarantee.rows}
    assert len(lines) == 2 + len(alike) + len({a for r in guarantee.rows for a in r.assumptions})
    assert all(str(row.coalition) in text for row in guarantee.rows)
    assert any("server + any 2 parties" in line and "infinite" in line for line in lines)
    assert "replace one record's columns at B" in text
    assert all(assumption in text for row in guarantee.rows for assumption in row.assumptions)


@pytest.mark.parametrize(
    ("neighbours", "protects", "dealer_opens"),
    [
        (ReplaceRecord(), "record", "with a party it opens the columns of the other parties"),
        (FlipLabel(), "label", "with a party it opens the columns of the other parties"),
        (ReplaceParty(), "voter", "with a compute party it opens every ballot"),
    ],
)
def test_a_replaced_voter_is_not_called_a_party_beside_those_who_compute(
    neighbours: Neighbours, protects: str, dealer_opens: str
) -> None:
    guarantee = build(neighbours=neighbours)
    rows, notes = str(guarantee).split("given that, or because:\n")
    assert {line.split()[0] for line in rows.splitlines()[1:]} == {protects}
    assert [note for note in notes.splitlines() if "made the masks" in note] == [
        f"- the dealer made the masks: {dealer_opens} (dealer + any 1 party)"
    ]


@pytest.mark.parametrize(
    "changes",
    [
        {"parties": ()},
        {"parties": ("A", "A")},
        {"parties": ("A", "server")},
        {"parties": ("A", "")},
        {"epsilon": 0},
        {"epsilon": float("nan")},
        {"epsilon": math.inf},
        {"epsilon": True},
        {"epsilon": -0.1},
        {"epsilon": "many"},
        {"epsilon": None},
        {"delta": Fraction(1)},
        {"delta": 1e-6},
        {"delta": Fraction(-1, 2)},
        {"order": "late"},
        {"per_party": {"D": Fraction(1)}},
        {"per_party": {"A": Fraction(0)}},
    ],
)
def test_refuses(changes: dict[str, object]) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^\w+=[^\n]+: [^\n]+$|^names=[^\n]+: [^\n]+$"):
        build(**changes)


@pytest.mark.parametrize("epsilon", [float("nan"), 0.5, Fraction(0), Fraction(-1), True, -math.inf])
def test_row_refuses(epsilon: object) -> None:
    with pytest.raises((ValueError, TypeError), match=r"^epsilon="):
        Row(Coalition(SERVER), ReplaceRecord(), epsilon, Fraction(0), "m", "a")  # type: ignore[arg-type]  # wrong on purpose


def test_a_row_may_have_a_delta_alone() -> None:
    assert Row(Coalition(SERVER), ReplaceRecord(), Fraction(0), Fraction(1, 10), "m", "a").epsilon == 0


def test_coalitions_must_be_made_of_the_cast() -> None:
    guarantee = build()
    for coalition in (Coalition(frozenset({"stranger"})), Coalition(SERVER, 4)):
        row = replace(guarantee.rows[0], coalition=coalition)
        with pytest.raises(ValueError, match="is not made of"):
            replace(guarantee, rows=(*guarantee.rows, row))

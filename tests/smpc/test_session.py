"""The verbs' own rules, in the clear session: holders, noise before opening, shapes."""

from __future__ import annotations

from fractions import Fraction
from time import perf_counter, sleep

import numpy as np
import pytest

from mechanisms.discrete_laplace import DiscreteLaplace
from smpc import Cast, ClearSession, Held, HolderError, InputError, UnprotectedError
from smpc.values import value_of

CAST = Cast(("ann", "bob", "cid"))
LAPLACE = DiscreteLaplace(Fraction(10))


@pytest.fixture
def s() -> ClearSession:
    return ClearSession(CAST)


def test_a_step_cannot_read_what_another_party_holds(s: ClearSession) -> None:
    secret = Held("ann", 3)
    for argument in (secret, [secret], {"x": secret}, (1, [secret])):
        with pytest.raises(HolderError, match="bob cannot read a value that ann holds"):
            s.at("bob", print, argument)
    assert value_of(s.at("ann", lambda x, y: x + y[0], secret, [secret])) == 6


def test_a_shared_value_cannot_be_read_locally(s: ClearSession) -> None:
    shared = s.share(Held("ann", np.ones(2, dtype=np.int64)), (2,))
    with pytest.raises(HolderError, match="reveal it first"):
        s.at("ann", print, shared)


def test_no_branch_on_a_held_value(s: ClearSession) -> None:
    with pytest.raises(HolderError, match="publish it first"):
        bool(s.at("ann", lambda: 1))


@pytest.mark.parametrize("name", ["dealer", "nobody", ""])
def test_only_parties_and_server_hold_values(s: ClearSession, name: str) -> None:
    with pytest.raises(HolderError, match="holds no values here"):
        s.at(name, lambda: 1)


def test_server_shares_nothing(s: ClearSession) -> None:
    with pytest.raises(HolderError, match="is no party"):
        s.share(Held("server", np.ones(1, dtype=np.int64)), (1,))


def test_opening_without_noise_must_be_said(s: ClearSession) -> None:
    shared = s.share(Held("ann", np.arange(4)), (4,))
    with pytest.raises(UnprotectedError, match="carries no noise"):
        s.reveal(shared, to="server", message="values")
    assert value_of(s.reveal(shared, to="server", message="values", unprotected=True)).tolist() == [0, 1, 2, 3]


def test_noise_lands_once_on_the_coordinates_of_its_contributors(s: ClearSession) -> None:
    masks = {"ann": np.array([True, False, True]), "bob": np.array([False, True, True])}
    noise = s.draw_noise(LAPLACE, masks)
    shared = s.share(Held("cid", np.zeros(3, dtype=np.int64)), (3,))
    noisy = s.add_noise(shared, noise)
    opened = value_of(s.reveal(noisy, to="server", message="sum"))
    ann, bob = (value_of(noise.draws[p]) for p in ("ann", "bob"))
    assert ann[1] == 0 and bob[0] == 0
    assert opened.tolist() == (ann + bob).tolist()
    assert noisy.noise == ("ann", "bob")
    with pytest.raises(InputError, match="already"):
        s.add_noise(noisy, noise)


def test_a_coordinate_without_contributor_is_refused(s: ClearSession) -> None:
    with pytest.raises(InputError, match="every coordinate"):
        s.draw_noise(LAPLACE, {"ann": np.array([True, False])})
    with pytest.raises(InputError, match="every coordinate"):
        s.draw_noise(LAPLACE, {})


def test_noise_must_fit_and_entries_are_taken_before_it(s: ClearSession) -> None:
    noise = s.draw_noise(LAPLACE, {"ann": np.ones(2, dtype=np.bool_)})
    with pytest.raises(InputError, match="does not fit"):
        s.add_noise(s.share(Held("ann", np.zeros(3, dtype=np.int64)), (3,)), noise)
    noisy = s.add_noise(s.share(Held("ann", np.zeros(2, dtype=np.int64)), (2,)), noise)
    with pytest.raises(InputError, match="before noise"):
        s.take(noisy, np.array([0]))


def test_total_needs_one_shape_and_scale_and_keeps_noise(s: ClearSession) -> None:
    one = s.share(Held("ann", np.ones(2, dtype=np.int64)), (2,))
    with pytest.raises(InputError, match="one shape and one scale"):
        s.total([one, s.share(Held("ann", np.ones(2, dtype=np.int64)), (2,), bits=3)])
    noisy = s.add_noise(one, s.draw_noise(LAPLACE, {"bob": np.ones(2, dtype=np.bool_)}))
    assert s.total([one, noisy]).noise == ("bob",)


def test_gram_has_a_column_of_ones_first(s: ClearSession) -> None:
    columns = {"ann": np.array([[1, 2, 3]]), "cid": np.array([[4, 5, 6], [7, 8, 9]])}
    held = {p: Held(p, x) for p, x in columns.items()}
    gram = s.gram(held, rows=3, widths={"ann": 1, "cid": 2}, bits=2)
    full = np.vstack([np.full((1, 3), 4), *columns.values()])
    assert gram.fraction_bits == 4
    assert np.array_equal(gram.share, full @ full.T)
    with pytest.raises(InputError, match="in their order"):
        s.gram(held, rows=3, widths={"cid": 2, "ann": 1}, bits=2)


def test_inner_product_of_one_party_with_itself_is_local(s: ClearSession) -> None:
    x = Held("ann", np.ones((1, 2), dtype=np.int64))
    with pytest.raises(InputError, match="locally"):
        s.inner(x, x, rows=2, widths=(1, 1), bits=0)


@pytest.mark.parametrize("parties", [(), ("ann", "ann"), ("server",), ("dealer", "x")])
def test_a_cast_names_everybody_once(parties: tuple[str, ...]) -> None:
    with pytest.raises(InputError, match="cast"):
        Cast(parties)


def outside(value: np.ndarray, parties: tuple[str, ...] = CAST.parties) -> dict[str, Held[np.ndarray]]:
    """Shares of `value` that an outsider dealt."""
    rng = np.random.default_rng(8)
    parts = [rng.integers(-(2**63), 2**63, value.shape, dtype=np.int64) for _ in parties[1:]]
    return {p: Held(p, part) for p, part in zip(parties, [value - sum(parts), *parts], strict=True)}


def test_shares_of_an_outsider_are_adopted_squared_and_mapped(s: ClearSession) -> None:
    value = np.array([[3, -4], [2**33, 7]])
    adopted = s.adopt(outside(value), (2, 2))
    assert np.array_equal(adopted.share, value)
    assert s.square(adopted).share.tolist() == [[9, 16], [2**66 % 2**64, 49]]
    twice = s.linear(
        adopted, lambda x, factor: (x * factor).sum(axis=0), (2,), dict.fromkeys(CAST.parties, Held("ann", 2))
    )
    assert twice.share.tolist() == [2 * (3 + 2**33), 6] and twice.shape == (2,)


def test_argmax_takes_the_first_of_equals(s: ClearSession) -> None:
    counts = np.array([[1, 5, 2, 0], [1, 6, 2, 0], [3, 6, 1, 0]])
    assert s.argmax(s.adopt(outside(counts), counts.shape)).share.tolist() == [2, 1, 0, 0]


def test_adopting_needs_a_share_of_every_party_held_by_it_and_a_dealer(s: ClearSession) -> None:
    shares = outside(np.zeros(2, dtype=np.int64))
    for wrong in ({"ann": shares["ann"]}, dict(reversed(shares.items())), {**shares, "cid": shares["bob"]}):
        with pytest.raises(InputError, match="one of each party"):
            s.adopt(wrong, (2,))
    alone = ClearSession(Cast(CAST.parties, dealer=None))
    for verb in (lambda: alone.adopt(shares, (2,)), lambda: alone.square(s.adopt(shares, (2,)))):
        with pytest.raises(InputError, match="dealer"):
            verb()


def test_a_phase_within_a_phase_is_counted_once() -> None:
    session = ClearSession(Cast(("ann", "bob")))
    start = perf_counter()
    with session.phase("outer"):
        sleep(0.02)
        with session.phase("inner"):
            sleep(0.05)
            with session.phase("outer"):
                sleep(0.02)
    spent = perf_counter() - start
    assert session.seconds["inner"] >= 0.05 and session.seconds["outer"] >= 0.04
    assert spent - 0.02 < sum(session.seconds.values()) <= spent


def test_a_message_is_what_the_script_says_in_the_clear_too(s: ClearSession) -> None:
    """Or a text would pass its tests here and fail between processes."""
    whole, real = np.arange(3), np.zeros(3)
    for value, shape in ((whole, (3,)), (real.astype(np.float32), (3,)), (real, (3, 1))):
        with pytest.raises(TypeError, match=r"'x' is .*, the script says float64"):
            s.publish(Held("ann", value), shape=shape, message="x")
    for value, shape in ((real, (3,)), (whole, (1, 3))):
        with pytest.raises(TypeError, match=r"'y' is .*, the script says int64"):
            s.send(Held("ann", value), to="bob", shape=shape, message="y")
    assert s.publish(Held("ann", real), shape=(3,), message="x").tolist() == [0, 0, 0]

"""What is shared, added, picked, noised, opened and told is exact, for every shape, layout, value and receiver."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from mechanisms.randomness import RandomWords
from smpc.ring import Integers
from smpc.values import Held
from tests.harness import ArraySession, Sessions
from tests.sharing.exact import exact, integers, ring, shapes
from tests.support import held, words_of

few = settings(max_examples=40)


class Words:
    """A mechanism whose draws are the contributor's next random words."""

    def draw(self, count: int, random: RandomWords) -> Integers:
        return random.words(count).view(np.int64)


def only_holder(results: dict[str, Held[Any]], holder: str) -> Any:
    """The value, which no other process may have."""
    assert all(result.holder == holder for result in results.values())
    assert [name for name, result in results.items() if result._value is not None] == [holder]
    return results[holder]._value


def opened_total(s: ArraySession, inputs: dict[str, Integers], bits: int, to: str) -> Held[Integers]:
    shape = next(iter(inputs.values())).shape
    shared = [s.share(value, shape, bits=bits) for value in held(s, inputs).values()]
    return s.reveal(s.total(shared), to=to, message="total", unprotected=True)


@few
@given(data=st.data())
def test_a_total_of_shared_arrays_opens_exactly_and_to_its_receiver_only(
    sessions: Sessions, data: st.DataObject
) -> None:
    shape = data.draw(shapes)
    inputs = {party: data.draw(integers(shape)) for party in sessions.cast.parties}
    to = data.draw(st.sampled_from(list(sessions.sessions)))
    results = sessions.run(opened_total, inputs, data.draw(st.integers(0, 30)), to)

    opened = only_holder(results, to)
    assert opened.shape == shape
    assert np.array_equal(opened, ring(np.add.reduce([exact(value) for value in inputs.values()])))


def noisy_entries(
    s: ArraySession, secret: Integers, index: tuple[Any, ...], contributors: dict[str, Any], to: str
) -> Held[Integers]:
    s._own_random = words_of(s.me)
    noise = s.draw_noise(Words(), contributors)
    shared = s.share(held(s, {"p1": secret})["p1"], secret.shape)
    return s.reveal(s.add_noise(s.take(shared, *index), noise), to=to, message="noisy")


@few
@given(data=st.data())
def test_every_contributors_noise_lands_once_where_it_is_due(sessions: Sessions, data: st.DataObject) -> None:
    secret = data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=3).flatmap(integers))
    count = data.draw(st.integers(0, 6))
    index = tuple(data.draw(arrays.arrays(np.intp, count, elements=st.integers(0, n - 1))) for n in secret.shape)
    contributors = {party: data.draw(arrays.arrays(np.bool_, count)) for party in sessions.cast.parties}
    contributors["p0"] = ~np.logical_or.reduce([mask for party, mask in contributors.items() if party != "p0"])
    to = data.draw(st.sampled_from(list(sessions.sessions)))
    results = sessions.run(noisy_entries, secret, index, contributors, to)

    wanted = exact(secret)[index]
    for party, mask in contributors.items():
        wanted[mask] += exact(words_of(party).words(int(mask.sum())).view(np.int64))
    assert np.array_equal(only_holder(results, to), ring(wanted))


def sent_and_published(s: ArraySession, integer: Integers, real: Any, sender: str, to: str) -> tuple[Held[Any], Any]:
    kept = s.send(held(s, {sender: integer})[sender], to=to, shape=integer.shape, message="plain")
    return kept, s.publish(held(s, {sender: real})[sender], shape=real.shape, message="result")


@few
@given(data=st.data())
def test_send_reaches_one_and_publish_all_bit_for_bit(sessions: Sessions, data: st.DataObject) -> None:
    integer = data.draw(shapes.flatmap(integers))
    real = data.draw(arrays.arrays(np.float64, shapes, elements=st.floats(allow_nan=False, allow_infinity=False)))
    sender, to = (data.draw(st.sampled_from(list(sessions.sessions))) for _ in range(2))
    results = sessions.run(sent_and_published, integer, real, sender, to)

    kept = {name: first for name, (first, _) in results.items() if first._value is not None}
    assert set(kept) in ({to}, {sender, to})
    assert all(np.array_equal(value._value, integer) for value in kept.values())
    assert all(published.tobytes() == real.tobytes() for _, published in results.values())


def test_what_was_sent_does_not_change_with_the_senders_array(sessions: Sessions) -> None:
    size = 1 << 20  # more than a socket takes at once

    def task(s: ArraySession) -> Any:
        told = s.publish(held(s, {"p0": np.zeros(size)})["p0"], shape=(size,), message="weights")
        told += 1.0  # as a training loop would
        return told

    results = sessions.run(task)
    assert all(np.all(told == 1.0) for told in results.values())

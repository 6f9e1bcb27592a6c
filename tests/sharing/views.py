"""What all parties but one or two see and know, from recorded frames and their own keys: the input of the checks."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from mechanisms.randomness import Stream
from smpc.engine.crossproduct import mask, pad
from smpc.products import MASKED, ProductPlan
from smpc.ring import Integers
from smpc.values import Shared
from tests.harness import ArraySession, Sessions
from tests.sharing.checks import WORDS, View

WIDTH = 64  # WIDTH * WIDTH = WORDS: a block's entries, and of 64 rows a party's columns


def received(running: Sessions, by: str, sender: str, label: str) -> list[Integers]:
    """The arrays that one participant got from another under a label, in order."""
    return [
        np.asarray(frame.payload, dtype=np.int64)
        for direction, peer, frame in running.frames[by]
        if (direction, peer, frame.label) == ("received", sender, label)
    ]


def opening(parties: int, honest: tuple[str, str]) -> Callable[[int], View]:
    """An array of P_honest's opened to the server, which colludes with every party but the two honest ones.

    The array stands as a product's share does: whole at its owner, zero elsewhere. The colluders know every mask that
    one of them made with the owner.
    """

    def view_of(secret: int) -> View:
        with Sessions(parties, record=True) as running:
            owner = honest[0]

            def task(s: ArraySession) -> None:
                share = np.full(WORDS, secret if s.me == owner else 0, dtype=np.int64)
                for _ in range(2):
                    s.reveal(Shared((WORDS,), 0, share), to="server", message="x", unprotected=True)

            running.run(task)
            first, second = received(running, "server", owner, "reveal: x")
            arrays = {"SHARE": first, "NEXT": second}
            for colluder in set(running.cast.parties) - set(honest):
                _, agreement = running.participants.joined[colluder]
                stream = Stream(agreement.key(owner, "zero"))
                arrays[f"mask with {colluder}"] = stream.words(WORDS).view(np.int64)
        return {"opening": arrays}

    return view_of


def input_shares(parties: int, honest: str) -> Callable[[int], View]:
    """The shares that all parties but one hold of what that one shared."""

    def view_of(secret: int) -> View:
        with Sessions(parties) as running:

            def task(s: ArraySession) -> Any:
                value = s.at(honest, np.full, (WORDS,), secret)
                return s.share(value, (WORDS,)).share

            shares = running.run(task)
        others = {name.upper(): share for name, share in shares.items() if name not in (honest, "server")}
        return {"shares": others, "all": {"SUM": np.add.reduce(list(others.values()))}}

    return view_of


def two_products(parties: int, honest: str) -> Callable[[int], View]:
    """Two products of the same columns, all entries `secret` at the honest party; everybody else colludes.

    They add what they can compute: behind a correction for a block (honest, l), minus the pad, stands the product
    itself once l adds the honest party's masked columns times its own mask.
    """
    rows = WORDS // WIDTH

    def view_of(secret: int) -> View:
        with Sessions(parties, record=True) as running:
            names = running.cast.parties
            plan = ProductPlan.gram(rows, dict.fromkeys(names, WIDTH))

            def task(s: ArraySession) -> None:
                for _ in range(2):
                    if s.is_party:
                        columns = np.full((WIDTH, rows), secret if s.me == honest else 1, dtype=np.int64)
                        s.multiply(s.correlate(plan), columns)

            running.run(task)
            others = [name for name in names if name != honest]
            columns, blocks = {}, {}
            for number in range(2):
                masked = received(running, others[0], honest, MASKED)[number]
                columns[f"MASKED {number}"] = masked
                for colluder in others:
                    seed = running.sessions[colluder]._seed
                    own = mask(seed, number, slice(0, rows), WIDTH)
                    columns[f"mask of {colluder} {number}"] = own
                    block = (honest, colluder)
                    if names.index(honest) > names.index(colluder):
                        blocks[f"pad of {colluder} {number}"] = pad(seed, number, block[::-1], plan)
                        continue
                    corrections = received(running, colluder, "dealer", "correction")
                    place = number * len(corrections) // 2 + names.index(honest)
                    blocks[f"CORRECTION OF {colluder.upper()} {number}"] = corrections[place]
                    blocks[f"PRODUCT OF {colluder.upper()} {number}"] = corrections[place] + masked @ own.T
        flat: Mapping[str, Mapping[str, Integers]] = {"columns": columns, "blocks": blocks}
        return {group: {k: v.reshape(-1) for k, v in arrays.items()} for group, arrays in flat.items()}

    return view_of

"""Static checks over the whole code: what may be opened without noise is listed here, and nothing else is."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
UNPROTECTED = {
    ("protocols/functional/protocol.py", "_noise_after_opening"),  # the papers' orders
    ("protocols/ensemble/paper.py", "_soft"),
    ("protocols/ensemble/paper.py", "_majority"),
    ("smpc/ballots/check.py", "check"),  # zeros of a vote; of a rejected ballot random sums of its defects
}
# an override that hands on what its caller said: the caller's own reveal is checked where it stands
FORWARDED = {("smpc/bgn/session.py", "reveal")}
ZERO_CHECKS: set[tuple[str, str]] = set()
CRYPTEN_OPENS = {"get_plain_text", "reveal_batch", "decrypt"}
DECRYPTED = {  # by somebody with a key of its own: no shares of CrypTen's
    ("smpc/ballots/envelope.py", "open"),
    ("protocols/split/memo_file.py", "_open"),
}


def calls(folder: str) -> list[tuple[str, str, ast.Call]]:
    """(file, enclosing function, call) of every method call below `folder`."""
    found = []
    for path in sorted((ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text())
        for function in [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]:
            found += [
                (path.relative_to(ROOT).as_posix(), function.name, node)
                for node in ast.walk(function)
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            ]
    return found


def name(call: ast.Call) -> str:
    return call.func.attr if isinstance(call.func, ast.Attribute) else ""


def unprotected(call: ast.Call) -> bool:
    """Whether a reveal says so, or hides it behind a variable or **arguments."""
    words = {word.arg: word.value for word in call.keywords}
    value = words.get("unprotected", ast.Constant(False))
    return None in words or not isinstance(value, ast.Constant) or value.value is not False


@pytest.mark.parametrize("folder", ["smpc", "protocols", "launch"])
def test_only_the_papers_orders_open_values_without_noise(folder: str) -> None:
    found = {(file, function) for file, function, call in calls(folder) if name(call) == "reveal" and unprotected(call)}
    assert found == {place for place in UNPROTECTED | FORWARDED if place[0].startswith(folder)}


def test_a_forwarding_override_hands_on_its_own_parameter_and_nothing_else() -> None:
    for file, function in FORWARDED:
        own = [call for f, g, call in calls("smpc") if (f, g) == (file, function) and name(call) == "reveal"]
        assert len(own) == 1
        words = {word.arg: ast.unparse(word.value) for word in own[0].keywords}
        assert ast.unparse(own[0].func) == "super().reveal" and words["unprotected"] == "unprotected"


@pytest.mark.parametrize("folder", ["smpc", "protocols", "launch"])
def test_zero_checks_are_listed(folder: str) -> None:
    found = {(file, function) for file, function, call in calls(folder) if name(call) == "check_zero"}
    assert found == {place for place in ZERO_CHECKS if place[0].startswith(folder)}


@pytest.mark.parametrize("folder", ["smpc", "protocols", "launch", "mechanisms"])
def test_crypten_opens_nothing_behind_the_sessions_back(folder: str) -> None:
    found = {(file, function) for file, function, call in calls(folder) if name(call) in CRYPTEN_OPENS}
    assert found <= DECRYPTED


def test_the_checks_see_what_they_look_for() -> None:
    for text in ("s.reveal(x, to=p, unprotected=True)", "s.reveal(x, to=p, unprotected=flag)", "s.reveal(x, **how)"):
        call = ast.parse(text, mode="eval").body
        assert isinstance(call, ast.Call) and name(call) == "reveal" and unprotected(call)
    call = ast.parse("s.reveal(x, to=p, message='m')", mode="eval").body
    assert isinstance(call, ast.Call) and not unprotected(call)

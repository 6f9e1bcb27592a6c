"""What was sent, from whom to whom, and who learned it: shapes and step names, never a payload or its digest."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass, field

PARTY, OTHER_PARTY, SERVER, DEALER, ALL = "P_k", "P_l", "server", "dealer", "all"
COMMITMENT, ECHO, OPENING = "commitment", "echo", "opening"  # of a coin toss, at the sockets, too


@dataclass(frozen=True)
class Message:
    """One step of a protocol in which something is sent. Senders and receivers are roles."""

    verb: str
    sender: str
    receiver: str
    message: str
    shape: tuple[int, ...]
    noise: tuple[str, ...] = ()


@dataclass
class Transcript:
    """The messages of one run, in order."""

    messages: list[Message] = field(default_factory=list)

    def add(self, message: Message) -> None:
        self.messages.append(message)

    def steps(self) -> list[tuple[str, str]]:
        """(from -> to, message) of every step, equal neighbours once: what a protocol's table must say."""
        steps: list[tuple[str, str]] = []
        for entry in self.messages:
            step = (f"{entry.sender} -> {entry.receiver}", entry.message)
            if not steps or steps[-1] != step:
                steps.append(step)
        return steps

    def to_jsonl(self) -> str:
        return "".join(json.dumps(asdict(entry)) + "\n" for entry in self.messages)

    @classmethod
    def from_jsonl(cls, text: str) -> Transcript:
        """The transcript that `to_jsonl` wrote; raises ValueError, TypeError or KeyError for anything else."""
        lines = (json.loads(line) for line in text.splitlines())
        entries = [Message(**{**e, "shape": tuple(e["shape"]), "noise": tuple(e["noise"])}) for e in lines]
        for e in entries:
            texts, sizes = (e.verb, e.sender, e.receiver, e.message, *e.noise), e.shape
            if not all(isinstance(t, str) for t in texts) or not all(isinstance(n, int) and n >= 0 for n in sizes):
                raise ValueError(f"{e}: has a name that is no text, or a size that is none")
        return cls(entries)


def table(docstring: str) -> list[tuple[str, str]]:
    """(from -> to, message) of every row of a protocol docstring's table."""
    return [(route, message) for route, message, _ in full_table(docstring)]


def full_table(docstring: str) -> list[tuple[str, str, str]]:
    """(from -> to, message, what the receiver learns) of every row of a protocol docstring's table.

    The header line starts with `step` and names the columns; columns keep their place. A row may go on below.
    """
    lines = iter((docstring or "").splitlines())
    header = next((line for line in lines if line.strip().startswith("step ")), None)
    if header is None:
        raise ValueError("the docstring has no table: a line that starts with 'step'")
    edges = [header.index(name) for name in ("from -> to", "message", "the receiver learns")]
    rows: list[tuple[str, str, str]] = []
    for line in lines:
        if not line.strip():
            break
        route, message, learns = (line[i:j].strip() for i, j in zip(edges, [*edges[1:], len(line)], strict=True))
        if line[: edges[0]].strip():
            rows.append((route, message, learns))
        else:
            rows[-1] = (*rows[-1][:2], f"{rows[-1][2]} {learns}")
    return rows

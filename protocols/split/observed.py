"""What the feature party sees in a run, and what it can compute from that if it knows h: the input of attacks."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch

from protocols.schema import Floats
from protocols.split.plan import Rows
from protocols.split.sides import Floats32, LabelSide
from protocols.split.targets import counterfactuals


@dataclass(frozen=True)
class Seen:
    """One batch of b records. `classes[j]`: the gradients if all labels were j (white box), (classes, b, cut)."""

    rows: Rows
    gradients: Floats32
    classes: Floats32
    logits: Floats


class ObservedSide(LabelSide):
    """A label side whose every step is noted. For experiments: a label party has no use for it."""

    seen: list[Seen]

    def step(self, rows: Rows, embeddings: Floats32) -> Floats32:
        """As the label side's; h is evaluated once more, for the gradients that its labels would have given."""
        classes, logits = white_box(self, embeddings)
        gradients = super().step(rows, embeddings)
        if not hasattr(self, "seen"):
            self.seen = []
        self.seen.append(Seen(rows, gradients, classes, logits))
        return gradients


def white_box(side: LabelSide, embeddings: Floats32) -> tuple[Floats32, Floats]:
    """The counterfactual gradients of h as it is, (classes, b, cut), and its logits (b, width)."""
    inputs = torch.from_numpy(embeddings).to(side.device).requires_grad_()
    logits = side.network(inputs)
    found = [
        torch.autograd.grad(logits, inputs, slope, retain_graph=True)[0].cpu().numpy()
        for slope in counterfactuals(logits)
    ]
    return np.stack(found).astype(np.float32), logits.detach().cpu().numpy().astype(np.float64)

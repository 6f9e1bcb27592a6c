"""Default networks for tables with numbers and categories, cut in two: f of the feature party, h of the label party.

Any two torch modules serve as well: f takes the feature party's tensors, one row a record, and gives (records, cut);
h takes that and gives logits, (records, width). Widths follow the experiments of Li et al. 2022 (wide and deep, layers
of 128 on both sides).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

import torch
from torch import Tensor, nn

from smpc.errors import InputError

HIDDEN = 128
EMBEDDING = 8
M = TypeVar("M", bound=nn.Module)


class FeatureNet(nn.Module):
    """f: an embedding for each category and the numbers as they are, through a deep part, beside a wide linear part.

    The wide part is the last of the `cut` outputs. `categories[i]` is the number of codes of the i-th category.
    """

    def __init__(self, numbers: int, categories: Sequence[int], cut: int) -> None:
        super().__init__()
        if numbers + len(categories) < 1 or cut < 2:
            raise InputError(
                f"{numbers} numbers, {len(categories)} categories, cut = {cut}: need a column and cut >= 2"
            )
        self.embeddings = nn.ModuleList(nn.Embedding(size, EMBEDDING) for size in categories)
        self.wide_categories = nn.ModuleList(nn.Embedding(size, 1) for size in categories)
        self.wide_numbers = nn.Linear(numbers, 1) if numbers else None
        self.deep = nn.Sequential(
            nn.Linear(numbers + EMBEDDING * len(categories), HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, cut - 1),
        )
        for table in [*self.embeddings, *self.wide_categories]:
            nn.init.normal_(table.weight, std=0.05)

    def forward(self, numbers: Tensor, codes: Tensor) -> Tensor:
        """Numbers (n, numbers) and category codes (n, categories) give (n, cut)."""
        looked_up = [table(codes[:, i]) for i, table in enumerate(self.embeddings)]
        wide = [table(codes[:, i]) for i, table in enumerate(self.wide_categories)]
        if self.wide_numbers is not None:
            wide.append(self.wide_numbers(numbers))
        return torch.cat([self.deep(torch.cat([numbers, *looked_up], dim=1)), torch.stack(wide).sum(dim=0)], dim=1)


class LabelNet(nn.Module):
    """h: logits from what came over the cut."""

    def __init__(self, cut: int, width: int) -> None:
        super().__init__()
        self.deep = nn.Sequential(
            nn.ReLU(),
            nn.Linear(cut - 1, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, HIDDEN),
            nn.ReLU(),
            nn.Linear(HIDDEN, width),
        )

    def forward(self, embeddings: Tensor) -> Tensor:
        logits: Tensor = self.deep(embeddings[:, :-1]) + embeddings[:, -1:]
        return logits


def seeded(seed: int, build: Callable[[], M]) -> M:
    """What `build` makes from public starting weights: the process's own generator stays as it is."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return build()


def check_records_apart(head: nn.Module, cut: int) -> None:
    """Refuse an h that mixes the records of a batch, as batch normalisation does.

    One record's gradient would then hold other records' labels, and neither the algorithms nor the attacks' counter-
    factual gradients would be about one record.
    """
    probe = torch.randn(4, cut, generator=torch.Generator().manual_seed(0)).to(device_of(head)).requires_grad_()
    state = {name: value.clone() for name, value in head.state_dict().items()}
    (gradient,) = torch.autograd.grad(head(probe)[0].sum(), probe)
    head.load_state_dict(state)
    if gradient[1:].any():
        raise InputError(
            "the label party's network mixes the records of a batch, as batch normalisation does: one record's "
            "gradient would depend on other records' labels; use layer normalisation or none"
        )


def device_of(network: nn.Module) -> torch.device:
    """Where a network's weights are: each party chooses its own."""
    return next(iter(network.parameters()), torch.empty(0)).device

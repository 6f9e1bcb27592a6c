"""What each party does by itself: plain steps on arrays, one for each message."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn
from torch.func import functional_call

from protocols.split.auc import auc_of_weights
from protocols.split.checkpoint import Checkpoints
from protocols.split.models import check_records_apart, device_of
from protocols.split.plan import Plan, Rows
from protocols.split.targets import Targets, make_targets
from smpc.errors import InputError
from smpc.ring import Integers

Floats32 = npt.NDArray[np.float32]


class Side:
    """A network in training."""

    def __init__(self, network: nn.Module, plan: Plan, checkpoints: Checkpoints | None = None) -> None:
        self.network = network
        self.plan = plan
        self.device = device_of(network)
        self.checkpoints = checkpoints or Checkpoints()
        self.trained = [weight for weight in network.parameters() if weight.requires_grad]
        self.optimizer = torch.optim.Adam(self.trained, lr=plan.learning_rate) if self.trained else None
        network.train()

    def positions(self) -> npt.NDArray[np.float64]:
        """Batch numbers of the checkpoints, shape (3,): the two newest (or the start) and the start."""
        found = [*self.checkpoints.positions(self.plan), 0, 0]
        return np.array(found[:3], dtype=np.float64)

    def save(self, position: int) -> None:
        optimizer = self.optimizer.state_dict() if self.optimizer else {}
        self.checkpoints.save(position, self.plan, {"network": self.network.state_dict(), "optimizer": optimizer})

    def restore(self, position: int) -> None:
        """Go on from a checkpoint. Raises InputError if it is another job's, or of another network."""
        state = self.checkpoints.load(position, self.plan)
        try:
            self.network.load_state_dict(state["network"])
            if self.optimizer:
                self.optimizer.load_state_dict(state["optimizer"])
        except (RuntimeError, LookupError, TypeError, ValueError, AttributeError):  # as torch takes it
            raise InputError(
                f"{self.checkpoints.folder}: the checkpoint of batch {position} is of another network: delete the "
                "folder to start anew"
            ) from None

    def update(self, gradients: Sequence[Tensor | None]) -> None:
        """One step of the optimiser with these gradients of the trained weights."""
        for weight, gradient in zip(self.trained, gradients, strict=True):
            weight.grad = gradient
        if self.optimizer:
            self.optimizer.step()


class FeatureSide(Side):
    """P_N: f, and its tensors, one row a record."""

    def __init__(
        self, network: nn.Module, inputs: Sequence[Tensor], plan: Plan, checkpoints: Checkpoints | None = None
    ) -> None:
        super().__init__(network, plan, checkpoints)
        if not inputs or any(len(tensor) != plan.rows for tensor in inputs):
            raise InputError(f"inputs of {[len(t) for t in inputs]} rows: need tensors of {plan.rows} rows each")
        self.inputs = [tensor.to(self.device) for tensor in inputs]
        self._flight: deque[tuple[list[Tensor], Tensor]] = deque()

    def forward(self, rows: Rows) -> Floats32:
        """f(x) of these records, shape (b, cut)."""
        weights: dict[str, Tensor] = dict(self.network.named_parameters())
        if self.plan.ahead:  # the graph must outlive updates that come before its own
            weights = {name: w.detach().clone().requires_grad_(w.requires_grad) for name, w in weights.items()}
        index = torch.from_numpy(rows).to(self.device)
        embeddings: Tensor = functional_call(self.network, weights, tuple(tensor[index] for tensor in self.inputs))
        if embeddings.shape != (len(rows), self.plan.cut):
            raise InputError(f"f gave shape {tuple(embeddings.shape)}: the plan says ({len(rows)}, {self.plan.cut})")
        self._flight.append(([w for w in weights.values() if w.requires_grad], embeddings))
        return _array(embeddings)

    def backward(self, gradients: Floats32) -> None:
        """Update f with the gradients of the oldest batch under way, (b, cut), one row a record's own."""
        weights, embeddings = self._flight.popleft()
        mean = torch.from_numpy(gradients).to(self.device) / len(gradients)
        self.update(torch.autograd.grad(embeddings, weights, mean, allow_unused=True) if weights else [])


class LabelSide(Side):
    """P_L: h, and the released values in place of labels, shape (copies, n, width). It never has a label.

    The first copy makes the gradients that are sent, the last one those of h: one and the same if coupled. `first`:
    each record's logits when it was first trained on, before that step; NaN for one that was not, (n, width).
    """

    def __init__(
        self, network: nn.Module, released: Integers, plan: Plan, checkpoints: Checkpoints | None = None
    ) -> None:
        super().__init__(network, plan, checkpoints)
        if released.shape != (plan.copies, plan.rows, plan.width):
            wanted = (plan.copies, plan.rows, plan.width)
            raise InputError(f"released values have shape {released.shape}: the plan says {wanted}")
        check_records_apart(network, plan.cut)
        self.released = released
        self.first = np.full((plan.rows, plan.width), np.nan, dtype=np.float32)
        self.targets: list[Targets] = [make_targets(part, plan.law, plan.post, plan.bound) for part in released]

    def step(self, rows: Rows, embeddings: Floats32) -> Floats32:
        """Update h with this batch; the gradients at the cut, (b, cut), of the h before the update."""
        inputs = torch.from_numpy(embeddings).to(self.device).requires_grad_()
        logits = self.network(inputs)
        if logits.shape != (len(rows), self.plan.width):
            raise InputError(f"h gave shape {tuple(logits.shape)}: the plan says ({len(rows)}, {self.plan.width})")
        new = np.isnan(self.first[rows])
        self.first[rows] = np.where(new, _array(logits), self.first[rows])
        index = torch.from_numpy(rows)
        sent = self.targets[0].residual(logits, index)
        if len(self.targets) == 1:
            gradient, *own = torch.autograd.grad(logits, [inputs, *self.trained], sent, allow_unused=True)
        else:
            (gradient,) = torch.autograd.grad(logits, [inputs], sent, retain_graph=True)
            own = list(_gradients(logits, self.trained, self.targets[1].residual(logits, index)))
        self.update([None if g is None else g / len(rows) for g in own])
        return _array(gradient)

    def private_auc(self) -> float | None:
        """The AUC of `first`, two classes, estimated from the released values (`auc_of_weights`): it costs no epsilon.

        Each record was scored before it was learnt from, so that its noise is not in its score. None without noise, for
        more classes, for a run that was resumed, for values that all say the same.
        """
        if self.plan.law is None or self.plan.width != 1 or np.isnan(self.first).any():
            return None
        values = self.plan.law.unbiased(self.released[-1])[:, 0]
        try:
            return auc_of_weights(values, self.first[:, 0].astype(np.float64))
        except InputError:  # no pair to compare, which is no reason to lose what was learnt
            return None

    def scores(self, embeddings: Floats32) -> Floats32:
        """Logits of new records, (b, width)."""
        self.network.eval()
        with torch.no_grad():
            logits = self.network(torch.from_numpy(embeddings).to(self.device))
        self.network.train()
        return _array(logits)


def _gradients(logits: Tensor, weights: Sequence[Tensor], slope: Tensor) -> Sequence[Any]:
    return torch.autograd.grad(logits, weights, slope, allow_unused=True) if weights else ()


def _array(tensor: Tensor) -> Floats32:
    array: Floats32 = tensor.detach().cpu().numpy().astype(np.float32, copy=False)
    return array

"""What the label party trains on in place of labels: functions of the released values and of the model, nothing else.

With loss l and logits z, v_j = dl(z, j)/dz is sigmoid(z) - j (one logit), softmax(z) - e_j (a logit for each class).
GradPerturb at the logits, v_0 + t (v_1 - v_0), is therefore sigmoid(z) - t; multi-class, sum_j s_j v_j = (sum_j s_j)
softmax(z) - s. A batch's gradients at the cut and for h's weights follow by the chain rule from this one v (paper 4,
section 4.2: the coupled draw costs epsilon once). All post-processing is done on t or s, and so costs no privacy.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from protocols.schema import Floats
from protocols.split.perturb import LATTICE, Perturbation
from protocols.split.post import check_post
from smpc.ring import Integers


@dataclass(frozen=True)
class Targets:
    """Values of shape (n, width): t, s, or (`posterior`) log-likelihoods of the classes relative to the first."""

    values: Tensor
    posterior: bool = False

    def residual(self, logits: Tensor, rows: Tensor) -> Tensor:
        """v of the batch with record numbers `rows`, shape of `logits` (b, width); detached."""
        with torch.no_grad():
            values = self.values[rows].to(logits.device)
            if logits.shape[1] == 1:
                target = torch.sigmoid(logits + values) if self.posterior else values
                return torch.sigmoid(logits) - target
            target = torch.softmax(logits + values, dim=1) if self.posterior else values
            return target.sum(dim=1, keepdim=True) * torch.softmax(logits, dim=1) - target


def make_targets(released: Integers, law: Perturbation | None, post: str, bound: float = 0.0) -> Targets:
    """Targets from lattice values of shape (n, width); `law` None where they carry no noise.

    none: t or s as released. clip: into [-bound, 1 + bound]. unbiased: randomised response without its bias.
    sum-to-one: s moved along (1, .., 1), where classes cannot be told apart. posterior: the label's posterior mean with
    the present model as the prior (as in ALIBI), the gradient of the likelihood of what was released.
    """
    check_post(law, post, bound)
    if law is not None and post == "posterior":
        likelihood = law.log_likelihood(released)
        relative = likelihood - likelihood[:, :1]
        return Targets(_tensor(relative[:, 1:] if law.width == 1 else relative), posterior=True)
    values: Floats = released / LATTICE
    if law is not None and post == "unbiased":
        values = law.unbiased(released)
    elif post == "clip":
        values = np.clip(values, -bound, 1 + bound)
    elif post == "sum-to-one":
        values = values - (values.sum(axis=1, keepdims=True) - 1) / values.shape[1]
    return Targets(_tensor(values))


def counterfactuals(logits: Tensor) -> list[Tensor]:
    """v_j for every class j: (b, width) each."""
    with torch.no_grad():
        if logits.shape[1] == 1:
            return [torch.sigmoid(logits) - j for j in (0, 1)]
        return [torch.softmax(logits, dim=1) - row for row in torch.eye(logits.shape[1], device=logits.device)]


def _tensor(values: Floats) -> Tensor:
    return torch.from_numpy(np.ascontiguousarray(values, dtype=np.float32))

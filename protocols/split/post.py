"""Which post-processing of perturbed labels there is (`protocols.split.targets` does it), and for which laws."""

from __future__ import annotations

import math

from protocols.split.perturb import Perturbation
from smpc.errors import InputError

POSTS = ("none", "clip", "unbiased", "sum-to-one", "posterior")


def check_post(law: Perturbation | None, post: str, bound: float) -> None:
    """Raises InputError where the post-processing is none, or is for another law."""
    if post not in POSTS:
        raise InputError(f"post = {post!r}: must be one of {', '.join(POSTS)}")
    if law is None and post != "none":
        raise InputError(f"post = {post!r}: labels without noise need none")
    if post == "sum-to-one" and law is not None and law.width == 1:
        raise InputError("post = 'sum-to-one' is for a value for each class; a scalar has none to spare")
    if not (math.isfinite(bound) and 0 <= bound <= 1000) or (bound > 0 and post != "clip"):
        raise InputError(f"bound = {bound}: post = 'clip' takes one from 0 to 1000, the others none")

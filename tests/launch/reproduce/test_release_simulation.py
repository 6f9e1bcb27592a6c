"""The simulation has the law of the protocol: moments against real noise and real sign matrices."""

from __future__ import annotations

import math

import numpy as np

from launch.reproduce.release_simulation import mixed, mixed_gaussian, noisy_moments, noisy_rows, weights_of

RNG = np.random.default_rng(7)
D = RNG.uniform(-1, 1, (60, 2)) @ np.array([[1, 0, 0.5], [0, 1, -1.0]])  # the last column is a combination: rank 2
DEVIATIONS = np.array([0.5, 2.0, 1.0])


def close(first: np.ndarray, second: np.ndarray) -> bool:
    """Means and covariances of two samples of vectors agree within six standard errors."""
    count = len(first)
    for f in (lambda a: a, lambda a: (a[:, :, None] * a[:, None, :]).reshape(count, -1)):
        a, b = f(first), f(second)
        error = np.sqrt((a.var(axis=0) + b.var(axis=0)) / count)
        if not np.all(np.abs(a.mean(axis=0) - b.mean(axis=0)) < 6 * error + 1e-9):
            return False
    return True


def test_noisy_moments_have_the_law_of_noisy_records() -> None:
    upper = np.triu_indices(3)
    real = np.array([(lambda z: (z.T @ z)[upper])(D + RNG.standard_normal(D.shape) * DEVIATIONS) for _ in range(4000)])
    drawn = np.array([noisy_moments(D.T @ D, 60, DEVIATIONS, RNG)[upper] for _ in range(4000)])
    assert close(real, drawn)
    halved = np.array([noisy_moments(D.T @ D, 60, DEVIATIONS / 2, RNG)[upper] for _ in range(4000)])
    assert not close(real, halved)
    few = np.array([noisy_moments(D[:3].T @ D[:3], 3, DEVIATIONS, RNG)[upper] for _ in range(4000)])
    real = np.array(
        [(lambda z: (z.T @ z)[upper])(D[:3] + RNG.standard_normal((3, 3)) * DEVIATIONS) for _ in range(4000)]
    )
    assert close(real, few)


def test_rows_of_a_real_matrix_are_nearly_normal() -> None:
    """Moments of the mixed rows, up to the fourth: a real B at many records, and rows from N(0, D'D)."""
    records = RNG.uniform(-1, 1, (20_000, 3))
    gram = records.T @ records
    real = mixed(records, 4000, bytes(32)) * math.sqrt(4000)
    drawn = mixed_gaussian(gram, 4000, RNG) * math.sqrt(4000)
    assert close(real / 100, drawn / 100)


def test_weights_of_real_and_of_normal_rows_are_as_far_from_the_truth() -> None:
    """What the page does above 1e5 records, where both can be done: mean distances within their intervals."""
    d, n, k, runs = 5, 3000, 60, 300
    truth = np.array([0.1, -0.1, 0.05, 0.0, 0.2])
    found: dict[bool, list[float]] = {True: [], False: []}
    for run in range(runs):
        rng = np.random.default_rng([run, 1])
        x = rng.uniform(-1, 1, (n, d))
        data = np.column_stack([x, x @ truth])
        gram = data.T @ data
        for real in found:
            mix = mixed(data, k, rng.bytes(32)) if real else mixed_gaussian(gram, k, rng)
            rows = noisy_rows(mix, k, np.full(d + 1, 3.0), rng)
            weights = weights_of(rows.T @ rows, n, "ols", 1e-4, np.zeros(d), k)
            found[real].append(float(np.linalg.norm(weights - truth)))
    means = {real: np.mean(values) for real, values in found.items()}
    error = math.sqrt(sum(np.var(values) for values in found.values()) / runs)
    assert abs(means[True] - means[False]) < 5 * error and error < 0.05 * means[True]


def test_a_prefix_of_a_mix_is_a_mix() -> None:
    records = RNG.uniform(-1, 1, (500, 2))
    mix = mixed(records, 64, bytes(32))
    part = noisy_rows(mix, 16, np.zeros(2), RNG)
    sums = part * math.sqrt(16)
    assert np.allclose(sums, mix[:16] * math.sqrt(64))

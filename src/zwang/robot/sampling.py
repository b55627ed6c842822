"""Random configurations, within the limits of the joints."""

from __future__ import annotations

import math

import numpy as np

from zwang.mechanism.mechanism import Mechanism
from zwang.robot.independent_coordinates import IndependentCoordinates, coordinates_for

SLIDE = 1.0  # [m] either way, for slides without limits


def random_configurations(mechanism: Mechanism, count: int, seed: int = 0) -> np.ndarray:
    """q (count, nq), uniform between the limits; turns without limits within half a turn, slides within 1 m of home.

    Quaternions are uniform over all orientations. Couples are respected.
    """
    c = coordinates_for(mechanism, [body.name for body in mechanism.bodies])
    return configurations_from_uniform(mechanism, c, np.random.default_rng(seed).random((count, mechanism.nq)))


def configurations_from_uniform(mechanism: Mechanism, c: IndependentCoordinates, numbers: np.ndarray) -> np.ndarray:
    """Configurations (N, nq) from numbers (N, nq) that are uniform in [0, 1)."""
    lower, upper = sampling_bounds(mechanism, c)
    q = lower + (upper - lower) * numbers
    for link in mechanism.tree.links:
        if link.move.kind == "ball":
            q[:, link.q] = _quaternions(numbers[:, link.q])
    return np.array(c.completed(q.T), dtype=float).T if c.ties else q


def sampling_bounds(mechanism: Mechanism, c: IndependentCoordinates) -> tuple[np.ndarray, np.ndarray]:
    """Finite (lower, upper) of every coordinate: its limits, or half a turn or 1 m about home."""
    home = np.array(mechanism.neutral, dtype=float)
    reach = np.full(mechanism.nq, SLIDE)
    for link in mechanism.tree.links:
        if link.move.kind in ("turn", "screw"):
            reach[link.q] = math.pi
    lower = np.where(np.isfinite(c.lower), c.lower, np.minimum(home, c.upper) - reach)
    upper = np.where(np.isfinite(c.upper), c.upper, np.maximum(home, lower) + reach)
    return lower, upper


def _quaternions(u: np.ndarray) -> np.ndarray:
    """Uniform unit quaternions from uniform numbers (N, 4). Source: Shoemake, Uniform random rotations (1992)."""
    a, b, c = np.sqrt(1 - u[:, 0]), np.sqrt(u[:, 0]), 2 * np.pi * u[:, 1:3]
    return np.stack(
        [b * np.cos(c[:, 1]), a * np.sin(c[:, 0]), a * np.cos(c[:, 0]), b * np.sin(c[:, 1])], axis=1
    )

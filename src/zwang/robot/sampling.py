"""Random configurations within the joint limits."""

from __future__ import annotations

import math

import numpy as np

from zwang.mechanism.mechanism import Mechanism
from zwang.robot.independent_coordinates import IndependentCoordinates, coordinates_for

TRAVEL = 1.0  # [m] sampled travel in either direction of prismatic joints without limits


def random_configurations(mechanism: Mechanism, count: int, seed: int = 0) -> np.ndarray:
    """Random configurations q (count, nq), uniform between the joint limits.

    Without limits, a rotation is sampled within half a revolution and a translation within 1 m of the neutral
    configuration. Quaternions are uniform over all orientations. Joint couplings are satisfied.
    """
    c = coordinates_for(mechanism, [body.name for body in mechanism.bodies])
    return configurations_from_uniform(
        mechanism, c, np.random.default_rng(seed).random((count, mechanism.nq))
    )


def configurations_from_uniform(
    mechanism: Mechanism, c: IndependentCoordinates, uniform: np.ndarray
) -> np.ndarray:
    """Configurations (N, nq) from numbers (N, nq) that are uniform in [0, 1)."""
    lower, upper = sampling_bounds(mechanism, c)
    q = lower + (upper - lower) * uniform
    for link in mechanism.tree.links:
        if link.joint.kind == "ball":
            q[:, link.q] = _quaternions(uniform[:, link.q])
    return np.array(c.completed(q.T), dtype=float).T if c.couplings else q


def sampling_bounds(mechanism: Mechanism, c: IndependentCoordinates) -> tuple[np.ndarray, np.ndarray]:
    """Finite bounds (lower, upper) of all coordinates.

    They are the limits where there are any, else half a revolution or 1 m about the neutral configuration.
    """
    neutral = np.array(mechanism.neutral, dtype=float)
    travel = np.full(mechanism.nq, TRAVEL)
    for link in mechanism.tree.links:
        if link.joint.kind in ("revolute", "screw"):
            travel[link.q] = math.pi
    lower = np.where(np.isfinite(c.lower), c.lower, np.minimum(neutral, c.upper) - travel)
    upper = np.where(np.isfinite(c.upper), c.upper, np.maximum(neutral, lower) + travel)
    return lower, upper


def _quaternions(u: np.ndarray) -> np.ndarray:
    """Uniform unit quaternions from uniform numbers (N, 4).

    Source: Shoemake, Uniform random rotations (1992).
    """
    a, b, c = np.sqrt(1 - u[:, 0]), np.sqrt(u[:, 0]), 2 * np.pi * u[:, 1:3]
    return np.stack(
        [b * np.cos(c[:, 1]), a * np.sin(c[:, 0]), a * np.cos(c[:, 0]), b * np.sin(c[:, 1])], axis=1
    )

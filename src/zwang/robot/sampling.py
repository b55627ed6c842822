"""Random configurations within the joint limits."""

from __future__ import annotations

import math
from functools import partial

import numpy as np

from zwang.mechanism.mechanism import Mechanism
from zwang.robot.independent_coordinates import IndependentCoordinates, ball_limits, coordinates_for

NEWTON_STEPS = 6  # to rounding error: the first estimate of an angle below pi is within 6 %
SMALL_ANGLE = 1e-2  # [rad] below which the first estimate has a relative error below 1e-11
TRAVEL = 1.0  # [m] sampled travel in either direction of prismatic joints without limits


def random_configurations(mechanism: Mechanism, count: int, seed: int = 0) -> np.ndarray:
    """Random configurations q (count, nq), uniform between the joint limits.

    Without limits, a rotation is sampled within half a revolution and a translation within 1 m of the neutral
    configuration. Quaternions are uniform over all orientations, or over those within the largest angle of a
    ball joint with limits. Joint couplings are satisfied.
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
    q, largest = (
        lower + (upper - lower) * uniform,
        {part.start: angle for part, angle in ball_limits(mechanism)},
    )
    for link in mechanism.tree.links:
        if link.joint.kind == "ball":
            angle = largest.get(link.q.start, math.pi)
            sample = _quaternions if angle >= math.pi else partial(_limited_quaternions, largest=angle)
            q[:, link.q] = sample(uniform[:, link.q])
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


def _limited_quaternions(u: np.ndarray, largest: float) -> np.ndarray:
    """Unit quaternions of rotations by at most `largest` < pi [rad], uniform among these, from uniform
    numbers (N, 4).

    The angle a has the density 1 - cos a of uniform rotations, and so the distribution
    (a - sin a) / (largest - sin largest); it is found by Newton's method. The axis is uniform on the sphere.
    Source: Miles, On random rotations in R^3, Biometrika 52 (1965) 636.
    """
    share = u[:, 0] * (largest - math.sin(largest))
    # a - sin a = a^3 / 6 - a^5 / 120 + ...
    small = np.cbrt(6 * share)
    angle = small + small**3 / 60
    large = angle > SMALL_ANGLE
    for _ in range(NEWTON_STEPS):
        x = angle[large]
        angle[large] = x - (x - np.sin(x) - share[large]) / (1 - np.cos(x))
    angle = np.clip(angle, 0, largest)
    z, turn = 2 * u[:, 1] - 1, 2 * np.pi * u[:, 2]
    across, sine = np.sqrt(1 - z * z), np.sin(angle / 2)
    return np.stack(
        [np.cos(angle / 2), sine * across * np.cos(turn), sine * across * np.sin(turn), sine * z], axis=1
    )

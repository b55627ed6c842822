"""Terms that several tasks have in common: speeds, costs, noise of the initial state."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.api.batch.world_view import WorldView
from zwang.gym.task import Arguments
from zwang.scalar import clip, less, logical_and, logical_not, sqrt, where


def square_sum(values: Any) -> Any:
    """The sum of the squares of all elements."""
    return sum((x * x for x in np.ravel(values)), start=0)


def norm(values: Any) -> Any:
    """The Euclidean norm."""
    return sqrt(square_sum(values))


def clipped(values: Any, low: float, high: float) -> np.ndarray:
    """The elements between two bounds, (n,)."""
    return np.array([clip(x, low, high) for x in np.ravel(values)])


def inside(x: Any, interval: tuple[float, float]) -> Any:
    """Whether x lies strictly inside an interval."""
    return logical_and(less(interval[0], x), less(x, interval[1]))


def control_cost(s: WorldView, a: Arguments) -> Any:
    """The weighted sum of squared actions."""
    return a.ctrl_cost_weight * square_sum(s.control())


def velocity_of(after: Any, before: Any, a: Arguments) -> Any:
    """The mean velocity over a step of the environment."""
    return (after - before) / a.dt


def x_velocity(s: WorldView, a: Arguments) -> Any:
    """The mean velocity of the first coordinate."""
    return velocity_of(s.q()[0], s.before.q()[0], a)


def healthy_reward(is_healthy: Any, a: Arguments) -> Any:
    """The reward of a healthy state, 0 in others."""
    return where(is_healthy, float(a.healthy_reward), 0.0)


def unhealthy(is_healthy: Any, a: Arguments) -> Any:
    """Whether a state terminates an episode because it is unhealthy."""
    return logical_not(is_healthy) if a.terminate_when_unhealthy else False


def velocities(s: WorldView, a: Arguments) -> list[Any]:
    """All generalised velocities."""
    return [s.v()]


def clipped_velocities(s: WorldView, a: Arguments) -> list[Any]:
    """All generalised velocities between -10 and 10."""
    return [clipped(s.v(), -10.0, 10.0)]


def uniform_noise(random: np.random.Generator, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """The home configuration at rest with uniform noise in q and v."""
    low, high = -a.reset_noise_scale, a.reset_noise_scale
    q = a.home + random.uniform(low=low, high=high, size=a.mechanism.nq)
    return q, random.uniform(low=low, high=high, size=a.mechanism.nv)


def uniform_and_normal_noise(random: np.random.Generator, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """The home configuration at rest with uniform noise in q and normal noise in v."""
    low, high = -a.reset_noise_scale, a.reset_noise_scale
    q = a.home + random.uniform(low=low, high=high, size=a.mechanism.nq)
    return q, a.reset_noise_scale * random.standard_normal(a.mechanism.nv)

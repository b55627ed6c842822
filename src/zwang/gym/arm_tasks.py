"""Gymnasium's pendulums and arms: InvertedPendulum, InvertedDoublePendulum, Reacher, Pusher.

Positions of bodies are those of the last stage of a step, as MuJoCo's `mj_step` leaves them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.api.batch.world_view import WorldView
from zwang.gym.task import Arguments, Task
from zwang.gym.task_terms import (
    clipped,
    norm,
    square_sum,
    uniform_and_normal_noise,
    uniform_noise,
)
from zwang.scalar import absolute, cos, less, less_equal, sin, where


def _position(s: WorldView, body: str) -> np.ndarray:
    """The origin (3,) of a body."""
    return s.last_stage.pose(body).p


# ------------------------------------------------------------------------------------------------- pendulums


def _has_fallen(s: WorldView, a: Arguments) -> Any:
    return less(0.2, absolute(s.q()[1]))


def _pendulum_observation(s: WorldView, a: Arguments) -> list[Any]:
    return [s.q(), s.v()]


def _survival(s: WorldView, a: Arguments) -> dict[str, Any]:
    return {"reward_survive": where(_has_fallen(s, a), 0.0, 1.0)}


def _tip(s: WorldView, a: Arguments) -> np.ndarray:
    """The position of the tip of the second pole: of the first site of the model."""
    return _position(s, a.mechanism.frames[0].name)


def _tip_is_low(s: WorldView, a: Arguments) -> Any:
    return less_equal(_tip(s, a)[2], 1.0)


def _double_pendulum_observation(s: WorldView, a: Arguments) -> list[Any]:
    q = s.q()
    force = clipped(s.last_stage.constraint_force[:1], -10.0, 10.0)
    return [q[:1], *map(sin, q[1:]), *map(cos, q[1:]), clipped(s.v(), -10.0, 10.0), force]


def _double_pendulum_reward(s: WorldView, a: Arguments) -> dict[str, Any]:
    x, _, z = _tip(s, a)
    v1, v2 = s.v()[1:3]
    return {
        "reward_survive": where(_tip_is_low(s, a), 0.0, float(a.healthy_reward)),
        "distance_penalty": -(0.01 * x**2 + (z - 2) ** 2),
        "velocity_penalty": -(1e-3 * v1**2 + 5e-3 * v2**2),
    }


INVERTED_PENDULUM = Task(
    "inverted_pendulum.xml",
    2,
    arguments={"reset_noise_scale": 0.01},
    observation=_pendulum_observation,
    reward=_survival,
    terminated=_has_fallen,
    initial_state=uniform_noise,
)

INVERTED_DOUBLE_PENDULUM = Task(
    "inverted_double_pendulum.xml",
    5,
    arguments={"healthy_reward": 10.0, "reset_noise_scale": 0.1},
    observation=_double_pendulum_observation,
    reward=_double_pendulum_reward,
    terminated=_tip_is_low,
    initial_state=uniform_and_normal_noise,
)


# ------------------------------------------------------------------------------------------------------ arms


def _reacher_observation(s: WorldView, a: Arguments) -> list[Any]:
    q, v = s.q(), s.v()
    reach = _position(s, "fingertip") - _position(s, "target")
    return [*map(cos, q[:2]), *map(sin, q[:2]), q[2:], v[:2], reach[:2]]


def _reacher_reward(s: WorldView, a: Arguments) -> dict[str, Any]:
    return {
        "reward_dist": -norm(_position(s, "fingertip") - _position(s, "target")) * a.reward_dist_weight,
        "reward_ctrl": -square_sum(s.control()) * a.reward_control_weight,
    }


def _reacher_initial_state(random: np.random.Generator, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """Uniform noise, and a target uniform in a disc of radius 0.2 m."""
    q = random.uniform(low=-0.1, high=0.1, size=a.mechanism.nq) + a.home
    goal = random.uniform(low=-0.2, high=0.2, size=2)
    while not np.linalg.norm(goal) < 0.2:
        goal = random.uniform(low=-0.2, high=0.2, size=2)
    q[-2:] = goal
    v = random.uniform(low=-0.005, high=0.005, size=a.mechanism.nv)
    v[-2:] = 0
    return q, v


def _pusher_observation(s: WorldView, a: Arguments) -> list[Any]:
    bodies = [_position(s, body) for body in ("tips_arm", "object", "goal")]
    return [s.q()[:7], s.v()[:7], *bodies]


def _pusher_reward(s: WorldView, a: Arguments) -> dict[str, Any]:
    arm, pushed, goal = (_position(s, body) for body in ("tips_arm", "object", "goal"))
    return {
        "reward_dist": -norm(pushed - goal) * a.reward_dist_weight,
        "reward_ctrl": -square_sum(s.control()) * a.reward_control_weight,
        "reward_near": -norm(pushed - arm) * a.reward_near_weight,
    }


def _pusher_initial_state(random: np.random.Generator, a: Arguments) -> tuple[np.ndarray, np.ndarray]:
    """The arm in its initial configuration; the object at a distance of more than 0.17 m from the goal."""

    def drawn() -> np.ndarray:
        x = random.uniform(low=-0.3, high=0, size=1)
        return np.concatenate([x, random.uniform(low=-0.2, high=0.2, size=1)])

    cylinder = drawn()
    while not np.linalg.norm(cylinder) > 0.17:
        cylinder = drawn()
    q = a.home.copy()
    q[-4:-2], q[-2:] = cylinder, 0
    v = random.uniform(low=-0.005, high=0.005, size=a.mechanism.nv)
    v[-4:] = 0
    return q, v


REACHER = Task(
    "reacher.xml",
    2,
    arguments={"reward_dist_weight": 1.0, "reward_control_weight": 1.0},
    observation=_reacher_observation,
    reward=_reacher_reward,
    initial_state=_reacher_initial_state,
)

PUSHER = Task(
    "pusher_v5.xml",
    5,
    arguments={"reward_near_weight": 0.5, "reward_dist_weight": 1.0, "reward_control_weight": 0.1},
    observation=_pusher_observation,
    reward=_pusher_reward,
    initial_state=_pusher_initial_state,
)

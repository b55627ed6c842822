"""Gymnasium's walkers in a plane and its swimmer: HalfCheetah, Hopper, Walker2d, Swimmer."""

from __future__ import annotations

from functools import reduce
from typing import Any

from zwang.api.batch.world_view import WorldView
from zwang.gym.task import Arguments, Task
from zwang.gym.task_terms import (
    clipped_velocities,
    control_cost,
    healthy_reward,
    inside,
    norm,
    unhealthy,
    uniform_and_normal_noise,
    uniform_noise,
    velocities,
    velocity_of,
    x_velocity,
)
from zwang.scalar import logical_and

INFINITY = float("inf")


def _forward_reward(s: WorldView, a: Arguments) -> dict[str, Any]:
    """The speed less the cost of control."""
    forward = a.forward_reward_weight * x_velocity(s, a)
    return {"reward_forward": forward, "reward_ctrl": -control_cost(s, a)}


def _cheetah_infos(s: WorldView, a: Arguments) -> dict[str, Any]:
    return {"x_position": s.q()[0], "x_velocity": x_velocity(s, a)}


def _upright_infos(s: WorldView, a: Arguments) -> dict[str, Any]:
    return _cheetah_infos(s, a) | {"z_distance_from_origin": s.q()[1] - a.home[1]}


def _swimmer_infos(s: WorldView, a: Arguments) -> dict[str, Any]:
    return {
        "x_position": s.q()[0],
        "y_position": s.q()[1],
        "distance_from_origin": norm(s.q()[:2]),
        "x_velocity": x_velocity(s, a),
        "y_velocity": velocity_of(s.q()[1], s.before.q()[1], a),
    }


def _walker_is_healthy(s: WorldView, a: Arguments) -> Any:
    """Whether height and angle of the trunk are in their ranges."""
    return logical_and(inside(s.q()[1], a.healthy_z_range), inside(s.q()[2], a.healthy_angle_range))


def _hopper_is_healthy(s: WorldView, a: Arguments) -> Any:
    """Whether, besides, all other coordinates and velocities are in theirs."""
    state = [inside(x, a.healthy_state_range) for x in (*s.q()[2:], *s.v())]
    return reduce(logical_and, state, _walker_is_healthy(s, a))


def _walker_is_unhealthy(s: WorldView, a: Arguments) -> Any:
    return unhealthy(_walker_is_healthy(s, a), a)


def _hopper_is_unhealthy(s: WorldView, a: Arguments) -> Any:
    return unhealthy(_hopper_is_healthy(s, a), a)


def _hopper_reward(s: WorldView, a: Arguments) -> dict[str, Any]:
    return _forward_reward(s, a) | {"reward_survive": healthy_reward(_hopper_is_healthy(s, a), a)}


def _walker_reward(s: WorldView, a: Arguments) -> dict[str, Any]:
    return _forward_reward(s, a) | {"reward_survive": healthy_reward(_walker_is_healthy(s, a), a)}


HALF_CHEETAH = Task(
    "half_cheetah.xml",
    5,
    arguments={
        "forward_reward_weight": 1.0,
        "ctrl_cost_weight": 0.1,
        "reset_noise_scale": 0.1,
        "exclude_current_positions_from_observation": True,
    },
    skipped_positions=1,
    observation=velocities,
    reward=_forward_reward,
    infos=_cheetah_infos,
    reset_infos=("x_position",),
    initial_state=uniform_and_normal_noise,
)

HOPPER = Task(
    "hopper.xml",
    4,
    arguments={
        "forward_reward_weight": 1.0,
        "ctrl_cost_weight": 1e-3,
        "healthy_reward": 1.0,
        "terminate_when_unhealthy": True,
        "healthy_state_range": (-100.0, 100.0),
        "healthy_z_range": (0.7, INFINITY),
        "healthy_angle_range": (-0.2, 0.2),
        "reset_noise_scale": 5e-3,
        "exclude_current_positions_from_observation": True,
    },
    skipped_positions=1,
    observation=clipped_velocities,
    reward=_hopper_reward,
    terminated=_hopper_is_unhealthy,
    infos=_upright_infos,
    reset_infos=("x_position", "z_distance_from_origin"),
    initial_state=uniform_noise,
)

WALKER2D = Task(
    "walker2d_v5.xml",
    4,
    arguments={
        "forward_reward_weight": 1.0,
        "ctrl_cost_weight": 1e-3,
        "healthy_reward": 1.0,
        "terminate_when_unhealthy": True,
        "healthy_z_range": (0.8, 2.0),
        "healthy_angle_range": (-1.0, 1.0),
        "reset_noise_scale": 5e-3,
        "exclude_current_positions_from_observation": True,
    },
    skipped_positions=1,
    observation=clipped_velocities,
    reward=_walker_reward,
    terminated=_walker_is_unhealthy,
    infos=_upright_infos,
    reset_infos=("x_position", "z_distance_from_origin"),
    initial_state=uniform_noise,
)

SWIMMER = Task(
    "swimmer.xml",
    4,
    arguments={
        "forward_reward_weight": 1.0,
        "ctrl_cost_weight": 1e-4,
        "reset_noise_scale": 0.1,
        "exclude_current_positions_from_observation": True,
    },
    skipped_positions=2,
    observation=velocities,
    reward=_forward_reward,
    infos=_swimmer_infos,
    reset_infos=("x_position", "y_position", "distance_from_origin"),
    initial_state=uniform_noise,
)

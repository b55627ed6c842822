"""Gymnasium's walkers in space: Ant, Humanoid, HumanoidStandup.

Positions, inertias, velocities and wrenches of bodies are those of the last stage of a step, as MuJoCo's
`mj_step` leaves them. As in Gymnasium, the wrenches are zero after a reset.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.api.batch.world_view import WorldView
from zwang.dynamics.body_quantities import body_names
from zwang.errors import ArgumentError
from zwang.gym.task import Arguments, Task
from zwang.gym.task_terms import (
    clipped,
    control_cost,
    healthy_reward,
    inside,
    norm,
    square_sum,
    unhealthy,
    uniform_and_normal_noise,
    uniform_noise,
    velocity_of,
)
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import clip, less_equal, logical_and

FREE = 6  # velocities of the free joint, which no actuator drives
INFINITY = float("inf")


def _external_wrenches(s: WorldView) -> np.ndarray:
    """MuJoCo's cfrc_ext, (bodies + 1, 6)."""
    if s.is_initial:
        return np.zeros((len(body_names(s.mechanism)), 6))
    return s.last_stage.external_wrenches


def _plane_infos(s: WorldView) -> dict[str, Any]:
    return {"x_position": s.q()[0], "y_position": s.q()[1], "distance_from_origin": norm(s.q()[:2])}


# ------------------------------------------------------------------------------------------------------- ant


def _ant_velocity(s: WorldView, a: Arguments) -> Any:
    """The mean velocity (2,) of the main body in the plane."""
    after, before = (x.last_stage.pose(_main_body(a)).p[:2] for x in (s, s.before))
    return velocity_of(after, before, a)


def _main_body(a: Arguments) -> str:
    """The name of the main body, which may be given by MuJoCo's number. Raises ArgumentError."""
    if isinstance(a.main_body, str):
        return a.main_body
    names = body_names(a.mechanism)
    if a.main_body not in range(len(names)):
        raise ArgumentError(
            f"main_body is {short_repr(a.main_body)}; it must be the name of a body, or a number from 0 to "
            f"{len(names) - 1}"
        )
    return names[a.main_body]


def _ant_wrenches(s: WorldView, a: Arguments) -> np.ndarray:
    """The wrenches (bodies + 1, 6) within their range."""
    wrenches = _external_wrenches(s)
    return clipped(wrenches, *a.contact_force_range).reshape(wrenches.shape)


def _ant_observation(s: WorldView, a: Arguments) -> list[Any]:
    return [s.v(), *([_ant_wrenches(s, a)[1:]] if a.include_cfrc_ext_in_observation else [])]


def _ant_is_healthy(s: WorldView, a: Arguments) -> Any:
    low, high = a.healthy_z_range
    return logical_and(less_equal(low, s.q()[2]), less_equal(s.q()[2], high))


def _ant_is_unhealthy(s: WorldView, a: Arguments) -> Any:
    return unhealthy(_ant_is_healthy(s, a), a)


def _ant_reward(s: WorldView, a: Arguments) -> dict[str, Any]:
    return {
        "reward_forward": a.forward_reward_weight * _ant_velocity(s, a)[0],
        "reward_ctrl": -control_cost(s, a),
        "reward_contact": -a.contact_cost_weight * square_sum(_ant_wrenches(s, a)),
        "reward_survive": healthy_reward(_ant_is_healthy(s, a), a),
    }


def _ant_infos(s: WorldView, a: Arguments) -> dict[str, Any]:
    x, y = _ant_velocity(s, a)
    return _plane_infos(s) | {"x_velocity": x, "y_velocity": y}


ANT = Task(
    "ant.xml",
    5,
    arguments={
        "forward_reward_weight": 1,
        "ctrl_cost_weight": 0.5,
        "contact_cost_weight": 5e-4,
        "healthy_reward": 1.0,
        "main_body": 1,
        "terminate_when_unhealthy": True,
        "healthy_z_range": (0.2, 1.0),
        "contact_force_range": (-1.0, 1.0),
        "reset_noise_scale": 0.1,
        "exclude_current_positions_from_observation": True,
        "include_cfrc_ext_in_observation": True,
    },
    skipped_positions=2,
    observation=_ant_observation,
    reward=_ant_reward,
    terminated=_ant_is_unhealthy,
    infos=_ant_infos,
    reset_infos=("x_position", "y_position", "distance_from_origin"),
    initial_state=uniform_and_normal_noise,
)


# ------------------------------------------------------------------------------------------------- humanoids


def _humanoid_observation(s: WorldView, a: Arguments) -> list[Any]:
    stage, parts = s.last_stage, [s.v()]
    if a.include_cinert_in_observation:
        parts.append(stage.body_quantities.cinert[1:])
    if a.include_cvel_in_observation:
        parts.append(stage.body_quantities.cvel[1:])
    if a.include_qfrc_actuator_in_observation:
        parts.append(stage.actuator_force[FREE:])
    if a.include_cfrc_ext_in_observation:
        parts.append(_external_wrenches(s)[1:])
    return parts


def _humanoid_velocity(s: WorldView, a: Arguments) -> Any:
    """The mean velocity (2,) of the centre of mass in the plane."""
    after, before = (x.last_stage.com[:2] for x in (s, s.before))
    return velocity_of(after, before, a)


def _humanoid_is_healthy(s: WorldView, a: Arguments) -> Any:
    return inside(s.q()[2], a.healthy_z_range)


def _humanoid_is_unhealthy(s: WorldView, a: Arguments) -> Any:
    return unhealthy(_humanoid_is_healthy(s, a), a)


def _contact_cost(s: WorldView, weight: float, bounds: tuple[float, float]) -> Any:
    """The weighted sum of squared wrenches, within bounds."""
    return clip(weight * square_sum(_external_wrenches(s)), *bounds)


def _humanoid_reward(s: WorldView, a: Arguments) -> dict[str, Any]:
    return {
        "reward_survive": healthy_reward(_humanoid_is_healthy(s, a), a),
        "reward_forward": a.forward_reward_weight * _humanoid_velocity(s, a)[0],
        "reward_ctrl": -control_cost(s, a),
        "reward_contact": -_contact_cost(s, a.contact_cost_weight, a.contact_cost_range),
    }


def _tendon_infos(s: WorldView) -> dict[str, Any]:
    """Lengths and velocities of the tendons."""
    found = [s.last_stage.tendon(tendon.name) for tendon in s.mechanism.tendons]
    return {
        "tendon_length": np.array([length for length, _ in found]),
        "tendon_velocity": np.array([velocity for _, velocity in found]),
    }


def _humanoid_infos(s: WorldView, a: Arguments) -> dict[str, Any]:
    x, y = _humanoid_velocity(s, a)
    return _plane_infos(s) | _tendon_infos(s) | {"x_velocity": x, "y_velocity": y}


def _standup_reward(s: WorldView, a: Arguments) -> dict[str, Any]:
    return {
        "reward_linup": s.q()[2] / a.timestep,
        "reward_quadctrl": -control_cost(s, a),
        "reward_impact": -_contact_cost(s, a.impact_cost_weight, a.impact_cost_range),
    }


def _standup_infos(s: WorldView, a: Arguments) -> dict[str, Any]:
    plane = {"x_position": s.q()[0], "y_position": s.q()[1]}
    return plane | {"z_distance_from_origin": s.q()[2] - a.home[2]} | _tendon_infos(s)


_HUMANOID_OBSERVATION = {
    "reset_noise_scale": 1e-2,
    "exclude_current_positions_from_observation": True,
    "include_cinert_in_observation": True,
    "include_cvel_in_observation": True,
    "include_qfrc_actuator_in_observation": True,
    "include_cfrc_ext_in_observation": True,
}

HUMANOID = Task(
    "humanoid.xml",
    5,
    arguments={
        "forward_reward_weight": 1.25,
        "ctrl_cost_weight": 0.1,
        "contact_cost_weight": 5e-7,
        "contact_cost_range": (-INFINITY, 10.0),
        "healthy_reward": 5.0,
        "terminate_when_unhealthy": True,
        "healthy_z_range": (1.0, 2.0),
        **_HUMANOID_OBSERVATION,
    },
    skipped_positions=2,
    observation=_humanoid_observation,
    reward=_humanoid_reward,
    terminated=_humanoid_is_unhealthy,
    infos=_humanoid_infos,
    reset_infos=("x_position", "y_position", "tendon_length", "tendon_velocity", "distance_from_origin"),
    initial_state=uniform_noise,
)

HUMANOID_STANDUP = Task(
    "humanoidstandup.xml",
    5,
    arguments={
        "uph_cost_weight": 1,
        "ctrl_cost_weight": 0.1,
        "impact_cost_weight": 0.5e-6,
        "impact_cost_range": (-INFINITY, 10.0),
        **_HUMANOID_OBSERVATION,
    },
    skipped_positions=2,
    observation=_humanoid_observation,
    reward=_standup_reward,
    reward_offset=1.0,
    infos=_standup_infos,
    reset_infos=("x_position", "y_position", "z_distance_from_origin", "tendon_length", "tendon_velocity"),
    initial_state=uniform_noise,
)

"""Registration of the tasks with Gymnasium, as `zwang/Ant-v5` etc."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

import gymnasium
from gymnasium.envs.registration import registry

from zwang.errors import ZwangWarning
from zwang.gym.arm_tasks import INVERTED_DOUBLE_PENDULUM, INVERTED_PENDULUM, PUSHER, REACHER
from zwang.gym.environment import Environment
from zwang.gym.planar_tasks import HALF_CHEETAH, HOPPER, SWIMMER, WALKER2D
from zwang.gym.rendering import ENV_MODES
from zwang.gym.single_env import Env
from zwang.gym.spatial_tasks import ANT, HUMANOID, HUMANOID_STANDUP
from zwang.gym.task import RENDERING
from zwang.gym.vector_env import VectorEnv

TASKS = {
    "Ant": ANT,
    "HalfCheetah": HALF_CHEETAH,
    "Hopper": HOPPER,
    "Humanoid": HUMANOID,
    "HumanoidStandup": HUMANOID_STANDUP,
    "InvertedDoublePendulum": INVERTED_DOUBLE_PENDULUM,
    "InvertedPendulum": INVERTED_PENDULUM,
    "Pusher": PUSHER,
    "Reacher": REACHER,
    "Swimmer": SWIMMER,
    "Walker2d": WALKER2D,
}
"""The tasks of MuJoCo, version 5, by their names in Gymnasium."""

KEPT = 16  # environments of tasks
DRAWING = ("render_mode", "width", "height")
OWN_ARGUMENTS = ("num_envs", "max_episode_steps", "autoreset_mode", "dtype", "threads", "copy", *DRAWING)


def register_tasks() -> None:
    """Register every task, with the step limit and the reward threshold of Gymnasium's environment."""
    for name in TASKS:
        known = registry.get(f"{name}-v5")
        gymnasium.register(
            f"zwang/{name}-v5",
            entry_point="zwang.gym.registration:task_env",
            vector_entry_point="zwang.gym.registration:task_vector_env",
            max_episode_steps=None if known is None else known.max_episode_steps,
            reward_threshold=None if known is None else known.reward_threshold,
            kwargs={"task": name},
        )


def task_environment(task: str, **arguments: Any) -> Environment:
    """The environment of a task; that of Gymnasium's own file is kept, and with it the compiled programs."""
    values = tuple(sorted(arguments.items()))
    try:
        hash(values)
    except TypeError:  # lists and arrays
        return TASKS[task].environment(**arguments)
    return TASKS[task].environment(**arguments) if "xml_file" in arguments else _kept(task, values)


@lru_cache(KEPT)
def _kept(task: str, arguments: tuple[tuple[str, Any], ...]) -> Environment:
    return TASKS[task].environment(**dict(arguments))


def task_env(task: str, *, dtype: str = "float64", **arguments: Any) -> Env:
    """The single environment of a task. arguments: those of Gymnasium's environment, and render_mode, width
    and height of `Env`.
    """
    drawing = {name: arguments.pop(name) for name in DRAWING if name in arguments}
    _warn_of_renderer_arguments(task, arguments, drawing)
    return Env(task_environment(task, **arguments), dtype=dtype, **drawing)


task_env.metadata = {"render_modes": list(ENV_MODES)}  # type: ignore[attr-defined] # `gymnasium.make` asks


def task_vector_env(task: str, **arguments: Any) -> VectorEnv:
    """The vectorised environment of a task.

    arguments: those of Gymnasium's environment, and num_envs, max_episode_steps, autoreset_mode, dtype,
    threads, copy, render_mode, width and height of `VectorEnv`.
    """
    own = {name: arguments.pop(name) for name in OWN_ARGUMENTS if name in arguments}
    _warn_of_renderer_arguments(task, arguments, own)
    return VectorEnv(task_environment(task, **arguments), **own)


def _warn_of_renderer_arguments(task: str, arguments: Mapping[str, Any], drawing: Mapping[str, Any]) -> None:
    """Warn of arguments for MuJoCo's renderer where there are pictures, which they do not change."""
    ignored = [name for name in RENDERING if arguments.get(name) is not None]
    if ignored and drawing.get("render_mode") is not None:
        warnings.warn(
            f"zwang/{task}-v5 does not use {' and '.join(ignored)}, of MuJoCo's renderer: its own camera "
            "follows the mechanism; leave these arguments out",
            ZwangWarning,
            stacklevel=3,
        )

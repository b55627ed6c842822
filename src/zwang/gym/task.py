"""A task of Gymnasium, version 5, as a small description from which its environment is made."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import gymnasium
import numpy as np

from zwang.api.batch.world_arguments import whole_number
from zwang.api.batch.world_view import WorldView
from zwang.errors import ArgumentError, LoadWarning, PlausibilityWarning, UnknownNameError
from zwang.gym.environment import Environment
from zwang.io.load import load
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr
from zwang.scalar.real import real_array

ASSETS = Path(gymnasium.__file__).parent / "envs" / "mujoco" / "assets"
RENDERING = (
    "default_camera_config", "camera_id", "camera_name", "max_geom", "visual_options",
)  # fmt: skip
"""The arguments of Gymnasium's environments that concern MuJoCo's renderer alone; they are accepted and not
used, with a warning where there are pictures.
"""

Arguments = SimpleNamespace
"""The arguments of a task by name, with dt: duration of a step of the environment [s]; timestep: of the
simulation [s]; home: initial coordinates (nq,); mechanism.
"""


@dataclass(frozen=True)
class Task:
    """A task: what distinguishes it from other tasks of Gymnasium.

    xml_file: the model, a file of Gymnasium. frame_skip: steps of the simulation in one step. arguments: the
    other arguments of Gymnasium's environment, with their defaults.
    observation: what follows the positions, if there are any. reward: the terms of the reward, which are
    infos too; their sum and reward_offset are the reward. terminated: whether the state is terminal. infos:
    further infos. All are functions of a `WorldView` and the arguments; functions of a module, so that
    environments can be pickled.
    initial_state: q and v at the beginning of an episode, from a random generator and the arguments, with the
    same calls of the generator as in Gymnasium.
    skipped_positions: the observation begins with the coordinates without these first ones, or with all of
    them; None for an observation without positions.
    Source: Gymnasium documentation, "MuJoCo", version 5 of each environment.
    """

    xml_file: str
    frame_skip: int
    observation: Callable[[WorldView, Arguments], list[Any]]
    reward: Callable[[WorldView, Arguments], dict[str, Any]]
    initial_state: Callable[[np.random.Generator, Arguments], tuple[np.ndarray, np.ndarray]]
    arguments: Mapping[str, Any] = field(default_factory=dict)
    terminated: Callable[[WorldView, Arguments], Any] | None = None
    infos: Callable[[WorldView, Arguments], dict[str, Any]] | None = None
    reset_infos: tuple[str, ...] = ()
    skipped_positions: int | None = None
    reward_offset: float = 0.0

    def environment(self, **given: Any) -> Environment:
        """The environment of this task with some arguments of its own.

        Raises UnknownNameError for an argument that Gymnasium's environment has not, ArgumentError for one
        of another kind than its default, and the errors of `zw.load`.
        """
        defaults = {"xml_file": self.xml_file, "frame_skip": self.frame_skip, **self.arguments}
        for name in given:
            if name not in defaults and name not in RENDERING:
                raise UnknownNameError("argument", name, tuple(defaults))
        values = defaults | {name: value for name, value in given.items() if name in defaults}
        for name, value in values.items():
            _check_kind(name, value, defaults[name])
        whole_number(values["frame_skip"], "frame_skip", "a whole number of steps")
        m = gymnasium_model(values["xml_file"])
        timestep = m.options.timestep
        a = Arguments(
            **values,
            dt=timestep * values["frame_skip"],
            timestep=timestep,
            home=np.array(m.home or m.neutral, float),
            mechanism=m,
        )
        terms = _Terms(self, a)
        return Environment(
            m,
            observation=terms.observation,
            reward=terms.reward,
            terminated=None if self.terminated is None else terms.terminated,
            infos=terms.infos,
            reset_infos=self.reset_infos,
            initial_state=terms.initial_state,
            frame_skip=a.frame_skip,
            given_positions=0 if self.skipped_positions is None else m.nq - terms.skipped,
        )


@dataclass(frozen=True)
class _Terms:
    """The functions of a task at the arguments of one environment; its methods can be pickled, as functions
    within functions cannot.
    """

    task: Task
    arguments: Arguments

    @property
    def skipped(self) -> int:
        """The number of coordinates that the observation leaves out."""
        assert self.task.skipped_positions is not None
        return self.task.skipped_positions if self.arguments.exclude_current_positions_from_observation else 0

    def observation(self, s: WorldView) -> list[Any]:
        positions = [] if self.task.skipped_positions is None else [s.q()[self.skipped :]]
        return [*positions, *self.task.observation(s, self.arguments)]

    def reward(self, s: WorldView) -> Any:
        return sum(self.task.reward(s, self.arguments).values(), start=self.task.reward_offset)

    def terminated(self, s: WorldView) -> Any:
        assert self.task.terminated is not None
        return self.task.terminated(s, self.arguments)

    def infos(self, s: WorldView) -> dict[str, Any]:
        further = self.task.infos(s, self.arguments) if self.task.infos else {}
        return further | self.task.reward(s, self.arguments)

    def initial_state(self, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
        return self.task.initial_state(random, self.arguments)


def _check_kind(name: str, value: Any, default: Any) -> None:
    """Raises ArgumentError for an argument of another kind than its default: a truth value, an interval, the
    name of a file, or a number.
    """
    if isinstance(default, bool):
        is_number = isinstance(value, bool | np.bool_ | int | np.integer)
        valid, what = is_number and value in (0, 1), "True or False"
    elif isinstance(default, str):
        valid, what = isinstance(value, str), "the name of a file"
    elif isinstance(default, tuple):
        numbers = _numbers(value)
        valid, what = numbers.shape == (2,) and not np.isnan(numbers).any(), "the two ends of an interval"
    else:
        # the main body may be given by its name
        is_named = name == "main_body" and isinstance(value, str)
        numbers = _numbers(value)
        valid, what = is_named or (numbers.shape == () and bool(np.isfinite(numbers))), "a finite number"
    if not valid:
        raise ArgumentError(f"{name} is {short_repr(value)}; it must be {what}, such as {default!r}")


def _numbers(value: Any) -> np.ndarray:
    """The value as an array of real numbers; of the shape (0,) if it is none."""
    try:
        return real_array(value)
    except (TypeError, ValueError, OverflowError):
        return np.zeros(0)


def gymnasium_model(xml_file: str) -> Mechanism:
    """The mechanism of a file whose path begins with ".", "/" or "~", or of Gymnasium's file of this name,
    which is read without warnings.
    """
    path = Path(xml_file).expanduser()
    if path.is_absolute() or xml_file.startswith("."):
        return load(path)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", LoadWarning)
        warnings.simplefilter("ignore", PlausibilityWarning)
        return load(ASSETS / xml_file)

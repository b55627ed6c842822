"""The episodes of the worlds of an environment: states, random generators, and steps since the reset."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from zwang.errors import ArgumentError, ShapeError
from zwang.gym.environment import INFO, Environment, RandomParameters
from zwang.simulation.status import FAILURE_REASONS

FAILURE = "failure_reason"


class Episodes:
    """`count` worlds of an environment, each in an episode of its own.

    generators: the random generator of each world, None before it is needed. elapsed (count,): the steps of
    the environment since the reset. dtype, threads: as for `zw.Worlds`.
    """

    def __init__(
        self,
        environment: Environment,
        count: int,
        *,
        dtype: str = "float64",
        threads: int | None = None,
    ):
        self.environment = environment
        self.worlds = environment.worlds(count, dtype=dtype, threads=threads)
        self.generators: list[np.random.Generator | None] = [None] * count
        self.seeds: list[int | None] = [None] * count
        self.elapsed = np.zeros(count, int)
        found = self.worlds.observation
        self.observation, self.reward = found["observation"], found["reward"]
        self.infos: Mapping[str, np.ndarray] = {
            name.removeprefix(INFO): x for name, x in found.items() if name.startswith(INFO)
        }
        self._given_params = {name: x.copy() for name, x in self.worlds.params.items()}
        self._drawn_names: set[str] = set()
        for name in environment.reset_infos:
            if name not in self.infos:
                raise ArgumentError(f"reset_infos has {name!r}; the infos are {sorted(self.infos)}")

    def seed(self, seeds: Sequence[int | None], rows: np.ndarray) -> None:
        """Give generators of these seeds to the worlds `rows`; None keeps a present generator."""
        for k in rows:
            if seeds[k] is not None or self.generators[k] is None:
                self.generators[k], self.seeds[k] = seeding.np_random(seeds[k])

    def begin(self, rows: np.ndarray) -> None:
        """Begin new episodes in the worlds `rows`: draw parameters and initial states, with zero control."""
        if not len(rows):
            return
        worlds, environment = self.worlds, self.environment
        self.seed([None] * worlds.count, rows)
        if environment.random_parameters is not None:
            worlds.set(rows, params=self._drawn_parameters(rows, environment.random_parameters))
        worlds.control[rows] = 0
        q, v = None, None
        if environment.initial_state is not None:
            states = [environment.initial_state(self.generators[k]) for k in rows]
            q, v = (np.array(x, float) for x in zip(*states, strict=True))
        worlds.reset(rows, q, v)
        if environment.given_positions and q is not None:
            n = environment.given_positions
            self.observation[rows, :n] = q[:, q.shape[1] - n :]
        self.elapsed[rows] = 0

    def _drawn_parameters(self, rows: np.ndarray, draw: RandomParameters) -> dict[str, list[Any]]:
        """New values of the worlds `rows` for all symbols that were drawn for any episode; those of `params`
        where they are omitted.
        """
        drawn = [{str(name): x for name, x in draw(self.generators[k]).items()} for k in rows]
        self._drawn_names.update(*drawn)
        unknown = np.zeros(self.worlds.count)  # a name that `Worlds.set` refuses
        given = {name: self._given_params.get(name, unknown) for name in sorted(self._drawn_names)}
        return {
            name: [values.get(name, x[k]) for k, values in zip(rows, drawn, strict=True)]
            for name, x in given.items()
        }

    def advance(self, actions: Any) -> None:
        """Advance all worlds by one step of the environment under the actions (count, inputs)."""
        control = self.worlds.control
        if np.shape(actions) != control.shape:
            raise ShapeError(f"actions must have the shape {control.shape}; it is {np.shape(actions)}")
        self.worlds.step(actions, self.environment.frame_skip)
        self.elapsed += 1

    @property
    def terminated(self) -> np.ndarray:
        """Whether each world (count,) has reached a terminal state, or its step has failed; a copy."""
        return (self.worlds.observation["terminated"] > 0) | self.worlds.failed

    @property
    def rewards(self) -> np.ndarray:
        """The reward (count,) of the last step, 0 in worlds whose step has failed; a copy."""
        return np.where(self.worlds.failed, 0.0, self.reward)

    @property
    def failure_reasons(self) -> np.ndarray:
        """The names (count,) of the failure reasons."""
        return np.array([reason.name for reason in FAILURE_REASONS], object)[self.worlds.status]

"""The episodes of the worlds of an environment: states, random generators, and steps since the reset."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from gymnasium.utils import seeding

from zwang.errors import ArgumentError, ShapeError, SimulationError
from zwang.gym.environment import INFO, Environment, InitialState, RandomParameters
from zwang.mechanism.type_validation import short_repr
from zwang.simulation.status import FAILURE_REASONS

FAILURE, FINAL_OBSERVATION, FINAL_INFO = "failure_reason", "final_obs", "final_info"
"""The infos that environments give themselves: why a step has failed, and the last observations and infos of
finished episodes. In those of many environments each info has a mask, by "_" and its name.
"""


def check_info_names(names: Collection[str]) -> None:
    """Raises ArgumentError for an info in whose place an environment puts its own, or the mask of another."""
    own = (FAILURE, FINAL_OBSERVATION, FINAL_INFO)
    for name in names:
        masked = name.removeprefix("_")
        if name in own:
            raise ArgumentError(
                f"infos has {name!r}, which is the name of an info that environments give themselves; give "
                "it another name"
            )
        if masked != name and masked in (*own, *names):
            raise ArgumentError(
                f"infos has {name!r}, which is the name of the mask of the info {masked!r}; give it another "
                "name"
            )


class Episodes:
    """`count` worlds of an environment, each in an episode of its own.

    generators: the random generator of each world, None before it is needed. elapsed (count,): the steps of
    the environment since the reset, -1 before the first one. dtype, threads: as for `zw.Worlds`.
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
        self.elapsed = np.full(count, -1)
        self._have_begun = False
        self._given_params = {name: x.copy() for name, x in self.worlds.params.items()}
        self._drawn_names: set[str] = set()
        check_info_names(self.infos)
        given, size = environment.given_positions, self.observation.shape[1]
        if given > size:
            raise ArgumentError(
                f"given_positions is {given}, but the observation has {size} elements; it must not be larger"
            )
        for name in environment.reset_infos:
            if name not in self.infos:
                raise ArgumentError(f"reset_infos has {name!r}; the infos are {sorted(self.infos)}")

    @property
    def observation(self) -> np.ndarray:
        """The observations (count, size): the worlds' memory."""
        return self.worlds.observation["observation"]

    @property
    def infos(self) -> Mapping[str, np.ndarray]:
        """The infos (count, ...), by name: the worlds' memory."""
        found = self.worlds.observation.items()
        return {name.removeprefix(INFO): x for name, x in found if name.startswith(INFO)}

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
            q, v = self._drawn_states(rows, environment.initial_state)
        worlds.reset(rows, q, v)
        if environment.given_positions and q is not None:
            n = environment.given_positions
            self.observation[rows, :n] = q[:, q.shape[1] - n :]
        self.elapsed[rows] = 0
        self._have_begun = bool((self.elapsed >= 0).all())

    def _drawn_states(self, rows: np.ndarray, draw: InitialState) -> tuple[np.ndarray, np.ndarray]:
        """Initial states q (n, nq) and v (n, nv) of the worlds `rows`. Raises ArgumentError."""
        m, q, v = self.environment.mechanism, [], []
        for k in rows:
            found: Any = draw(self.generators[k])
            try:
                state = [np.array(x, float) for x in found]
                shapes = [x.shape for x in state]
            except (TypeError, ValueError):
                shapes = []
            if shapes != [(m.nq,), (m.nv,)]:
                raise ArgumentError(
                    f"initial_state returned {short_repr(found)}; it must return a configuration q ({m.nq},) "
                    f"and velocities v ({m.nv},)"
                )
            q.append(state[0])
            v.append(state[1])
        return np.array(q), np.array(v)

    def _drawn_parameters(self, rows: np.ndarray, draw: RandomParameters) -> dict[str, list[Any]]:
        """New values of the worlds `rows` for all symbols that were drawn for any episode; those of `params`
        where they are omitted.
        """
        found: list[Any] = [draw(self.generators[k]) for k in rows]
        for values in found:
            if not isinstance(values, Mapping):
                raise ArgumentError(
                    f"random_parameters returned {short_repr(values)}; it must return a dictionary from "
                    "symbols to numbers"
                )
        drawn = [{str(name): x for name, x in values.items()} for values in found]
        self._drawn_names.update(*drawn)
        unknown = np.zeros(self.worlds.count)  # a name that `Worlds.set` refuses
        given = {name: self._given_params.get(name, unknown) for name in sorted(self._drawn_names)}
        return {
            name: [values.get(name, x[k]) for k, values in zip(rows, drawn, strict=True)]
            for name, x in given.items()
        }

    def advance(self, actions: Any) -> None:
        """Advance all worlds by one step of the environment under the actions (count, inputs).

        Raises ShapeError, StateError, and SimulationError before the first reset of an environment.
        """
        control = self.worlds.control
        if np.shape(actions) != control.shape:
            raise ShapeError(f"actions must have the shape {control.shape}; it is {np.shape(actions)}")
        if not self._have_begun:
            waiting = np.flatnonzero(self.elapsed < 0).tolist()
            raise SimulationError(f"environments {waiting} have no episode yet: call reset() before step()")
        try:
            self.worlds.step(actions, self.environment.frame_skip)
        except KeyboardInterrupt:  # after which the worlds have all advanced, or none of them
            self.elapsed += self.worlds.time > (self.elapsed + 0.5) * self.environment.dt
            raise
        self.elapsed += 1

    @property
    def terminated(self) -> np.ndarray:
        """Whether each world (count,) has reached a terminal state, or its step has failed; a copy."""
        return (self.worlds.observation["terminated"] > 0) | self.worlds.failed

    @property
    def rewards(self) -> np.ndarray:
        """The reward (count,) of the last step, 0 in worlds whose step has failed; a copy."""
        return np.where(self.worlds.failed, 0.0, self.worlds.observation["reward"])

    @property
    def failure_reasons(self) -> np.ndarray:
        """The names (count,) of the failure reasons."""
        return np.array([reason.name for reason in FAILURE_REASONS], object)[self.worlds.status]

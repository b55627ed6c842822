"""A vectorised Gymnasium environment on the worlds of one mechanism."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.vector import AutoresetMode
from gymnasium.vector.utils import batch_space

from zwang.api.batch.world_arguments import checked_seed, whole_number
from zwang.api.batch.world_view import WorldView
from zwang.api.batch.worlds import Worlds
from zwang.errors import ArgumentError, ShapeError, SimulationError, did_you_mean
from zwang.gym.environment import Environment
from zwang.gym.episodes import FAILURE, FINAL_INFO, FINAL_OBSERVATION, Episodes
from zwang.gym.rendering import SIZE, VECTOR_MODES, Rendering
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr

Infos = dict[str, Any]


class VectorEnv(gymnasium.vector.VectorEnv):
    """`num_envs` environments on a mechanism, whose step is one call of compiled code.

    mechanism: a mechanism, or an `Environment`, which has the next three arguments. observation, reward,
    terminated: functions of a `WorldView`, as for `Environment`, whose other fields may be given as keywords:
    infos, reset_infos, initial_state, random_parameters, params, commands, frame_skip, step, integrator.
    num_envs: number of environments. max_episode_steps: the steps after which an episode is truncated; None
    for no limit. autoreset_mode: "NextStep" (default), "SameStep" or "Disabled", or a member of Gymnasium's
    `AutoresetMode`. dtype: "float64" (default) or "float32", also of the observations. threads: as for
    `zw.Worlds`. copy: whether observations are copies; otherwise they are memory that the next step
    overwrites. render_mode: "rgb_array" for pictures by `render`, of `width` and `height` in pixels.

    Actions are controls (num_envs, inputs). Each environment has a random generator; the seed of number k is
    `seed + k`, as in Gymnasium's `SyncVectorEnv`, and its infos have the same form. An environment whose step
    fails is terminated with the reward 0 and the observation of its last valid state, and the info
    "failure_reason" names the reason. `worlds` is the `zw.Worlds`.

    Raises ArgumentError, ShapeError, and the errors of `zw.Worlds`.
    """

    single_observation_space: spaces.Box
    single_action_space: spaces.Box

    def __init__(
        self,
        mechanism: Mechanism | Environment,
        observation: Callable[[WorldView], Any] | None = None,
        reward: Callable[[WorldView], Any] | None = None,
        terminated: Callable[[WorldView], Any] | None = None,
        *,
        num_envs: int = 1,
        max_episode_steps: int | None = None,
        autoreset_mode: str | AutoresetMode = AutoresetMode.NEXT_STEP,
        dtype: str = "float64",
        threads: int | None = None,
        copy: bool = True,
        render_mode: str | None = None,
        width: int = SIZE,
        height: int = SIZE,
        **fields: Any,
    ):
        self.closed = True  # until all arguments are valid: Gymnasium closes what it collects
        self.environment = environment_of(mechanism, observation, reward, terminated, fields)
        self.max_episode_steps = _step_limit(max_episode_steps)
        self.autoreset_mode = _autoreset_mode(autoreset_mode)
        if not isinstance(copy, bool | np.bool_):
            raise ArgumentError(f"copy is {short_repr(copy)}; it must be True or False")
        self.copy, self.num_envs = copy, whole_number(num_envs, "num_envs")
        self._episodes = Episodes(self.environment, self.num_envs, dtype=dtype, threads=threads)
        self.single_action_space = self.environment.action_space
        self.single_observation_space = observation_space(self._episodes)
        self.action_space = batch_space(self.single_action_space, num_envs)
        self.observation_space = batch_space(self.single_observation_space, num_envs)
        self.render_mode = render_mode
        self._rendering = Rendering(
            render_mode, VECTOR_MODES, self.worlds, self.environment.dt, (width, height)
        )
        self.metadata = self._rendering.metadata | {"autoreset_mode": self.autoreset_mode}
        self._finished = np.zeros(num_envs, bool)
        self.closed = False

    @property
    def worlds(self) -> Worlds:
        """The worlds of the environments."""
        return self._episodes.worlds

    @property
    def dt(self) -> float:
        """The duration of a step of the environments [s]: `frame_skip` times the step of the simulation."""
        return self.environment.dt

    @property
    def np_random(self) -> tuple[np.random.Generator, ...]:  # type: ignore[override]
        """The random generators of the environments."""
        self._episodes.seed([None] * self.num_envs, np.arange(self.num_envs))
        return tuple(x for x in self._episodes.generators if x is not None)

    @property
    def np_random_seed(self) -> tuple[int | None, ...]:  # type: ignore[override]
        """The seeds of the random generators."""
        self._episodes.seed([None] * self.num_envs, np.arange(self.num_envs))
        return tuple(self._episodes.seeds)

    def reset(
        self,
        *,
        seed: int | Sequence[int | None] | None = None,
        options: dict[str, Any] | None = None,
    ) -> tuple[np.ndarray, Infos]:
        """The observations (num_envs, size) and infos at the beginning of new episodes.

        seed: an integer, for environment k the seed `seed + k`; or one for each; None continues the
        generators. options: {"reset_mask": truth values (num_envs,)} resets these environments only. Raises
        ArgumentError and ShapeError.
        """
        chosen = self._reset_mask(options)
        rows = np.flatnonzero(chosen)
        self._episodes.seed(self._seeds(seed), rows)
        self._episodes.begin(rows)
        self._finished[rows] = False
        return self._observations(), self._infos(np.zeros(self.num_envs, bool), chosen)

    def step(self, actions: npt.ArrayLike) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray, Infos]:
        """The observations (num_envs, size), rewards, terminations and truncations (num_envs,), and infos
        after one step.

        actions: (num_envs, inputs), held for `frame_skip` steps. Raises ShapeError, StateError, and
        SimulationError before the first reset, and if autoreset is disabled and a finished environment has
        not been reset.
        """
        episodes, begins = self._episodes, self._finished
        if self.autoreset_mode is AutoresetMode.DISABLED and begins.any():
            raise SimulationError(
                f"environments {np.flatnonzero(begins).tolist()} have finished, and autoreset is disabled: "
                'call reset(options={"reset_mask": ...}) first'
            )
        episodes.advance(actions)
        # environments that finished in the step before begin new episodes, and ignore their actions
        running = ~begins
        terminated, rewards = episodes.terminated & running, np.where(running, episodes.rewards, 0.0)
        episodes.begin(np.flatnonzero(begins))
        limit = self.max_episode_steps
        truncated = np.zeros(self.num_envs, bool) if limit is None else (episodes.elapsed >= limit) & running
        finished = terminated | truncated
        if self.autoreset_mode is AutoresetMode.SAME_STEP and finished.any():
            infos = self._begun_infos(finished)
        else:
            infos, self._finished = self._infos(running, begins), finished
        return self._observations(), rewards, terminated, truncated, infos

    def render(self) -> tuple[np.ndarray, ...]:  # type: ignore[override]
        """The pictures (height, width, 3) of all environments: red, green, blue, from 0 to 255.

        Raises SimulationError without render_mode="rgb_array".
        """
        return tuple(self._rendering.picture(k) for k in range(self.num_envs))

    def close_extras(self, **kwargs: Any) -> None:
        """Free what rendering uses."""
        self._rendering.close()

    def __repr__(self) -> str:
        return f"VectorEnv({self.environment.mechanism.name!r}, num_envs={self.num_envs})"

    def _observations(self) -> np.ndarray:
        found = self._episodes.observation
        return found.copy() if self.copy else found

    def _begun_infos(self, finished: np.ndarray) -> Infos:
        """The infos of a step, after the `finished` environments have begun new episodes."""
        everywhere, nowhere = np.ones(self.num_envs, bool), np.zeros(self.num_envs, bool)
        last = np.full(self.num_envs, None, object)
        for k in np.flatnonzero(finished):
            last[k] = self._episodes.observation[k].copy()
        final = self._infos(finished, nowhere)
        self._episodes.begin(np.flatnonzero(finished))
        infos: Infos = {FINAL_OBSERVATION: last, FINAL_INFO: final}
        infos |= {"_" + name: finished for name in (FINAL_OBSERVATION, FINAL_INFO)}
        return infos | self._infos(everywhere & ~finished, finished)

    def _infos(self, stepped: np.ndarray, begun: np.ndarray) -> Infos:
        """The infos of environments that have stepped and of others that have begun an episode, in the form
        of Gymnasium: an array by name, and a mask by "_" and the name.
        """
        infos: Infos = {}
        for name, values in self._episodes.infos.items():
            mask = stepped | begun if name in self.environment.reset_infos else stepped
            if mask.any():
                infos[name] = np.where(mask.reshape(-1, *[1] * (values.ndim - 1)), values, 0.0)
                infos["_" + name] = mask.copy()
        failed = self.worlds.failed & stepped
        if failed.any():
            reasons = self._episodes.failure_reasons
            reasons[~failed] = None
            infos[FAILURE] = reasons
            infos["_" + FAILURE] = failed
        return infos

    def _seeds(self, seed: Any) -> list[int | None]:
        given = seed.tolist() if isinstance(seed, np.ndarray) else seed
        if isinstance(given, str) or not isinstance(given, Iterable):
            first = checked_seed(given)
            return [None if first is None else first + k for k in range(self.num_envs)]
        seeds = [checked_seed(x) for x in given]
        if len(seeds) != self.num_envs:
            raise ShapeError(f"seed must be an integer or {self.num_envs} integers; it has {len(seeds)}")
        return seeds

    def _reset_mask(self, options: Mapping[str, Any] | None) -> np.ndarray:
        if options is not None and not isinstance(options, Mapping):
            raise ArgumentError(
                f'options is {short_repr(options)}; it must be a dictionary, such as {{"reset_mask": mask}}'
            )
        if options is None or "reset_mask" not in options:
            return np.ones(self.num_envs, bool)
        try:
            mask = np.asarray(options["reset_mask"])
        except (TypeError, ValueError):  # rows of different lengths, and what is no array
            mask = np.full(1, np.nan)
        if mask.dtype != bool or mask.shape != (self.num_envs,) or not mask.any():
            raise ArgumentError(
                f"options['reset_mask'] must be truth values of the shape ({self.num_envs},), at least one "
                f"of them True; it has the shape {mask.shape} and the type {mask.dtype}"
            )
        return mask


def environment_of(
    mechanism: Mechanism | Environment, observation: Any, reward: Any, terminated: Any, fields: Infos
) -> Environment:
    """The environment of the arguments of `VectorEnv`. Raises ArgumentError."""
    given = {"observation": observation, "reward": reward, "terminated": terminated} | fields
    if isinstance(mechanism, Environment):
        extra = [name for name, value in given.items() if value is not None]
        if extra:
            raise ArgumentError(f"an Environment was given, which has these already: {', '.join(extra)}")
        return mechanism
    allowed = [each.name for each in dataclasses.fields(Environment) if each.init]
    for name in fields:
        if name not in allowed:
            question = did_you_mean(name, allowed)
            raise ArgumentError(
                f"there is no argument {name!r}.{' ' * bool(question)}{question} The fields of an "
                f"Environment are {', '.join(allowed)}"
            )
    return Environment(mechanism, **given)


def observation_space(episodes: Episodes) -> spaces.Box:
    """The space of one observation: all numbers of the type of the worlds."""
    found = episodes.observation
    return spaces.Box(-np.inf, np.inf, found.shape[1:], found.dtype.type)


def _autoreset_mode(mode: str | AutoresetMode) -> AutoresetMode:
    try:
        return AutoresetMode(mode)
    except (TypeError, ValueError):
        modes = [mode.value for mode in AutoresetMode]
        raise ArgumentError(f"autoreset_mode is {mode!r}; it must be one of {modes}") from None


def _step_limit(limit: Any) -> int | None:
    if limit is None:
        return None
    if isinstance(limit, int | np.integer) and not isinstance(limit, bool) and limit >= 1:
        return int(limit)
    raise ArgumentError(f"max_episode_steps is {limit!r}; it must be a whole number, at least 1, or None")

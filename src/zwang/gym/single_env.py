"""A single Gymnasium environment on a mechanism."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np
import numpy.typing as npt

from zwang.api.batch.world_arguments import checked_seed
from zwang.api.batch.world_view import WorldView
from zwang.api.batch.worlds import Worlds
from zwang.gym.environment import Environment
from zwang.gym.episodes import FAILURE, Episodes
from zwang.gym.rendering import ENV_MODES, SIZE, Rendering
from zwang.gym.vector_env import environment_of, observation_space
from zwang.mechanism.mechanism import Mechanism


class Env(gymnasium.Env):
    """An environment on a mechanism; the arguments are those of `VectorEnv`.

    Episodes are not truncated: `gymnasium.make` adds the `TimeLimit`. A step that fails terminates the
    episode, as in `VectorEnv`. `worlds` is the `zw.Worlds`, with one world. render_mode: "rgb_array" for
    pictures by `render`, of `width` and `height` in pixels; "human" shows each step in real time on a page in
    the browser, which needs the extra `view`.
    """

    def __init__(
        self,
        mechanism: Mechanism | Environment,
        observation: Callable[[WorldView], Any] | None = None,
        reward: Callable[[WorldView], Any] | None = None,
        terminated: Callable[[WorldView], Any] | None = None,
        *,
        dtype: str = "float64",
        render_mode: str | None = None,
        width: int = SIZE,
        height: int = SIZE,
        **fields: Any,
    ):
        self.environment = environment_of(mechanism, observation, reward, terminated, fields)
        self._episodes = Episodes(self.environment, 1, dtype=dtype, threads=1)
        self.action_space = self.environment.action_space
        self.observation_space = observation_space(self._episodes)
        self.render_mode = render_mode
        self._rendering = Rendering(render_mode, ENV_MODES, self.worlds, self.environment.dt, (width, height))
        self.metadata = self._rendering.metadata

    @property
    def worlds(self) -> Worlds:
        """The world of the environment."""
        return self._episodes.worlds

    @property
    def dt(self) -> float:
        """The duration of a step of the environment [s]: `frame_skip` times the step of the simulation."""
        return self.environment.dt

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[np.ndarray, dict[str, Any]]:
        """The observation (size,) and the infos at the beginning of a new episode.

        seed: an integer, or None to continue the generator. options: none are used. Raises ArgumentError.
        """
        super().reset(seed=checked_seed(seed))
        self._episodes.generators[0] = self.np_random
        self._episodes.begin(np.zeros(1, int))
        self._show()
        return self._episodes.observation[0].copy(), self._infos(self.environment.reset_infos)

    def step(self, action: npt.ArrayLike) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """The observation (size,), reward, termination, truncation (False) and infos after one step.

        action: (inputs,), held for `frame_skip` steps. Raises ShapeError, StateError, and SimulationError
        before the first reset.
        """
        episodes = self._episodes
        episodes.advance(np.asarray(action)[None])
        infos = self._infos(tuple(episodes.infos))
        if self.worlds.failed[0]:
            infos[FAILURE] = episodes.failure_reasons[0]
        terminated = bool(episodes.terminated[0])
        self._show()
        return episodes.observation[0].copy(), float(episodes.rewards[0]), terminated, False, infos

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """The picture (height, width, 3), red, green, blue, from 0 to 255; None with render_mode="human",
        whose page is brought up to date by each step.

        Raises SimulationError without a render mode.
        """
        return None if self.render_mode == "human" else self._rendering.picture(0)

    def close(self) -> None:
        """Close the page of render_mode="human"."""
        self._rendering.close()

    def _show(self) -> None:
        if self.render_mode == "human":
            self._rendering.show(0)

    def _infos(self, names: tuple[str, ...]) -> dict[str, Any]:
        found = self._episodes.infos
        return {name: x[0].copy() if (x := found[name]).ndim > 1 else float(x[0]) for name in names}

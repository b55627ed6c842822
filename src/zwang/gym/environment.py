"""The description of an environment: a mechanism with observation, reward, termination, initial state."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Hashable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from gymnasium import spaces

from zwang.api.arguments.validation import checked_mechanism
from zwang.api.batch.world_arguments import whole_number
from zwang.api.batch.world_view import WorldView
from zwang.api.batch.worlds import Worlds
from zwang.errors import ArgumentError
from zwang.mechanism.force_elements import Actuator, Motor
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr
from zwang.scalar import are_constant, is_scalar
from zwang.simulation.controls import control_names

InitialState = Callable[[np.random.Generator], tuple[npt.ArrayLike, npt.ArrayLike]]
RandomParameters = Callable[[np.random.Generator], Mapping[Any, float]]

INFO = "info "
"""The prefix of the names of infos in the values of `Environment.observe`."""


@dataclass(frozen=True, eq=False)
class Environment:
    """A mechanism with what a learning algorithm sees of it; `VectorEnv` and `Env` run it.

    observation, reward, terminated, infos: functions of a `WorldView` after an environment step, written with
    the functions of `zwang.scalar`, without random numbers or a state of their own; they are compiled into
    the step. They return an array or a list of numbers and arrays, a number, a truth value, and a dictionary
    from names to numbers or arrays. By default nothing terminates and there are no infos. Environments add
    the infos "failure_reason", "final_obs" and "final_info", and to each info a mask, by "_" and its name.
    reset_infos: the names of the infos that a reset returns too.
    initial_state: a function of a `numpy.random.Generator` that returns q (nq,) and v (nv,) at the beginning
    of an episode; by default the home configuration at rest.
    random_parameters: a function of a generator that returns values of symbols of the mechanism, drawn at the
    beginning of each episode: domain randomisation. Symbols that it omits have the values of `params`.
    commands: numbers or arrays by name that these functions read by `command` and an algorithm writes to
    `worlds.commands`, as for `zw.Worlds`.
    frame_skip: steps of the simulation in one step of the environment. step [s], integrator: as for
    `zw.Worlds`.
    given_positions: the number of leading elements of the observation that are the last coordinates of q;
    after a reset they are those of `initial_state`, before quaternions are normalised.

    Raises ArgumentError for an argument of a wrong type.
    """

    mechanism: Mechanism
    observation: Callable[[WorldView], Any]
    reward: Callable[[WorldView], Any]
    terminated: Callable[[WorldView], Any] | None = None
    infos: Callable[[WorldView], Mapping[str, Any]] | None = None
    reset_infos: tuple[str, ...] = ()
    initial_state: InitialState | None = None
    random_parameters: RandomParameters | None = None
    params: Mapping[Any, npt.ArrayLike] | None = None
    commands: Mapping[str, npt.ArrayLike] | None = None
    frame_skip: int = 1
    step: float | None = None
    integrator: str | None = None
    given_positions: int = 0
    _compiled: dict[Any, Worlds] = field(default_factory=dict, init=False, repr=False)

    def __post_init__(self) -> None:
        for name in ("observation", "reward"):
            _check_callable(name, getattr(self, name))
        for name in ("terminated", "infos", "initial_state", "random_parameters"):
            if getattr(self, name) is not None:
                _check_callable(name, getattr(self, name))
        skip = whole_number(self.frame_skip, "frame_skip", "a whole number of steps")
        positions = whole_number(self.given_positions, "given_positions", "a number of coordinates", least=0)
        if positions > (nq := checked_mechanism(self.mechanism).nq):
            raise ArgumentError(f"given_positions is {positions}; it must be at most nq = {nq}")
        names: Any = self.reset_infos
        if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
            raise ArgumentError(
                f"reset_infos is {short_repr(names)}; it must be a tuple of the names of infos, such as "
                '("mass",)'
            )
        values = {"frame_skip": skip, "given_positions": positions, "reset_infos": tuple(names)}
        for name, value in values.items():
            object.__setattr__(self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        """All fields but the compiled worlds, which refer to this object."""
        return self.__dict__ | {"_compiled": {}}

    @property
    def dt(self) -> float:
        """The duration of a step of the environment [s]."""
        return self.frame_skip * (self.mechanism.options.timestep if self.step is None else self.step)

    def observe(self, s: WorldView) -> dict[str, Any]:
        """The values of one world that the compiled step returns, by name."""
        values = {
            "observation": _flat(self.observation(s)),
            "reward": _number("reward", self.reward(s)),
            "terminated": False if self.terminated is None else _number("terminated", self.terminated(s)),
        }
        infos: Any = {} if self.infos is None else self.infos(s)
        if not isinstance(infos, Mapping) or not all(isinstance(name, str) for name in infos):
            raise ArgumentError(
                f"infos returned {short_repr(infos)}; it must return a dictionary from names to "
                "numbers or arrays"
            )
        return values | {INFO + name: value for name, value in infos.items()}

    def worlds(self, count: int, *, dtype: str = "float64", threads: int | None = None) -> Worlds:
        """`count` worlds that observe these quantities; the programs are compiled once and kept.

        Raises the errors of `zw.Worlds`.
        """
        if not isinstance(threads, Hashable) or not isinstance(dtype, Hashable):
            raise ArgumentError(
                f"threads is {short_repr(threads)} and dtype {short_repr(dtype)}; give an integer, and "
                '"float64" or "float32"'
            )
        first = self._compiled.get((dtype, threads))
        if first is not None:
            return first.with_count(count, params=self.params)
        made = Worlds(
            self.mechanism,
            count,
            step=self.step,
            integrator=self.integrator,
            dtype=dtype,
            threads=threads,
            params=self.params,
            observe=self.observe,
            commands=self.commands,
        )
        self._compiled[dtype, threads] = made
        return made

    @property
    def action_space(self) -> spaces.Box:
        """The space of one action: the control ranges of the inputs in single precision, as Gymnasium has it;
        without inputs all generalised forces. Bounds that may differ between worlds or episodes, by symbols
        that are arrays in `params`, or by any symbols beside `random_parameters`, are infinite; the
        simulation limits the controls.
        """
        given: Mapping[Any, Any] = {} if self.random_parameters else self.params or {}
        m = self.mechanism.subs({name: float(x) for name, x in given.items() if np.ndim(x) == 0})
        ranges = {f.name: f.control_range for f in m.forces if isinstance(f, Motor | Actuator)}
        names = control_names(m)
        bounds = np.array([ranges.get(name) or (-np.inf, np.inf) for name in names]).reshape(len(names), 2)
        low, high = (
            np.array([x if are_constant(x) else unbounded for x in column], dtype=np.float32)
            for column, unbounded in zip(bounds.T, (-np.inf, np.inf), strict=True)
        )
        return spaces.Box(low=low, high=high, dtype=np.float32)


def _flat(found: Any) -> np.ndarray:
    """The numbers of an observation, or of the arrays in a list, one after the other.

    Raises ArgumentError for anything else.
    """
    parts = found if isinstance(found, list | tuple) else [found]
    numbers = np.concatenate([np.zeros(0, object), *(np.ravel(np.array(x, dtype=object)) for x in parts)])
    for x in numbers:
        if not is_scalar(x):
            raise ArgumentError(
                f"observation returned values of the type {type(x).__name__}; it must return an array of "
                "numbers, or a list of numbers and arrays, such as the values of a dictionary"
            )
    return numbers


def _number(what: str, found: Any) -> Any:
    """A number or truth value that a function returned, alone or in an array. Raises ArgumentError."""
    values = np.array(found, dtype=object)
    if values.size != 1:
        raise ArgumentError(f"{what} returned values of the shape {values.shape}; it must return one number")
    number = values.reshape(1)[0]
    if not is_scalar(number):
        raise ArgumentError(f"{what} returned a {type(number).__name__}; it must return one number")
    return number


def _check_callable(name: str, value: Any) -> None:
    """Raises ArgumentError for an object that cannot be called with one argument."""
    if not callable(value):
        raise ArgumentError(f"{name} is {short_repr(value)}; it must be a function")
    try:
        inspect.signature(value).bind(None)
    except TypeError as error:
        what = "a generator" if name in ("initial_state", "random_parameters") else "a WorldView"
        raise ArgumentError(f"{name} must be a function of one argument, {what}: {error}") from None
    except ValueError:  # a function whose signature is unknown
        pass

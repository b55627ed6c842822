"""The observation of a world as part of its compiled step, and alone."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

import numpy as np

from zwang.api.world_view import WorldView, observed_values
from zwang.compiler.frontend.trace import trace
from zwang.errors import ArgumentError
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import cond, less
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names

Observation = Callable[[WorldView], Mapping[str, Any]]

STAGE = "stage"
"""The input and output of a step for the `Stage` of its last state derivative."""


class _LastStageAsked(Exception):
    """An observation asks for the last stage."""


class ObservedStep(NamedTuple):
    """An observation as functions of arrays, to be traced.

    h: step size [s]. names: of the parameters. layout: the shape of each value, by name, which is entered
    when `of_state` is traced.
    """

    mechanism: Mechanism
    h: float
    names: tuple[str, ...]
    observe: Observation
    layout: dict[str, tuple[int, ...]]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the arguments of `of_state`."""
        m = self.mechanism
        sizes = {"clock": 1, "q": m.nq, "v": m.nv, "z": len(activations(m)), "u": len(control_names(m))}
        return sizes | {f"parameter {name}": 1 for name in self.names}

    def of_state(self, clock: Any, q: Any, v: Any, z: Any, u: Any, *params: Any) -> dict[str, np.ndarray]:
        """The observation of a state after a reset, which is also the one before."""
        m, by_name = self._substituted(params)
        view = WorldView(m, (clock[0] * self.h, q, v, z, u), by_name, self.h)
        values = observed_values(self.observe(view))
        self.layout.update({name: x.shape for name, x in values.items()})
        return {f"observation {name}": np.ravel(x) for name, x in values.items()}

    def asks_for_last_stage(self) -> bool:
        """Whether the observation of a state after a step asks for the last stage."""

        def asked() -> WorldView:
            raise _LastStageAsked

        def function(clock: Any, q: Any, v: Any, z: Any, u: Any, *params: Any) -> dict[str, np.ndarray]:
            m, by_name = self._substituted(params)
            state = (clock[0] * self.h, q, v, z, u)
            before = WorldView(m, state, by_name, self.h, last_stage=asked)
            return observed_values(self.observe(WorldView(m, state, by_name, self.h, before, asked)))

        try:
            trace(function, self.sizes)
        except _LastStageAsked:
            return True
        return False

    def after(
        self, step: Callable[..., Any], sizes: dict[str, int]
    ) -> tuple[Callable[..., Any], dict[str, int]]:
        """A step with the observation of its result, evaluated where the input "last step" is 1."""
        names = tuple(sizes)

        def function(*arrays: Any, **carried: Any) -> dict[str, Any]:
            *state, q0, v0, stage0, last = arrays
            given = dict(zip(names, state, strict=True))
            done = dict(step(*state, **carried))
            params = [given[f"parameter {name}"] for name in self.names]

            def values() -> list[Any]:
                found = self._values(given["u"], params, done, {"q": q0, "v": v0, STAGE: stage0})
                self._check_layout(found)
                return [x for array in found.values() for x in array.flat]

            zeros = [0.0] * sum(map(array_size, self.layout.values()))
            numbers, start = cond(less(0.5, last[0]), values, lambda: zeros), 0
            for name, shape in self.layout.items():
                done[f"observation {name}"] = np.array(numbers[start : start + array_size(shape)])
                start += array_size(shape)
            return done

        m = self.mechanism
        before = {"q before": m.nq, "v before": m.nv, "stage before": sizes.get(STAGE, 0)}
        return function, {**sizes, **before, "last step": 1}

    def _values(
        self, u: Any, params: Any, done: Mapping[str, Any], before: Mapping[str, Any]
    ) -> dict[str, np.ndarray]:
        """The observation after a step with the results `done`."""
        m, by_name = self._substituted(params)
        t, z = done["clock"][0] * self.h, done["z"]

        def stage_of(arrays: Mapping[str, Any]) -> WorldView:
            stage = arrays[STAGE]
            ends = np.cumsum([m.nq, m.nv, len(activations(m))])
            q, v, z, a = np.split(stage[1:], ends)
            return WorldView(m, (stage[0], q, v, z, u), by_name, self.h, known_acceleration=a)

        earlier = (t, before["q"], before["v"], z, u)
        first = WorldView(m, earlier, by_name, self.h, last_stage=_once(stage_of, before))
        state = (t, done["q"], done["v"], z, u)
        return observed_values(
            self.observe(WorldView(m, state, by_name, self.h, first, _once(stage_of, done)))
        )

    def _check_layout(self, found: Mapping[str, np.ndarray]) -> None:
        """Raises ArgumentError if the observation after a step has other names or shapes than after a
        reset.
        """
        layout = {name: x.shape for name, x in found.items()}
        if list(layout.items()) != list(self.layout.items()):
            raise ArgumentError(
                f"observe returned the shapes {layout} after a step and {self.layout} after a reset; they "
                "must be the same, in the same order"
            )

    def _substituted(self, params: Any) -> tuple[Mechanism, dict[str, Any]]:
        """The mechanism with the values of its symbols, and these by name."""
        by_name = {name: x[0] for name, x in zip(self.names, params, strict=True)}
        return self.mechanism.subs(by_name) if by_name else self.mechanism, by_name


def array_size(shape: tuple[int, ...]) -> int:
    """The number of elements of an array of this shape."""
    return int(np.prod(shape, dtype=int))


def _once(function: Callable[[Mapping[str, Any]], WorldView], argument: Mapping[str, Any]) -> Any:
    """A function without arguments that returns the same view at every call."""
    found: list[WorldView] = []

    def view() -> WorldView:
        if not found:
            found.append(function(argument))
        return found[0]

    return view

"""The observation of a world after a step and after a reset, as functions that are compiled."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.api.batch.world_view import WorldView, observed_values
from zwang.compiler.frontend.trace import trace
from zwang.constraint.context import StepForm
from zwang.errors import ArgumentError
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activations
from zwang.simulation.clock import clock_time
from zwang.simulation.constraint_options import is_constrained
from zwang.simulation.controls import control_names

Observation = Callable[[WorldView], Mapping[str, Any]]

OBSERVED = "observation "
"""The prefix of the names of observed values among the outputs of a program."""
STAGE = "stage"
"""The input and output of a step for the `Stage` of its last state derivative, with its control."""


class _LastStageAsked(Exception):
    """An observation asks for the last stage."""


class ObservedState(NamedTuple):
    """An observation as functions of arrays, to be traced.

    step: how steps close hard constraints. names: of the parameters. clock: the numbers of the clock.
    commands: the shape of each command, by name. layout: the shape of each value, by name, which is entered
    when `of_state` is traced.
    """

    mechanism: Mechanism
    step: StepForm
    names: tuple[str, ...]
    clock: int
    observe: Observation
    commands: Mapping[str, tuple[int, ...]]
    layout: dict[str, tuple[int, ...]]

    @property
    def sizes(self) -> dict[str, int]:
        """The sizes of the arguments of `of_state`."""
        commands = {f"command {name}": array_size(shape) for name, shape in self.commands.items()}
        return state_sizes(self.mechanism, self.names, self.clock) | commands

    def of_state(self, clock: Any, q: Any, v: Any, z: Any, u: Any, *given: Any) -> dict[str, np.ndarray]:
        """The observation of a state after a reset, which is also the one before."""
        m, named = self._substituted(given)
        view = self._view(m, (clock_time(clock, self.step.size), q, v, z, u), **named)
        values = observed_values(self.observe(view))
        self.layout.update({name: x.shape for name, x in values.items()})
        return {OBSERVED + name: np.ravel(x) for name, x in values.items()}

    def asks_for_last_stage(self) -> bool:
        """Whether the observation of a state after a step asks for the last stage."""

        def asked() -> WorldView:
            raise _LastStageAsked

        def function(clock: Any, q: Any, v: Any, z: Any, u: Any, *given: Any) -> dict[str, np.ndarray]:
            m, named = self._substituted(given)
            state = (clock_time(clock, self.step.size), q, v, z, u)
            before = self._view(m, state, last_stage=asked, **named)
            view = self._view(m, state, before=before, last_stage=asked, **named)
            return observed_values(self.observe(view))

        try:
            trace(function, self.sizes)
        except _LastStageAsked:
            return True
        return False

    def sizes_after_step(self, with_stage: bool) -> dict[str, int]:
        """The sizes of the arguments of `after_step`. with_stage: whether it asks for the last stage."""
        m = self.mechanism
        accelerations = m.nv if is_constrained(m) else 0
        nz = len(activations(m))
        stage = 1 + m.nq + m.nv + nz + len(control_names(m)) + accelerations if with_stage else 0
        before = {"clock before": self.clock, "q before": m.nq, "v before": m.nv, "z before": nz}
        return self.sizes | before | {STAGE: stage, "stage before": stage}

    def after_step(self, clock: Any, q: Any, v: Any, z: Any, u: Any, *others: Any) -> dict[str, np.ndarray]:
        """The observation of a state after a step. others: the parameters and commands, the clock, q, v
        and z before the step, and the last stages of this and of the step before.
        """
        *given, clock0, q0, v0, z0, stage, stage0 = others
        m, named = self._substituted(given)
        t, t0 = (clock_time(x, self.step.size) for x in (clock, clock0))

        def stage_of(array: Any) -> WorldView:
            ends = np.cumsum([m.nq, m.nv, len(activations(m)), len(control_names(m))])
            q, v, z, u, a = np.split(array[1:], ends)
            return self._view(m, (array[0], q, v, z, u), known_acceleration=a, **named)

        last, last0 = _once(stage_of, stage), _once(stage_of, stage0)
        before = self._view(m, (t0, q0, v0, z0, u), last_stage=last0, **named)
        view = self._view(m, (t, q, v, z, u), before=before, last_stage=last, **named)
        values = observed_values(self.observe(view))
        self._check_layout(values)
        return {OBSERVED + name: np.ravel(x) for name, x in values.items()}

    def _view(self, m: Mechanism, state: tuple[Any, Any, Any, Any, Any], **others: Any) -> WorldView:
        """A state of the mechanism, as the observation sees it."""
        return WorldView(m, state, step=self.step, **others)

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

    def _substituted(self, given: Sequence[Any]) -> tuple[Mechanism, dict[str, Any]]:
        """The mechanism with the values of its symbols, and the arguments `params` and `commands` of a view;
        given: the arrays of the parameters and of the commands.
        """
        count = len(self.names)
        m, params = substituted(self.mechanism, self.names, given[:count])
        shapes = self.commands.items()
        values = zip(shapes, given[count:], strict=True)
        commands = {name: x.reshape(shape) if shape else x[0] for (name, shape), x in values}
        return m, {"params": params, "commands": commands}


def state_sizes(m: Mechanism, names: Sequence[str], clock: int) -> dict[str, int]:
    """The sizes of the arrays of a world's state, control and parameters; clock: that of the clock."""
    sizes = {"clock": clock, "q": m.nq, "v": m.nv, "z": len(activations(m)), "u": len(control_names(m))}
    return sizes | {f"parameter {name}": 1 for name in names}


def substituted(m: Mechanism, names: Sequence[str], params: Any) -> tuple[Mechanism, dict[str, Any]]:
    """The mechanism with the values of its symbols, arrays (1,), and these values by name."""
    by_name = {name: x[0] for name, x in zip(names, params, strict=True)}
    return m.subs(by_name) if by_name else m, by_name


def array_size(shape: tuple[int, ...]) -> int:
    """The number of elements of an array of this shape."""
    return int(np.prod(shape, dtype=int))


def _once(function: Callable[[Any], WorldView], argument: Any) -> Callable[[], WorldView]:
    """A function without arguments that returns the same view at every call."""
    found: list[WorldView] = []

    def view() -> WorldView:
        if not found:
            found.append(function(argument))
        return found[0]

    return view

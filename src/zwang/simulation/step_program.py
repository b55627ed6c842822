"""The program of one step of one world, as a function of arrays that is evaluated on floats or compiled.

`StepProgram` is the step of a simulation: a world that fails keeps its last valid state and its failure
reason. `state_after_step` is the step of a compiled mechanism: the state of a world that fails is NaN.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from zwang.errors import SimulationError
from zwang.integrator.fixed_step import State
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import (
    MutableArray,
    absolute,
    cond,
    equal,
    less,
    logical_and,
    logical_not,
    value_is_constant,
    where,
    zeros,
)
from zwang.simulation.controls import ControlFunction
from zwang.simulation.settings import CoordinateReduction
from zwang.simulation.solver_status import advanced_monitor
from zwang.simulation.status import INVALID_CONTROL, NONE, OUT_OF_BOUNDS, status_if, worst_status
from zwang.simulation.step import Stage, StepResult, StepSettings, state_derivative, step, step_settings
from zwang.simulation.step_outputs import step_outputs

BOUND = 1e10  # MuJoCo's mjMAXVAL: larger coordinates and velocities are a failure


class CarriedState(Protocol):
    """Numbers that a program carries from one step to the next: the row statuses of the warm start."""

    size: int

    def warm_start(self, size: int) -> MutableArray:
        """`size` numbers, as the previous step kept them; zeros in the first step."""
        ...

    def keep(self, numbers: MutableArray) -> None:
        """Keep the numbers for the next step."""
        ...


@dataclass(frozen=True)
class StepProgram:
    """One step of one world as a function of arrays: clock (1,), cause (1,), q, v, z, u, and one for each
    parameter.

    It returns clock, cause, q, v and z at the end of the step. The clock counts the steps of a world; the
    cause is its status. `solver`, if it is given, is the monitor (3,) of the solver's status (see
    `simulation.solver_status`), and is returned too. `stage`, if it is given, is the array of the
    `Stage` of the last state derivative, and is returned too. With a `controller` the control u
    is computed by it at the beginning of the step, and not read.

    Raises SimulationError for a `stage` of steps that are divided at impacts or stops of sliding.
    """

    mechanism: Mechanism
    h: float
    integrator: str
    controller: ControlFunction | None = None
    stabilization: str = "projection"
    coordinate_reduction: CoordinateReduction = False

    def __call__(
        self,
        clock: Any,
        cause: Any,
        q: Any,
        v: Any,
        z: Any,
        u: Any,
        params: Mapping[str, Any] | None = None,
        carried: CarriedState | None = None,
        solver: Any = None,
        stage: Any = None,
    ) -> dict[str, Any]:
        settings = self._settings({name: x[0] for name, x in params.items()}) if params else self._numeric
        state, t, runs = State(q, v, z), clock[0] * self.h, equal(cause[0], NONE)

        def advanced() -> StepResult:
            control = u if self.controller is None else self.controller(t, q, v)
            after = step(settings, state, control, t, carried.warm_start if carried else None)
            statuses = [after.status, status_if(logical_not(are_finite(control)), INVALID_CONTROL)]
            out_of_bounds = status_if(logical_not(in_bounds(after.state)), OUT_OF_BOUNDS)
            last = None if stage is None else _last_stage(after)
            status = worst_status([*statuses, out_of_bounds])
            return after._replace(status=status, motion=None, motions=(), last_stage=last)

        def unchanged() -> StepResult:
            nothing = np.zeros(0 if settings.constraint_model is None else len(v))
            last = None if stage is None else Stage(t, state, nothing)
            kept = zeros(carried.size) if carried and carried.size else None
            return StepResult(state, NONE, kept, last_stage=last)

        # the constraint solver iterates until all worlds have converged: worlds that have failed are excluded
        after = advanced() if settings.constraint_model is None else cond(runs, advanced, unchanged)
        if carried and after.row_status is not None:
            carried.keep(after.row_status)
        found = _advance_running(clock, cause, state, after, runs)
        if stage is not None:
            found["stage"] = _advance_stage(stage, after, runs)
        return found if solver is None else {**found, "solver": advanced_monitor(solver, after.solver_status)}

    @cached_property
    def _numeric(self) -> StepSettings:
        return self._settings({})

    def _settings(self, params: Mapping[str, Any]) -> StepSettings:
        mechanism = self.mechanism.subs(params) if params else self.mechanism
        return step_settings(
            mechanism, self.h, self.integrator, self.stabilization, self.coordinate_reduction
        )


def state_after_step(
    settings: StepSettings, state: State, control: Any, t: Any = None, carried: CarriedState | None = None,
    outputs: tuple[str, ...] = (), recorded: Any = True,
) -> dict[str, Any]:  # fmt: skip
    """q, v and activation one step later, NaN if the step fails; with the time (1,) if t [s] is given, and
    the `outputs` (see `step_outputs`), of which forces are computed where they are `recorded`.
    """
    result = step(settings, state, control, t, carried.warm_start if carried else None)
    # parts of a step between impacts or stops of sliding are solved in a loop
    if outputs and result.motion is None and settings.constraint_model is not None:
        start = state_derivative(settings, *state, control, 0 if t is None else t)
        result = result._replace(motion=start.motion)
    after, status = result.state, result.status
    if carried and result.row_status is not None:
        carried.keep(result.row_status)
    if not value_is_constant(status):
        after = State(*(where(equal(status, NONE), x, np.nan) for x in after))
    found = {"q": after.q, "v": after.v, "activation": after.z}
    found |= step_outputs(settings.mechanism, settings.constraint_model, result, outputs, recorded)
    return found if t is None else {**found, "time": np.array([t + settings.h])}


def _advance_running(clock: Any, cause: Any, before: State, after: StepResult, runs: Any) -> dict[str, Any]:
    """The state after a step and the clock plus one; for a world that fails now, or failed before, the state
    before.
    """
    valid = logical_and(runs, equal(after.status, NONE))
    q, v, z = (where(valid, new, old) for new, old in zip(after.state, before, strict=True))
    status = where(runs, after.status, cause[0])
    return {
        "clock": np.array([clock[0] + where(valid, 1, 0)]),
        "cause": np.array([status]),
        "q": q,
        "v": v,
        "z": z,
    }


def _last_stage(result: StepResult) -> Stage:
    """The stage of the last state derivative. Raises SimulationError if the step has none."""
    if result.last_stage is None:
        raise SimulationError(
            "a step that is divided at impacts of hard contacts or at stops of sliding has no last stage; "
            "use the quantities of the present state"
        )
    return result.last_stage


def _advance_stage(stage: Any, after: StepResult, runs: Any) -> np.ndarray:
    """The last stage of a step; for a world that fails now, or failed before, the stage before."""
    new = _last_stage(after).as_array()
    return where(logical_and(runs, equal(after.status, NONE)), new, stage)


def in_bounds(state: State) -> Any:
    """Whether all coordinates and velocities are finite and below the bound."""
    return _all_below(np.concatenate([state.q, state.v]), BOUND)


def are_finite(values: Any) -> Any:
    """Whether no element is NaN or infinite."""
    return _all_below(values, np.inf)


def _all_below(values: Any, bound: float) -> Any:
    below: Any = True
    for value in values:
        below = logical_and(less(absolute(value), bound), below)
    return below

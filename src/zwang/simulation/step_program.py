"""The program of one step of one world, as a function of arrays that is evaluated on floats or compiled.

The step of a simulation, of `zw.Worlds`, of a compiled mechanism and of exported C code is this program.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from zwang.constraint.rows import WarmStart
from zwang.errors import SimulationError
from zwang.integrator.fixed_step import State
from zwang.mechanism.lengths import translations
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.scalar import (
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
from zwang.simulation.clock import advanced_clock, clock_time
from zwang.simulation.controls import ControlFunction
from zwang.simulation.impact_stage import impact_log_size
from zwang.simulation.settings import CoordinateReduction
from zwang.simulation.sleeping import all_asleep, largest_number
from zwang.simulation.solver_status import NO_SOLUTION, advanced_monitor, is_recorded
from zwang.simulation.status import INVALID_CONTROL, NONE, OUT_OF_BOUNDS, status_if, worst_status
from zwang.simulation.step import Stage, StepResult, StepSettings, state_derivative, step, step_settings
from zwang.simulation.step_outputs import step_outputs

BOUND = 1e10  # MuJoCo's mjMAXVAL: larger velocities and angles are a failure
FARTHEST = 1e20  # [m] the same of translations, which no such velocity reaches in 300 years


class CarriedState(Protocol):
    """Numbers that a program carries from one step to the next, zeros in the first step: of the trees that
    may sleep, and the row statuses of the warm start.
    """

    size: int

    def state(self, size: int, largest: int) -> Any:
        """`size` integers of the trees, up to `largest`, as the previous step kept them; called before
        `warm_start`.
        """
        ...

    def keep_state(self, values: Any) -> None:
        """Keep the numbers of the trees for the next step."""
        ...

    @property
    def warm_start(self) -> WarmStart | None:
        """The function of their number and the largest that gives the row statuses, as the previous step kept
        them; None for no warm start.
        """
        ...

    def keep(self, values: Any) -> None:
        """Keep the row statuses for the next step."""
        ...


class CarriedNumbers:
    """What a program carries on floats: the numbers of the trees that may sleep, and no warm start."""

    size, warm_start = 0, None

    def __init__(self, numbers: Any) -> None:
        self.numbers = numbers

    def state(self, size: int, largest: int) -> Any:
        """See `CarriedState`."""
        return self.numbers

    def keep_state(self, values: Any) -> None:
        """See `CarriedState`."""
        self.numbers = values

    def keep(self, values: Any) -> None:
        """See `CarriedState`."""


@dataclass(frozen=True)
class StepProgram:
    """One step of one world as a function of arrays; the method of the step is `simulation.step`.

    mechanism, h [s], integrator, stabilization, coordinate_reduction: as for `step_settings`. controller: if
    it is given, it computes the control at the beginning of the step. outputs: what the step returns beside
    the state, see `step_outputs`. logs_impacts: whether the step of a world with a status also returns
    `impacts`, the log of its impacts and stops of sliding; for divided steps only, see `has_divided_steps`
    and `impact_log_size`.

    A world with a status, as in a simulation, keeps its last valid state when it fails, and is not advanced
    any more. Without a status, as in the step of a compiled mechanism, the state after a failure is NaN.
    """

    mechanism: Mechanism
    h: float
    integrator: str
    controller: ControlFunction | None = None
    stabilization: str = "projection"
    coordinate_reduction: CoordinateReduction = False
    outputs: tuple[str, ...] = ()
    logs_impacts: bool = False

    def __call__(
        self, q: Any, v: Any, z: Any, u: Any, *, clock: Any = None, status: Any = None, time: Any = None,
        params: Mapping[str, Any] | None = None, carried: CarriedState | None = None, solver: Any = None,
        stage: Any = None,
    ) -> dict[str, Any]:  # fmt: skip
        """The state after the step, by the names of the arguments, and the outputs.

        q (nq,), v (nv,), z (nz,): the state. u (nu,): the control; not read with a controller. clock (1,) or
        (2,): the number of steps so far, from which the time follows (see `simulation.clock`); status (1,):
        the status of the world (see `simulation.status`), given with a clock only. time (1,) [s]: of a step
        without a clock, or that of the clock 0. params: an array (1,) for each symbol. carried: see
        `CarriedState`; without it no body sleeps. solver (3,): the monitor of the solver's status, see
        `simulation.solver_status`. stage: the array of the `Stage` of the last state derivative and of its
        control, for worlds with a status. Clock, status, solver and stage are returned if they are given, and
        so is the time of a step without a clock.

        Raises SimulationError where bodies cannot sleep, for outputs of a world with a status, for a `stage`
        of steps that are divided at impacts or stops of sliding, and without clock and time if a constraint
        depends on time.
        """
        if self.outputs and status is not None:
            raise SimulationError(
                "a step of a world with a status has no outputs; leave out clock and status"
            )
        settings = self._settings({name: x[0] for name, x in params.items()}) if params else self._numeric
        state, model = State(q, v, z), settings.constraint_model
        t = None if time is None else time[0]
        if clock is not None:
            t = clock_time(clock, self.h) if t is None else t + clock_time(clock, self.h)
        runs = status is None or equal(status[0], NONE)
        trees = settings.sleep.count if settings.sleep else 0
        sleep = carried.state(trees, largest_number(trees)) if carried and trees else None

        def advanced() -> StepResult:
            control = u if self.controller is None else self.controller(t, q, v)
            start = carried.warm_start if carried else None
            after = step(settings, state, control, t, start, sleep=sleep, impacts=self.logs_impacts)
            if status is None:
                return _with_motion(settings, state, control, t, after) if self.outputs else after
            return _checked(self.mechanism.tree, after, control, stage is not None)

        def unchanged() -> StepResult:
            last = None if stage is None else Stage(t, state, np.zeros(0 if model is None else len(v)))
            kept = zeros(carried.size) if carried and carried.size else None
            log = zeros(impact_log_size(self.mechanism)) if self.logs_impacts else None
            return StepResult(state, NONE, kept, last_stage=last, sleep=sleep, impacts=log)

        rests = sleep is not None and stage is None and self._rests(settings, state, u, sleep)
        moves = logical_and(runs, logical_not(rests))
        # the constraint solver iterates until all worlds have converged: worlds that have failed are excluded
        always = status is None or (model is None and rests is False)
        after = advanced() if always else cond(moves, advanced, unchanged)
        if carried and after.row_status is not None:
            carried.keep(after.row_status)
        found = (
            _valid_or_nan(after) if status is None else _valid_or_before(clock, status, state, after, runs)
        )
        if after.impacts is not None:
            found["impacts"] = np.array([after.impacts[i] for i in range(after.impacts.shape[0])])
        if stage is not None:
            found["stage"] = _advance_stage(stage, after, u, runs)
        if carried and sleep is not None and after.sleep is not None:
            valid = logical_and(runs, equal(after.status, NONE))
            carried.keep_state([where(valid, x, old) for x, old in zip(after.sleep, sleep, strict=True)])
        if solver is not None:
            found["solver"] = advanced_monitor(solver, NO_SOLUTION if model is None else after.solver_status)
        recorded = True if solver is None else is_recorded(solver)
        found |= step_outputs(settings.mechanism, model, after, self.outputs, recorded)
        if clock is not None and status is None:
            found["clock"] = advanced_clock(clock, True)
        if clock is None and time is not None:
            found["time"] = np.array([time[0] + self.h])
        return found

    def _rests(self, settings: StepSettings, state: State, control: Any, sleep: Any) -> Any:
        """Whether all bodies sleep and will not wake, so that a step changes nothing; False where parameters
        or mocap bodies may wake them.
        """
        rule = settings.sleep
        if rule is None or self.mechanism.symbols or rule.mocap or self.controller is not None:
            return False
        return all_asleep(rule, state, control, sleep)

    @cached_property
    def _numeric(self) -> StepSettings:
        return self._settings({})

    def _settings(self, params: Mapping[str, Any]) -> StepSettings:
        mechanism = self.mechanism.subs(params) if params else self.mechanism
        return step_settings(
            mechanism, self.h, self.integrator, self.stabilization, self.coordinate_reduction
        )


def _with_motion(
    settings: StepSettings, state: State, control: Any, t: Any, result: StepResult
) -> StepResult:
    """A result with the motion at the beginning of the step, of which the outputs are.

    The parts of a step between impacts or stops of sliding are solved in a loop, and their motions are lost.
    """
    if result.motion is not None or settings.constraint_model is None:
        return result
    model = settings.constraint_model
    at_start = replace(settings, constraint_model=replace(model, step=model.step.for_forces))
    start = state_derivative(at_start, *state, control, 0 if t is None else t)
    return result._replace(motion=start.motion)


def _checked(tree: Tree, after: StepResult, control: Any, with_stage: bool) -> StepResult:
    """A result whose status tells of an invalid control and of a state out of bounds too, without motions."""
    invalid = status_if(logical_not(are_finite(control)), INVALID_CONTROL)
    out_of_bounds = status_if(logical_not(in_bounds(tree, after.state)), OUT_OF_BOUNDS)
    last = _last_stage(after) if with_stage else None
    status = worst_status([after.status, invalid, out_of_bounds])
    return after._replace(status=status, motion=None, last_stage=last)


def _valid_or_nan(after: StepResult) -> dict[str, Any]:
    """The state after a step; NaN if the step fails."""
    state = after.state
    if not value_is_constant(after.status):
        state = State(*(where(equal(after.status, NONE), x, np.nan) for x in state))
    return {"q": state.q, "v": state.v, "z": state.z}


def _valid_or_before(clock: Any, status: Any, before: State, after: StepResult, runs: Any) -> dict[str, Any]:
    """The state after a step and the clock one step later; for a world that fails now, or failed before, the
    state before.
    """
    valid = logical_and(runs, equal(after.status, NONE))
    q, v, z = (where(valid, new, old) for new, old in zip(after.state, before, strict=True))
    return {
        "clock": advanced_clock(clock, valid),
        "status": np.array([where(runs, after.status, status[0])]),
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


def _advance_stage(stage: Any, after: StepResult, control: Any, runs: Any) -> np.ndarray:
    """The last stage of a step; for a world that fails now, or failed before, the stage before."""
    new = _last_stage(after).as_array(control)
    return where(logical_and(runs, equal(after.status, NONE)), new, stage)


def coordinate_bounds(tree: Tree) -> np.ndarray:
    """The bound (nq,) of the absolute value of each coordinate."""
    slides = set(translations(tree).values())
    return np.array([FARTHEST if i in slides else BOUND for i in range(tree.nq)])


def in_bounds(tree: Tree, state: State) -> Any:
    """Whether all coordinates and velocities are finite and below their bounds."""
    bounds = [*coordinate_bounds(tree), *[BOUND] * len(state.v)]
    return _all_below(np.concatenate([state.q, state.v]), bounds)


def are_finite(values: Any) -> Any:
    """Whether no element is NaN or infinite."""
    return _all_below(values, [np.inf] * len(values))


def _all_below(values: Any, bounds: Sequence[float]) -> Any:
    below: Any = True
    for value, bound in zip(values, bounds, strict=True):
        below = logical_and(less(absolute(value), bound), below)
    return below

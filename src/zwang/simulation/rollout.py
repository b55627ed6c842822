"""Many steps of many worlds: the program of one step, and its repetition in plain Python.

A world that cannot go on keeps its last good state and the cause; its clock, which counts steps, stands still, and it is not tried again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from zwang.api.control_input import ControlFunction, PrescribedControl
from zwang.api.initial_conditions import InitialState
from zwang.api.settings_validation import SimulationSettings
from zwang.errors import SolveError
from zwang.integrator.fixed_step import State
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import MutableArray, absolute, cond, equal, less, logical_and, logical_not, where
from zwang.simulation.status import CONTROL, NONE, OUT_OF_BOUNDS, status_if, status_of_error, worst_status
from zwang.simulation.step import StepResult, StepSettings, step, step_settings

BOUND = 1e10  # MuJoCo's mjMAXVAL: what is larger is not motion any more
RECORDED = ("clock", "q", "v", "z")
CHUNK = 0.2  # seconds of work between two ticks of a progress bar

Arrays = dict[str, np.ndarray]
ProgressCallback = Callable[[int], None]


class CarriedState(Protocol):
    """Numbers that a program takes along from one step to the next."""

    size: int

    def warm_start(self, size: int) -> MutableArray:
        """So many numbers, as they were kept; zeros at first."""
        ...

    def keep(self, numbers: Sequence[Any]) -> None:
        """To be recalled by the next step."""
        ...


@dataclass(frozen=True)
class StepProgram:
    """One step of one world as a function of named flat arrays: clock, cause, q, v, z and u, and one for each parameter.

    It returns the next clock, cause, q, v, z, and keeps in `memory` what its solver may begin the next step with. With a `controller` u is
    not read but worked out at the step's beginning. embedding: essential speeds, as `stepping` takes them.
    """

    mechanism: Mechanism
    h: float
    integrator: str
    controller: ControlFunction | None = None
    stabilization: str = "projection"
    coordinate_reduction: Any = False

    def __call__(
        self,
        clock: Any,
        failure: Any,
        q: Any,
        v: Any,
        z: Any,
        u: Any,
        params: Mapping[str, Any] | None = None,
        carried: CarriedState | None = None,
    ) -> dict[str, Any]:
        steps = self._with({name: x[0] for name, x in params.items()}) if params else self._numeric
        at, t, runs = State(q, v, z), clock[0] * self.h, equal(failure[0], NONE)

        def go() -> StepResult:
            control = u if self.controller is None else self.controller(t, q, v)
            after = step(steps, at, control, t, carried.warm_start if carried else None)
            statuses = [after.status, status_if(logical_not(are_numbers(control)), CONTROL)]
            status = worst_status([*statuses, status_if(logical_not(in_bounds(after.point)), OUT_OF_BOUNDS)])
            return after._replace(status=status)

        def stay() -> StepResult:
            return StepResult(at, NONE, [0.0] * (carried.size if carried else 0))

        # what is restricted iterates: a world that stopped is left out of it
        found = go() if steps.constraint_model is None else cond(runs, go, stay)
        if carried:
            carried.keep(found.row_status)
        return advance_running(clock, failure, at, found, runs)

    @cached_property
    def _numeric(self) -> StepSettings:
        return self._with({})

    def _with(self, params: Mapping[str, Any]) -> StepSettings:
        mechanism = self.mechanism.subs(params) if params else self.mechanism
        return step_settings(mechanism, self.h, self.integrator, self.stabilization, self.coordinate_reduction)


def advance_running(clock: Any, failure: Any, before: State, found: StepResult, runs: Any) -> dict[str, Any]:
    """The state after a step with the clock one further; or, of a world that stopped, or stops now, the state before it."""
    fine = logical_and(runs, equal(found.status, NONE))
    q, v, z = (where(fine, new, old) for new, old in zip(found.point, before, strict=True))
    told = where(runs, found.status, failure[0])
    return {
        "clock": np.array([clock[0] + where(fine, 1, 0)]),
        "failure": np.array([told]),
        "q": q,
        "v": v,
        "z": z,
    }


def in_bounds(at: State) -> Any:
    """Whether all of q and v are numbers below the bound."""
    return _all_below(np.concatenate([at.q, at.v]), BOUND)


def are_numbers(values: Any) -> Any:
    """Whether none is nan or infinite."""
    return _all_below(values, np.inf)


def _all_below(values: Any, bound: float) -> Any:
    fine: Any = True
    for value in values:
        fine = logical_and(less(absolute(value), bound), fine)
    return fine


class Roller(Protocol):
    """Repeats a step program over many worlds."""

    def roll(self, state: Arrays, u: np.ndarray, samples: int, every: int) -> tuple[Arrays, Arrays]:
        """(state, records): the state after samples * every steps, and records (worlds, samples, n), one after each `every`.

        state: clock, cause, q, v, z, each (worlds, n), and what the roller itself put there. u: (worlds, samples * every, nu), the control of each step.
        """
        ...


class PythonRoller:
    """Repeats a step program in Python, world by world: the reference."""

    def __init__(self, program: StepProgram, start: InitialState):
        self._programs = [program]
        if start.params:
            rows = [{name: float(x[w]) for name, x in start.params.items()} for w in range(start.worlds)]
            self._programs = [replace(program, mechanism=program.mechanism.subs(row)) for row in rows]

    def roll(self, state: Arrays, u: np.ndarray, samples: int, every: int) -> tuple[Arrays, Arrays]:
        """See `Roller`."""
        records = {name: np.empty((len(x), samples, x.shape[1])) for name, x in state.items()}
        for w in range(len(state["q"])):
            program = self._programs[w % len(self._programs)]
            at: Mapping[str, Any] = {name: x[w] for name, x in state.items()}
            for k in range(samples * every):
                at = _tried(program, at, u[w, k])
                if (k + 1) % every == 0:
                    for name, x in at.items():
                        records[name][w, k // every] = x
        return {name: x[:, -1] for name, x in records.items()}, records


def _tried(program: StepProgram, at: Mapping[str, Any], u: np.ndarray) -> Mapping[str, Any]:
    """The state after a step; what the float text raises stops the world."""
    try:
        return program(**at, u=u)
    except SolveError as error:
        return {**at, "failure": np.array([float(status_of_error(error))])}


@dataclass(frozen=True)
class Trajectory:
    """What was recorded: the clock (worlds, samples, 1) in steps, q, v, z, and the control u, each (worlds, samples, n).

    cause (worlds,): why each world stopped, `faults.NONE` for those that ran to the end.
    """

    clock: np.ndarray
    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    u: np.ndarray
    failure: np.ndarray


class MotionInterrupted(KeyboardInterrupt):
    """A run was interrupted after so many steps; `motion()` is what was recorded, and `path` how it was moved."""

    def __init__(self, steps: int, motion: Callable[[], Trajectory], path: str = "python"):
        super().__init__()
        self.steps, self.motion, self.path = steps, motion, path


class Stretch(NamedTuple):
    """Some steps of all worlds: how many, the controls and the records (worlds, samples, n) of them, and the state after them."""

    steps: int
    u: np.ndarray
    records: Arrays
    state: Arrays


def roll_out(roller: Roller, begin: InitialState, control: PrescribedControl | ControlFunction, settings: SimulationSettings, tick: ProgressCallback) -> Trajectory:
    """The motion of all worlds. A function for control that is not part of the program is called for every world and step.

    tick(n) is told after n more steps of all worlds together. Raises MotionInterrupted for KeyboardInterrupt.
    """
    stretches = [still(begin, control)]
    try:
        for samples, every in _chunks(settings):
            stretches.append(_stretch(roller, control, stretches[-1], settings.step, samples, every))
            tick(samples * every * begin.worlds)
    except KeyboardInterrupt:
        steps = stretches[-1].steps
        raise MotionInterrupted(steps, partial(joined, stretches, control, settings.step)) from None
    return joined(stretches, control, settings.step)


def still(begin: InitialState, control: PrescribedControl | ControlFunction) -> Stretch:
    """The stretch of no steps before the first one."""
    none = np.zeros((begin.worlds, 1))
    state = {"clock": none, "failure": none, "q": begin.q, "v": begin.v, "z": begin.z}
    u = np.zeros(
        (begin.worlds, 0, len(control.names) if isinstance(control, ControlFunction) else control.values.shape[-1])
    )
    return Stretch(0, u, {name: x[:, None] for name, x in state.items()}, state)


def joined(stretches: Sequence[Stretch], control: PrescribedControl | ControlFunction, h: float) -> Trajectory:
    """The motion in all stretches, and the control at its end."""
    done, _, _, state = stretches[-1]
    controls = [*(s.u for s in stretches), control_at(control, state, done, h)]
    whole = {name: np.concatenate([s.records[name] for s in stretches], axis=1) for name in RECORDED}
    return Trajectory(**whole, u=np.concatenate(controls, axis=1), failure=state["failure"][:, 0].astype(int))


def _stretch(
    roller: Roller, control: PrescribedControl | ControlFunction, before: Stretch, h: float, samples: int, every: int
) -> Stretch:
    """The stretch of samples * every steps that follows another one."""
    if isinstance(control, PrescribedControl):
        u = control.during(before.steps, samples * every, len(before.state["q"]))
        state, recorded = roller.roll(before.state, u, samples, every)
    else:
        u, state, recorded = _roll_called(roller, control, before.state, h, samples, every)
    return Stretch(before.steps + samples * every, u[:, ::every].copy(), recorded, state)


def _roll_called(
    roller: Roller, control: ControlFunction, state: Arrays, h: float, samples: int, every: int
) -> tuple[np.ndarray, Arrays, Arrays]:
    """Step by step, with the control worked out before each step."""
    controls, records = [], []
    for k in range(samples * every):
        controls.append(control_at(control, state, 0, h))
        state, _ = roller.roll(state, controls[-1], 1, 1)
        if (k + 1) % every == 0:
            records.append(state)
    stacked = {name: np.stack([record[name] for record in records], axis=1) for name in RECORDED}
    return np.concatenate(controls, axis=1), state, stacked


def control_at(control: PrescribedControl | ControlFunction, state: Arrays, steps: int, h: float) -> np.ndarray:
    """The control (worlds, 1, nu) of the step to come."""
    worlds = len(state["q"])
    if isinstance(control, PrescribedControl):
        return control.during(steps, 1, worlds).copy()
    rows = zip(state["clock"][:, 0] * h, state["q"], state["v"], strict=True)
    u = [np.asarray(control(t, q, v), dtype=float) for t, q, v in rows]
    return np.array(u).reshape(worlds, 1, len(control.names))


def _chunks(settings: SimulationSettings) -> Iterator[tuple[int, int]]:
    """(samples, every) of stretches that each take about a fifth of a second; a shorter one may end the run."""
    whole, rest = divmod(settings.steps, settings.every)
    samples = 1
    while whole > 0:
        samples = min(samples, whole)
        began = time.perf_counter()
        yield samples, settings.every
        taken = time.perf_counter() - began
        whole -= samples
        samples = max(1, min(4 * samples, int(samples * CHUNK / max(taken, 1e-9))))
    if rest:
        yield 1, rest

"""Simulation of many worlds over many steps, by an executor that runs on floats or in machine code.

A world that fails keeps its last valid state and its failure reason; its clock, which counts steps, stops.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

import numpy as np

from zwang.errors import SolveError
from zwang.simulation.constraint_options import is_constrained
from zwang.simulation.controls import Control, ControlFunction, PrescribedControl
from zwang.simulation.events import EventRecords, EventSearch
from zwang.simulation.impact_stage import impact_log_size
from zwang.simulation.initial_state import InitialState
from zwang.simulation.settings import SimulationSettings
from zwang.simulation.sleep_rule import sleeping_trees
from zwang.simulation.solver_status import SolverStatus, initial_monitor
from zwang.simulation.status import status_of_error
from zwang.simulation.step_program import CarriedNumbers, StepProgram

SLEEP = "sleep"
"""The name of the numbers of trees that may sleep, in a state on floats."""
IMPACTS = "impacts"
"""The name of the log of the impacts and stops of sliding in a step, which the search for events needs."""
RECORDED = ("clock", "q", "v", "z")
LOG_BYTES = 2**25  # of the logs of impacts in a segment, or more for one sample
CHUNK = 0.2  # seconds of computation between two updates of a progress bar

Arrays = dict[str, np.ndarray]
ProgressCallback = Callable[[int], None]


class RolloutExecutor(Protocol):
    """Repeats a step program over many worlds."""

    def advance(self, state: Arrays, u: np.ndarray, samples: int, every: int) -> tuple[Arrays, Arrays]:
        """The state after samples * every steps, and the records (worlds, samples, n), one after each
        `every` steps.

        state: clock, status, q, v, z, each (worlds, n), and what the executor itself added. Where something
        is solved, the record `solver` (worlds, samples, 3) has the worst solver status since the last record
        first. `impacts`: the log of the impacts and stops in the last step, where the program has it.
        u (worlds, samples * every, nu): the control of each step.
        """
        ...


class PythonExecutor:
    """Repeats a step program on floats, one world after another: the reference for compiled code."""

    def __init__(self, program: StepProgram, initial: InitialState):
        self._programs, self._monitors = [program], is_constrained(program.mechanism)
        self._trees = sleeping_trees(program.mechanism)
        if initial.params:
            rows = [initial.parameters_of_world(w) for w in range(initial.worlds)]
            self._programs = [replace(program, mechanism=program.mechanism.subs(row)) for row in rows]

    def advance(self, state: Arrays, u: np.ndarray, samples: int, every: int) -> tuple[Arrays, Arrays]:
        """See `RolloutExecutor`."""
        if self._monitors:
            state = {**state, "solver": np.tile(initial_monitor(every), (len(state["q"]), 1))}
        if self._programs[0].logs_impacts:
            size = impact_log_size(self._programs[0].mechanism)
            state = {**state, IMPACTS: np.zeros((len(state["q"]), size))}
        if self._trees and SLEEP not in state:
            state = {**state, SLEEP: np.zeros((len(state["q"]), self._trees))}
        records = {name: np.empty((len(x), samples, x.shape[1])) for name, x in state.items()}
        for w in range(len(state["q"])):
            program = self._programs[w % len(self._programs)]
            world: Mapping[str, Any] = {name: x[w] for name, x in state.items()}
            for k in range(samples * every):
                world = _step_or_failure(program, world, u[w, k])
                if (k + 1) % every == 0:
                    for name, x in world.items():
                        records[name][w, k // every] = x
        return {name: x[:, -1] for name, x in records.items()}, records


def _step_or_failure(program: StepProgram, state: Mapping[str, Any], u: np.ndarray) -> Mapping[str, Any]:
    """The state after a step; an exception of the solver becomes the world's failure reason."""
    given = {name: x for name, x in state.items() if name != IMPACTS}
    carried = CarriedNumbers(given.pop(SLEEP)) if SLEEP in state else None
    try:
        after = program(**given, u=u, carried=carried)
        return after if carried is None else {**after, SLEEP: carried.numbers}
    except SolveError as error:
        nothing = {IMPACTS: np.zeros_like(state[IMPACTS])} if IMPACTS in state else {}
        return {**state, **nothing, "status": np.array([float(status_of_error(error))])}


@dataclass(frozen=True)
class Trajectory:
    """The recorded motion: clock (worlds, samples, 1) in steps, and q, v, z, u, each (worlds, samples, n).

    failure (worlds,): the status of each world, NONE for those that were simulated to the end. events: their
    occurrences, if there are any events. solver (worlds, samples, 1): the worst solver status of the steps
    since the sample before, where something is solved in steps of fixed size.
    """

    clock: np.ndarray
    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    u: np.ndarray
    failure: np.ndarray
    events: EventRecords | None = None
    solver: np.ndarray | None = None


class MotionInterrupted(KeyboardInterrupt):
    """A simulation was interrupted after some steps.

    motion(): the trajectory up to there. path: how it was computed, compiled or in Python.
    """

    def __init__(self, steps: int, motion: Callable[[], Trajectory], path: str = "python"):
        super().__init__()
        self.steps, self.motion, self.path = steps, motion, path


class Segment(NamedTuple):
    """Consecutive steps of all worlds.

    steps: the number of steps up to its end. u, records (worlds, samples, n): controls and states. state:
    at its end.
    """

    steps: int
    u: np.ndarray
    records: Arrays
    state: Arrays


def roll_out(
    executor: RolloutExecutor,
    initial: InitialState,
    control: Control,
    settings: SimulationSettings,
    tick: ProgressCallback,
    events: EventSearch | None = None,
) -> Trajectory:
    """The motion of all worlds. A control function that is not part of the program is called for each world
    and step.

    tick(n) is called after n more steps, counted over all worlds. Raises MotionInterrupted for
    KeyboardInterrupt.
    """
    segments = [initial_segment(initial, control)]
    try:
        for samples, every in _chunks(settings, _most_samples(settings, initial.worlds, events)):
            segments.append(
                _next_segment(executor, control, segments[-1], settings.step, samples, every, events)
            )
            tick(samples * every * initial.worlds)
        return trajectory_of(segments, control, settings.step, events)
    except KeyboardInterrupt:
        steps = segments[-1].steps
        raise MotionInterrupted(
            steps, partial(trajectory_of, segments, control, settings.step, events)
        ) from None


def initial_segment(initial: InitialState, control: Control) -> Segment:
    """The segment of zero steps that precedes the first step."""
    none = np.zeros((initial.worlds, 1))
    state = {"clock": none, "status": none, "q": initial.q, "v": initial.v, "z": initial.z}
    inputs = len(control.names) if isinstance(control, ControlFunction) else control.values.shape[-1]
    u = np.zeros((initial.worlds, 0, inputs))
    return Segment(0, u, {name: x[:, None] for name, x in state.items()}, state)


def trajectory_of(
    segments: Sequence[Segment], control: Control, h: float, events: EventSearch | None = None
) -> Trajectory:
    """The trajectory of consecutive segments, with the control at their end."""
    done, _, _, state = segments[-1]
    controls = [*(s.u for s in segments), control_at(control, state, done, h)]
    whole = {name: np.concatenate([s.records[name] for s in segments], axis=1) for name in RECORDED}
    failure, found = state["status"][:, 0].astype(int), None if events is None else events.records()
    return Trajectory(
        **whole, u=np.concatenate(controls, axis=1), failure=failure, events=found, solver=_solver(segments)
    )


def _solver(segments: Sequence[Segment]) -> np.ndarray | None:
    """The recorded solver statuses (worlds, samples, 1); None if nothing is solved."""
    if not all("solver" in s.records for s in segments[1:]):
        return None
    nothing = np.full((len(segments[0].state["q"]), 1, 1), float(SolverStatus.NO_SOLUTION))
    return np.concatenate([nothing, *(s.records["solver"][..., :1] for s in segments[1:])], axis=1)


def _next_segment(
    executor: RolloutExecutor,
    control: Control,
    before: Segment,
    h: float,
    samples: int,
    every: int,
    events: EventSearch | None,
) -> Segment:
    """The segment of samples * every steps that follows another one; events need the states of all steps."""
    count, stride = (samples, every) if events is None else (samples * every, 1)
    if isinstance(control, PrescribedControl):
        u = control.during(before.steps, samples * every, len(before.state["q"]))
        state, recorded = executor.advance(before.state, u, count, stride)
    else:
        u, state, recorded = _advance_with_function(executor, control, before.state, h, count, stride)
    if events is not None:
        state = {name: x.copy() for name, x in state.items()}
        recorded = {name: x if name == IMPACTS else x.copy() for name, x in recorded.items()}
        events.locate(before.state, recorded, state)
        recorded = {name: x[:, every - 1 :: every] for name, x in recorded.items() if name != IMPACTS}
    return Segment(before.steps + samples * every, u[:, ::every].copy(), recorded, state)


def _advance_with_function(
    executor: RolloutExecutor, control: ControlFunction, state: Arrays, h: float, samples: int, every: int
) -> tuple[np.ndarray, Arrays, Arrays]:
    """Single steps, with the control function called before each of them."""
    controls, records, solver, impacts = [], [], [], []
    for k in range(samples * every):
        controls.append(control_at(control, state, 0, h))
        state, last = executor.advance(state, controls[-1], 1, 1)
        solver += [last["solver"]] if "solver" in last else []
        impacts += [last[IMPACTS]] if IMPACTS in last else []
        if (k + 1) % every == 0:
            records.append({**state, "solver": np.max(solver, axis=0)[:, 0]} if solver else state)
            solver = []
    names = [name for name in (*RECORDED, "solver") if name in records[0]]
    stacked = {name: np.stack([record[name] for record in records], axis=1) for name in names}
    if impacts:
        stacked[IMPACTS] = np.concatenate(impacts, axis=1)
    return np.concatenate(controls, axis=1), state, stacked


def control_at(control: Control, state: Arrays, steps: int, h: float) -> np.ndarray:
    """The control (worlds, 1, nu) of the next step."""
    worlds = len(state["q"])
    if isinstance(control, PrescribedControl):
        return control.during(steps, 1, worlds).copy()
    rows = zip(state["clock"][:, 0] * h, state["q"], state["v"], strict=True)
    u = [np.asarray(control(t, q, v), dtype=float) for t, q, v in rows]
    return np.array(u).reshape(worlds, 1, len(control.names))


def _most_samples(settings: SimulationSettings, worlds: int, events: EventSearch | None) -> int:
    """The largest number of samples in a segment, with which the logs of impacts have at most `LOG_BYTES`."""
    if events is None or not events.needs_impacts:
        return settings.steps
    step = 8 * impact_log_size(events.mechanism) * worlds
    return max(1, LOG_BYTES // (step * settings.every))


def _chunks(settings: SimulationSettings, most: int) -> Iterator[tuple[int, int]]:
    """(samples, every) of segments that take about `CHUNK` seconds each; a shorter one may be the last."""
    whole, rest = divmod(settings.steps, settings.every)
    samples = 1
    while whole > 0:
        samples = min(samples, whole, most)
        began = time.perf_counter()
        yield samples, settings.every
        taken = time.perf_counter() - began
        whole -= samples
        samples = max(1, min(4 * samples, int(samples * CHUNK / max(taken, 1e-9))))
    if rest:
        yield 1, rest

"""`simulate`: the recording of a simulation, computed in machine code where possible."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import xarray as xr

from zwang.api.arguments.control_input import ControlLike, control_input, worlds_of_control
from zwang.api.arguments.default_start import control_or_default
from zwang.api.arguments.event_input import EventsLike, event_input
from zwang.api.arguments.initial_conditions import initial_state
from zwang.api.arguments.parameter_values import Parameters
from zwang.api.arguments.settings_validation import simulation_settings, velocity_names
from zwang.api.arguments.validation import (
    check_compilable,
    check_interpretable,
    is_restrained,
)
from zwang.api.runs.compiled_rollout import (
    CompiledExecutor,
    EventValues,
    continuous_dynamics_of_worlds,
    derived_quantities_compiled,
    event_values_compiled,
    traced_control,
    zero_control,
)
from zwang.api.runs.error_controlled_rollout import continuous_dynamics_in_python, integrate_worlds
from zwang.api.runs.progress import progress_bar
from zwang.api.runs.termination import (
    check_coordinate_reduction,
    warn_of_failures,
    warn_of_penetrations,
    warn_of_violations,
)
from zwang.deprecation import renamed_arguments
from zwang.errors import SimulationInterrupted, SimulationWarning, TraceError
from zwang.integrator.adaptive_step import Adaptive
from zwang.integrator.fixed_step import semi_implicit_euler
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.recording.dataset import recording_of
from zwang.simulation.controls import Control, ControlFunction
from zwang.simulation.events import EventSearch, NamedEvent, event_values_in_python
from zwang.simulation.initial_state import InitialState
from zwang.simulation.quantities.state_quantities import state_quantities_in_python
from zwang.simulation.rollout import (
    MotionInterrupted,
    ProgressCallback,
    PythonExecutor,
    Trajectory,
    initial_segment,
    roll_out,
    trajectory_of,
)
from zwang.simulation.settings import SimulationSettings
from zwang.simulation.sleep_rule import check_sleep
from zwang.simulation.step import STEPPERS, has_divided_steps
from zwang.simulation.step_program import StepProgram

COMPILED, COMPILED_BUT_CONTROL, IN_PYTHON = "compiled", "compiled, control called in Python", "python"


class Simulated(NamedTuple):
    """The motion of all steps, its derived quantities, and the path on which they were computed."""

    motion: Trajectory
    observed: dict[str, np.ndarray]
    path: str


@renamed_arguments(drift="stabilization", embedding="coordinate_reduction")
@validated_arguments(
    "q0", "v0", "duration", "step", "integrator", "control", "worlds", "params", "record", "stabilization",
    "coordinate_reduction",
)  # fmt: skip
def simulate(
    mechanism: Mechanism,
    q0: npt.ArrayLike | Mapping[str, npt.ArrayLike] | str | None = None,
    v0: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    *,
    duration: float,
    step: float | None = None,
    integrator: str | Adaptive | None = None,
    control: ControlLike | None = None,
    worlds: int | None = None,
    params: Parameters | None = None,
    record: int | Mapping[str, int | bool | str | Sequence[str]] | None = None,
    events: EventsLike | None = None,
    stabilization: str | None = None,
    coordinate_reduction: bool | str | PointSpeed | Sequence[str | PointSpeed] = False,
    compiled: bool = True,
    progress: bool = True,
) -> xr.Dataset:
    """The recorded motion of one or many worlds, as a dataset over (world, time, ...).

    mechanism: the mechanism.
    q0: initial coordinates (nq,) or (worlds, nq) [rad, m, unit quaternions], a dictionary by the names of
        coordinates or joints, or the name of a keyframe, which then also gives the activations and the
        defaults of v0 and control, and of what dictionaries of these leave out; by default the home
        configuration. An array with labels, such as `run.q.isel(time=-1)`, is read by them; v0 and control
        likewise. In a dictionary, the value of a joint with several coordinates is an array of them.
    v0: initial generalised velocities (nv,) or (worlds, nv) [rad/s, m/s], or a dictionary by name; by
        default zero.
    duration: simulated time [s], rounded to whole steps.
    step: step size [s], by default that of the mechanism's options; of error-controlled integrators the
        interval of the recording, and with hard contacts, and while Coulomb friction holds something at rest,
        the largest step.
    integrator: of fixed step size "euler" (semi-implicit, joint damping implicit), "implicitfast",
        "implicit" or "rk4"; error-controlled "dop853", "radau", "bdf", "lsoda", ..., or
        `zw.Adaptive(method, rtol, atol)`. By default that of the mechanism's options.
    control: values of the mechanism's inputs, or of the generalised forces tau of a mechanism without
        inputs: numbers, arrays over the steps, a dictionary of these by input name, or a function
        control(t, q, v) of one world, which returns an array, or a dictionary of inputs, of which the others
        are then zero. With a fixed step size a function is evaluated at the beginning of each step, and
        constant during the step. If it is written with the functions of zwang.scalar it becomes part of the
        machine code; otherwise it is called in Python (see the attribute `path`). By default zero.
    worlds: number of worlds, if it does not follow from the other arguments.
    params: for each symbol of the mechanism, also of its home configuration and keyframes, a value, or one
        for each world.
    record: k to record every k-th step, or a dictionary with some of "every": k; "frames": names of frames
        whose positions are recorded; "sensors": names of sensors, or True for all; and, each True or False,
        "constraints": generalised constraint forces, "forces": forces of contacts and of constraints between
        points, "reactions": wrenches of the joints (see `zw.joint_reactions`), "multipliers": the force of
        each row of the constraints, such as the torque of a prescribed motion, "zwang": Gauss's measure Z by
        body, "violations": of the constraints. `zw.derived_quantities` computes these afterwards. By default
        every step, or as many as 20 million numbers allow.
    events: a dictionary from names to functions event(t, q, v) of one world, to expressions of the
        coordinates, or to `zw.Event(function, direction, terminal)`. Their zeros are located between the
        steps and recorded: `event_time`, `event_q` and `event_v` over (world, event, occurrence). A world
        ends at a terminal event.
    stabilization: of hard constraints. "projection" (default): the state is projected onto them after each
        step. "baumgarte" (default for "lsoda"): stabilising terms in their accelerations, with a time
        constant of 10 steps.
    coordinate_reduction: False (default): hard constraints act by constraint forces. A list of independent
        velocities, names of generalised velocities or `zw.PointSpeed`s, one for each degree of freedom:
        accelerations are solved for in these. True: the independent velocities are chosen at each step, so
        that they never become dependent. All give the same accelerations, to a relative 1e-9.
    compiled: False to evaluate everything in Python, default True.
    progress: whether a progress bar is shown, default True.

    A world fails if its state leaves all bounds, its hard constraints contradict each other, or its control
    is not a finite number. Its simulation is terminated with a SimulationWarning; `status`,
    `termination_time` and `failure_reason` record it, and the other worlds continue. Raises
    SimulationError, ShapeError, StateError, ParameterError or UnknownNameError for invalid arguments,
    SimulationError if the recording does not fit into memory, and CompileError, at once, for a mechanism
    that is too large for machine code (5,000 generalised velocities). With compiled=False SimulationError is
    raised for more than 20,000 velocities or 5,000 pairs of shapes. Raises SimulationInterrupted, a
    KeyboardInterrupt, if it is interrupted (Ctrl-C); its `recording` is the recording up to there, of the
    initial state before the first step. Before the initial state is known, while the arguments are checked,
    an interrupt is a plain KeyboardInterrupt.
    """
    if compiled and isinstance(mechanism, Mechanism):
        check_compilable(mechanism, "the constraint solver" if is_restrained(mechanism) else "")
    elif isinstance(mechanism, Mechanism):
        check_interpretable(mechanism)
    count = worlds_of_control(control) if worlds is None else worlds
    initial = initial_state(mechanism, q0, v0, count, params)
    plan = simulation_settings(
        mechanism, initial.worlds, duration, step, integrator, record, stabilization, coordinate_reduction
    )
    control = control_or_default(mechanism, q0, control, initial.params)
    drive = control_input(mechanism, control, plan.steps, initial.worlds)
    watched = event_input(mechanism, events)
    first, then = f"preparing {mechanism.name}", f"simulating {mechanism.name}"
    done: Simulated | None = None
    try:
        check_coordinate_reduction(mechanism, initial, plan)
        warn_of_violations(mechanism, initial, plan)
        warn_of_penetrations(mechanism, initial)
        with progress_bar(first, then, initial.worlds * plan.steps, shown=progress) as tick:
            done = _on_fastest_path(mechanism, initial, drive, plan, tick, compiled, watched)
        motion, observed, path = done
        run = recording_of(mechanism, motion, observed, initial, plan, _attributes(plan, drive, path))
        warn_of_failures(mechanism, initial, plan, motion)
    except KeyboardInterrupt as stop:
        raise _interrupted(mechanism, initial, drive, plan, stop, done) from None
    return run


def _interrupted(
    mechanism: Mechanism,
    initial: InitialState,
    drive: Control,
    plan: SimulationSettings,
    stop: KeyboardInterrupt,
    done: Simulated | None,
) -> SimulationInterrupted:
    """The exception for a simulation that was interrupted, with the recording of the completed steps.

    done: the whole motion, if all steps are completed.
    """
    if done is not None:
        stop = MotionInterrupted(plan.steps, lambda: done.motion, done.path)
    elif not isinstance(stop, MotionInterrupted):  # before the first step
        stop = MotionInterrupted(
            0, lambda: trajectory_of([initial_segment(initial, drive)], drive, plan.step)
        )
    cut = replace(plan, steps=stop.steps)
    about = {"interrupted": 1, "intended_duration": plan.steps * plan.step}

    def record() -> xr.Dataset:
        with np.errstate(all="ignore"):
            motion = stop.motion()
            observed = _observed(mechanism, initial, cut, motion, stop.path)
        return recording_of(
            mechanism, motion, observed, initial, cut, _attributes(cut, drive, stop.path) | about
        )

    return SimulationInterrupted(
        f"the simulation of {mechanism.name!r} was interrupted at {cut.steps * cut.step:g} s of "
        f"{plan.steps * plan.step:g} s; `recording` of this exception holds what was recorded",
        record,
    )


def _observed(
    mechanism: Mechanism, initial: InitialState, plan: SimulationSettings, motion: Trajectory, path: str
) -> dict[str, np.ndarray]:
    """The derived quantities of a motion, computed by the path that computed the motion."""
    if path != IN_PYTHON:
        return derived_quantities_compiled(mechanism, initial, plan.wanted, motion)
    return state_quantities_in_python(mechanism, initial, plan.wanted, motion)


def _observed_at_once(
    mechanism: Mechanism, initial: InitialState, plan: SimulationSettings, motion: Trajectory, path: str
) -> dict[str, np.ndarray]:
    """As `_observed`; if it is interrupted, the motion is kept."""
    try:
        return _observed(mechanism, initial, plan, motion, path)
    except KeyboardInterrupt:
        raise MotionInterrupted(plan.steps, lambda: motion, path) from None


def _on_fastest_path(
    mechanism: Mechanism,
    initial: InitialState,
    drive: Control,
    plan: SimulationSettings,
    tick: ProgressCallback,
    compiled: bool,
    events: Sequence[NamedEvent] = (),
) -> Simulated:
    """The motion, its derived quantities, and the path: compiled, or in Python if something cannot be
    traced.
    """
    check_sleep(mechanism, str(plan.integrator) if plan.adaptive is None else plan.adaptive.method)
    with np.errstate(all="ignore"):  # failures are reported once, by name
        if compiled:
            try:
                motion, path = run_compiled(mechanism, initial, drive, plan, tick, events)
                return Simulated(motion, _observed_at_once(mechanism, initial, plan, motion, path), path)
            except TraceError as error:
                warnings.warn(f"this runs in Python, slowly: {error}", SimulationWarning, stacklevel=5)
        motion = run_in_python(mechanism, initial, drive, plan, tick, events)
        observed = _observed_at_once(mechanism, initial, plan, motion, IN_PYTHON)
        return Simulated(motion, observed, IN_PYTHON)


def run_in_python(
    mechanism: Mechanism,
    initial: InitialState,
    drive: Control,
    plan: SimulationSettings,
    tick: ProgressCallback,
    events: Sequence[NamedEvent] = (),
) -> Trajectory:
    """The motion of all worlds, computed on floats."""
    if plan.adaptive is not None:
        return integrate_worlds(
            mechanism,
            initial,
            partial(continuous_dynamics_in_python, mechanism, initial, plan),
            drive,
            plan,
            tick,
            events,
        )
    search = _search(mechanism, initial, plan, events, partial(event_values_in_python, events, initial))
    program = _program(mechanism, plan, bool(events))
    return roll_out(PythonExecutor(program, initial), initial, drive, plan, tick, search)


def _search(
    mechanism: Mechanism,
    initial: InitialState,
    plan: SimulationSettings,
    events: Sequence[NamedEvent],
    values: EventValues,
) -> EventSearch | None:
    """The search for events in steps of fixed size, or None without events."""
    if not events:
        return None
    integrator = str(plan.integrator)
    lag = plan.step / 2 if STEPPERS[integrator] is semi_implicit_euler else 0.0
    divided = has_divided_steps(mechanism, integrator)
    return EventSearch(mechanism, events, initial, values, plan.step, lag, divided)


def run_compiled(
    mechanism: Mechanism,
    initial: InitialState,
    drive: Control,
    plan: SimulationSettings,
    tick: ProgressCallback,
    events: Sequence[NamedEvent] = (),
) -> tuple[Trajectory, str]:
    """The motion of all worlds in machine code, and the path; a control function is compiled if it can be
    traced.
    """
    called = COMPILED_BUT_CONTROL if isinstance(drive, ControlFunction) else COMPILED
    try:
        return _run_compiled(mechanism, initial, drive, plan, tick, called, events)
    except MotionInterrupted as stop:
        if stop.path == IN_PYTHON:
            stop.path = called
        raise


def _run_compiled(
    mechanism: Mechanism,
    initial: InitialState,
    drive: Control,
    plan: SimulationSettings,
    tick: ProgressCallback,
    called: str,
    events: Sequence[NamedEvent],
) -> tuple[Trajectory, str]:
    """As `run_compiled`; `called` is the path of a control function that is not traced."""
    if plan.adaptive is not None:
        dynamics = continuous_dynamics_of_worlds(mechanism, initial, plan)
        return integrate_worlds(mechanism, initial, dynamics, drive, plan, tick, events), called
    search = _search(mechanism, initial, plan, events, event_values_compiled(mechanism, events, initial))
    program = _program(mechanism, plan, bool(events))
    if isinstance(drive, ControlFunction) and (traced := traced_control(program, drive, initial)) is not None:
        executor, control = traced

        def with_control(motion: Trajectory) -> Trajectory:
            return replace(motion, u=control(motion.clock * plan.step, motion.q, motion.v))

        try:
            motion = roll_out(executor, initial, zero_control(drive), plan, tick, search)
        except MotionInterrupted as stop:
            found = stop.motion
            raise MotionInterrupted(stop.steps, lambda: with_control(found()), COMPILED) from None
        try:
            return with_control(motion), COMPILED
        except KeyboardInterrupt:
            raise MotionInterrupted(plan.steps, lambda: with_control(motion), COMPILED) from None
    return roll_out(CompiledExecutor(program, initial), initial, drive, plan, tick, search), called


def _program(mechanism: Mechanism, plan: SimulationSettings, has_events: bool) -> StepProgram:
    """The step of a simulation; events need its impacts and stops of sliding."""
    return StepProgram(
        mechanism,
        plan.step,
        str(plan.integrator),
        stabilization=plan.stabilization,
        coordinate_reduction=plan.coordinate_reduction,
        logs_impacts=has_events and has_divided_steps(mechanism, str(plan.integrator)),
    )


def _attributes(plan: SimulationSettings, drive: Control, path: str) -> dict[str, Any]:
    """The settings as attributes of the recording: numbers and texts, which every file format can store.

    "drift" and "embedding" are the names of version 0.1; they are kept for one release.
    """
    found: dict[str, Any] = {
        "step": plan.step,
        "duration": plan.steps * plan.step,
        "record_every": plan.every,
    }
    if plan.adaptive is None:
        found["integrator"] = str(plan.integrator)
    else:
        found |= {"integrator": plan.adaptive.method, "rtol": plan.adaptive.rtol, "atol": plan.adaptive.atol}
    reduction = velocity_names(plan.coordinate_reduction)
    found |= {"path": path, "stabilization": plan.stabilization, "coordinate_reduction": reduction}
    found["drift"] = "projection" if plan.stabilization == "projection" else "stabilisation"
    found["embedding"] = reduction
    found["control"] = "function" if isinstance(drive, ControlFunction) else "held"
    return found

"""`simulate`: from a mechanism and a start to a labelled recording, on the fastest path there is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from zwang.api.compiled_rollout import (
    CompiledRoller,
    continuous_dynamics_of_worlds,
    derived_quantities_compiled,
    held_nothing,
    traced_control,
)
from zwang.api.control_input import ControlFunction, PrescribedControl, control_input
from zwang.api.error_controlled_rollout import continuous_dynamics_in_python, integrate_worlds
from zwang.api.initial_conditions import InitialState, initial_state
from zwang.api.progress import progress_bar
from zwang.api.settings_validation import SimulationSettings, named_speeds, simulation_settings
from zwang.api.termination import (
    check_coordinate_reduction,
    warn_of_failures,
    warn_of_penetrations,
    warn_of_violations,
)
from zwang.api.validation import check_compilable, is_restrained
from zwang.errors import SimulationInterrupted, SimulationWarning, TraceError
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.recording.dataset import recording_of
from zwang.simulation.rollout import (
    MotionInterrupted,
    ProgressCallback,
    PythonRoller,
    StepProgram,
    Trajectory,
    joined,
    roll_out,
    still,
)
from zwang.simulation.state_quantities import state_quantities_in_python

COMPILED, COMPILED_BUT_CONTROL, IN_PYTHON = "compiled", "compiled, control called in Python", "python"


@validated_arguments("duration", "step", "worlds", "params", "drift")
def simulate(
    mechanism: Mechanism,
    q0: Any = None,
    v0: Any = None,
    *,
    duration: float,
    step: float | None = None,
    integrator: Any = None,
    control: Any = None,
    worlds: int | None = None,
    params: Mapping[Any, Any] | None = None,
    record: Any = None,
    stabilization: str | None = None,
    coordinate_reduction: Any = False,
    compiled: bool = True,
    progress: bool = True,
) -> xr.Dataset:
    """The motion over `duration` [s], recorded over (world, time, ...).

    q0, v0: (nq,), (nv,), with worlds in front if they differ, or dictionaries by coordinate; by default home, at rest.
    step [s], integrator: by default the mechanism's options. Of fixed step are "euler" (semi-implicit, joint damping
    implicit) and "rk4"; error-controlled "dop853", "radau", "lsoda" ..., or `zw.Adaptive(method, rtol, atol)`.
    control: drives the mechanism's inputs by name, or tau where it has none: numbers, arrays over the steps, or a function
    control(t, q, v) of one world; of fixed step, it is asked at the beginning of each step and held. Written with
    zwang.scalar's functions it becomes part of the machine code; else it is called in Python (see the attribute `path`).
    params: a value, or one a world, for each symbol of the mechanism. record: keep every k-th step, or
    {"every": k, "frames": [names], "constraints": True, "forces": True, "zwang": True, "gaps": True} for positions of frames, efforts of
    constraints, the forces of contacts and of constraints between points with where they act, the Zwang by body, and by how much
    constraints are open, too (or later, with `zw.examine`); by default all steps, or with very many worlds as many as 20 million
    numbers allow.
    drift: how exact constraints are kept. "projection", the default: after each step positions and speeds return to them;
    "stabilisation", that of "lsoda": their forces close gaps within some steps.
    embedding: how exact constraints act. False: by constraint forces. A list of essential speeds, names of the mechanism's or
    `zw.PointSpeed`s, as many as there are freedoms: accelerations are solved for in these, and no force. True: the essential speeds
    are chosen at each step, so that none becomes singular. All give the same accelerations, to a relative 1e-9.

    A world that cannot go on (it leaves every bound, its exact constraints contradict each other, its control is no number ...) stops,
    with a SimulationWarning, its `status`, `stop_time` and `stop_cause`, and the others go on.
    Raises SimulationError, ShapeError, StateError, ParameterError or UnknownNameError for a call that cannot be, SimulationError for more worlds
    or samples than there is memory for, and CompileError, at once, for a mechanism too large for machine code (5,000 speeds).
    SimulationInterrupted, a KeyboardInterrupt, when it is interrupted (Ctrl-C): its `recording` holds what was recorded.
    """
    if compiled and isinstance(mechanism, Mechanism):
        check_compilable(mechanism, "the constraint solver" if is_restrained(mechanism) else "")
    begin = initial_state(mechanism, q0, v0, worlds, params)
    plan = simulation_settings(mechanism, begin.worlds, duration, step, integrator, record, stabilization, coordinate_reduction)
    drive = control_input(mechanism, control, plan.steps, begin.worlds)
    check_coordinate_reduction(mechanism, begin, plan)
    warn_of_violations(mechanism, begin, plan)
    warn_of_penetrations(mechanism, begin)
    first, then = f"preparing {mechanism.name}", f"simulating {mechanism.name}"
    try:
        with progress_bar(first, then, begin.worlds * plan.steps, shown=progress) as tick:
            motion, observed, path = _on_fastest_path(mechanism, begin, drive, plan, tick, compiled)
    except KeyboardInterrupt as stop:
        raise _interrupted(mechanism, begin, drive, plan, stop) from None
    run = recording_of(mechanism, motion, observed, begin, plan, _attributes(plan, drive, path))
    warn_of_failures(mechanism, begin, plan, motion)
    return run


def _interrupted(
    mechanism: Mechanism, begin: InitialState, drive: PrescribedControl | ControlFunction, plan: SimulationSettings, stop: KeyboardInterrupt
) -> SimulationInterrupted:
    """The exception for a run that was interrupted, with the recording of the steps that were done."""
    if not isinstance(stop, MotionInterrupted):  # before the first step
        stop = MotionInterrupted(0, lambda: joined([still(begin, drive)], drive, plan.step))
    cut = replace(plan, steps=stop.steps)
    about = {"interrupted": 1, "intended_duration": plan.steps * plan.step}

    def record() -> xr.Dataset:
        with np.errstate(all="ignore"):
            motion = stop.motion()
            observed = _observed(mechanism, begin, cut, motion, stop.path)
        return recording_of(mechanism, motion, observed, begin, cut, _attributes(cut, drive, stop.path) | about)

    return SimulationInterrupted(
        f"the simulation of {mechanism.name!r} was interrupted at {cut.steps * cut.step:g} s of "
        f"{plan.steps * plan.step:g} s; `recording` of this exception holds what was recorded",
        record,
    )


def _observed(
    mechanism: Mechanism, begin: InitialState, plan: SimulationSettings, motion: Trajectory, path: str
) -> dict[str, np.ndarray]:
    """What is observed of a motion, on the path that it came by."""
    if path != IN_PYTHON:
        return derived_quantities_compiled(mechanism, begin, plan.wanted, motion)
    return state_quantities_in_python(mechanism, begin, plan.wanted, motion)


def _observed_at_once(
    mechanism: Mechanism, begin: InitialState, plan: SimulationSettings, motion: Trajectory, path: str
) -> dict[str, np.ndarray]:
    """`_observed`; an interrupt leaves the motion."""
    try:
        return _observed(mechanism, begin, plan, motion, path)
    except KeyboardInterrupt:
        raise MotionInterrupted(plan.steps, lambda: motion, path) from None


def _on_fastest_path(
    mechanism: Mechanism, begin: InitialState, drive: PrescribedControl | ControlFunction, plan: SimulationSettings, tick: ProgressCallback, compiled: bool
) -> tuple[Trajectory, dict[str, np.ndarray], str]:
    """The motion, what is observed of it, and the path's name: compiled, or in Python where something cannot be traced."""
    with np.errstate(all="ignore"):  # a world that blows up is reported once, by name
        if compiled:
            try:
                motion, path = run_compiled(mechanism, begin, drive, plan, tick)
                return motion, _observed_at_once(mechanism, begin, plan, motion, path), path
            except TraceError as error:
                warnings.warn(f"this runs in Python, slowly: {error}", SimulationWarning, stacklevel=4)
        motion = run_in_python(mechanism, begin, drive, plan, tick)
        return motion, _observed_at_once(mechanism, begin, plan, motion, IN_PYTHON), IN_PYTHON


def run_in_python(
    mechanism: Mechanism, begin: InitialState, drive: PrescribedControl | ControlFunction, plan: SimulationSettings, tick: ProgressCallback
) -> Trajectory:
    """The motion of all worlds by the float reference."""
    if plan.adaptive is not None:
        return integrate_worlds(
            mechanism, begin, partial(continuous_dynamics_in_python, mechanism, begin, plan), drive, plan, tick
        )
    return roll_out(
        PythonRoller(_program(mechanism, plan), begin),
        begin,
        drive,
        plan,
        tick,
    )


def run_compiled(
    mechanism: Mechanism, begin: InitialState, drive: PrescribedControl | ControlFunction, plan: SimulationSettings, tick: ProgressCallback
) -> tuple[Trajectory, str]:
    """The motion of all worlds in machine code, and how; a control function is part of it where it can be traced."""
    called = COMPILED_BUT_CONTROL if isinstance(drive, ControlFunction) else COMPILED
    try:
        return _moved_compiled(mechanism, begin, drive, plan, tick, called)
    except MotionInterrupted as stop:
        if stop.path == IN_PYTHON:
            stop.path = called
        raise


def _moved_compiled(
    mechanism: Mechanism, begin: InitialState, drive: PrescribedControl | ControlFunction, plan: SimulationSettings, tick: ProgressCallback, called: str
) -> tuple[Trajectory, str]:
    """`run_compiled`; `called` is the path with a control function that is not traced."""
    if plan.adaptive is not None:
        return integrate_worlds(mechanism, begin, continuous_dynamics_of_worlds(mechanism, begin, plan), drive, plan, tick), called
    program = _program(mechanism, plan)
    if isinstance(drive, ControlFunction) and (traced := traced_control(program, drive, begin)) is not None:
        roller, control = traced

        def with_control(motion: Trajectory) -> Trajectory:
            return replace(motion, u=control(motion.clock * plan.step, motion.q, motion.v))

        try:
            return with_control(roll_out(roller, begin, held_nothing(drive), plan, tick)), COMPILED
        except MotionInterrupted as stop:
            found = stop.motion
            raise MotionInterrupted(stop.steps, lambda: with_control(found()), COMPILED) from None
    return roll_out(CompiledRoller(program, begin), begin, drive, plan, tick), called


def _program(mechanism: Mechanism, plan: SimulationSettings) -> StepProgram:
    return StepProgram(mechanism, plan.step, str(plan.integrator), stabilization=plan.stabilization, coordinate_reduction=plan.coordinate_reduction)


def _attributes(plan: SimulationSettings, drive: PrescribedControl | ControlFunction, path: str) -> dict[str, Any]:
    """The settings, as numbers and texts that every file format keeps."""
    found = {"step": plan.step, "duration": plan.steps * plan.step, "record_every": plan.every}
    if plan.adaptive is None:
        found["integrator"] = str(plan.integrator)
    else:
        found |= {"integrator": plan.adaptive.method, "rtol": plan.adaptive.rtol, "atol": plan.adaptive.atol}
    found["path"] = path
    found["drift"] = plan.stabilization
    found["embedding"] = named_speeds(plan.coordinate_reduction)
    found["control"] = "function" if isinstance(drive, ControlFunction) else "held"
    return found

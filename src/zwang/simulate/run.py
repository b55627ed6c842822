"""`simulate`: from a mechanism and a start to a labelled recording, on the fastest path there is."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np
import xarray as xr

from zwang.errors import SimulationWarning, TraceError
from zwang.gauss.mass_matrix import mass_matrix
from zwang.integrate.fixed import Point
from zwang.mechanism.mechanism import Mechanism
from zwang.simulate.adaptive import continuous, flow_in_python
from zwang.simulate.compiled import (
    CompiledRoller,
    compiled_flows,
    held_nothing,
    observed_compiled,
    traced_control,
)
from zwang.simulate.constraints import SETTLING_STEPS, start_faults
from zwang.simulate.control import Called, Held, control_of
from zwang.simulate.observe import observed_in_python
from zwang.simulate.progress import progress_bar
from zwang.simulate.record import dataset
from zwang.simulate.rollout import Motion, PythonRoller, StepProgram, Tick, roll_out
from zwang.simulate.settings import Settings, settings
from zwang.simulate.start import Start, start
from zwang.simulate.step import step as one_step
from zwang.simulate.step import stepping

OPEN, LOOKED_AT = (
    1e-6,
    16,
)  # [rad or m] of a gap, or of speeds, that is told; and in how many worlds it is looked for
COMPILED, COMPILED_BUT_CONTROL, IN_PYTHON = "compiled", "compiled, control called in Python", "python"


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
    drift: str | None = None,
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
    {"every": k, "frames": [names], "constraints": True, "forces": True} for positions of frames, efforts of constraints, and the
    forces of contacts and of constraints between points with where they act, too; by default all steps, or with very many
    worlds as many as 20 million numbers allow.
    drift: how exact constraints are kept. "projection", the default of fixed steps: after each step positions and speeds
    return to them; "stabilisation", that of error-controlled ones: their forces close gaps within some steps.

    A world that leaves every bound stops, with a SimulationWarning and its `status`, and the others go on.
    Raises SimulationError, ShapeError, StateError, ParameterError or UnknownNameError for a call that cannot be.
    """
    begin = start(mechanism, q0, v0, worlds, params)
    plan = settings(mechanism, begin.worlds, duration, step, integrator, record, drift)
    drive = control_of(mechanism, control, plan.steps, begin.worlds)
    _warn_of_gaps(mechanism, begin, plan)
    first, then = f"preparing {mechanism.name}", f"simulating {mechanism.name}"
    with progress_bar(first, then, begin.worlds * plan.steps, shown=progress) as tick:
        motion, observed, path = _on_fastest_path(mechanism, begin, drive, plan, tick, compiled)
    run = dataset(mechanism, motion, observed, begin, plan, _attributes(plan, drive, path))
    _warn_of_stops(mechanism, begin, plan, motion)
    return run


def _on_fastest_path(
    mechanism: Mechanism, begin: Start, drive: Held | Called, plan: Settings, tick: Tick, compiled: bool
) -> tuple[Motion, dict[str, np.ndarray], str]:
    """The motion, what is observed of it, and the path's name: compiled, or in Python where something cannot be traced."""
    with np.errstate(all="ignore"):  # a world that blows up is reported once, by name
        if compiled:
            try:
                motion, path = moved_compiled(mechanism, begin, drive, plan, tick)
                return motion, observed_compiled(mechanism, begin, plan.wanted, motion), path
            except TraceError as error:
                warnings.warn(f"this runs in Python, slowly: {error}", SimulationWarning, stacklevel=3)
        motion = moved_in_python(mechanism, begin, drive, plan, tick)
        return motion, observed_in_python(mechanism, begin, plan.wanted, motion), IN_PYTHON


def moved_in_python(
    mechanism: Mechanism, begin: Start, drive: Held | Called, plan: Settings, tick: Tick
) -> Motion:
    """The motion of all worlds by the float reference."""
    if plan.adaptive is not None:
        return continuous(
            mechanism, begin, partial(flow_in_python, mechanism, begin, plan.step), drive, plan, tick
        )
    return roll_out(
        PythonRoller(StepProgram(mechanism, plan.step, str(plan.integrator), drift=plan.drift), begin),
        begin,
        drive,
        plan,
        tick,
    )


def moved_compiled(
    mechanism: Mechanism, begin: Start, drive: Held | Called, plan: Settings, tick: Tick
) -> tuple[Motion, str]:
    """The motion of all worlds in machine code, and how; a control function is part of it where it can be traced."""
    called = COMPILED_BUT_CONTROL if isinstance(drive, Called) else COMPILED
    if plan.adaptive is not None:
        return continuous(
            mechanism, begin, compiled_flows(mechanism, begin, plan.step), drive, plan, tick
        ), called
    program = StepProgram(mechanism, plan.step, str(plan.integrator), drift=plan.drift)
    if isinstance(drive, Called) and (traced := traced_control(program, drive, begin)) is not None:
        roller, control = traced
        motion = roll_out(roller, begin, held_nothing(drive), plan, tick)
        return replace(motion, u=control(motion.clock * plan.step, motion.q, motion.v)), COMPILED
    return roll_out(CompiledRoller(program, begin), begin, drive, plan, tick), called


def _attributes(plan: Settings, drive: Held | Called, path: str) -> dict[str, Any]:
    """The settings, as numbers and texts that every file format keeps."""
    found = {"step": plan.step, "duration": plan.steps * plan.step, "record_every": plan.every}
    if plan.adaptive is None:
        found["integrator"] = str(plan.integrator)
    else:
        found |= {"integrator": plan.adaptive.method, "rtol": plan.adaptive.rtol, "atol": plan.adaptive.atol}
    found["path"] = path
    found["drift"] = plan.drift
    found["control"] = "function" if isinstance(drive, Called) else "held"
    return found


def _warn_of_gaps(mechanism: Mechanism, begin: Start, plan: Settings) -> None:
    """A warning where exact constraints do not hold at the start: they would close with a blow."""
    soon = "at once" if plan.drift == "projection" else f"within {SETTLING_STEPS} steps or so"
    for w in range(min(begin.worlds, LOOKED_AT) if mechanism.constraints else 0):
        row = {name: float(x[w]) for name, x in begin.params.items()}
        one = mechanism.subs(row) if row else mechanism
        (name, gap), (other, missed) = start_faults(one, begin.q[w], begin.v[w])
        if gap > OPEN:
            said = f"{name!r} is open by {gap:.3g} at the start of world {w}, and will close {soon}"
        elif missed > OPEN:
            said = f"the speeds at the start of world {w} miss {other!r} by {missed:.3g}, and will change to it {soon}"
        else:
            continue
        warnings.warn(f"{said}; start from zw.assemble(mechanism, q, v)", SimulationWarning, stacklevel=3)
        return


def _warn_of_stops(mechanism: Mechanism, begin: Start, plan: Settings, motion: Motion) -> None:
    """One warning for all worlds that stopped: when, at which joint, and what may help."""
    ends = motion.clock[:, -1, 0]
    stopped = np.flatnonzero(ends < plan.steps)
    if not len(stopped):
        return
    lines = [f"world {w} stopped at t = {ends[w] * plan.step:.6g} s: {_what_left(mechanism, begin, plan, motion, w)}"
             for w in stopped[:5]]  # fmt: skip
    others = ". The others went on" if len(stopped) < begin.worlds else ""
    more = f"; and {len(stopped) - 5} more worlds" if len(stopped) > 5 else ""
    mend = f"a smaller step than {plan.step:g} s" if plan.adaptive is None else "integrator='radau'"
    warnings.warn(
        "; ".join(lines) + more + f"{others}. Try {mend}, and look at what drives that joint; "
        "the recording keeps what came before (see its `status` and `stop_time`)",
        SimulationWarning,
        stacklevel=3,
    )


def _what_left(mechanism: Mechanism, begin: Start, plan: Settings, motion: Motion, w: int) -> str:
    """The joint whose speed is largest, or no number, after the step that failed, tried again from the last good state."""
    row = {name: float(x[w]) for name, x in begin.params.items()}
    one = mechanism.subs(row) if row else mechanism
    at = Point(motion.q[w, -1], motion.v[w, -1], motion.z[w, -1])
    moved = np.diag(np.asarray(mass_matrix(one.tree, at.q), dtype=float))
    if not moved.all():
        return f"nothing that the speed {one.speed_names[int(np.argmin(moved))]!r} moves has inertia; give it some, or an armature"
    integrator = "rk4" if plan.adaptive is not None else str(plan.integrator)
    t = motion.clock[w, -1, 0] * plan.step
    with np.errstate(all="ignore"):
        v = np.asarray(
            one_step(stepping(one, plan.step, integrator, plan.drift), at, motion.u[w, -1], t).v, dtype=float
        )
    grown = np.abs(v) if np.isfinite(v).all() else np.abs(at.v)
    k = int(np.argmax(grown))
    joint = next(j.name for j in mechanism.joints if j.v.start <= k < j.v.stop)
    return f"the speed of joint {joint!r} left every bound (before: {at.v[k]:.3g})"

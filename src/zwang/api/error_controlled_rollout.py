"""Motions by error-controlled integrators, world by world."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zwang.api.control_input import ControlFunction, PrescribedControl
from zwang.api.initial_conditions import InitialState
from zwang.api.settings_validation import SimulationSettings
from zwang.errors import SolveError
from zwang.integrator.adaptive_step import IntegrationInterrupted, integrate_error_controlled
from zwang.kinematics.configuration import configuration_rate, normalized_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import logical_not
from zwang.simulation.constraint_stage import hard_constraints, projected_onto_constraints
from zwang.simulation.rollout import (
    BOUND,
    MotionInterrupted,
    ProgressCallback,
    Trajectory,
    are_numbers,
    control_at,
    still,
)
from zwang.simulation.status import (
    CONSTRAINT_VIOLATED,
    CONTROL,
    INTERRUPTED,
    NONE,
    OUT_OF_BOUNDS,
    status_if,
    status_of_error,
    worst_status,
)
from zwang.simulation.step import state_derivative, step_settings

CONTINUOUS = "rk4"  # of the fixed steps the one whose rates are those of continuous time


class ContinuousDynamics(NamedTuple):
    """A world's motion as functions of t, q, v: (q_dot, v_dot, z_dot, fault) of z and u too, and (q, v, fault) on its exact constraints."""

    rates: Callable[..., Any]
    settled: Callable[..., Any]


def continuous_dynamics(mechanism: Mechanism, h: float, stabilization: str, coordinate_reduction: Any) -> ContinuousDynamics:
    """The motion on any scalar. Quaternions need not be unit; h [s] is the time scale on which constraints look ahead or settle."""
    s = step_settings(mechanism, h, CONTINUOUS, stabilization, coordinate_reduction)

    def found(t: Any, q: Any, v: Any, z: Any, u: Any) -> np.ndarray:
        v_dot, z_dot, status, _ = state_derivative(s, normalized_configuration(mechanism.tree, q), v, z, u, t)
        status = worst_status([status, status_if(logical_not(are_numbers(u)), CONTROL)])
        return np.concatenate([configuration_rate(mechanism.tree, q, v), v_dot, z_dot, [status]])

    def settled(t: Any, q: Any, v: Any) -> np.ndarray:
        q, v, still_open = projected_onto_constraints(s.constraint_model, normalized_configuration(mechanism.tree, q), v, t)
        return np.concatenate([q, v, [status_if(still_open, CONSTRAINT_VIOLATED)]])

    return ContinuousDynamics(found, settled)


def continuous_dynamics_in_python(mechanism: Mechanism, begin: InitialState, plan: SimulationSettings, w: int) -> ContinuousDynamics:
    """The flow of world w on floats; what they raise is a fault."""
    row = {name: float(x[w]) for name, x in begin.params.items()}
    plain = continuous_dynamics(mechanism.subs(row) if row else mechanism, plan.step, plan.stabilization, plan.coordinate_reduction)

    def found(*at: Any) -> np.ndarray:
        try:
            return plain.rates(*at)
        except SolveError as error:
            size = mechanism.nq + mechanism.nv + len(at[3])
            return np.append(np.full(size, np.nan), status_of_error(error))

    return ContinuousDynamics(found, plain.settled)


def integrate_worlds(
    mechanism: Mechanism,
    begin: InitialState,
    flows: Callable[[int], ContinuousDynamics],
    control: PrescribedControl | ControlFunction,
    settings: SimulationSettings,
    tick: ProgressCallback,
) -> Trajectory:
    """The motion of all worlds, world w by flows(w); a function for control is asked whenever the integrator wants.

    Raises MotionInterrupted for KeyboardInterrupt.
    """
    worlds: list[tuple[np.ndarray, ...]] = []
    try:
        for w in range(begin.worlds):
            worlds.append(_one_world(mechanism, begin, w, flows(w), control, settings, tick))
            if worlds[-1][-1] == INTERRUPTED:
                raise KeyboardInterrupt
    except KeyboardInterrupt:
        reached = max((int(np.sum(world[0][:, 0] >= settings.samples)) for world in worlds), default=1)
        steps = int(settings.samples[reached - 1])
        raise MotionInterrupted(steps, partial(_cut, worlds, begin, control, reached)) from None
    return Trajectory(*(np.stack(parts) for parts in zip(*worlds, strict=True)))


def _cut(worlds: list[tuple[np.ndarray, ...]], begin: InitialState, control: PrescribedControl | ControlFunction, samples: int) -> Trajectory:
    """The first samples of some worlds; the others stand at their start."""
    rows = [(*(x[:samples] for x in world[:-1]), world[-1]) for world in worlds]
    first = control_at(control, still(begin, control).state, 0, 1.0)[:, 0]
    for w in range(len(worlds), begin.worlds):
        state = (np.zeros(1), begin.q[w], begin.v[w], begin.z[w], first[w])
        rows.append((*(np.repeat(x[None], samples, axis=0) for x in state), np.array(INTERRUPTED)))
    return Trajectory(*(np.stack(parts) for parts in zip(*rows, strict=True)))


def _one_world(
    mechanism: Mechanism,
    begin: InitialState,
    w: int,
    flow: ContinuousDynamics,
    control: PrescribedControl | ControlFunction,
    settings: SimulationSettings,
    tick: ProgressCallback,
) -> tuple[np.ndarray, ...]:
    """(clock, q, v, z, u), each (samples, n), and the cause, of one world; rows after it stopped repeat its last."""
    h, integrator, tree = settings.step, settings.adaptive, mechanism.tree
    assert integrator is not None
    course = _Course(mechanism, flow, control, w, h, begin.worlds, tick)
    settles = settings.stabilization == "projection" and hard_constraints(mechanism)
    try:
        trajectory = integrate_error_controlled(
            course.rate, np.concatenate([begin.q[w], begin.v[w], begin.z[w]]), settings.times, integrator,
            discontinuities=_jumps(control, w, settings), is_admissible=lambda y: bool((np.abs(y) < BOUND).all()), tick=course.count,
            project=course.project if settles else None,
        )  # fmt: skip
    except IntegrationInterrupted as stop:
        trajectory, course.status = stop.trajectory, INTERRUPTED
    q, v, z = np.split(trajectory.y, [mechanism.nq, mechanism.nq + mechanism.nv], axis=1)
    q = np.stack([normalized_configuration(tree, row) for row in q]).astype(float)
    u = np.stack([course.drive(t, *state, since=t) for t, *state in zip(settings.times, q, v, strict=False)])
    clock = settings.samples.astype(float)[:, None]
    rest = len(settings.samples) - len(q)
    if rest:
        clock = np.append(clock[: len(q)], np.full((rest, 1), trajectory.end / h), axis=0)
    filled = [np.append(x, np.repeat(x[-1:], rest, axis=0), axis=0) for x in (q, v, z, u)]
    failure = course.status or OUT_OF_BOUNDS if rest or course.status == INTERRUPTED else NONE
    return clock, *filled, np.array(failure)


@dataclass
class _Course:
    """What the integrator asks of one world, and the fault met last."""

    mechanism: Mechanism
    flow: ContinuousDynamics
    control: PrescribedControl | ControlFunction
    w: int
    h: float
    worlds: int
    tick: ProgressCallback
    status: int = NONE
    done: int = 0

    def drive(self, t: float, q: Any, v: Any, since: float) -> np.ndarray:
        """The control, held since the last jump where it was given beforehand."""
        if isinstance(self.control, ControlFunction):
            return np.asarray(self.control(t, q, v), dtype=float)
        return self.control.during(round(since / self.h), 1, self.worlds)[self.w, 0]

    def rate(self, t: float, y: np.ndarray, since: float) -> np.ndarray:
        """y_dot; no numbers where there is a fault, which the integrator backs away from."""
        q, v, z = self._parts(y)
        u = self.drive(t, normalized_configuration(self.mechanism.tree, q).astype(float), v, since)
        *found, status = np.asarray(self.flow.rates(t, q, v, z, u), dtype=float)
        self.status = int(status)
        return np.array(found) if status == NONE else np.full(len(found), np.nan)

    def project(self, t: float, y: np.ndarray) -> np.ndarray:
        """y on the exact constraints; no numbers where they cannot be held."""
        q, v, z = self._parts(y)
        *found, status = np.asarray(self.flow.settled(t, q, v), dtype=float)
        if status != NONE:
            self.status = int(status)
            return np.full(len(y), np.nan)
        return np.concatenate([found, z])

    def count(self, t: float) -> None:
        """Tell how far it came."""
        self.tick(int(t / self.h) - self.done)
        self.done = int(t / self.h)

    def _parts(self, y: np.ndarray) -> list[np.ndarray]:
        nq = self.mechanism.nq
        return np.split(y, [nq, nq + self.mechanism.nv])


def _jumps(control: PrescribedControl | ControlFunction, w: int, settings: SimulationSettings) -> list[float]:
    """The times at which a control given beforehand changes."""
    if isinstance(control, ControlFunction):
        return []
    values = control.values[w if len(control.values) > 1 else 0, : settings.steps]
    changes = np.flatnonzero((np.diff(values, axis=0) != 0).any(axis=1)) + 1
    return (changes * settings.step).tolist()

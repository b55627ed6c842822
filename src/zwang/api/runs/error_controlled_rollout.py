"""Simulation by error-controlled integrators, one world after another."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual import derivative_along
from zwang.api.runs.friction_modes import FrictionModes
from zwang.constraint.context import StepForm
from zwang.constraint.coulomb_friction import SlidingModes, coulomb_frictions
from zwang.constraint.hard import hard_constraints
from zwang.errors import SolveError
from zwang.integrator.adaptive_step import (
    STAGNATED,
    TERMINATED,
    Adaptive,
    IntegrationEvents,
    IntegrationInterrupted,
    integrate_error_controlled,
)
from zwang.integrator.jacobian import difference_jacobian
from zwang.integrator.root_location import Crossing, without_rounding
from zwang.kinematics.configuration import configuration_rate, normalized_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import logical_not
from zwang.simulation.constrained import has_nonideal_constraints
from zwang.simulation.constraint_options import describe_constraints
from zwang.simulation.constraint_stage import held_velocity, stabilised
from zwang.simulation.controls import Control, ControlFunction
from zwang.simulation.events import (
    EventOccurrence,
    NamedEvent,
    ZeroTolerance,
    event_records,
    is_gradual,
    is_last,
    touched,
    warn_of_gradual_closing,
    warn_of_missing_values,
)
from zwang.simulation.hard_touches import HardTouches
from zwang.simulation.impact_stage import has_hard_contacts
from zwang.simulation.initial_state import InitialState
from zwang.simulation.rollout import (
    MotionInterrupted,
    ProgressCallback,
    Trajectory,
    control_at,
    initial_segment,
)
from zwang.simulation.settings import CoordinateReduction, SimulationSettings
from zwang.simulation.status import (
    CONSTRAINT_VIOLATED,
    INTERRUPTED,
    INVALID_CONTROL,
    NONE,
    NONIDEAL_FORCE,
    OUT_OF_BOUNDS,
    TERMINAL_EVENT,
    status_if,
    status_of_error,
    worst_status,
)
from zwang.simulation.step import StateDerivative, state_derivative, step_settings
from zwang.simulation.step_program import BOUND, are_finite, coordinate_bounds

CONTINUOUS = (
    "rk4"  # the fixed-step integrator without implicit terms: its derivative is that of continuous time
)


class ContinuousDynamics(NamedTuple):
    """The continuous-time dynamics of one world.

    derivative(t, q, v, z, u, signs): the array (q_dot, v_dot, z_dot, status). projected(t, q, v, signs): the
    array (q, v, status) on the hard constraints, with what is at rest at rest. friction(t, q, v, z, u,
    signs): of the m laws of Coulomb friction the sliding speeds, the friction forces and the bounds mu_s N
    (3 m,); signs (m,): of the sliding speeds, 0 at rest, see `SlidingModes`. jacobian(t, q,
    v, z, u): the exact derivatives of (q_dot, v_dot, z_dot) by (q, v, z, u), or None where the derivative
    contains loops, as those of the constraint solver.
    """

    derivative: Callable[..., Any]
    projected: Callable[..., Any]
    friction: Callable[..., Any]
    jacobian: Callable[..., Any] | None = None


def continuous_dynamics(
    mechanism: Mechanism, h: float, stabilization: str, coordinate_reduction: CoordinateReduction
) -> ContinuousDynamics:
    """The continuous-time dynamics on any scalar; quaternions need not have unit length.

    h [s]: the time scale of unilateral hard constraints and of Baumgarte stabilisation.
    """
    s = replace(step_settings(mechanism, h, CONTINUOUS, stabilization, coordinate_reduction), continuous=True)

    settling_time = StepForm(h, stabilization).settling_time

    def of_state(t: Any, q: Any, v: Any, z: Any, u: Any, signs: Any) -> StateDerivative:
        modes = SlidingModes(signs, False, settling_time) if len(signs) else None
        unit = normalized_configuration(mechanism.tree, q)
        return state_derivative(s, unit, v, z, u, t, modes=modes)

    def derivative(t: Any, q: Any, v: Any, z: Any, u: Any, signs: Any = ()) -> np.ndarray:
        found = of_state(t, q, v, z, u, signs)
        status = worst_status([found.status, status_if(logical_not(are_finite(u)), INVALID_CONTROL)])
        return np.concatenate([configuration_rate(mechanism.tree, q, v), found.v_dot, found.z_dot, [status]])

    def friction(t: Any, q: Any, v: Any, z: Any, u: Any, signs: Any) -> np.ndarray:
        found = of_state(t, q, v, z, u, signs).friction
        return (
            np.zeros(0) if found is None else np.concatenate([found.speeds, found.force, found.static_bound])
        )

    def projected(t: Any, q: Any, v: Any, signs: Any = ()) -> np.ndarray:
        unit = normalized_configuration(mechanism.tree, q)
        q, v, violated = stabilised(s.constraint_model, unit, v, t)
        if s.constraint_model is not None and len(signs):
            v = held_velocity(s.constraint_model, q, v, t, signs)
        return np.concatenate([q, v, [status_if(violated, CONSTRAINT_VIOLATED)]])

    return ContinuousDynamics(derivative, projected, friction)


def continuous_dynamics_in_python(
    mechanism: Mechanism, initial: InitialState, plan: SimulationSettings, w: int
) -> ContinuousDynamics:
    """The continuous-time dynamics of world w on floats; exceptions of the solver become a status."""
    row = initial.parameters_of_world(w)
    one = mechanism.subs(row) if row else mechanism
    plain = continuous_dynamics(one, plan.step, plan.stabilization, plan.coordinate_reduction)

    def derivative(*at: Any) -> np.ndarray:
        try:
            return plain.derivative(*at)
        except SolveError as error:
            size = mechanism.nq + mechanism.nv + len(at[3])
            return np.append(np.full(size, np.nan), status_of_error(error))

    def friction(*at: Any) -> np.ndarray:
        try:
            return plain.friction(*at)
        except SolveError:
            return np.full(3 * len(at[-1]), np.nan)

    exact = partial(_dual_jacobian, plain.derivative) if is_unconstrained(one) else None
    return ContinuousDynamics(derivative, plain.projected, friction, exact)


def is_unconstrained(mechanism: Mechanism) -> bool:
    """Whether nothing constrains the motion, so that its derivative is an explicit function of the state."""
    return not describe_constraints(mechanism)


def _dual_jacobian(derivative: Callable[..., Any], t: Any, *state: Any) -> np.ndarray:
    """The derivatives of (q_dot, v_dot, z_dot) by (q, v, z, u), by dual numbers.

    derivative: of `ContinuousDynamics`. state: q, v, z and u.
    """
    ends = np.cumsum([len(x) for x in state])[:-1]
    x = np.concatenate(state)

    def function(x: Any) -> Any:
        return derivative(t, *np.split(x, ends))[:-1]

    columns = [derivative_along(function, x, unit)[1].astype(float) for unit in np.eye(len(x))]
    return np.stack(columns, axis=1)


def integrate_worlds(
    mechanism: Mechanism,
    initial: InitialState,
    dynamics: Callable[[int], ContinuousDynamics],
    control: Control,
    settings: SimulationSettings,
    tick: ProgressCallback,
    events: Sequence[NamedEvent] = (),
) -> Trajectory:
    """The motion of all worlds, world w by dynamics(w); a control function is called whenever the integrator
    needs it.

    Raises MotionInterrupted for KeyboardInterrupt.
    """
    worlds: list[tuple[np.ndarray, ...]] = []
    searches: list[_WorldEvents] = []
    tolerance, touches = ZeroTolerance(mechanism), HardTouches(mechanism, settings.step)
    try:
        for w in range(initial.worlds):
            params, zero = initial.parameters_of_world(w), np.zeros(len(events))
            searches.append(_WorldEvents(mechanism, events, params, [], tolerance, touches, zero))
            worlds.append(
                _one_world(mechanism, initial, w, dynamics(w), control, settings, tick, searches[w])
            )
            if worlds[-1][-1] == INTERRUPTED:
                raise KeyboardInterrupt
        motion = _stacked(worlds)
        occurrences = [search.occurrences for search in searches]
        records = event_records([e.name for e in events], occurrences, mechanism.nq, mechanism.nv)
        return replace(motion, events=records if events else None)
    except KeyboardInterrupt:
        reached = max((int(np.sum(world[0][:, 0] >= settings.samples)) for world in worlds), default=1)
        steps = int(settings.samples[reached - 1])
        raise MotionInterrupted(steps, partial(_truncated, worlds, initial, control, reached)) from None


def _truncated(
    worlds: list[tuple[np.ndarray, ...]], initial: InitialState, control: Control, samples: int
) -> Trajectory:
    """The first samples of the simulated worlds; the others keep their initial state."""
    rows = [(*(x[:samples] for x in world[:-1]), world[-1]) for world in worlds]
    first = control_at(control, initial_segment(initial, control).state, 0, 1.0)[:, 0]
    for w in range(len(worlds), initial.worlds):
        state = (np.zeros(1), initial.q[w], initial.v[w], initial.z[w], first[w])
        rows.append((*(np.repeat(x[None], samples, axis=0) for x in state), np.array(INTERRUPTED)))
    return _stacked(rows)


def _stacked(worlds: list[tuple[np.ndarray, ...]]) -> Trajectory:
    """The trajectory of worlds, each (clock, q, v, z, u, failure)."""
    clock, q, v, z, u, failure = (np.stack(parts) for parts in zip(*worlds, strict=True))
    return Trajectory(clock, q, v, z, u, failure)


def _one_world(
    mechanism: Mechanism,
    initial: InitialState,
    w: int,
    dynamics: ContinuousDynamics,
    control: Control,
    settings: SimulationSettings,
    tick: ProgressCallback,
    events: _WorldEvents,
) -> tuple[np.ndarray, ...]:
    """(clock, q, v, z, u), each (samples, n), and the status of one world; after a failure the last state is
    repeated.
    """
    h, tree = settings.step, mechanism.tree
    assert settings.adaptive is not None
    integrator = _with_bounded_steps(settings.adaptive, mechanism, h)
    integration = _WorldIntegration(mechanism, dynamics, control, w, h, initial.worlds, tick)
    count = len(coulomb_frictions(mechanism))
    integration.modes = FrictionModes(integration.friction, count, h) if count else None
    projects = settings.stabilization == "projection" and (count or hard_constraints(mechanism))
    others = len(initial.v[w]) + len(initial.z[w])
    bounds = np.concatenate([coordinate_bounds(tree), np.full(others, BOUND)])
    try:
        solution = integrate_error_controlled(
            integration.derivative, np.concatenate([initial.q[w], initial.v[w], initial.z[w]]),
            settings.times, integrator,
            discontinuities=_jumps(control, w, settings),
            is_admissible=lambda y: bool((np.abs(y) < bounds).all()), tick=integration.count,
            project=integration.projected if projects else None, modes=integration.modes,
            jacobian=integration.jacobian, events=events.of_integration(),
        )  # fmt: skip
    except IntegrationInterrupted as stop:
        solution, integration.status = stop.trajectory, INTERRUPTED
    q, v, z = np.split(solution.y, [mechanism.nq, mechanism.nq + mechanism.nv], axis=1)
    q = np.stack([normalized_configuration(tree, row) for row in q]).astype(float)
    u = np.stack(
        [
            integration.control_value(t, *state, since=t)
            for t, *state in zip(settings.times, q, v, strict=False)
        ]
    )
    clock = settings.samples.astype(float)[:, None]
    rest = len(settings.samples) - len(q)
    if rest:
        clock = np.append(clock[: len(q)], np.full((rest, 1), solution.end / h), axis=0)
    filled = [np.append(x, np.repeat(x[-1:], rest, axis=0), axis=0) for x in (q, v, z, u)]
    if solution.failure == STAGNATED and has_nonideal_constraints(mechanism):
        integration.status = NONIDEAL_FORCE
    if solution.failure == TERMINATED:
        return clock, *filled, np.array(TERMINAL_EVENT)
    failure = integration.status or OUT_OF_BOUNDS if rest or integration.status == INTERRUPTED else NONE
    return clock, *filled, np.array(failure)


def _with_bounded_steps(integrator: Adaptive, mechanism: Mechanism, h: float) -> Adaptive:
    """The integrator with steps of h [s] at most where there are hard contacts: these act only within about
    2 h of their closing, so that a longer step may pass through them.
    """
    if not has_hard_contacts(mechanism):
        return integrator
    return replace(integrator, max_step=min(integrator.max_step, h))


@dataclass(frozen=True)
class _WorldEvents:
    """The events of one world, with the values of its parameters, and what occurred."""

    mechanism: Mechanism
    events: Sequence[NamedEvent]
    params: dict[str, float]
    occurrences: list[EventOccurrence]
    tolerance: ZeroTolerance
    hard_touches: HardTouches
    zero: np.ndarray  # within what the values are zero, from the largest ones so far
    told: set[str] = field(default_factory=set)  # the events without values that were warned of
    gradual: set[str] = field(default_factory=set)  # those whose gradual closing was warned of
    # the rate of each value at the end of the last interval, by its time
    rates: defaultdict[int, dict[float, float]] = field(default_factory=lambda: defaultdict(dict))

    def of_integration(self) -> IntegrationEvents | None:
        """The events as functions of the time and the solution."""
        if not self.events:
            return None
        directions = [event.direction for event in self.events]
        return IntegrationEvents(self.values, directions, self.occurs, self.arrives, self.touches)

    def values(self, t: float, y: np.ndarray) -> np.ndarray:
        """The values of all events, zero where a body rests at a hard contact or limit."""
        found = np.array([float(event(t, *self._state(y), self.params)) for event in self.events])
        if np.isfinite(y).all():
            warn_of_missing_values(self.events, found, np.array(t), self.told)
        self.zero[:] = np.maximum(self.zero, self.tolerance.of(found))
        return without_rounding(found, self.zero)

    def arrives(self, t: float, index: int, before: float) -> None:
        """Warn of an event at a hard contact or limit, which closes gradually."""
        if is_gradual(before, 0.0, self.zero[index]):
            warn_of_gradual_closing(self.events[index], t, self.gradual)

    def touches(
        self, start: float, end: float, before: np.ndarray, after: np.ndarray,
        at: Callable[[float], np.ndarray],
    ) -> list[Crossing]:  # fmt: skip
        """The hard touches between these times, see `IntegrationEvents`."""
        found: list[Crossing] = []
        if not self.hard_touches.is_needed:
            return found
        for k, event in enumerate(self.events):
            ends = float(before[k]), float(after[k])
            t = touched(
                self.hard_touches, event, self.params, (start, end), ends, lambda t: self._state(at(t)),
                self.rates[k],
            )  # fmt: skip
            found += [] if t is None else [Crossing(t, k, ends[0] < 0)]
        return found

    def occurs(self, t: float, index: int, y: np.ndarray) -> bool:
        """Record an event; whether it ends the simulation of the world."""
        self.occurrences.append(EventOccurrence(index, t, *self._state(y)))
        return is_last(self.events[index], index, self.occurrences)

    def _state(self, y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        q, v, _ = np.split(y, [self.mechanism.nq, self.mechanism.nq + self.mechanism.nv])
        return normalized_configuration(self.mechanism.tree, q).astype(float), v


@dataclass
class _WorldIntegration:
    """The functions of one world that the integrator calls, and the last status."""

    mechanism: Mechanism
    dynamics: ContinuousDynamics
    control: Control
    w: int
    h: float
    worlds: int
    tick: ProgressCallback
    status: int = NONE
    done: int = 0
    since: float = 0.0
    modes: FrictionModes | None = None

    def control_value(self, t: float, q: Any, v: Any, since: float) -> np.ndarray:
        """The control at the time t; prescribed values are constant since the last jump, at the time
        `since`.
        """
        if isinstance(self.control, ControlFunction):
            return np.asarray(self.control(t, q, v), dtype=float)
        return self.control.during(round(since / self.h), 1, self.worlds)[self.w, 0]

    def derivative(self, t: float, y: np.ndarray, since: float) -> np.ndarray:
        """y_dot; NaN if the status is a failure, so that the integrator rejects the step.

        A state that is not finite follows from such a failure, whose status remains.
        """
        if not np.isfinite(y).all():
            return np.full(len(y), np.nan)
        q, v, z = self._parts(y)
        self.since = since
        u = self.control_value(t, normalized_configuration(self.mechanism.tree, q).astype(float), v, since)
        signs = () if self.modes is None else (self.modes.signs,)
        *values, status = np.asarray(self.dynamics.derivative(t, q, v, z, u, *signs), dtype=float)
        self.status = int(status)
        return np.array(values) if status == NONE else np.full(len(values), np.nan)

    def friction(self, t: float, y: np.ndarray, signs: np.ndarray) -> np.ndarray:
        """Sliding speeds, forces and bounds of the laws of Coulomb friction in these modes (3 m,)."""
        q, v, z = self._parts(y)
        unit = normalized_configuration(self.mechanism.tree, q).astype(float)
        u = self.control_value(t, unit, v, self.since)
        return np.asarray(self.dynamics.friction(t, q, v, z, u, signs), dtype=float)

    def jacobian(self, t: float, y: np.ndarray, since: float) -> np.ndarray:
        """The derivatives of y_dot by y: exact ones of the dynamics, and of a control function differences.

        Where exact ones are not known, with constraints, central differences of the derivative with bounded
        steps: a coordinate by 6e-6 rad or m, a velocity v by 6e-6 max(1, |v|).
        """
        q, v, z = self._parts(y)
        scales = np.concatenate([np.ones(len(q)), np.maximum(1, np.abs(v)), np.ones(len(z))])
        status = self.status
        if self.dynamics.jacobian is None:
            found = difference_jacobian(lambda y: self.derivative(t, y, since), y, scales)
            self.status = status
            return found
        unit = normalized_configuration(self.mechanism.tree, q).astype(float)
        u = self.control_value(t, unit, v, since)
        exact = np.asarray(self.dynamics.jacobian(t, q, v, z, u), dtype=float).reshape(len(y), -1)
        by_y, by_u = exact[:, : len(y)], exact[:, len(y) :]
        if not isinstance(self.control, ControlFunction) or not by_u.size:
            return by_y

        def control(y: np.ndarray) -> np.ndarray:
            q, v, _ = self._parts(y)
            return self.control_value(t, normalized_configuration(self.mechanism.tree, q).astype(float), v, t)

        return by_y + by_u @ difference_jacobian(control, y, scales)

    def projected(self, t: float, y: np.ndarray) -> np.ndarray:
        """y on the hard constraints; NaN if they cannot be satisfied."""
        q, v, z = self._parts(y)
        signs = () if self.modes is None else (self.modes.signs,)
        *values, status = np.asarray(self.dynamics.projected(t, q, v, *signs), dtype=float)
        if status != NONE:
            self.status = int(status)
            return np.full(len(y), np.nan)
        return np.concatenate([values, z])

    def count(self, t: float) -> None:
        """Report the progress up to the time t."""
        self.tick(int(t / self.h) - self.done)
        self.done = int(t / self.h)

    def _parts(self, y: np.ndarray) -> list[np.ndarray]:
        nq = self.mechanism.nq
        return np.split(y, [nq, nq + self.mechanism.nv])


def _jumps(control: Control, w: int, settings: SimulationSettings) -> list[float]:
    """The times at which a prescribed control changes [s]."""
    if isinstance(control, ControlFunction):
        return []
    values = control.values[w if len(control.values) > 1 else 0, : settings.steps]
    changes = np.flatnonzero((np.diff(values, axis=0) != 0).any(axis=1)) + 1
    return (changes * settings.step).tolist()

"""The impacts of hard contacts within a step: located in time, where the velocity jumps.

A step with hard contacts consists of parts:

    trial        a part over the rest of the step, in which all contacts act as constraints. It is accepted
                 where no contact acts on an approach faster than the resting speed: such a contact closes
                 within the step, by an impact.
    free         the same part, in which contacts that approach faster than the resting speed do not act. The
                 first of them closes at the root of its signed distance along the path; where none closes,
                 the part is accepted.
    to_impact    the part up to this time. There the velocity jumps, see `constraint.impact`; the rest of the
                 step follows as a trial.

After MOST_IMPACTS impacts in one step the trial is accepted in any case: what is left of the impacts, such as
the end of the bouncing of a ball, is without rebound.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.collision import candidate_pairs
from zwang.constraint.context import row_context
from zwang.constraint.impact import NEVER, earliest_closing, hard_contact_pairs, impact_rows
from zwang.constraint.rows import Rows
from zwang.dynamics.crba import crba_of
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.gauss import GaussProblem
from zwang.integrator.fixed_step import (
    State,
    StateSpace,
    SubStep,
    displacement_at,
    runge_kutta_4_part,
    semi_implicit_euler_part,
)
from zwang.kinematics.configuration import integrate_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import (
    absolute,
    clip,
    cond,
    equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    value_is_constant,
    where,
    while_loop,
)
from zwang.simulation.constraint_options import contact_enabled
from zwang.simulation.constraint_stage import ConstraintModel
from zwang.simulation.status import (
    INCONSISTENT_CONSTRAINTS,
    NONE,
    NOT_CONVERGED,
    status_if,
    worst_status,
)
from zwang.solver.solve import solve

MOST_IMPACTS = 20  # in one step; a row of six touching balls needs up to 15
LOCATION_TOLERANCE = 1e-9  # [parts] of the time of impact, whose error Newton's method then squares
LOCATION_ITERATIONS = 30
TRIAL, FREE, TO_IMPACT = 0.0, 1.0, 2.0

PARTS = {
    "euler": semi_implicit_euler_part,
    "implicitfast": semi_implicit_euler_part,
    "implicit": semi_implicit_euler_part,
    "rk4": runge_kutta_4_part,
}
"""The parts of a step of each integrator of fixed step size."""

PartDerivative = Callable[[Any, Any, Any, Any, Any], tuple[Any, Any, Any, Any]]
"""(v_dot, z_dot, status, closes) of (q, v, z, time after the beginning of the step, whether approaching
contacts act).
"""


class _Parts(NamedTuple):
    """The progress of a step.

    state: at the beginning of the next part, `elapsed` [s] after that of the step. size [s]: of that part.
    phase: TRIAL, FREE or TO_IMPACT. impacts: their number. status: of what was accepted. done: whether the
    step is complete.
    """

    state: State
    elapsed: Any
    size: Any
    phase: Any
    impacts: Any
    status: Any
    done: Any


def has_hard_contacts(mechanism: Mechanism) -> bool:
    """Whether a pair of shapes has a hard contact, so that impacts may occur."""
    return contact_enabled(mechanism) and bool(hard_contact_pairs(candidate_pairs(mechanism)))


def step_with_impacts(
    model: ConstraintModel,
    integrator: str,
    derivative: PartDerivative,
    space: StateSpace,
    state: State,
    t: Any,
) -> tuple[State, Any]:
    """The state and the status after one step of size model.h in which hard contacts may close by impacts.

    derivative: the state derivative, see `PartDerivative`. t [s]: the time at the beginning of the step.
    """
    h = model.h

    def iterate(s: _Parts) -> _Parts:
        statuses: list[Any] = []
        closings: list[Any] = []

        def at(q: Any, v: Any, z: Any, dt: Any) -> tuple[Any, Any]:
            v_dot, z_dot, status, closes = derivative(q, v, z, s.elapsed + dt, equal(s.phase, TRIAL))
            statuses.append(status)
            closings.append(closes)
            return v_dot, z_dot

        part = PARTS[integrator](at, space, s.state, s.size, h, s.elapsed <= 0)
        closes = logical_and(_any(closings), s.impacts < MOST_IMPACTS)
        share = cond(
            equal(s.phase, FREE),
            lambda: _closing_share(model, s.state, part, s.size, t + s.elapsed),
            lambda: 1.0,
        )
        after, impact_status = cond(
            equal(s.phase, TO_IMPACT),
            lambda: state_after_impact(model, part.end, t + s.elapsed + s.size),
            lambda: (part.end, 1.0 * NONE),
        )
        status = worst_status([*statuses, impact_status])
        return _next(s, part, after, closes, share, status, h)

    start = _Parts(_copied(state), 0.0, 1.0 * h, TRIAL, 0.0, 1.0 * NONE, 0.0 > 1.0)
    last = while_loop(lambda s: logical_not(s.done), iterate, start)
    return last.state, last.status


def _next(s: _Parts, part: SubStep, after: State, closes: Any, share: Any, status: Any, h: Any) -> _Parts:
    """The progress after a part: accepted, to be repeated, or followed by the rest of the step."""
    trial, free, to_impact = (equal(s.phase, phase) for phase in (TRIAL, FREE, TO_IMPACT))
    is_last = logical_or(logical_and(trial, logical_not(closes)), logical_and(free, share >= 1))
    # a failure ends the step, but not that of a part that is repeated
    failed = logical_and(logical_or(is_last, to_impact), status > NONE)
    done = logical_or(is_last, failed)
    accepted = State(part.end.q, part.step_velocity, part.end.z)
    moved = State(
        *(where(done, x, where(to_impact, y, z)) for x, y, z in zip(accepted, after, s.state, strict=True))
    )
    elapsed = where(to_impact, s.elapsed + s.size, s.elapsed)
    rest = maximum(h - elapsed, 0.0)
    size = where(to_impact, rest, where(free, share * s.size, s.size))
    phase = where(trial, FREE, where(free, TO_IMPACT, TRIAL))
    impacts = s.impacts + where(to_impact, 1.0, 0.0)
    return _Parts(moved, elapsed, size, phase, impacts, where(done, status, 1.0 * NONE), done)


def _closing_share(model: ConstraintModel, state: State, part: SubStep, size: Any, t: Any) -> Any:
    """The share of a part after which the first approaching contact closes; 1 where none does.

    Newton's method on the signed distance, from the beginning of the part: an overestimate leads past the
    root, from where the iteration approaches it without a change of sign, as gravity bends the path to the
    obstacle. A contact that would be passed through within the step is found, too.
    """
    pairs = hard_contact_pairs(candidate_pairs(model.mechanism))
    tree = model.mechanism.tree

    def closing(share: Any) -> Any:
        """The time until a contact closes, in parts, from the share of the path on."""
        x, rate = displacement_at(part.mean_rate, part.start_rate, part.end_rate, share, size)
        q = integrate_configuration(tree, state.q, x)
        context = row_context(
            model.mechanism,
            Kinematics(tree, q, rate),
            inverse_weights=model.weights,
            timestep=model.h,
            time=t,
        )
        return earliest_closing(context, pairs)

    def unfinished(s: tuple[Any, Any, Any]) -> Any:
        share, time, iterations = s
        at_end = logical_and(share >= 1, time > 0)
        at_beginning = logical_and(share <= 0, time <= 0)
        located = absolute(time) <= LOCATION_TOLERANCE * size
        finished = logical_or(located, logical_or(at_end, at_beginning))
        return logical_and(logical_not(finished), iterations < LOCATION_ITERATIONS)

    def iterate(s: tuple[Any, Any, Any]) -> tuple[Any, Any, Any]:
        share, time, iterations = s
        share = _newton_step(share, time, size)
        return share, closing(share), iterations + 1

    share, time, _ = while_loop(unfinished, iterate, (0.0, closing(0.0), 0.0))
    return where(time < NEVER / 2, _newton_step(share, time, size), 1.0)


def _newton_step(share: Any, time: Any, size: Any) -> Any:
    """The share after this time, within the part."""
    return clip(share + time / where(size > 0, size, 1.0), 0.0, 1.0)


def state_after_impact(model: ConstraintModel, state: State, t: Any) -> tuple[State, Any]:
    """The state with the velocity after the impact of the closed contacts, and the status of the solver."""
    mechanism = model.mechanism
    kinematics = Kinematics(mechanism.tree, state.q, state.v)
    context = row_context(mechanism, kinematics, inverse_weights=model.weights, timestep=model.h, time=t)
    rows = _only_active(impact_rows(context, hard_contact_pairs(candidate_pairs(mechanism))))
    problem = GaussProblem(
        crba_of(kinematics), np.zeros(mechanism.nv), tuple(velocity_parents(mechanism.tree))
    )
    solution = solve(problem, rows)
    status = worst_status(
        [
            status_if(solution.failed, NOT_CONVERGED),
            status_if(solution.inconsistent, INCONSISTENT_CONSTRAINTS),
        ]
    )
    return State(state.q, state.v + solution.acceleration, state.z), status


def _only_active(rows: Rows) -> Rows:
    """The active rows, where that is known."""
    return rows.only_active() if all(value_is_constant(active) for active in rows.active) else rows


def _any(conditions: list[Any]) -> Any:
    """Whether one of the conditions holds."""
    found: Any = conditions[0]
    for condition in conditions[1:]:
        found = logical_or(found, condition)
    return found


def _copied(state: State) -> State:
    """The state as arrays."""
    return State(*(np.array(x) for x in state))

"""Warnings about worlds: inconsistent or penetrating initial states, and worlds that failed, with reason and
remedy.
"""

from __future__ import annotations

import warnings

import numpy as np

from zwang.collision.pairs import candidate_pairs
from zwang.collision.penetration import deepest_penetration
from zwang.constraint.context import SETTLING_STEPS
from zwang.constraint.independent_velocities import check_velocity_count
from zwang.dynamics.crba import crba
from zwang.errors import SimulationWarning, SolveError
from zwang.integrator.adaptive_step import IMPLICIT
from zwang.integrator.fixed_step import State
from zwang.mechanism.lengths import translations
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar.backend import IterationLimitReached, limited_iterations
from zwang.simulation.constraint_options import describe_constraints
from zwang.simulation.constraint_stage import largest_violations
from zwang.simulation.initial_state import InitialState
from zwang.simulation.rollout import Trajectory
from zwang.simulation.settings import SimulationSettings
from zwang.simulation.status import (
    FAILURE_REASONS,
    INVALID_CONTROL,
    NONE,
    NOT_CONVERGED,
    OUT_OF_BOUNDS,
    TERMINAL_EVENT,
)
from zwang.simulation.step import StepResult, step, step_settings
from zwang.simulation.step_program import BOUND, coordinate_bounds

TOLERANCE = 1e-6  # violations and velocity residuals below it, by size of a row, are not reported
CHECKED_WORLDS = 16  # worlds whose initial states are checked
# iterations of solvers, and of the search for contact points of a pair, in a failed step that is repeated on
# floats, some seconds; and the pairs that are counted
REPEATED_ITERATIONS, ITERATIONS_OF_PAIR, COUNTED_PAIRS = 5000, 400, 200
REPORTED_WORLDS, REPORTED_NUMBERS = 5, 12  # worlds that are reported one by one; elements of a state


def check_coordinate_reduction(mechanism: Mechanism, initial: InitialState, plan: SimulationSettings) -> None:
    """Raises DescriptionError if the number of independent velocities differs from the degrees of freedom."""
    if not isinstance(plan.coordinate_reduction, bool):
        check_velocity_count(_of_world(mechanism, initial, 0), plan.coordinate_reduction, initial.q[0])


def warn_of_violations(
    mechanism: Mechanism, initial: InitialState, plan: SimulationSettings, stacklevel: int = 5
) -> None:
    """Warns of hard constraints that are violated in the initial state: their closing is an impact.

    stacklevel: of the warning, as for `warnings.warn`.
    """
    soon = "at once" if plan.stabilization == "projection" else f"within about {SETTLING_STEPS} steps"
    for w in range(min(initial.worlds, CHECKED_WORLDS) if mechanism.constraints else 0):
        position, velocity = largest_violations(_of_world(mechanism, initial, w), initial.q[w], initial.v[w])
        if position.relative > TOLERANCE:
            text = (
                f"constraint {position.name!r} is violated by {position.amount:.3g} at the start of world "
                f"{w}; it will close {soon}"
            )
        elif velocity.relative > TOLERANCE:
            text = (
                f"the velocities at the start of world {w} violate {velocity.name!r} by "
                f"{velocity.amount:.3g}; they will change {soon}"
            )
        else:
            continue
        warnings.warn(
            f"{text}; start from zw.assemble(mechanism, q, v)", SimulationWarning, stacklevel=stacklevel
        )
        return


def warn_of_penetrations(mechanism: Mechanism, initial: InitialState, stacklevel: int = 5) -> None:
    """Warns of shapes that penetrate each other deeply in the initial state: contact forces would be very
    large.

    stacklevel: of the warning, as for `warnings.warn`.
    """
    if not any("contacts" in part for part in describe_constraints(mechanism)):
        return
    states = np.unique(np.round(initial.q[:CHECKED_WORLDS], 12), axis=0, return_index=True)[1]
    pairs = None if initial.params else candidate_pairs(mechanism)
    for w in sorted(states.tolist()):
        one = _of_world(mechanism, initial, w)
        found = deepest_penetration(one, initial.q[w], pairs)
        if found is not None:
            warnings.warn(
                f"{found.a} and {found.b} overlap by {found.depth:.3g} m at the start of world {w}, "
                f"more than half the "
                "thickness of the thinner one: large contact forces will separate them in the "
                "direction of least "
                "depth; start from another configuration, or exclude the pair with zw.ContactExclude",
                SimulationWarning,
                stacklevel=stacklevel,
            )
            return


def warn_of_failures(
    mechanism: Mechanism, initial: InitialState, plan: SimulationSettings, motion: Trajectory
) -> None:
    """One warning for all worlds that failed: time, state, failure reason and remedy."""
    ends = motion.clock[:, -1, 0]
    stopped = np.flatnonzero((ends < plan.steps) & (motion.failure != TERMINAL_EVENT))
    if not len(stopped):
        return
    lines = [f"world {w} stopped at t = {ends[w] * plan.step:.6g} s: "
             f"{_reason(mechanism, initial, plan, motion, int(w))}"
             for w in stopped[:REPORTED_WORLDS]]  # fmt: skip
    more = f"; and {len(stopped) - REPORTED_WORLDS} more worlds" if len(stopped) > REPORTED_WORLDS else ""
    others = ". The others were simulated to the end" if len(stopped) < initial.worlds else ""
    warnings.warn(
        "; ".join(lines)
        + more
        + f"{others}. The recording contains the motion before that (see its `status`, `termination_time` "
        "and `failure_reason`)",
        SimulationWarning,
        stacklevel=5,
    )


def _reason(
    mechanism: Mechanism, initial: InitialState, plan: SimulationSettings, motion: Trajectory, w: int
) -> str:
    """The failure reason, with names: the failed step is repeated on floats, from the last valid state."""
    one, failure = _of_world(mechanism, initial, w), int(motion.failure[w])
    at = State(motion.q[w, -1], motion.v[w, -1], motion.z[w, -1])
    t = float(motion.clock[w, -1, 0]) * plan.step
    if failure == INVALID_CONTROL:
        return f"{FAILURE_REASONS[failure].description}; {FAILURE_REASONS[failure].remedy}"
    try:
        repeated = _repeated_step(one, plan, at, motion.u[w, -1], t)
    except SolveError as error:
        return f"{error} ({_state_text(one, at)})"
    except IterationLimitReached:
        reason = FAILURE_REASONS[failure]
        return f"{reason.description}; {reason.remedy} ({_state_text(one, at)})"
    if failure == OUT_OF_BOUNDS and int(repeated.status) in (NONE, OUT_OF_BOUNDS, NOT_CONVERGED):
        return _out_of_bounds(one, plan, at, repeated.state)
    failure = max(failure, int(repeated.status)) if failure == OUT_OF_BOUNDS else failure
    position, velocity = largest_violations(one, repeated.state.q, repeated.state.v, t + plan.step)
    named = ""
    if position.relative > TOLERANCE:
        named = f": {position.name!r} stays violated by {position.amount:.3g}"
    elif velocity.relative > TOLERANCE:
        named = f": the velocities violate {velocity.name!r} by {velocity.amount:.3g}"
    reason = FAILURE_REASONS[failure]
    return f"{reason.description}{named}; {reason.remedy} ({_state_text(one, at)})"


def _repeated_step(
    one: Mechanism, plan: SimulationSettings, at: State, u: np.ndarray, t: float
) -> StepResult:
    integrator = "rk4" if plan.adaptive is not None else str(plan.integrator)
    pairs = min(len(candidate_pairs(one)), COUNTED_PAIRS)
    most = REPEATED_ITERATIONS + ITERATIONS_OF_PAIR * pairs
    with np.errstate(all="ignore"), limited_iterations(most):
        return step(
            step_settings(one, plan.step, integrator, plan.stabilization, plan.coordinate_reduction), at, u, t
        )


def _out_of_bounds(one: Mechanism, plan: SimulationSettings, at: State, after: State) -> str:
    """The coordinate beyond its bound, or the joint with the largest velocity, or the one without inertia."""
    bounds = coordinate_bounds(one.tree)
    beyond = np.flatnonzero(np.abs(np.asarray(after.q, dtype=float)) >= bounds)
    if len(beyond) and (np.abs(np.asarray(after.v, dtype=float)) < BOUND).all():
        i = int(beyond[0])
        unit, remedy = "rad", "start from the same angle without its whole revolutions"
        if i in translations(one.tree).values():
            unit, remedy = "m", "use a larger unit of length"
        return (
            f"the coordinate {one.coordinate_names[i]!r} left its bound of {bounds[i]:.3g} {unit} (before: "
            f"{at.q[i]:.3g}); {remedy}, or check the forces that act on that joint"
        )
    moved = np.diag(np.asarray(crba(one.tree, at.q), dtype=float))
    if not moved.all():
        name = one.speed_names[int(np.argmin(moved))]
        return f"nothing that the speed {name!r} moves has inertia; give it some, or an armature"
    v = np.asarray(after.v, dtype=float)
    grown = np.abs(v) if np.isfinite(v).all() else np.abs(at.v)
    k = int(np.argmax(grown))
    joint = next(j.name for j in one.joints if j.v.start <= k < j.v.stop)
    if plan.adaptive is None:
        remedy = f"a smaller step than {plan.step:g} s"
    elif plan.adaptive.method not in IMPLICIT:
        remedy = "integrator='radau', if the motion is stiff"
    else:
        method = plan.adaptive.method
        remedy = f"tighter tolerances or a largest step, integrator=zw.Adaptive({method!r}, max_step=...)"
    return (
        f"the speed of joint {joint!r} left every bound (before: {at.v[k]:.3g}); try {remedy}, and "
        f"check the forces "
        "that act on that joint"
    )


def _state_text(one: Mechanism, at: State) -> str:
    """q and v by name, as text."""
    names = [*one.coordinate_names, *(f"{name}_dot" for name in one.speed_names)]
    shown = [f"{name} = {x:.4g}" for name, x in zip(names, [*at.q, *at.v], strict=True)]
    return (
        "in the state "
        + ", ".join(shown[:REPORTED_NUMBERS])
        + (", ..." if len(shown) > REPORTED_NUMBERS else "")
    )


def _of_world(mechanism: Mechanism, initial: InitialState, w: int) -> Mechanism:
    """The mechanism with the parameters of one world."""
    row = initial.parameters_of_world(w)
    return mechanism.subs(row) if row else mechanism

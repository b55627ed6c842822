"""What is told of worlds: constraints that do not hold and shapes that overlap at the start, and why worlds stopped, by name, state and mend."""

from __future__ import annotations

import warnings

import numpy as np

from zwang.api.initial_conditions import InitialState
from zwang.api.settings_validation import SimulationSettings
from zwang.collision.pairs import candidate_pairs
from zwang.collision.penetration import deepest_penetration
from zwang.constraint.independent_velocities import check_velocity_count
from zwang.dynamics.crba import crba
from zwang.errors import SimulationWarning, SolveError
from zwang.integrator.fixed_step import State
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.constraint_stage import SETTLING_STEPS, describe_constraints, violated_at_start
from zwang.simulation.rollout import Trajectory
from zwang.simulation.status import CONTROL, FAILURE_REASONS, NONE, NOT_CONVERGED, OUT_OF_BOUNDS
from zwang.simulation.step import StepResult, step, step_settings

OPEN, LOOKED_AT = (
    1e-6,
    16,
)  # [rad or m] of a gap, or of speeds, that is told; in how many worlds it is looked for
TOLD, SHOWN = 5, 12  # worlds told one by one; numbers of a state shown


def check_coordinate_reduction(mechanism: Mechanism, begin: InitialState, plan: SimulationSettings) -> None:
    """Raise DescriptionError where essential speeds are given that are not as many as the freedoms."""
    if not isinstance(plan.coordinate_reduction, bool):
        check_velocity_count(_of_world(mechanism, begin, 0), plan.coordinate_reduction, begin.q[0])


def warn_of_violations(mechanism: Mechanism, begin: InitialState, plan: SimulationSettings) -> None:
    """A warning where exact constraints do not hold at the start: they would close with a blow."""
    soon = "at once" if plan.stabilization == "projection" else f"within {SETTLING_STEPS} steps or so"
    for w in range(min(begin.worlds, LOOKED_AT) if mechanism.constraints else 0):
        (name, gap), (other, missed) = violated_at_start(_of_world(mechanism, begin, w), begin.q[w], begin.v[w])
        if gap > OPEN:
            said = f"{name!r} is open by {gap:.3g} at the start of world {w}, and will close {soon} if it can"
        elif missed > OPEN:
            said = f"the speeds at the start of world {w} miss {other!r} by {missed:.3g}, and will change to it {soon}"
        else:
            continue
        warnings.warn(f"{said}; start from zw.assemble(mechanism, q, v)", SimulationWarning, stacklevel=4)
        return


def warn_of_penetrations(mechanism: Mechanism, begin: InitialState) -> None:
    """A warning where shapes overlap deeply at the start: their contact would push them apart with a blow."""
    if not any("contacts" in part for part in describe_constraints(mechanism)):
        return
    states = np.unique(np.round(begin.q[:LOOKED_AT], 12), axis=0, return_index=True)[1]
    pairs = None if begin.params else candidate_pairs(mechanism)
    for w in sorted(states.tolist()):
        one = _of_world(mechanism, begin, w)
        found = deepest_penetration(one, begin.q[w], pairs)
        if found is not None:
            warnings.warn(
                f"{found.a} and {found.b} overlap by {found.depth:.3g} m at the start of world {w}, more than half the thinner is thick: "
                "they will be pushed apart hard, the way that is nearest; start from another configuration, or leave the pair out with "
                "zw.ContactExclude",
                SimulationWarning,
                stacklevel=4,
            )
            return


def warn_of_failures(mechanism: Mechanism, begin: InitialState, plan: SimulationSettings, motion: Trajectory) -> None:
    """One warning for all worlds that stopped: when, in which state, why, and what may help."""
    ends = motion.clock[:, -1, 0]
    stopped = np.flatnonzero(ends < plan.steps)
    if not len(stopped):
        return
    lines = [f"world {w} stopped at t = {ends[w] * plan.step:.6g} s: {_why(mechanism, begin, plan, motion, int(w))}"
             for w in stopped[:TOLD]]  # fmt: skip
    more = f"; and {len(stopped) - TOLD} more worlds" if len(stopped) > TOLD else ""
    others = ". The others went on" if len(stopped) < begin.worlds else ""
    warnings.warn(
        "; ".join(lines)
        + more
        + f"{others}. The recording keeps what came before (see its `status`, `stop_time` and `stop_cause`)",
        SimulationWarning,
        stacklevel=4,
    )


def _why(mechanism: Mechanism, begin: InitialState, plan: SimulationSettings, motion: Trajectory, w: int) -> str:
    """The cause, with names, after the step that failed is tried again on floats from the last good state."""
    one, failure = _of_world(mechanism, begin, w), int(motion.failure[w])
    at = State(motion.q[w, -1], motion.v[w, -1], motion.z[w, -1])
    t = float(motion.clock[w, -1, 0]) * plan.step
    if failure == CONTROL:
        return f"{FAILURE_REASONS[failure].what}; {FAILURE_REASONS[failure].mend}"
    try:
        tried = _again(one, plan, at, motion.u[w, -1], t)
    except SolveError as error:
        return f"{error} ({_state(one, at)})"
    if failure == OUT_OF_BOUNDS and int(tried.status) in (NONE, OUT_OF_BOUNDS, NOT_CONVERGED):
        return _what_left(one, plan, at, tried.point)
    failure = max(failure, int(tried.status)) if failure == OUT_OF_BOUNDS else failure
    (name, gap), (other, missed) = violated_at_start(one, tried.point.q, tried.point.v, t + plan.step)
    named = ""
    if max(gap, missed) > OPEN:
        named = (
            f": {name!r} stays open by {gap:.3g}"
            if gap > OPEN
            else f": the speeds miss {other!r} by {missed:.3g}"
        )
    return f"{FAILURE_REASONS[failure].what}{named}; {FAILURE_REASONS[failure].mend} ({_state(one, at)})"


def _again(one: Mechanism, plan: SimulationSettings, at: State, u: np.ndarray, t: float) -> StepResult:
    integrator = "rk4" if plan.adaptive is not None else str(plan.integrator)
    with np.errstate(all="ignore"):
        return step(step_settings(one, plan.step, integrator, plan.stabilization, plan.coordinate_reduction), at, u, t)


def _what_left(one: Mechanism, plan: SimulationSettings, at: State, after: State) -> str:
    """The joint whose speed is largest, or no number."""
    moved = np.diag(np.asarray(crba(one.tree, at.q), dtype=float))
    if not moved.all():
        return f"nothing that the speed {one.speed_names[int(np.argmin(moved))]!r} moves has inertia; give it some, or an armature"
    v = np.asarray(after.v, dtype=float)
    grown = np.abs(v) if np.isfinite(v).all() else np.abs(at.v)
    k = int(np.argmax(grown))
    joint = next(j.name for j in one.joints if j.v.start <= k < j.v.stop)
    mend = f"a smaller step than {plan.step:g} s" if plan.adaptive is None else "integrator='radau'"
    return f"the speed of joint {joint!r} left every bound (before: {at.v[k]:.3g}); try {mend}, and look at what drives that joint"


def _state(one: Mechanism, at: State) -> str:
    """q and v by name."""
    names = [*one.coordinate_names, *(f"{name}_dot" for name in one.speed_names)]
    shown = [f"{name} = {x:.4g}" for name, x in zip(names, [*at.q, *at.v], strict=True)]
    return "in the state " + ", ".join(shown[:SHOWN]) + (", ..." if len(shown) > SHOWN else "")


def _of_world(mechanism: Mechanism, begin: InitialState, w: int) -> Mechanism:
    """The mechanism with the parameters of one world."""
    row = {name: float(x[w]) for name, x in begin.params.items()}
    return mechanism.subs(row) if row else mechanism

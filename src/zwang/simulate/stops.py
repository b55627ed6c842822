"""What is told of worlds: constraints that do not hold and shapes that overlap at the start, and why worlds stopped, by name, state and mend."""

from __future__ import annotations

import warnings

import numpy as np

from zwang.constraint.essential import check_count
from zwang.contact.overlap import deepest_overlap
from zwang.contact.pairs import candidate_pairs
from zwang.errors import SimulationWarning, SolveError
from zwang.gauss.mass_matrix import mass_matrix
from zwang.integrate.fixed import Point
from zwang.mechanism.mechanism import Mechanism
from zwang.simulate.constraints import SETTLING_STEPS, restrictions, start_faults
from zwang.simulate.faults import CAUSES, CONTROL, LEFT, NONE, NOT_CONVERGED
from zwang.simulate.rollout import Motion
from zwang.simulate.settings import Settings
from zwang.simulate.start import Start
from zwang.simulate.step import Tried, step, stepping

OPEN, LOOKED_AT = (
    1e-6,
    16,
)  # [rad or m] of a gap, or of speeds, that is told; in how many worlds it is looked for
TOLD, SHOWN = 5, 12  # worlds told one by one; numbers of a state shown


def check_embedding(mechanism: Mechanism, begin: Start, plan: Settings) -> None:
    """Raise DescriptionError where essential speeds are given that are not as many as the freedoms."""
    if not isinstance(plan.embedding, bool):
        check_count(_of_world(mechanism, begin, 0), plan.embedding, begin.q[0])


def warn_of_gaps(mechanism: Mechanism, begin: Start, plan: Settings) -> None:
    """A warning where exact constraints do not hold at the start: they would close with a blow."""
    soon = "at once" if plan.drift == "projection" else f"within {SETTLING_STEPS} steps or so"
    for w in range(min(begin.worlds, LOOKED_AT) if mechanism.constraints else 0):
        (name, gap), (other, missed) = start_faults(_of_world(mechanism, begin, w), begin.q[w], begin.v[w])
        if gap > OPEN:
            said = f"{name!r} is open by {gap:.3g} at the start of world {w}, and will close {soon} if it can"
        elif missed > OPEN:
            said = f"the speeds at the start of world {w} miss {other!r} by {missed:.3g}, and will change to it {soon}"
        else:
            continue
        warnings.warn(f"{said}; start from zw.assemble(mechanism, q, v)", SimulationWarning, stacklevel=3)
        return


def warn_of_overlaps(mechanism: Mechanism, begin: Start) -> None:
    """A warning where shapes overlap deeply at the start: their contact would push them apart with a blow."""
    if not any("contacts" in part for part in restrictions(mechanism)):
        return
    states = np.unique(np.round(begin.q[:LOOKED_AT], 12), axis=0, return_index=True)[1]
    pairs = None if begin.params else candidate_pairs(mechanism)
    for w in sorted(states.tolist()):
        one = _of_world(mechanism, begin, w)
        found = deepest_overlap(one, begin.q[w], pairs)
        if found is not None:
            warnings.warn(
                f"{found.a} and {found.b} overlap by {found.depth:.3g} m at the start of world {w}, more than half the thinner is thick: "
                "they will be pushed apart hard, the way that is nearest; start from another configuration, or leave the pair out with "
                "zw.ContactExclude",
                SimulationWarning,
                stacklevel=3,
            )
            return


def warn_of_stops(mechanism: Mechanism, begin: Start, plan: Settings, motion: Motion) -> None:
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
        stacklevel=3,
    )


def _why(mechanism: Mechanism, begin: Start, plan: Settings, motion: Motion, w: int) -> str:
    """The cause, with names, after the step that failed is tried again on floats from the last good state."""
    one, cause = _of_world(mechanism, begin, w), int(motion.cause[w])
    at = Point(motion.q[w, -1], motion.v[w, -1], motion.z[w, -1])
    t = float(motion.clock[w, -1, 0]) * plan.step
    if cause == CONTROL:
        return f"{CAUSES[cause].what}; {CAUSES[cause].mend}"
    try:
        tried = _again(one, plan, at, motion.u[w, -1], t)
    except SolveError as error:
        return f"{error} ({_state(one, at)})"
    if cause == LEFT and int(tried.fault) in (NONE, LEFT, NOT_CONVERGED):
        return _what_left(one, plan, at, tried.point)
    cause = max(cause, int(tried.fault)) if cause == LEFT else cause
    (name, gap), (other, missed) = start_faults(one, tried.point.q, tried.point.v, t + plan.step)
    named = ""
    if max(gap, missed) > OPEN:
        named = (
            f": {name!r} stays open by {gap:.3g}"
            if gap > OPEN
            else f": the speeds miss {other!r} by {missed:.3g}"
        )
    return f"{CAUSES[cause].what}{named}; {CAUSES[cause].mend} ({_state(one, at)})"


def _again(one: Mechanism, plan: Settings, at: Point, u: np.ndarray, t: float) -> Tried:
    integrator = "rk4" if plan.adaptive is not None else str(plan.integrator)
    with np.errstate(all="ignore"):
        return step(stepping(one, plan.step, integrator, plan.drift, plan.embedding), at, u, t)


def _what_left(one: Mechanism, plan: Settings, at: Point, after: Point) -> str:
    """The joint whose speed is largest, or no number."""
    moved = np.diag(np.asarray(mass_matrix(one.tree, at.q), dtype=float))
    if not moved.all():
        return f"nothing that the speed {one.speed_names[int(np.argmin(moved))]!r} moves has inertia; give it some, or an armature"
    v = np.asarray(after.v, dtype=float)
    grown = np.abs(v) if np.isfinite(v).all() else np.abs(at.v)
    k = int(np.argmax(grown))
    joint = next(j.name for j in one.joints if j.v.start <= k < j.v.stop)
    mend = f"a smaller step than {plan.step:g} s" if plan.adaptive is None else "integrator='radau'"
    return f"the speed of joint {joint!r} left every bound (before: {at.v[k]:.3g}); try {mend}, and look at what drives that joint"


def _state(one: Mechanism, at: Point) -> str:
    """q and v by name."""
    names = [*one.coordinate_names, *(f"{name}_dot" for name in one.speed_names)]
    shown = [f"{name} = {x:.4g}" for name, x in zip(names, [*at.q, *at.v], strict=True)]
    return "in the state " + ", ".join(shown[:SHOWN]) + (", ..." if len(shown) > SHOWN else "")


def _of_world(mechanism: Mechanism, begin: Start, w: int) -> Mechanism:
    """The mechanism with the parameters of one world."""
    row = {name: float(x[w]) for name, x in begin.params.items()}
    return mechanism.subs(row) if row else mechanism

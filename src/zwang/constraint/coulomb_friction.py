"""Coulomb friction with a bound that follows the load: |f| <= mu_s N at rest, f = -mu N sign(u) in sliding.

Every law has a sliding speed u = T v and a friction force f along it, with the generalised force T^T f. Its
row T a = aref has the kind "friction", with the bound mu N. The load N depends on the accelerations and on
the forces of all rows, friction included. It is the fixed point N of the map from assumed to found loads,

    N_assumed  ->  solution of Gauss's problem with the bounds mu N_assumed  ->  N_found.

A law is set-valued at rest only. How a state counts as rest or as sliding is said by `SlidingModes`:

    none     implicit: the speed at the end of a time step, u + h u_dot, decides. A step that would reverse
             the sliding ends at rest, and a body at rest stays at rest (Moreau's time stepping).
    given    by the caller, for stages of a Runge-Kutta method and for continuous time: the sign of a law that
             slides is fixed, so that the force is smooth, and a law at rest holds.

A state of rest may have several solutions. A bracket whose guide carries the moment of its own friction, with
2 mu e / L > 1, holds, and without load and friction it may as well fall freely. So laws at rest stick first,
whatever the force, and one whose force exceeds mu_s N then has that bound. Rest is chosen where it is a
solution, also where the iteration from small loads would not come to it.

Source: Moreau, in Nonsmooth Mechanics and Applications (1988); Glocker, Set-Valued Force Laws (2001);
Anderson, J. ACM 12 (1965) 547 for the acceleration of the fixed-point iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.block_lu import inverse_and_determinant
from zwang.algebra.dual_control_flow import parts, tangent_array, value_of
from zwang.algebra.norms import by_precision, max_abs, norm
from zwang.algebra.selection import where_leaves
from zwang.constraint.context import RowContext
from zwang.constraint.hard import formula, row_inverse_weights, velocity_level_rows
from zwang.constraint.rows import Rows, concatenated, scalar_array
from zwang.constraint.softness import hard_softness_rows
from zwang.errors import NonIdealForceError
from zwang.mechanism.constraints import CoulombFriction, Pfaffian
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import (
    absolute,
    divide,
    equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    raise_if,
    sign,
    where,
    while_loop,
)

REST_SPEED = 1e-9  # [m/s or rad/s] of u; below it a law is at rest, and has the coefficient mu_s
BREAKAWAY = 1e-9  # relative difference within which a friction force has reached its bound
ITERATIONS = 60  # of the loads; 3 to 6 suffice, and more are needed near a paradox
TOLERANCE = 1e-12  # relative change of the loads at which the iteration ends
USABLE_CHANGE = 1e-8  # relative change that is accepted where rounding of the solver prevents a smaller one,
USABLE_CHANGE_WITH_CONTACTS = 1e-6  # beside hard contacts, whose redundant forces are known to 1e-7 or so,
SINGLE_USABLE_CHANGE = 1e-3  # and in single precision
UNLOADED = 2.0  # in place of the sign of slip of a row with the bound 0, which slips either way
CONTACT = ("contact", "cone")  # kinds of rows
RESOLVED = 30.0  # usable changes, by which loads must differ for their ratio to be known to 3 %
SMALLEST_LOAD = 1e-37  # [N], which single precision represents, too
STILL, SINGLE_STILL = 1e-9, 1e-4  # relative to free motion: sliding accelerations of laws that stick
SMALL_LOAD = 1e-4  # relative to the applied forces: changes of smaller loads are relative to this size,
SINGLE_SMALL_LOAD = 1e-2  # since loads that balance to zero have the rounding of these forces


class SlidingModes(NamedTuple):
    """How each law moves: signs (m,) of the sliding speeds, 0 for a law at rest.

    is_bounded: whether a law at rest has the bound mu_s N; otherwise it holds whatever the force, and the
    caller observes the force. settling_time [s]: time constant with which a law at rest removes a sliding
    speed, such as the rounding that is left when it comes to rest; None where the caller projects it away.
    """

    signs: np.ndarray
    is_bounded: bool
    settling_time: Any


class FrictionLaws(NamedTuple):
    """The m laws of a mechanism in one state: T (m, nv), sliding speeds u = T v (m,), their bias
    accelerations T_dot v (m,), and the coefficients mu and mu_s (m,).
    """

    laws: tuple[CoulombFriction, ...]
    T: np.ndarray
    speeds: np.ndarray
    bias: np.ndarray
    kinetic: np.ndarray
    static: np.ndarray


class FrictionState(NamedTuple):
    """What the friction laws do in one state: sliding speeds, friction forces, their bounds mu N in sliding
    and mu_s N at rest, each (m,).
    """

    speeds: np.ndarray
    force: np.ndarray
    bound: np.ndarray
    static_bound: np.ndarray


def coulomb_frictions(mechanism: Mechanism) -> tuple[CoulombFriction, ...]:
    """The laws of Coulomb friction that the options enable."""
    disabled = set(mechanism.options.disabled)
    if disabled & {"constraint", "frictionloss"}:
        return ()
    laws = (c for c in mechanism.constraints if isinstance(c, CoulombFriction))
    return tuple(c for c in laws if c.constraint is None or "equality" not in disabled)


def friction_laws(mechanism: Mechanism, q: Any, v: Any, t: Any = 0) -> FrictionLaws:
    """The laws of Coulomb friction at the state (q, v) and the time t [s]."""
    laws = coulomb_frictions(mechanism)
    T, bias = [], []
    for c in laws:
        if c.joint is not None:
            k = mechanism.joint(c.joint).v.start
            T.append(np.array([1 if i == k else 0 for i in range(mechanism.nv)]))
            bias.append(0)
        else:
            rows = velocity_level_rows(mechanism, Pfaffian(c.name, c.sliding), q, v, t)
            T.append(rows.A[0])
            bias.append(-rows.b[0])
    kinetic = [formula(mechanism, c.coefficient, q, t) for c in laws]
    given = [c.coefficient if c.static_coefficient is None else c.static_coefficient for c in laws]
    static = [formula(mechanism, x, q, t) for x in given]
    T = np.array(T).reshape(len(laws), mechanism.nv)
    return FrictionLaws(
        laws, T, T @ np.asarray(v), scalar_array(bias), scalar_array(kinetic), scalar_array(static)
    )


def sliding_signs(speeds: Any) -> np.ndarray:
    """The sign (m,) of each sliding speed; 0 at rest."""
    return scalar_array([where(absolute(u) <= REST_SPEED, 0.0, sign(u)) for u in speeds])


def released_signs(mechanism: Mechanism, signs: Any, friction: FrictionState | None) -> np.ndarray:
    """The signs (m,) of the sliding speeds, in which a law at rest whose force reaches mu_s N slides.

    A law with one coefficient for both keeps its sign: with the force at its bound it begins to slide alike.
    """
    if friction is None:
        return signs
    found = []
    for law, s, f, bound in zip(
        coulomb_frictions(mechanism), signs, friction.force, friction.static_bound, strict=True
    ):
        reached = logical_and(equal(s, 0), absolute(f) >= (1 - BREAKAWAY) * bound)
        found.append(s if law.static_coefficient is None else where(reached, -sign(f), s))
    return scalar_array(found)


def with_friction_rows(
    context: RowContext, rows: Rows, laws: FrictionLaws, modes: SlidingModes | None
) -> Rows:
    """The rows, followed by one friction row for each law, whose bound is still 0."""
    time = context.step.size if modes is None or modes.settling_time is None else modes.settling_time
    parts = [
        hard_softness_rows(
            law.name, "friction", T.reshape(1, -1), context.v, [0],
            inverse_weight=weight, bound=0.0, timestep=time,
        )
        for law, T, weight in zip(laws.laws, laws.T, row_inverse_weights(context, laws.T), strict=True)
    ]  # fmt: skip
    own = concatenated(parts, context.mechanism.nv)
    settles = modes is None or modes.settling_time is not None
    own = own.replaced(aref=own.aref - laws.bias if settles else -laws.bias)
    return concatenated([rows, own], context.mechanism.nv)


def laws_at_rest(laws: FrictionLaws, modes: SlidingModes | None) -> list[Any]:
    """Whether each law is at rest (m,)."""
    if modes is None:
        return [absolute(u) <= REST_SPEED for u in laws.speeds]
    return [equal(s, 0) for s in modes.signs]


def row_bounds(laws: FrictionLaws, modes: SlidingModes | None, loads: Any) -> list[Any]:
    """The bound (m,) of the friction row of each law, for the loads N (m,)."""
    if modes is None:
        pairs = zip(laws_at_rest(laws, modes), laws.static, laws.kinetic, strict=True)
        coefficients = [where(rest, static, kinetic) for rest, static, kinetic in pairs]
        return [mu * N for mu, N in zip(coefficients, loads, strict=True)]
    if not modes.is_bounded:
        return [where(equal(s, 0), np.inf, 0.0) for s in modes.signs]
    return [where(equal(s, 0), mu * N, 0.0) for s, mu, N in zip(modes.signs, laws.static, loads, strict=True)]


def is_still(modes: SlidingModes | None, aref: Any, acceleration: Any, free: Any) -> Any:
    """Whether all laws stick: none slides, and their sliding accelerations (m,) are the reference ones.

    free (m,): the sliding accelerations of the free motion, from which rounding is told.
    """
    largest, found = max_abs(np.asarray(free) - aref), 1.0 > 0.0
    for k, difference in enumerate(np.asarray(acceleration) - aref):
        found = logical_and(
            found, absolute(difference) <= by_precision(largest, STILL, SINGLE_STILL) * largest
        )
        found = found if modes is None else logical_and(found, equal(modes.signs[k], 0))
    return found


def sliding_force(laws: FrictionLaws, modes: SlidingModes | None, loads: Any) -> np.ndarray:
    """The friction force f = -mu N sign(u) (m,) of the laws that are known to slide; 0 for the others."""
    if modes is None:
        return np.zeros(len(laws.laws))
    return scalar_array([-s * mu * N for s, mu, N in zip(modes.signs, laws.kinetic, loads, strict=True)])


class FrictionResponse(NamedTuple):
    """What Gauss's problem gives for assumed loads: the loads N (m,), the forces (m,) of the friction rows,
    and whether they all stick, T a = aref, also those whose forces reach their bounds.
    """

    loads: np.ndarray
    row_force: np.ndarray
    is_still: Any


class _LoadIteration(NamedTuple):
    """The state of the fixed-point iteration with the same laws that stick.

    assumed, found (m,): the loads of the last iteration, and residual = found - assumed. next (m,): the loads
    assumed next. row_force (m,), is_still: see `FrictionResponse`; slips (m,): see `_slip`. feedback: |change
    of found| / |change of assumed|, the factor by which friction acts back on the loads; is_measured: whether
    no law sticks in one of these two solutions and slips in the other. change: the relative residual.
    converges: whether the loads are found.
    """

    next: np.ndarray
    assumed: np.ndarray
    found: np.ndarray
    row_force: np.ndarray
    is_still: Any
    slips: np.ndarray
    feedback: Any
    is_measured: Any
    change: Any
    iterations: Any
    converges: Any


class _LoadSearch(NamedTuple):
    """The state of the search for the laws that stick, and for the feedback.

    sticks (m,): 1 for a law at rest that holds whatever the force, else 0. begin: of the next iteration.
    last: the last one. probes: the number of the perturbation of the loads that is solved next, or 0.
    """

    sticks: np.ndarray
    begin: _LoadIteration
    last: _LoadIteration
    probes: Any
    done: Any


class _LoadProblem(NamedTuple):
    """The fixed-point problem of the loads: the laws with their modes, and `respond(loads, bounds)`, the
    solution of Gauss's problem with these bounds (m,) of the friction rows.

    force_size: the size of the applied generalised forces. usable_change: the relative change of the loads
    that is accepted in double precision.
    """

    laws: FrictionLaws
    modes: SlidingModes | None
    respond: Callable[[np.ndarray, Any], FrictionResponse]
    force_size: Any
    usable_change: float

    def start(self) -> _LoadSearch:
        """Without friction, but for laws at rest, which stick."""
        sticks = scalar_array([where(rest, 1.0, 0.0) for rest in laws_at_rest(self.laws, self.modes)])
        begin = _begin(np.zeros(len(sticks)))
        return _LoadSearch(sticks, begin, begin, 0.0, 0.0 > 1.0)

    def after(self, s: _LoadSearch) -> _LoadSearch:
        """The state after the iteration with the present laws that stick, or after one more perturbation."""
        last = while_loop(_unfinished, lambda x: self._iterated(x, s.sticks), s.begin)
        return where_leaves(s.probes > 0, _probed(s, last), self._ended(s.sticks, last))

    def _iterated(self, s: _LoadIteration, sticks: np.ndarray) -> _LoadIteration:
        """The state after the solution with the next assumed loads."""
        pairs = zip(sticks, row_bounds(self.laws, self.modes, s.next), strict=True)
        bounds = [where(x > 0, np.inf, bound) for x, bound in pairs]
        found, row_force, is_still = self.respond(s.next, bounds)
        residual, before = found - s.next, s.found - s.assumed
        usable, small = self._resolution(found)
        size = maximum(norm(found), maximum(small, SMALLEST_LOAD))
        change = divide(norm(residual), size)
        stagnates = logical_and(change >= s.change, change <= usable)
        # the last two iterates: N + (1 - share) r, with the share that makes the interpolated residual least
        difference = residual - before
        moved, length = norm(s.next - s.assumed), difference @ difference
        is_resolved = logical_and(s.iterations > 0, moved > RESOLVED * usable * size)
        share = where(is_resolved, divide(residual @ difference, maximum(length, SMALLEST_LOAD)), 0.0)
        following = scalar_array([maximum(x, 0.0) for x in found - share * (found - s.found)])
        feedback = where(
            is_resolved, divide(norm(found - s.found), maximum(moved, SMALLEST_LOAD)), s.feedback
        )
        slips = scalar_array([_slip(f, bound) for f, bound in zip(row_force, bounds, strict=True)])
        is_same = reduce(logical_and, [_is_same_slip(x, y) for x, y in zip(slips, s.slips, strict=True)])
        is_measured = logical_and(is_same, logical_or(is_resolved, s.is_measured))
        converges = logical_or(change <= TOLERANCE, stagnates)
        return _LoadIteration(
            following, s.next, found, row_force, is_still, slips, feedback, is_measured, change,
            s.iterations + 1, converges,
        )  # fmt: skip

    def _resolution(self, loads: np.ndarray) -> tuple[Any, Any]:
        """The relative change of the loads that is accepted, and the size of small loads."""
        usable = by_precision(loads[0], self.usable_change, SINGLE_USABLE_CHANGE)
        return usable, self.force_size * by_precision(loads[0], SMALL_LOAD, SINGLE_SMALL_LOAD)

    def _ended(self, sticks: np.ndarray, last: _LoadIteration) -> _LoadSearch:
        """The state after an iteration: of the laws that stick, the one whose force exceeds mu_s N the most
        gets this bound; if there is none, a feedback that is not known is measured.
        """
        usable, small = self._resolution(last.found)
        begins = self._begins_to_slide(sticks, last, usable * small)
        slides = reduce(logical_or, [x > 0 for x in begins])
        # loads that vanish, and two solutions of different modes, do not tell the feedback
        force_size = where(self.force_size > 0, self.force_size, 1.0)
        is_known, step = last.is_measured, []
        for x, N in zip(sticks, last.found, strict=True):
            is_known = logical_and(is_known, logical_or(x > 0, usable * small < N))
            step.append(where(x > 0, 0.0, RESOLVED * usable * maximum(N, force_size)))
        probes = logical_and(last.converges, logical_not(logical_or(is_known, last.is_still)))
        perturbed = _one_more(last, last.assumed + scalar_array(step))
        begin = where_leaves(slides, _begin(np.zeros(len(sticks))), perturbed)
        is_probe = where(logical_and(probes, logical_not(slides)), 1.0, 0.0)
        done = logical_not(logical_or(slides, probes))
        return _LoadSearch(sticks - begins, begin, last, is_probe, done)

    def _begins_to_slide(self, sticks: np.ndarray, last: _LoadIteration, noise: Any) -> np.ndarray:
        """1 for the law (m,) that sticks with a force that exceeds mu_s N the most, else 0."""
        if self.modes is not None and not self.modes.is_bounded:
            return np.zeros(len(sticks))
        laws = zip(sticks, last.row_force, self.laws.static, last.found, strict=True)
        excess = [
            where(x > 0, absolute(f) - (1 + BREAKAWAY) * mu * N - noise, -np.inf) for x, f, mu, N in laws
        ]
        largest = reduce(maximum, excess)
        return scalar_array([where(logical_and(equal(x, largest), x > 0), 1.0, 0.0) for x in excess])


def _begin(loads: np.ndarray) -> _LoadIteration:
    """The state before an iteration that begins with these loads (m,)."""
    none, no = np.zeros(len(loads)), 0.0 > 1.0
    return _LoadIteration(loads, none, none, none, no, none, 0.0, no, np.inf, 0.0, no)


def _one_more(s: _LoadIteration, loads: np.ndarray) -> _LoadIteration:
    """The state before an iteration that ends after one solution, with these loads (m,)."""
    return s._replace(next=loads, iterations=ITERATIONS - 1.0, converges=0.0 > 1.0)


def _unfinished(s: _LoadIteration) -> Any:
    return logical_and(logical_not(s.converges), s.iterations < ITERATIONS)


def _slip(force: Any, bound: Any) -> Any:
    """The sign of the force of a friction row that has reached its bound, 0 below it, `UNLOADED` if the bound
    is 0.
    """
    reached = where(absolute(force) >= (1 - BREAKAWAY) * bound, sign(force), 0.0)
    return where(bound > 0, reached, UNLOADED)


def _is_same_slip(x: Any, y: Any) -> Any:
    """Whether a law sticks in two solutions, or may slip in the same direction in both."""
    return logical_or(equal(x, y), equal(absolute(x * y), UNLOADED))


def _probed(s: _LoadSearch, perturbed: _LoadIteration) -> _LoadSearch:
    """The state after the solution with perturbed loads: the feedback, and the next perturbation, by the
    power method.
    """
    step, change = norm(perturbed.assumed - s.last.assumed), perturbed.found - s.last.found
    feedback, scale = divide(norm(change), step), divide(step, maximum(norm(change), SMALLEST_LOAD))
    following = scalar_array([maximum(x, 0.0) for x in s.last.assumed + scale * change])
    done = logical_or(s.probes >= len(change), equal(feedback, 0))
    last = s.last._replace(feedback=feedback)
    return s._replace(begin=_one_more(perturbed, following), last=last, probes=s.probes + 1, done=done)


def solve_loads(
    laws: FrictionLaws,
    modes: SlidingModes | None,
    respond: Callable[[np.ndarray, Any], FrictionResponse],
    rows: Rows,
    force_size: Any,
) -> tuple[np.ndarray, Any]:
    """The loads N (m,) that `respond` finds for the bounds mu N of the friction rows, and whether they were
    found and are the only ones in the modes of sticking and sliding of their solution.

    respond(loads, bounds): the solution with the friction of these loads in sliding and these bounds (m,).
    force_size: the size of the applied generalised forces. Laws at rest stick, as long as their forces are at
    most mu_s N; of those with a greater force one after the other gets the bound mu_s N. The iteration begins
    without loads and is accelerated by Anderson's method of depth one. It ends where rounding of the solution
    with these rows prevents a smaller change. Where something slides, a feedback of one or more means that
    there is no solution, or more than one (Painleve's paradox). The feedback is that of the last two
    iterates; if loads vanish or a law sticks in one of these two only, it is that of a small perturbation of
    the loads. On floats NonIdealForceError is raised then, with the names of the laws.
    """
    has_contacts = any(hard and kind in CONTACT for hard, kind in zip(rows.hard, rows.kinds, strict=True))
    usable_change = USABLE_CHANGE_WITH_CONTACTS if has_contacts else USABLE_CHANGE
    problem = _LoadProblem(laws, modes, respond, force_size, usable_change)
    last = while_loop(lambda s: logical_not(s.done), problem.after, problem.start()).last
    is_only_one = logical_or(last.is_still, last.feedback < 1)
    is_solution = logical_and(last.converges, is_only_one)

    def failure() -> NonIdealForceError:
        names = ", ".join(repr(c.name) for c in laws.laws)
        if is_only_one:
            return NonIdealForceError(
                f"the friction forces of {names} were not found in {ITERATIONS} iterations: the loads still "
                f"change by {float(last.change):.3g} of their size; give the hard constraints a softness"
            )
        return NonIdealForceError(
            f"the friction forces of {names} have no solution, or more "
            f"than one, in this state: the feedback of friction on the load is {float(last.feedback):.3g} "
            "(Painleve paradox, or jamming); lower the coefficient of friction"
        )

    raise_if(logical_not(is_solution), failure)
    return last.assumed, is_solution


def differentiated_loads(loads: Any, found_loads: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """The loads (m,) as tangents, from their values: those of the fixed point N = found_loads(N).

    With the derivatives dF of found_loads at constant N, and F_N by N, dN = (1 - F_N)^-1 dF. The iteration
    that found the loads is not differentiated. Source: Griewank, Walther, Evaluating Derivatives (2008),
    Section 15.1.
    """
    values, count = [value_of(x) for x in loads], range(len(loads))

    def rates(derivatives: Any) -> list[Any]:
        return [parts(x)[1] for x in found_loads(tangent_array(values, derivatives))]

    dF = rates(np.zeros(len(values)))
    columns = [[x - y for x, y in zip(rates(unit), dF, strict=True)] for unit in np.eye(len(values))]
    matrix = [[(1.0 if i == j else 0.0) - columns[j][i] for j in count] for i in count]
    inverse, _ = inverse_and_determinant(matrix)
    return tangent_array(values, [sum(x * y for x, y in zip(row, dF, strict=True)) for row in inverse])

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

Source: Moreau, in Nonsmooth Mechanics and Applications (1988); Glocker, Set-Valued Force Laws (2001);
Anderson, J. ACM 12 (1965) 547 for the acceleration of the fixed-point iteration.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.block_lu import inverse_and_determinant
from zwang.algebra.dual_control_flow import parts, tangent_array, value_of
from zwang.algebra.norms import by_precision, norm
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
CONTACT = ("contact", "cone")  # kinds of rows
RESOLVED = 30.0  # usable changes, by which loads must differ for their ratio to be known to 3 %
SMALLEST_LOAD = 1e-37  # [N], which single precision represents, too


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


def row_bounds(laws: FrictionLaws, modes: SlidingModes | None, loads: Any) -> list[Any]:
    """The bound (m,) of the friction row of each law, for the loads N (m,)."""
    if modes is None:
        at_rest = [absolute(u) <= REST_SPEED for u in laws.speeds]
        pairs = zip(at_rest, laws.static, laws.kinetic, strict=True)
        coefficients = [where(rest, static, kinetic) for rest, static, kinetic in pairs]
        return [mu * N for mu, N in zip(coefficients, loads, strict=True)]
    if not modes.is_bounded:
        return [where(equal(s, 0), np.inf, 0.0) for s in modes.signs]
    return [where(equal(s, 0), mu * N, 0.0) for s, mu, N in zip(modes.signs, laws.static, loads, strict=True)]


def sliding_force(laws: FrictionLaws, modes: SlidingModes | None, loads: Any) -> np.ndarray:
    """The friction force f = -mu N sign(u) (m,) of the laws that are known to slide; 0 for the others."""
    if modes is None:
        return np.zeros(len(laws.laws))
    return scalar_array([-s * mu * N for s, mu, N in zip(modes.signs, laws.kinetic, loads, strict=True)])


class _LoadIteration(NamedTuple):
    """The state of the fixed-point iteration.

    assumed, found (m,): the loads of the last iteration, and residual = found - assumed. next (m,): the loads
    assumed next. feedback: |change of found| / |change of assumed|, the factor by which friction acts back on
    the loads. change: the relative residual.
    """

    next: np.ndarray
    assumed: np.ndarray
    found: np.ndarray
    feedback: Any
    change: Any
    iterations: Any
    done: Any


def solve_loads(
    laws: FrictionLaws, found_loads: Callable[[np.ndarray], np.ndarray], rows: Rows
) -> tuple[np.ndarray, Any]:
    """The loads N (m,) with N = found_loads(N), and whether they were found and are the only ones.

    The iteration begins without friction and is accelerated by Anderson's method of depth one. It ends where
    rounding of the solution with these rows prevents a smaller change. A feedback of one or more means that
    there is no solution, or more than one (Painleve's paradox). On floats NonIdealForceError is raised then,
    with the names of the laws.
    """
    m = len(laws.laws)
    has_contacts = any(hard and kind in CONTACT for hard, kind in zip(rows.hard, rows.kinds, strict=True))
    usable_change = USABLE_CHANGE_WITH_CONTACTS if has_contacts else USABLE_CHANGE

    def unfinished(s: _LoadIteration) -> Any:
        return logical_and(logical_not(s.done), s.iterations < ITERATIONS)

    def iterate(s: _LoadIteration) -> _LoadIteration:
        found = found_loads(s.next)
        residual, before = found - s.next, s.found - s.assumed
        change = divide(norm(residual), maximum(norm(found), SMALLEST_LOAD))
        usable = by_precision(found[0], usable_change, SINGLE_USABLE_CHANGE)
        stagnates = logical_and(change >= s.change, change <= usable)
        # the last two iterates: N + (1 - share) r, with the share that makes the interpolated residual least
        difference = residual - before
        moved, length = norm(s.next - s.assumed), difference @ difference
        is_resolved = logical_and(s.iterations > 0, moved > RESOLVED * usable * norm(found))
        share = where(is_resolved, divide(residual @ difference, maximum(length, SMALLEST_LOAD)), 0.0)
        following = scalar_array([maximum(x, 0.0) for x in found - share * (found - s.found)])
        feedback = where(
            is_resolved, divide(norm(found - s.found), maximum(moved, SMALLEST_LOAD)), s.feedback
        )
        done = logical_or(change <= TOLERANCE, stagnates)
        return _LoadIteration(following, s.next, found, feedback, change, s.iterations + 1, done)

    none = np.zeros(m)
    last = while_loop(unfinished, iterate, _LoadIteration(none, none, none, 0.0, np.inf, 0.0, 0.0 > 1.0))
    is_solution = logical_and(last.done, last.feedback < 1)

    def failure() -> NonIdealForceError:
        names = ", ".join(repr(c.name) for c in laws.laws)
        if last.feedback < 1:
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

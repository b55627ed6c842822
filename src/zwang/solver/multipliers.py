"""Hard equalities alone, A a = b, by the method of multipliers (augmented Lagrangian), on any scalar.

    a' = a - (M + A^T D A)^-1 (M (a - a_free) - A^T (f - D (A a - b))),     f' = f - D (A a' - b)

The matrix is factorised once; each iteration is a substitution. With D = 1 / rho large, one iteration
reduces the residual by the factor rho / (rho + A M^-1 A^T), so that three or four iterations suffice.
Redundant rows need no rank decision: they share their force, with the least f^T D^-1 f.

In some directions the factor may be near one, for two reasons. A light body between heavy ones makes its rows
alike in the metric of M; then passes with a smaller rho follow. Rounding leaves errors of the forces in
proportion to D, which the last pass, with the first rho, removes. Or the rows themselves are nearly
dependent: redundant ones slightly off the constraints, or those of a linkage near a dead centre. Forces in
such a direction cancel each other in all coordinates, and follow the slightest violation of the constraints.
Where their effect is no larger than that of a violation, as in the stages of a step, and the iterations have
hardly begun to find them, the rows are dependent: their residual without these forces is no motion of the
mechanism, and is added to b. Otherwise these forces are found as far as the iterations with the first rho go.
Source: Rockafellar, Math. Oper. Res. 1 (1976) 97, the proximal point method on the dual; `hard_contact` is
the same method with inequalities.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual_control_flow import parts, tangent_array, value_of, values_of
from zwang.algebra.factorization import Factors, factor, weighted_transpose
from zwang.algebra.norms import by_precision, max_abs, root_of_square
from zwang.algebra.selection import where_leaves
from zwang.constraint.rows import Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    absolute,
    cond,
    divide,
    equal,
    is_zero,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    where,
    while_loop,
)
from zwang.solver.coordinate_reduction import dependence_bound, row_scales
from zwang.solver.solution import Solution

SOFT_ITERATIONS = 200  # with the first rho
ITERATIONS = 20  # in the first pass, of which three or four suffice mostly, and in those with a smaller rho
LAST_ITERATIONS = 2  # with the first rho again
FIRST_PASS = -1  # stands for the pass before all those that follow where it has not converged
PASSES = 4  # the number of the last pass, after those with a smaller rho each time
# in double and in single precision
PENALTY_COMPLIANCE = 1e-5, 1e-3  # the first rho, relative to the inverse weight of a row
REDUCTION = 1e-3, 1e-1  # of rho
TOLERANCE = 1e-11, 1e-7  # of the change of the forces, relative
ROUNDING = 2e-15, 1e-6  # of a residual, relative to the terms that it is the sum of
DERIVATIVE_TOLERANCE = 1e-13, 1e-6  # of the changes that follow, of derivatives of accelerations, relative
STAGNATIONS = 2  # iterations in which rounding prevents a smaller change of these derivatives,
STAGNATING = 1e-7, 1e-4  # which is at most this, relative to them,
DERIVATIVE_ROUNDING = 1e-12, 1e-4  # or, where they are zero, relative to their largest change
SLOW_RESIDUAL = 1e-10, 1e-4  # of slow convergence, relative to its terms; smaller ones are rounding errors
LEAST_EFFECT = 0.03  # on a coordinate, relative to the forces, that is none if it is smaller
TOLD_RESIDUAL = 10  # relative to rounding errors; nothing is told by a smaller one
LEAST_ENTRY = (
    1e-13,
    1e-6,
)  # of a row, relative to the largest of its constraint; smaller ones are rounding errors
OWN_ENTRY = (
    3  # relative to the violation of the constraint, which adds as much to an entry, and less than this
)
SLIGHT_CHANGE = 0.1  # of the residual of dependent rows in the first pass, relative: fewer forces are found
CONTRADICTING_DERIVATIVE = 1e-9  # of a residual, relative, above which rows begin to contradict each other
INCONSISTENT_RESIDUAL = 0.1  # relative residual above which rows contradict each other
SMALLEST_REFERENCE = 1e-3  # [rad/s^2, m/s^2] this is relative to the residual of such accelerations at least
CONSISTENCY_TOLERANCE = 1e-5  # relative residual above which a row is named among those that contradict


class _MultiplierState(NamedTuple):
    """Accelerations a, forces f, residual A a - b, the last change of a, iterations so far, whether the
    method has terminated, and whether it did so above its tolerance, because of rounding. weight: the sum of
    D of all iterations, relative to the first. On tangents, derivative_change, largest_change: the smallest
    and the largest change of the derivatives of a so far; stagnations: in how many iterations rounding errors
    kept it from becoming smaller.
    """

    a: np.ndarray
    force: np.ndarray
    residual: np.ndarray
    step: np.ndarray
    iterations: Any = 0.0
    done: Any = 0.0 > 1.0
    stagnated: Any = 0.0 > 1.0
    weight: Any = 0.0
    derivative_change: Any = np.inf
    largest_change: Any = 0.0
    stagnations: Any = 0.0


class _Multipliers(NamedTuple):
    """The problem and its rows, the factors of M, and D (k,) of the first rho. scale: a number that is no
    constant, whose precision is that of the problem. tangents: see `solve_multipliers`.
    """

    problem: GaussProblem
    rows: Rows
    mass: Factors
    D: np.ndarray
    scale: Any
    tangents: bool

    def iteration(self, ratio: Any) -> Callable[[_MultiplierState], _MultiplierState]:
        """One iteration with ratio D, as a function of the state before it."""
        M, A, D = self.problem.M, self.rows.J, ratio * self.D
        factors = self.mass.update(A, D)
        tolerance, relative_rounding = (self.by_precision(x) for x in (TOLERANCE, ROUNDING))

        def iterate(s: _MultiplierState) -> _MultiplierState:
            # a' = a + da,  da = -(M + A^T D A)^-1 (M (a - a_free) - A^T f + A^T D (A a - b))
            gradient = M @ (s.a - self.problem.a_free) - A.T @ s.force + weighted_transpose(A, D, s.residual)
            step = -factors.solve(gradient)
            a = s.a + step
            # f' = f - D (A a - b + A da): D would multiply the rounding errors of A a' - b
            change = D * (s.residual + A @ step)
            force, residual = s.force - change, A @ a - self.rows.aref
            rounding = relative_rounding * self.terms(a, D)
            accurate = max_abs(change) <= tolerance * max_abs(force)
            stagnated = logical_and(max_abs(change) <= rounding, logical_not(accurate))
            done = logical_or(accurate, max_abs(change) <= rounding)
            after = s._replace(
                a=a, force=force, residual=residual, step=step, iterations=s.iterations + 1,
                done=done, stagnated=stagnated, weight=s.weight + ratio,
            )  # fmt: skip
            return _with_derivatives(after, step) if self.tangents else after

        return iterate

    def terms(self, a: np.ndarray, D: np.ndarray) -> Any:
        """The largest D (|b| + |A| |a|), of the terms of the residuals."""
        return max_abs(D * _magnitudes(self.rows.J, a, self.rows.aref))

    def by_precision(self, numbers: tuple[float, float]) -> Any:
        """The number for double or for single precision."""
        return by_precision(self.scale, *numbers)

    def slow_forces(self, s: _MultiplierState, ratio: Any) -> tuple[Any, Any, Any]:
        """Of the forces that converge slowly: whether they act on a coordinate, whether they do not because
        their rows depend on others but for a violation, and whether rounding errors are all that is left. The
        residual that is left tells them.
        """
        size = value_of(self.terms(s.a, self.D))
        slow, effect = self.effect(values_of(s.residual), size)
        act = logical_and(slow > self.by_precision(SLOW_RESIDUAL), effect >= LEAST_EFFECT)
        within_violation = effect <= value_of(dependence_bound(self.rows))
        # the iterations have hardly begun to find these forces
        slight = max_abs(self.D * self.change(s, ratio)) <= SLIGHT_CHANGE * max_abs(self.D * s.residual)
        rounds = slow <= TOLD_RESIDUAL * self.by_precision(ROUNDING)
        told = logical_and(slight, logical_not(rounds))
        dependent = logical_and(logical_and(told, within_violation), logical_not(act))
        if self.tangents:
            # forces that are left and that do not act change their direction: their derivatives do act
            size = _derivative_size(self.rows.J, s.a, self.D)
            slow, effect = self.effect(_derivatives(s.residual), size)
            rates_act = logical_and(slow > self.by_precision(SLOW_RESIDUAL), effect >= LEAST_EFFECT)
            act = where(dependent, False, logical_or(act, rates_act))
            rounds = logical_and(rounds, slow <= self.by_precision(SLOW_RESIDUAL))
        return act, dependent, rounds

    def effect(self, residual: Any, size: Any) -> tuple[Any, Any]:
        """The forces D r of a residual r (k,), relative to its terms, of this size, and their largest effect
        on a coordinate, less rounding errors, relative to the largest of them: small if they cancel each
        other in all coordinates.

        It is told as the force that has it in the row with the largest entry there. Rows are scaled so that
        the largest entry of each constraint is 1.
        """
        rows, scales = self.rows, values_of(row_scales(self.rows))
        A, violation = values_of(rows.J), scales * values_of(rows.position)
        forces = values_of(self.D) * np.array(residual)
        entries = [max_abs(scales * column) for column in A.T]
        # smaller entries stem from the violation, as those of the base of a loop that leaves its plane by it
        own = {name: max_abs([x for x, n in zip(violation, rows.names, strict=True) if n == name])
               for name in rows.names}  # fmt: skip
        bounds = [maximum(self.by_precision(LEAST_ENTRY), OWN_ENTRY * own[name]) for name in rows.names]
        weights = np.array([divide(x, bound) for x, bound in zip(scales, bounds, strict=True)])
        counts = [max_abs(weights * column) > 1 for column in A.T]
        effects = [where(counted, divide(x, where(counted, y, 1.0)), 0.0)
                   for x, y, counted in zip(A.T @ forces, entries, counts, strict=True)]  # fmt: skip
        largest = max_abs([divide(x, y) for x, y in zip(forces, scales, strict=True)])
        left = maximum(max_abs(effects) - self.by_precision(ROUNDING) * size, 0.0)
        slow = divide(max_abs(forces), where(size > 0, size, 1.0))
        return slow, divide(left, where(largest > 0, largest, 1.0))

    def change(self, s: _MultiplierState, ratio: Any) -> np.ndarray:
        """By how much all iterations have changed the residual of forces that converge slowly (k,): each one
        in proportion to its D, the last one with ratio D.
        """
        return divide(s.weight, ratio) * (self.rows.J @ s.step)

    def without_remainder(self, s: _MultiplierState, ratio: Any) -> tuple[_MultiplierState, np.ndarray]:
        """The initial state, after the iterations of this one, and the remainder by which dependent rows
        contradict the others: the residual without the forces that converge slowly.
        """
        A, a = self.rows.J, np.array(self.problem.a_free)
        remainder = s.residual - self.change(s, ratio)
        residual = A @ a - self.rows.aref - remainder
        fresh = s._replace(a=a, force=0 * residual, residual=residual, weight=0.0, largest_change=0.0)
        return fresh, remainder


class _Passes(NamedTuple):
    """The state between passes with a rho of their own each. number: of the next one: `FIRST_PASS`; where it
    has not converged, 0 with the first rho again and further iterations, or, where the forces that converge
    slowly act on a coordinate, those from 1 with a smaller rho, and `PASSES` with the first rho again; the
    number after it means the end. After a pass that tells of dependent rows, `FIRST_PASS` follows again.
    ratio: of its D to the first. end: the iteration at which it ends. remainder (k,): by which dependent rows
    contradict the others, and which is therefore left of them.
    """

    state: _MultiplierState
    number: Any
    ratio: Any
    end: Any
    remainder: np.ndarray

    def after(self, m: _Multipliers) -> _Passes:
        """The state after one more pass, in which A a = b + remainder."""
        m = m._replace(rows=m.rows.replaced(aref=m.rows.aref + self.remainder))
        is_first, is_last = equal(self.number, FIRST_PASS), equal(self.number, PASSES)

        def unfinished(s: _MultiplierState) -> Any:
            return logical_and(logical_or(is_last, logical_not(s.done)), s.iterations < self.end)

        start = self.state._replace(derivative_change=np.inf, stagnations=0.0)
        s = while_loop(unfinished, m.iteration(self.ratio), start)
        # derivatives that have converged before the last pass take more iterations to show it again
        s = s._replace(done=logical_or(s.done, logical_and(is_last, self.state.done)))
        may_end = logical_or(is_last, equal(self.number, 0))
        is_slow = logical_not(logical_or(may_end, s.done))
        acts, dependent, rounds = cond(
            is_slow, lambda: m.slow_forces(s, self.ratio), lambda: (False, False, False)
        )
        rounds = logical_and(rounds, is_first)
        s = s._replace(done=logical_or(s.done, rounds), stagnated=logical_or(s.stagnated, rounds))
        dependent = logical_and(dependent, s.iterations < SOFT_ITERATIONS)
        s, more = cond(dependent, lambda: m.without_remainder(s, self.ratio), lambda: (s, 0 * self.remainder))
        ends = logical_or(may_end, logical_and(is_first, s.done))
        number = where(s.done, 1.0 * PASSES, self.number + 1)
        number = where(logical_and(is_first, is_slow), where(acts, 1.0, 0.0), number)
        number = where(dependent, 1.0 * FIRST_PASS, number)
        returns = logical_and(equal(number, PASSES), logical_not(ends))
        smaller = divide(where(is_first, 1.0, self.ratio), m.by_precision(REDUCTION))
        constant = logical_or(returns, logical_or(dependent, equal(number, 0)))
        further = s.iterations + where(returns, 1.0 * LAST_ITERATIONS, 1.0 * ITERATIONS)
        return _Passes(
            s,
            where(ends, PASSES + 1.0, number),
            where(constant, 1.0, smaller),
            where(equal(number, 0), 1.0 * SOFT_ITERATIONS, further),
            self.remainder + more,
        )


def solve_multipliers(problem: GaussProblem, rows: Rows, *, tangents: bool = False) -> Solution:
    """Acceleration that minimises Z(a) under hard equalities, with their forces, by the method of
    multipliers.

    Rows that contradict each other are satisfied in the least-squares sense; the solution is then marked as
    inconsistent and has not converged. tangents: whether the data are tangents; the iteration then goes on
    until the derivatives of the accelerations have converged, too.
    """
    A, initial = rows.J, np.array(problem.a_free)
    residual = A @ initial - rows.aref
    scale = value_of(max_abs(residual))
    compliance = by_precision(scale, *PENALTY_COMPLIANCE)
    vanishes = [all(is_zero(x) for x in row) for row in A]
    D = scalar_array([0 if zero else divide(1, compliance * w)
                      for w, zero in zip(rows.inverse_weight, vanishes, strict=True)])  # fmt: skip
    multipliers = _Multipliers(problem, rows, factor(problem.M, problem.parents), D, scale, tangents)
    start = _MultiplierState(initial, np.zeros(len(rows)), residual, np.zeros(len(initial)))
    passes = _Passes(start, 1.0 * FIRST_PASS, 1.0, 1.0 * ITERATIONS, np.zeros(len(rows)))
    end = while_loop(lambda p: p.number <= PASSES, lambda p: p.after(multipliers), passes)
    last = end.state
    # no force changes the residual of a row 0 a = b
    left = max_abs([b for b, zero in zip(rows.aref, vanishes, strict=True) if zero])
    last = last._replace(done=logical_and(last.done, left <= SMALLEST_REFERENCE))
    satisfied = logical_and(last.done, equal(max_abs(end.remainder), 0))
    inconsistent, contradict = cond(
        satisfied, lambda: (False, False), lambda: _contradictions(problem.M, rows, last.a)
    )
    return Solution(
        last.a,
        _with_least_derivatives(last, D, A) if tangents else last.force,
        last.iterations,
        logical_and(last.done, logical_not(contradict)),
        inconsistent,
        inaccurate=inconsistent,
        stagnated=last.stagnated,
    )


def _with_derivatives(s: _MultiplierState, step: np.ndarray) -> _MultiplierState:
    """The state, which has terminated if the derivatives of a no longer change either. step: the last change
    of a.

    Values that satisfy the rows from the start terminate the iteration after the first one, in which the
    derivatives of the residual are reduced by the factor of the module only once.
    """
    change, size, before = max_abs(_derivatives(step)), max_abs(_derivatives(s.a)), s.derivative_change
    falls, is_first = change < before, equal(before, np.inf)
    # the changes that follow add up to change^2 / (before - change), if all fall by the same factor
    small = change * change <= by_precision(size, *DERIVATIVE_TOLERANCE) * size * (before - change)
    small = logical_or(logical_and(small, logical_and(falls, logical_not(is_first))), equal(change, 0))
    # rounding errors keep what is left of the derivatives, or of zero ones, from becoming smaller
    largest, precision = maximum(change, s.largest_change), by_precision(size, *DERIVATIVE_ROUNDING)
    rounds = logical_or(change <= by_precision(size, *STAGNATING) * size, change <= precision * largest)
    stagnations = where(logical_and(rounds, logical_not(falls)), s.stagnations + 1, s.stagnations)
    done = logical_and(value_of(s.done), logical_or(small, stagnations >= STAGNATIONS))
    return s._replace(
        done=done, derivative_change=minimum(change, before), largest_change=largest, stagnations=stagnations
    )


def _with_least_derivatives(s: _MultiplierState, D: np.ndarray, A: np.ndarray) -> np.ndarray:
    """The forces (k,), whose derivatives do not depend on the number of iterations.

    Along a direction in which redundant rows begin to contradict each other, a derivative of the residual is
    left. It changes those of their forces alike in each iteration, without an effect on the acceleration.
    """
    left = [value_of(x) * parts(y)[1] for x, y in zip(D, s.residual, strict=True)]
    contradict = max_abs(left) > CONTRADICTING_DERIVATIVE * _derivative_size(A, s.a, D)
    corrected = [y + value_of(s.weight) * x for x, y in zip(left, _derivatives(s.force), strict=True)]
    return tangent_array(values_of(s.force), where_leaves(contradict, corrected, _derivatives(s.force)))


def _derivative_size(A: np.ndarray, a: np.ndarray, D: np.ndarray) -> Any:
    """The largest D (|A'| |a| + |A| |a'|), of the terms of the derivatives of residuals."""
    terms = [
        sum((absolute(parts(e)[1] * value_of(y)) + absolute(value_of(e) * parts(y)[1])
             for e, y in zip(row, a, strict=True)), start=0.0)
        for row in A
    ]  # fmt: skip
    return max_abs([value_of(x) * term for x, term in zip(D, terms, strict=True)])


def _derivatives(values: Any) -> list[Any]:
    """The derivatives of tangents."""
    return [parts(x)[1] for x in values]


def is_inconsistent(M: Any, rows: Rows, a: Any) -> Any:
    """Whether hard equalities contradict each other, from their residual at a least-squares solution a.

    The residual may also stem from a configuration slightly off the constraints; the bound
    `INCONSISTENT_RESIDUAL` is above such residuals.
    """
    residuals, scale = _residuals(M, rows, a)
    return max_abs(residuals.values()) > INCONSISTENT_RESIDUAL * scale


def _contradictions(M: Any, rows: Rows, a: Any) -> tuple[Any, Any]:
    """Whether hard equalities contradict each other, see `is_inconsistent`, and whether their residual is
    larger than that of dependent rows with this violation.
    """
    residuals, scale = _residuals(M, rows, a)
    bound = maximum(CONSISTENCY_TOLERANCE, minimum(INCONSISTENT_RESIDUAL, dependence_bound(rows)))
    return is_inconsistent(M, rows, a), max_abs(residuals.values()) > bound * scale


def inconsistent_constraints(M: Any, rows: Rows) -> tuple[list[str], float]:
    """The names of hard equalities that no acceleration satisfies together, and the largest residual, at the
    least-squares solution; on floats.
    """
    own = [i for i, hard in enumerate(rows.hard) if hard and rows.kinds[i] == "equality"]
    if not own:
        return [], 0.0
    A, b, w = (np.array(x, float)[own] for x in (rows.J, rows.aref, rows.inverse_weight))
    scale = 1 / np.sqrt(np.where(w > 0, w, 1))
    residuals, size = _residuals(M, rows, np.linalg.lstsq(scale[:, None] * A, scale * b, rcond=None)[0])
    unsatisfied = {rows.names[i] for i, r in residuals.items() if abs(r) > CONSISTENCY_TOLERANCE * size}
    return sorted(unsatisfied), float(max_abs(residuals.values()))


def _residuals(M: Any, rows: Rows, a: Any) -> tuple[dict[int, Any], Any]:
    """J_i a - aref_i of every hard equality, and the largest sum of the absolute terms of one, at least of
    accelerations of the size `SMALLEST_REFERENCE`.
    """
    residuals: dict[int, Any] = {}
    scale, inertia = 0, np.trace(M)
    for i, hard in enumerate(rows.hard):
        if hard and rows.kinds[i] == "equality":
            terms = [x * y for x, y in zip(rows.J[i], a, strict=True)]
            residuals[i] = sum(terms, start=0) - rows.aref[i]
            # (J a)^2 <= (J M^-1 J^T) (a^T M a)
            smallest = SMALLEST_REFERENCE * root_of_square(rows.inverse_weight[i] * inertia)
            size = absolute(rows.aref[i]) + sum((absolute(x) for x in terms), start=0)
            scale = maximum(scale, maximum(size, smallest))
    return residuals, scale


def _magnitudes(A: Any, a: Any, b: Any) -> np.ndarray:
    """|b| + |A| |a| (k,): the sum of the absolute terms of each residual."""
    terms = [[y, *(x * z for x, z in zip(row, a, strict=True))] for row, y in zip(A, b, strict=True)]
    return scalar_array([sum(absolute(x) for x in own) for own in terms])

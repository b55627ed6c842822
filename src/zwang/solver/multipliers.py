"""Hard equalities alone, A a = b, by the method of multipliers (augmented Lagrangian), on any scalar.

    a' = a - (M + A^T D A)^-1 (M (a - a_free) - A^T (f - D (A a - b))),     f' = f - D (A a' - b)

The matrix is factorised once; each iteration is a substitution. With D = 1 / rho large, one iteration
reduces the residual by the factor rho / (rho + A M^-1 A^T), so that three or four iterations suffice; more
are needed near singular configurations, where the rows are nearly dependent. Redundant rows need no rank
decision: they share their force, with the least f^T D^-1 f. Source: Rockafellar, Math. Oper. Res. 1 (1976)
97, the proximal point method on the dual; `hard_contact` is the same method with inequalities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual_control_flow import parts, tangent_array, value_of
from zwang.algebra.factorization import factor, weighted_transpose
from zwang.algebra.norms import by_precision, max_abs, root_of_square
from zwang.constraint.rows import Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    absolute,
    cond,
    divide,
    is_zero,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    where,
    while_loop,
)
from zwang.solver.solution import Solution

ITERATIONS = 200  # the limit; see the module
# in double and in single precision
PENALTY_COMPLIANCE = 1e-5, 1e-3  # rho, relative to the inverse weight of a row
TOLERANCE = 1e-11, 1e-7  # of the change of the forces, relative
ROUNDING = 2e-15, 1e-6  # of a residual, relative to the terms that it is the sum of
RATE_TOLERANCE = 1e-13, 1e-6  # of the change of the derivatives of the accelerations, relative to the largest
STAGNATING_RATE = 1e-8, 1e-4  # the same, below which rounding may prevent a smaller change
CONTRADICTING_RATE = 1e-9  # relative derivative of a residual above which rows begin to contradict each other
INCONSISTENT_RESIDUAL = 0.1  # relative residual above which rows contradict each other
SMALLEST_REFERENCE = 1e-3  # [rad/s^2, m/s^2] this is relative to the residual of such accelerations at least
CONSISTENCY_TOLERANCE = 1e-5  # relative residual above which a row is named among those that contradict


class _MultiplierState(NamedTuple):
    """Accelerations a, forces f, residual A a - b, iterations so far, whether the method has terminated, and
    whether it did so above its tolerance, because of rounding; on tangents, the largest last change of the
    derivatives of a.
    """

    a: np.ndarray
    force: np.ndarray
    residual: np.ndarray
    iterations: Any
    done: Any
    stagnated: Any = 0.0 > 1.0
    rate_change: Any = np.inf


def solve_multipliers(problem: GaussProblem, rows: Rows, *, tangents: bool = False) -> Solution:
    """Acceleration that minimises Z(a) under hard equalities, with their forces, by the method of
    multipliers.

    Rows that contradict each other are satisfied in the least-squares sense; the solution is then marked as
    inconsistent and has not converged. tangents: whether the data are tangents; the iteration then goes on
    until the derivatives of the accelerations have converged, too.
    """
    M, A = problem.M, rows.J
    precision = value_of(problem.M[0, 0])
    compliance, tolerance, relative_rounding = (
        by_precision(precision, *x) for x in (PENALTY_COMPLIANCE, TOLERANCE, ROUNDING)
    )
    D = scalar_array([divide(1, compliance * w) if any(not is_zero(x) for x in row) else 0
               for w, row in zip(rows.inverse_weight, A, strict=True)])  # fmt: skip
    factors = factor(M, problem.parents).update(A, D)

    def unfinished(s: _MultiplierState) -> Any:
        return logical_and(logical_not(s.done), s.iterations < ITERATIONS)

    def iterate(s: _MultiplierState) -> _MultiplierState:
        # a' = a + da,  da = -(M + A^T D A)^-1 (M (a - a_free) - A^T f + A^T D (A a - b))
        gradient = M @ (s.a - problem.a_free) - A.T @ s.force + weighted_transpose(A, D, s.residual)
        step = -factors.solve(gradient)
        a = s.a + step
        # f' = f - D (A a - b + A da): D would multiply the rounding errors of A a' - b
        change = D * (s.residual + A @ step)
        force, residual = s.force - change, A @ a - rows.aref
        rounding = relative_rounding * max_abs(D * _magnitudes(A, a, rows.aref))
        accurate = max_abs(change) <= tolerance * max_abs(force)
        stagnated = logical_and(max_abs(change) <= rounding, logical_not(accurate))
        done = logical_or(accurate, max_abs(change) <= rounding)
        after = _MultiplierState(a, force, residual, s.iterations + 1, done, stagnated)
        return _with_rates(after, s.rate_change, step, problem.a_free) if tangents else after

    initial = np.array(problem.a_free)
    start = _MultiplierState(initial, np.zeros(len(rows)), A @ initial - rows.aref, 0.0, 0.0 > 1.0)
    last = while_loop(unfinished, iterate, start)
    inconsistent = cond(last.done, lambda: False, lambda: is_inconsistent(M, rows, last.a))
    return Solution(
        last.a,
        _with_least_rates(last, D, A) if tangents else last.force,
        last.iterations,
        last.done,
        inconsistent,
        inaccurate=inconsistent,
        stagnated=last.stagnated,
    )


def _with_rates(s: _MultiplierState, before: Any, step: np.ndarray, a_free: np.ndarray) -> _MultiplierState:
    """The state, which has terminated if the derivatives of a no longer change either; before: their change
    in the iteration before.

    Values that satisfy the rows from the start terminate the iteration after the first one, in which the
    derivatives of the residual are reduced by the factor of the module only once.
    """
    change, size, free = (max_abs(_rates(x)) for x in (step, s.a, a_free))
    tolerance, stagnating, rounding = (
        by_precision(size, *x) for x in (RATE_TOLERANCE, STAGNATING_RATE, ROUNDING)
    )
    small = logical_or(change <= tolerance * size, change <= rounding * free)
    stagnates = logical_and(change >= before, change <= stagnating * size)
    done = logical_and(value_of(s.done), logical_or(small, stagnates))
    return s._replace(done=done, rate_change=change)


def _with_least_rates(s: _MultiplierState, D: np.ndarray, A: np.ndarray) -> np.ndarray:
    """The forces (k,), whose derivatives do not depend on the number of iterations.

    Along a direction in which redundant rows begin to contradict each other, a residual is left. It changes
    their forces alike in each iteration, without an effect on the acceleration.
    """
    values, residual = [value_of(x) for x in D], _rates(s.residual)
    weighted = [x * dr for x, dr in zip(values, residual, strict=True)]
    terms = [
        x * sum((absolute(parts(e)[1] * value_of(y)) + absolute(value_of(e) * parts(y)[1])
                 for e, y in zip(row, s.a, strict=True)), start=0.0)
        for x, row in zip(values, A, strict=True)
    ]  # fmt: skip
    contradict = max_abs(weighted) > CONTRADICTING_RATE * max_abs(terms)
    corrections = [where(contradict, value_of(s.iterations) * x, 0.0) for x in weighted]
    pairs = zip(s.force, corrections, strict=True)
    return tangent_array([value_of(f) for f in s.force], [parts(f)[1] + x for f, x in pairs])


def _rates(values: Any) -> list[Any]:
    """The derivatives of tangents."""
    return [parts(x)[1] for x in values]


def is_inconsistent(M: Any, rows: Rows, a: Any) -> Any:
    """Whether hard equalities contradict each other, from their residual at a least-squares solution a.

    The residual may also stem from a configuration slightly off the constraints; the bound
    `INCONSISTENT_RESIDUAL` is above such residuals.
    """
    residuals, scale = _residuals(M, rows, a)
    return max_abs(residuals.values()) > INCONSISTENT_RESIDUAL * scale


def inconsistent_constraints(M: Any, rows: Rows, a: Any) -> tuple[list[str], float]:
    """The names of hard equalities that are not satisfied at a, and the largest residual; on floats."""
    residuals, scale = _residuals(M, rows, a)
    unsatisfied = {rows.names[i] for i, r in residuals.items() if abs(r) > CONSISTENCY_TOLERANCE * scale}
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

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
    while_loop,
)
from zwang.solver.solution import Solution

ITERATIONS = 200  # the limit; see the module
# in double and in single precision
PENALTY_COMPLIANCE = 1e-5, 1e-3  # rho, relative to the inverse weight of a row
TOLERANCE = 1e-11, 1e-7  # of the change of the forces, relative
ROUNDING = 2e-15, 1e-6  # of a residual, relative to the terms that it is the sum of
INCONSISTENT_RESIDUAL = 0.1  # relative residual above which rows contradict each other
SMALLEST_REFERENCE = 1e-3  # [rad/s^2, m/s^2] this is relative to the residual of such accelerations at least
CONSISTENCY_TOLERANCE = 1e-5  # relative residual above which a row is named among those that contradict


class _MultiplierState(NamedTuple):
    """Accelerations a, forces f, residual A a - b, iterations so far, whether the method has terminated, and
    whether it did so above its tolerance, because of rounding.
    """

    a: np.ndarray
    force: np.ndarray
    residual: np.ndarray
    iterations: Any
    done: Any
    stagnated: Any = 0.0 > 1.0


def solve_multipliers(problem: GaussProblem, rows: Rows) -> Solution:
    """Acceleration that minimises Z(a) under hard equalities, with their forces, by the method of
    multipliers.

    Rows that contradict each other are satisfied in the least-squares sense; the solution is then marked as
    inconsistent and has not converged.
    """
    M, A = problem.M, rows.J
    compliance, tolerance, relative_rounding = (
        by_precision(problem.M[0, 0], *x) for x in (PENALTY_COMPLIANCE, TOLERANCE, ROUNDING)
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
        return _MultiplierState(a, force, residual, s.iterations + 1, done, stagnated)

    initial = np.array(problem.a_free)
    start = _MultiplierState(initial, np.zeros(len(rows)), A @ initial - rows.aref, 0.0, 0.0 > 1.0)
    last = while_loop(unfinished, iterate, start)
    inconsistent = cond(last.done, lambda: False, lambda: is_inconsistent(M, rows, last.a))
    return Solution(
        last.a,
        last.force,
        last.iterations,
        last.done,
        inconsistent,
        inaccurate=inconsistent,
        stagnated=last.stagnated,
    )


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

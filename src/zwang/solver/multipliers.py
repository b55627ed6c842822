"""Hard equalities alone, A a = b, by the method of multipliers (augmented Lagrangian), on any scalar.

    a' = a - (M + A^T D A)^-1 (M (a - a_free) - A^T (f - D (A a - b))),     f' = f - D (A a' - b)

The matrix is factorised once; each iteration is a substitution. With D = 1 / rho large, one iteration
reduces the residual by the factor rho / (rho + A M^-1 A^T), so that three or four iterations suffice; more
are needed near singular configurations, where the rows are nearly dependent. Redundant rows need no rank
decision: they share their force evenly. Source: Rockafellar, Math. Oper. Res. 1 (1976) 97, the proximal
point method on the dual; `hard_contact` is the same method with inequalities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import updated_solver
from zwang.constraint.rows import Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import absolute, cond, divide, is_zero, logical_and, logical_not, logical_or, while_loop
from zwang.solver.null_space import is_inconsistent
from zwang.solver.solution import Solution, max_abs

PENALTY_COMPLIANCE = 1e-5  # rho, relative to the inverse weight of a row
ITERATIONS = 200
TOLERANCE = 1e-11  # of the change of the forces, relative
ROUNDING = 2e-15  # of a residual, relative to the terms that it is the sum of


class _MultiplierState(NamedTuple):
    """Accelerations a, forces f, residual A a - b, iterations so far, and whether the method has
    terminated.
    """

    a: np.ndarray
    force: np.ndarray
    residual: np.ndarray
    iterations: Any
    done: Any


def solve_multipliers(problem: GaussProblem, rows: Rows) -> Solution:
    """Acceleration that minimises Z(a) under hard equalities, with their forces, by the method of
    multipliers.

    Rows that contradict each other are satisfied in the least-squares sense; the solution is then marked as
    inconsistent and has not converged.
    """
    M, A = problem.M, rows.J
    D = array([divide(1, PENALTY_COMPLIANCE * w) if any(not is_zero(x) for x in row) else 0
               for w, row in zip(rows.inverse_weight, A, strict=True)])  # fmt: skip
    solved, pull = updated_solver(M, A, D)

    def unfinished(s: _MultiplierState) -> Any:
        return logical_and(logical_not(s.done), s.iterations < ITERATIONS)

    def iterate(s: _MultiplierState) -> _MultiplierState:
        # a' = a - (M + A^T D A)^-1 (M (a - a_free) - A^T f + A^T D (A a - b))
        constraint_force = A.T @ s.force if len(rows) else 0
        a = s.a - solved(M @ (s.a - problem.a_free) - constraint_force + pull(s.residual))
        residual = A @ a - rows.aref
        # f' = f - D (A a' - b)
        change = D * residual
        force = s.force - change
        rounding = ROUNDING * max_abs(D * _magnitudes(A, a, rows.aref))
        done = logical_or(max_abs(change) <= TOLERANCE * max_abs(force), max_abs(change) <= rounding)
        return _MultiplierState(a, force, residual, s.iterations + 1, done)

    initial = np.array(problem.a_free)
    start = _MultiplierState(initial, np.zeros(len(rows)), A @ initial - rows.aref, 0.0, 0.0 > 1.0)
    last = while_loop(unfinished, iterate, start)
    inconsistent = cond(last.done, lambda: False, lambda: is_inconsistent(rows, last.a))
    return Solution(last.a, last.force, last.iterations, last.done, inconsistent, inaccurate=inconsistent)


def _magnitudes(A: Any, a: Any, b: Any) -> np.ndarray:
    """|b| + |A| |a| (k,): the sum of the absolute terms of each residual."""
    return array(
        [
            absolute(y)
            + sum((absolute(x * z) for x, z in zip(row, a, strict=True) if not is_zero(x)), start=0)
            for row, y in zip(A, b, strict=True)
        ]
    )

"""Exact equalities alone, A a = b, by multipliers: one factorisation, then rounds of substitutions; on any scalar.

    a' = a - (M + A^T D A)^-1 (M (a - a_free) - A^T (f - D (A a - b))),     f' = f - D (A a' - b)

With D = 1 / rho large a round leaves the share rho / (rho + A M^-1 A^T) of what is missed, so that three or four do; near singular
positions, where a row nearly depends on others, more. Rows that depend on each other need no rank: they share their force evenly.
Source: Rockafellar, Math. Oper. Res. 1 (1976) 97, the proximal point method on the dual; as `hard`, without inequalities.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import updated_solver
from zwang.constraint.rows import Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import absolute, cond, divide, is_zero, logical_and, logical_not, logical_or, while_loop
from zwang.solver.null_space import is_contradictory
from zwang.solver.solution import Solution, max_abs

SOFTENING = 1e-5  # rho, relative to a row's weight
ROUNDS = 200
STEADY = 1e-11  # of the forces' change, relative
NOISE = 2e-15  # of a row's terms: what it misses by rounding


class _State(NamedTuple):
    """Accelerations, forces, how much the rows miss, rounds so far, done."""

    a: np.ndarray
    force: np.ndarray
    residual: np.ndarray
    rounds: Any
    done: Any


def solve_multipliers(problem: GaussProblem, rows: Rows) -> Solution:
    """The acceleration nearest to the free one under exact equalities, and their forces.

    Rows that contradict each other miss as little as they can, and it has not converged.
    """
    M, A = problem.M, rows.J
    D = array([divide(1, SOFTENING * w) if any(not is_zero(x) for x in row) else 0
               for w, row in zip(rows.weight, A, strict=True)])  # fmt: skip
    solved, pull = updated_solver(M, A, D)

    def wanted(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.rounds < ROUNDS)

    def improve(s: _State) -> _State:
        pushed = A.T @ s.force if len(rows) else 0
        a = s.a - solved(M @ (s.a - problem.a_free) - pushed + pull(s.residual))
        residual = A @ a - rows.aref
        change = D * residual
        force = s.force - change
        noise = NOISE * max_abs(D * _terms(A, a, rows.aref))
        done = logical_or(max_abs(change) <= STEADY * max_abs(force), max_abs(change) <= noise)
        return _State(a, force, residual, s.rounds + 1, done)

    begin = np.array(problem.a_free)
    start = _State(begin, np.zeros(len(rows)), A @ begin - rows.aref, 0.0, 0.0 > 1.0)
    last = while_loop(wanted, improve, start)
    inconsistent = cond(last.done, lambda: False, lambda: is_contradictory(rows, last.a))
    return Solution(last.a, last.force, last.rounds, last.done, inconsistent, unsettled=inconsistent)


def _terms(A: Any, a: Any, b: Any) -> np.ndarray:
    """|b| + |A| |a| (k,): what the rows' terms add up to."""
    return array(
        [
            absolute(y)
            + sum((absolute(x * z) for x, z in zip(row, a, strict=True) if not is_zero(x)), start=0)
            for row, y in zip(A, b, strict=True)
        ]
    )

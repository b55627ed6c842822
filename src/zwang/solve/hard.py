"""Exact rows beside soft ones, by the method of multipliers: solve softly, add the force found to what is wanted, repeat.

With f_k the last forces a row of small R = rho wants aref + rho f_k. In the dual this is the proximal point method: it converges to
forces of the problem with R = 0, by a factor rho / (rho + A) a round, and needs no rank: what rows that depend on each other cannot
agree on stays as it began, at an even share. Source: Rockafellar, Math. Oper. Res. 1 (1976) 97.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows, array
from zwang.gauss.problem import GaussProblem
from zwang.scalar import logical_and, logical_not, while_loop
from zwang.solve.solution import SMALLEST, Solution, largest

SOFTENING = 1e-3
ROUNDS = 200
TOLERANCE = 1e-12


class _State(NamedTuple):
    a: np.ndarray
    force: np.ndarray
    rounds: Any
    iterations: Any
    done: Any


def with_hard_rows(
    problem: GaussProblem,
    rows: Rows,
    solver: Callable[..., Solution],
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
) -> Solution:
    """The solution of a problem some of whose rows have R = 0, by rounds of `solver` on soft rows."""
    hard = rows.hard
    rho = array([SOFTENING * w if h else 0 for w, h in zip(rows.weight, hard, strict=True)])

    def wanted(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.rounds < ROUNDS)

    def improve(s: _State) -> _State:
        softened = rows.replaced(R=rows.R + rho, aref=rows.aref + rho * s.force)
        found = solver(problem, softened, start=s.a)
        missed = [
            r * (new - old) / w for r, new, old, w in zip(rho, found.force, s.force, rows.weight, strict=True)
        ]
        done = largest(missed) <= tolerance * (largest(found.force) + SMALLEST)
        return _State(found.acceleration, found.force, s.rounds + 1, s.iterations + found.iterations, done)

    begin = np.array(problem.a_free if start is None else start)
    last = while_loop(wanted, improve, _State(begin, np.zeros(len(rows)), 0.0, 0.0, 0.0 > 1.0))
    return Solution(last.a, last.force, last.iterations, last.done)

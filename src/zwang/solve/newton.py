"""The primal problem by Newton's method: the accelerations directly, nv unknowns however many rows there are.

The Hessian M + J^T W J keeps the sparsity of M where rows touch one branch only. On pieces where the cost is quadratic one step
is exact, so that few iterations are needed. Source: seed 002's reduced primal; Todorov, "Convex and analytically-invertible dynamics with
contacts and constraints" (ICRA 2014).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.linear import sparse_ltdl, sparse_ltdl_solve
from zwang.constraint.rows import Rows
from zwang.gauss.problem import GaussProblem
from zwang.scalar import logical_and, logical_not, logical_or, while_loop
from zwang.solve.cones import answer
from zwang.solve.line_search import exact_step
from zwang.solve.solution import Solution, largest

TOLERANCE = 1e-13
ITERATIONS = 100
STANDSTILL = 1e-14


class _State(NamedTuple):
    """The accelerations, what the rows miss by, the gradient, iterations, and whether there is nothing left to do."""

    a: np.ndarray
    y: np.ndarray
    gradient: np.ndarray
    iterations: Any
    done: Any


def newton(
    problem: GaussProblem,
    rows: Rows,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS,
) -> Solution:
    """The accelerations that make Z(a) + sum s_i(J_i a - aref_i) least, by Newton's method with an exact line search.

    start: accelerations to begin with, by default the free ones. tolerance: of the gradient, against the largest effort in it.
    Every row must be soft, R > 0.
    """
    M, free, J, D = problem.M, problem.a_free, rows.J, rows.D

    def state(a: Any, count: Any, step: Any) -> _State:
        y = J @ a - rows.aref
        effort, push = M @ (a - free), J.T @ answer(rows, D, y).force
        gradient = effort - push
        small = largest(gradient) <= tolerance * (largest(effort) + largest(push))
        stands = largest(step) <= STANDSTILL * largest(a)
        return _State(a, y, gradient, count, logical_or(small, stands))

    def wanted(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.iterations < iterations)

    def improve(s: _State) -> _State:
        at = answer(rows, D, s.y)
        H = M + J.T @ at.weighted(rows, J)
        direction = -sparse_ltdl_solve(*sparse_ltdl(H), s.gradient)
        step = step_along(problem, rows, s.a, s.y, direction) * direction
        return state(s.a + step, s.iterations + 1, step)

    begin = np.array(free if start is None else start)
    last = while_loop(wanted, improve, state(begin, 0.0, np.ones(len(free))))
    return Solution(last.a, answer(rows, D, last.y).force, last.iterations, last.done)


def step_along(problem: GaussProblem, rows: Rows, a: Any, y: Any, p: Any, first: Any = 1.0) -> Any:
    """The exact step from a along p, where rows miss by y."""
    D = rows.D
    Jp, Mp = rows.J @ p, problem.M @ p
    smooth_slope, smooth_curvature = Mp @ (a - problem.a_free), Mp @ p

    def slope_at(t: Any) -> tuple[Any, Any]:
        at = answer(rows, D, y + t * Jp)
        slope = smooth_slope + t * smooth_curvature - at.force @ Jp
        return slope, smooth_curvature + Jp @ at.weighted(rows, Jp)

    downhill = smooth_slope - answer(rows, D, y).force @ Jp
    return exact_step(slope_at, downhill, first)

"""The primal problem by Newton's method: the accelerations directly, nv unknowns however many rows there are.

The Hessian M + J^T W J keeps the sparsity of M where rows touch one branch only. On pieces where the cost is quadratic one step
is exact, so that few iterations are needed. Source: seed 002's reduced primal; Todorov, "Convex and analytically-invertible dynamics with
contacts and constraints" (ICRA 2014).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows
from zwang.gauss.problem import GaussProblem
from zwang.scalar import logical_and, logical_not, logical_or, while_loop
from zwang.solve.line_search import UNBOUNDED
from zwang.solve.primal import Primal
from zwang.solve.solution import Solution, largest

TOLERANCE = 1e-11
ITERATIONS = 100
LINE_SEARCH = 0.01  # what the slope may keep of its start, as in MuJoCo; at the end the step is 1
STANDSTILL = 1e-14  # a step this small, relative to the accelerations, changes nothing
NOISE = 1e-9  # and with one this small a gradient that does not shrink any more is rounding


class _State(NamedTuple):
    """The accelerations, the gradient, iterations, and whether there is nothing left to do."""

    a: np.ndarray
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
    primal = Primal(problem, rows)

    def state(a: Any, count: Any, step: Any, before: Any) -> _State:
        effort, push = primal.effort(a), primal.push(a)
        gradient = effort - push
        small = largest(gradient) <= tolerance * (largest(effort) + largest(push))
        size, scale = largest(step), largest(a)
        noise = logical_and(size <= NOISE * scale, largest(gradient) > largest(before) / 2)
        return _State(a, gradient, count, logical_or(small, logical_or(size <= STANDSTILL * scale, noise)))

    def wanted(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.iterations < iterations)

    def improve(s: _State) -> _State:
        direction = primal.newton_direction(s.a, s.gradient)
        step = primal.exact_step(s.a, direction, s.gradient, tolerance=LINE_SEARCH) * direction
        return state(s.a + step, s.iterations + 1, step, s.gradient)

    begin = np.array(problem.a_free if start is None else start)
    far = UNBOUNDED * np.ones(len(begin))
    last = while_loop(wanted, improve, state(begin, 0.0, far, far))
    return Solution(last.a, primal.forces(last.a), last.iterations, last.done)

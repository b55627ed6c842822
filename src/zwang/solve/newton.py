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
from zwang.scalar import Scratch, logical_and, logical_not, logical_or, when, where, while_loop
from zwang.solve.line_search import UNBOUNDED
from zwang.solve.memory import recalled, remembered
from zwang.solve.primal import Answer, Primal, true_answer
from zwang.solve.solution import Solution, largest

TOLERANCE = 1e-11
ITERATIONS = 100
LINE_SEARCH = 0.01  # what the slope may keep of its start, as in MuJoCo; at the end the step is 1
STANDSTILL = 1e-14  # a step this small, relative to the accelerations, changes nothing
NOISE = 1e-9  # and with one this small a gradient that does not shrink any more is rounding
COARSE, STALLS = 1e-5, 3  # the same after so many steps of this size, where single precision ends
SETTLED = 1e-3  # accelerations that still change by more when the iterations are over are not to be used


class _State(NamedTuple):
    """The accelerations, what the rows miss by, the gradient, iterations, stalls so far, whether there is nothing left to do, or little."""

    a: np.ndarray
    y: Scratch
    gradient: np.ndarray
    iterations: Any
    stalls: Any
    done: Any
    settled: Any


def newton(
    problem: GaussProblem,
    rows: Rows,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS,
) -> Solution:
    """The accelerations that make Z(a) + sum s_i(J_i a - aref_i) least, by Newton's method with an exact line search.

    start: accelerations to begin with, by default the free ones; or, as a `Recall`, how rows answered in a problem like this one: then the first
    step takes them at their word, and the solution tells how they answer now. tolerance: of the gradient, against the largest effort in it.
    Every row must be soft, R > 0.
    """
    primal = Primal(problem, rows)
    codes: Scratch | None = start(primal.group_count) if callable(start) else None

    def answer(s: _State) -> Answer:
        """How rows answer; at first as they did."""
        return true_answer if codes is None else recalled(codes, s.iterations < 1)

    def state(a: Any, y: Scratch, count: Any, step: Any, before: _State | None) -> _State:
        effort, push = primal.effort(a), primal.push(y)
        gradient, efforts = effort - push, largest(effort) + largest(push)
        left, size, scale = largest(gradient), largest(step), largest(a)
        small = logical_or(left <= tolerance * efforts, size <= STANDSTILL * scale)
        if before is None:
            return _State(a, y, gradient, count, 0.0, small, small)
        stuck = left > largest(before.gradient) / 2
        stalls = before.stalls + where(logical_and(stuck, size <= COARSE * scale), 1.0, 0.0)
        noise = logical_or(logical_and(stuck, size <= NOISE * scale), stalls >= STALLS)
        return _State(a, y, gradient, count, stalls, logical_or(small, noise), size <= SETTLED * scale)

    def begun() -> _State:
        if codes is None:
            a = np.array(problem.a_free if start is None else start)
            return state(a, primal.missed(a), 0.0, UNBOUNDED * np.ones(len(a)), None)
        a, idle = np.array(problem.a_free), logical_not(primal.acting())
        y = primal.missed(a)
        return _State(a, y, -primal.push(y, recalled(codes)), 0.0, 0.0, idle, idle)

    def wanted(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.iterations < iterations)

    def improve(s: _State) -> _State:
        direction = primal.newton_direction(s.y, s.gradient, answer(s))
        along = primal.along(direction)

        def searched() -> Any:
            return primal.exact_step((s.a, s.y), direction, along, s.gradient, tolerance=LINE_SEARCH)

        length = searched() if codes is None else when(s.iterations < 1, lambda: 1.0, searched)
        step, y = length * direction, primal.advanced(s.y, length, along)
        return state(s.a + step, y, s.iterations + 1, step, s)

    last = while_loop(wanted, improve, begun())
    unsettled = logical_not(logical_or(last.done, last.settled))
    answers = remembered(primal, last.y) if codes is not None else None
    return Solution(
        last.a, primal.forces(last.a), last.iterations, last.done, unsettled=unsettled, answers=answers
    )

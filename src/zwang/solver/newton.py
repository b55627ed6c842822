"""The primal problem by Newton's method: the accelerations directly, nv unknowns however many rows there are.

The Hessian M + J^T W J keeps the sparsity of M where rows touch one branch only. On pieces where the cost is quadratic one step
is exact, so that few iterations are needed. Source: seed 002's reduced primal; Todorov, "Convex and analytically-invertible dynamics with
contacts and constraints" (ICRA 2014).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows, WarmStart
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    MutableArray,
    cond,
    equal,
    logical_and,
    logical_not,
    logical_or,
    where,
    while_loop,
    zeros,
)
from zwang.solver.primal_cost import Group, PrimalCost
from zwang.solver.solution import Solution, is_single_precision, max_abs
from zwang.solver.warm_start import as_warm_start, decode_status, encode_status, status_code

TOLERANCE = 1e-11
ITERATIONS = 100
LINE_SEARCH = 0.01  # what the slope may keep of its start, as in MuJoCo; at the end the step is 1
STANDSTILL = 1e-14  # a step this small, relative to the accelerations, changes nothing
NOISE = 1e-9  # and with one this small a gradient that does not shrink any more is rounding
COARSE, STALLS = 1e-5, 3  # the same after so many steps of this size, where single precision ends
SETTLED = 1e-3  # accelerations that still change by more when the iterations are over are not to be used


class _State(NamedTuple):
    """The accelerations, what the rows miss by, their groups' codes (see `memory`), the gradient, iterations, stalls so far, whether there is
    nothing left to do, or little."""

    a: np.ndarray
    y: MutableArray
    codes: MutableArray
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
    step takes them at their word, and the solution tells how they answer now. tolerance: of the gradient, against the largest effort in it,
    unless all rows answer after a whole step as before it: that step is exact. Every row must be soft, R > 0.
    """
    method = _Method(PrimalCost(problem, rows), as_warm_start(start), tolerance)

    def wanted(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.iterations < iterations)

    last = while_loop(wanted, method.improved, method.begun(start))
    unsettled = logical_not(logical_or(last.done, last.settled))
    forces, row_status = method.primal.forces(last.a), None if method.warm_start is None else last.codes
    return Solution(last.a, forces, last.iterations, last.done, unsettled=unsettled, row_status=row_status)


class _Method(NamedTuple):
    """The cost to be made least, how rows answered in a problem like this one, if that is known, and the tolerance of the gradient."""

    primal: PrimalCost
    warm_start: WarmStart | None
    tolerance: float

    def begun(self, start: Any) -> _State:
        """At the accelerations to begin with."""
        primal, warm_start = self.primal, self.warm_start
        a = np.array(primal.problem.a_free if start is None or warm_start is not None else start)
        y, none = primal.residual(a), zeros(primal.group_count)
        if warm_start is None:
            codes = encode_status(primal, y, none)
            gradient, _, done = self.judged(a, y, codes)
        else:
            codes = encode_status(primal, y, none, warm_start(primal.group_count))
            gradient, done = -primal.push(y, decode_status(codes)), logical_not(primal.acting())
        return _State(a, y, codes, gradient, 0.0, 0.0, done, done)

    def judged(self, a: Any, y: MutableArray, codes: MutableArray) -> tuple[np.ndarray, Any, Any]:
        """The gradient, its largest entry, and whether it is small."""
        effort, push = self.primal.effort(a), self.primal.push(y, decode_status(codes))
        gradient = effort - push
        left = max_abs(gradient)
        return gradient, left, left <= self.tolerance * (max_abs(effort) + max_abs(push))

    def improved(self, s: _State) -> _State:
        """After one iteration."""
        primal = self.primal
        direction = primal.newton_direction(s.y, s.gradient, decode_status(s.codes))
        along = primal.along(direction)
        same = self.answers_stay(s, along)

        def searched() -> Any:
            return primal.exact_step((s.a, s.y), direction, along, s.gradient, tolerance=LINE_SEARCH)

        full = same if self.warm_start is None else logical_or(same, s.iterations < 1)
        length = cond(full, lambda: 1.0, searched)
        y, step = primal.advanced(s.y, length, along), length * direction
        a, codes = s.a + step, encode_status(primal, y, s.codes)
        exact = s.gradient, s.stalls, same, same
        found = cond(same, lambda: exact, lambda: self.unsure(s, step, a, y, codes))
        return _State(a, y, codes, found[0], s.iterations + 1, *found[1:])

    def answers_stay(self, s: _State, along: MutableArray) -> Any:
        """Whether all rows still answer so after a whole step: then the cost was quadratic all the way, and its least is there."""

        def compare(group: Group, same: Any) -> Any:
            code, before = status_code(group, group.read(s.y) + group.read(along)), s.codes[group.number]
            alike = equal(code, before)
            return logical_and(same, alike if group.cone is None else logical_and(alike, code > 0))

        return self.primal.over_acting_groups(compare, s.iterations >= 0)

    def unsure(
        self, s: _State, step: Any, a: Any, y: MutableArray, codes: MutableArray
    ) -> tuple[np.ndarray, Any, Any, Any]:
        """Gradient, stalls, whether it is done, or nearly, after this step from s, if that is not certain."""
        gradient, left, small = self.judged(a, y, codes)
        scale, size = max_abs(a), max_abs(step)
        # a first step from what was remembered wrongly may be none
        tried = s.iterations >= (0 if self.warm_start is None else 1)
        stuck = logical_and(tried, left > max_abs(s.gradient) / 2)
        still = logical_and(tried, size <= STANDSTILL * scale)
        coarse = logical_and(is_single_precision(scale), size <= COARSE * scale)
        stalls = s.stalls + where(logical_and(stuck, coarse), 1.0, 0.0)
        noise = logical_or(logical_and(stuck, size <= NOISE * scale), stalls >= STALLS)
        done = logical_or(logical_or(small, still), noise)
        return gradient, stalls, done, size <= SETTLED * scale

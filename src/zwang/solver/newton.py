"""Newton's method on the reduced primal problem: the unknowns are the nv accelerations, however many rows
there are.

    cost       Z(a) + sum s_i(y_i),    y = J a - aref
    gradient   g = M (a - a_free) - J^T f(y)
    step       p = -(M + J^T W J)^-1 g,    W = -df/dy
    iterate    a <- a + t p,    t by an exact line search

The cost is quadratic wherever the status of the rows does not change, so that one step of length 1 is exact
there and few iterations are needed. The Hessian M + J^T W J keeps the sparsity of M where each row touches
one branch of the tree only. Source: MuJoCo documentation, Computation, "Reduced primal problem"; Todorov,
"Convex and analytically-invertible dynamics with contacts and constraints" (ICRA 2014).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows, WarmStart, array
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
from zwang.solver.primal_cost import PrimalCost, RowBlock
from zwang.solver.solution import Solution, is_single_precision, max_abs
from zwang.solver.warm_start import as_warm_start, decode_status, encode_status, status_code

TOLERANCE = 1e-11  # of the gradient, relative to the largest generalised force in it
ITERATIONS = 100
LINE_SEARCH_TOLERANCE = (
    0.01  # of the slope, relative to its initial value, as in MuJoCo; the last step has length 1
)
SMALLEST_STEP = 1e-14  # relative to the accelerations; a smaller step changes nothing
STAGNATION_STEP = 1e-9  # below this step a gradient that is no longer halved consists of rounding errors
SINGLE_PRECISION_STEP = 1e-5  # the same in single precision, ...
SINGLE_PRECISION_STAGNATIONS = 3  # ... after this many such steps
USABLE_STEP = 1e-3  # at the iteration limit, accelerations that still change by more are not to be used


class _NewtonState(NamedTuple):
    """State of the iteration.

    a: accelerations (nv,). y: residual of the rows. status: status code of every block of rows (see
    `warm_start`). gradient (nv,). stagnations: single-precision steps without progress. done: whether the
    method has terminated. usable: whether the last step was small enough for the accelerations to be used.
    """

    a: np.ndarray
    y: MutableArray
    status: MutableArray
    gradient: np.ndarray
    iterations: Any
    stagnations: Any
    done: Any
    usable: Any


def newton(
    problem: GaussProblem,
    rows: Rows,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS,
) -> Solution:
    """Minimiser of Z(a) + sum s_i(J_i a - aref_i), by Newton's method with an exact line search.

    start: the initial accelerations (nv,), by default the free ones; or a `WarmStart`, the row status of a
    similar problem. With a warm start the first step assumes that status, and the solution reports the final
    one. tolerance: of the gradient, relative to the largest generalised force in it. The method also
    terminates when no row changes its status over a full step, because that step is exact. Every row must be
    soft (R > 0).
    """
    method = _Method(PrimalCost(problem, rows), as_warm_start(start), tolerance)

    def unfinished(s: _NewtonState) -> Any:
        return logical_and(logical_not(s.done), s.iterations < iterations)

    last = while_loop(unfinished, method.iterate, method.initial_state(start))
    inaccurate = logical_not(logical_or(last.done, last.usable))
    f, row_status = method.primal.forces(last.a), None if method.warm_start is None else last.status
    return Solution(
        last.a, array([f[i] for i in range(len(rows))]), last.iterations, last.done, inaccurate=inaccurate,
        row_status=row_status, row_force=f,
    )  # fmt: skip


class _Method(NamedTuple):
    """The cost to be minimised, the row status of a similar problem if it is known, and the gradient
    tolerance.
    """

    primal: PrimalCost
    warm_start: WarmStart | None
    tolerance: float

    def initial_state(self, start: Any) -> _NewtonState:
        """State at the initial accelerations, with the row status there or that of the warm start."""
        primal, warm_start = self.primal, self.warm_start
        a = np.array(primal.problem.a_free if start is None or warm_start is not None else start)
        y, none = primal.residual(a), zeros(primal.block_count)
        if warm_start is None:
            status = encode_status(primal, y, none)
            gradient, _, done = self.gradient(a, y, status)
        else:
            status = encode_status(primal, y, none, warm_start(primal.block_count))
            gradient = -primal.constraint_force(y, decode_status(status))
            done = logical_not(primal.any_active())
        return _NewtonState(a, y, status, gradient, 0.0, 0.0, done, done)

    def gradient(self, a: Any, y: MutableArray, status: MutableArray) -> tuple[np.ndarray, Any, Any]:
        """Gradient g = M (a - a_free) - J^T f, its largest entry, and whether that is within the
        tolerance.
        """
        smooth_force = self.primal.smooth_force(a)
        constraint_force = self.primal.constraint_force(y, decode_status(status))
        gradient = smooth_force - constraint_force
        size = max_abs(gradient)
        return gradient, size, size <= self.tolerance * (max_abs(smooth_force) + max_abs(constraint_force))

    def iterate(self, s: _NewtonState) -> _NewtonState:
        """State after one iteration: direction, line search, new accelerations, status, termination."""
        primal = self.primal
        # direction p = -(M + J^T W J)^-1 g, with the forces and curvatures of the current status
        direction = primal.newton_direction(s.y, s.gradient, decode_status(s.status))
        Jp = primal.jacobian_product(direction)
        same = self.status_is_unchanged(s, Jp)

        def line_search() -> Any:
            return primal.exact_line_search(
                (s.a, s.y), direction, Jp, s.gradient, tolerance=LINE_SEARCH_TOLERANCE
            )

        # step length: 1 where no row changes its status, and in the first step of a warm start
        full = same if self.warm_start is None else logical_or(same, s.iterations < 1)
        length = cond(full, lambda: 1.0, line_search)
        y, step = primal.advanced_residual(s.y, length, Jp), length * direction
        a, status = s.a + step, encode_status(primal, y, s.status)
        # termination: a full step without a change of status is exact
        exact = s.gradient, s.stagnations, same, same
        found = cond(same, lambda: exact, lambda: self.termination(s, step, a, y, status))
        return _NewtonState(a, y, status, found[0], s.iterations + 1, *found[1:])

    def status_is_unchanged(self, s: _NewtonState, Jp: MutableArray) -> Any:
        """Whether no active row changes its status over a full step: then the cost is quadratic along it."""

        def compare(block: RowBlock, same: Any) -> Any:
            code, before = status_code(block, block.read(s.y) + block.read(Jp)), s.status[block.number]
            alike = equal(code, before)
            return logical_and(same, alike if block.cone is None else logical_and(alike, code > 0))

        return self.primal.over_active_blocks(compare, s.iterations >= 0)

    def termination(
        self, s: _NewtonState, step: Any, a: Any, y: MutableArray, status: MutableArray
    ) -> tuple[np.ndarray, Any, Any, Any]:
        """Gradient, stagnations, whether the method has terminated, and whether `a` is usable, after a step
        from s.
        """
        gradient, size, small = self.gradient(a, y, status)
        scale, step_size = max_abs(a), max_abs(step)
        # the first step of a wrong warm start may be zero, and is no sign of termination
        counts = s.iterations >= (0 if self.warm_start is None else 1)
        stagnant = logical_and(counts, size > max_abs(s.gradient) / 2)
        no_step = logical_and(counts, step_size <= SMALLEST_STEP * scale)
        coarse = logical_and(is_single_precision(scale), step_size <= SINGLE_PRECISION_STEP * scale)
        stagnations = s.stagnations + where(logical_and(stagnant, coarse), 1.0, 0.0)
        rounding = logical_or(
            logical_and(stagnant, step_size <= STAGNATION_STEP * scale),
            stagnations >= SINGLE_PRECISION_STAGNATIONS,
        )
        done = logical_or(logical_or(small, no_step), rounding)
        return gradient, stagnations, done, step_size <= USABLE_STEP * scale

"""Newton's method on the reduced primal problem.

    cost       Z(a) + sum s_i(y_i),    y = J a - aref
    gradient   g = M (a - a_free) - J^T f(y)
    step       p = -(M + J^T W J)^-1 g,    W = -df/dy
    iterate    a <- a + t p,    t by an exact line search

The cost is quadratic wherever the status of the rows does not change, so that one step of length 1 is exact
there and few iterations are needed. The Hessian has the sparsity of M where each row touches one branch of
the tree only (`PrimalCost`). Source: MuJoCo documentation, Computation, "Reduced primal problem"; Todorov,
"Convex and analytically-invertible dynamics with contacts and constraints" (ICRA 2014).
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import by_precision, is_single_precision, max_abs
from zwang.constraint.rows import Rows, WarmStart, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    MutableArray,
    absolute,
    cond,
    divide,
    empty,
    equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    where,
    while_loop,
)
from zwang.solver.primal_cost import PrimalCost, RowBlock
from zwang.solver.solution import Solution
from zwang.solver.warm_start import (
    StatusStorage,
    as_warm_start,
    decode_status,
    status_code,
)

TOLERANCE = 1e-11  # of the gradient, relative to the largest force in it
ITERATIONS = 100  # the limit, as in MuJoCo
# Steps are relative to the largest acceleration or, where it is larger, to this share of the free
# acceleration, by which rounding is told where constraints hold all bodies at rest. A share of 1 would end
# the method early in one tree if in another a stop holds a large force.
FREE_SHARE = 1e-3
SMALLEST_STEP = 1e-14  # a smaller step changes nothing
# A gradient of rounding errors, relative to the largest force of a row. It is all that is left at rest where
# forces of rows cancel each other, as those of overlapping shapes that cannot move apart.
ROUNDING = 1e-13
STAGNATION_STEP = 1e-9  # below this step an error that is no longer halved consists of rounding errors
SINGLE_PRECISION_STEP = 1e-5  # the same in single precision
SINGLE_PRECISION_STAGNATIONS = 3  # such steps before the method ends there
SINGLE_PRECISION_RESOLUTION = 1e-6  # of residuals there, relative to their terms at the start
LARGEST_STIFFNESS = 1e6  # D |y| at the start relative to the forces, up to which a step can be exact
TWO_SIDED = ("equality", "friction")  # kinds of rows that exert forces at residuals of both signs
USABLE_STEP = 1e-3  # at the iteration limit, accelerations that still change by more are not to be used
LINE_SEARCH_TOLERANCE = 0.01  # of the slope, relative to its initial value, as in MuJoCo


class _NewtonState(NamedTuple):
    """State of the iteration.

    a (nv,): the accelerations; smooth_force (nv,): M (a - a_free); y: the residual of the rows. status: of
    every block of rows. step: the largest change of an acceleration in the last step, NaN before the first;
    newton_step: the same before the line search. error: the largest entry of the gradient before it.
    stiffness: at the start, the largest D |y| of a row, and of one that would exert a force there; rounding
    errors of the forces are proportional to it where the start is far from the solution. stagnations:
    single-precision steps without progress. ended: whether no step follows. done: whether the method has
    terminated. usable: whether the last step was small enough for the accelerations to be used. stagnated:
    whether the method has terminated above its tolerance, because of rounding.
    """

    a: np.ndarray
    smooth_force: np.ndarray
    y: MutableArray
    status: MutableArray
    step: Any
    newton_step: Any
    error: Any
    stiffness: tuple[Any, Any]
    iterations: Any
    stagnations: Any
    ended: Any
    done: Any
    usable: Any
    stagnated: Any = 0.0 > 1.0


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
    one. tolerance: of the gradient, relative to the largest force in it. The method also terminates when no
    row changes its status over a full step, unless a row is so stiff that rounding errors count: otherwise
    that step is exact. Stiffness is judged by the residuals at the start; from accelerations close to the
    solution it is not seen. Every row must be soft (R > 0).
    """
    warm_start = as_warm_start(start)
    size = max_abs(problem.free_force_of())
    method = _Method(PrimalCost(problem, rows), warm_start, tolerance, iterations, size)
    initial = method.initial_state(None if warm_start else start)
    last = while_loop(lambda s: logical_not(s.ended), method.iterate, initial)
    return method.solution(last, len(rows))


class _Method(NamedTuple):
    """The cost, the row status of a similar problem, the tolerance of the gradient, the limit of iterations,
    and the largest free force.
    """

    cost: PrimalCost
    warm_start: WarmStart | None
    tolerance: float
    limit: int
    free_size: Any

    @property
    def storage(self) -> StatusStorage:
        """How the row status is kept for the next problem."""
        return StatusStorage.of(self.cost)

    def free_scale(self) -> Any:
        """The largest acceleration that the free force of one generalised velocity gives to it, the others
        held.
        """
        problem = self.cost.problem
        return max_abs(divide(f, problem.M[i, i]) for i, f in enumerate(problem.free_force_of()))

    @property
    def is_warm(self) -> bool:
        """Whether the row status of a similar problem is known."""
        return self.warm_start is not None

    def initial_state(self, start: Any) -> _NewtonState:
        """State at the initial accelerations, with the row status there or that of the warm start.

        The first step of a warm start goes to the minimum for its status from any accelerations, and begins
        at zero.
        """
        cost, problem, storage = self.cost, self.cost.problem, self.storage
        # without active rows the minimum is at a_free
        a, smooth_force, idle = np.array(problem.a_free), np.zeros(cost.nv), logical_not(cost.any_active())
        known = None
        if self.warm_start is not None:
            a, smooth_force, idle = np.zeros(cost.nv), -problem.free_force_of(), False
            known = storage.known(cost, self.warm_start(storage.size, storage.largest))
        elif start is not None:
            a, smooth_force, idle = np.array(start), cost.smooth_force(start), False
        x = cost.extended(a)

        def enter(block: RowBlock, carry: tuple[MutableArray, MutableArray, Any, Any]) -> Any:
            y, status, largest, exerting = carry
            own = block.jacobian_product(x) - block.aref
            code, before = status_code(block, own), 0.0 if known is None else block.value_in(known)
            for i, (kind, D, y_i) in enumerate(zip(block.kinds, block.D, own, strict=True)):
                size = D * absolute(y_i)
                largest = maximum(largest, size)
                if kind != "cone" or i == 0:  # the normal force of a cone bounds the others
                    exerts = True if kind in TWO_SIDED else y_i < 0
                    exerting = maximum(exerting, where(exerts, size, 0.0))
            status = block.with_value_in(status, where(before > 0, before, code))
            return block.with_values(y, own), status, largest, exerting

        start_of_rows = empty(cost.count), storage.unknown(), 0.0, 0.0
        y, status, *stiffness = cost.over_active_blocks(enter, start_of_rows)
        return _NewtonState(
            a, smooth_force, y, status, np.nan, np.nan, np.inf, tuple(stiffness), 0.0, 0.0, idle, idle, idle
        )

    def iterate(self, s: _NewtonState) -> _NewtonState:
        """State after one iteration: gradient, termination, direction, line search, new accelerations and
        status.
        """
        # gradient g = M (a - a_free) - J^T f, and Hessian M + J^T W J, with the forces of the status
        expansion = self.cost.expansion(s.y, decode_status(s.status))
        gradient = s.smooth_force - expansion.force
        s = self.terminated(s, max_abs(gradient), max_abs(s.smooth_force) + max_abs(expansion.force))
        return cond(s.ended, lambda s: s, lambda s: self.advanced(s, gradient, expansion.hessian), s)

    def terminated(self, s: _NewtonState, error: Any, largest: Any) -> _NewtonState:
        """The state, which knows whether it is the last. error: the largest entry of the gradient; largest:
        the largest force in it.
        """
        # the gradient of a warm start is that of its status, and the first step goes where this leads
        is_own, counts = (s.iterations > 0, s.iterations > 1) if self.is_warm else (True, s.iterations > 0)
        stagnant = logical_and(counts, error > s.error / 2)
        largest_a = max_abs(s.a)
        # of bodies that constraints hold at rest, the accelerations themselves are rounding errors
        scale = maximum(largest_a, cond(stagnant, lambda: FREE_SHARE * self.free_scale(), lambda: 0.0))
        no_step = logical_and(counts, s.step <= SMALLEST_STEP * scale)
        # a line search that ends at a kink shortens steps, too
        coarse = logical_and(is_single_precision(scale), s.newton_step <= SINGLE_PRECISION_STEP * scale)
        stagnations = s.stagnations + where(logical_and(stagnant, coarse), 1.0, 0.0)
        rounding = logical_or(
            logical_and(stagnant, s.newton_step <= STAGNATION_STEP * scale),
            stagnations >= SINGLE_PRECISION_STAGNATIONS,
        )
        rounding = logical_or(rounding, logical_and(stagnant, error <= ROUNDING * s.stiffness[1]))
        small = logical_and(is_own, error <= self.tolerance * largest)
        stagnated = logical_and(logical_or(no_step, rounding), logical_not(small))
        over = logical_or(small, logical_or(no_step, rounding))
        # otherwise the forces of rows are rounding errors of their residuals
        rounded = s.stiffness[1] * by_precision(scale, 0.0, SINGLE_PRECISION_RESOLUTION)
        resolved = logical_or(small, rounded <= largest)
        done = logical_and(over, resolved)
        ended = logical_or(over, s.iterations >= self.limit)
        usable = logical_and(logical_or(done, s.step <= USABLE_STEP * largest_a), resolved)
        return s._replace(
            error=error, stagnations=stagnations, ended=ended, done=done, usable=usable, stagnated=stagnated
        )

    def advanced(self, s: _NewtonState, gradient: np.ndarray, hessian: Any) -> _NewtonState:
        """The state after a step along the direction p = -(M + J^T W J)^-1 g."""
        p = -hessian.solve(gradient)
        Jp, same = self.along(s, p)
        s = s._replace(iterations=s.iterations + 1)

        def exact(s: _NewtonState) -> _NewtonState:
            return s._replace(a=s.a + p, ended=True, done=True, usable=True)

        def searched(s: _NewtonState) -> _NewtonState:
            Mp = self.cost.problem.force_of(p)
            length = self.step_length(s, p, Mp, Jp, gradient)

            def advance(block: RowBlock, carry: tuple[MutableArray, MutableArray]) -> Any:
                y, status = carry
                own = block.read(y) + length * block.read(Jp)
                return block.with_values(y, own), block.with_value_in(status, status_code(block, own))

            y, status = self.cost.over_active_blocks(advance, (s.y, s.status))
            step, smooth_force = length * p, s.smooth_force + length * Mp
            return s._replace(
                a=s.a + step,
                smooth_force=smooth_force,
                y=y,
                status=status,
                step=max_abs(step),
                newton_step=max_abs(p),
            )

        # a full step without a change of status is exact, but for rounding errors of stiff rows
        size = maximum(self.free_size, max_abs(s.smooth_force))
        resolved = s.stiffness[0] <= LARGEST_STIFFNESS * size
        return cond(logical_and(same, resolved), exact, searched, s)

    def along(self, s: _NewtonState, p: np.ndarray) -> tuple[MutableArray, Any]:
        """J p of the rows, and whether no active row changes its status over a full step: then the cost is
        quadratic along it.
        """
        x = self.cost.extended(p)

        def compare(block: RowBlock, carry: tuple[MutableArray, Any]) -> Any:
            Jp, same = carry
            own = block.jacobian_product(x)
            code = status_code(block, block.read(s.y) + own)
            alike = equal(code, block.value_in(s.status))
            alike = alike if block.cone is None else logical_and(alike, code > 0)
            return block.with_values(Jp, own), logical_and(same, alike)

        return self.cost.over_active_blocks(compare, (empty(self.cost.count), True))

    def step_length(
        self, s: _NewtonState, p: np.ndarray, Mp: np.ndarray, Jp: MutableArray, gradient: np.ndarray
    ) -> Any:
        """The step length that minimises the cost; 1 in the first step of a warm start."""

        def search() -> Any:
            at = s.smooth_force, s.y
            return self.cost.exact_line_search(at, p, Mp, Jp, gradient, tolerance=LINE_SEARCH_TOLERANCE)

        return cond(s.iterations > 1, search, lambda: 1.0) if self.is_warm else search()

    def solution(self, s: _NewtonState, count: int) -> Solution:
        """The accelerations, and the force and the status of every row; count: of the rows outside groups."""
        f = self.cost.forces(s.a)
        return Solution(
            s.a, scalar_array([f[i] for i in range(count)]), s.iterations, s.done,
            inaccurate=logical_not(s.usable),
            row_status=self.storage.kept(self.cost, s.status) if self.is_warm else None,
            stagnated=s.stagnated, row_force=f,
            overfull=reduce(logical_or, [rows.overfull for rows in self.cost.rows.coupled], False),
        )  # fmt: skip

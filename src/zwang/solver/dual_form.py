"""The problem of Newton's method in dual (Delassus) form, on the active rows of each world: the forces are
the unknowns.

    A = J M^-1 J^T,    y = y0 + A f,    y0 = J a_free - aref,    a = a_free + M^-1 J^T f
    linear rows, f = -D y:    (A + 1/D) f = -y0 - A f_bound    with the forces f_bound of rows at a bound

By Woodbury's identity this is the step with the Hessian M + J^T D J of the primal form. The work of a world
grows with the number of its active rows, not with the number of rows that might be active or of generalised
velocities. Source: Golub, Van Loan, Matrix Computations (2013), Section 2.1.4, for Woodbury's identity.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.delassus import DelassusMatrix
from zwang.algebra.dynamic_ldlt import SIDE
from zwang.algebra.factorization import Factors, factor
from zwang.constraint.row_arrays import WorldRows
from zwang.constraint.rows import scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    MutableArray,
    absolute,
    clip,
    cond,
    empty,
    equal,
    fori_loop,
    logical_and,
    maximum,
    where,
    zeros,
)
from zwang.solver.line_search import exact_line_search
from zwang.solver.solution import Solution

LINE_SEARCH_TOLERANCE = 0.01  # of the slope, relative to its initial value
ROUNDING = 1e-13  # rounding error of the slope, relative to its terms
LOWER, LINEAR, UPPER = 1.0, 2.0, 3.0  # row status: force at the lower bound, linear, at the upper bound


class DualProblem(NamedTuple):
    """The problem in dual form; all arrays are of the active rows of each world.

    delassus: A = J M^-1 J^T. y0 (size,); D = 1/R (size,); lower, upper (size,): the bounds of the forces,
    None where all are 0 and inf.
    """

    delassus: DelassusMatrix
    y0: MutableArray
    D: MutableArray
    lower: MutableArray | None
    upper: MutableArray | None

    @property
    def n(self) -> Any:
        """The largest number of active rows in any lane."""
        return self.delassus.n

    @property
    def size(self) -> int:
        """The capacity in rows."""
        return self.delassus.size

    def status(self, k: Any, y: Any) -> Any:
        """Status of row k at the residual y."""
        return _row_status(self.D[k], y, *self.bounds(k))

    def force(self, k: Any, y: Any) -> Any:
        """Force of row k at the residual y."""
        return clip(-self.D[k] * y, *self.bounds(k))

    def bounds(self, k: Any) -> tuple[Any, Any]:
        """Lower and upper bound of the force of row k."""
        return (0.0, np.inf) if self.lower is None or self.upper is None else (self.lower[k], self.upper[k])

    def bound_force(self, k: Any, status: Any) -> Any:
        """Force of row k at the bound that its status says."""
        lower, upper = self.bounds(k)
        return lower if self.lower is None else where(equal(status, LOWER), lower, upper)

    def for_all_rows(self, body: Any, init: Any) -> Any:
        """The carry after body(k, carry) for every row k."""
        return fori_loop(0, self.n, body, init)


class _Forces(NamedTuple):
    """Forces f (size,) and the residual y = y0 + A f of the rows."""

    f: MutableArray
    y: MutableArray


class DualForm(NamedTuple):
    """The problem in dual form, the status to start from, the rows from which it stems, and the free
    acceleration (nv,); count: the number of rows outside groups.
    """

    p: DualProblem
    status: MutableArray
    rows: WorldRows
    a_free: np.ndarray
    count: int

    @property
    def is_warm(self) -> bool:
        """Whether the row status of a similar problem is known: always."""
        return True

    def initial(self) -> tuple[_Forces, MutableArray]:
        """No forces, and the stored status."""
        p = self.p
        f = p.for_all_rows(lambda k, f: f.set(k, 0.0), empty(p.size))
        y = p.for_all_rows(lambda k, y: y.set(k, p.y0[k]), empty(p.size))
        return _Forces(f, y), self.status

    def has_no_rows(self) -> Any:
        """Whether no row is active."""
        return self.rows.items.count < 1

    def initial_gradient(self, point: _Forces, status: MutableArray) -> tuple[()]:
        """Nothing: the direction does not need a gradient."""
        return ()

    def gradient(self, point: _Forces, status: MutableArray) -> tuple[tuple[()], Any, Any, Any]:
        """The largest violation of the force law, and the largest force, twice: the forces are the
        unknowns.
        """

        def compare(k: Any, carry: Any) -> Any:
            error, largest = carry
            force = point.f[k]
            violation = absolute(force - self.p.force(k, point.y[k]))
            return maximum(error, violation), maximum(largest, absolute(force))

        error, largest = self.p.for_all_rows(compare, (0.0, 0.0))
        return (), error, largest, largest

    def direction(self, point: _Forces, gradient: tuple[()], status: MutableArray) -> _Forces:
        """The forces and residual of a full step: those of this status."""
        return _forces_of_status(self.p, status)

    def status_is_unchanged(self, point: _Forces, direction: _Forces, status: MutableArray) -> Any:
        """Whether no row changes its status over a full step."""

        def compare(k: Any, same: Any) -> Any:
            return logical_and(same, equal(self.p.status(k, direction.y[k]), status[k]))

        return self.p.for_all_rows(compare, True)

    def step_length(self, point: _Forces, direction: _Forces, gradient: tuple[()]) -> Any:
        """The step length that minimises the cost."""
        return _line_search(self.p, point, direction)

    def advanced(
        self, point: _Forces, direction: _Forces, length: Any, status: MutableArray
    ) -> tuple[_Forces, MutableArray, Any]:
        """The point after a step, the status there, and the largest change of a force."""
        whole = equal(length, 1.0)

        def advance(k: Any, carry: Any) -> Any:
            f, y, status, largest = carry
            change, y_change = length * (direction.f[k] - f[k]), length * (direction.y[k] - y[k])
            force, residual = (
                where(whole, direction.f[k], f[k] + change),
                where(whole, direction.y[k], y[k] + y_change),
            )
            f, y = f.set(k, force), y.set(k, residual)
            return f, y, status.set(k, self.p.status(k, residual)), maximum(largest, absolute(change))

        f, y, status, step = self.p.for_all_rows(advance, (point.f, point.y, status, 0.0))
        return _Forces(f, y), status, step

    def solution(self, point: _Forces, status: MutableArray) -> Solution:
        """a = a_free + M^-1 J^T f, and the force and the status of every row."""
        p, items = self.p, self.rows.items

        def by_number(values: MutableArray) -> MutableArray:
            def store(k: Any, found: MutableArray) -> MutableArray:
                return cond(
                    items.has(k), lambda x: x.scatter(items.numbers[k], values[k]), lambda x: x, found
                )

            return p.for_all_rows(store, zeros(items.size))

        a = self.a_free + p.delassus.accelerations(point.f)
        f = by_number(point.f)
        own = scalar_array([f[i] for i in range(self.count)])
        return Solution(a, own, 0.0, True, row_status=by_number(status), row_force=f)


def dual_form(problem: GaussProblem, rows: WorldRows, count: int) -> DualForm:
    """The dual form of the active rows of each world; count: the number of rows outside groups."""
    M, n = factor(problem.M, problem.parents), rows.items.lane_count
    X, numbers, status = _row_arrays(problem, rows, M, n)
    lower, upper = numbers.get("lower"), numbers.get("upper")
    p = DualProblem(DelassusMatrix.of(M, X, n), numbers["y0"], numbers["D"], lower, upper)
    return DualForm(p, status, rows, problem.a_free, count)


def _row_arrays(
    problem: GaussProblem, rows: WorldRows, M: Factors, n: Any
) -> tuple[MutableArray, dict[str, MutableArray], MutableArray]:
    """X, y0, D and bounds of all rows, and their initial status.

    The initial status is the known one or, where none is known, that at the free acceleration.
    """
    capacity, nv = -(-rows.items.size // SIDE) * SIDE, len(problem.a_free)
    fields = ["y0", "D", *(("lower", "upper") if rows.bounds is not None else ())]

    def enter(k: Any, carry: Any) -> Any:
        X, numbers, status = carry
        J, D, bounds, known = rows.jacobian(k), rows.value("D", k), rows.force_bounds(k), rows.known_status(k)
        for j, x in enumerate(M.solve_transposed(J)):
            X = X.set((k, j), x)
        y0 = J @ problem.a_free - rows.value("aref", k)
        values = {"y0": y0, "D": D, "lower": bounds[0], "upper": bounds[1]}
        numbers = {name: numbers[name].set(k, values[name]) for name in fields}
        return X, numbers, status.set(k, where(known > 0, known, _row_status(D, y0, *bounds)))

    arrays = {name: empty(capacity) for name in fields}
    return fori_loop(0, n, enter, (empty((capacity, nv)), arrays, empty(capacity)))


def _row_status(D: Any, y: Any, lower: Any, upper: Any) -> Any:
    """Status of a row at the residual y."""
    return where(-D * y <= lower, LOWER, where(-D * y < upper, LINEAR, UPPER))


def _forces_of_status(p: DualProblem, status: MutableArray) -> _Forces:
    """Forces f (size,) and residual y = y0 + A f for this status: (A + 1/D) f = -y0 - A f_bound for the
    linear rows.
    """

    def split(k: Any, carry: Any) -> Any:
        linear, f = carry
        is_linear = equal(status[k], LINEAR)
        return linear.set(k, where(is_linear, 1.0, 0.0)), f.set(
            k, where(is_linear, 0.0, p.bound_force(k, status[k]))
        )

    linear, f = p.for_all_rows(split, (empty(p.size), empty(p.size)))
    residual = p.y0 if p.lower is None else p.delassus.with_product(p.y0, p.n, lambda k: (k, f[k]))
    factors = p.delassus.update(p.D, linear)
    x = factors.solve(lambda k: -residual[k])
    return _Forces(factors.scattered(x, f), factors.with_product(residual, x))


def _line_search(p: DualProblem, s: _Forces, full: _Forces) -> Any:
    """Step length from s towards the forces and residual of a full step that minimises the cost."""

    def slope_at(t: Any) -> tuple[Any, Any]:
        def add(k: Any, sums: Any) -> Any:
            f_change, y_change = full.f[k] - s.f[k], full.y[k] - s.y[k]
            residual = s.y[k] + t * y_change
            linear = equal(p.status(k, residual), LINEAR)
            curvature = where(linear, p.D[k] * y_change * y_change, 0.0)
            slope = (s.f[k] + t * f_change - p.force(k, residual)) * y_change
            return sums[0] + slope, sums[1] + f_change * y_change + curvature

        return p.for_all_rows(add, (0.0, 0.0))

    def parts(k: Any, sums: Any) -> Any:
        y_change = full.y[k] - s.y[k]
        return sums[0] + (s.f[k] - p.force(k, s.y[k])) * y_change, sums[1] + absolute(s.f[k] * y_change)

    initial_slope, magnitude = p.for_all_rows(parts, (0.0, 0.0))
    return exact_line_search(slope_at, initial_slope, 1.0, LINE_SEARCH_TOLERANCE, ROUNDING * magnitude)

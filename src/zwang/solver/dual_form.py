"""The problem of Newton's method in dual (Delassus) form, on the active rows of each world: the forces are
the unknowns.

    A = J M^-1 J^T,    y = y0 + A f,    y0 = J a_free - aref,    a = a_free + M^-1 J^T f
    linear rows, f = -D y:    (A + 1/D) f = -y0 - A f_bound    with the forces f_bound of rows at a bound

By Woodbury's identity this is the step with the Hessian M + J^T D J of the primal form. The work of a world
grows with the number of its active rows, not with the number of rows that might be active or of generalised
velocities. Source: Golub, Van Loan, Matrix Computations (2013), Section 2.1.4, for Woodbury's identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dynamic_ldlt import SIDE, solve_dynamic_ldlt
from zwang.algebra.factorization import Factors, factor
from zwang.constraint.row_arrays import WorldRows
from zwang.constraint.rows import scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    ActiveIndices,
    MutableArray,
    absolute,
    clip,
    cond,
    empty,
    equal,
    fori_loop,
    logical_and,
    maximum,
    table,
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

    n: the largest number of active rows in any lane; blocks: the number of blocks of rows that contain them.
    X = L^-T J^T (size, nv) with M = L^T D L; A = J M^-1 J^T, the Delassus matrix (size, size); y0 (size,); D
    = 1/R (size,); lower, upper (size,): the bounds of the forces, None where all are 0 and inf.
    """

    n: Any
    blocks: Any
    X: MutableArray
    A: MutableArray
    y0: MutableArray
    D: MutableArray
    lower: MutableArray | None
    upper: MutableArray | None

    @property
    def size(self) -> int:
        """The capacity in rows, a multiple of the block size."""
        return self.D.shape[0]

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
    """The problem in dual form, the status to start from, the rows and the problem from which it stems, and
    the factors of the mass matrix; count: the number of rows outside groups.
    """

    p: DualProblem
    status: MutableArray
    rows: WorldRows
    problem: GaussProblem
    M: Factors
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
        """a = a_free + M^-1 J^T f = a_free + L^-1 D^-1 X^T f, and the force and the status of every row."""
        p, items = self.p, self.rows.items

        def add_row(k: Any, g: np.ndarray) -> np.ndarray:
            return g + point.f[k] * _row(p.X, k)

        def by_number(values: MutableArray) -> MutableArray:
            def store(k: Any, found: MutableArray) -> MutableArray:
                return cond(
                    items.has(k), lambda x: x.scatter(items.numbers[k], values[k]), lambda x: x, found
                )

            return p.for_all_rows(store, zeros(items.size))

        generalised_force = p.for_all_rows(add_row, np.zeros(len(self.problem.a_free)))
        change = self.M.solve_scaled(generalised_force)
        f = by_number(point.f)
        own = scalar_array([f[i] for i in range(self.count)])
        a = self.problem.a_free + change
        return Solution(a, own, 0.0, True, row_status=by_number(status), row_force=f)


def dual_form(problem: GaussProblem, rows: WorldRows, count: int) -> DualForm:
    """The dual form of the active rows of each world; count: the number of rows outside groups."""
    M = factor(problem.M, problem.parents)
    return DualForm(*_dual_problem(problem, rows, M), rows, problem, M, count)


def _dual_problem(problem: GaussProblem, rows: WorldRows, M: Factors) -> tuple[DualProblem, MutableArray]:
    """The problem in dual form, and the initial status of its rows."""
    n = rows.items.lane_count
    blocks, pairs = (table([-(-k // of) for k in range(rows.items.size + 1)])[n] for of in (SIDE, 2))
    X, numbers, status = _row_arrays(problem, rows, M, n)
    A = _delassus_matrix(X, M.reciprocals, pairs)
    lower, upper = numbers.get("lower"), numbers.get("upper")
    return DualProblem(n, blocks, X, A, numbers["y0"], numbers["D"], lower, upper), status


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


def _delassus_matrix(X: MutableArray, reciprocals: np.ndarray, pairs: Any) -> MutableArray:
    """Delassus matrix A = X D^-1 X^T, two rows at a time, so that the other factor is read once for both."""
    capacity = X.shape[0]

    def products(pair: Any, A: MutableArray) -> MutableArray:
        rows = [2 * pair, 2 * pair + 1]
        scaled = [_row(X, k) * reciprocals for k in rows]

        def product(l: Any, A: MutableArray) -> MutableArray:
            other_row = _row(X, l)
            for k, x in zip(rows, scaled, strict=True):
                a = sum(x[c::3] @ other_row[c::3] for c in range(3))  # three independent sums
                A = A.set((k, l), a).set((l, k), a)
            return A

        return fori_loop(0, 2 * pair + 2, product, A)

    return fori_loop(0, pairs, products, empty((capacity, capacity)))


def _row_status(D: Any, y: Any, lower: Any, upper: Any) -> Any:
    """Status of a row at the residual y."""
    return where(-D * y <= lower, LOWER, where(-D * y < upper, LINEAR, UPPER))


def _row(X: MutableArray, k: Any) -> np.ndarray:
    """Row k of a matrix."""
    return np.array([X[k, j] for j in range(X.shape[1])])


def _forces_of_status(p: DualProblem, status: MutableArray) -> _Forces:
    """Forces f (size,) and residual y = y0 + A f for this status: (A + 1/D) f = -y0 - A f_bound for the
    linear rows.

    The system is gathered from the rows that are linear in some lane; where a row is not linear in a lane,
    its equation there is that of the identity.
    """
    size = p.size

    def split(k: Any, carry: Any) -> Any:
        free, f = carry
        is_linear = equal(status[k], LINEAR)
        return free.set(k, where(is_linear, 1.0, 0.0)), f.set(
            k, where(is_linear, 0.0, p.bound_force(k, status[k]))
        )

    free, f = p.for_all_rows(split, (empty(size), empty(size)))
    residual = p.y0 if p.lower is None else _with_delassus_product(p, p.y0, p.n, lambda k: (k, f[k]))
    linear_rows = ActiveIndices(free, p.n)
    block_count = table([-(-k // SIDE) for k in range(size + 1)])[linear_rows.count]
    is_linear = fori_loop(
        0, linear_rows.count, lambda i, is_linear: is_linear.set(i, free[linear_rows[i]]), empty(size)
    )
    is_linear = fori_loop(
        linear_rows.count, SIDE * block_count, lambda i, is_linear: is_linear.set(i, 0.0), is_linear
    )

    def entry(i: Any, j: Any) -> Any:
        if i is j:
            k = linear_rows[i]
            return where(is_linear[i] > 0, p.A[k, k] + 1 / where(is_linear[i] > 0, p.D[k], 1.0), 1.0)
        return where(
            logical_and(is_linear[i] > 0, is_linear[j] > 0), p.A[linear_rows[i], linear_rows[j]], 0.0
        )

    def right(i: Any) -> Any:
        return where(is_linear[i] > 0, -residual[linear_rows[i]], 0.0)

    x = solve_dynamic_ldlt(block_count, size // SIDE, entry, right)
    y = _with_delassus_product(p, residual, SIDE * block_count, lambda i: (linear_rows[i], x[i]))

    def scatter(i: Any, f: MutableArray) -> MutableArray:
        k = linear_rows[i]
        return f.set(k, where(is_linear[i] > 0, x[i], f[k]))

    return _Forces(fori_loop(0, linear_rows.count, scatter, f), y)


def _with_delassus_product(
    p: DualProblem, y: MutableArray, number: Any, part: Callable[[Any], tuple[Any, Any]]
) -> MutableArray:
    """y + A f (size,) for f with `number` entries, part(i) = (row, value)."""

    def block(b: Any, total: MutableArray) -> MutableArray:
        rows = [SIDE * b + c for c in range(SIDE)]

        def add(i: Any, sums: Any) -> Any:
            column, value = part(i)
            return [x + p.A[k, column] * value for x, k in zip(sums, rows, strict=True)]

        for k, x in zip(rows, fori_loop(0, number, add, [y[k] for k in rows]), strict=True):
            total = total.set(k, x)
        return total

    return fori_loop(0, p.blocks, block, empty(p.size))


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

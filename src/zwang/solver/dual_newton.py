"""Newton's method in dual (Delassus) form, on compacted rows: the same iterates as `newton`, with the forces
as unknowns.

    A = J M^-1 J^T,    y = y0 + A f,    y0 = J a_free - aref,    a = a_free + M^-1 J^T f
    linear rows, f = -D y:    (A + 1/D) f = -y0 - A f_bound    with the forces f_bound of rows at a bound

By Woodbury's identity this is the step with the Hessian M + J^T D J of the primal form. The work of a world
grows with the number of its active rows, not with the number of rows that might be active or of generalised
velocities. Source: MuJoCo documentation, Computation, "Reduced primal problem"; Todorov, "Convex and
analytically-invertible dynamics with contacts and constraints" (ICRA 2014); Golub, Van Loan, Matrix
Computations (2013), Section 2.1.4, for Woodbury's identity.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dynamic_ldlt import SIDE, solve_dynamic_ldlt
from zwang.algebra.factorization import ltdl, solve_transposed_unit_lower, solve_unit_lower
from zwang.constraint.compacted_rows import CompactedRows, decode_signs
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
    is_zero,
    lane_maximum,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    table,
    where,
    while_loop,
    zeros,
)
from zwang.solver.line_search import exact_line_search
from zwang.solver.solution import Solution, is_single_precision

TOLERANCE = 1e-11  # of the forces, relative to the largest
ITERATIONS = 100
LINE_SEARCH_TOLERANCE = 0.01  # of the slope, relative to its initial value
ROUNDING = 1e-13  # rounding error of the slope, relative to its terms
SMALLEST_CHANGE = 1e-13  # a smaller change of the forces, relative to the largest, is rounding
SINGLE_PRECISION_CHANGE = 1e-5  # the same in single precision, ...
SINGLE_PRECISION_STAGNATIONS = 3  # ... after this many such changes
USABLE_CHANGE = 1e-3  # at the iteration limit, forces that still change by more are not to be used
LOWER, LINEAR, UPPER = 1.0, 2.0, 3.0  # row status: force at the lower bound, linear, at the upper bound


class _DualProblem(NamedTuple):
    """The problem in dual form; all arrays are of the compacted rows of each world.

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


class _DualNewtonState(NamedTuple):
    """State of the iteration.

    Forces f, residual y = y0 + A f and row status (size,); iterations; the largest violation of the force
    law; stagnations so far; whether the method has terminated; whether the last change was small enough for
    the forces to be used; whether the method has terminated above its tolerance, because of rounding.
    """

    f: MutableArray
    y: MutableArray
    status: MutableArray
    iterations: Any
    error: Any
    stagnations: Any
    done: Any
    usable: Any
    stagnated: Any = 0.0 > 1.0


def dual_newton(problem: GaussProblem, compacted: CompactedRows) -> Solution:
    """Minimiser of Z(a) + sum s_i(J_i a - aref_i) by Newton's method in dual form, and the status of all
    rows.

    compacted: the active rows of each world, with the status from which the method starts. The forces of the
    solution are not reported.
    """
    factors = ltdl(problem.M, problem.parents)
    p, status = _dual_problem(problem, compacted, factors)
    f = p.for_all_rows(lambda k, f: f.set(k, 0.0), empty(p.size))
    y = p.for_all_rows(lambda k, y: y.set(k, p.y0[k]), empty(p.size))
    no_rows = compacted.count < 1

    def unfinished(s: _DualNewtonState) -> Any:
        return logical_and(logical_not(s.done), s.iterations < ITERATIONS)

    last = while_loop(
        unfinished, lambda s: _iterate(p, s), _DualNewtonState(f, y, status, 0.0, 0.0, 0.0, no_rows, no_rows)
    )

    def add_row(k: Any, g: np.ndarray) -> np.ndarray:
        return g + last.f[k] * _row(p.X, k)

    # a = a_free + M^-1 J^T f = a_free + L^-1 D^-1 X^T f
    L, reciprocals = factors
    generalised_force = p.for_all_rows(add_row, np.zeros(len(problem.a_free)))
    a = problem.a_free + solve_unit_lower(L, problem.parents, generalised_force * np.array(reciprocals))

    def store(k: Any, codes: MutableArray) -> MutableArray:
        inside = 1.0 * k < compacted.count
        return cond(inside, lambda c: c.scatter(compacted.numbers[k], last.status[k]), lambda c: c, codes)

    codes = p.for_all_rows(store, zeros(compacted.size))
    inaccurate = logical_not(logical_or(last.done, last.usable))
    return Solution(
        a,
        np.zeros(0),
        last.iterations,
        last.done,
        inaccurate=inaccurate,
        row_status=codes,
        stagnated=last.stagnated,
    )


def _dual_problem(
    problem: GaussProblem, compacted: CompactedRows, factors: Any
) -> tuple[_DualProblem, MutableArray]:
    """The problem in dual form, and the initial status of its rows."""
    n = lane_maximum(compacted.count, compacted.size)
    blocks, pairs = (table([-(-k // of) for k in range(compacted.size + 1)])[n] for of in (SIDE, 2))
    X, numbers, status = _row_arrays(problem, compacted, factors[0], n)
    A = _delassus_matrix(X, np.array(factors[1]), pairs)
    lower, upper = numbers.get("lower"), numbers.get("upper")
    return _DualProblem(n, blocks, X, A, numbers["y0"], numbers["D"], lower, upper), status


def _row_arrays(
    problem: GaussProblem, compacted: CompactedRows, L: Any, n: Any
) -> tuple[MutableArray, dict[str, MutableArray], MutableArray]:
    """X, y0, D and bounds of all rows, and their initial status.

    The initial status is the stored one or, where none is stored, that at the free acceleration.
    """
    capacity, nv = -(-compacted.size // SIDE) * SIDE, len(problem.a_free)
    fields = ["y0", "D", *(("lower", "upper") if compacted.has_bounds else ())]

    def enter(k: Any, carry: Any) -> Any:
        X, numbers, status = carry
        row = compacted.row(k)
        J = np.array(decode_signs(row.sign_words, nv)) * (row.w @ compacted.S)
        for i, other_row in compacted.coupling_rows.items():
            is_this_row = logical_and(1.0 * k < compacted.count, equal(compacted.numbers[k], i))
            J = np.array(
                [x if is_zero(o) else where(is_this_row, o, x) for x, o in zip(J, other_row, strict=True)]
            )
        for j, x in enumerate(solve_transposed_unit_lower(L, problem.parents, J)):
            X = X.set((k, j), x)
        y0, code = J @ problem.a_free - row.aref, compacted.row_status[k]
        values = {"y0": y0, "D": row.D, "lower": row.lower, "upper": row.upper}
        numbers = {name: numbers[name].set(k, values[name]) for name in fields}
        return X, numbers, status.set(k, where(code > 0, code, _row_status(row.D, y0, row.lower, row.upper)))

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


def _iterate(p: _DualProblem, s: _DualNewtonState) -> _DualNewtonState:
    """State after one iteration: Newton step, line search, new forces, status, termination."""
    # the forces of a full Newton step, if no row changes its status
    f, y = _newton_step(p, s.status)

    def compare(k: Any, same: Any) -> Any:
        return logical_and(same, equal(p.status(k, y[k]), s.status[k]))

    same = p.for_all_rows(compare, 1.0 * p.n >= 0.0)
    # step length: 1 where no row changes its status, and in the first iteration
    full = logical_or(same, s.iterations < 1)
    t = cond(full, lambda: 1.0, lambda: _line_search(p, s, f, y))

    def advance(k: Any, carry: Any) -> Any:
        f_now, y_now, status, largest_change, error, largest_force = carry
        change, y_change = t * (f[k] - f_now[k]), t * (y[k] - y_now[k])
        force, residual = where(full, f[k], f_now[k] + change), where(full, y[k], y_now[k] + y_change)
        force_error = absolute(force - p.force(k, residual))
        f_now, y_now = f_now.set(k, force), y_now.set(k, residual)
        status = status.set(k, p.status(k, residual))
        return (
            f_now,
            y_now,
            status,
            maximum(largest_change, absolute(change)),
            maximum(error, force_error),
            maximum(largest_force, absolute(force)),
        )

    f_now, y_now, status, largest_change, error, largest_force = p.for_all_rows(
        advance, (s.f, s.y, s.status, 0.0, 0.0, 0.0)
    )
    # the first change, from zero to the forces of the initial status, is no sign of termination
    counts = s.iterations >= 1
    stagnant = logical_and(counts, logical_and(is_single_precision(largest_force), error > s.error / 2))
    stagnations = s.stagnations + where(
        logical_and(stagnant, largest_change <= SINGLE_PRECISION_CHANGE * largest_force), 1.0, 0.0
    )
    stagnated = logical_and(
        counts,
        logical_or(
            largest_change <= SMALLEST_CHANGE * largest_force, stagnations >= SINGLE_PRECISION_STAGNATIONS
        ),
    )
    accurate = logical_or(same, error <= TOLERANCE * largest_force)
    return _DualNewtonState(
        f_now,
        y_now,
        status,
        s.iterations + 1,
        error,
        stagnations,
        logical_or(accurate, stagnated),
        largest_change <= USABLE_CHANGE * largest_force,
        logical_and(stagnated, logical_not(accurate)),
    )


def _newton_step(p: _DualProblem, status: MutableArray) -> tuple[MutableArray, MutableArray]:
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

    return fori_loop(0, linear_rows.count, scatter, f), y


def _with_delassus_product(
    p: _DualProblem, y: MutableArray, number: Any, part: Callable[[Any], tuple[Any, Any]]
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


def _line_search(p: _DualProblem, s: _DualNewtonState, f: MutableArray, y: MutableArray) -> Any:
    """Step length from s towards the forces f and residual y that minimises the cost."""

    def slope_at(t: Any) -> tuple[Any, Any]:
        def add(k: Any, sums: Any) -> Any:
            f_change, y_change = f[k] - s.f[k], y[k] - s.y[k]
            residual = s.y[k] + t * y_change
            curvature = where(equal(p.status(k, residual), LINEAR), p.D[k] * y_change * y_change, 0.0)
            return sums[0] + (s.f[k] + t * f_change - p.force(k, residual)) * y_change, sums[
                1
            ] + f_change * y_change + curvature

        return p.for_all_rows(add, (0.0, 0.0))

    def parts(k: Any, sums: Any) -> Any:
        y_change = y[k] - s.y[k]
        return sums[0] + (s.f[k] - p.force(k, s.y[k])) * y_change, sums[1] + absolute(s.f[k] * y_change)

    initial_slope, magnitude = p.for_all_rows(parts, (0.0, 0.0))
    return exact_line_search(slope_at, initial_slope, 1.0, LINE_SEARCH_TOLERANCE, ROUNDING * magnitude)

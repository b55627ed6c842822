"""Coordinate reduction (embedding) of hard equalities: a = V z + p, and the equations projected by V; on any
scalar.

    A a = b  solved for a by elimination,     V^T M (V z + p - a_free) = 0

The motion is found without constraint forces; `multipliers` finds the same motion with them. The independent
accelerations z = S a are either given by the user, as the rows of S, or selected by the elimination: in each
row the largest entry becomes dependent. This selection is made anew in each step and in each world, so that
a selection that becomes singular during the motion is abandoned. Source: Luchtenburg, Shah, Impelluso, "A
projection-based derivation of the equations of motion for the moving frame method for multi-body dynamics"
(IMECE 2021-72324), Eqs. 40-42.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import factor
from zwang.algebra.norms import max_abs
from zwang.constraint.rows import Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import DependentVelocitiesError, InconsistentConstraintsError
from zwang.scalar import (
    MutableArray,
    absolute,
    cond,
    divide,
    empty,
    equal,
    fori_loop,
    is_zero,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    mutable_array,
    raise_if,
    sqrt,
    where,
    zeros,
)
from zwang.solver.solution import Solution

# Pivots above this are eliminated first: a row that passes through zero, as those of loops do, has a large
# relative error there. Rows are scaled so that the largest entry of each constraint is 1.
STRONG_PIVOT = 0.1
WEAK_PIVOT = 1e-7  # a row whose largest remaining entry is below this depends on the others, ...
VIOLATION_FACTOR = 30.0  # ... or below this times the violation, by which dependent rows differ
SINGULAR_PIVOT = 1e-9  # given independent velocities are singular where their pivots are below this
SMALLEST_RIGHT = 1e-3  # [rad/s^2, m/s^2] to which remainders of right-hand sides are relative at least
INCONSISTENT_REMAINDER = 0.3  # of a dependent row's right-hand side, above which it contradicts the others
RELATIVE_RIDGE = 1e-9  # of the normal equations for the forces, removed again by iterative refinement
REFINEMENTS = 3  # of the forces of least norm


class CoordinateReduction(NamedTuple):
    """All a with A a = b: a = V z + particular, particular (n,).

    columns (m, n): the columns of V as rows. unknown (m,): whether z has an entry here. In an automatic
    selection m = n; z_k is a_k where that acceleration is independent, and no unknown elsewhere. dependent:
    whether given independent velocities depend on each other or on the constraints. inconsistent: whether no
    a satisfies all rows.
    """

    columns: MutableArray
    particular: np.ndarray
    unknown: tuple[Any, ...]
    dependent: Any = False
    inconsistent: Any = False

    @property
    def V(self) -> np.ndarray:
        """V (n, m)."""
        m, n = self.columns.shape
        return scalar_array([self.columns[j, i] for i in range(n) for j in range(m)]).reshape(n, m)

    def projected(self, M: Any) -> list[list[Any]]:
        """The lower triangle of V^T M V, for M (n, n); the diagonal has ones where z has no entry."""
        m, n = self.columns.shape
        columns, M = self.columns, np.array(M)

        def row(i: Any, products: MutableArray) -> MutableArray:
            weighted = M @ np.array([columns[i, k] for k in range(n)])

            def product(j: Any, products: MutableArray) -> MutableArray:
                return products.set((i, j), sum((columns[j, k] * x for k, x in enumerate(weighted)), start=0))

            return fori_loop(0, i + 1, product, products)

        products = fori_loop(0, m, row, empty((m, m)))
        unit = [where(is_unknown, 0, 1) for is_unknown in self.unknown]
        return [[products[i, j] + (unit[i] if i == j else 0) for j in range(i + 1)] for i in range(m)]


def coordinate_reduction(rows: Rows, S: Any = None) -> CoordinateReduction:
    """The accelerations that satisfy hard equalities, by Gauss-Jordan elimination.

    S (m, n): the independent accelerations z = S a, by default selected by the elimination. On floats it
    raises DependentVelocitiesError for dependent z, and InconsistentConstraintsError, naming the constraints,
    for inconsistent rows; on other scalars the result reports both.
    """
    scales = row_scales(rows)
    A, b = scales[:, None] * rows.J, scales * rows.aref
    pivots = (STRONG_PIVOT, dependence_bound(rows))
    found = _by_elimination(A, b, pivots) if S is None else _by_selection(A, b, np.array(S), pivots)
    names = ", ".join(dict.fromkeys(rows.names))
    dependent = DependentVelocitiesError(
        "the independent velocities depend on each other, or are fixed by the constraints, in this state; "
        "choose others, or let the elimination choose them at each step (coordinate_reduction=True)"
    )
    inconsistent = InconsistentConstraintsError(
        f"the hard constraints {names} contradict each other: no acceleration satisfies them all; give one "
        "of them a softness, remove one, or start in a configuration where they agree"
    )
    raise_if(found.dependent, lambda: dependent)
    raise_if(found.inconsistent, lambda: inconsistent)
    return found


def solve_reduced(
    problem: GaussProblem,
    rows: Rows,
    S: Any = None,
    others: Callable[[GaussProblem, Rows], Solution] | None = None,
) -> Solution:
    """Acceleration under hard equalities A a = b and other rows, by coordinate reduction, with all forces.

    S (m, n): the independent accelerations, as for `coordinate_reduction`. others: solves the reduced
    problem, in z, with the rows that are not hard equalities; required if there are any. Equalities that are
    not finite, such as that of a distance of zero, have no solution: it has not converged then.
    """
    equalities = [i for i, hard in enumerate(rows.hard) if hard and rows.kinds[i] == "equality"]
    rest = [i for i in range(len(rows)) if i not in set(equalities)]
    hard_rows, other_rows = rows.select(equalities), rows.select(rest)
    reduction = coordinate_reduction(hard_rows, S)
    reduced_problem, reduced_rows = _projected(problem, other_rows, reduction)
    found = Solution(reduced_problem.a_free, np.zeros(0), 0.0, 0.0 < 1.0)
    if rest:
        assert others is not None
        found = others(reduced_problem, reduced_rows)
    a = reduction.V @ found.acceleration + reduction.particular
    # the equalities' force balances M (a - a_free) less the forces of the other rows
    constraint_force = problem.M @ (a - problem.a_free) - (other_rows.J.T @ found.force if rest else 0)
    # least sum of w f^2 with the inverse weights w: redundant rows share their force as by `multipliers`
    scale = scalar_array([divide(1, sqrt(where(w > 0, w, 1))) for w in hard_rows.inverse_weight])
    forces = [*found.force, *(scale * forces_of(scale[:, None] * hard_rows.J, constraint_force))]
    force = dict(zip([*rest, *equalities], forces, strict=True))
    # numbers that are not finite pass all comparisons of the elimination
    is_finite = sum(absolute(x) for x in [*hard_rows.J.flat, *hard_rows.aref]) < np.inf
    return found._replace(
        acceleration=a, force=scalar_array([force[i] for i in range(len(rows))]), row_force=None,
        dependent=reduction.dependent, inconsistent=reduction.inconsistent,
        converged=logical_and(found.converged, is_finite),
        inaccurate=logical_or(found.failed, logical_not(is_finite)), near_change=None,
    )  # fmt: skip


def _projected(
    problem: GaussProblem, rows: Rows, reduction: CoordinateReduction
) -> tuple[GaussProblem, Rows]:
    """The problem and its other rows in z; entries of z that are no unknowns stay zero and have unit
    inertia.
    """
    V, p, m = reduction.V, reduction.particular, len(reduction.unknown)
    inertia = reduction.projected(problem.M)
    # V^T M V z_free = V^T M (a_free - p)
    free = factor(inertia).solve(V.T @ (problem.M @ (problem.a_free - p))) if m else np.zeros(0)
    whole = np.array([[inertia[max(i, j)][min(i, j)] for j in range(m)] for i in range(m)])
    parents = tuple(range(-1, m - 1))
    reduced = GaussProblem(whole.reshape(m, m), free, parents)
    return reduced, rows.replaced(J=rows.J @ V, aref=rows.aref - rows.J @ p)


def forces_of(A: Any, constraint_force: Any) -> np.ndarray:
    """Forces f (k,) of least norm with A^T f = constraint_force, by ridge regression with iterative
    refinement.

    constraint_force (nv,) must lie in the range of A^T. Redundant rows share their force.
    """
    used = [i for i, row in enumerate(A) if any(not is_zero(x) for x in row)]
    if not used:
        return np.zeros(len(A))
    rows = A[used]
    gramian = rows @ rows.T
    largest = max_abs(np.diag(gramian))
    ridge = RELATIVE_RIDGE * where(largest > 0, largest, 1)
    factors = factor(
        [[gramian[i][j] + (ridge if i == j else 0) for j in range(i + 1)] for i in range(len(used))]
    )
    f = factors.solve(rows @ constraint_force)
    # rounding of the factors divided by the ridge is in the null space of the Gramian, which takes it away
    f = gramian @ factors.solve(f)
    for _ in range(REFINEMENTS):
        f = f + factors.solve(rows @ (constraint_force - rows.T @ f))
    found = dict(zip(used, f, strict=True))
    return scalar_array([found.get(i, 0) for i in range(len(A))])


# -------------------------------------------------------------------------------------------------
# elimination


def dependence_bound(rows: Rows) -> Any:
    """By how much rows may differ from a linear combination of others and still count as dependent, relative
    to the largest entry of each constraint: those of loops differ by their violation.
    """
    return maximum(WEAK_PIVOT, VIOLATION_FACTOR * max_abs(row_scales(rows) * rows.position))


def row_scales(rows: Rows) -> np.ndarray:
    """For each row the factor with which 1 is the largest entry in all rows of its constraint."""
    sizes: dict[str, Any] = {}
    for name, row in zip(rows.names, rows.J, strict=True):
        sizes[name] = maximum(sizes.get(name, 0.0), max_abs(row))
    return scalar_array([divide(1, where(sizes[name] > 0, sizes[name], 1)) for name in rows.names])


def _by_elimination(A: np.ndarray, b: np.ndarray, pivots: tuple[Any, ...]) -> CoordinateReduction:
    """Reduction selected by the elimination: a = (1 - C^T R) z + C^T x.

    Row i of the result R a = x determines the acceleration at which row i of C is 1.
    """
    k, n = A.shape
    RX, unknown = gauss_jordan(A, b.reshape(k, 1), pivots)
    solved, is_solved = _by_unknown(RX, unknown, n)

    def column(j: Any, columns: MutableArray) -> MutableArray:
        for i in range(n):
            one = where(equal(1.0 * i, 1.0 * j), 1, 0)
            columns = columns.set((j, i), one - solved[i, j])
        return columns

    columns = fori_loop(0, n, column, empty((n, n)))
    is_unknown = tuple(is_solved[j] < 0.5 for j in range(n))
    particular = scalar_array([solved[i, n] for i in range(n)])
    return CoordinateReduction(columns, particular, is_unknown, inconsistent=_inconsistent(RX, unknown, n))


def _by_selection(
    A: np.ndarray, b: np.ndarray, S: np.ndarray, pivots: tuple[Any, ...]
) -> CoordinateReduction:
    """Reduction for given z: S a = z and A a = b together are solved for a. Some row must determine each
    entry.
    """
    (k, n), m = A.shape, len(S)
    right = np.zeros((m + k, m + 1), int).astype(object)
    right[:m, :m], right[m:, m] = np.eye(m, dtype=int), b
    RX, unknown = gauss_jordan(np.concatenate([S, A]), right, (*pivots, SINGULAR_PIVOT))
    solved, is_solved = _by_unknown(RX, unknown, n)
    columns = fori_loop(
        0, m, lambda j, x: _with_row(x, j, [solved[i, n + j] for i in range(n)]), empty((m, n))
    )
    remainders = [[RX[i, n + j] for j in range(m)] for i in range(m + k)]
    constrained = _any(_has_remainder(unknown, i, x) for i, x in enumerate(remainders))
    undetermined = _any(is_solved[j] < 0.5 for j in range(n))
    dependent = logical_or(constrained, undetermined)
    inconsistent = logical_and(logical_not(dependent), _inconsistent(RX, unknown, n + m))
    particular = scalar_array([solved[i, n + m] for i in range(n)])
    return CoordinateReduction(columns, particular, (True,) * m, dependent, inconsistent)


def gauss_jordan(
    T: np.ndarray, right: np.ndarray, pivots: tuple[Any, ...]
) -> tuple[MutableArray, MutableArray]:
    """([R X], unknown), (k, n + c) and (k,), of T x = right (k, c) by Gauss-Jordan elimination with row-wise
    pivoting.

    Row i of R x = X determines the unknown number unknown[i], or none if that is -1; the rows are not in the
    order of those of T. pivots: decreasing lower bounds. For each bound in turn, every row without a pivot
    takes its largest entry as pivot if that is above the bound. A row that depends on the others has no
    pivot, and the remainder of its right-hand side in X.
    """
    n, width = T.shape[1], T.shape[1] + right.shape[1]
    # rows of structural zeros, which have no pivot, are the last ones
    empty_rows = [all(is_zero(x) for x in row) for row in T]
    order, k = np.argsort(empty_rows, kind="stable"), len(T) - sum(empty_rows)

    def eliminate(i: Any, carry: Any, bound: Any) -> Any:
        RX, unknown = carry
        column, size = fori_loop(0, n, lambda j, best: _larger(j, RX[i, j], best), (0.0, 0.0))
        takes = logical_and(unknown[i] < 0, size > bound)
        return cond(takes, lambda RX, unknown: pivoted(i, column, RX, unknown), lambda *x: x, RX, unknown)

    def pivoted(i: Any, column: Any, RX: MutableArray, unknown: MutableArray) -> Any:
        """Row i scaled by its pivot, whose column is eliminated from the other rows."""
        scale = 1 / RX.gather(1.0 * i * width + column)
        row = [scale * RX[i, j] for j in range(width)]
        RX = _with_row(RX, i, row)

        def subtract(other: Any, RX: MutableArray) -> MutableArray:
            entry = where(equal(1.0 * other, 1.0 * i), 0.0, RX.gather(1.0 * other * width + column))
            return cond(equal(entry, 0), lambda RX: RX, lambda RX: without(other, entry, RX), RX)

        def without(other: Any, entry: Any, RX: MutableArray) -> MutableArray:
            return _with_row(RX, other, [RX[other, j] - entry * x for j, x in enumerate(row)])

        return fori_loop(0, k, subtract, RX), unknown.set(i, column)

    RX = mutable_array(np.concatenate([T, right], axis=1)[order])
    carry = RX, mutable_array(np.full(len(T), -1.0))
    for bound in pivots:
        carry = fori_loop(0, k, lambda i, x, bound=bound: eliminate(i, x, bound), carry, unroll=False)
    return carry


def _larger(j: Any, x: Any, best: tuple[Any, Any]) -> tuple[Any, Any]:
    """The position and the size of the larger of two entries, x at j and the best one so far."""
    column, size = best
    larger = absolute(x) > size
    return where(larger, 1.0 * j, column), where(larger, absolute(x), size)


def _by_unknown(RX: MutableArray, unknown: MutableArray, n: int) -> tuple[MutableArray, MutableArray]:
    """For each unknown the row of [R X] that determines it, zeros if none does, and 1 if some row does."""
    k, width = RX.shape

    def enter(i: Any, carry: Any) -> Any:
        return cond(unknown[i] < 0, lambda *x: x, lambda *x: entered(i, *x), *carry)

    def entered(i: Any, solved: MutableArray, is_solved: MutableArray) -> Any:
        for j in range(width):
            solved = solved.scatter(unknown[i] * width + j, RX[i, j])
        return solved, is_solved.scatter(unknown[i], 1.0)

    return fori_loop(0, k, enter, (zeros((n, width)), zeros(n)))


def _with_row(array: MutableArray, i: Any, row: list[Any]) -> MutableArray:
    """The array with this row i."""
    for j, x in enumerate(row):
        array = array.set((i, j), x)
    return array


def _has_remainder(unknown: MutableArray, i: int, values: list[Any]) -> Any:
    """Whether row i has no pivot, and a nonzero remainder in these of its right-hand sides."""
    return logical_and(unknown[i] < 0, max_abs(values) > INCONSISTENT_REMAINDER)


def _inconsistent(RX: MutableArray, unknown: MutableArray, c: int) -> Any:
    """Whether a dependent row contradicts the others in column c of [R X], a right-hand side, relative to
    its largest entry.
    """
    remainders = [RX[i, c] for i in range(RX.shape[0])]
    scale = maximum(SMALLEST_RIGHT, max_abs(remainders))
    return _any(_has_remainder(unknown, i, [x / scale]) for i, x in enumerate(remainders))


def _any(conditions: Any) -> Any:
    """Whether any condition holds."""
    found: Any = False
    for condition in conditions:
        found = logical_or(found, condition)
    return found

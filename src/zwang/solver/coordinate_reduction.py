"""Exact equalities by embedding: accelerations in essential ones, a = V z + p, and the equations projected by V; on any scalar.

    A a = b  solved for a by elimination,     V^T M (V z + p - a_free) = 0

The other way to what `multipliers` finds by constraint forces: no force is worked out to find the motion. Which unknowns stay is the
user's choice, rows S with z = S a, or left to the elimination: in each row it makes the largest entry dependent, each lane for
itself and anew each time, so that a choice that becomes singular on the way is left. Source: seed 003, Eqs. 40-42.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import sparse_ltdl, sparse_ltdl_solve
from zwang.constraint.rows import Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import ContradictionError, DependentSpeedsError
from zwang.scalar import (
    absolute,
    divide,
    is_zero,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    value_is_constant,
    where,
)
from zwang.solver.solution import Solution, max_abs

STRONG = 0.1  # pivots above this come first: a row that passes through zero, as those of loops do, is known less well than others
RANK = 1e-7  # a row whose largest entry is below this, where constraints have 1, follows from the others
OFF = 30.0  # or below so many times their gaps: off the constraints, as the stages of a step are, what follows is no nearer to zero
NEARLY = 1e-9  # what chosen speeds may come to where they become singular
LEFT = 0.3  # what is left of a row's right-hand side above this contradicts the others
RIDGE = 1e-9  # relative, of the normal equations for the forces, which rounds of refinement take out again
REFINEMENTS = 3


class CoordinateReduction(NamedTuple):
    """All a with A a = b: a = V z + particular, V (n, m), particular (n,).

    unknown (m,): whether z has an element here; of an automatic choice m = n, and z_k is a_k where that is essential, else nothing.
    dependent: whether chosen unknowns depend on each other, or on what the rows fix. contradicted: whether no a holds all rows.
    """

    V: np.ndarray
    particular: np.ndarray
    unknown: tuple[Any, ...]
    dependent: Any = False
    inconsistent: Any = False


def coordinate_reduction(rows: Rows, S: Any = None) -> CoordinateReduction:
    """The accelerations that exact equalities leave; S (m, n): the unknowns z = S a that stay, by default chosen here.

    Raises, on floats, DependentSpeedsError, and ContradictionError with the rows' names.
    """
    A, b, gaps = _scaled(rows)
    ranks = (STRONG, maximum(RANK, OFF * max_abs(gaps)))
    found = _chosen(A, b, ranks) if S is None else _by_choice(A, b, np.array(S), ranks)
    if value_is_constant(found.dependent) and found.dependent:
        raise DependentSpeedsError(
            "the essential speeds depend on each other, or are fixed by the constraints, in this state; choose others, or leave the "
            "choice to the elimination, which makes it anew at each step (embedding=True)"
        )
    if value_is_constant(found.inconsistent) and found.inconsistent:
        names = ", ".join(dict.fromkeys(rows.names))
        raise ContradictionError(
            f"the exact constraints {names} contradict each other: no acceleration holds them all; give one of them a softness, "
            "leave one out, or start where they agree"
        )
    return found


def solve_reduced(
    problem: GaussProblem,
    rows: Rows,
    S: Any = None,
    others: Callable[[GaussProblem, Rows], Solution] | None = None,
) -> Solution:
    """The accelerations under exact equalities A a = b, and other rows, by embedding, with all forces; S as for `coordinate_reduction`.

    others: solves the problem in z for the rows that are no exact equalities, if there are some.
    """
    exact = [i for i, hard in enumerate(rows.hard) if hard and rows.kinds[i] == "equality"]
    rest = [i for i in range(len(rows)) if i not in set(exact)]
    held, left = rows.select(exact), rows.select(rest)
    e = coordinate_reduction(held, S)
    small, within = _projected(problem, left, e)
    found = Solution(small.a_free, np.zeros(0), 0.0, 0.0 < 1.0)
    if rest:
        assert others is not None
        found = others(small, within)
    a = e.V @ found.acceleration + e.particular
    effort = problem.M @ (a - problem.a_free) - (left.J.T @ found.force if rest else 0)
    force = dict(zip([*rest, *exact], [*found.force, *forces_of(held.J, effort)], strict=True))
    return found._replace(
        acceleration=a, force=array([force[i] for i in range(len(rows))]), dependent=e.dependent, inconsistent=e.inconsistent
    )  # fmt: skip


def _projected(problem: GaussProblem, rows: Rows, e: CoordinateReduction) -> tuple[GaussProblem, Rows]:
    """The problem and its other rows in z; what is no unknown stays zero, with a unit's inertia."""
    V, p, M, m = e.V, e.particular, problem.M, len(e.unknown)
    own = [where(stays, 0, 1) for stays in e.unknown]
    inertia = V.T @ (M @ V) + np.array(
        [[own[i] if i == j else 0 for j in range(m)] for i in range(m)]
    ).reshape(m, m)
    pull = V.T @ (M @ (problem.a_free - p))
    free = sparse_ltdl_solve(*sparse_ltdl(inertia), pull) if m else np.zeros(0)
    parents = tuple(range(-1, m - 1))
    return GaussProblem(inertia, free, parents), rows.replaced(J=rows.J @ V, aref=rows.aref - rows.J @ p)


def forces_of(A: Any, effort: Any) -> np.ndarray:
    """The forces (k,) of least norm with A^T f = effort, which has to lie in the range; redundant rows share."""
    used = [i for i, row in enumerate(A) if any(not is_zero(x) for x in row)]
    if not used:
        return np.zeros(len(A))
    rows = A[used]
    gram = rows @ rows.T
    ridge = RIDGE * max_abs(np.diag(gram))
    factors = sparse_ltdl(
        [[gram[i][j] + (ridge if i == j else 0) for j in range(i + 1)] for i in range(len(used))]
    )
    f = sparse_ltdl_solve(*factors, rows @ effort)
    for _ in range(REFINEMENTS):
        f = f + sparse_ltdl_solve(*factors, rows @ (effort - rows.T @ f))
    found = dict(zip(used, f, strict=True))
    return array([found.get(i, 0) for i in range(len(A))])


# ------------------------------------------------------------------------------------------------- elimination


def _scaled(rows: Rows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A, b and the gaps, with 1 as the largest entry in the rows of each constraint together."""
    sizes: dict[str, Any] = {}
    for name, row in zip(rows.names, rows.J, strict=True):
        sizes[name] = maximum(sizes.get(name, 0.0), max_abs(row))
    scales = [divide(1, where(sizes[name] > 0, sizes[name], 1)) for name in rows.names]
    A = [[_times(s, x) for x in row] for s, row in zip(scales, rows.J, strict=True)]
    b, gaps = ([s * x for s, x in zip(scales, values, strict=True)] for values in (rows.aref, rows.position))
    return np.array(A).reshape(rows.J.shape), array(b), array(gaps)


def _chosen(A: np.ndarray, b: np.ndarray, ranks: tuple[Any, ...]) -> CoordinateReduction:
    """By the elimination's own choice: a = (1 - C^T R) z + C^T x, row i of C marking the unknown that row i of R a = x gives."""
    k, n = A.shape
    R, X, marks = gauss_jordan(A, b.reshape(k, 1), ranks)
    given = [_any(marks[i][j] for i in range(k)) for j in range(n)]
    V = np.array(
        [[_unit(j, m) - _marked(marks, [row[m] for row in R], j) for m in range(n)] for j in range(n)]
    )
    p = array([_marked(marks, [x[0] for x in X], j) for j in range(n)])
    return CoordinateReduction(
        V.reshape(n, n), p, tuple(logical_not(x) for x in given), inconsistent=_contradicted(marks, X, 0)
    )


def _by_choice(A: np.ndarray, b: np.ndarray, S: np.ndarray, ranks: tuple[Any, ...]) -> CoordinateReduction:
    """With S a = z and A a = b together solved for a: every unknown has to be given by some row."""
    (k, n), m = A.shape, len(S)
    right = np.zeros((m + k, m + 1), int).astype(object)
    right[:m, :m], right[m:, m] = np.eye(m, dtype=int), b
    _, X, marks = gauss_jordan(np.concatenate([S, A]), right, (*ranks, NEARLY))
    given = [_any(row[j] for row in marks) for j in range(n)]
    tied = _any(_left(marks[i], X[i][:m]) for i in range(m + k))
    dependent = logical_or(tied, _any(logical_not(x) for x in given))
    V = np.array([[_marked(marks, [x[c] for x in X], j) for c in range(m)] for j in range(n)])
    p = array([_marked(marks, [x[m] for x in X], j) for j in range(n)])
    inconsistent = logical_and(logical_not(dependent), _contradicted(marks, X, m))
    return CoordinateReduction(V.reshape(n, m), p, (True,) * m, dependent, inconsistent)


def gauss_jordan(
    T: np.ndarray, right: np.ndarray, ranks: tuple[Any, ...]
) -> tuple[list[list[Any]], list[list[Any]], list[list[Any]]]:
    """(R, X, marks) of T x = right by Gauss-Jordan elimination: row i of R x = X gives the unknown that marks[i] marks, one or none.

    Of each row in turn the largest entry is the pivot, if above ranks[0]; and again of those left, if above the next. A row that
    follows from the others has no mark, and what is left in X.
    """
    R, X = [list(row) for row in T], [list(row) for row in right]
    marks: list[list[Any]] = [[False] * T.shape[1] for _ in R]
    for rank in ranks:
        for i in range(len(R)):
            _eliminate(R, X, marks, i, rank)
    return R, X, marks


def _eliminate(R: list[list[Any]], X: list[list[Any]], marks: list[list[Any]], i: int, rank: Any) -> None:
    """Mark a pivot of row i, if it has none, and take the row out of the others."""
    mark = _pivot(R[i], rank, logical_not(_any(marks[i])))
    inverse = divide(1, where(_any(mark), _picked(mark, R[i]), 1))
    R[i], X[i] = ([_times(inverse, x) for x in values] for values in (R[i], X[i]))
    for other in range(len(R)):
        factor = _picked(mark, R[other]) if other != i else 0
        if not is_zero(factor):
            R[other] = [_less(x, factor, y) for x, y in zip(R[other], R[i], strict=True)]
            X[other] = [_less(x, factor, y) for x, y in zip(X[other], X[i], strict=True)]
    marks[i] = [logical_or(old, new) for old, new in zip(marks[i], mark, strict=True)]


def _pivot(row: list[Any], rank: Any, wanted: Any) -> list[Any]:
    """For each entry whether it is the row's pivot, where one is wanted: the first of its largest, if that is above the rank."""
    candidates = [j for j, x in enumerate(row) if not is_zero(x)]
    size = max_abs(row[j] for j in candidates)
    open_still: Any = logical_and(wanted, size > rank)
    mark: list[Any] = [False] * len(row)
    for j in candidates[:-1]:
        mark[j] = logical_and(open_still, absolute(row[j]) >= size)
        open_still = logical_and(open_still, logical_not(mark[j]))
    if candidates:
        mark[candidates[-1]] = open_still
    return mark


def _picked(mark: list[Any], row: list[Any]) -> Any:
    """The marked entry, 0 if none is."""
    return sum(
        (where(m, x, 0) for m, x in zip(mark, row, strict=True) if m is not False and not is_zero(x)), start=0
    )


def _marked(marks: list[list[Any]], values: list[Any], j: int) -> Any:
    """The value of the row that marks unknown j, 0 if none does."""
    return _picked([mark[j] for mark in marks], values)


def _left(mark: list[Any], values: list[Any]) -> Any:
    """Whether a row without a mark has something left in these of its right-hand sides."""
    return logical_and(logical_not(_any(mark)), max_abs(values) > LEFT)


def _contradicted(marks: list[list[Any]], X: list[list[Any]], c: int) -> Any:
    """Whether a row that follows from the others wants something else, against the largest that any wants."""
    scale = 1e-3
    for x in X:
        scale = maximum(scale, absolute(x[c]))
    return _any(_left(mark, [x[c] / scale]) for mark, x in zip(marks, X, strict=True))


def _any(truths: Any) -> Any:
    found: Any = False
    for truth in truths:
        found = logical_or(found, truth)
    return found


def _unit(i: int, j: int) -> int:
    return 1 if i == j else 0


def _times(s: Any, x: Any) -> Any:
    return 0 if is_zero(x) else s * x


def _less(x: Any, factor: Any, y: Any) -> Any:
    return x if is_zero(y) else x - factor * y

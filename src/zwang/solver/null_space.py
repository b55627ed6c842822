"""Exact equalities: A a = b held by constraint forces, with rows that may be redundant. Floats only, but `contradict`: ranks are values.

Of all accelerations with A a = b Gauss's takes the one nearest to the free one; with M = L L^T and the singular values of
A L^-T these are found whatever the rank, and redundant rows share their force as evenly as they can. Source: seed 000;
Udwadia, Kalaba, Analytical Dynamics (1996), Ch. 5, with the pseudoinverse of A M^-1/2.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import ContradictionError, SolveError
from zwang.scalar import absolute, is_zero, maximum

ROUNDING = 1e-11  # a row this much smaller than the largest has no direction
RANK_TOLERANCE = 1e-6  # singular values below this, relative to the largest, count as zero: off the constraints, as stages of steps are,
# those of rows that depend on each other are no smaller
MISSED = 0.1  # relative: what rows miss by more in compiled runs contradicts others; less may be due to a stage off the constraints
LEAST = 1e-3  # the smallest wanted acceleration that counts there
CONTRADICTION = 1e-5  # what redundant rows may disagree by, relative to the largest wanted acceleration


class NullSpaceReduction(NamedTuple):
    """All accelerations with A a = b: a = particular + basis @ z; force(a, push) gives the rows' forces at a."""

    particular: np.ndarray
    basis: np.ndarray
    rank: int
    U: np.ndarray
    s: np.ndarray
    whitened: np.ndarray

    def force(self, problem: GaussProblem, a: np.ndarray, push: Any = 0) -> np.ndarray:
        """The forces (n,), of least norm, with A^T f = M (a - a_free) - push; push (nv,) is that of all other rows."""
        effort = problem.M @ (a - problem.a_free) - push
        within = self.whitened[: self.rank] @ effort  # V^T L^-1 effort
        return self.U[:, : self.rank] @ (within / self.s[: self.rank])


def null_space_reduction(problem: GaussProblem, rows: Rows) -> NullSpaceReduction:
    """The accelerations that hard equalities leave. Raises ContradictionError, with their names, if the rows contradict each other."""
    M, A, b = (np.asarray(x, float) for x in (problem.M, rows.J, rows.aref))
    L = _factor(M, A, b, rows.names)
    sizes = np.linalg.norm(np.linalg.solve(L, A.T), axis=0)
    largest = {
        name: max(size for size, n in zip(sizes, rows.names, strict=True) if n == name) for name in rows.names
    }
    sizes = np.array(
        [largest[name] for name in rows.names]
    )  # a row that passes through zero is no larger for that
    sizes = np.where(sizes > ROUNDING * sizes.max(initial=0), sizes, 1.0)
    white = (
        np.linalg.solve(L, A.T).T / sizes[:, None]
    )  # A L^-T, the longest row of each constraint of length 1
    U, s, Vt = np.linalg.svd(white, full_matrices=True)
    rank = int(np.sum(s > RANK_TOLERANCE * max(s[0], 1e-300))) if len(s) and s[0] > 0.5 else 0
    wanted = b / sizes - white @ (L.T @ problem.a_free)
    z = (U[:, :rank].T @ wanted) / s[:rank]
    particular = problem.a_free + np.linalg.solve(L.T, Vt[:rank].T @ z)
    _check_consistent(rows, A @ particular - b, np.abs(A) @ (np.abs(particular) + np.abs(problem.a_free)), b)
    basis = np.linalg.solve(L.T, Vt[rank:].T)
    # forces belong to the rows as given: A = diag(sizes) white
    U, s, Vt_ = np.linalg.svd(white * sizes[:, None], full_matrices=False)
    whitened = np.linalg.solve(L, np.eye(len(M)))
    return NullSpaceReduction(particular, basis, rank, U, s, Vt_ @ whitened)


def _factor(M: np.ndarray, A: np.ndarray, b: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """L of M = L L^T. Raises SolveError where that is not, or rows are no numbers."""
    for name, row, x in zip(names, A, b, strict=True):
        if not (np.isfinite(row).all() and np.isfinite(x)):
            raise SolveError(
                f"the rows of {name!r} are no finite numbers in this state: numbers overflow, or what it speaks of has no direction "
                "there, as the distance of two points that coincide; start elsewhere"
            )
    try:
        return np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise SolveError(
            "the mass matrix is not positive definite in this state: something that moves has no inertia there, or masses differ "
            "by more than numbers can hold; give bodies an inertia, or joints an armature"
        ) from None


def _check_consistent(rows: Rows, residual: np.ndarray, sizes: np.ndarray, b: np.ndarray) -> None:
    scale = max(
        float(np.abs(b).max(initial=0)),
        float(sizes.max(initial=0)),
        float(np.abs(residual).max(initial=0)) * 1e-3,
        1e-3,
    )
    worst = sorted(
        {name for name, miss in zip(rows.names, residual, strict=True) if abs(miss) > CONTRADICTION * scale}
    )
    if worst:
        raise ContradictionError(
            f"the exact constraints {', '.join(worst)} contradict each other: no acceleration holds them all (they miss by up to "
            f"{np.abs(residual).max():.3g}); give one of them a softness, leave one out, or start where they agree"
        )


def is_contradictory(rows: Rows, a: Any) -> Any:
    """Whether exact equalities are missed by more at a than what is left undone explains; on any scalar, for an `a` that misses least."""
    exact = [i for i, hard in enumerate(rows.hard) if hard and rows.kinds[i] == "equality"]
    residual, scale = 0.0, LEAST
    for i in exact:
        terms = [x * y for x, y in zip(rows.J[i], a, strict=True) if not is_zero(x)]
        residual = maximum(residual, absolute(sum(terms, start=0) - rows.aref[i]))
        scale = maximum(scale, absolute(rows.aref[i]) + sum((absolute(x) for x in terms), start=0))
    return residual > MISSED * scale


def restricted_problem(problem: GaussProblem, rows: Rows, reduction: NullSpaceReduction) -> tuple[GaussProblem, Rows]:
    """The problem and the other rows in the unknowns z that the equalities leave; its mass matrix is the unit matrix."""
    N, a0 = reduction.basis, reduction.particular
    n = N.shape[1]
    free = N.T @ (problem.M @ (problem.a_free - a0))
    J = np.asarray(rows.J, float)
    smaller = rows.replaced(J=J @ N, aref=np.asarray(rows.aref, float) - J @ a0)
    return GaussProblem(np.eye(n), free, tuple(range(-1, n - 1))), smaller

"""Hard equalities A a = b by the null-space method on floats, with rows that may be redundant.

Of all accelerations with A a = b, Gauss's principle selects the one nearest to the free acceleration in the
metric of M. With M = L L^T and the singular values of A L^-T it is found whatever the rank, and redundant
rows share their force as evenly as possible. Source: Luchtenburg, Gauss' principle of least constraint;
Udwadia, Kalaba, Analytical Dynamics (1996), Chapter 5, with the pseudoinverse of A M^-1/2. `is_inconsistent`
alone runs on any scalar.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import InconsistentConstraintsError, SolveError
from zwang.scalar import absolute, is_zero, maximum

ZERO_ROW = 1e-11  # a row this much smaller than the largest counts as zero
# Singular values below this, relative to the largest, count as zero. In the stages of a step, which lie
# slightly off
# the constraints, the singular values of dependent rows are not smaller than this.
RANK_TOLERANCE = 1e-6
INCONSISTENT_RESIDUAL = 0.1  # relative residual in compiled code above which rows contradict each other
SMALLEST_REFERENCE = 1e-3  # the smallest reference acceleration that this is relative to
CONSISTENCY_TOLERANCE = 1e-5  # of the right-hand sides of redundant rows, relative to the largest


class NullSpaceReduction(NamedTuple):
    """All accelerations with A a = b: a = particular + basis @ z, with the factors that give the rows'
    forces.

    particular (nv,), basis (nv, nv - rank). U, s: the singular vectors and values of A L^-T; whitened: V^T
    L^-1.
    """

    particular: np.ndarray
    basis: np.ndarray
    rank: int
    U: np.ndarray
    s: np.ndarray
    whitened: np.ndarray

    def force(self, problem: GaussProblem, a: np.ndarray, other_force: Any = 0) -> np.ndarray:
        """Forces f (n,) of least norm with A^T f = M (a - a_free) - other_force.

        other_force (nv,): the generalised force of all other rows.
        """
        constraint_force = problem.M @ (a - problem.a_free) - other_force
        within = self.whitened[: self.rank] @ constraint_force  # V^T L^-1 (M (a - a_free) - other_force)
        return self.U[:, : self.rank] @ (within / self.s[: self.rank])


def null_space_reduction(problem: GaussProblem, rows: Rows) -> NullSpaceReduction:
    """Accelerations that satisfy hard equalities, by the singular value decomposition of A L^-T.

    Raises ContradictionError, naming the constraints, if the rows contradict each other, and SolveError if
    the mass matrix is not positive definite or a row is not finite.
    """
    M, A, b = (np.asarray(x, float) for x in (problem.M, rows.J, rows.aref))
    L = _cholesky_factor(M, A, b, rows.names)
    # scale the rows of each constraint by its largest: a row that passes through zero is not scaled up
    sizes = np.linalg.norm(np.linalg.solve(L, A.T), axis=0)
    largest = {
        name: max(size for size, n in zip(sizes, rows.names, strict=True) if n == name) for name in rows.names
    }
    sizes = np.array([largest[name] for name in rows.names])
    sizes = np.where(sizes > ZERO_ROW * sizes.max(initial=0), sizes, 1.0)
    white = np.linalg.solve(L, A.T).T / sizes[:, None]  # A L^-T, scaled
    if not np.isfinite(white).all():
        raise SolveError(
            f"the rows of the constraints {', '.join(dict.fromkeys(rows.names))} overflow in this state; "
            "give lengths and masses whose squares are finite"
        )
    U, s, Vt = np.linalg.svd(white, full_matrices=True)
    rank = int(np.sum(s > RANK_TOLERANCE * max(s[0], 1e-300))) if len(s) and s[0] > 0.5 else 0
    # particular solution: a_free + L^-T V z with U^T (b - A a_free) = S z
    deviation = b / sizes - white @ (L.T @ problem.a_free)
    z = (U[:, :rank].T @ deviation) / s[:rank]
    particular = problem.a_free + np.linalg.solve(L.T, Vt[:rank].T @ z)
    _check_consistent(rows, A @ particular - b, np.abs(A) @ (np.abs(particular) + np.abs(problem.a_free)), b)
    basis = np.linalg.solve(L.T, Vt[rank:].T)
    # the forces belong to the rows without scaling, A L^-T = diag(sizes) white
    U, s, Vt_ = np.linalg.svd(white * sizes[:, None], full_matrices=False)
    whitened = np.linalg.solve(L, np.eye(len(M)))
    return NullSpaceReduction(particular, basis, rank, U, s, Vt_ @ whitened)


def _cholesky_factor(M: np.ndarray, A: np.ndarray, b: np.ndarray, names: Sequence[str]) -> np.ndarray:
    """L of M = L L^T. Raises SolveError where M is not positive definite, or rows are not finite."""
    for name, row, x in zip(names, A, b, strict=True):
        if not (np.isfinite(row).all() and np.isfinite(x)):
            raise SolveError(
                f"the rows of constraint {name!r} are not finite in this state: numbers overflow, or the "
                "constraint is singular, as the distance of two coincident points is; choose another state"
            )
    try:
        return np.linalg.cholesky(M)
    except np.linalg.LinAlgError:
        raise SolveError(
            "the mass matrix is not positive definite in this state: a joint moves no inertia, or the masses "
            "differ by more than floating-point numbers resolve; give the bodies an inertia or the joints an "
            "armature"
        ) from None


def _check_consistent(rows: Rows, residual: np.ndarray, sizes: np.ndarray, b: np.ndarray) -> None:
    """Raise ContradictionError, naming the constraints, where the least-squares residual of A a = b is not
    zero.
    """
    scale = max(
        float(np.abs(b).max(initial=0)),
        float(sizes.max(initial=0)),
        float(np.abs(residual).max(initial=0)) * 1e-3,
        1e-3,
    )
    limit = CONSISTENCY_TOLERANCE * scale
    worst = sorted({name for name, x in zip(rows.names, residual, strict=True) if abs(x) > limit})
    if worst:
        raise InconsistentConstraintsError(
            f"the hard constraints {', '.join(worst)} contradict each other: no acceleration satisfies them "
            "all "
            f"(the largest residual is {np.abs(residual).max():.3g}); give one of them a softness, remove "
            "one, or "
            "start in a configuration where they agree"
        )


def is_inconsistent(rows: Rows, a: Any) -> Any:
    """Whether hard equalities contradict each other, from their residual at a least-squares solution a.

    The residual may also stem from a configuration slightly off the constraints; the bound
    `INCONSISTENT_RESIDUAL` is above such residuals. Runs on any scalar.
    """
    equalities = [i for i, hard in enumerate(rows.hard) if hard and rows.kinds[i] == "equality"]
    residual, scale = 0.0, SMALLEST_REFERENCE
    for i in equalities:
        terms = [x * y for x, y in zip(rows.J[i], a, strict=True) if not is_zero(x)]
        residual = maximum(residual, absolute(sum(terms, start=0) - rows.aref[i]))
        scale = maximum(scale, absolute(rows.aref[i]) + sum((absolute(x) for x in terms), start=0))
    return residual > INCONSISTENT_RESIDUAL * scale


def restricted_problem(
    problem: GaussProblem, rows: Rows, reduction: NullSpaceReduction
) -> tuple[GaussProblem, Rows]:
    """The problem and the other rows in the unknowns z of the reduction, whose mass matrix is the
    identity.
    """
    N, a0 = reduction.basis, reduction.particular
    n = N.shape[1]
    free = N.T @ (problem.M @ (problem.a_free - a0))
    J = np.asarray(rows.J, float)
    smaller = rows.replaced(J=J @ N, aref=np.asarray(rows.aref, float) - J @ a0)
    return GaussProblem(np.eye(n), free, tuple(range(-1, n - 1))), smaller

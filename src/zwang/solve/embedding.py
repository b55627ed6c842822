"""Exact equalities by embedding: accelerations in essential ones, a = V u_dot + rest, and the equations projected by V.

The other way to what `equality` finds by constraint forces: no force is worked out to find the motion. Floats only. The essential
accelerations are chosen anew each time, so that a choice that becomes singular on the way is left. Source: seed 003, Eqs. 40-42.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows
from zwang.errors import SolveError
from zwang.gauss.problem import GaussProblem

RANK = 1e-11


class Embedded(NamedTuple):
    """a (nv,); the essential unknowns' numbers; V (nv, m); u_dot (m,); force (n,) of the rows, of least norm."""

    acceleration: np.ndarray
    essential: tuple[int, ...]
    V: np.ndarray
    u_dot: np.ndarray
    force: np.ndarray


def embedded(problem: GaussProblem, rows: Rows, essential: Sequence[int] | None = None) -> Embedded:
    """The accelerations under exact equalities A a = b, by embedding.

    essential: which unknowns stay, by number; by default those that a pivoted elimination leaves. Raises SolveError for essential
    unknowns that depend on each other, or rows that contradict each other, by name.
    """
    M, free = np.asarray(problem.M, float), np.asarray(problem.a_free, float)
    A, b = np.asarray(rows.J, float), np.asarray(rows.aref, float)
    dependent, R, rest = _eliminated(rows, A, b, essential)
    n = len(free)
    chosen = tuple(k for k in range(n) if k not in dependent)
    V = np.zeros((n, len(chosen)))
    V[list(chosen), range(len(chosen))] = 1
    V[dependent] = -R[:, list(chosen)]
    particular = np.zeros(n)
    particular[dependent] = rest
    # V^T M (V u_dot + particular - a_free) = 0
    u_dot = np.linalg.solve(V.T @ M @ V, V.T @ M @ (free - particular)) if len(chosen) else np.zeros(0)
    a = V @ u_dot + particular
    force = np.linalg.lstsq(A.T, M @ (a - free), rcond=None)[0] if len(A) else np.zeros(0)
    return Embedded(a, chosen, V, u_dot, force)


def _eliminated(
    rows: Rows, A: np.ndarray, b: np.ndarray, essential: Sequence[int] | None
) -> tuple[list[int], np.ndarray, np.ndarray]:
    """Dependent unknowns x_D = rest - R x, by Gauss-Jordan elimination with the largest pivots among those allowed."""
    R, rest = A.copy(), b.copy()
    scale = np.abs(A).max(initial=0.0) or 1.0
    allowed = [k for k in range(A.shape[1]) if essential is None or k not in set(essential)]
    dependent: list[int] = []
    order: list[int] = []
    for _ in range(min(A.shape)):
        left = [i for i in range(len(A)) if i not in order]
        columns = [k for k in allowed if k not in dependent]
        if not left or not columns:
            break
        block = np.abs(R[np.ix_(left, columns)])
        i, k = np.unravel_index(int(block.argmax()), block.shape)
        if block[i, k] <= RANK * scale:
            break
        row, column = left[int(i)], columns[int(k)]
        rest[row] /= R[row, column]
        R[row] = R[row] / R[row, column]
        for other in range(len(A)):
            if other != row:
                rest[other] -= R[other, column] * rest[row]
                R[other] = R[other] - R[other, column] * R[row]
        order.append(row)
        dependent.append(column)
    _check(rows, R, rest, order, scale, essential)
    return dependent, R[order], rest[order]


def _check(
    rows: Rows, R: np.ndarray, rest: np.ndarray, order: list[int], scale: float, essential: Any
) -> None:
    left = [i for i in range(len(R)) if i not in order]
    if any(np.abs(R[i]).max() > 1e-8 * scale for i in left):
        raise SolveError(
            f"the essential unknowns {tuple(essential or ())} depend on each other in this state; choose others"
        )
    bad = sorted({rows.names[i] for i in left if abs(rest[i]) > 1e-8 * (1 + np.abs(rest).max())})
    if bad:
        raise SolveError(
            f"the exact constraints {', '.join(bad)} contradict the others: no acceleration holds them all"
        )

"""The dual problem by projected Gauss-Seidel: the forces directly, row after row, each kept in its set.

    least of  1/2 f^T (A + R) f + f^T (a0 - aref),   A = J M^-1 J^T,  a0 = J a_free

Strictly convex where R > 0; it also works with R = 0. Source: seed 002's dual form.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.rows import PER_ROW, Cone, Rows, array, no_rows
from zwang.dynamics.gauss import GaussProblem
from zwang.solver.cones import projected
from zwang.solver.solution import Solution

TOLERANCE = 1e-13
SWEEPS = 100_000


def projected_gauss_seidel(
    problem: GaussProblem,
    rows: Rows,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    iterations: int = SWEEPS,
) -> Solution:
    """The forces that make the dual cost least, and their accelerations. Floats only: it iterates on values.

    tolerance: of a sweep's change against the largest force. start (nv,) is not used: forces begin at zero.
    """
    M, J = np.asarray(problem.M, float), np.asarray(rows.J, float)
    response = np.linalg.solve(M, J.T)
    AR = J @ response + np.diag(np.asarray(rows.R, float))
    b = J @ np.asarray(problem.a_free, float) - np.asarray(rows.aref, float)
    f, count, done = np.zeros(len(rows)), 0, len(rows) == 0
    acting = np.asarray(rows.active, bool)
    singles = [i for i, kind in enumerate(rows.kinds) if kind != "cone" and acting[i]]
    cones = [cone for cone in rows.cones if acting[cone.start]]
    while not done and count < iterations:
        before = f.copy()
        for i in singles:
            f[i] -= (AR[i] @ f + b[i]) / AR[i, i]
            f[i] = _allowed(rows, i, f[i])
        for cone in cones:
            _relax_cone(cone, AR, b, f)
        count += 1
        done = np.abs(f - before).max() <= tolerance * np.abs(f).max()
    a = np.asarray(problem.a_free, float) + response @ f
    return Solution(a, f, count, bool(done))


def _allowed(rows: Rows, i: int, f: float) -> float:
    if rows.kinds[i] == "equality":
        return f
    return min(max(f, -rows.bound[i]), rows.bound[i]) if rows.kinds[i] == "friction" else max(f, 0.0)


def _relax_cone(cone: Cone, AR: np.ndarray, b: np.ndarray, f: np.ndarray, rounds: int = 20) -> None:
    """Improve one cone's forces, the others fixed, by projected gradients where the cone is round: f = S g."""
    inside = slice(cone.start, cone.stop)
    S = np.array([1.0, *cone.friction])
    Q = S[:, None] * AR[inside, inside] * S
    c = S * (AR[inside] @ f - AR[inside, inside] @ f[inside] + b[inside])
    length = 1 / np.linalg.eigvalsh(Q)[-1]
    g = f[inside] / S
    round_cone = _round(cone)
    for _ in range(rounds):
        moved = projected(round_cone, g - length * (Q @ g + c)).astype(float)
        if np.array_equal(moved, g):
            break
        g = moved
    f[inside] = S * g


def _round(cone: Cone) -> Rows:
    """Rows of one cone with all coefficients 1, for `projected`."""
    n = 1 + len(cone.friction)
    numbers = dict.fromkeys(PER_ROW, np.zeros(n)) | {"active": array([True] * n)}
    cone = Cone(0, (1.0,) * (n - 1), 1.0)
    named = {"names": ("",) * n, "kinds": ("cone",) * n, "J": np.zeros((n, 0)), "cones": (cone,)}
    return no_rows(0).replaced(**named, **numbers)

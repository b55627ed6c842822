"""Projected Gauss-Seidel on the dual problem: the unknowns are the forces, updated row after row and
projected.

    minimise  1/2 f^T (A + R) f + f^T (a0 - aref),    A = J M^-1 J^T,    a0 = J a_free

The problem is strictly convex where R > 0; the method also works with R = 0. Source: MuJoCo documentation,
Computation, "Dual problem".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.row_arrays import PER_ROW
from zwang.constraint.rows import Cone, Rows, no_rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import zeros
from zwang.solver.cones import projected
from zwang.solver.solution import Solution

TOLERANCE = 1e-13  # of the change of a force, relative to the largest
ITERATIONS = 100_000  # the limit; convergence is linear


def projected_gauss_seidel(
    problem: GaussProblem,
    rows: Rows,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS,
) -> Solution:
    """Minimiser of the dual cost by projected Gauss-Seidel: forces and their acceleration. Floats only.

    tolerance: of the largest change in one sweep, relative to the largest force. iterations: the limit of
    sweeps. start (nv,) is not used; the forces start at zero.
    """
    all_rows, (rows, numbers) = rows, rows.only_active()
    M, J = np.asarray(problem.M, float), np.asarray(rows.J, float)
    M_inv_JT = np.linalg.solve(M, J.T)
    AR = J @ M_inv_JT + np.diag(np.asarray(rows.R, float))
    b = J @ np.asarray(problem.a_free, float) - np.asarray(rows.aref, float)
    f, count, done = np.zeros(len(rows)), 0, len(rows) == 0
    single_rows = [i for i, kind in enumerate(rows.kinds) if kind != "cone"]
    while not done and count < iterations:
        previous = f.copy()
        for i in single_rows:
            # f_i = P(f_i - ((A + R) f + a0 - aref)_i / (A + R)_ii)
            f[i] -= (AR[i] @ f + b[i]) / AR[i, i]
            f[i] = _admissible(rows, i, f[i])
        for cone in rows.cones:
            _relax_cone(cone, AR, b, f)
        count += 1
        done = np.abs(f - previous).max() <= tolerance * np.abs(f).max()
    a = np.asarray(problem.a_free, float) + M_inv_JT @ f
    force = zeros(all_rows.count)
    for i, x in zip(numbers, f, strict=True):
        force = force.set(i, x)
    own = scalar_array([force[i] for i in range(len(all_rows))])
    return Solution(a, own, count, bool(done), row_force=force)


def _admissible(rows: Rows, i: int, f: float) -> float:
    """The admissible force nearest to f for row i outside cones."""
    if rows.kinds[i] == "equality":
        return f
    return min(max(f, -rows.bound[i]), rows.bound[i]) if rows.kinds[i] == "friction" else max(f, 0.0)


def _relax_cone(cone: Cone, AR: np.ndarray, b: np.ndarray, f: np.ndarray, iterations: int = 20) -> None:
    """Improve the forces of one cone, the others fixed, by projected gradient steps in the coordinates f = S
    g in which the cone is round.
    """
    span = slice(cone.start, cone.stop)
    S = np.array([1.0, *cone.friction])
    Q = S[:, None] * AR[span, span] * S
    c = S * (AR[span] @ f - AR[span, span] @ f[span] + b[span])
    length = 1 / np.linalg.eigvalsh(Q)[-1]
    g = f[span] / S
    round_cone = _unit_cone_rows(cone)
    for _ in range(iterations):
        projected_g = projected(round_cone, g - length * (Q @ g + c)).astype(float)
        if np.array_equal(projected_g, g):
            break
        g = projected_g
    f[span] = S * g


def _unit_cone_rows(cone: Cone) -> Rows:
    """Rows of one cone with all friction coefficients 1, for `projected`."""
    n = 1 + len(cone.friction)
    arrays = dict.fromkeys(PER_ROW, np.zeros(n)) | {"active": scalar_array([True] * n)}
    cone = Cone(0, (1.0,) * (n - 1), 1.0)
    fields = {"names": ("",) * n, "kinds": ("cone",) * n, "J": np.zeros((n, 0)), "cones": (cone,)}
    return no_rows(0).replaced(**fields, **arrays)

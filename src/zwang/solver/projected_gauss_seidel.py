"""Projected Gauss-Seidel on the dual problem: the unknowns are the forces, updated row after row and
projected.

    minimise  1/2 f^T (A + R) f + f^T (a0 - aref),    A = J M^-1 J^T,    a0 = J a_free

The problem is strictly convex where R > 0; the method also works with R = 0. The forces of an elliptic cone
are updated along their ray first and then, at that normal force, over the friction. Source: MuJoCo
documentation, Computation, "Dual problem" and "PGS".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.norms import TINY
from zwang.constraint.rows import Cone, Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import zeros
from zwang.solver.solution import Solution

TOLERANCE = 1e-13  # of the change of a force times its (A + R)_ii, relative to the largest such product
ITERATIONS = 100_000  # the limit; convergence is linear
MULTIPLIER_ITERATIONS = 50  # of Newton's method on a multiplier, which needs few


def projected_gauss_seidel(
    problem: GaussProblem,
    rows: Rows,
    *,
    start: Any = None,
    tolerance: float = TOLERANCE,
    iterations: int = ITERATIONS,
) -> Solution:
    """Minimiser of the dual cost by projected Gauss-Seidel: forces and their acceleration. Floats only.

    tolerance: of the largest change in one sweep, of the acceleration (A + R)_ii f_i that a force gives to
    its own row, relative to the largest. iterations: the limit of sweeps. start (nv,) is not used; the forces
    start at zero.
    """
    all_rows, (rows, numbers) = rows, rows.only_active()
    M, J = np.asarray(problem.M, float), np.asarray(rows.J, float)
    M_inv_JT = np.linalg.solve(M, J.T)
    AR = J @ M_inv_JT + np.diag(np.asarray(rows.R, float))
    b, diagonal = J @ np.asarray(problem.a_free, float) - np.asarray(rows.aref, float), np.diag(AR)
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
        done = (diagonal * np.abs(f - previous)).max() <= tolerance * (diagonal * np.abs(f)).max()
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


def _relax_cone(cone: Cone, AR: np.ndarray, b: np.ndarray, f: np.ndarray) -> None:
    """Minimise over the forces of one cone, the others fixed: along the ray of its force, and over its
    friction at that normal force.
    """
    span = slice(cone.start, cone.stop)
    Q, c = AR[span, span], AR[span] @ f - AR[span, span] @ f[span] + b[span]
    own, scale = f[span].copy(), np.array(cone.friction)
    ray = own
    if own[0] <= 0:  # from the apex along the ray on which the cost decreases most: friction against c
        slope = scale * c[1:]
        ray = np.array([1.0, *(-scale * slope / max(float(np.linalg.norm(slope)), TINY))])
    own = max(-(c @ ray) / (ray @ Q @ ray), 0.0) * ray
    # friction in the coordinates x_i = f_i / friction_i, with |x| <= f_0
    Q_friction, c_friction = Q[1:, 1:] * np.outer(scale, scale), (Q[1:, 0] * own[0] + c[1:]) * scale
    own[1:] = scale * _minimiser_in_ball(Q_friction, c_friction, own[0])
    f[span] = own


def _minimiser_in_ball(Q: np.ndarray, c: np.ndarray, radius: float) -> np.ndarray:
    """The x (n,) that minimises 1/2 x^T Q x + c^T x in the ball |x| <= radius, for a positive definite Q.

    x = -(Q + l)^-1 c with the multiplier l >= 0, the zero of 1/radius - 1/|x(l)|, which is found by Newton's
    method: this function is concave and nearly linear, so that the iterates increase towards its zero.
    Source: More, Sorensen, SIAM J. Sci. Stat. Comput. 4 (1983) 553.
    """
    if radius <= 0:
        return np.zeros(len(c))
    eigenvalues, axes = np.linalg.eigh(Q)
    along, multiplier = axes.T @ c, 0.0
    x = -along / eigenvalues
    for _ in range(MULTIPLIER_ITERATIONS):
        size = np.linalg.norm(x)
        if size <= radius:
            break
        slope = (x * x / (eigenvalues + multiplier)).sum() / size**2
        step = (size / radius - 1) / slope
        if multiplier + step == multiplier:
            break
        multiplier += step
        x = -along / (eigenvalues + multiplier)
    return axes @ (x * min(1.0, radius / max(float(np.linalg.norm(x)), TINY)))

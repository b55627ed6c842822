"""The force with which each row answers: minus the slope of its cost s(J a - aref), with the curvature of that cost.

    equality   f = -D y
    friction   the same, between -bound and bound
    limit      the same, where y < 0, else 0
    cone       the point of the cone nearest to -D y in the metric of R

with y = J a - aref. Source: seed 002's reduced primal; MuJoCo, Computation, "Primal".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.rows import Cone, Rows, array
from zwang.scalar import clip, logical_and, maximum, sqrt, where


def row_force(kind: str, D: Any, y: Any, bound: Any) -> tuple[Any, Any]:
    """Force of a row outside cones that misses by y, and the curvature -df/dy. D = 1 / R, 0 where the row does not act."""
    free = -D * y
    if kind == "equality":
        return free, D
    if kind == "friction":
        sticks = logical_and(-bound < free, free < bound)
        return clip(free, -bound, bound), where(sticks, D, 0.0)
    pushes = y < 0
    return where(pushes, free, 0.0), where(pushes, D, 0.0)


def cone_force(cone: Cone, D: Any, y: Any) -> tuple[list[Any], np.ndarray]:
    """Forces of a cone's rows that miss by y, and the curvature -df/dy (n, n). In the space U = (mu y_0, friction_j y_j) the cone is round; N = U_0, T = |U_1...|.

    Inside the dual cone, N >= mu T, there is no force; inside the polar, mu N + T <= 0, it is free; between, the cost is
    1/2 D_0 / (mu^2 (1 + mu^2)) (N - mu T)^2.
    """
    mu, friction = cone.mu, cone.friction
    scale = [mu, *friction]
    N, T, T_safe, *U = _round(cone, y)
    none, free = cone_status(cone, y)
    Dm = D[0] / (mu * mu * (1 + mu * mu))
    pull = Dm * (mu * T - N)
    between = [pull * mu, *(-pull * mu * f * u / T_safe for f, u in zip(friction, U, strict=True))]
    force = [
        where(none, 0.0, where(free, -d * x, middle)) for d, x, middle in zip(D, y, between, strict=True)
    ]
    return force, _cone_curvature(scale, D, Dm, (N, U, T_safe, mu), none, free)


def cone_status(cone: Cone, y: Any) -> tuple[Any, Any]:
    """Whether a cone's rows that miss by y answer without force, and whether freely, along their slopes."""
    N, T, *_ = _round(cone, y)
    return cone.mu * T <= N, cone.mu * N + T <= 0


def _round(cone: Cone, y: Any) -> list[Any]:
    """N, T, T for divisions, and U_1, ... of a cone's rows: see `cone_force`."""
    N, *U = [s * x for s, x in zip([cone.mu, *cone.friction], y, strict=True)]
    square = sum(u * u for u in U)
    slides = square > 0
    T = where(slides, sqrt(where(slides, square, 1.0)), 0.0)
    return [N, T, where(slides, T, 1.0), *U]


def _cone_curvature(scale: Any, D: Any, Dm: Any, at: Any, none: Any, free: Any) -> np.ndarray:
    """The cone's block of W: zero, the diagonal D, or the second derivative of the cost between."""
    N, U, T, mu = at
    n = len(scale)
    block: list[list[Any]] = [[0] * n for _ in range(n)]
    for j in range(n):
        for k in range(j, n):
            if j == 0:
                middle = 1 if k == 0 else -mu * U[k - 1] / T
            else:
                middle = mu * N / (T * T * T) * U[j - 1] * U[k - 1]
                middle = middle + (mu * mu - mu * N / T) if j == k else middle
            middle = Dm * scale[j] * scale[k] * middle
            block[j][k] = block[k][j] = where(none, 0.0, where(free, D[j] if j == k else 0.0, middle))
    return np.array(block)


def projected(rows: Rows, f: Any) -> np.ndarray:
    """The allowed forces nearest to f (n,); for a cone in the metric in which it is round."""
    nearest = list(f)
    for i, kind in enumerate(rows.kinds):
        if kind == "friction":
            nearest[i] = clip(f[i], -rows.bound[i], rows.bound[i])
        elif kind in ("limit", "contact"):
            nearest[i] = maximum(f[i], 0.0)
    for cone in rows.cones:
        nearest[cone.start : cone.stop] = _projected_on_cone(cone, f[cone.start : cone.stop])
    return array([where(on, x, 0.0) for on, x in zip(rows.active, nearest, strict=True)])


def _projected_on_cone(cone: Cone, f: Any) -> list[Any]:
    """With g_j = f_j / friction_j the cone is |g| <= f_0, and the projection on it is half of (f_0 + |g|) along its surface."""
    n, g = f[0], [x / mu for x, mu in zip(f[1:], cone.friction, strict=True)]
    size = sqrt(sum(x * x for x in g))
    inside, polar = size <= n, size <= -n
    height = (n + size) / 2
    share = height / where(size > 0, size, 1.0)
    surface = [height, *(share * x * mu for x, mu in zip(g, cone.friction, strict=True))]
    return [where(inside, x, where(polar, 0.0, s)) for x, s in zip(f, surface, strict=True)]

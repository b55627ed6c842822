"""Force law of the rows: the force is minus the derivative of the cost s(y) of the residual y = J a - aref,
and the curvature is that cost's second derivative.

    equality          f = -D y
    friction          f = -D y, clipped to [-bound, bound]
    limit, contact    f = -D y where y < 0, else 0
    cone              the point of the friction cone nearest to -D y in the metric of R

Source: MuJoCo documentation, Computation, "Reduced primal problem".
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.norms import norm
from zwang.constraint.rows import Cone, Rows, scalar_array
from zwang.scalar import clip, logical_and, maximum, sqrt, where


def row_force(kind: str, D: Any, y: Any, bound: Any) -> tuple[Any, Any]:
    """Force of a row outside cones at the residual y, and the curvature -df/dy.

    kind: "equality", "friction", "limit" or "contact". D: 1 / R, or 0 for an inactive row. bound: the
    largest friction force.
    """
    unbounded = -D * y
    if kind == "equality":
        return unbounded, D
    if kind == "friction":
        linear = logical_and(-bound < unbounded, unbounded < bound)
        return clip(unbounded, -bound, bound), where(linear, D, 0.0)
    active = y < 0
    return where(active, unbounded, 0.0), where(active, D, 0.0)


def forces_of_rows(rows: Rows, y: Any) -> np.ndarray:
    """Forces (n,) of the rows of one contact at their residuals y (n,)."""
    if rows.cones:
        return scalar_array(cone_force(rows.cones[0], rows.D, y)[0])
    each = zip(rows.kinds, rows.D, y, rows.bound, strict=True)
    return scalar_array([row_force(*numbers)[0] for numbers in each])


def cone_force(cone: Cone, D: Any, y: Any) -> tuple[list[Any], np.ndarray]:
    """Forces of a cone's rows at the residual y (n,), and the curvature -df/dy (n, n).

    In the coordinates U = (mu y_0, friction_j y_j) the cone is round; N = U_0 and T = |U_1...|. There are
    three regions. Where N >= mu T (y lies in the dual cone) the force is zero. Where mu N + T <= 0 (y lies
    in the polar cone) the force is -D y. Between them the cost is 1/2 D_0 / (mu^2 (1 + mu^2)) (N - mu T)^2.
    """
    mu, friction = cone.mu, cone.friction
    scale = [mu, *friction]
    N, T, T_safe, *U = _round_coordinates(cone, y)
    inactive, linear = cone_status(cone, y)
    Dm = D[0] / (mu * mu * (1 + mu * mu))
    slope_force = Dm * (mu * T - N)
    between = [
        slope_force * mu,
        *(-slope_force * mu * f * u / T_safe for f, u in zip(friction, U, strict=True)),
    ]
    force = [
        where(inactive, 0.0, where(linear, -d * x, middle))
        for d, x, middle in zip(D, y, between, strict=True)
    ]
    return force, _cone_curvature(scale, D, Dm, (N, U, T_safe, mu), inactive, linear)


def cone_status(cone: Cone, y: Any) -> tuple[Any, Any]:
    """Two conditions on the residual y of a cone's rows: whether the force is zero, and whether it is
    linear, -D y.
    """
    N, T, *_ = _round_coordinates(cone, y)
    return cone.mu * T <= N, cone.mu * N + T <= 0


def _round_coordinates(cone: Cone, y: Any) -> list[Any]:
    """N, T, T made safe for division, and U_1, ... of a cone's rows (see `cone_force`)."""
    N, *U = [s * x for s, x in zip([cone.mu, *cone.friction], y, strict=True)]
    square = sum(u * u for u in U)
    slides = square > 0
    T = where(slides, sqrt(where(slides, square, 1.0)), 0.0)
    return [N, T, where(slides, T, 1.0), *U]


def _cone_curvature(scale: Any, D: Any, Dm: Any, coordinates: Any, inactive: Any, linear: Any) -> np.ndarray:
    """Curvature (n, n) of a cone: zero, the diagonal D, or the second derivative of the cost in the middle
    region.
    """
    N, U, T, mu = coordinates
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
            block[j][k] = block[k][j] = where(inactive, 0.0, where(linear, D[j] if j == k else 0.0, middle))
    return np.array(block)


def projected(rows: Rows, f: Any) -> np.ndarray:
    """Projection of forces f (n,) onto the admissible set; for a cone in the metric in which it is round."""
    nearest = list(f)
    for i, kind in enumerate(rows.kinds):
        if kind == "friction":
            nearest[i] = clip(f[i], -rows.bound[i], rows.bound[i])
        elif kind in ("limit", "contact"):
            nearest[i] = maximum(f[i], 0.0)
    for cone in rows.cones:
        nearest[cone.start : cone.stop] = _projected_on_cone(cone, f[cone.start : cone.stop])
    return scalar_array([where(is_active, x, 0.0) for is_active, x in zip(rows.active, nearest, strict=True)])


def _projected_on_cone(cone: Cone, f: Any) -> list[Any]:
    """Projection onto a cone: with g_j = f_j / friction_j it is |g| <= f_0, and its surface is reached at
    the height (f_0 + |g|) / 2.
    """
    n, g = f[0], [x / mu for x, mu in zip(f[1:], cone.friction, strict=True)]
    size = norm(g)
    inside, in_polar = size <= n, size <= -n
    height = (n + size) / 2
    tangential_scale = height / where(size > 0, size, 1.0)
    surface = [height, *(tangential_scale * x * mu for x, mu in zip(g, cone.friction, strict=True))]
    return [where(inside, x, where(in_polar, 0.0, s)) for x, s in zip(f, surface, strict=True)]

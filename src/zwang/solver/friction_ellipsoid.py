"""The friction forces of an elliptic cone at a given normal force: a quadratic minimum in an ellipsoid."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import cholesky_solve
from zwang.algebra.norms import TINY
from zwang.scalar import equal, logical_and, logical_not, maximum, sqrt, where, while_loop

ITERATIONS = 20  # of Newton's method on the multiplier, as in MuJoCo
TOLERANCE = 1e-10  # of |x|^2 - r^2, of the multiplier's change, and of the determinant or the pivots


class _Iterate(NamedTuple):
    """The multiplier, the minimiser x (n,) at it, whether A is regular there, and whether both are final."""

    multiplier: Any
    x: np.ndarray
    regular: Any
    done: Any
    count: Any


def minimiser_in_ellipsoid(A: Any, b: Any, friction: Sequence[Any], radius: Any) -> np.ndarray:
    """The x (n,) that minimises 1/2 x^T A x + b^T x under sum (x_i / friction_i)^2 <= radius^2.

    Newton's method finds the multiplier l of the constraint, with x = -(A + l)^-1 b in the coordinates in
    which the ellipsoid is a sphere; zero where A is singular to 1e-10. Iterations, tolerances and the scaling
    onto the ellipsoid at the end are MuJoCo's. Source: MuJoCo documentation, Computation, "PGS".
    """
    n, scale = len(b), np.array(list(friction))
    Q, c = A * np.outer(scale, scale), b * scale

    def iterate(s: _Iterate) -> _Iterate:
        L, regular = _factor(
            [[Q[i, j] + (s.multiplier if i == j else 0) for j in range(n)] for i in range(n)]
        )
        x = -cholesky_solve(L, c)
        excess = x @ x - radius * radius
        slope = -2 * (x @ cholesky_solve(L, x))
        delta = -excess / where(equal(slope, 0), 1.0, slope)
        goes_on = logical_and(regular, logical_and(excess >= TOLERANCE, delta >= TOLERANCE))
        multiplier = where(goes_on, s.multiplier + delta, s.multiplier)
        x = np.array([where(regular, value, 0.0) for value in x])
        return _Iterate(multiplier, x, regular, logical_not(goes_on), s.count + 1)

    def unfinished(s: _Iterate) -> Any:
        return logical_and(logical_not(s.done), s.count < ITERATIONS)

    last = while_loop(unfinished, iterate, _Iterate(0.0, np.zeros(n), True, 1.0 < 0.0, 0.0))
    # on the ellipsoid where the constraint is active
    on = logical_and(last.regular, last.multiplier > 0)
    size = sqrt(maximum(TINY, last.x @ last.x))
    return np.array([where(on, x * (radius / size), x) * mu for x, mu in zip(last.x, friction, strict=True)])


def _factor(A: Any) -> tuple[list[list[Any]], Any]:
    """Cholesky factor of A (n, n), with reciprocals on its diagonal, and whether A is regular: by its
    determinant up to n = 3, and by its pivots above.
    """
    n = len(A)
    L: list[list[Any]] = [[0] * n for _ in range(n)]
    determinant, least = 1.0, np.inf
    for j in range(n):
        pivot = A[j][j] - sum((L[j][k] * L[j][k] for k in range(j)), start=0)
        determinant, least = determinant * pivot, where(pivot < least, pivot, least)
        L[j][j] = 1 / sqrt(where(pivot > 0, pivot, 1.0))
        for i in range(j + 1, n):
            L[i][j] = (A[i][j] - sum((L[i][k] * L[j][k] for k in range(j)), start=0)) * L[j][j]
    regular = (determinant if n <= 3 else least) >= TOLERANCE
    return L, logical_and(regular, least > 0)

"""Steps of fixed size, as functions of functions: they know rates and how to move, and no mechanism.

A motion is at a `Point`: a configuration q, speeds v, and z, the other quantities that change (activations of actuators).
`rate(q, v, z)` gives (v_dot, z_dot). All work on any scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class Point(NamedTuple):
    """Where a motion is: configuration (nq,), speeds (nv,), other quantities with a rate (nz,)."""

    q: Any
    v: Any
    z: Any


class Space(NamedTuple):
    """How a point moves.

    advance(at, s, z_dot, h) gives (q, z) after the time h along constant speeds s and rates z_dot. slope(u, v): where q
    is displaced by u (nv,) from a base point, the rate of u that belongs to the speeds v; v itself where q is plain.
    """

    advance: Callable[[Point, Any, Any, Any], tuple[Any, Any]]
    slope: Callable[[Any, Any], Any]


Rate = Callable[[Any, Any, Any], tuple[Any, Any]]


def semi_implicit_euler(rate: Rate, space: Space, at: Point, h: Any) -> Point:
    """One step h [s] of first order: v' = v + h v_dot(q, v, z), then q' = q + h v' and z' = z + h z_dot.

    Symplectic where v_dot depends on q alone. Source: Hairer, Lubich, Wanner, Geometric Numerical Integration (2006),
    I.1.2; MuJoCo's "Euler".
    """
    v_dot, z_dot = rate(*at)
    v = at.v + h * v_dot
    q, z = space.advance(at, v, z_dot, h)
    return Point(q, v, z)


SHARES = (1 / 2, 1 / 2, 1)
WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def runge_kutta_4(rate: Rate, space: Space, at: Point, h: Any) -> Point:
    """One step h [s] of the classical fourth-order method, on the configuration manifold.

    The displacement u from the step's first point is integrated in the tangent space there, u_dot = slope(u, v), so that
    it is of fourth order in attitudes too. Source: Munthe-Kaas, Applied Numerical Mathematics 29 (1999) 115; MuJoCo's "RK4".
    """
    slopes, rates = [at.v], [rate(*at)]
    for share in SHARES:
        here = _moved(space, at, (1,), slopes[-1:], rates[-1:], share * h)
        rates.append(rate(*here))
        slopes.append(space.slope(share * h * slopes[-1], here.v))
    return _moved(space, at, WEIGHTS, slopes, rates, h)


def _moved(space: Space, at: Point, weights: Sequence, slopes: Sequence, rates: Sequence, h: Any) -> Point:
    """`at` moved by the time h along a weighted mean of slopes and rates."""
    v_dot = _mean(weights, [v_dot for v_dot, _ in rates])
    z_dot = _mean(weights, [z_dot for _, z_dot in rates])
    q, z = space.advance(at, _mean(weights, slopes), z_dot, h)
    return Point(q, at.v + h * v_dot, z)


def _mean(weights: Sequence, vectors: Sequence) -> Any:
    return sum((w * x for w, x in zip(weights[1:], vectors[1:], strict=True)), weights[0] * vectors[0])

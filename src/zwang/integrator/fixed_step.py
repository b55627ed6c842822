"""Steps of fixed size, as functions of functions: they know rates and how to move, and no mechanism.

A motion is at a `Point`: a configuration q, speeds v, and z, the other quantities that change (activations of actuators).
`rate(q, v, z, dt)` gives (v_dot, z_dot) at the time dt after the step's
beginning. All work on any scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple


class State(NamedTuple):
    """Where a motion is: configuration (nq,), speeds (nv,), other quantities with a rate (nz,)."""

    q: Any
    v: Any
    z: Any


class StateSpace(NamedTuple):
    """How a point moves.

    move(q, s, h): q after the time h along constant speeds s. settle(z, z_dot, h): z at the end of a step h. slope(u, v): where q
    is displaced by u (nv,) from a base point, the rate of u that belongs to the speeds v; v itself where q is plain.
    """

    integrate: Callable[[Any, Any, Any], Any]
    advance: Callable[[Any, Any, Any], Any]
    displacement_rate: Callable[[Any, Any], Any]


StateDerivativeFunction = Callable[[Any, Any, Any, Any], tuple[Any, Any]]


def semi_implicit_euler(rate: StateDerivativeFunction, space: StateSpace, at: State, h: Any) -> State:
    """One step h [s] of first order: v' = v + h v_dot(q, v, z), then q' = q + h v' and z' = z + h z_dot.

    Symplectic where v_dot depends on q alone. Source: Hairer, Lubich, Wanner, Geometric Numerical Integration (2006),
    I.1.2; MuJoCo's "Euler".
    """
    v_dot, z_dot = rate(*at, 0)
    v = at.v + h * v_dot
    return State(space.integrate(at.q, v, h), v, space.advance(at.z, z_dot, h))


NODES = (1 / 2, 1 / 2, 1)
WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def runge_kutta_4(rate: StateDerivativeFunction, space: StateSpace, at: State, h: Any) -> State:
    """One step h [s] of the classical fourth-order method, on the configuration manifold.

    The displacement u from the step's first point is integrated in the tangent space there, u_dot = slope(u, v), so that
    it is of fourth order in attitudes too. Source: Munthe-Kaas, Applied Numerical Mathematics 29 (1999) 115; MuJoCo's "RK4".
    """
    slopes, rates = [at.v], [rate(*at, 0)]
    for share in NODES:
        dt, (v_dot, z_dot) = share * h, rates[-1]
        here = State(space.integrate(at.q, slopes[-1], dt), at.v + dt * v_dot, at.z + dt * z_dot)
        rates.append(rate(*here, dt))
        slopes.append(space.displacement_rate(dt * slopes[-1], here.v))
    s, v_dot, z_dot = (_mean(WEIGHTS, x) for x in (slopes, *zip(*rates, strict=True)))
    return State(space.integrate(at.q, s, h), at.v + h * v_dot, space.advance(at.z, z_dot, h))


def _mean(weights: Sequence, vectors: Sequence) -> Any:
    return sum((w * x for w, x in zip(weights[1:], vectors[1:], strict=True)), weights[0] * vectors[0])

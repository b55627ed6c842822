"""Integrators with a fixed step size, as functions of a state derivative; they know no mechanism.

A state is a `State` (q, v, z): the configuration, the generalised velocities, and the other states, which are
the activations of actuators. `derivative(q, v, z, dt)` returns (v_dot, z_dot) at the time dt after the
beginning of the step. All functions work on every kind of scalar.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from zwang.scalar import where


class State(NamedTuple):
    """State of a mechanism: configuration q (nq,), generalised velocities v (nv,), activations z (nz,) of
    actuators.
    """

    q: Any
    v: Any
    z: Any


class StateSpace(NamedTuple):
    """The update rules of the state space.

    integrate(q, v, h): configuration after the time h at constant velocities v. advance(z, z_dot, h):
    activations at the end of a step of size h. displacement_rate(u, v): time derivative of the displacement u
    (nv,) of the configuration from a fixed one at the velocities v; it is v itself where q is a vector of
    plain coordinates.
    """

    integrate: Callable[[Any, Any, Any], Any]
    advance: Callable[[Any, Any, Any], Any]
    displacement_rate: Callable[[Any, Any], Any]


StateDerivativeFunction = Callable[[Any, Any, Any, Any], tuple[Any, Any]]


def semi_implicit_euler(
    derivative: StateDerivativeFunction, space: StateSpace, state: State, h: Any
) -> State:
    """The state after one semi-implicit Euler step of size h [s], of first order.

    v' = v + h v_dot(q, v, z), then q' = q + h v' and z' = z + h z_dot. The step is symplectic where v_dot
    depends on q alone. Source: Hairer, Lubich, Wanner, Geometric Numerical Integration (2006), Sec. I.1.2;
    MuJoCo's "Euler".
    """
    v_dot, z_dot = derivative(*state, 0)
    v = state.v + h * v_dot
    return State(space.integrate(state.q, v, h), v, space.advance(state.z, z_dot, h))


NODES = (1 / 2, 1 / 2, 1)
WEIGHTS = (1 / 6, 1 / 3, 1 / 3, 1 / 6)


def runge_kutta_4(derivative: StateDerivativeFunction, space: StateSpace, state: State, h: Any) -> State:
    """The state after one step of size h [s] by the classical Runge-Kutta method of fourth order, on the
    manifold of q.

    The displacement u of q within the step is integrated in the tangent space, u_dot = displacement_rate(u,
    v), so that rotations are of fourth order too. Source: Munthe-Kaas, "High order Runge-Kutta methods on
    manifolds", Applied Numerical Mathematics 29 (1999) 115; MuJoCo's "RK4".
    """
    u_dot, v_dot, z_dot = _runge_kutta_slopes(derivative, space, state, h)
    q = space.integrate(state.q, u_dot, h)
    return State(q, state.v + h * v_dot, space.advance(state.z, z_dot, h))


def _runge_kutta_slopes(
    derivative: StateDerivativeFunction, space: StateSpace, state: State, h: Any
) -> tuple[Any, Any, Any]:
    """The mean slopes of the displacement, the velocities and the activations over a step."""
    # Stage k: u_k = c_k h u_dot_{k-1}, and the derivative at the displaced state.
    displacement_rates, derivatives = [state.v], [derivative(*state, 0)]
    for node in NODES:
        dt, (v_dot, z_dot) = node * h, derivatives[-1]
        q = space.integrate(state.q, displacement_rates[-1], dt)
        stage = State(q, state.v + dt * v_dot, state.z + dt * z_dot)
        derivatives.append(derivative(*stage, dt))
        displacement_rates.append(space.displacement_rate(dt * displacement_rates[-1], stage.v))
    # Step: the weighted mean of the stage derivatives.
    u_dot, v_dot, z_dot = (
        _weighted_sum(WEIGHTS, x) for x in (displacement_rates, *zip(*derivatives, strict=True))
    )
    return u_dot, v_dot, z_dot


class SubStep(NamedTuple):
    """A part of a step, as a path between two impacts.

    mean_rate (nv,): the displacement of q over the part, by its size. start_rate, end_rate (nv,): the time
    derivatives of the displacement at both ends. end: the state at the end, with the velocity at that time.
    step_velocity (nv,): the velocity of the method's state where this part is the last one of its step.
    """

    mean_rate: Any
    start_rate: Any
    end_rate: Any
    end: State
    step_velocity: Any


def displacement_at(mean_rate: Any, start_rate: Any, end_rate: Any, share: Any, size: Any) -> tuple[Any, Any]:
    """The displacement and its rate after a share of a path of this size [s], by Hermite's cubic.

    mean_rate, start_rate, end_rate (nv,): the displacement of the whole path by its size, and its rates at
    both ends.
    """
    s, r = share, 1 - share
    x = s * (3 - 2 * s) * mean_rate + r * r * start_rate - s * r * end_rate
    rate = 6 * s * r * mean_rate + r * (r - 2 * s) * start_rate + s * (s - 2 * r) * end_rate
    return size * s * x, rate


def semi_implicit_euler_part(
    derivative: StateDerivativeFunction, space: StateSpace, state: State, size: Any, h: Any, first: Any
) -> SubStep:
    """A part of this size of a semi-implicit Euler step of size h [s], of second order.

    The method equals the leapfrog method whose velocities belong to the times h/2 before those of q. So the
    velocity at the beginning of a step (first: the part begins there) is v + h/2 a, and the parts of a step
    add up to it. Later parts begin with the velocity at their beginning, as an impact leaves it. Without
    this an impact would have an error of first order, which depends on its phase in the step. Source:
    Hairer, Lubich, Wanner, Geometric Numerical Integration (2006), Sec. I.1.4.
    """
    v_dot, z_dot = derivative(*state, 0)
    start = state.v + where(first, h / 2, 0.0) * v_dot
    mean, v = start + size / 2 * v_dot, start + size * v_dot
    end = State(space.integrate(state.q, mean, size), v, space.advance(state.z, z_dot, size))
    return SubStep(mean, start, v, end, v - h / 2 * v_dot)


def runge_kutta_4_part(
    derivative: StateDerivativeFunction, space: StateSpace, state: State, size: Any, h: Any, first: Any
) -> SubStep:
    """A part of this size of a step by the classical Runge-Kutta method: a step of this size."""
    u_dot, v_dot, z_dot = _runge_kutta_slopes(derivative, space, state, size)
    v = state.v + size * v_dot
    end = State(space.integrate(state.q, u_dot, size), v, space.advance(state.z, z_dot, size))
    return SubStep(u_dot, state.v, space.displacement_rate(size * u_dot, v), end, v)


def _weighted_sum(weights: Sequence[float], vectors: Sequence[Any]) -> Any:
    return sum((w * x for w, x in zip(weights[1:], vectors[1:], strict=True)), weights[0] * vectors[0])

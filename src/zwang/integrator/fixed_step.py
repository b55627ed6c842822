"""Integrators with a fixed step size, as functions of a state derivative; they know no mechanism.

A state is a `State` (q, v, z): the configuration, the generalised velocities, and the other states, which are
the activations of actuators. `derivative(q, v, z, node, memory)` returns (v_dot, z_dot, memory) at a
`StageNode` of the step; `memory` is a pytree that it hands to its next evaluation, None in the first one, and
that a step returns at the end. All functions work on every kind of scalar.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import fori_loop, table, where


class State(NamedTuple):
    """State of a mechanism: configuration q (nq,), generalised velocities v (nv,), activations z (nz,) of
    actuators.
    """

    q: Any
    v: Any
    z: Any


class StateSpace(NamedTuple):
    """The update rules of the state space, and how the stages of a step in it are traced.

    integrate(q, v, h): configuration after the time h at constant velocities v. advance(z, z_dot, h):
    activations at the end of a step of size h. displacement_rate(u, v): time derivative of the displacement u
    (nv,) of the configuration from a fixed one at the velocities v; it is v itself where q is a vector of
    plain coordinates. unroll: of the loop over all stages but the first, as for `fori_loop`.
    """

    integrate: Callable[[Any, Any, Any], Any]
    advance: Callable[[Any, Any, Any], Any]
    displacement_rate: Callable[[Any, Any], Any]
    unroll: bool | None = None


class StageNode(NamedTuple):
    """The place of a stage in its step.

    number: 0 for the first stage. dt [s]: the time after the beginning of the step. position_lag [s^2]:
    displaced by this times the acceleration, the configuration of the stage is that of the motion at this
    time, to third order.
    """

    dt: Any
    position_lag: Any = 0
    number: Any = 0


StateDerivativeFunction = Callable[[Any, Any, Any, StageNode, Any], tuple[Any, Any, Any]]
FIRST_NODE = StageNode(0)


def semi_implicit_euler(
    derivative: StateDerivativeFunction, space: StateSpace, state: State, h: Any
) -> tuple[State, Any]:
    """The state after one semi-implicit Euler step of size h [s], of first order, and the memory.

    v' = v + h v_dot(q, v, z), then q' = q + h v' and z' = z + h z_dot. The step is symplectic where v_dot
    depends on q alone. Source: Hairer, Lubich, Wanner, Geometric Numerical Integration (2006), Sec. I.1.2;
    MuJoCo's "Euler".
    """
    v_dot, z_dot, memory = derivative(*state, FIRST_NODE, None)
    v = state.v + h * v_dot
    return State(space.integrate(state.q, v, h), v, space.advance(state.z, z_dot, h)), memory


FIRST_WEIGHT = 1 / 6
LATER_STAGES = ((1 / 2, 1 / 3), (1 / 2, 1 / 3), (1, 1 / 6))  # time and weight
RUNGE_KUTTA_STAGES = 1 + len(LATER_STAGES)
POSITION_LAGS = 1 / 8, -1 / 8, 0.0  # c^2 / 2 - c b of the time c and that of the stage before, b


def runge_kutta_4(
    derivative: StateDerivativeFunction, space: StateSpace, state: State, h: Any
) -> tuple[State, Any]:
    """The state after one step of size h [s] by the classical Runge-Kutta method of fourth order, on the
    manifold of q, and the memory.

    The displacement u of q within the step is integrated in the tangent space, u_dot = displacement_rate(u,
    v), so that rotations are of fourth order too. Source: Munthe-Kaas, "High order Runge-Kutta methods on
    manifolds", Applied Numerical Mathematics 29 (1999) 115; MuJoCo's "RK4".
    """
    mean, memory = _mean_slopes(derivative, space, state, h)
    q = space.integrate(state.q, mean.u_dot, h)
    return State(q, state.v + h * mean.v_dot, space.advance(state.z, mean.z_dot, h)), memory


class _Slopes(NamedTuple):
    """The rates of the displacement of q within a step, of the velocities and of the activations."""

    u_dot: Any
    v_dot: Any
    z_dot: Any


def _mean_slopes(
    derivative: StateDerivativeFunction, space: StateSpace, state: State, h: Any
) -> tuple[_Slopes, Any]:
    """The weighted mean of the slopes of all stages, and the memory."""
    v_dot, z_dot, memory = derivative(*state, FIRST_NODE, None)
    first = _Slopes(np.array(state.v), v_dot, z_dot)
    stages, lags = table(LATER_STAGES), table(POSITION_LAGS)

    def stage(k: Any, carry: tuple[_Slopes, _Slopes, Any]) -> tuple[_Slopes, _Slopes, Any]:
        """Stage k: u_k = c_k h u_dot_{k-1}, and the slopes at the displaced state."""
        last, mean, memory = carry
        dt, weight = stages[k, 0] * h, stages[k, 1]
        q = space.integrate(state.q, last.u_dot, dt)
        v, z = state.v + dt * last.v_dot, state.z + dt * last.z_dot
        v_dot, z_dot, memory = derivative(q, v, z, StageNode(dt, lags[k] * h * h, k + 1), memory)
        slopes = _Slopes(space.displacement_rate(dt * last.u_dot, v), v_dot, z_dot)
        return slopes, _Slopes(*(x + weight * y for x, y in zip(mean, slopes, strict=True))), memory

    start = first, _Slopes(*(FIRST_WEIGHT * x for x in first)), memory
    _, mean, memory = fori_loop(0, len(LATER_STAGES), stage, start, unroll=space.unroll)
    return mean, memory


class SubStep(NamedTuple):
    """A part of a step, as a path between two impacts.

    mean_rate (nv,): the displacement of q over the part, by its size. start_rate, end_rate (nv,): the time
    derivatives of the displacement at both ends. end: the state at the end, with the velocity at that time.
    step_velocity (nv,): the velocity of the method's state where this part is the last one of its step.
    memory: of the last evaluation of the derivative.
    """

    mean_rate: Any
    start_rate: Any
    end_rate: Any
    end: State
    step_velocity: Any
    memory: Any


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
    v_dot, z_dot, memory = derivative(*state, FIRST_NODE, None)
    start = state.v + where(first, h / 2, 0.0) * v_dot
    mean, v = start + size / 2 * v_dot, start + size * v_dot
    end = State(space.integrate(state.q, mean, size), v, space.advance(state.z, z_dot, size))
    return SubStep(mean, start, v, end, v - h / 2 * v_dot, memory)


def runge_kutta_4_part(
    derivative: StateDerivativeFunction, space: StateSpace, state: State, size: Any, h: Any, first: Any
) -> SubStep:
    """A part of this size of a step by the classical Runge-Kutta method: a step of this size."""
    mean, memory = _mean_slopes(derivative, space, state, size)
    v = state.v + size * mean.v_dot
    end = State(space.integrate(state.q, mean.u_dot, size), v, space.advance(state.z, mean.z_dot, size))
    return SubStep(mean.u_dot, state.v, space.displacement_rate(size * mean.u_dot, v), end, v, memory)

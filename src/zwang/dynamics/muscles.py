"""Muscle force as a function of length, velocity and activation, and the dynamics of activation.

Source: MuJoCo documentation, "Muscles"; Millard et al., Journal of Biomechanical Engineering 135 (2013)
021005, for the activation dynamics.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zwang.algebra.norms import TINY
from zwang.dynamics.ranges import clipped
from zwang.mechanism.force_elements import Muscle
from zwang.scalar import clip, is_zero, less, less_equal, maximum, where
from zwang.scalar.stacked_pytree import for_all


def muscle_forces(arguments: Sequence[tuple[Muscle, Any, Any, Any]]) -> list[Any]:
    """`muscle_force` of each muscle, with its length, speed and activation."""
    return for_all(
        lambda own: muscle_force(*own), arguments, form=lambda own: is_zero(own[0].lengthening - 1)
    )


def activation_derivatives_of(arguments: Sequence[tuple[tuple[Any, ...], Any, Any]]) -> list[Any]:
    """`activation_derivative` of each muscle, with its parameters, control and activation."""
    return for_all(lambda own: activation_derivative(*own), arguments, form=lambda own: is_zero(own[0][-1]))


def muscle_force(muscle: Muscle, length: Any, speed: Any, activation: Any) -> Any:
    """Actuator force [N] of a muscle, negative in tension: -strength (activation FL(L) FV(V) + FP(L)).

    length [m], speed [m/s]: of the actuator; activation: in [0, 1].
    """
    L, V, _ = normalised_length_velocity(muscle, length, speed)
    return -muscle.strength * (
        activation * force_length(muscle, L) * force_velocity(muscle, V) + passive_force_length(muscle, L)
    )


def muscle_damping_slope(muscle: Muscle, length: Any, speed: Any, activation: Any) -> Any:
    """Derivative of the muscle's force with respect to its speed [N s/m]."""
    L, V, fastest = normalised_length_velocity(muscle, length, speed)
    slope = activation * force_length(muscle, L) * force_velocity_slope(muscle, V)
    return -muscle.strength * slope / fastest


def normalised_length_velocity(muscle: Muscle, length: Any, speed: Any) -> tuple[Any, Any, Any]:
    """(L, V, fastest): length in units of the optimal length L0, speed in units of the fastest shortening
    [m/s].
    """
    low, high = muscle.operating_range
    first, last = muscle.length_range
    optimal = (last - first) / (high - low)
    fastest = optimal * muscle.fastest
    return low + (length - first) / optimal, speed / fastest, fastest


def force_length(muscle: Muscle, L: Any) -> Any:
    """Active force-length curve FL(L): 1 at L = 1, and 0 at the shortest and longest length, by four
    parabolas.
    """
    short, long = muscle.shortest, muscle.longest
    a, b = (short + 1) / 2, (1 + long) / 2
    rising = where(
        less_equal(L, a), _half_square((L - short) / (a - short)), 1 - _half_square((1 - L) / (1 - a))
    )
    falling = where(
        less_equal(L, b), 1 - _half_square((L - 1) / (b - 1)), _half_square((long - L) / (long - b))
    )
    inside = where(less_equal(L, 1), rising, falling)
    return where(less(L, short), 0.0, where(less(long, L), 0.0, inside))


def _half_square(x: Any) -> Any:
    return x * x / 2


def force_velocity(muscle: Muscle, V: Any) -> Any:
    """Force-velocity curve FV(V): 0 at the fastest shortening, 1 at rest, constant beyond a lengthening
    velocity.
    """
    y = muscle.lengthening - 1
    lengthening = muscle.lengthening - (y - V) * (y - V) / y if not is_zero(y) else muscle.lengthening
    saturated = where(less_equal(V, y), lengthening, muscle.lengthening)
    return where(less_equal(V, -1), 0.0, where(less_equal(V, 0), (V + 1) * (V + 1), saturated))


def force_velocity_slope(muscle: Muscle, V: Any) -> Any:
    """Derivative of the force-velocity curve, dFV/dV."""
    y = muscle.lengthening - 1
    lengthening = where(less_equal(V, y), 2 * (y - V) / y, 0.0) if not is_zero(y) else 0.0
    return where(less_equal(V, -1), 0.0, where(less_equal(V, 0), 2 * (V + 1), lengthening))


def passive_force_length(muscle: Muscle, L: Any) -> Any:
    """Passive force-length curve FP(L): 0 up to L = 1, a parabola up to (1 + longest) / 2, then linear."""
    x = (L - 1) / ((muscle.longest - 1) / 2)
    curve = where(less_equal(x, 1), _half_square(x), x - 0.5)
    return where(less_equal(L, 1), 0.0, muscle.passive * curve)


def activation_derivative(parameters: tuple[Any, ...], control: Any, activation: Any) -> Any:
    """Time derivative of the activation [1/s]: (u - activation) / tau, with time constants that depend on the
    activation.

    parameters: time constants of activation and deactivation [s], and the width of the smooth transition
    between them.
    """
    rise, fall, width = parameters
    u, a = clipped(control, (0, 1)), clipped(activation, (0, 1))
    rise, fall = rise * (0.5 + 1.5 * a), fall / (0.5 + 1.5 * a)
    change = u - activation
    if is_zero(width):
        tau = where(less(0, change), rise, fall)
    else:
        tau = fall + (rise - fall) * _sigmoid(change / width + 0.5)
    return change / maximum(tau, TINY)


def _sigmoid(x: Any) -> Any:
    """Smooth step from 0 at x = 0 to 1 at x = 1, with two continuous derivatives."""
    x = clip(x, 0, 1)
    return x * x * x * (3 * x * (2 * x - 5) + 10)

"""A muscle's force by its length and speed, and how its activation follows the excitation.

Source: MuJoCo documentation, "Muscles"; Millard et al. (2013) for the activation.
"""

from __future__ import annotations

from typing import Any

from zwang.mechanism.forces import Muscle
from zwang.scalar import clip, is_zero, less, less_equal, maximum, where

TINY = 1e-15


def muscle_force(muscle: Muscle, length: Any, speed: Any, activation: Any) -> Any:
    """The force on the actuator's length [N], negative where it pulls: -strength * (u FL(L) FV(V) + FP(L))."""
    L, V, _ = normalised(muscle, length, speed)
    return -muscle.strength * (
        activation * force_length(muscle, L) * force_velocity(muscle, V) + passive_force_length(muscle, L)
    )


def muscle_damping_slope(muscle: Muscle, length: Any, speed: Any, activation: Any) -> Any:
    """d force / d speed of a muscle [N s/m]."""
    L, V, fastest = normalised(muscle, length, speed)
    rise = activation * force_length(muscle, L) * force_velocity_slope(muscle, V)
    return -muscle.strength * rise / fastest


def normalised(muscle: Muscle, length: Any, speed: Any) -> tuple[Any, Any, Any]:
    """(L, V, fastest): the length in units of that of the largest force, the speed in units of the fastest shortening's [m/s]."""
    low, high = muscle.operating_range
    first, last = muscle.length_range
    rest = (last - first) / (high - low)  # the length L0 of L = 1
    fastest = rest * muscle.fastest
    return low + (length - first) / rest, speed / fastest, fastest


def force_length(muscle: Muscle, L: Any) -> Any:
    """FL: 1 at L = 1, falling to 0 at the shortest and longest, by four parabolas."""
    short, long = muscle.shortest, muscle.longest
    a, b = (short + 1) / 2, (1 + long) / 2
    rising = where(less_equal(L, a), _half((L - short) / (a - short)), 1 - _half((1 - L) / (1 - a)))
    falling = where(less_equal(L, b), 1 - _half((L - 1) / (b - 1)), _half((long - L) / (long - b)))
    inside = where(less_equal(L, 1), rising, falling)
    return where(less(L, short), 0.0, where(less(long, L), 0.0, inside))


def _half(x: Any) -> Any:
    return x * x / 2


def force_velocity(muscle: Muscle, V: Any) -> Any:
    """FV: 0 at the fastest shortening, 1 at rest, saturating when lengthened."""
    y = muscle.lengthening - 1
    stretched = muscle.lengthening - (y - V) * (y - V) / y if not is_zero(y) else muscle.lengthening
    lengthened = where(less_equal(V, y), stretched, muscle.lengthening)
    return where(less_equal(V, -1), 0.0, where(less_equal(V, 0), (V + 1) * (V + 1), lengthened))


def force_velocity_slope(muscle: Muscle, V: Any) -> Any:
    """d FV / d V."""
    y = muscle.lengthening - 1
    stretched = where(less_equal(V, y), 2 * (y - V) / y, 0.0) if not is_zero(y) else 0.0
    return where(less_equal(V, -1), 0.0, where(less_equal(V, 0), 2 * (V + 1), stretched))


def passive_force_length(muscle: Muscle, L: Any) -> Any:
    """FP: nothing up to L = 1, then a parabola, from half way to the longest on a line."""
    x = (L - 1) / ((muscle.longest - 1) / 2)
    curve = where(less_equal(x, 1), _half(x), x - 0.5)
    return where(less_equal(L, 1), 0.0, muscle.passive * curve)


def activation_derivative(parameters: tuple[Any, ...], control: Any, activation: Any) -> Any:
    """d(activation)/dt = (u - activation) / tau, tau that of activation or deactivation, both slower or faster with it."""
    rise, fall, width = parameters
    u, a = clip(control, 0, 1), clip(activation, 0, 1)
    rise, fall = rise * (0.5 + 1.5 * a), fall / (0.5 + 1.5 * a)
    change = u - activation
    if is_zero(width):
        tau = where(less(0, change), rise, fall)
    else:
        tau = fall + (rise - fall) * _sigmoid(change / width + 0.5)
    return change / maximum(tau, TINY)


def _sigmoid(x: Any) -> Any:
    """From 0 at x = 0 to 1 at x = 1, with two continuous derivatives."""
    x = clip(x, 0, 1)
    return x * x * x * (3 * x * (2 * x - 5) + 10)

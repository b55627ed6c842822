"""Location of the roots of functions of time inside a step: where an event function crosses zero."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import absolute, clip, divide, logical_and, maximum, minimum, where, while_loop

RELATIVE_TOLERANCE = 4e-16  # of the root, relative to the larger end of the bracket
ITERATIONS = 100  # bisection alone needs 53


class Crossing(NamedTuple):
    """Event `index` crosses zero at the time t [s]; rising: from negative to positive values."""

    t: float
    index: int
    rising: bool


class _Bracket(NamedTuple):
    """a: the newest point; b: the point with the other sign; c: the point before a. f_a, f_b, f_c: values.

    share: the part of b - a at which the next point lies. iterations: their number.
    """

    a: Any
    f_a: Any
    b: Any
    f_b: Any
    c: Any
    f_c: Any
    share: Any
    iterations: Any


def locate_root(
    function: Callable[[Any], Any],
    lower: Any,
    upper: Any,
    at_lower: Any,
    at_upper: Any,
    *,
    tolerance: float = RELATIVE_TOLERANCE,
) -> Any:
    """A root of a continuous function between lower and upper by Chandrupatla's method, on any scalar.

    at_lower, at_upper: the values at the ends, of opposite signs (or zero). tolerance: of the root, relative
    to the larger end. Each iteration is an inverse quadratic interpolation where that is safe, and a
    bisection otherwise. Source: Chandrupatla, Advances in Engineering Software 28 (1997) 145.
    """
    width = 2 * tolerance * maximum(absolute(lower), absolute(upper))

    def unfinished(s: _Bracket) -> Any:
        open_bracket = logical_and(absolute(s.b - s.a) > width, s.iterations < ITERATIONS)
        return logical_and(open_bracket, logical_and(absolute(s.f_a) > 0, absolute(s.f_b) > 0))

    def iterate(s: _Bracket) -> _Bracket:
        x = s.a + s.share * (s.b - s.a)
        f = function(x)
        same = f * s.f_a > 0  # the new point replaces a, or a becomes the opposite point
        b, f_b = where(same, s.b, s.a), where(same, s.f_b, s.f_a)
        c, f_c = where(same, s.a, s.b), where(same, s.f_a, s.f_b)
        share = _next_share(x, f, b, f_b, c, f_c)
        least = minimum(0.5, divide(width, maximum(absolute(b - x), width)) / 2)
        return _Bracket(x, f, b, f_b, c, f_c, clip(share, least, 1 - least), s.iterations + 1)

    start = _Bracket(upper, at_upper, lower, at_lower, lower, at_lower, 0.5, 0.0)
    last = while_loop(unfinished, iterate, start)
    return where(absolute(last.f_a) < absolute(last.f_b), last.a, last.b)


def _next_share(a: Any, f_a: Any, b: Any, f_b: Any, c: Any, f_c: Any) -> Any:
    """The part of b - a of the next point: by inverse quadratic interpolation where it is monotonic, else
    1/2.
    """
    xi, phi = _ratio(a - b, c - b), _ratio(f_a - f_b, f_c - f_b)
    monotonic = logical_and(phi * phi < xi, (1 - phi) * (1 - phi) < 1 - xi)
    interpolated = _ratio(f_a, f_b - f_a) * _ratio(f_c, f_b - f_c)
    interpolated = interpolated + _ratio(c - a, b - a) * _ratio(f_a, f_c - f_a) * _ratio(f_b, f_c - f_b)
    return where(monotonic, interpolated, 0.5)


def _ratio(x: Any, y: Any) -> Any:
    """x / y; 0 where y is 0."""
    return where(absolute(y) > 0, divide(x, where(absolute(y) > 0, y, 1.0)), 0.0)


def crosses(before: Any, after: Any, direction: Any = 0, *, first: Any = False) -> Any:
    """Whether an event function with these values at the ends of a step crosses zero in the direction, for
    numbers or arrays.

    direction: 1 for rising, -1 for falling, 0 for both. A zero at the end of a step counts for that step,
    and not for the next one. first: whether the step is the first one, for which a zero at its start counts;
    its direction is that of the step, as in SciPy's solve_ivp.
    """
    before, after, direction = np.asarray(before), np.asarray(after), np.asarray(direction)
    at_start = (before == 0) & np.asarray(first)
    rising = ((before < 0) | at_start) & (after >= 0) & (direction >= 0)
    return rising | (((before > 0) | at_start) & (after <= 0) & (direction <= 0))


def without_rounding(values: Any, tolerance: Any) -> np.ndarray:
    """The values of event functions, 0 where they are within the tolerance of it."""
    values = np.asarray(values)
    return np.where(np.abs(values) <= tolerance, 0.0, values)


def locate_crossings(
    functions: Sequence[Callable[[float], Any]],
    directions: Sequence[int],
    start: float,
    end: float,
    before: np.ndarray | Sequence[Any],
    after: np.ndarray | Sequence[Any],
    *,
    first: bool = False,
) -> list[Crossing]:
    """The crossings of zero of event functions of time between the ends of a step, in their order.

    functions: of the time, by the dense output of the step. directions, first: as for `crosses`. before,
    after: the values at the start and at the end. A function that crosses zero twice within a step is not
    noticed, as in SciPy's solve_ivp: bound the step where that matters.
    """
    found = []
    for k, (function, direction) in enumerate(zip(functions, directions, strict=True)):
        if crosses(before[k], after[k], direction, first=first):
            t = float(locate_root(function, start, end, float(before[k]), float(after[k])))
            found.append(Crossing(t, k, bool(after[k] > before[k])))
    return sorted(found)

"""The path of a tendon along the inner surface of a sphere or a cylinder, whose side frame is inside.

In the plane of the circle, the path consists of two straight segments that meet at a point of the circle,
where they make equal angles with its tangent. With the angle asin(z) between the circle's normal and a
segment, the radius r, the distances d1 and d2 of the end points from the centre, and the angle G between
them,

    asin(r z / d1) + asin(r z / d2) - 2 asin(z) + G = 0.

Newton's method starts at z = 1. Source: MuJoCo, `mju_wrap`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.scalar import (
    absolute,
    acos,
    asin,
    clip,
    cos,
    less,
    less_equal,
    logical_and,
    logical_not,
    maximum,
    sin,
    sqrt,
    where,
    while_loop,
)

FIRST = 1 - 1e-7  # of z
ITERATIONS = 20
RESIDUAL = 1e-12
LEAST = 1e-15  # of a divisor or a length [m]


def touching_point(start: np.ndarray, end: np.ndarray, r: Any) -> tuple[Any, np.ndarray]:
    """Whether the path between two points (2,) in the plane of the circle of radius r touches it from inside,
    and the point (2,) where it does.
    """
    lengths = [_length(start), _length(end)]
    d = end - start
    outside = logical_and(less(r, lengths[0]), less(r, lengths[1]))
    touches = logical_and(outside, logical_not(_crosses(start, d, r)))
    d1, d2 = (where(touches, x, 2 * r) for x in lengths)
    cosine = (d1 * d1 + d2 * d2 - d @ d) / (2 * d1 * d2)
    touches = logical_and(touches, less_equal(LEAST - 1, cosine))
    z, found = _solve(r / d1, r / d2, acos(clip(cosine, -1, 1)))
    found = logical_and(found, less_equal(cosine, 1 - LEAST))
    # rotate the direction of one end point towards the other
    first = less(0, start[0] * end[1] - start[1] * end[0])
    unit = np.array([where(first, a / d1, b / d2) for a, b in zip(start, end, strict=True)])
    angle = asin(z) - asin(where(first, r / d1, r / d2) * z)
    turned = np.array(
        [cos(angle) * unit[0] - sin(angle) * unit[1], sin(angle) * unit[0] + cos(angle) * unit[1]]
    )
    mean = (start + end) / 2  # where there is no solution
    middle = mean / maximum(LEAST, _length(mean))
    return touches, np.array([r * where(found, a, b) for a, b in zip(turned, middle, strict=True)])


def _length(x: np.ndarray) -> Any:
    square = x @ x
    positive = less(LEAST * LEAST, square)
    return where(positive, sqrt(where(positive, square, 1.0)), 0.0)


def _crosses(start: np.ndarray, d: np.ndarray, r: Any) -> Any:
    """Whether the inner part of the segment from `start` along d comes closer to the centre than r."""
    square = d @ d
    a = -(d @ start) / where(less(LEAST, square), square, 1.0)
    nearest = start + a * d
    inner = logical_and(less(LEAST, square), logical_and(less(0, a), less(a, 1)))
    return logical_and(inner, less_equal(nearest @ nearest, r * r))


def _solve(A: Any, B: Any, G: Any) -> tuple[Any, Any]:
    """The root z by Newton's method from above, and whether it was found."""

    def residual(z: Any) -> Any:
        return asin(A * z) + asin(B * z) - 2 * asin(z) + G

    def improved(carry: tuple[Any, ...]) -> tuple[Any, ...]:
        z, f, count, _ = carry
        slope = sum(C / maximum(LEAST, sqrt(1 - z * z * C * C)) for C in (A, B))
        slope = slope - 2 / maximum(LEAST, sqrt(1 - z * z))
        descends = less_equal(slope, -LEAST)
        new = z - f / where(descends, slope, -1.0)
        descends = logical_and(descends, less_equal(new, z))
        new = where(descends, new, z)
        after = residual(new)
        return new, after, count + 1, where(logical_and(descends, less_equal(after, RESIDUAL)), 1.0, 0.0)

    def goes_on(carry: tuple[Any, ...]) -> Any:
        _, f, count, valid = carry
        return logical_and(
            logical_and(less(count, ITERATIONS), less(0.5, valid)), less(RESIDUAL, absolute(f))
        )

    f = residual(FIRST)
    valid = where(less_equal(f, 0), 1.0, 0.0)
    z, f, _, valid = while_loop(goes_on, improved, (FIRST + 0 * f, f, 0.0, valid))
    return z, logical_and(less(0.5, valid), less_equal(absolute(f), RESIDUAL))

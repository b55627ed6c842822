"""Whether the contact points of two shapes have derivatives where they are.

Where the nearest features of two shapes change, from a face to an edge, or a contact manifold has other
corners, distances, points and normals are continuous at best, and their derivatives differ from side to side.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from typing import Any

import numpy as np

from zwang.algebra.rotations import skew
from zwang.collision.contact_point import ContactPoint
from zwang.collision.narrow_phase import contact_points_between
from zwang.collision.pairs import Pair
from zwang.collision.shapes import PlacedShape
from zwang.scalar import (
    absolute,
    empty,
    fori_loop,
    less,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    not_equal,
    where,
)

SMOOTH = {("plane", "sphere"), ("plane", "capsule"), ("plane", "ellipsoid"), ("sphere", "sphere")}
"""Pairs of shapes whose contact points have no kinks, unless their centres coincide."""
RELATIVE_CHANGE = 1e-3  # of a derivative, above which it counts as different
DIRECTION = np.array([0.5, -0.7, 0.6]), np.array([0.7, 0.6, -0.4])
"""A displacement along which no feature is likely to stay as it is: translation, and rotation."""
NUMBERS = 10  # of a contact point


def has_kink(pair: Pair, a: PlacedShape, b: PlacedShape, points: Sequence[ContactPoint], reach: float) -> Any:
    """Whether the motion of an active contact point of a pair has a kink, where b is displaced along
    `DIRECTION`.

    points: the contact points of the shapes as they are placed. reach [m, rad]: the largest displacement of b
    relative to a at which a kink counts. The points are computed for displacements of s = 2 reach to both
    sides: x(s) + x(-s) - 2 x(0) = (s - |c|) (x'(s) - x'(-s)) for a kink at c.
    """
    s = 2 * reach

    def store(side: Any, values: Any) -> Any:
        moved = contact_points_between(pair, a, _displaced(b, s * (2.0 * side - 1)))
        for k, x in enumerate(x for point in moved for x in _numbers(point)):
            values = values.set((side, k), x * 1.0)
        return values

    found = fori_loop(0, 2, store, empty((2, NUMBERS * len(points))), unroll=False)
    kinked: Any = 0.0 > 1.0
    for k, point in enumerate(points):
        before, after = (np.array([found[i, NUMBERS * k + c] for c in range(NUMBERS)]) for i in range(2))
        active = [less(side[0], pair.margin) for side in (before, after)]
        differs = logical_and(logical_and(*active), _is_bent(before, after, _numbers(point), s))
        starts = not_equal(*(where(x, 1.0, 0.0) for x in active))
        kinked = logical_or(kinked, logical_or(differs, starts))
    return kinked


def _numbers(point: ContactPoint) -> np.ndarray:
    """The distance, the position and two axes of a contact point, which determine the third one."""
    return np.array([point.distance, *point.position, *np.ravel(point.frame[:2])])


def _is_bent(before: np.ndarray, after: np.ndarray, middle: np.ndarray, s: float) -> Any:
    """Whether the slopes of numbers between -s and 0 differ from those between 0 and s, or are not finite."""
    largest = reduce(maximum, [absolute(x) for x in after - before], 2 * s)
    bends = before + after - 2 * middle
    agree = reduce(logical_and, [absolute(x) <= RELATIVE_CHANGE / 2 * largest for x in bends])
    return logical_not(agree)


def _displaced(shape: PlacedShape, s: Any) -> PlacedShape:
    """The shape displaced by s along `DIRECTION`, to second order."""
    v, w = DIRECTION
    W = skew(w)
    return PlacedShape(shape.sizes, (s * W + (s * s / 2) * (W @ W)) @ shape.R + shape.R, shape.p + s * v)

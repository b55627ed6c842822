"""Whether the contact points of two shapes have derivatives where they are.

Where the nearest features of two shapes change, from a face to an edge, or a contact manifold has other
corners, distances, points and normals are continuous at best, and their derivatives differ from side to side.
"""

from __future__ import annotations

from functools import reduce
from typing import Any

import numpy as np

from zwang.algebra.dual_control_flow import Tangent, parts, tangents
from zwang.algebra.rotations import skew
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
NUMBERS = 13  # of a contact point


def has_kink(pair: Pair, a: PlacedShape, b: PlacedShape, displacement: float) -> Any:
    """Whether an active contact point of a pair does not move as its derivatives say where b is displaced.

    displacement [m, rad]: of b relative to a, to both sides of where it is.
    """
    count = pair.count

    def store(side: Any, values: Any) -> Any:
        s = displacement * (2.0 * side - 1)
        with tangents():
            points = contact_points_between(pair, a, _displaced(b, s))
            numbers = [x for p in points for x in (p.distance, *p.position, *np.ravel(p.frame))]
        for k, x in enumerate(numbers):
            value, derivative = parts(x)
            values = values.set((side, k), value * 1.0).set((side, NUMBERS * count + k), derivative * 1.0)
        return values

    found = fori_loop(0, 2, store, empty((2, 2 * NUMBERS * count)), unroll=False)
    kinked: Any = 0.0 > 1.0
    for k in range(count):
        start = NUMBERS * k
        sides = [np.array([found[i, start + c] for c in range(NUMBERS)]) for i in range(2)]
        start += NUMBERS * count
        slopes = [np.array([found[i, start + c] for c in range(NUMBERS)]) for i in range(2)]
        active = [less(side[0], pair.margin) for side in sides]
        differs = logical_and(logical_and(*active), _differs(sides, slopes, displacement))
        starts = not_equal(*(where(x, 1.0, 0.0) for x in active))
        kinked = logical_or(kinked, logical_or(differs, starts))
    return kinked


def _differs(sides: list[np.ndarray], slopes: list[np.ndarray], displacement: float) -> Any:
    """Whether slopes on both sides differ, or values do by something else than them."""
    allowed: Any = RELATIVE_CHANGE * reduce(maximum, [absolute(x) for x in slopes[0]], 1.0)
    mean = (sides[1] - sides[0]) / (2 * displacement)
    agree: Any = True
    for x, before, after in zip(mean, *slopes, strict=True):
        near = less(absolute(before + after - 2 * x), allowed)
        agree = logical_and(agree, logical_and(less(absolute(after - before), allowed), near))
    return logical_not(agree)


def _displaced(shape: PlacedShape, s: Any) -> PlacedShape:
    """The shape displaced by s along `DIRECTION`, as tangents, to second order."""
    v, w = DIRECTION
    W = skew(w)
    R = shape.R + (s * W + (s * s / 2) * (W @ W)) @ shape.R
    R_rate = (W + s * (W @ W)) @ shape.R
    return PlacedShape(shape.sizes, _tangents(R, R_rate), _tangents(shape.p + s * v, v))


def _tangents(values: np.ndarray, rates: np.ndarray) -> np.ndarray:
    out = np.empty(values.shape, dtype=object)
    for index, x in np.ndenumerate(values):
        out[index] = Tangent(x, rates[index])
    return out

"""The contact of two flat sides: up to four points where the shapes, nearest along a normal, lie on each other.

A side's corners are the support points of directions that lean a little to four sides; those that lie over the other shape count.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.convex_hull import convex_hull
from zwang.collision.contact_point import FAR, ContactPoint, contact_frame
from zwang.collision.convex import Nearest, nearest_points
from zwang.collision.shapes import PlacedShape
from zwang.collision.support_functions import ConvexShape, convex_shape_of
from zwang.scalar import (
    absolute,
    clip,
    for_each,
    less,
    less_equal,
    logical_and,
    logical_or,
    maximum,
    sqrt,
    where,
)

LEAN = 1e-3  # rad: up to where two sides count as parallel
DISTINCT = 1e-2  # of the shapes' size: points nearer to each other are one
DRAWN = (
    0.25,
    0.5,
    0.75,
    1,
)  # parts of the way from the nearest point to a corner at which it may lie over the other shape
INSET = 2  # how many times the lean a shape is asked below its surface whether it holds a point


def contact_manifold(kind_a: str, kind_b: str, a: PlacedShape, b: PlacedShape) -> tuple[ContactPoint, ...]:
    """Four gaps at the corners of the common part of two flat sides, or one (and three FAR) where the shapes are not flat."""
    core_a, core_b = convex_shape_of(kind_a, a), convex_shape_of(kind_b, b)
    near = nearest_points(core_a, core_b)
    frame = contact_frame(near.normal)
    scale = core_a.size + core_b.size
    chosen = [
        _corner(near, frame, lean, (kind_a, a, core_a), (kind_b, b, core_b))
        for lean in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    ]
    distances = _distinct(chosen, (DISTINCT * scale) * (DISTINCT * scale))
    count = sum(where(less(distance, FAR), 1, 0) for distance in distances)
    flat = less(1, count)
    middle = (near.first + near.second) / 2
    found = []
    for k, (distance, (_, position)) in enumerate(zip(distances, chosen, strict=True)):
        alone = near.distance if k == 0 else FAR
        place = [where(flat, x, y) for x, y in zip(position, middle, strict=True)]
        found.append(ContactPoint(where(flat, distance, alone), np.array(place), frame))
    return tuple(found)


def _corner(
    near: Nearest, frame: np.ndarray, lean: tuple[int, int], one: Any, two: Any
) -> tuple[Any, np.ndarray]:
    """Of the corners to that side of both shapes, the outer one that lies over the other shape: distance and position."""
    n = near.normal
    sideways = lean[0] * frame[1] + lean[1] * frame[2]
    (kind_a, a, core_a), (kind_b, b, core_b) = one, two
    on_a = core_a.support(n + LEAN * sideways) + n * core_a.radius
    on_b = core_b.support(LEAN * sideways - n) - n * core_b.radius
    distance_a, on_a = _drawn_in(on_a, near.first, near.second, n, kind_b, b, core_b)
    distance_b, on_b = _drawn_in(on_b, near.second, near.first, -n, kind_a, a, core_a)
    a_outer = less(sideways @ on_b, sideways @ on_a)
    use_a = where(a_outer, less(distance_a, FAR), less_equal(FAR, distance_b))
    halves = zip(on_a + n * (distance_a / 2), on_b - n * (distance_b / 2), strict=True)
    position = [where(use_a, x, y) for x, y in halves]
    distance = where(use_a, distance_a, distance_b)
    there = less(distance, FAR)
    return distance, np.array([where(there, x, y) for x, y in zip(position, near.first, strict=True)])


def _drawn_in(
    corner: np.ndarray,
    start: np.ndarray,
    facing: np.ndarray,
    n: np.ndarray,
    kind: str,
    shape: PlacedShape,
    core: ConvexShape,
) -> tuple[Any, np.ndarray]:
    """A corner, drawn in towards the nearest point `start` until it lies over the other shape: distance (or FAR), point."""
    distance: Any = FAR
    point = corner
    away = corner - start
    inset = INSET * LEAN * sqrt(away @ away)  # a side that leans by more falls away faster
    for share in DRAWN:
        drawn = start + (corner - start) * share
        gap = (facing - drawn) @ n
        over = contains_point(kind, shape, drawn + n * (gap + share * inset), core)
        distance = where(over, gap, distance)
        point = np.array([where(over, x, y) for x, y in zip(drawn, point, strict=True)])
    return distance, point


def _distinct(chosen: list[tuple[Any, np.ndarray]], least: Any) -> list[Any]:
    """The distances, FAR for points that lie where an earlier one does."""
    found: list[Any] = []
    for k, (distance, position) in enumerate(chosen):
        again: Any = False
        for other, (_, place) in zip(found[:k], chosen, strict=False):
            d = position - place
            again = logical_or(again, logical_and(less(other, FAR), less(d @ d, least)))
        found.append(where(again, FAR, distance))
    return found


def contains_point(kind: str, shape: PlacedShape, point: np.ndarray, core: ConvexShape) -> Any:
    """Whether a shape holds a point, with the slack of a millionth of its size."""
    x = shape.R.T @ (point - shape.p)
    slack = 1e-6 * core.size
    match kind:
        case "box":
            inside: Any = True
            for position, size in zip(x, shape.sizes, strict=True):
                inside = logical_and(inside, less_equal(absolute(position), size + slack))
            return inside
        case "cylinder":
            radius, half = shape.sizes[0] + slack, shape.sizes[1] + slack
            return logical_and(
                less_equal(absolute(x[2]), half), less_equal(x[0] * x[0] + x[1] * x[1], radius * radius)
            )
        case "capsule":
            radius, half = shape.sizes[0] + slack, shape.sizes[1]
            rest = x[2] - clip(x[2], -half, half)
            return less_equal(x[0] * x[0] + x[1] * x[1] + rest * rest, radius * radius)
    planes = _planes(shape.sizes)
    if not len(planes):
        return False
    return less_equal(for_each(planes, lambda row, most: maximum(most, row[:3] @ x + row[3]), -FAR), slack)


def _planes(corners: Any) -> np.ndarray:
    """The planes (n, 4) of a convex hull's faces: outward normals and minus their distances; none for a flat one."""
    return convex_hull(corners).planes

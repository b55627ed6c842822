"""Contact manifold of two flat faces: up to four points where the shapes, nearest along a normal, overlap.

The corners of a face are the support points in directions slightly tilted from the normal; those that lie
over the other shape are contact points.
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

TILT = 1e-3  # [rad] up to which two sides count as parallel
DISTINCT = 1e-2  # relative to the size of the shapes: points nearer to each other count as one
FRACTIONS = (0.25, 0.5, 0.75, 1)  # of the way from the nearest point to a corner, at which points are tested
DEPTH_FACTOR = (
    2  # depth below the surface at which a shape is tested to contain a point, relative to the tilt
)


def contact_manifold(kind_a: str, kind_b: str, a: PlacedShape, b: PlacedShape) -> tuple[ContactPoint, ...]:
    """Four contact points at the corners of the common part of two flat faces, or one (and three FAR) where
    the shapes are not flat.
    """
    core_a, core_b = convex_shape_of(kind_a, a), convex_shape_of(kind_b, b)
    nearest_pair = nearest_points(core_a, core_b)
    frame = contact_frame(nearest_pair.normal)
    scale = core_a.size + core_b.size
    candidates = [
        _manifold_point(nearest_pair, frame, tilt, (kind_a, a, core_a), (kind_b, b, core_b))
        for tilt in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    ]
    distances = _distinct(candidates, (DISTINCT * scale) * (DISTINCT * scale))
    count = sum(where(less(distance, FAR), 1, 0) for distance in distances)
    flat = less(1, count)
    middle = (nearest_pair.first + nearest_pair.second) / 2
    points = []
    for k, (distance, (_, position)) in enumerate(zip(distances, candidates, strict=True)):
        alone = nearest_pair.distance if k == 0 else FAR
        position_here = [where(flat, x, y) for x, y in zip(position, middle, strict=True)]
        points.append(ContactPoint(where(flat, distance, alone), np.array(position_here), frame))
    return tuple(points)


def _manifold_point(
    nearest_pair: Nearest, frame: np.ndarray, tilt: tuple[int, int], one: Any, two: Any
) -> tuple[Any, np.ndarray]:
    """The outer one of both shapes' corners on this side that lies over the other shape: distance and
    position.
    """
    n = nearest_pair.normal
    sideways = tilt[0] * frame[1] + tilt[1] * frame[2]
    (kind_a, a, core_a), (kind_b, b, core_b) = one, two
    on_a = core_a.support(n + TILT * sideways) + n * core_a.radius
    on_b = core_b.support(TILT * sideways - n) - n * core_b.radius
    distance_a, on_a = _point_over_shape(on_a, nearest_pair.first, nearest_pair.second, n, kind_b, b, core_b)
    distance_b, on_b = _point_over_shape(on_b, nearest_pair.second, nearest_pair.first, -n, kind_a, a, core_a)
    a_outer = less(sideways @ on_b, sideways @ on_a)
    use_a = where(a_outer, less(distance_a, FAR), less_equal(FAR, distance_b))
    halves = zip(on_a + n * (distance_a / 2), on_b - n * (distance_b / 2), strict=True)
    position = [where(use_a, x, y) for x, y in halves]
    distance = where(use_a, distance_a, distance_b)
    exists = less(distance, FAR)
    return distance, np.array(
        [where(exists, x, y) for x, y in zip(position, nearest_pair.first, strict=True)]
    )


def _point_over_shape(
    corner: np.ndarray,
    start: np.ndarray,
    facing: np.ndarray,
    n: np.ndarray,
    kind: str,
    shape: PlacedShape,
    core: ConvexShape,
) -> tuple[Any, np.ndarray]:
    """A point from the nearest point `start` towards a corner, as far as it lies over the other shape:
    distance (or FAR) and point.
    """
    distance: Any = FAR
    point = corner
    away = corner - start
    inset = DEPTH_FACTOR * TILT * sqrt(away @ away)  # a face with a larger tilt falls away faster
    for fraction in FRACTIONS:
        candidate = start + (corner - start) * fraction
        distance_here = (facing - candidate) @ n
        is_over = contains_point(kind, shape, candidate + n * (distance_here + fraction * inset), core)
        distance = where(is_over, distance_here, distance)
        point = np.array([where(is_over, x, y) for x, y in zip(candidate, point, strict=True)])
    return distance, point


def _distinct(candidates: list[tuple[Any, np.ndarray]], least: Any) -> list[Any]:
    """The distances, FAR for points that coincide with an earlier one."""
    points: list[Any] = []
    for k, (distance, position) in enumerate(candidates):
        duplicate: Any = False
        for other, (_, position_here) in zip(points[:k], candidates, strict=False):
            d = position - position_here
            duplicate = logical_or(duplicate, logical_and(less(other, FAR), less(d @ d, least)))
        points.append(where(duplicate, FAR, distance))
    return points


def contains_point(kind: str, shape: PlacedShape, point: np.ndarray, core: ConvexShape) -> Any:
    """Whether a shape contains a point, with a tolerance of a millionth of its size."""
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
    """The planes (n, 4) of a convex hull's faces: outward normals and minus their distances; none for a flat
    hull.
    """
    return convex_hull(corners).planes

"""Gaps of a plane and another shape; the normal is the plane's z axis. Source: MuJoCo's collision functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.collision.contact_point import FAR, TINY, ContactPoint, contact_frame, unit
from zwang.collision.shapes import PlacedShape
from zwang.scalar import for_each, less, less_equal, sqrt, table, where

SIDE = 1e-9  # m^2: how far a corner must be off the line of two others, times their distance


def _point(plane: PlacedShape, point: np.ndarray, radius: Any, frame: np.ndarray) -> ContactPoint:
    """The gap of a ball around a point: half the depth below its lowest point."""
    n = plane.R[:, 2]
    distance = (point - plane.p) @ n - radius
    return ContactPoint(distance, point - n * (radius + distance / 2), frame)


def plane_sphere(plane: PlacedShape, sphere: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One gap, at the lowest point."""
    return (_point(plane, sphere.p, sphere.sizes[0], contact_frame(plane.R[:, 2])),)


def plane_capsule(plane: PlacedShape, capsule: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """A gap at each end; the first tangent follows the capsule's axis."""
    radius, half = capsule.sizes
    axis = capsule.R[:, 2]
    frame = contact_frame(plane.R[:, 2], axis)
    return tuple(_point(plane, capsule.p + s * half * axis, radius, frame) for s in (1, -1))


def plane_ellipsoid(plane: PlacedShape, ellipsoid: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One gap, at the point with the plane's normal: -R S^2 R^T n / |S R^T n| from the centre, S the semi-axes."""
    n = plane.R[:, 2]
    s = np.array(ellipsoid.sizes)
    direction = s * (ellipsoid.R.T @ n)
    lowest = ellipsoid.p - ellipsoid.R @ (s * direction) / sqrt(direction @ direction)
    return (_point(plane, lowest, 0, contact_frame(n)),)


def plane_cylinder(plane: PlacedShape, cylinder: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Four gaps: the lowest points of both rims, and two more on the lower rim, 120 degrees to either side."""
    radius, half = cylinder.sizes
    n = plane.R[:, 2]
    axis = cylinder.R[:, 2]
    axis = where(less(0, n @ axis), -1, 1) * axis  # downwards
    down = (n @ axis) * axis - n
    square = down @ down
    flat = less(square, TINY * TINY)  # a disc parallel to the plane: any direction will do, its own x
    scale = radius / sqrt(where(flat, 1.0, square))
    across = np.array(
        [where(flat, radius * x, scale * d) for x, d in zip(cylinder.R[:, 0], down, strict=True)]
    )
    sideways = unit(cross(across, axis))[0] * (radius * (3**0.5 / 2))
    frame = contact_frame(n)
    lower, upper = cylinder.p + half * axis, cylinder.p - half * axis
    points = (lower + across, upper + across, lower - across / 2 + sideways, lower - across / 2 - sideways)
    return tuple(_point(plane, point, 0, frame) for point in points)


def plane_box(plane: PlacedShape, box: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Four gaps: of each two opposite corners the lower one."""
    n = plane.R[:, 2]
    frame = contact_frame(n)
    x, y, z = (box.R[:, k] * box.sizes[k] for k in range(3))
    found = []
    for corner in (-x - y - z, x - y - z, -x + y - z, x + y - z):
        lower = where(less(0, n @ corner), -1, 1)
        found.append(_point(plane, box.p + lower * corner, 0, frame))
    return tuple(found)


def plane_mesh(plane: PlacedShape, mesh: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Up to four gaps: the lowest corner, the corner within reach farthest from it, and one to either side of their line."""
    n = plane.R[:, 2]
    frame = contact_frame(n)
    rows = table(np.asarray(mesh.sizes, float))

    def farthest(score: Any, least: float = 0.0) -> tuple[Any, np.ndarray]:
        """The highest score above `least`, and the corner that has it (if none has, the mesh's origin)."""

        def better(row: np.ndarray, best: Any) -> Any:
            corner = mesh.p + mesh.R @ row
            value = score(corner)
            higher = less(best[0], value)
            return [where(higher, x, y) for x, y in zip([value, *corner], best, strict=True)]

        value, *corner = for_each(rows, better, [least, *(mesh.p * 1.0)])
        return value, np.array(corner)

    def low(corner: np.ndarray, score: Any) -> Any:
        return where(less_equal((corner - plane.p) @ n, reach), score, 0.0)

    _, first = farthest(lambda c: (plane.p - c) @ n, -FAR)
    length, second = farthest(lambda c: low(c, across(c - first, n)))
    side = cross(n, second - first)
    sides = [farthest(lambda c, s=s: low(c, s * (side @ (c - first)) - SIDE)) for s in (1, -1)]
    found = [_point(plane, first, 0, frame)]
    for score, corner in ((length, second), *sides):
        gap = _point(plane, corner, 0, frame)
        found.append(ContactPoint(where(less(0, score), gap.distance, FAR), gap.position, frame))
    return tuple(found)


def across(d: np.ndarray, n: np.ndarray) -> Any:
    """The squared length of what is left of d without its part along the unit vector n."""
    along = d @ n
    return d @ d - along * along

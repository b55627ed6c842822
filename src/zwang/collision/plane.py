"""Contact points of a plane and another shape; the normal is the plane's z axis. Source: MuJoCo's collision
functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.collision.contact_point import FAR, TINY, ContactPoint, contact_frame, unit
from zwang.collision.shapes import PlacedShape
from zwang.scalar import for_each, less, less_equal, sqrt, table, where

SMALLEST_AREA = (
    1e-9  # [m^2] twice the area of the triangle that a further corner must span with the first two
)


def _sphere_contact(plane: PlacedShape, centre: np.ndarray, radius: Any, frame: np.ndarray) -> ContactPoint:
    """The contact point of a sphere around `centre`."""
    n = plane.R[:, 2]
    distance = (centre - plane.p) @ n - radius
    return ContactPoint(distance, centre - n * (radius + distance / 2), frame)


def plane_sphere(plane: PlacedShape, sphere: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One contact point, at the lowest point."""
    return (_sphere_contact(plane, sphere.p, sphere.sizes[0], contact_frame(plane.R[:, 2])),)


def plane_capsule(plane: PlacedShape, capsule: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One contact point at each end; the first tangent follows the capsule's axis."""
    radius, half = capsule.sizes
    axis = capsule.R[:, 2]
    frame = contact_frame(plane.R[:, 2], axis)
    return tuple(_sphere_contact(plane, capsule.p + s * half * axis, radius, frame) for s in (1, -1))


def plane_ellipsoid(plane: PlacedShape, ellipsoid: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One contact point, where the surface has the plane's normal: -R S^2 R^T n / |S R^T n| from the centre,
    S the semi-axes.
    """
    n = plane.R[:, 2]
    s = np.array(ellipsoid.sizes)
    direction = s * (ellipsoid.R.T @ n)
    lowest = ellipsoid.p - ellipsoid.R @ (s * direction) / sqrt(direction @ direction)
    return (_sphere_contact(plane, lowest, 0, contact_frame(n)),)


def plane_cylinder(plane: PlacedShape, cylinder: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Four contact points: the lowest points of both rims, and two more on the lower rim, 120 degrees to
    either side.
    """
    radius, half = cylinder.sizes
    n = plane.R[:, 2]
    axis = cylinder.R[:, 2]
    axis = where(less(0, n @ axis), -1, 1) * axis  # downwards
    down = (n @ axis) * axis - n
    squared_length = down @ down
    is_parallel = less(squared_length, TINY * TINY)  # a disc parallel to the plane: its own x axis
    scale = radius / sqrt(where(is_parallel, 1.0, squared_length))
    across = np.array(
        [where(is_parallel, radius * x, scale * d) for x, d in zip(cylinder.R[:, 0], down, strict=True)]
    )
    sideways = unit(cross(across, axis))[0] * (radius * (3**0.5 / 2))
    frame = contact_frame(n)
    lower, upper = cylinder.p + half * axis, cylinder.p - half * axis
    points = (lower + across, upper + across, lower - across / 2 + sideways, lower - across / 2 - sideways)
    return tuple(_sphere_contact(plane, point, 0, frame) for point in points)


def plane_box(plane: PlacedShape, box: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Four contact points: the lower one of each two opposite corners."""
    n = plane.R[:, 2]
    frame = contact_frame(n)
    x, y, z = (box.R[:, k] * box.sizes[k] for k in range(3))
    points = []
    for corner in (-x - y - z, x - y - z, -x + y - z, x + y - z):
        lower = where(less(0, n @ corner), -1, 1)
        points.append(_sphere_contact(plane, box.p + lower * corner, 0, frame))
    return tuple(points)


def plane_mesh(plane: PlacedShape, mesh: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Up to four contact points: the lowest vertex, the vertex within reach farthest from it, and one to
    either side of their line.
    """
    n = plane.R[:, 2]
    frame = contact_frame(n)
    vertices = table(np.asarray(mesh.sizes, float))

    def highest_score(score: Any, least: float = 0.0) -> tuple[Any, np.ndarray]:
        """The highest score above `least`, and the vertex that has it (the mesh's origin if none has)."""

        def update(row: np.ndarray, best: Any) -> Any:
            corner = mesh.p + mesh.R @ row
            value = score(corner)
            higher = less(best[0], value)
            return [where(higher, x, y) for x, y in zip([value, *corner], best, strict=True)]

        value, *corner = for_each(vertices, update, [least, *(mesh.p * 1.0)])
        return value, np.array(corner)

    def within_reach(corner: np.ndarray, score: Any) -> Any:
        return where(less_equal((corner - plane.p) @ n, reach), score, 0.0)

    _, first = highest_score(lambda c: (plane.p - c) @ n, -FAR)
    length, second = highest_score(lambda c: within_reach(c, across(c - first, n)))
    sideways_normal = cross(n, second - first)
    lateral = [
        highest_score(lambda c, s=s: within_reach(c, s * (sideways_normal @ (c - first)) - SMALLEST_AREA))
        for s in (1, -1)
    ]
    points = [_sphere_contact(plane, first, 0, frame)]
    for score, corner in ((length, second), *lateral):
        point = _sphere_contact(plane, corner, 0, frame)
        points.append(ContactPoint(where(less(0, score), point.distance, FAR), point.position, frame))
    return tuple(points)


def across(d: np.ndarray, n: np.ndarray) -> Any:
    """Squared length of the component of d normal to the unit vector n."""
    along = d @ n
    return d @ d - along * along

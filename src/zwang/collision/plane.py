"""Contact points of a plane and another shape; the normal is the plane's z axis. Source: MuJoCo's collision
functions.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.norms import TINY
from zwang.algebra.rotations import cross
from zwang.collision.contact_point import FAR, ContactPoint, contact_frame, unit
from zwang.collision.convex.face_tables import FlatFaces
from zwang.collision.convex.polygons import Polygon, large_quadrilateral, no_corners
from zwang.collision.convex.polyhedra import polyhedron_of
from zwang.collision.shapes import PlacedShape
from zwang.scalar import (
    cond,
    equal,
    less,
    less_equal,
    logical_and,
    sqrt,
    where,
)

COUNT = 4  # contact points of a mesh


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
    x, y, axis = (cylinder.R[:, k] for k in range(3))
    axis = where(less(0, n @ axis), -1, 1) * axis  # downwards
    down = -(n @ x) * x - (n @ y) * y  # across the axis: (n . axis) axis - n, but as precise as it is small
    squared_length = down @ down
    is_parallel = less(squared_length, TINY * TINY)  # a disc parallel to the plane: its own x axis
    scale = radius / sqrt(where(is_parallel, 1.0, squared_length))
    across = np.array([where(is_parallel, radius * own, scale * d) for own, d in zip(x, down, strict=True)])
    sideways = unit(cross(across, axis))[0] * (radius * (3**0.5 / 2))
    frame = contact_frame(n)
    lower, upper = cylinder.p + half * axis, cylinder.p - half * axis
    points = (lower + across, upper + across, lower - across / 2 + sideways, lower - across / 2 - sideways)
    return tuple(_sphere_contact(plane, point, 0, frame) for point in points)


CORNERS = ((-1, -1, -1), (1, -1, -1), (-1, 1, -1), (1, 1, -1))
"""The first four corners of a box; the others are opposite to them."""


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


def plane_box_in_order(plane: PlacedShape, box: PlacedShape) -> tuple[ContactPoint, ...]:
    """The points of `plane_box` in the order of the corners (x fastest, then y, then z), as MuJoCo has them.

    Corner k or its opposite 7 - k is the lower one: those of the first kind come first, then the others in
    reverse order.
    """
    points = plane_box(plane, box, 0)
    n = plane.R[:, 2]
    opposite = [where(less(0, n @ (box.R @ (np.array(s) * np.array(box.sizes)))), 1.0, 0.0) for s in CORNERS]
    first = 4 - sum(opposite)
    places = [
        where(x > 0, first + sum(opposite[k + 1 :], start=0.0), k - sum(opposite[:k], start=0.0))
        for k, x in enumerate(opposite)
    ]
    found = []
    for place in range(4):
        chosen = points[0]
        for at, point in zip(places[1:], points[1:], strict=True):
            here = equal(at, place)
            position = [where(here, x, y) for x, y in zip(point.position, chosen.position, strict=True)]
            distance = where(here, point.distance, chosen.distance)
            chosen = ContactPoint(distance, np.array(position), point.frame)
        found.append(chosen)
    return tuple(found)


def plane_mesh(plane: PlacedShape, mesh: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Up to four contact points: the lowest vertex, and three corners of the face at this vertex that is
    most nearly parallel to the plane, which span a large area with it. Corners above the mesh's origin are
    left out.
    """
    n = plane.R[:, 2]
    frame, down = contact_frame(n), -(mesh.R.T @ n)
    polyhedron = polyhedron_of(mesh.sizes)
    faces, lowest = polyhedron.faces(clockwise=False), polyhedron.farthest(down)
    first = _sphere_contact(plane, mesh.p + mesh.R @ lowest, 0, frame)
    if faces is None:
        return (first, *[ContactPoint(FAR, first.position, frame)] * (COUNT - 1))

    def others(_: Any) -> tuple[Any, ...]:
        polygon, start = _face_at(faces, polyhedron.number_at(down, lowest), down)
        second = polygon.following(start)
        third = polygon.following(second)
        corners: Any = (start, second, third, polygon.following(third))
        corners = cond(
            less(COUNT, polygon.count),
            lambda *_: large_quadrilateral(polygon, start, turns=False),
            lambda *same: same,
            *corners,
        )
        values: list[Any] = []
        for k in range(1, COUNT):
            point = mesh.p + mesh.R @ polygon.gathered(corners[k])
            contact = _sphere_contact(plane, point, 0, frame)
            exists = logical_and(less(k, polygon.count), less_equal((point - mesh.p) @ n, 0))
            values += [where(exists, contact.distance, FAR), *contact.position]
        return tuple(values)

    alone = [FAR, *first.position] * (COUNT - 1)
    values = cond(less_equal(first.distance, reach), others, lambda _: tuple(alone), first.distance)
    points = [values[4 * k : 4 * k + 4] for k in range(COUNT - 1)]
    return (first, *(ContactPoint(point[0], np.array(point[1:]), frame) for point in points))


def _face_at(faces: FlatFaces, vertex: Any, down: np.ndarray) -> tuple[Polygon, Any]:
    """Of the faces at the vertex with this number the one most nearly normal to `down`, and the number of
    the vertex among its corners.
    """

    def better(k: Any, corner: Any, best: tuple[Any, ...]) -> tuple[Any, ...]:
        cosine = faces.normals[k] @ down
        is_better = less(best[0], cosine)
        new = (cosine, 1.0 * k, 1.0 * corner)
        return tuple(where(is_better, x, y) for x, y in zip(new, best, strict=True))

    cosine, number, start = faces.over_faces_at(vertex, better, (-1.0, 0.0, 0.0))

    def corner(x: np.ndarray, polygon: Polygon) -> Polygon:
        return polygon.with_corner(x, less(-1.0, cosine))  # a flat mesh has no face

    return faces.over_corners_of(number, corner, no_corners(faces.most)), start

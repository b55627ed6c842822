"""The direction along which two convex shapes overlap least of all, by the expanding polytope algorithm.

Points of the Minkowski difference a - b span a polytope in it. The least distance of a face's plane from the
origin bounds the overlap along all directions from below, and the overlap along its normal n bounds it from
above. The point of the difference farthest along n is added until the bounds meet. Source: van den Bergen,
Collision Detection in Interactive 3D Environments, Morgan Kaufmann (2003), chapter 4.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import by_precision
from zwang.algebra.rotations import cross
from zwang.collision.contact_point import contact_frame, unit
from zwang.collision.convex.gjk import inner, select_array
from zwang.collision.convex.least_overlap import OverlapDirection, farthest_difference, shorter
from zwang.collision.convex.support_functions import ConvexShape
from zwang.scalar import (
    MutableArray,
    cond,
    empty,
    equal,
    floor,
    fori_loop,
    lane_maximum,
    less,
    logical_and,
    maximum,
    sqrt,
    where,
    while_loop,
)

POINTS = 48  # the limit; the differences of two hulls of 400 vertices took up to 34, those of ellipsoids 42
FACES = 2 * POINTS - 4  # of a polytope of triangles
FACE = 7  # numbers of a face
# in double and in single precision
TOLERANCE = 1e-10, 1e-6  # between the bounds of shapes with flat faces only, relative to the size
CURVED = 1e-4, 1e-4  # the same if one is curved, whose surface the polytope can only approximate
OUTSIDE = 1e-13, 1e-7  # distance from a face, relative to the size, above which a point sees it
FLAT = 1e-14, 1e-8  # area, relative to the square of the size, below which a face has no normal


class Polytope(NamedTuple):
    """points (3 POINTS,) of a - b, and faces (FACE FACES,), triangles whose corners are anticlockwise seen
    from outside; how many there are of both; and the size of the shapes, scale [m].

    A face is its outward unit normal, the distance of its plane from the origin, which is negative where the
    origin is beyond it, and the numbers of its corners.
    """

    points: MutableArray
    faces: MutableArray
    point_count: Any
    face_count: Any
    scale: Any

    def nearest_face(self) -> tuple[np.ndarray, Any]:
        """Normal (3,) and distance of the face nearest to the origin."""

        def visit(k: Any, best: Any) -> Any:
            distance = self.faces[FACE * k + 3]
            is_nearer = logical_and(less(1.0 * k, self.face_count), less(distance, best[1]))
            return where(is_nearer, 1.0 * k, best[0]), where(is_nearer, distance, best[1])

        nearest, distance = fori_loop(0, lane_maximum(self.face_count, FACES), visit, (0.0, np.inf))
        return np.array([self.faces.gather(FACE * nearest + c) for c in range(3)]), distance

    def point(self, k: Any) -> np.ndarray:
        """Point k, which may differ between lanes."""
        return np.array([self.points.gather(3 * k + c) for c in range(3)])

    def with_face(self, k: Any, corners: list[Any], x: np.ndarray, y: np.ndarray, z: np.ndarray) -> Polytope:
        """The polytope with a face k between the points x, y, z (3,) of these numbers."""
        n = cross(y - x, z - x)
        length = sqrt(inner(n, n))
        is_flat = less(length, by_precision(length, *FLAT) * self.scale * self.scale)
        n = n / where(is_flat, 1.0, length)
        faces = self.faces
        for c, value in enumerate([*n, where(is_flat, np.inf, inner(n, x)), *corners]):
            faces = faces.scatter(FACE * k + c, value * 1.0)
        count = where(less(k, self.face_count), self.face_count, k + 1.0)
        return self._replace(faces=faces, face_count=count)

    def with_point(self, w: np.ndarray) -> Polytope:
        """The convex hull of the polytope and a point w (3,) outside of it: the faces that the point sees
        give way to triangles between it and their outline.
        """

        outside = by_precision(w[0], *OUTSIDE) * self.scale

        def remove_if_seen(k: Any, carry: Any) -> Any:
            faces, *_ = carry
            n, distance = np.array([faces[FACE * k + c] for c in range(3)]), faces[FACE * k + 3]
            corners = [faces[FACE * k + 4 + c] for c in range(3)]
            is_seen = less(distance + outside, inner(n, w))
            is_seen = logical_and(is_seen, less(1.0 * k, self.face_count))

            def remove(faces: MutableArray, edges: MutableArray, seen: MutableArray, count: Any) -> Any:
                for c in range(3):
                    edges = edges.scatter(3 * count + c, POINTS * corners[c] + corners[(c + 1) % 3])
                return faces.set(FACE * k + 3, np.inf), edges, seen.scatter(count, 1.0 * k), count + 1.0

            return cond(is_seen, remove, lambda *carry: carry, *carry)

        carry = (self.faces, empty(3 * FACES), empty(FACES), 0.0)
        end = lane_maximum(self.face_count, FACES)
        faces, edges, seen, seen_count = fori_loop(0, end, remove_if_seen, carry)
        edge_count, new, points = lane_maximum(3 * seen_count, 3 * FACES), self.point_count, self.points
        for c in range(3):
            points = points.scatter(3 * new + c, w[c])
        grown = self._replace(points=points, faces=faces, point_count=new + 1)

        def with_edge(k: Any, carry: Any) -> Any:
            start = floor(edges[k] / POINTS)
            end = edges[k] - POINTS * start
            reverse = POINTS * end + start

            def compare(j: Any, is_between: Any) -> Any:
                is_edge = less(1.0 * j, 3 * seen_count)
                return where(logical_and(is_edge, equal(edges[j], reverse)), 1.0, is_between)

            def replace(polytope: Polytope, used: Any) -> Any:
                place = where(less(used, seen_count), seen.gather(used), polytope.face_count)
                ends = polytope.point(start), polytope.point(end)
                return polytope.with_face(place, [start, end, new], *ends, w), used + 1.0

            is_between = fori_loop(0, edge_count, compare, 0.0)
            is_outline = logical_and(less(1.0 * k, 3 * seen_count), equal(is_between, 0))
            return cond(is_outline, replace, lambda *carry: carry, *carry)

        return fori_loop(0, edge_count, with_edge, (grown, 0.0))[0]


def globally_least_overlap(
    a: ConvexShape, b: ConvexShape, scale: Any, best: OverlapDirection
) -> OverlapDirection:
    """The direction of least overlap of all, to the tolerance. best: a local minimum. scale [m]: the size of
    the shapes.
    """
    tolerance = scale * maximum(*(own.by_kind(lambda x: _tolerance(x.kind, best.overlap)) for own in (a, b)))

    def expand(polytope: Polytope, best: OverlapDirection, _: Any) -> Any:
        n, distance = polytope.nearest_face()
        w = farthest_difference(a, b, n)
        best = shorter(best._replace(normal=n, overlap=inner(n, w)), best)
        differ = less(distance, best.overlap - tolerance)
        polytope = cond(differ, lambda polytope: polytope.with_point(w), lambda polytope: polytope, polytope)
        return polytope, best, logical_and(differ, less(polytope.point_count, POINTS - 0.5))

    start = tetrahedron(a, b, scale, best.normal), best, True
    return while_loop(lambda state: state[2], lambda state: expand(*state), start)[1]


def tetrahedron(a: ConvexShape, b: ConvexShape, scale: Any, n: np.ndarray) -> Polytope:
    """Four points of a - b: two that are farthest along a direction and against it, and farther ones along
    normals of the line and of the plane of those before.
    """
    first, second = farthest_difference(a, b, n), farthest_difference(a, b, -n)
    third, _ = _farther(a, b, contact_frame(unit(second - first)[0])[1], first)
    fourth, is_above = _farther(a, b, unit(cross(second - first, third - first))[0], first)
    vertices, points = [first, second, third, fourth], empty(3 * POINTS)
    for k, x in enumerate(np.concatenate(vertices)):
        points = points.set(k, x * 1.0)
    polytope = Polytope(points, empty(FACE * FACES), 4.0, 0.0, scale)
    # seen from above their plane, the first three are anticlockwise
    for k, (i, j, m) in enumerate([(0, 2, 1), (0, 1, 3), (1, 2, 3), (2, 0, 3)]):
        chosen = [1.0 * i, where(is_above, 1.0 * j, 1.0 * m), where(is_above, 1.0 * m, 1.0 * j)]
        second, third = (select_array(is_above, vertices[x], vertices[y]) for x, y in ((j, m), (m, j)))
        polytope = polytope.with_face(1.0 * k, chosen, vertices[i], second, third)
    return polytope


def _farther(a: ConvexShape, b: ConvexShape, n: np.ndarray, x: np.ndarray) -> tuple[np.ndarray, Any]:
    """Of the points of a - b farthest along n and against it, the one that is farther from x along n; and
    whether it is the former.
    """
    above, below = farthest_difference(a, b, n), farthest_difference(a, b, -n)
    is_above = less(-inner(n, below - x), inner(n, above - x))
    return select_array(is_above, above, below), is_above


def _tolerance(kind: str, like: Any) -> Any:
    """The tolerance for shapes of a kind, relative to the size, in the precision of a value."""
    return by_precision(like, *(CURVED if kind in ("ellipsoid", "cylinder") else TOLERANCE))

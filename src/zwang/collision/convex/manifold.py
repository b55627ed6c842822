"""Contact manifold of two convex shapes: up to four points where flat faces, or a face and an edge, overlap.

What of each shape is at the nearest points, a face, an edge or a vertex, has faces that contain it. Two of
them that oppose each other within `ALIGNED` make a manifold: the face of the second shape, clipped at the
edges of the face of the first. Otherwise an edge at the nearest point of one shape does so, if it is nearly
parallel to a face of the other. The rules and their tolerances are those of MuJoCo 4 (its documentation,
Computation, "Multiple contacts").
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.contact_point import FAR, ContactPoint, contact_frame
from zwang.collision.convex.contact_optimality import NearestPoints
from zwang.collision.convex.face_tables import FlatFaces, box_faces, cylinder_faces
from zwang.collision.convex.flat_faces import FACE, SurfacePoint, point_of_mesh, side_line, surface_point
from zwang.collision.convex.nearest_points import Nearest, approximate_points, nearest_from
from zwang.collision.convex.polygons import (
    Polygon,
    clipped_polygon,
    farthest_two,
    large_quadrilateral,
    no_corners,
)
from zwang.collision.convex.polyhedra import polyhedron_of
from zwang.collision.convex.support_functions import ConvexShape, convex_shape_of
from zwang.collision.shapes import PlacedShape
from zwang.scalar import (
    cond,
    equal,
    fori_loop,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    minimum,
    where,
)

ALIGNED = 0.996  # cosine of the angle up to which two faces count as parallel: 5.1 degrees
PARALLEL_EDGE = 0.0888  # sine of the angle up to which an edge counts as parallel to a face: 5.1 degrees
TINY_ANGLE = 1e-15  # a face of which an edge may lie faces the other shape by more


class Side(NamedTuple):
    """One of the two shapes, what of it is nearest to the other one, and the distance within which contacts
    are wanted.
    """

    shape: ConvexShape
    point: SurfacePoint
    reach: Any

    @property
    def most_corners(self) -> int:
        """The largest number of corners of a face; 0 if it has none."""
        return max(0 if faces is None else faces.most for faces in map(_flat_faces, self.shape.possible))

    def edge(self, j: Any, normal: np.ndarray, towards: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both ends of edge j at the nearest point, along a face of the other shape with this normal.

        towards: unit vector from the other shape. A cylinder's side lies on the face along the line that is
        farthest against its normal. A capsule is enlarged by half the reach: its line moves along the
        contact normal, which is not quite that of the face, but not along its axis.
        """

        def of_kind(own: ConvexShape) -> tuple[np.ndarray, np.ndarray]:
            if own.kind == "cylinder":
                return side_line(own.placed, -normal)
            start, end = self.point.edge(j)
            if own.kind == "capsule":
                axis = own.placed.R[:, 2]
                shift = (normal - towards + axis * (axis @ towards)) * (self.reach / 2)
                return start + shift, end + shift
            return start, end

        return self.shape.by_kind(of_kind)


class Features(NamedTuple):
    """What makes the manifold: a face of one shape, and a face or an edge of the other.

    exists. of_faces: whether these are two faces. second: whether the reference face, at whose edges the
    other is clipped, belongs to the second shape. reference, other: numbers of the faces. normal: of the
    reference face. other_normal: of the other face. edge: both ends.
    """

    exists: Any
    of_faces: Any
    second: Any
    reference: Any
    other: Any
    normal: np.ndarray
    other_normal: np.ndarray
    edge: np.ndarray


def contact_manifold(
    kind_a: str, kind_b: str, a: PlacedShape, b: PlacedShape, reach: Any, count: int
) -> tuple[ContactPoint, ...]:
    """So many contact points of two faces or of a face and an edge; where there are none, the nearest points
    alone, and the others FAR. All are FAR where the shapes are farther apart than `reach`.
    """
    core_a, core_b = convex_shape_of(kind_a, a), convex_shape_of(kind_b, b)

    def far(found: NearestPoints) -> tuple[Any, ...]:
        return (*found.normal, *[x for _ in range(count) for x in (FAR, *a.p)])

    def near(found: NearestPoints) -> tuple[Any, ...]:
        nearest = nearest_from(core_a, core_b, found)
        n, middle = nearest.normal, (nearest.first + nearest.second) / 2
        alone = [nearest.distance, *middle, *[x for _ in range(count - 1) for x in (FAR, *middle)]]

        def manifold() -> tuple[Any, ...]:
            first = _side(core_a, nearest.first, nearest.corners[0], n, reach)
            second = _side(core_b, nearest.second, nearest.corners[1], -n, reach)
            deepest = nearest.distance - PARALLEL_EDGE * (core_a.size + core_b.size)
            return _manifold(first, second, nearest, reach, deepest, count, alone)

        return cond(
            less_equal(nearest.distance, reach),
            lambda _: manifold(),
            lambda _: (*n, *alone),
            nearest.distance,
        )

    found, separated = approximate_points(core_a, core_b, reach)
    values = cond(separated, far, near, found)
    frame = contact_frame(np.array(values[:3]))
    points = [values[3 + 4 * k : 7 + 4 * k] for k in range(count)]
    return tuple(ContactPoint(point[0], np.array(point[1:]), frame) for point in points)


def _side(shape: ConvexShape, point: np.ndarray, corners: Any, towards: np.ndarray, reach: Any) -> Side:
    """The side of a shape, of which a point, or some corners of a mesh, are nearest to the other one."""
    room = max(map(_most_at_vertex, shape.possible))

    def of_kind(own: ConvexShape) -> SurfacePoint:
        if own.kind == "mesh":
            return point_of_mesh(own.placed, _flat_faces(own), corners, towards, room)
        return surface_point(own.kind, own.placed, point, own.size, room)

    return Side(shape, shape.by_kind(of_kind), reach)


def _flat_faces(shape: ConvexShape) -> FlatFaces | None:
    """The faces of a shape of one kind; None for a shape that has none."""
    match shape.kind:
        case "box":
            return box_faces(shape.placed.sizes)
        case "cylinder":
            return cylinder_faces(shape.placed.sizes)
        case "mesh":
            return polyhedron_of(shape.placed.sizes).faces()
    return None


def _most_at_vertex(shape: ConvexShape) -> int:
    """The largest number of faces, or of edges, that contain a point of a shape of one kind."""
    faces = _flat_faces(shape)
    return 1 if faces is None or shape.kind == "cylinder" else faces.degree


def _manifold(
    first: Side, second: Side, nearest: Nearest, reach: Any, deepest: Any, count: int, alone: list[Any]
) -> tuple[Any, ...]:
    """The normal, then distance and position of each point; those of the nearest points if there is no
    manifold.

    A face and an edge that overlap by more than `deepest` do so across a shape, not where it touches the
    other one: they make no manifold.
    """
    features = _features(first, second, nearest.normal)
    frame = contact_frame(features.normal)
    axes = np.array([frame[1], frame[2], features.normal])
    origin = nearest.first

    def points(_: Any) -> tuple[Any, ...]:
        face, subject = _polygons(first, second, features, axes, origin)
        height = face.corner(0)[2]
        polygon = clipped_polygon(subject, face, reach + height)
        numbers, found = _kept(polygon, features.of_faces, count)
        values = []
        for k, number in enumerate(numbers):
            values += _contact(polygon.gathered(number), less(1.0 * k, found), height, features, axes, origin)
        normal = where(features.of_faces, -1, where(features.second, -1, 1)) * np.array(
            [
                where(features.of_faces, x, y)
                for x, y in zip(features.other_normal, features.normal, strict=True)
            ]
        )
        is_any = logical_and(less(0, found), less(deepest, reduce(minimum, values[::4])))
        return tuple(
            where(is_any, x, y) for x, y in zip((*normal, *values), (*nearest.normal, *alone), strict=True)
        )

    return cond(features.exists, points, lambda _: (*nearest.normal, *alone), nearest.distance)


def _contact(
    corner: np.ndarray, exists: Any, height: Any, features: Features, axes: np.ndarray, origin: np.ndarray
) -> list[Any]:
    """Distance and position of the contact point at a corner, midway between both faces along the normal of
    the other face, or that of the reference face for an edge.
    """
    gap = corner[2] - height
    along = -features.other_normal @ features.normal
    distance = where(features.of_faces, gap * along, gap)
    on_face = origin + corner[0] * axes[0] + corner[1] * axes[1] + height * axes[2]
    towards = [
        where(features.of_faces, -x, y) for x, y in zip(features.other_normal, features.normal, strict=True)
    ]
    position = on_face + np.array(towards) * (distance / 2)
    return [
        where(exists, distance, FAR),
        *(where(exists, x, y) for x, y in zip(position, origin, strict=True)),
    ]


def _kept(polygon: Polygon, of_faces: Any, count: int) -> tuple[list[Any], Any]:
    """The numbers of the corners that become contact points, and how many these are."""
    numbers: list[Any] = [1.0 * k for k in range(count)]
    if count > 2:
        is_large = logical_and(of_faces, less(count, polygon.count))
        numbers = list(
            cond(is_large, lambda *_: large_quadrilateral(polygon), lambda *given: given, *numbers)
        )
    is_segment = logical_and(logical_not(of_faces), less(2, polygon.count))
    ends = cond(is_segment, lambda *_: farthest_two(polygon), lambda *given: given, *numbers[:2])
    found = where(is_segment, 2.0, where(less(count, polygon.count), 1.0 * count, polygon.count))
    return [*ends, *numbers[2:]], found


# ----------------------------------------------------------------------------------- what makes a manifold


def _features(first: Side, second: Side, n: np.ndarray) -> Features:
    """Two opposed faces at the nearest points; or else an edge of one shape along a face of the other.

    n: unit normal from the first to the second shape.
    """
    zero = np.zeros(3)
    none = Features(False, True, False, 0.0, 0.0, n * 1.0, -n, np.array([zero, zero]))
    found: Any = none
    if first.most_corners and second.most_corners:
        found = _opposed_faces(first, second, n, none)
    one, other = first.point, second.point
    of_first = logical_and(
        logical_and(less(one.dimension, FACE), less(0, other.face_count)),
        logical_or(less_equal(one.dimension, other.dimension), equal(one.face_count, 0)),
    )
    of_second = less(other.dimension, FACE)
    if second.most_corners:
        use = logical_and(logical_not(found.exists), of_first)
        found = _selected(use, lambda f: _edge_along_face(first, second, -n, True, none, f), found)
    if first.most_corners:
        use = logical_and(logical_not(found.exists), of_second)
        found = _selected(use, lambda f: _edge_along_face(second, first, n, False, none, f), found)
    return found


def _selected(condition: Any, then: Any, found: Features) -> Features:
    """`then(found)` where the condition holds, else `found`."""
    return cond(condition, then, lambda f: f, found)


def _opposed_faces(first: Side, second: Side, n: np.ndarray, none: Features) -> Features:
    """The two faces at the nearest points that oppose each other most, if they do so within `ALIGNED`."""
    one, other = first.point, second.point

    def by_first(i: Any, carry: Any) -> Any:
        n_i, k_i = one.face(i)
        faces = logical_and(less(1.0 * i, one.face_count), less(PARALLEL_EDGE, n_i @ n))

        def by_second(j: Any, carry: Any) -> Any:
            best, found = carry
            n_j, k_j = other.face(j)
            cosine = n_i @ n_j
            opposed = logical_and(less(1.0 * j, other.face_count), less(PARALLEL_EDGE, -(n_j @ n)))
            better = logical_and(opposed, less(cosine, best))
            pair = found._replace(exists=True, reference=k_i, other=k_j, normal=n_i, other_normal=n_j)
            return where(better, cosine, best), _where(better, pair, found)

        loop = fori_loop
        return cond(
            faces, lambda c: loop(0, other.face_bound, by_second, c, unroll=False), lambda c: c, carry
        )

    return fori_loop(0, one.face_bound, by_first, (-ALIGNED, none), unroll=False)[1]


def _where(condition: Any, one: Features, other: Features) -> Features:
    """Elementwise selection."""

    def pick(x: Any, y: Any) -> Any:
        if not isinstance(x, np.ndarray):
            return where(condition, x, y)
        return np.array([where(condition, p, q) for p, q in zip(x.flat, y.flat, strict=True)]).reshape(
            x.shape
        )

    exists = logical_or(condition, other.exists)
    return Features(exists, *(pick(x, y) for x, y in zip(one[1:], other[1:], strict=True)))


def _edge_along_face(
    side: Side, facing: Side, towards: np.ndarray, face_of_second: bool, none: Features, found: Features
) -> Features:
    """The first face at the nearest point of `facing`, turned `towards` the other shape, to which an edge of
    `side` is nearly parallel.
    """

    def by_face(i: Any, found: Features) -> Features:
        n_i, k_i = facing.point.face(i)
        is_face = logical_and(less(1.0 * i, facing.point.face_count), less(TINY_ANGLE, n_i @ towards))

        def by_edge(j: Any, found: Features) -> Features:
            start, end = side.edge(j, n_i, towards)
            step = end - start
            rise = step @ n_i
            near = less(rise * rise, PARALLEL_EDGE * PARALLEL_EDGE * (step @ step))
            is_edge = logical_and(less(1.0 * j, side.point.edge_count), near)
            new = Features(
                True, False, face_of_second, k_i, 0.0, n_i, none.other_normal, np.array([start, end])
            )
            return _where(logical_and(is_edge, logical_not(found.exists)), new, found)

        return cond(
            is_face,
            lambda f: fori_loop(0, side.point.edge_bound, by_edge, f, unroll=False),
            lambda f: f,
            found,
        )

    return fori_loop(0, facing.point.face_bound, by_face, found, unroll=False)


# --------------------------------------------------------------------------------------- their polygons


def _polygons(
    first: Side, second: Side, features: Features, axes: np.ndarray, origin: np.ndarray
) -> tuple[Polygon, Polygon]:
    """The reference face, and the face or edge that is clipped at its edges, both in the reference axes."""
    most = [side.most_corners or 2 for side in (first, second)]
    face, subject = no_corners(max(most)), no_corners(sum(most) + 2)

    def added(polygon: Polygon, side: Side, number: Any, condition: Any) -> Polygon:
        """The polygon with the corners of a face, where the condition holds."""
        R, p = side.shape.sides, side.shape.centre

        def corner(x: np.ndarray, polygon: Polygon) -> Polygon:
            return polygon.with_corner(axes @ (p + R @ x - origin), True)

        def of_kind(own: ConvexShape, *part: Any) -> Any:
            faces = _flat_faces(own)
            return part if faces is None else tuple(faces.over_corners_of(number, corner, Polygon(*part)))

        if not side.most_corners:
            return polygon
        return Polygon(
            *cond(condition, lambda *part: side.shape.by_kind(of_kind, *part), lambda *part: part, *polygon)
        )

    face = added(face, first, features.reference, logical_not(features.second))
    face = added(face, second, features.reference, features.second)
    subject = added(subject, second, features.other, features.of_faces)

    for end in features.edge:
        subject = subject.with_corner(axes @ (end - origin), logical_not(features.of_faces))
    return face, subject

"""Contact points of two boxes by the separating-axis theorem: corners of the common part of two faces, or
the nearest points of two edges.

As in MuJoCo 4, the normal is the one of least overlap among the six face normals and the nine cross products
of edges. Where a normal of two edges is nearly that of a face, its overlap must be 5 % smaller than that of
the best face.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import by_precision
from zwang.algebra.rotations import cross
from zwang.collision.contact_point import FAR, ContactPoint, contact_frame
from zwang.collision.shapes import PlacedShape
from zwang.collision.sphere_capsule_cylinder import select_contact
from zwang.scalar import (
    absolute,
    clip,
    divide,
    equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    sqrt,
    where,
)

PARALLEL_NORMALS = 0.99  # cosine above which the normal of two edges counts as that of a face
TIE = 1e-6  # relative difference up to which the overlap of edges counts as not less than another one
PREFERENCE = 0.05  # relative difference of the overlaps below which the face is preferred then
PARALLEL = 1e-16  # squared sine below which two edges have no common normal
# of the positions of corners, relative to the sizes and the coordinates of the centres, in double and in
# single precision
ROUNDING = 1e-14, 3e-7
# square of the distance of two corners that count as one, relative to the smaller face, in these precisions
DUPLICATE = 1e-14, 1e-10


class Face(NamedTuple):
    """The face of least overlap: overlap, whether it belongs to the second box, its axis (0, 1, 2), and its
    normal in the first box's axes.
    """

    overlap: Any
    of_second: Any
    axis: Any
    normal: np.ndarray


class Rectangle(NamedTuple):
    """A face: its centre and its half sides, in the axes (x, y, z) of the reference face."""

    centre: np.ndarray
    u: np.ndarray
    v: np.ndarray


class Corner(NamedTuple):
    """A corner of the common part of two faces, in the axes of the reference face; and whether it exists."""

    x: Any
    y: Any
    z: Any
    exists: Any


class Edges(NamedTuple):
    """The pair of edges of least overlap: overlap, their axes on either box, and their common normal in the
    first box's axes.
    """

    overlap: Any
    first: Any
    second: Any
    normal: np.ndarray


def box_box(a: PlacedShape, b: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Up to eight contact points of two faces, or one of two edges, among twelve candidates."""
    R, p = a.R.T @ b.R, a.R.T @ (b.p - a.p)
    face = _best_face(R, p, a.sizes, b.sizes)
    edges = _best_edges(R, p, a.sizes, b.sizes, face.overlap)
    nearly_parallel = less_equal(PARALLEL_NORMALS, absolute(edges.normal @ face.normal))
    similar_overlap = less_equal(absolute(face.overlap - edges.overlap), PREFERENCE * absolute(face.overlap))
    use_edges = logical_and(
        less(edges.overlap, face.overlap), logical_not(logical_and(nearly_parallel, similar_overlap))
    )
    separated = less(minimum(face.overlap, edges.overlap), -reach)
    first, *others = _face_contacts(a, b, R, p, face)
    first = select_contact(use_edges, _edge_contact(a, b, R, p, edges), first)
    none = logical_or(separated, use_edges)
    return (
        ContactPoint(where(separated, FAR, first.distance), first.position, first.frame),
        *(ContactPoint(where(none, FAR, x.distance), x.position, first.frame) for x in others),
    )


def _select(condition: Any, one: Any, other: Any) -> np.ndarray:
    """Elementwise selection of a vector."""
    return np.array([where(condition, x, y) for x, y in zip(one, other, strict=True)])


def _best_face(R: np.ndarray, p: np.ndarray, s_a: Any, s_b: Any) -> Face:
    """The face of least overlap: both half extents along its normal less the distance of the centres."""
    p_in_b = R.T @ p
    faces = []
    for k in range(3):
        overlap = s_a[k] + sum(absolute(R[k, i]) * s_b[i] for i in range(3)) - absolute(p[k])
        faces.append(Face(overlap, 0, k, np.eye(3, dtype=int)[k]))
    for k in range(3):
        overlap = s_b[k] + sum(absolute(R[i, k]) * s_a[i] for i in range(3)) - absolute(p_in_b[k])
        faces.append(Face(overlap, 1, k, R[:, k]))
    best = faces[0]
    for new in faces[1:]:
        better = less(new.overlap, best.overlap)
        best = Face(
            where(better, new.overlap, best.overlap),
            where(better, new.of_second, best.of_second),
            where(better, new.axis, best.axis),
            _select(better, new.normal, best.normal),
        )
    return best


def _best_edges(R: np.ndarray, p: np.ndarray, s_a: Any, s_b: Any, largest: Any) -> Edges:
    """The pair of edges of least overlap along their common normal, which points from the first box to the
    second, among those whose overlap is less than `largest`; parallel edges have none.
    """
    best = Edges(largest, 0, 0, np.array([1, 0, 0]))
    for i in range(3):
        for j in range(3):
            n = cross(np.eye(3, dtype=int)[i], R[:, j])
            squared_length = n @ n
            crossing = less(PARALLEL, squared_length)
            n = n * divide(1, sqrt(where(crossing, squared_length, 1.0)))
            # the normal has no component along either edge
            extent = sum(s_a[k] * absolute(n[k]) for k in range(3) if k != i)
            extent = extent + sum(s_b[k] * absolute(R[:, k] @ n) for k in range(3) if k != j)
            overlap = extent - absolute(n @ p)
            better = logical_and(crossing, less(overlap + TIE * absolute(overlap), best.overlap))
            best = Edges(
                where(better, overlap, best.overlap),
                where(better, i, best.first),
                where(better, j, best.second),
                _select(better, n, best.normal),
            )
    return best._replace(normal=where(less(best.normal @ p, 0), -1, 1) * best.normal)


def _edge_contact(a: PlacedShape, b: PlacedShape, R: np.ndarray, p: np.ndarray, edges: Edges) -> ContactPoint:
    """One contact point, midway between the nearest points of the two edges."""
    n, m = edges.normal, R.T @ edges.normal
    first = [equal(edges.first, k) for k in range(3)]
    second = [equal(edges.second, k) for k in range(3)]
    on_a = np.array([where(first[k], 0, where(less(n[k], 0), -1, 1) * a.sizes[k]) for k in range(3)])
    on_b = p + R @ np.array([where(second[k], 0, where(less(m[k], 0), 1, -1) * b.sizes[k]) for k in range(3)])
    u = np.array([where(first[k], 1, 0) for k in range(3)])
    v = R @ np.array([where(second[k], 1, 0) for k in range(3)])
    half_a, half_b = (
        sum(where(which[k], s[k], 0) for k in range(3)) for which, s in ((first, a.sizes), (second, b.sizes))
    )
    x, y = _nearest_on_edges(on_b - on_a, u, v, half_a, half_b)
    middle = (on_a + u * x + on_b + v * y) / 2
    return ContactPoint(-edges.overlap, a.p + a.R @ middle, contact_frame(a.R @ n))


def _nearest_on_edges(w: Any, u: Any, v: Any, half_u: Any, half_v: Any) -> tuple[Any, Any]:
    """Positions of the nearest points on two segments with unit directions u, v and the difference w of
    their midpoints.
    """
    c, du, dv = u @ v, u @ w, v @ w
    sine = 1 - c * c
    x = clip((du - c * dv) / where(less(PARALLEL, sine), sine, 1.0), -half_u, half_u)
    y = x * c - dv
    end = clip(y, -half_v, half_v)
    x = where(equal(end, y), x, clip(end * c + du, -half_u, half_u))
    return x, end


def _face_contacts(
    a: PlacedShape, b: PlacedShape, R: np.ndarray, p: np.ndarray, face: Face
) -> list[ContactPoint]:
    """The corners of the part of the incident face that lies over the reference face, midway to that face."""
    second = equal(face.of_second, 1)
    p_in_b = -(R.T @ p)
    s_ref, s_inc = _select(second, b.sizes, a.sizes), _select(second, a.sizes, b.sizes)
    offset = _select(second, p_in_b, p)
    Q = np.array(
        [[where(second, R[j, i], R[i, j]) for j in range(3)] for i in range(3)]
    )  # incident in reference
    world = np.array([[where(second, b.R[i, j], a.R[i, j]) for j in range(3)] for i in range(3)])
    origin = _select(second, b.p, a.p)
    # permute the axes cyclically, so that the axis of the reference face is the last
    Q, offset, s_ref, world = _permuted(face.axis, Q, offset, s_ref, world)
    up = where(less(offset[2], 0), -1, 1)
    incident = _incident_face(Q, offset, s_inc, up, s_ref[2])
    size = sum(absolute(x) for x in (*s_ref, *s_inc, *a.p, *b.p))
    corners = _common_corners(incident, s_ref[:2], by_precision(size, *ROUNDING) * size)
    normal = where(second, -1, 1) * up * world[:, 2]
    frame = contact_frame(normal)
    points = []
    for x, y, z, exists in corners:
        position = np.array([x, y, up * (s_ref[2] + z / 2)])
        points.append(ContactPoint(where(exists, z, FAR), origin + world @ position, frame))
    return points


def _permuted(
    axis: Any, Q: np.ndarray, offset: np.ndarray, sizes: np.ndarray, world: np.ndarray
) -> tuple[Any, ...]:
    """All with the reference box's axes in the order (axis + 1, axis + 2, axis)."""
    order = [[(k + 1) % 3, (k + 2) % 3, k] for k in range(3)]

    def permuted(rows: Any) -> Any:
        picked = [[rows[i] for i in order[k]] for k in range(3)]
        first, last = equal(axis, 0), equal(axis, 2)
        return [_select_by_axis(first, last, *(picked[k][i] for k in range(3))) for i in range(3)]

    return (
        np.array(permuted(Q)),
        np.array(permuted(offset)),
        np.array(permuted(sizes)),
        np.array(permuted(world.T)).T,
    )


def _select_by_axis(first: Any, last: Any, x: Any, y: Any, z: Any) -> Any:
    """x where `first` holds, z where `last` holds, else y; also for arrays."""
    if isinstance(x, np.ndarray):
        return np.array([_select_by_axis(first, last, *items) for items in zip(x, y, z, strict=True)])
    return where(first, x, where(last, z, y))


def _incident_face(Q: np.ndarray, offset: np.ndarray, sizes: np.ndarray, up: Any, height: Any) -> Rectangle:
    """The face most opposed to the reference face; z is the height above that face."""
    tilt = [absolute(Q[2, k]) for k in range(3)]
    first = logical_and(less_equal(tilt[1], tilt[0]), less_equal(tilt[2], tilt[0]))
    last = logical_and(less(tilt[1], tilt[2]), logical_not(first))
    columns = [Q[:, k] * sizes[k] for k in range(3)]
    n, u, v = (
        _select_by_axis(first, last, *(columns[(k + shift) % 3] for k in range(3))) for shift in range(3)
    )
    c = offset - n * (where(less(n[2], 0), -1, 1) * up)
    centre, u, v = (np.array([x[0], x[1], up * x[2]]) for x in (c, u, v))
    return Rectangle(centre - np.array([0, 0, height]), u, v)


def _common_corners(face: Rectangle, half: Any, tolerance: Any) -> list[Corner]:
    """The corners of the part of a face over a rectangle: for each side of the face both ends of its part
    over the rectangle, then the rectangle's corners inside the face. Of corners that are nearly at one place,
    one exists.
    """
    diagonals = half[0] * half[0] + half[1] * half[1], face.u @ face.u + face.v @ face.v
    square = maximum(by_precision(tolerance, *DUPLICATE) * minimum(*diagonals), 16 * tolerance * tolerance)
    ends = _clipped_sides(face, half, tolerance)
    places = [(where(end.exists, end.x, FAR), end.y) for end in ends]
    # of the ends in their order around the face, one near to the next is left out
    corners = [_unless_near(end, [places[(k + 1) % 8]], square) for k, end in enumerate(ends)]
    for sx, sy in ((-1, -1), (-1, 1), (1, 1), (1, -1)):
        corners.append(_unless_near(_rectangle_corner(face, sx * half[0], sy * half[1]), places, square))
    return corners


def _unless_near(corner: Corner, places: list[tuple[Any, Any]], square: Any) -> Corner:
    """The corner, which does not exist where the square of its distance from one of the places (x, y) is less
    than `square`.
    """
    squares = [(corner.x - x) * (corner.x - x) + (corner.y - y) * (corner.y - y) for x, y in places]
    return corner._replace(exists=logical_and(corner.exists, less_equal(square, reduce(minimum, squares))))


def _clipped_sides(face: Rectangle, half: Any, tolerance: Any) -> list[Corner]:
    """Both ends of the part of each side of a face that lies over a rectangle. Source: Liang, Barsky, ACM
    Trans. Graphics 3 (1984) 1.

    A side exists over the rectangle that is wider by `tolerance` on each side, so that one along an edge
    exists for any rounding. Its ends are on the rectangle itself, unless it is along an edge or misses that.
    """
    c, u, v = face
    slopes, widths = {}, {}
    for k, half_side in enumerate((u, v)):
        for i in range(2):
            # a side along an edge is taken for one that crosses a wider rectangle
            along = less(absolute(half_side[i]), tolerance)
            slope = divide(0.5, where(along, tolerance / 2, half_side[i]))
            bound = half[i] + where(along, 2 * tolerance, 0)
            slopes[k, i] = slope
            widths[k, i] = [x * absolute(slope) for x in (bound, bound + tolerance)]
    ends = []
    for start, k, sign in ((c + u + v, 1, -1), (c + u - v, 0, -1), (c - u - v, 1, 1), (c - u + v, 0, 1)):
        enter, leave, first, last = 0, 1, 0, 1
        for i in range(2):
            middle, (width, wider) = -sign * start[i] * slopes[k, i], widths[k, i]
            enter, leave = maximum(enter, middle - width), minimum(leave, middle + width)
            first, last = maximum(first, middle - wider), minimum(last, middle + wider)
        step, exists = 2 * sign * (u, v)[k], less_equal(first, last)
        for t in (minimum(enter, last), maximum(leave, first)):
            x, y, z = start + step * t
            ends.append(Corner(x, y, z, exists))
    return ends


def _rectangle_corner(face: Rectangle, x: Any, y: Any) -> Corner:
    """The point of the face's plane over (x, y), which exists inside the face."""
    c, u, v = face
    inverse = divide(1, u[0] * v[1] - u[1] * v[0])
    x_c, y_c = x - c[0], y - c[1]
    i, j = (x_c * v[1] - y_c * v[0]) * inverse, (u[0] * y_c - u[1] * x_c) * inverse
    inside = logical_and(less(absolute(i), 1), less(absolute(j), 1))
    return Corner(x, y, where(inside, c[2] + u[2] * i + v[2] * j, 0), inside)

"""Contact points of two boxes by the separating-axis theorem: corners of the common part of two faces, or
the nearest points of two edges.

As in MuJoCo 4, the normal is the one of least overlap among the six face normals and the nine cross products
of edges. Where a normal of two edges is nearly that of a face, its overlap must be 5 % smaller than that of
the best face.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
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
    maximum,
    minimum,
    sqrt,
    where,
)

PARALLEL_NORMALS = 0.99  # cosine above which the normal of two edges counts as that of a face
PREFERENCE = 0.05  # relative difference of the overlaps below which the face is preferred then
PARALLEL = 1e-16  # squared sine below which two edges have no common normal
CANDIDATES = 12  # contact points of two faces: two for each side of the incident face, and four corners


class Face(NamedTuple):
    """The face of least overlap: overlap, whether it belongs to the second box, its axis (0, 1, 2), and its
    normal in the first box's axes.
    """

    overlap: Any
    of_second: Any
    axis: Any
    normal: np.ndarray


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
    edges = _best_edges(R, p, a.sizes, b.sizes)
    nearly_parallel = less_equal(PARALLEL_NORMALS, absolute(edges.normal @ face.normal))
    similar_overlap = less_equal(absolute(face.overlap - edges.overlap), PREFERENCE * absolute(face.overlap))
    use_edges = logical_and(
        less(edges.overlap, face.overlap), logical_not(logical_and(nearly_parallel, similar_overlap))
    )
    separated = less(minimum(face.overlap, edges.overlap), -reach)
    contacts = [
        select_contact(use_edges, edge, side)
        for edge, side in zip(
            _edge_contacts(a, b, R, p, edges), _face_contacts(a, b, R, p, face), strict=True
        )
    ]
    return tuple(
        ContactPoint(where(separated, FAR, point.distance), point.position, point.frame) for point in contacts
    )


def _select(condition: Any, one: Any, other: Any) -> np.ndarray:
    """Elementwise selection of a vector."""
    return np.array([where(condition, x, y) for x, y in zip(one, other, strict=True)])


def _best_face(R: np.ndarray, p: np.ndarray, s_a: Any, s_b: Any) -> Face:
    """The face of least overlap: both half extents along its normal less the distance of the centres."""
    p_in_b = R.T @ p
    best = Face(FAR, False, 0, np.array([1, 0, 0]))
    for k in range(3):
        along_a = s_a[k] + sum(absolute(R[k, i]) * s_b[i] for i in range(3)) - absolute(p[k])
        along_b = s_b[k] + sum(absolute(R[i, k]) * s_a[i] for i in range(3)) - absolute(p_in_b[k])
        for new in (Face(along_a, 0, k, np.eye(3, dtype=int)[k]), Face(along_b, 1, k, R[:, k])):
            better = less(new.overlap, best.overlap)
            best = Face(
                where(better, new.overlap, best.overlap),
                where(better, new.of_second, best.of_second),
                where(better, k, best.axis),
                _select(better, new.normal, best.normal),
            )
    return best


def _best_edges(R: np.ndarray, p: np.ndarray, s_a: Any, s_b: Any) -> Edges:
    """The pair of edges of least overlap along their common normal, which points from the first box to the
    second; parallel edges have none.
    """
    best = Edges(FAR, 0, 0, np.array([1, 0, 0]))
    for i in range(3):
        for j in range(3):
            n = cross(np.eye(3, dtype=int)[i], R[:, j])
            squared_length = n @ n
            crossing = less(PARALLEL, squared_length)
            n = n / sqrt(where(crossing, squared_length, 1.0))
            m = R.T @ n
            extent = sum(s_a[k] * absolute(n[k]) for k in range(3)) + sum(
                s_b[k] * absolute(m[k]) for k in range(3)
            )
            distance = n @ p
            overlap = extent - absolute(distance)
            n = where(less(distance, 0), -1, 1) * n
            better = logical_and(crossing, less(overlap, best.overlap))
            best = Edges(
                where(better, overlap, best.overlap),
                where(better, i, best.first),
                where(better, j, best.second),
                _select(better, n, best.normal),
            )
    return best


def _edge_contacts(
    a: PlacedShape, b: PlacedShape, R: np.ndarray, p: np.ndarray, edges: Edges
) -> list[ContactPoint]:
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
    point = ContactPoint(-edges.overlap, a.p + a.R @ middle, contact_frame(a.R @ n))
    return [point, *[ContactPoint(FAR, point.position, point.frame)] * (CANDIDATES - 1)]


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
    polygon = _incident_face(Q, offset, s_inc, up, s_ref[2])
    candidates = _clipped_polygon(polygon, s_ref[0], s_ref[1])
    normal = where(second, -1, 1) * up * world[:, 2]
    frame = contact_frame(normal)
    points = []
    for x, y, z, inside in candidates:
        position = np.array([x, y, up * (s_ref[2] + z / 2)])
        points.append(ContactPoint(where(inside, z, FAR), origin + world @ position, frame))
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


def _incident_face(
    Q: np.ndarray, offset: np.ndarray, sizes: np.ndarray, up: Any, height: Any
) -> list[np.ndarray]:
    """The corners, in order, of the face most opposed to the reference face; z is the height above that
    face.
    """
    tilt = [absolute(Q[2, k]) for k in range(3)]
    first = logical_and(less_equal(tilt[1], tilt[0]), less_equal(tilt[2], tilt[0]))
    last = logical_and(less(tilt[1], tilt[2]), logical_not(first))
    columns = [Q[:, k] * sizes[k] for k in range(3)]
    n, u, v = (
        _select_by_axis(first, last, *(columns[(k + shift) % 3] for k in range(3))) for shift in range(3)
    )
    centre = offset - n * (where(less(n[2], 0), -1, 1) * up)
    corners = [centre + u + v, centre + u - v, centre - u - v, centre - u + v]
    return [np.array([c[0], c[1], up * c[2] - height]) for c in corners]


def _clipped_polygon(polygon: list[np.ndarray], half_x: Any, half_y: Any) -> list[tuple[Any, Any, Any, Any]]:
    """For each side of the polygon both ends of its part over the rectangle, then the rectangle's corners
    inside the polygon.

    The end of a side at its own corner is the start of the next side, and is returned once. Source: Liang,
    Barsky, ACM Trans. Graphics 3 (1984) 1.
    """
    candidates = []
    for k in range(4):
        start, step = polygon[k], polygon[(k + 1) % 4] - polygon[k]
        enter, leave = _clip_interval(start, step, half_x, half_y)
        inside = less_equal(enter, leave)
        candidates.append((*(start + step * enter), inside))
        candidates.append((*(start + step * leave), logical_and(inside, less(leave, 1))))
    for sx, sy in ((-1, -1), (-1, 1), (1, 1), (1, -1)):
        candidates.append(_rectangle_corner(polygon, sx * half_x, sy * half_y))
    return candidates


def _clip_interval(start: np.ndarray, step: np.ndarray, half_x: Any, half_y: Any) -> tuple[Any, Any]:
    """The part [enter, leave] of [0, 1] for which start + t step lies over the rectangle."""
    enter: Any = 0
    leave: Any = 1
    for k, half in ((0, half_x), (1, half_y)):
        parallel = less(absolute(step[k]), TINY)
        ends = [divide(side * half - start[k], where(parallel, 1.0, step[k])) for side in (-1, 1)]
        outside = logical_and(parallel, less(half, absolute(start[k])))
        enter = maximum(enter, where(parallel, where(outside, 2, 0), minimum(*ends)))
        leave = minimum(leave, where(parallel, 1, maximum(*ends)))
    return enter, leave


def _rectangle_corner(polygon: list[np.ndarray], x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """The point of the polygon's plane over (x, y), and whether it is inside the polygon."""
    u, v = polygon[1] - polygon[0], polygon[3] - polygon[0]
    det = u[0] * v[1] - u[1] * v[0]
    dx, dy = x - polygon[0][0], y - polygon[0][1]
    i, j = divide(dx * v[1] - dy * v[0], det), divide(u[0] * dy - u[1] * dx, det)
    inside = logical_and(logical_and(less(0, i), less(i, 1)), logical_and(less(0, j), less(j, 1)))
    return x, y, where(inside, polygon[0][2] + u[2] * i + v[2] * j, 0), inside

"""Gaps of two boxes: by separating axes, then the corners of the common part of two faces, or the nearest points of two edges.

As MuJoCo 4 does it: of the six face normals and nine products of edges that of least overlap gives the normal. An edge
pair's must be better than the best face's by 5 % if the two normals are nearly the same.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
from zwang.collision.contact_point import FAR, TINY, ContactPoint, contact_frame
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
)  # fmt: skip

ALIKE = 0.99  # cosine above which an edge pair's normal counts as a face's
PREFERENCE = 0.05
PARALLEL = 1e-16  # squared sine under which two edges have no common normal
SLOTS = 12


class Face(NamedTuple):
    """The best face: overlap, whether it is of the second box, its axis (0, 1, 2), and its normal in the first box's axes."""

    overlap: Any
    of_second: Any
    axis: Any
    normal: np.ndarray


class Edges(NamedTuple):
    """The best pair of edges: overlap, their axes on either box, and their common normal in the first box's axes."""

    overlap: Any
    first: Any
    second: Any
    normal: np.ndarray


def box_box(a: PlacedShape, b: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Up to eight gaps of two faces, or one of two edges, in twelve slots."""
    R, p = a.R.T @ b.R, a.R.T @ (b.p - a.p)
    face = _best_face(R, p, a.sizes, b.sizes)
    edges = _best_edges(R, p, a.sizes, b.sizes)
    alike = less_equal(ALIKE, absolute(edges.normal @ face.normal))
    near = less_equal(absolute(face.overlap - edges.overlap), PREFERENCE * absolute(face.overlap))
    by_edges = logical_and(less(edges.overlap, face.overlap), logical_not(logical_and(alike, near)))
    apart = less(minimum(face.overlap, edges.overlap), -reach)
    touching = [
        select_contact(by_edges, edge, side)
        for edge, side in zip(_edge_gaps(a, b, R, p, edges), _face_gaps(a, b, R, p, face), strict=True)
    ]
    return tuple(ContactPoint(where(apart, FAR, gap.distance), gap.position, gap.frame) for gap in touching)


def _select(condition: Any, one: Any, other: Any) -> np.ndarray:
    return np.array([where(condition, x, y) for x, y in zip(one, other, strict=True)])


def _best_face(R: np.ndarray, p: np.ndarray, s_a: Any, s_b: Any) -> Face:
    """Overlap along a face's normal: both half extents less the distance of the centres."""
    there = R.T @ p
    best = Face(FAR, False, 0, np.array([1, 0, 0]))
    for k in range(3):
        along_a = s_a[k] + sum(absolute(R[k, i]) * s_b[i] for i in range(3)) - absolute(p[k])
        along_b = s_b[k] + sum(absolute(R[i, k]) * s_a[i] for i in range(3)) - absolute(there[k])
        for new in (Face(along_a, 0, k, np.eye(3, dtype=int)[k]), Face(along_b, 1, k, R[:, k])):
            better = less(new.overlap, best.overlap)
            best = Face(where(better, new.overlap, best.overlap), where(better, new.of_second, best.of_second),
                        where(better, k, best.axis), _select(better, new.normal, best.normal))  # fmt: skip
    return best


def _best_edges(R: np.ndarray, p: np.ndarray, s_a: Any, s_b: Any) -> Edges:
    """Overlap along the common normals of edges that are not parallel, pointing from the first box to the second."""
    best = Edges(FAR, 0, 0, np.array([1, 0, 0]))
    for i in range(3):
        for j in range(3):
            n = cross(np.eye(3, dtype=int)[i], R[:, j])
            square = n @ n
            crossing = less(PARALLEL, square)
            n = n / sqrt(where(crossing, square, 1.0))
            m = R.T @ n
            extent = sum(s_a[k] * absolute(n[k]) for k in range(3)) + sum(
                s_b[k] * absolute(m[k]) for k in range(3)
            )
            distance = n @ p
            overlap = extent - absolute(distance)
            n = where(less(distance, 0), -1, 1) * n
            better = logical_and(crossing, less(overlap, best.overlap))
            best = Edges(where(better, overlap, best.overlap), where(better, i, best.first), where(better, j, best.second),
                         _select(better, n, best.normal))  # fmt: skip
    return best


def _edge_gaps(a: PlacedShape, b: PlacedShape, R: np.ndarray, p: np.ndarray, edges: Edges) -> list[ContactPoint]:
    """One gap, half way between the nearest points of the two edges."""
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
    point = (on_a + u * x + on_b + v * y) / 2
    gap = ContactPoint(-edges.overlap, a.p + a.R @ point, contact_frame(a.R @ n))
    return [gap, *[ContactPoint(FAR, gap.position, gap.frame)] * (SLOTS - 1)]


def _nearest_on_edges(w: Any, u: Any, v: Any, half_u: Any, half_v: Any) -> tuple[Any, Any]:
    """Where on two stretches (unit directions u, v, middles apart by w) their nearest points are."""
    c, du, dv = u @ v, u @ w, v @ w
    sine = 1 - c * c
    x = clip((du - c * dv) / where(less(PARALLEL, sine), sine, 1.0), -half_u, half_u)
    y = x * c - dv
    end = clip(y, -half_v, half_v)
    x = where(equal(end, y), x, clip(end * c + du, -half_u, half_u))
    return x, end


def _face_gaps(a: PlacedShape, b: PlacedShape, R: np.ndarray, p: np.ndarray, face: Face) -> list[ContactPoint]:
    """The corners of the part of the incident face that lies over the reference face, half way to that face."""
    second = equal(face.of_second, 1)
    there = -(R.T @ p)
    s_ref, s_inc = _select(second, b.sizes, a.sizes), _select(second, a.sizes, b.sizes)
    offset = _select(second, there, p)
    Q = np.array(
        [[where(second, R[j, i], R[i, j]) for j in range(3)] for i in range(3)]
    )  # incident in reference
    world = np.array([[where(second, b.R[i, j], a.R[i, j]) for j in range(3)] for i in range(3)])
    origin = _select(second, b.p, a.p)
    # turn cyclically, so that the reference face's axis comes last
    Q, offset, s_ref, world = _cycled(face.axis, Q, offset, s_ref, world)
    up = where(less(offset[2], 0), -1, 1)
    quad = _incident(Q, offset, s_inc, up, s_ref[2])
    slots = _clipped(quad, s_ref[0], s_ref[1])
    normal = where(second, -1, 1) * up * world[:, 2]
    frame = contact_frame(normal)
    found = []
    for x, y, z, inside in slots:
        point = np.array([x, y, up * (s_ref[2] + z / 2)])
        found.append(ContactPoint(where(inside, z, FAR), origin + world @ point, frame))
    return found


def _cycled(
    axis: Any, Q: np.ndarray, offset: np.ndarray, sizes: np.ndarray, world: np.ndarray
) -> tuple[Any, ...]:
    """All with the reference box's axes in the order (axis + 1, axis + 2, axis)."""
    order = [[(k + 1) % 3, (k + 2) % 3, k] for k in range(3)]

    def turned(rows: Any) -> Any:
        picked = [[rows[i] for i in order[k]] for k in range(3)]
        first, last = equal(axis, 0), equal(axis, 2)
        return [_by(first, last, *(picked[k][i] for k in range(3))) for i in range(3)]

    return np.array(turned(Q)), np.array(turned(offset)), np.array(turned(sizes)), np.array(turned(world.T)).T


def _by(first: Any, last: Any, x: Any, y: Any, z: Any) -> Any:
    if isinstance(x, np.ndarray):
        return np.array([_by(first, last, *items) for items in zip(x, y, z, strict=True)])
    return where(first, x, where(last, z, y))


def _incident(Q: np.ndarray, offset: np.ndarray, sizes: np.ndarray, up: Any, height: Any) -> list[np.ndarray]:
    """The corners, in order, of the face that looks most against the reference face; z from that face outwards."""
    tilt = [absolute(Q[2, k]) for k in range(3)]
    first = logical_and(less_equal(tilt[1], tilt[0]), less_equal(tilt[2], tilt[0]))
    last = logical_and(less(tilt[1], tilt[2]), logical_not(first))
    columns = [Q[:, k] * sizes[k] for k in range(3)]
    n, u, v = (_by(first, last, *(columns[(k + shift) % 3] for k in range(3))) for shift in range(3))
    centre = offset - n * (where(less(n[2], 0), -1, 1) * up)
    corners = [centre + u + v, centre + u - v, centre - u - v, centre - u + v]
    return [np.array([c[0], c[1], up * c[2] - height]) for c in corners]


def _clipped(quad: list[np.ndarray], half_x: Any, half_y: Any) -> list[tuple[Any, Any, Any, Any]]:
    """Of each side of the quad the two ends of its part over the rectangle, then the rectangle's corners within the quad.

    A side's end that is its own corner is the next side's start, and not given twice. Source: Liang, Barsky (1984).
    """
    slots = []
    for k in range(4):
        start, step = quad[k], quad[(k + 1) % 4] - quad[k]
        enter, leave = _within(start, step, half_x, half_y)
        inside = less_equal(enter, leave)
        slots.append((*(start + step * enter), inside))
        slots.append((*(start + step * leave), logical_and(inside, less(leave, 1))))
    for sx, sy in ((-1, -1), (-1, 1), (1, 1), (1, -1)):
        slots.append(_corner(quad, sx * half_x, sy * half_y))
    return slots


def _within(start: np.ndarray, step: np.ndarray, half_x: Any, half_y: Any) -> tuple[Any, Any]:
    """The part [enter, leave] of [0, 1] for which start + t step lies over the rectangle."""
    enter: Any = 0
    leave: Any = 1
    for k, half in ((0, half_x), (1, half_y)):
        still = less(absolute(step[k]), TINY)
        ends = [divide(side * half - start[k], where(still, 1.0, step[k])) for side in (-1, 1)]
        outside = logical_and(still, less(half, absolute(start[k])))
        enter = maximum(enter, where(still, where(outside, 2, 0), minimum(*ends)))
        leave = minimum(leave, where(still, 1, maximum(*ends)))
    return enter, leave


def _corner(quad: list[np.ndarray], x: Any, y: Any) -> tuple[Any, Any, Any, Any]:
    """The point of the quad's plane over (x, y), and whether it is within the quad."""
    u, v = quad[1] - quad[0], quad[3] - quad[0]
    det = u[0] * v[1] - u[1] * v[0]
    dx, dy = x - quad[0][0], y - quad[0][1]
    i, j = divide(dx * v[1] - dy * v[0], det), divide(u[0] * dy - u[1] * dx, det)
    inside = logical_and(logical_and(less(0, i), less(i, 1)), logical_and(less(0, j), less(j, 1)))
    return x, y, where(inside, quad[0][2] + u[2] * i + v[2] * j, 0), inside

"""Gaps of a ball or a capsule with a box. Source: MuJoCo's collision functions (S. Kolev)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

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
    logical_or,
    minimum,
    not_equal,
    sqrt,
    where,
)  # fmt: skip


def sphere_box(sphere: PlacedShape, box: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One gap: with the nearest point of the box or, from inside, with the nearest face."""
    return (sphere_box_at(sphere.p, sphere.sizes[0], box),)


def sphere_box_at(centre: np.ndarray, r: Any, box: PlacedShape) -> ContactPoint:
    """The gap of a ball and a box; the normal points into the box."""
    c = box.R.T @ (centre - box.p)
    nearest = np.array([clip(x, -s, s) for x, s in zip(c, box.sizes, strict=True)])
    inward = nearest - c
    square = inward @ inward
    inside = less_equal(square, TINY * TINY)
    distance = sqrt(where(inside, 1.0, square))
    face, depth = _nearest_face(c, box.sizes)
    normal = np.array([where(inside, f, divide(x, distance)) for f, x in zip(face, inward, strict=True)])
    distance = where(inside, -depth, distance)
    # half way between the ball's deepest point and the box's surface
    position = c + normal * ((r + distance) / 2)
    return ContactPoint(distance - r, box.R @ position + box.p, contact_frame(box.R @ normal))


def _nearest_face(c: np.ndarray, sizes: Any) -> tuple[list[Any], Any]:
    """The direction into the box at the face that is nearest to an inner point, and its distance."""
    normal: list[Any] = [0, 0, 0]
    depth: Any = FAR
    for k in range(3):
        for side in (-1, 1):
            d = absolute(side * sizes[k] - c[k])
            closer = less(d, depth)
            normal = [where(closer, -side if i == k else 0, n) for i, n in enumerate(normal)]
            depth = where(closer, d, depth)
    return normal, depth


class _Nearest(NamedTuple):
    """What is known of the nearest point of a capsule's axis and a box, in the box's axes.

    square: of the distance. along: in [-1, 1] on the half axis. side: -1, 0, 1 on the edge (lower corner, between, upper).
    on_edge: in [-1, 1] on the edge. edge: which of the axes it runs along. corner: signs of the box's corner.
    end: -1 or 1 where the capsule's end faces a face, else 0. face: the axis of that face, or -1.
    """

    square: Any
    along: Any
    side: Any
    on_edge: Any
    edge: Any
    corner: tuple[Any, ...]
    end: Any
    face: Any


def capsule_box(capsule: PlacedShape, box: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """Two gaps: at the nearest point of the axis, and (or FAR) where the axis leaves the face or edge that it lies along."""
    radius, half = capsule.sizes
    axis = box.R.T @ capsule.R[:, 2]
    centre = box.R.T @ (capsule.p - box.p)
    h = axis * half
    best = _Nearest(FAR, 0, 0, 0, 0, (0, 0, 0), 0, 0)
    for end in (-1, 1):
        best = _face(best, centre + end * h, end, box.sizes)
    for k in range(3):
        for corner in range(8):
            if not corner & (1 << k):
                best = _edge(
                    best,
                    k,
                    tuple(1 if corner & (1 << i) else -1 for i in range(3)),
                    centre,
                    h,
                    half,
                    box.sizes,
                )
    step, there = _second(best, centre, h, axis, box.sizes)
    first = sphere_box_at(box.p + box.R @ (centre + h * best.along), radius, box)
    second = sphere_box_at(box.p + box.R @ (centre + h * (best.along + step)), radius, box)
    return first, select_contact(there, second, ContactPoint(FAR, second.position, second.frame))


def _pick(better: Any, new: _Nearest, old: _Nearest) -> _Nearest:
    corner = tuple(where(better, x, y) for x, y in zip(new.corner, old.corner, strict=True))
    return _Nearest(*(corner if name == "corner" else where(better, getattr(new, name), getattr(old, name))
                      for name in _Nearest._fields))  # fmt: skip


def _face(best: _Nearest, point: np.ndarray, end: int, sizes: Any) -> _Nearest:
    """An end of the capsule that is outside of at most one pair of faces."""
    count: Any = 0
    face: Any = -1
    square: Any = 0
    for k in range(3):
        out = less(sizes[k], absolute(point[k]))
        count = count + where(out, 1, 0)
        face = where(out, k, face)
        beyond = where(out, absolute(point[k]) - sizes[k], 0)
        square = square + beyond * beyond
    better = logical_and(less_equal(count, 1), less(square, best.square))
    return _pick(better, _Nearest(square, end, 0, 0, 0, (0, 0, 0), end, face), best)


def _edge(
    best: _Nearest, k: int, corner: tuple[int, ...], centre: Any, h: Any, half: Any, sizes: Any
) -> _Nearest:
    """The capsule's axis and one edge of the box: the nearest points of two stretches."""
    middle = np.array(
        [0 if i == k else sign * s for i, (sign, s) in enumerate(zip(corner, sizes, strict=True))]
    )
    d = middle - centre
    s = sizes[k]
    aa, ab, bb = s * s, -s * h[k], half * half
    u, v = -s * d[k], h @ d
    det = aa * bb - ab * ab
    x1, x2 = divide(bb * u - ab * v, det), divide(aa * v - ab * u, det)
    end = clip(x1, -1, 1)
    x2 = where(less(1, absolute(x1)), divide(v - ab * end, bb), x2)
    beyond = less(1, absolute(x2))
    x2 = clip(x2, -1, 1)
    free = where(beyond, divide(u - ab * x2, aa), x1)
    side = where(less(1, x1), 1, where(less(x1, -1), -1, 0))
    side = where(
        less(1, free), 1, where(less(free, -1), -1, side)
    )  # MuJoCo keeps the first side where it comes free
    x1 = where(beyond, clip(free, -1, 1), end)
    gap = d - h * x2 + np.array([s * x1 if i == k else 0 for i in range(3)])
    square = gap @ gap
    better = logical_and(less_equal(TINY, absolute(det)), less(square, best.square - TINY))
    signs = tuple(where(less(0, side), 1, -1) if i == k else sign for i, sign in enumerate(corner))
    return _pick(better, _Nearest(square, x2, side, x1, k, signs, 0, -1), best)


def _second(best: _Nearest, centre: Any, h: Any, axis: Any, sizes: Any) -> tuple[Any, Any]:
    """How far along the half axis the second point is from the first, and whether there is one."""
    differ = [not_equal_signs(h[k], best.corner[k]) for k in range(3)]
    reach = [2 * divide(sizes[k], absolute(h[k])) for k in range(3)]
    corner, at_corner = _from_corner(best, differ, reach, axis)
    edge, at_edge = _from_edge(best, differ, reach, h, axis, sizes)
    face = _from_face(best, centre + h * best.end, h, sizes)
    on_face, on_corner = not_equal(best.end, 0), not_equal(best.side, 0)
    step = where(on_face, face, where(on_corner, corner, edge))
    there = where(on_face, where(less_equal(0, best.face), 1, 0),
                  where(on_corner, where(at_corner, 1, 0), where(at_edge, 1, 0)))  # fmt: skip
    there = logical_and(less(0, there), less(best.square, FAR))
    return where(there, step, 0), there


def not_equal_signs(x: Any, sign: Any) -> Any:
    """1 where exactly one of the two is positive, else 0."""
    return where(less(0, x), where(less(0, sign), 0, 1), where(less(0, sign), 1, 0))


def _from_corner(best: _Nearest, differ: list[Any], reach: list[Any], axis: Any) -> tuple[Any, Any]:
    """From a corner: along the edge or across the face that the axis follows, if it does not just point at the corner."""
    count = differ[0] + differ[1] + differ[2]
    there = logical_and(less(0, count), less(count, 3))
    way = where(equal(count, 1), 1, -1)  # towards the odd one out of the three axes
    step: Any = 0
    for k in range(3):
        odd = equal(differ[k], where(less(0, way), 1, 0))
        along = way * minimum(1 - way * best.along, reach[k])
        across = -way * minimum(1 + way * best.along, minimum(reach[(k + 1) % 3], reach[(k + 2) % 3]))
        step = where(odd, where(less(0.5, axis[k] * axis[k]), along, across), step)
    return step, there


def _from_edge(
    best: _Nearest, differ: list[Any], reach: list[Any], h: Any, axis: Any, sizes: Any
) -> tuple[Any, Any]:
    """From within an edge: across the face with which the axis makes the smaller angle, if it crosses like an X."""
    step: Any = 0
    there: Any = False
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        here = logical_and(equal(best.edge, k), equal(differ[i] + differ[j], 1))
        there = logical_or(there, here)
        steep = less(absolute(axis[j]), absolute(axis[i]))  # then the axis runs over the face along i
        way = where(equal(where(steep, differ[i], differ[j]), 1), 1, -1)
        rest = where(equal(where(less(0, h[k]), 1, -1), way), 1 - best.on_edge, 1 + best.on_edge)
        length = minimum(1 - way * best.along, where(steep, reach[i], reach[j]))
        length = minimum(length, divide(sizes[k] * rest, absolute(h[k])))
        step = where(here, way * length, step)
    return step, there


def _from_face(best: _Nearest, point: Any, h: Any, sizes: Any) -> Any:
    """From a face: towards the other end, to where the axis leaves the face."""
    way = -best.end
    length: Any = 2
    for k in range(3):
        for side in (1, -1):
            to_side = divide(side * sizes[k] - point[k], h[k]) * way
            ahead = logical_and(less(0, to_side), logical_not(equal(best.face, k)))
            length = where(logical_and(ahead, less(to_side, length)), to_side, length)
    return way * length

"""Contact points of a sphere or a capsule with a box. Source: MuJoCo's collision functions (S. Kolev)."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
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
    minimum,
    not_equal,
    sqrt,
    where,
)

# MuJoCo's absolute bounds TINY hold where they are less than these relative ones, so that the contacts of
# tiny shapes are those of large ones
PARALLEL = 1e-4  # squared sine below which a capsule's axis and an edge are parallel
TIE = 1e-9  # difference of squared distances, relative to the squared sizes


def sphere_box(sphere: PlacedShape, box: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One contact point: with the nearest point of the box or, from inside, with the nearest face."""
    return (sphere_box_at(sphere.p, sphere.sizes[0], box),)


def sphere_box_at(centre: np.ndarray, r: Any, box: PlacedShape) -> ContactPoint:
    """Contact point of a sphere at `centre` with radius r and a box; the normal points into the box."""
    c = box.R.T @ (centre - box.p)
    nearest = np.array([clip(x, -s, s) for x, s in zip(c, box.sizes, strict=True)])
    inward = nearest - c
    square = inward @ inward
    inside = less_equal(square, TINY * TINY)
    distance = sqrt(where(inside, 1.0, square))
    face, depth = _nearest_face(c, box.sizes)
    normal = np.array([where(inside, f, divide(x, distance)) for f, x in zip(face, inward, strict=True)])
    distance = where(inside, -depth, distance)
    # half direction between the ball's deepest point and the box's surface
    position = c + normal * ((r + distance) / 2)
    return ContactPoint(distance - r, box.R @ position + box.p, contact_frame(box.R @ normal))


def _nearest_face(c: np.ndarray, sizes: Any) -> tuple[list[Any], Any]:
    """The direction into the box at the face nearest to an inner point, and the distance of that face."""
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
    """The nearest point of a capsule's axis and a box, in the box's axes.

    square: of the distance. along: in [-1, 1] on the half axis. side: -1, 0, 1 on the edge (lower corner,
    between, upper). on_edge: in [-1, 1] on the edge. edge: the axis along which it runs. corner: signs of
    the box's corner. end: -1 or 1 where the capsule's end faces a face, else 0. face: the axis of that face,
    or -1.
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
    """Two contact points: at the nearest point of the axis, and (or FAR) where the axis leaves the face or
    edge along which it lies.

    As in MuJoCo, an edge counts as parallel to the axis up to an absolute bound of 1e-15 m^4; for shapes
    below about two millimetres, up to a relative one.
    """
    radius, half = capsule.sizes
    axis = box.R.T @ capsule.R[:, 2]
    centre = box.R.T @ (capsule.p - box.p)
    h = axis * half
    tie = minimum(TINY, TIE * (half * half + sum(s * s for s in box.sizes)))
    best = _Nearest(FAR, 0, 0, 0, 0, (0, 0, 0), 0, 0)
    for end in (-1, 1):
        best = _with_end(best, centre + end * h, end, box.sizes)
    for k in range(3):
        for corner in range(8):
            if not corner & (1 << k):
                best = _with_edge(
                    best,
                    k,
                    tuple(1 if corner & (1 << i) else -1 for i in range(3)),
                    centre,
                    h,
                    half,
                    box.sizes,
                    tie,
                )
    offset, exists = _second_contact(best, centre, h, axis, box.sizes)
    first = sphere_box_at(box.p + box.R @ (centre + h * best.along), radius, box)
    second = sphere_box_at(box.p + box.R @ (centre + h * (best.along + offset)), radius, box)
    return first, select_contact(exists, second, ContactPoint(FAR, second.position, second.frame))


def _select_nearest(better: Any, new: _Nearest, old: _Nearest) -> _Nearest:
    """`new` where `better` holds, else `old`."""
    corner = tuple(where(better, x, y) for x, y in zip(new.corner, old.corner, strict=True))
    return _Nearest(
        *(
            corner if name == "corner" else where(better, getattr(new, name), getattr(old, name))
            for name in _Nearest._fields
        )
    )


def _with_end(best: _Nearest, point: np.ndarray, end: int, sizes: Any) -> _Nearest:
    """The nearest point, with an end of the capsule that is outside of at most one pair of faces."""
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
    return _select_nearest(better, _Nearest(square, end, 0, 0, 0, (0, 0, 0), end, face), best)


def _with_edge(
    best: _Nearest, k: int, corner: tuple[int, ...], centre: Any, h: Any, half: Any, sizes: Any, tie: Any
) -> _Nearest:
    """The nearest point, with the nearest points of the capsule's axis and one edge of the box, where the
    square of their distance is smaller by more than `tie` [m^2].
    """
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
    difference = d - h * x2 + np.array([s * x1 if i == k else 0 for i in range(3)])
    square = difference @ difference
    crosses = less_equal(minimum(TINY, PARALLEL * aa * bb), absolute(det))
    better = logical_and(crosses, less(square, best.square - tie))
    signs = tuple(where(less(0, side), 1, -1) if i == k else sign for i, sign in enumerate(corner))
    return _select_nearest(better, _Nearest(square, x2, side, x1, k, signs, 0, -1), best)


def _second_contact(best: _Nearest, centre: Any, h: Any, axis: Any, sizes: Any) -> tuple[Any, Any]:
    """Offset of the second contact point from the first along the half axis, and whether it exists."""
    differ = [not_equal_signs(h[k], best.corner[k]) for k in range(3)]
    reach = [2 * divide(sizes[k], absolute(h[k])) for k in range(3)]
    corner, at_corner = _from_corner(best, differ, reach, axis)
    edge, at_edge = _from_edge(best, differ, reach, h, axis, sizes)
    face = _from_face(best, centre + h * best.end, h, sizes)
    on_face, on_corner = not_equal(best.end, 0), not_equal(best.side, 0)
    offset = where(on_face, face, where(on_corner, corner, edge))
    exists = where(
        on_face,
        where(less_equal(0, best.face), 1, 0),
        where(on_corner, where(at_corner, 1, 0), where(at_edge, 1, 0)),
    )
    exists = logical_and(less(0, exists), less(best.square, FAR))
    return where(exists, offset, 0), exists


def not_equal_signs(x: Any, sign: Any) -> Any:
    """1 where exactly one of the two is positive, else 0."""
    return where(less(0, x), where(less(0, sign), 0, 1), where(less(0, sign), 1, 0))


def _from_corner(best: _Nearest, differ: list[Any], reach: list[Any], axis: Any) -> tuple[Any, Any]:
    """From a corner: along the edge or across the face that the axis follows, unless it points at the
    corner.
    """
    count = differ[0] + differ[1] + differ[2]
    exists = logical_and(less(0, count), less(count, 3))
    direction = where(equal(count, 1), 1, -1)  # towards the odd one out of the three axes
    offset: Any = 0
    for k in range(3):
        odd = equal(differ[k], where(less(0, direction), 1, 0))
        along = direction * minimum(1 - direction * best.along, reach[k])
        across = -direction * minimum(
            1 + direction * best.along, minimum(reach[(k + 1) % 3], reach[(k + 2) % 3])
        )
        offset = where(odd, where(less(0.5, axis[k] * axis[k]), along, across), offset)
    return offset, exists


def _from_edge(
    best: _Nearest, differ: list[Any], reach: list[Any], h: Any, axis: Any, sizes: Any
) -> tuple[Any, Any]:
    """From inside an edge: across the face with which the axis makes the smaller angle, if it crosses the
    edge.
    """
    offset: Any = 0
    exists: Any = False
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        on_this_edge = logical_and(equal(best.edge, k), equal(differ[i] + differ[j], 1))
        exists = logical_or(exists, on_this_edge)
        steep = less(absolute(axis[j]), absolute(axis[i]))  # then the axis runs over the face along i
        direction = where(equal(where(steep, differ[i], differ[j]), 1), 1, -1)
        rest = where(equal(where(less(0, h[k]), 1, -1), direction), 1 - best.on_edge, 1 + best.on_edge)
        length = minimum(1 - direction * best.along, where(steep, reach[i], reach[j]))
        length = minimum(length, divide(sizes[k] * rest, absolute(h[k])))
        offset = where(on_this_edge, direction * length, offset)
    return offset, exists


def _from_face(best: _Nearest, point: Any, h: Any, sizes: Any) -> Any:
    """From a face: towards the other end, to where the axis leaves the face."""
    direction = -best.end
    length: Any = 2
    for k in range(3):
        for side in (1, -1):
            to_side = divide(side * sizes[k] - point[k], h[k]) * direction
            ahead = logical_and(less(0, to_side), logical_not(equal(best.face, k)))
            length = where(logical_and(ahead, less(to_side, length)), to_side, length)
    return direction * length

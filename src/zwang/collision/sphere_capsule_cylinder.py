"""Contact points of spheres, capsules and cylinders with each other. Source: MuJoCo's collision functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.norms import TINY
from zwang.algebra.rotations import cross
from zwang.collision.contact_point import FAR, ContactPoint, contact_frame, unit
from zwang.collision.shapes import PlacedShape
from zwang.scalar import (
    absolute,
    clip,
    cond,
    divide,
    less,
    less_equal,
    logical_and,
    logical_not,
    maximum,
    minimum,
    sqrt,
    where,
)


def sphere_sphere_at(a: np.ndarray, r_a: Any, b: np.ndarray, r_b: Any, fallback: Any) -> ContactPoint:
    """Contact point of two spheres; where the centres coincide the normal is the unit vector along
    `fallback`, or x.
    """
    towards = b - a
    distinct = less_equal(TINY * TINY, towards @ towards)
    zero = 0 * sum(fallback)  # of the fallback's kind of scalar, which both branches must return
    axis = cond(distinct, lambda: [1 + zero, zero, zero], lambda: [x + zero for x in unit(fallback)[0]])
    normal, distance = unit(towards, axis)
    distance = distance - r_a - r_b
    return ContactPoint(distance, a + normal * (r_a + distance / 2), contact_frame(normal))


def _common_normal(a: PlacedShape, b: PlacedShape) -> np.ndarray:
    """The cross product of both axes."""
    return cross(a.R[:, 2], b.R[:, 2])


def sphere_sphere(a: PlacedShape, b: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One contact point, on the line of the centres."""
    return (sphere_sphere_at(a.p, a.sizes[0], b.p, b.sizes[0], _common_normal(a, b)),)


def sphere_capsule(sphere: PlacedShape, capsule: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One contact point: of the sphere and a sphere at the nearest point of the capsule's axis."""
    radius, half = capsule.sizes
    axis = capsule.R[:, 2]
    nearest = capsule.p + axis * clip(axis @ (sphere.p - capsule.p), -half, half)
    return (sphere_sphere_at(sphere.p, sphere.sizes[0], nearest, radius, _common_normal(sphere, capsule)),)


def sphere_cylinder(sphere: PlacedShape, cylinder: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One contact point: with the side, a cap or a rim, whichever faces the sphere's centre (or is nearest
    to it, inside).
    """
    (r,), (radius, half) = sphere.sizes, cylinder.sizes
    axis = cylinder.R[:, 2]
    offset = sphere.p - cylinder.p
    x = axis @ offset
    outward = offset - axis * x
    square = outward @ outward
    side, cap = less(absolute(x), half), less(square, radius * radius)
    nearer_cap = less(half - absolute(x), radius - sqrt(square))
    on_cap = logical_and(cap, logical_not(logical_and(side, logical_not(nearer_cap))))
    on_side = logical_and(side, logical_not(on_cap))
    up = where(less(0, x), 1, -1)
    rim = (
        cylinder.p
        + axis * (up * half)
        + outward * divide(radius, sqrt(where(less(square, TINY * TINY), 1.0, square)))
    )
    centre = np.array([where(on_side, s, e) for s, e in zip(cylinder.p + axis * x, rim, strict=True)])
    ball = sphere_sphere_at(sphere.p, r, centre, where(on_side, radius, 0), _common_normal(sphere, cylinder))
    distance = up * x - half - r
    flat = ContactPoint(distance, sphere.p - axis * (up * (r + distance / 2)), contact_frame(-axis * up))
    return (select_contact(on_cap, flat, ball),)


def select_contact(condition: Any, one: ContactPoint, other: ContactPoint) -> ContactPoint:
    """The first contact point where the condition holds, else the second."""
    frame = [
        [where(condition, x, y) for x, y in zip(p, q, strict=True)]
        for p, q in zip(one.frame, other.frame, strict=True)
    ]
    position = [where(condition, x, y) for x, y in zip(one.position, other.position, strict=True)]
    return ContactPoint(where(condition, one.distance, other.distance), np.array(position), np.array(frame))


PARALLEL = 1e-8  # squared sine below which the axes of two capsules count as parallel


def capsule_capsule(a: PlacedShape, b: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One contact point at the nearest points of the axes, or two, at the ends of their common part, where
    they are parallel.

    The points at x1 in [-h_a, h_a] and x2 in [-h_b, h_b] along the axes A, B minimise |d + x1 A - x2 B|^2,
    with d between the centres.
    """
    A, B, (r_a, h_a), (r_b, h_b) = a.R[:, 2], b.R[:, 2], a.sizes, b.sizes
    d = a.p - b.p
    ab, u, v = -(A @ B), -(A @ d), B @ d
    across = cross(A, B)
    det = across @ across  # 1 - ab^2 without cancellation

    def at(x1: Any, x2: Any) -> ContactPoint:
        return sphere_sphere_at(a.p + A * x1, r_a, b.p + B * x2, r_b, across)

    def crossing(ab: Any, u: Any, v: Any, det: Any) -> tuple[ContactPoint, ...]:
        scale = divide(1, det)
        x1, x2 = scale * (u - ab * v), scale * (v - ab * u)
        end = clip(x1, -h_a, h_a)
        x2 = where(less(h_a, absolute(x1)), v - ab * end, x2)
        clamped = less(h_b, absolute(x2))
        x2 = clip(x2, -h_b, h_b)
        x1 = where(clamped, clip(u - ab * x2, -h_a, h_a), end)
        point = at(x1, x2)
        return point, ContactPoint(FAR, point.position, point.frame)

    def parallel(ab: Any, u: Any, v: Any, det: Any) -> tuple[ContactPoint, ...]:
        ends = [u - ab * x2 for x2 in (h_b, -h_b)]
        overlap_ends = [clip(x1, -h_a, h_a) for x1 in (minimum(*ends), maximum(*ends))]
        return tuple(at(x1, clip(v - ab * x1, -h_b, h_b)) for x1 in overlap_ends)

    return cond(less_equal(PARALLEL, det), crossing, parallel, ab, u, v, det)

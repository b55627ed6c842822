"""Gaps of spheres, capsules and cylinders with each other. Source: MuJoCo's collision functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.collision.contact_point import FAR, TINY, ContactPoint, contact_frame, unit
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


def sphere_sphere_at(a: np.ndarray, r_a: Any, b: np.ndarray, r_b: Any, spare: Any) -> ContactPoint:
    """The gap of two balls; where the centres coincide the normal is `spare` at unit length, or x."""
    towards = b - a
    apart = less_equal(TINY * TINY, towards @ towards)
    axis = cond(apart, lambda: [1, 0, 0], lambda: list(unit(spare)[0]))
    normal, distance = unit(towards, axis)
    gap = distance - r_a - r_b
    return ContactPoint(gap, a + normal * (r_a + gap / 2), contact_frame(normal))


def _spare(a: PlacedShape, b: PlacedShape) -> np.ndarray:
    return np.cross(a.R[:, 2], b.R[:, 2])


def sphere_sphere(a: PlacedShape, b: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One gap, on the line of the centres."""
    return (sphere_sphere_at(a.p, a.sizes[0], b.p, b.sizes[0], _spare(a, b)),)


def sphere_capsule(sphere: PlacedShape, capsule: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One gap: the sphere and a ball at the nearest point of the capsule's axis."""
    radius, half = capsule.sizes
    axis = capsule.R[:, 2]
    nearest = capsule.p + axis * clip(axis @ (sphere.p - capsule.p), -half, half)
    return (sphere_sphere_at(sphere.p, sphere.sizes[0], nearest, radius, _spare(sphere, capsule)),)


def sphere_cylinder(sphere: PlacedShape, cylinder: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One gap: with the side, with a cap, or with a rim, whichever the sphere's centre faces (or is nearest to, inside)."""
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
    ball = sphere_sphere_at(sphere.p, r, centre, where(on_side, radius, 0), _spare(sphere, cylinder))
    distance = up * x - half - r
    flat = ContactPoint(distance, sphere.p - axis * (up * (r + distance / 2)), contact_frame(-axis * up))
    return (select_contact(on_cap, flat, ball),)


def select_contact(condition: Any, one: ContactPoint, other: ContactPoint) -> ContactPoint:
    """The one gap where the condition holds, else the other."""
    frame = [
        [where(condition, x, y) for x, y in zip(p, q, strict=True)]
        for p, q in zip(one.frame, other.frame, strict=True)
    ]
    position = [where(condition, x, y) for x, y in zip(one.position, other.position, strict=True)]
    return ContactPoint(where(condition, one.distance, other.distance), np.array(position), np.array(frame))


PARALLEL = 1e-8  # of the sine squared, under which the axes of two capsules are parallel


def capsule_capsule(a: PlacedShape, b: PlacedShape, reach: Any) -> tuple[ContactPoint, ...]:
    """One gap at the nearest points of the axes, or two, at the ends of their common stretch, where these are parallel.

    The points at x1, x2 in [-1, 1] along the half axes A, B minimise |d + x1 A - x2 B|^2, d between the centres.
    """
    A, B = a.R[:, 2] * a.sizes[1], b.R[:, 2] * b.sizes[1]
    d = a.p - b.p
    aa, ab, bb = a.sizes[1] * a.sizes[1], -(A @ B), b.sizes[1] * b.sizes[1]
    u, v = -(A @ d), B @ d
    across = np.cross(A, B)
    det = across @ across  # aa bb - ab^2 without cancellation
    spare = _spare(a, b)

    def at(x1: Any, x2: Any) -> ContactPoint:
        return sphere_sphere_at(a.p + A * x1, a.sizes[0], b.p + B * x2, b.sizes[0], spare)

    def on_b(x1: Any, ab: Any, bb: Any, v: Any) -> Any:
        return divide(v - ab * x1, bb)

    def crossing(aa: Any, ab: Any, bb: Any, u: Any, v: Any, det: Any) -> tuple[ContactPoint, ...]:
        x1 = divide(bb * u - ab * v, det)
        x2 = divide(aa * v - ab * u, det)
        end = clip(x1, -1, 1)
        x2 = where(less(1, absolute(x1)), on_b(end, ab, bb, v), x2)
        beyond = less(1, absolute(x2))
        x2 = clip(x2, -1, 1)
        x1 = where(beyond, clip(divide(u - ab * x2, aa), -1, 1), end)
        gap = at(x1, x2)
        return gap, ContactPoint(FAR, gap.position, gap.frame)

    def parallel(aa: Any, ab: Any, bb: Any, u: Any, v: Any, det: Any) -> tuple[ContactPoint, ...]:
        ends = [divide(u - ab * x2, aa) for x2 in (1, -1)]
        stretch = [clip(x1, -1, 1) for x1 in (minimum(*ends), maximum(*ends))]
        return tuple(at(x1, clip(on_b(x1, ab, bb, v), -1, 1)) for x1 in stretch)

    return cond(less_equal(PARALLEL * (aa * bb), det), crossing, parallel, aa, ab, bb, u, v, det)

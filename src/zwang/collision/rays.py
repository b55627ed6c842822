"""Rays: the distance along a ray to the surface of a shape, and whether a point is inside a shape.

Each shape is solved in its own frame, as the first crossing of its surface with x(t) = p + t d, t >= 0. A ray
that starts inside a shape meets its surface from within; a plane is met from outside only. Source: MuJoCo
documentation, `mju_rayGeom`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zwang.collision.shapes import sizes_of, type_of_shape
from zwang.errors import UnsupportedError
from zwang.kinematics.poses import Pose
from zwang.mechanism.geometry import Geometry, Plane
from zwang.scalar import absolute, less, less_equal, logical_and, logical_or, sqrt, where

NOTHING = 1e10
"""The distance of a ray that meets nothing [m], above every distance in a model."""
TINY = 1e-15


def ray_distance(shape: Geometry, pose: Pose, origin: Any, direction: Any) -> Any:
    """Distance [m] from `origin` (3,) along the unit vector `direction` (3,) to a shape; NOTHING if it is not
    met.

    pose: of the shape in the world. Raises UnsupportedError for a mesh.
    """
    kind = type_of_shape(shape)
    if kind not in _RAYS:
        raise UnsupportedError(f"rays do not meet shapes of the kind {kind!r}, as {shape.name!r} is")
    p, d = pose.R.T @ (origin - pose.p), pose.R.T @ direction
    if isinstance(shape, Plane):
        return _plane(shape.extent, p, d)
    return _RAYS[kind](sizes_of(shape), p, d)


def is_inside(shape: Geometry, pose: Pose, point: Any) -> Any:
    """Whether a point (3,) is inside a shape, or on its surface."""
    x, y, z = pose.R.T @ (point - pose.p)
    sizes = sizes_of(shape)
    match type_of_shape(shape):
        case "sphere":
            return less_equal(x * x + y * y + z * z, sizes[0] * sizes[0])
        case "ellipsoid":
            a, b, c = sizes
            return less_equal((x / a) ** 2 + (y / b) ** 2 + (z / c) ** 2, 1)
        case "capsule":
            end = where(less(z, 0), -sizes[1], sizes[1])
            beyond = where(less(absolute(z), sizes[1]), 0.0, z - end)
            return less_equal(x * x + y * y + beyond * beyond, sizes[0] * sizes[0])
        case "cylinder":
            across = less_equal(x * x + y * y, sizes[0] * sizes[0])
            return logical_and(across, less_equal(absolute(z), sizes[1]))
    inside: Any = True
    for value, size in zip((x, y, z), sizes, strict=True):
        inside = logical_and(inside, less_equal(absolute(value), size))
    return inside


def _least(candidates: Sequence[tuple[Any, Any]]) -> Any:
    """The least t of the candidates (t, valid) with t >= 0; NOTHING if there is none."""
    best: Any = NOTHING
    for t, valid in candidates:
        better = logical_and(logical_and(valid, less_equal(0, t)), less(t, best))
        best = where(better, t, best)
    return best


def _roots(a: Any, b: Any, c: Any) -> list[tuple[Any, Any]]:
    """The roots (t, real) of a t^2 + 2 b t + c = 0."""
    determinant = b * b - a * c
    real = logical_and(less(TINY, a), less_equal(0, determinant))
    root, scale = sqrt(where(real, determinant, 1.0)), where(real, a, 1.0)
    return [((-b - root) / scale, real), ((-b + root) / scale, real)]


def _plane(extent: Sequence[Any], p: np.ndarray, d: np.ndarray) -> Any:
    """From outside, that is, against the normal z, and within the extent of the plane."""
    towards = less(d[2], -TINY)
    t = -p[2] / where(towards, d[2], 1.0)
    valid: Any = towards
    for k, size in enumerate(extent):
        inside = less_equal(absolute(p[k] + t * d[k]), size)
        valid = logical_and(valid, logical_or(less_equal(size, 0), inside))
    return _least([(t, valid)])


def _sphere(sizes: Sequence[Any], p: np.ndarray, d: np.ndarray) -> Any:
    return _least(_roots(d @ d, d @ p, p @ p - sizes[0] * sizes[0]))


def _ellipsoid(sizes: Sequence[Any], p: np.ndarray, d: np.ndarray) -> Any:
    """The sphere of radius 1 in coordinates scaled by the semi-axes."""
    p, d = (np.array([x / s for x, s in zip(v, sizes, strict=True)]) for v in (p, d))
    return _least(_roots(d @ d, d @ p, p @ p - 1))


def _tube(radius: Any, half: Any, p: np.ndarray, d: np.ndarray) -> list[tuple[Any, Any]]:
    """Candidates on the side of a cylinder along z."""
    a, b = d[0] * d[0] + d[1] * d[1], d[0] * p[0] + d[1] * p[1]
    roots = _roots(a, b, p[0] * p[0] + p[1] * p[1] - radius * radius)
    return [(t, logical_and(real, less_equal(absolute(p[2] + t * d[2]), half))) for t, real in roots]


def _cylinder(sizes: Sequence[Any], p: np.ndarray, d: np.ndarray) -> Any:
    """Side and two flat ends."""
    radius, half = sizes
    crosses = less(TINY, absolute(d[2]))
    candidates = _tube(radius, half, p, d)
    for end in (-half, half):
        t = (end - p[2]) / where(crosses, d[2], 1.0)
        x, y = p[0] + t * d[0], p[1] + t * d[1]
        candidates.append((t, logical_and(crosses, less_equal(x * x + y * y, radius * radius))))
    return _least(candidates)


def _capsule(sizes: Sequence[Any], p: np.ndarray, d: np.ndarray) -> Any:
    """Side, and the outer halves of two spheres."""
    radius, half = sizes
    candidates = _tube(radius, half, p, d)
    for sign in (-1, 1):
        q = p - np.array([0, 0, sign * half])
        for t, real in _roots(d @ d, d @ q, q @ q - radius * radius):
            outside = less_equal(half, sign * (p[2] + t * d[2]))
            candidates.append((t, logical_and(real, outside)))
    return _least(candidates)


def _box(sizes: Sequence[Any], p: np.ndarray, d: np.ndarray) -> Any:
    """Six faces."""
    candidates: list[tuple[Any, Any]] = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        crosses = less(TINY, absolute(d[k]))
        for sign in (-1, 1):
            t = (sign * sizes[k] - p[k]) / where(crosses, d[k], 1.0)
            inside = [less_equal(absolute(p[n] + t * d[n]), sizes[n]) for n in (i, j)]
            candidates.append((t, logical_and(crosses, logical_and(*inside))))
    return _least(candidates)


_RAYS: dict[str, Callable[[Sequence[Any], np.ndarray, np.ndarray], Any]] = {
    "plane": _plane, "sphere": _sphere, "capsule": _capsule, "ellipsoid": _ellipsoid, "cylinder": _cylinder,
    "box": _box,
}  # fmt: skip
RAY_KINDS = tuple(_RAYS)
"""The kinds of shapes that rays meet."""


def meets(distance: Any) -> Any:
    """Whether a ray of this distance meets a shape."""
    return less(distance, NOTHING)

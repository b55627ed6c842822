"""Rays: the distance along a ray to the surface of a shape, and whether a point is inside a shape.

Each shape is solved in its own frame, as the first crossing of its surface with x(t) = p + t d, t >= 0. A ray
that starts inside a shape meets its surface from within; a plane is met from outside only. Source: MuJoCo
documentation, `mju_rayGeom`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
from zwang.algebra.rotations import cross
from zwang.collision.shapes import sizes_of, type_of_shape
from zwang.kinematics.poses import Pose
from zwang.mechanism.geometry import Geometry, HeightField, Mesh, Plane
from zwang.scalar import (
    absolute,
    cond,
    divide,
    fori_loop,
    less,
    less_equal,
    logical_and,
    logical_or,
    sqrt,
    table,
    where,
)

NOTHING = 1e10
"""The distance of a ray that meets nothing [m], above every distance in a model."""


class RayHit(NamedTuple):
    """The distance [m] along a ray to a surface, NOTHING if none is met, and a normal (3,) of the surface
    there, outwards and of any length.
    """

    distance: Any
    normal: np.ndarray


Candidate = tuple[Any, Any, np.ndarray]
"""A crossing (t, valid, normal) of a ray with a surface."""


def ray_distance(shape: Geometry, pose: Pose, origin: Any, direction: Any) -> Any:
    """Distance [m] from `origin` (3,) along the unit vector `direction` (3,) to a shape; NOTHING if it is not
    met. pose: of the shape in the world.
    """
    return ray_hit(shape, pose, origin, direction).distance


def ray_hit(shape: Geometry, pose: Pose, origin: Any, direction: Any) -> RayHit:
    """`ray_distance`, and the normal of the surface in world axes."""
    p, d = pose.R.T @ (origin - pose.p), pose.R.T @ direction
    hit = _RAYS[type_of_shape(shape)](shape, p, d)
    return RayHit(hit.distance, pose.R @ hit.normal)


def nearest_hit(hits: Sequence[RayHit]) -> RayHit:
    """The nearest one of these hits; NOTHING if there is none."""
    return _nearest([(hit.distance, True, hit.normal) for hit in hits])


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


def _nearest(candidates: Sequence[Candidate]) -> RayHit:
    """The candidate of least t >= 0; NOTHING if there is none."""
    best, normal = NOTHING, np.zeros(3)
    for t, valid, n in candidates:
        better = logical_and(logical_and(valid, less_equal(0, t)), less(t, best))
        best = where(better, t, best)
        normal = np.array([where(better, x, y) for x, y in zip(n, normal, strict=True)])
    return RayHit(best, normal)


def _roots(a: Any, b: Any, c: Any) -> list[tuple[Any, Any]]:
    """The roots (t, real) of a t^2 + 2 b t + c = 0."""
    determinant = b * b - a * c
    real = logical_and(less(TINY, a), less_equal(0, determinant))
    root, scale = sqrt(where(real, determinant, 1.0)), where(real, a, 1.0)
    return [((-b - root) / scale, real), ((-b + root) / scale, real)]


def _plane(shape: Plane, p: np.ndarray, d: np.ndarray) -> RayHit:
    """From outside, that is, against the normal z, and within the extent of the plane."""
    towards = less(d[2], -TINY)
    t = -p[2] / where(towards, d[2], 1.0)
    valid: Any = towards
    for k, size in enumerate(shape.extent):
        inside = less_equal(absolute(p[k] + t * d[k]), size)
        valid = logical_and(valid, logical_or(less_equal(size, 0), inside))
    return _nearest([(t, valid, np.array([0, 0, 1]))])


def _sphere(shape: Geometry, p: np.ndarray, d: np.ndarray) -> RayHit:
    (radius,) = sizes_of(shape)
    roots = _roots(d @ d, d @ p, p @ p - radius * radius)
    return _nearest([(t, real, p + t * d) for t, real in roots])


def _ellipsoid(shape: Geometry, p: np.ndarray, d: np.ndarray) -> RayHit:
    """The sphere of radius 1 in coordinates scaled by the semi-axes."""
    s = np.array(sizes_of(shape))
    roots = _roots((d / s) @ (d / s), (d / s) @ (p / s), (p / s) @ (p / s) - 1)
    return _nearest([(t, real, (p + t * d) / (s * s)) for t, real in roots])


def _tube(radius: Any, half: Any, p: np.ndarray, d: np.ndarray) -> list[Candidate]:
    """Candidates on the side of a cylinder along z."""
    a, b = d[0] * d[0] + d[1] * d[1], d[0] * p[0] + d[1] * p[1]
    roots = _roots(a, b, p[0] * p[0] + p[1] * p[1] - radius * radius)
    across = np.array([1, 1, 0])
    return [
        (t, logical_and(real, less_equal(absolute(p[2] + t * d[2]), half)), (p + t * d) * across)
        for t, real in roots
    ]


def _cylinder(shape: Geometry, p: np.ndarray, d: np.ndarray) -> RayHit:
    """Side and two flat ends."""
    radius, half = sizes_of(shape)
    crosses = less(TINY, absolute(d[2]))
    candidates = _tube(radius, half, p, d)
    for sign in (-1, 1):
        t = (sign * half - p[2]) / where(crosses, d[2], 1.0)
        x, y = p[0] + t * d[0], p[1] + t * d[1]
        valid = logical_and(crosses, less_equal(x * x + y * y, radius * radius))
        candidates.append((t, valid, np.array([0, 0, sign])))
    return _nearest(candidates)


def _capsule(shape: Geometry, p: np.ndarray, d: np.ndarray) -> RayHit:
    """Side, and the outer halves of two spheres."""
    radius, half = sizes_of(shape)
    candidates = _tube(radius, half, p, d)
    for sign in (-1, 1):
        q = p - np.array([0, 0, sign * half])
        for t, real in _roots(d @ d, d @ q, q @ q - radius * radius):
            outside = less_equal(half, sign * (p[2] + t * d[2]))
            candidates.append((t, logical_and(real, outside), q + t * d))
    return _nearest(candidates)


def box_faces(sizes: Sequence[Any], p: np.ndarray, d: np.ndarray) -> list[Candidate]:
    """Candidates on the six faces of a box with these half sizes."""
    candidates: list[Candidate] = []
    for k in range(3):
        i, j = (k + 1) % 3, (k + 2) % 3
        crosses = less(TINY, absolute(d[k]))
        for sign in (-1, 1):
            t = (sign * sizes[k] - p[k]) / where(crosses, d[k], 1.0)
            inside = [less_equal(absolute(p[n] + t * d[n]), sizes[n]) for n in (i, j)]
            normal = np.array([sign if n == k else 0 for n in range(3)])
            candidates.append((t, logical_and(crosses, logical_and(*inside)), normal))
    return candidates


def _box(shape: Geometry, p: np.ndarray, d: np.ndarray) -> RayHit:
    return _nearest(box_faces(sizes_of(shape), p, d))


def _triangle(corners: Sequence[np.ndarray], p: np.ndarray, d: np.ndarray) -> Candidate:
    """The plane of three corners, within their triangle, by barycentric coordinates (Moeller, Trumbore)."""
    one, two, from_first = corners[1] - corners[0], corners[2] - corners[0], p - corners[0]
    normal = cross(one, two)
    determinant = -(normal @ d)
    crosses = less(TINY, absolute(determinant))
    scale = divide(1, where(crosses, determinant, 1.0))
    turned = cross(from_first, d)
    u, v = two @ turned * scale, -(one @ turned) * scale
    inside = logical_and(logical_and(less_equal(0, u), less_equal(0, v)), less_equal(u + v, 1))
    return from_first @ normal * scale, logical_and(crosses, inside), normal


def _with_triangle(hit: RayHit, corners: Sequence[np.ndarray], p: np.ndarray, d: np.ndarray) -> RayHit:
    """The nearer one of a hit and that of a triangle."""
    return _nearest([(hit.distance, True, hit.normal), _triangle(corners, p, d)])


def _mesh(shape: Mesh, p: np.ndarray, d: np.ndarray) -> RayHit:
    """All triangles, from either side, if the ray meets the bounding sphere."""
    vertices, faces = np.asarray(shape.vertices, float), np.asarray(shape.faces, int)
    if not len(faces):
        return RayHit(NOTHING, np.zeros(3))
    rows, numbers = table(vertices), table(faces)
    middle = (vertices.min(axis=0) + vertices.max(axis=0)) / 2
    radius = float(np.linalg.norm(vertices - middle, axis=1).max()) * (1 + 1e-9)

    def add(k: Any, hit: RayHit) -> RayHit:
        corners = [np.array([rows[numbers[k, i], c] for c in range(3)]) for i in range(3)]
        return _with_triangle(hit, corners, p, d)

    q = p - middle
    along = q @ d
    near = less_equal(q @ q - along * along / (d @ d), radius * radius)
    hit = RayHit(NOTHING + 0.0, np.zeros(3) + 0.0)
    return cond(near, lambda hit: fori_loop(0, len(faces), add, hit), lambda hit: hit, hit)


def _height_field(shape: HeightField, p: np.ndarray, d: np.ndarray) -> RayHit:
    """The box of the base, the triangles of the surface, and the sides under its edges."""
    (rows, columns), heights = shape.grid, np.asarray(shape.heights, float)
    half = np.array(shape.extent)
    steps = 2 * half / np.array([columns - 1, rows - 1])
    values, tops = table(heights.ravel()), table(np.maximum(heights[:-1], heights[1:]).max(axis=1))
    low = shape.base / 2
    hit = _nearest(box_faces((*half, low), p + np.array([0, 0, low]), d))
    hit = RayHit(hit.distance + 0.0, hit.normal + 0.0)

    def corner(r: Any, c: Any, row: int, column: int) -> np.ndarray:
        x, y = steps[0] * (1.0 * c + column) - half[0], steps[1] * (1.0 * r + row) - half[1]
        return np.array([x, y, values[(r + row) * columns + c + column]])

    def cells_of(r: Any, hit: RayHit) -> RayHit:
        def cell(c: Any, hit: RayHit) -> RayHit:
            for two, three in (((0, 1), (1, 1)), ((1, 1), (1, 0))):
                corners = [corner(r, c, 0, 0), corner(r, c, *two), corner(r, c, *three)]
                hit = _with_triangle(hit, corners, p, d)
            return hit

        return fori_loop(0, columns - 1, cell, hit)

    def strip(r: Any, hit: RayHit) -> RayHit:
        """The cells of a row, if the ray meets the box around them."""
        size = np.array([half[0], steps[1] / 2, tops[r] / 2 + 1e-9]) * (1 + 1e-9)
        centre = np.array([0, steps[1] * (1.0 * r + 0.5) - half[1], tops[r] / 2])
        near = meets(_nearest(box_faces([*size], p - centre, d)).distance)
        return cond(near, lambda hit: cells_of(r, hit), lambda hit: hit, hit)

    hit = fori_loop(0, rows - 1, strip, hit)
    for axis, sign in ((0, -1), (0, 1), (1, -1), (1, 1)):
        edge = heights[:, 0 if sign < 0 else -1] if axis == 0 else heights[0 if sign < 0 else -1]
        hit = _with_side(hit, edge, axis, sign, half, p, d)
    return hit


def _with_side(
    hit: RayHit, edge: np.ndarray, axis: int, sign: int, half: np.ndarray, p: np.ndarray, d: np.ndarray
) -> RayHit:
    """The nearer one of a hit and that of the side of a height field under these heights."""
    other = 1 - axis
    crosses = less(TINY, absolute(d[axis]))
    t = (sign * half[axis] - p[axis]) / where(crosses, d[axis], 1.0)
    across, z = p[other] + t * d[other], p[2] + t * d[2]
    step = 2 * half[other] / (len(edge) - 1)
    values = table(edge)

    def below(k: Any, found: Any) -> Any:
        share = (across + half[other]) / step - 1.0 * k
        height = values[k] + (values[k + 1] - values[k]) * share
        inside = logical_and(less_equal(0, share), less_equal(share, 1))
        return where(logical_and(inside, less(z, height)), 1.0, found)

    under = fori_loop(0, len(edge) - 1, below, 0.0)
    valid = logical_and(logical_and(crosses, less_equal(0, z)), less(0, under))
    normal = np.array([sign if k == axis else 0 for k in range(3)])
    return _nearest([(hit.distance, True, hit.normal), (t, valid, normal)])


_RAYS: dict[str, Callable[..., RayHit]] = {
    "plane": _plane, "sphere": _sphere, "capsule": _capsule, "ellipsoid": _ellipsoid, "cylinder": _cylinder,
    "box": _box, "mesh": _mesh, "heightfield": _height_field,
}  # fmt: skip


def meets(distance: Any) -> Any:
    """Whether a ray of this distance meets a shape."""
    return less(distance, NOTHING)

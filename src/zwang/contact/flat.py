"""Gaps of a plane and another shape; the normal is the plane's z axis. Source: MuJoCo's collision functions."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.contact.gap import FAR, TINY, Gap, contact_frame, unit
from zwang.contact.kinds import Placed
from zwang.scalar import less, sqrt, where


def _point(plane: Placed, point: np.ndarray, radius: Any, frame: np.ndarray) -> Gap:
    """The gap of a ball around a point: half the depth below its lowest point."""
    n = plane.R[:, 2]
    distance = (point - plane.p) @ n - radius
    return Gap(distance, point - n * (radius + distance / 2), frame)


def plane_sphere(plane: Placed, sphere: Placed, reach: Any) -> tuple[Gap, ...]:
    """One gap, at the lowest point."""
    return (_point(plane, sphere.p, sphere.sizes[0], contact_frame(plane.R[:, 2])),)


def plane_capsule(plane: Placed, capsule: Placed, reach: Any) -> tuple[Gap, ...]:
    """A gap at each end; the first tangent follows the capsule's axis."""
    radius, half = capsule.sizes
    axis = capsule.R[:, 2]
    frame = contact_frame(plane.R[:, 2], axis)
    return tuple(_point(plane, capsule.p + s * half * axis, radius, frame) for s in (1, -1))


def plane_ellipsoid(plane: Placed, ellipsoid: Placed, reach: Any) -> tuple[Gap, ...]:
    """One gap, at the point with the plane's normal: -R S^2 R^T n / |S R^T n| from the centre, S the semi-axes."""
    n = plane.R[:, 2]
    s = np.array(ellipsoid.sizes)
    direction = s * (ellipsoid.R.T @ n)
    lowest = ellipsoid.p - ellipsoid.R @ (s * direction) / sqrt(direction @ direction)
    return (_point(plane, lowest, 0, contact_frame(n)),)


def plane_cylinder(plane: Placed, cylinder: Placed, reach: Any) -> tuple[Gap, ...]:
    """Four gaps: the lowest points of both rims, and two more on the lower rim, 120 degrees to either side."""
    radius, half = cylinder.sizes
    n = plane.R[:, 2]
    axis = cylinder.R[:, 2]
    axis = where(less(0, n @ axis), -1, 1) * axis  # downwards
    down = (n @ axis) * axis - n
    square = down @ down
    flat = less(square, TINY * TINY)  # a disc parallel to the plane: any direction will do, its own x
    scale = radius / sqrt(where(flat, 1.0, square))
    across = np.array(
        [where(flat, radius * x, scale * d) for x, d in zip(cylinder.R[:, 0], down, strict=True)]
    )
    sideways = unit(np.cross(across, axis))[0] * (radius * (3**0.5 / 2))
    frame = contact_frame(n)
    lower, upper = cylinder.p + half * axis, cylinder.p - half * axis
    points = (lower + across, upper + across, lower - across / 2 + sideways, lower - across / 2 - sideways)
    return tuple(_point(plane, point, 0, frame) for point in points)


def plane_box(plane: Placed, box: Placed, reach: Any) -> tuple[Gap, ...]:
    """Four gaps: of each two opposite corners the lower one."""
    n = plane.R[:, 2]
    frame = contact_frame(n)
    x, y, z = (box.R[:, k] * box.sizes[k] for k in range(3))
    found = []
    for corner in (-x - y - z, x - y - z, -x + y - z, x + y - z):
        lower = where(less(0, n @ corner), -1, 1)
        found.append(_point(plane, box.p + lower * corner, 0, frame))
    return tuple(found)


def plane_mesh(plane: Placed, mesh: Placed, reach: Any) -> tuple[Gap, ...]:
    """Up to four gaps: the deepest corner, the one farthest from it, and two to either side of their line.

    Floats only. The corners of a face that lies on the plane are many; these span it.
    """
    n = np.asarray(plane.R[:, 2], float)
    corners = np.asarray(mesh.p, float) + np.asarray(mesh.sizes, float) @ np.asarray(mesh.R, float).T
    heights = (corners - plane.p) @ n
    frame = contact_frame(n)
    chosen = _spanning(corners, heights, n, float(reach))
    found = [_point(plane, corners[k], 0, frame) for k in chosen]
    return tuple(found + [Gap(FAR, found[0].position, frame)] * (4 - len(found)))


def _spanning(corners: np.ndarray, heights: np.ndarray, n: np.ndarray, reach: float) -> list[int]:
    first = int(np.argmin(heights))
    near = [k for k in np.flatnonzero(heights <= reach) if k != first]
    if not near:
        return [first]
    flat = corners - np.outer(heights, n)
    second = max(near, key=lambda k: np.linalg.norm(flat[k] - flat[first]))
    side = np.cross(n, flat[second] - flat[first])
    offsets = {k: float((flat[k] - flat[first]) @ side) for k in near if k != second}
    ends = (
        {max(offsets, key=offsets.__getitem__), min(offsets, key=offsets.__getitem__)} if offsets else set()
    )
    return [first, int(second), *sorted(int(k) for k in ends if abs(offsets[k]) > 1e-12)]

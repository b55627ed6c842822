"""Overlaps of geoms along the contact normals of two programs, by support functions of their own."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import mujoco
import numpy as np

Support = Callable[[np.ndarray], float]
GEOM = mujoco.mjtGeom


class Found(NamedTuple):
    """A contact of a program: the two geoms, the normal from the first to the second, the distance [m]."""

    geoms: tuple[int, int]
    normal: np.ndarray
    distance: float


def overlap_differences(model: Any, data: Any, ours: Iterable[Found]) -> list[float]:
    """By how much [m] the overlap of bounded convex geoms along zwang's normal is, at most, less and more
    than that along MuJoCo's.

    Along the normal of the deepest contact of a pair of geoms, the least overlap is the penetration depth.
    """
    theirs = [
        Found((int(c.geom[0]), int(c.geom[1])), c.frame[:3].copy(), float(c.dist)) for c in data.contact
    ]
    first, second = deepest(theirs), deepest(ours)
    less = more = 0.0
    for geoms in first.keys() & second.keys():
        a, b = (support_of(model, data, geom) for geom in geoms)
        if a is not None and b is not None:
            overlap, other = (a(found[geoms].normal) + b(-found[geoms].normal) for found in (first, second))
            less, more = max(less, overlap - other), max(more, other - overlap)
    return [less, more]


def deepest(contacts: Iterable[Found]) -> dict[tuple[int, int], Found]:
    """The deepest contact of each pair of geoms that overlap, with the lower geom first."""
    found: dict[tuple[int, int], Found] = {}
    for (a, b), normal, distance in contacts:
        own = Found((a, b), normal, distance) if a < b else Found((b, a), -normal, distance)
        if distance < 0 and distance < found.get(own.geoms, own._replace(distance=np.inf)).distance:
            found[own.geoms] = own
    return found


def support_of(model: Any, data: Any, geom: int) -> Support | None:
    """The function from a direction to the farthest extent of a geom along it; None for other geoms than
    bounded convex ones.
    """
    kind, size = GEOM(model.geom_type[geom]), model.geom_size[geom]
    p, R = data.geom_xpos[geom], data.geom_xmat[geom].reshape(3, 3)
    if kind == GEOM.mjGEOM_MESH:
        mesh = model.geom_dataid[geom]
        start = model.mesh_vertadr[mesh]
        vertices = model.mesh_vert[start : start + model.mesh_vertnum[mesh]].astype(float)
        return lambda n: float((vertices @ (R.T @ n)).max() + p @ n)
    extents: dict[Any, Callable[[np.ndarray], Any]] = {
        GEOM.mjGEOM_SPHERE: lambda x: size[0],
        GEOM.mjGEOM_CAPSULE: lambda x: size[0] + size[1] * abs(x[2]),
        GEOM.mjGEOM_ELLIPSOID: lambda x: np.linalg.norm(size * x),
        GEOM.mjGEOM_CYLINDER: lambda x: size[0] * np.hypot(x[0], x[1]) + size[1] * abs(x[2]),
        GEOM.mjGEOM_BOX: lambda x: size @ np.abs(x),
    }
    if kind not in extents:
        return None
    return lambda n: float(extents[kind](R.T @ n) + p @ n)

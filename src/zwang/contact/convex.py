"""Gaps of convex shapes by their support functions: the reference for pairs without a closed form. Floats only.

Apart, by Gilbert, Johnson and Keerthi's descent on the difference of the shapes; overlapping, by expanding a polytope
within it to its nearest face. Balls and capsules enter as a point and a stretch, which their radius surrounds, so that
shallow contacts of them are exact.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from zwang.contact.gap import FAR, Gap, contact_frame
from zwang.contact.kinds import Placed

TOLERANCE = 1e-11  # relative to the size of the shapes
MOST_STEPS = 300
Support = Callable[[np.ndarray], np.ndarray]


class Core(NamedTuple):
    """A convex shape: the point of its core farthest along a direction, a radius around, its centre and size."""

    support: Support
    radius: float
    centre: np.ndarray
    size: float


class Nearest(NamedTuple):
    """The nearest (or deepest) points of two shapes, the direction from the first to the second, the signed distance."""

    distance: float
    normal: np.ndarray
    first: np.ndarray
    second: np.ndarray


def core_of(kind: str, shape: Placed) -> Core:
    """The support function of a shape in the world."""
    R, p = np.asarray(shape.R, float), np.asarray(shape.p, float)
    sizes = np.asarray(shape.sizes, float)
    local, radius = _LOCAL[kind](sizes)
    size = float(np.abs(sizes).max()) if kind == "mesh" else float(sizes.sum())
    return Core(lambda d: p + R @ local(R.T @ d), radius, p, size)


def _ball(sizes: np.ndarray) -> tuple[Support, float]:
    return lambda d: np.zeros(3), float(sizes[0])


def _capsule(sizes: np.ndarray) -> tuple[Support, float]:
    return lambda d: np.array([0, 0, np.copysign(sizes[1], d[2])]), float(sizes[0])


def _ellipsoid(sizes: np.ndarray) -> tuple[Support, float]:
    def support(d: np.ndarray) -> np.ndarray:
        scaled = sizes * d
        return sizes * scaled / np.linalg.norm(scaled)

    return support, 0.0


def _cylinder(sizes: np.ndarray) -> tuple[Support, float]:
    def support(d: np.ndarray) -> np.ndarray:
        across = np.hypot(d[0], d[1])
        scale = sizes[0] / across if across > 1e-15 else 0.0
        return np.array([d[0] * scale, d[1] * scale, np.copysign(sizes[1], d[2])])

    return support, 0.0


def _box(sizes: np.ndarray) -> tuple[Support, float]:
    return lambda d: np.copysign(sizes, d), 0.0


def _mesh(corners: np.ndarray) -> tuple[Support, float]:
    return lambda d: corners[int(np.argmax(corners @ d))], 0.0


_LOCAL = {
    "sphere": _ball,
    "capsule": _capsule,
    "ellipsoid": _ellipsoid,
    "cylinder": _cylinder,
    "box": _box,
    "mesh": _mesh,
}


def nearest_points(a: Core, b: Core) -> Nearest:
    """The nearest points of two convex shapes, or those that are deepest in the other."""
    found = _apart(a, b)
    if found is None:
        found = _overlapping(a, b)
    n = found.normal
    return Nearest(
        found.distance - a.radius - b.radius, n, found.first + a.radius * n, found.second - b.radius * n
    )


def _apart(a: Core, b: Core) -> Nearest | None:
    """By descent on the difference b - a; nothing where the cores overlap."""
    scale = a.size + b.size
    direction = a.centre - b.centre
    points: list[tuple[np.ndarray, np.ndarray]] = []
    closest = np.inf
    v = -direction if np.linalg.norm(direction) > 1e-9 * scale else np.array([1.0, 0, 0])
    for _ in range(MOST_STEPS):
        pair = (a.support(v), b.support(-v))
        w = pair[1] - pair[0]
        if points and v @ v - v @ w <= TOLERANCE * scale * np.linalg.norm(v):
            break
        points.append(pair)
        weights, points = _smallest(points)
        v = sum(t * (q - p) for t, (p, q) in zip(weights, points, strict=True))
        length = np.linalg.norm(v)
        if length <= 1e-9 * scale:
            return None
        if length >= closest:
            break
        closest = length
    length = float(np.linalg.norm(v))
    first = sum(t * p for t, (p, _) in zip(weights, points, strict=True))
    second = sum(t * q for t, (_, q) in zip(weights, points, strict=True))
    return Nearest(length, v / length, first, second)


def _smallest(
    points: list[tuple[np.ndarray, np.ndarray]],
) -> tuple[np.ndarray, list[tuple[np.ndarray, np.ndarray]]]:
    """The part of a simplex that holds its point nearest to the origin, and that point's weights."""
    W = np.array([q - p for p, q in points])
    best: tuple[float, Any, Any] = (np.inf, None, None)
    for count in range(1, len(points) + 1):
        for chosen in combinations(range(len(points)), count):
            weights = _affine(W[list(chosen)])
            if weights is None or (weights < 0).any():
                continue
            square = float(np.sum((weights @ W[list(chosen)]) ** 2))
            if square < best[0] * (1 - 1e-14):
                best = (square, weights, chosen)
    return best[1], [points[i] for i in best[2]]


def _affine(W: np.ndarray) -> np.ndarray | None:
    """The weights, of sum one, of the point nearest to the origin in the plane of the points."""
    if len(W) == 1:
        return np.ones(1)
    E = W[1:] - W[0]
    G = E @ E.T
    if np.linalg.det(G) <= 1e-24 * np.prod(np.diag(G)):
        return None
    rest = np.linalg.solve(G, -E @ W[0])
    return np.concatenate([[1 - rest.sum()], rest])


_DIRECTIONS = np.array([d for d in np.ndindex(3, 3, 3) if d != (1, 1, 1)], float) - 1


def _overlapping(a: Core, b: Core) -> Nearest:
    """By expanding a polytope in the difference b - a until the origin's nearest face lies on its surface."""
    scale = a.size + b.size
    pairs = [
        (a.support(-d), b.support(d)) for d in _DIRECTIONS / np.linalg.norm(_DIRECTIONS, axis=1)[:, None]
    ]
    hull = _hull(np.array([q - p for p, q in pairs]))
    for _ in range(MOST_STEPS):
        face = int(np.argmax(hull.equations[:, 3]))  # the offset is minus the distance: this one is nearest
        outward, offset = hull.equations[face, :3], hull.equations[face, 3]
        pair = (a.support(-outward), b.support(outward))
        if (pair[1] - pair[0]) @ outward + offset <= TOLERANCE * scale:
            break
        pairs.append(pair)
        hull.add_points(np.array([pair[1] - pair[0]]))
    hull.close()
    corners = hull.simplices[face]
    W = np.array([pairs[i][1] - pairs[i][0] for i in corners])
    weights = np.linalg.lstsq(np.vstack([W.T, np.ones(3)]), np.append(-offset * outward, 1.0), rcond=None)[0]
    first, second = (
        sum(t * pairs[i][side] for t, i in zip(weights, corners, strict=True)) for side in (0, 1)
    )
    return Nearest(offset, -outward, first, second)


def _hull(points: np.ndarray) -> ConvexHull:
    try:
        return ConvexHull(points, incremental=True)
    except QhullError:  # a flat difference: joggled, it has a volume
        return ConvexHull(points, incremental=True, qhull_options="QJ")


def single(kind_a: str, kind_b: str) -> Callable[[Placed, Placed, Any], tuple[Gap, ...]]:
    """The function of a pair of which one is round all over: one gap."""

    def gaps(a: Placed, b: Placed, reach: Any) -> tuple[Gap, ...]:
        near = nearest_points(core_of(kind_a, a), core_of(kind_b, b))
        return (Gap(near.distance, (near.first + near.second) / 2, contact_frame(near.normal)),)

    return gaps


__all__ = ["FAR", "Core", "Nearest", "core_of", "nearest_points", "single"]

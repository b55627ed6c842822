"""Directions along which two convex shapes overlap least, by a search that takes only support functions.

The overlap along a unit vector n is the displacement of the second shape along n that separates it from the
first. Its least value over all n is the penetration depth. It may have several local minima.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
from zwang.collision.contact_point import contact_frame, unit
from zwang.collision.convex.gjk import inner, select_array
from zwang.collision.convex.support_functions import PRISM_EDGES, ConvexShape, prism_normals
from zwang.scalar import cond, empty, for_each, fori_loop, less, maximum, minimum, sqrt, table, where

TURNS = (2.0, 4.0, 10.0, 25.0, 60.0, 150.0)  # multiples of a turn that are tried, where it converges slowly
SHALLOW = 1e-2  # overlap, relative to the size of the shapes, up to which a local minimum suffices
ASIDE = 0.4  # [rad] between the centre of a sector and its other directions
WIDTHS = (0.35, 0.15, 0.06)  # [rad] of the steps from the best direction of a sector to better ones
BETWEEN = 0.04  # [rad] between a direction and the nearest of 4,000
KEPT = 4  # points of the Minkowski difference that stay while directions are tried
NEIGHBOURS = [(float(np.cos(t)), float(np.sin(t))) for t in np.arange(6) * np.pi / 3]


class OverlapDirection(NamedTuple):
    """A unit vector (3,), the overlap along it [m], and points (8, 3) of the Minkowski difference a - b.

    A point w bounds the overlap along every n from below, as it is at least n w. So directions along which
    the overlap cannot be less are not tried. points: first `KEPT` that stay, then those of the last
    directions.
    """

    normal: np.ndarray
    overlap: Any
    points: np.ndarray

    def with_kept_points(self, points: np.ndarray) -> OverlapDirection:
        """The same direction with other points that stay."""
        return self._replace(points=np.array([*points, *self.points[KEPT:]]))


def farthest_difference(a: ConvexShape, b: ConvexShape, n: np.ndarray) -> np.ndarray:
    """The point of a - b that is farthest along n (3,)."""
    return a.support(n) - b.support(-n)


def better(a: ConvexShape, b: ConvexShape, n: np.ndarray, best: OverlapDirection) -> OverlapDirection:
    """The direction n, or the best one so far."""

    def compared(best: OverlapDirection) -> OverlapDirection:
        w = farthest_difference(a, b, n)
        new = inner(n, w)
        shorter = less(new, best.overlap)
        points = [*best.points[:KEPT], w, *best.points[KEPT:-1]]
        normal = select_array(shorter, n * 1.0, best.normal)
        return OverlapDirection(normal, where(shorter, new, best.overlap), np.array(points))

    bound = reduce(maximum, [inner(n, w) for w in best.points])
    return cond(less(bound, best.overlap), compared, lambda best: best, best)


def direction_along_turn(
    a: ConvexShape, b: ConvexShape, old: np.ndarray, new: np.ndarray, points: np.ndarray
) -> OverlapDirection:
    """The direction of least overlap among `new` and multiples of the turn from `old` to it; points: see
    `OverlapDirection`.

    An iteration with slow linear convergence turns always in nearly the same direction.
    """
    turn = new - old
    return for_each(
        [(x,) for x in TURNS],
        lambda row, best: better(a, b, unit(old + row[0] * turn)[0], best),
        OverlapDirection(new * 1.0, inner(new, farthest_difference(a, b, new)), points),
        unroll=False,
    )


def initial_direction(a: ConvexShape, b: ConvexShape, first: OverlapDirection) -> OverlapDirection:
    """The direction of least overlap among `first`, the axes of the shapes, their cross products, the face
    normals of meshes and the line of the centres. The axes of meshes with too many faces do not count.
    """
    n = unit(b.centre - a.centre)[0]
    best = better(a, b, n, first._replace(normal=first.normal * 1.0))
    axes = [shape.sides.T if shape.faces or shape.kind != "mesh" else () for shape in (a, b)]
    directions = [*axes[0], *axes[1]]
    directions += [unit(cross(x, y), n)[0] for x in axes[0] for y in axes[1]]
    for shape, other in ((a, b), (b, a)):
        directions += _prism_directions(shape, other, n) if shape.kind == "prism" else []
    directions = [x for direction in directions for x in (direction, -direction)]
    stored = empty((len(directions), 3))
    for (k, c), x in np.ndenumerate(np.array(directions)):
        stored = stored.set((k, c), x)
    best = fori_loop(
        0,
        len(directions),
        lambda k, best: better(a, b, np.array([stored[k, c] for c in range(3)]), best),
        best,
        unroll=False,
    )
    for shape, sign in ((a, 1), (b, -1)):
        if shape.faces is not None:
            normals, begin, end = shape.faces
            best = fori_loop(
                begin,
                end,
                lambda k, best, R=shape.sides, s=sign, rows=normals: better(a, b, s * (R @ rows[k]), best),
                best,
            )
    return best


def _prism_directions(prism: ConvexShape, other: ConvexShape, default: np.ndarray) -> list[np.ndarray]:
    """The normals of the sides of a prism, and the cross products of its edges and the other's axes."""
    corners = prism.placed.sizes
    edges = [corners[end] - corners[start] for start, end in PRISM_EDGES]
    found = [prism.sides @ normal for normal in prism_normals(corners)]
    return found + [
        unit(cross(prism.sides @ edge, axis), default)[0] for edge in edges for axis in other.sides.T
    ]


def searched(a: ConvexShape, b: ConvexShape, best: OverlapDirection) -> OverlapDirection:
    """The better one of a direction and the best of a search over the sphere.

    Sectors of the sphere in which no direction can be better, as a point of a - b shows, are left out.
    """

    def in_sector(sector: Any, best: OverlapDirection) -> OverlapDirection:
        n = SECTOR_TABLE[PER_SECTOR * sector]
        w = farthest_difference(a, b, n)

        def visit(k: Any, carry: Any) -> Any:
            own, bound = carry
            n = SECTOR_TABLE[PER_SECTOR * sector + k]
            w = farthest_difference(a, b, n)
            own = _shorter(own._replace(normal=n, overlap=inner(n, w)), own)
            return own, minimum(bound, _lower_bound(n, w, CELL_RADIUS))

        def improve(own: OverlapDirection) -> OverlapDirection:
            return for_each(
                WIDTH_TABLE, lambda width, own: _neighbour(a, b, width[0], own), own, unroll=False
            )

        def refine(best: OverlapDirection) -> OverlapDirection:
            start = OverlapDirection(n * 1.0, inner(n, w), best.points)
            bound = minimum(best.overlap, _lower_bound(n, w, CELL_RADIUS))
            own, bound = fori_loop(1, PER_SECTOR, visit, (start, bound), unroll=False)
            own = cond(less(bound, best.overlap), improve, lambda own: own, own)
            return _shorter(own, best)._replace(points=own.points)

        near = less(_lower_bound(n, w, SECTOR_RADIUS), best.overlap)
        return cond(near, refine, lambda best: best, best)

    # the best axis may be a saddle of the overlap, from which the iteration does not depart
    best = for_each(WIDTH_TABLE[1:], lambda width, best: _neighbour(a, b, width[0], best), best, unroll=False)
    return fori_loop(0, len(SECTOR_TABLE) // PER_SECTOR, in_sector, best, unroll=False)


def _lower_bound(n: np.ndarray, w: np.ndarray, angle: float) -> Any:
    """A lower bound of m w over all unit vectors m within an angle of n (3,)."""
    along = inner(n, w)
    aside = sqrt(maximum(inner(w, w) - along * along, 0.0))
    return along * float(np.cos(angle)) - aside * float(np.sin(angle))


def _shorter(one: OverlapDirection, other: OverlapDirection) -> OverlapDirection:
    """The direction of less overlap, with the points of the first one."""
    shorter = less(one.overlap, other.overlap)
    normal = select_array(shorter, one.normal, other.normal)
    return OverlapDirection(normal, where(shorter, one.overlap, other.overlap), one.points)


def _neighbour(a: ConvexShape, b: ConvexShape, width: Any, own: OverlapDirection) -> OverlapDirection:
    """The best of a direction and its neighbours at an angle of about `width`."""
    n = own.normal
    T = contact_frame(n)[1:]
    return for_each(
        NEIGHBOURS,
        lambda row, best: better(a, b, unit(n + width * (np.array([row[0], row[1]]) @ T))[0], best),
        own,
        unroll=False,
    )


def sphere_directions(count: int) -> np.ndarray:
    """Uniformly distributed unit vectors (count, 3), on a golden-angle spiral."""
    z = 1 - (2 * np.arange(count) + 1) / count
    angle = np.arange(count) * np.pi * (3 - 5**0.5)
    return np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z], axis=1)


def _sectors() -> np.ndarray:
    """The directions of every sector (12, 4, 3): a corner of the icosahedron, and three around it."""
    golden = (1 + 5**0.5) / 2
    corners = np.array([(0.0, s, t * golden) for s in (-1, 1) for t in (-1, 1)]) / np.sqrt(1 + golden**2)
    centres = np.concatenate([np.roll(corners, k, axis=1) for k in range(3)])
    turns = np.arange(3) * (2 * np.pi / 3)
    around = np.stack([np.cos(turns), np.sin(turns)], axis=1)
    tangents = np.array([contact_frame(centre)[1:] for centre in centres], float)
    others = np.cos(ASIDE) * centres[:, None] + np.sin(ASIDE) * np.einsum("ki,nij->nkj", around, tangents)
    return np.concatenate([centres[:, None], others], axis=1)


def _radii(sectors: np.ndarray) -> tuple[float, float]:
    """The largest angle between the centre of a sector and a direction in it, one that is nearer to no other
    centre; and that between the latter and the nearest direction of its sector. Both with an allowance for
    the directions between those that are tried.
    """
    tried = sphere_directions(4000)
    cosines = tried @ sectors[:, 0].T
    nearest = np.einsum("ni,nki->nk", tried, sectors[np.argmax(cosines, axis=1)]).max(axis=1)
    to_centre, to_nearest = (float(np.arccos(x.min())) for x in (cosines.max(axis=1), nearest))
    return to_centre + BETWEEN, to_nearest + BETWEEN


SECTORS = _sectors()
SECTOR_RADIUS, CELL_RADIUS = _radii(SECTORS)
SECTOR_TABLE, PER_SECTOR = table(SECTORS.reshape(-1, 3)), SECTORS.shape[1]
WIDTH_TABLE = [(width,) for width in WIDTHS]

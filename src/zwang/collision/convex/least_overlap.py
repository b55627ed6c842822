"""Directions along which two convex shapes overlap least, by a search that takes only support functions.

The overlap along a unit vector n is the displacement of the second shape along n that separates it from the
first. Its least value over all n is the penetration depth. It may have several local minima.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.collision.contact_point import contact_frame, unit
from zwang.collision.convex.gjk import inner, select_array
from zwang.collision.convex.support_functions import PRISM_EDGES, ConvexShape, prism_normals
from zwang.scalar import cond, for_each, fori_loop, less, where

TURNS = (2.0, 4.0, 10.0, 25.0, 60.0, 150.0)  # multiples of a turn that are tried, where it converges slowly
SHALLOW = 1e-2  # overlap, relative to the size of the shapes, up to which the axes and faces suffice
SECTORS, PER_SECTOR = 12, 4  # of the sphere, and the directions of each
WIDTHS = (0.35, 0.15, 0.06)  # [rad] of the steps from the best direction of a sector to better ones
NEIGHBOURS = [(float(np.cos(t)), float(np.sin(t))) for t in np.arange(6) * np.pi / 3]

Direction = tuple[np.ndarray, Any]
"""A unit vector (3,) and the overlap along it [m]."""


def overlap(a: ConvexShape, b: ConvexShape, n: np.ndarray) -> Any:
    """The displacement of b along n that separates it from a."""
    return inner(n, a.support(n) - b.support(-n))


def _better(a: ConvexShape, b: ConvexShape, n: np.ndarray, best: Direction) -> Direction:
    """The direction n, or the best one so far."""
    new = overlap(a, b, n)
    shorter = less(new, best[1])
    return select_array(shorter, n * 1.0, best[0]), where(shorter, new, best[1])


def direction_along_turn(a: ConvexShape, b: ConvexShape, old: np.ndarray, new: np.ndarray) -> Direction:
    """The direction of least overlap among `new` and multiples of the turn from `old` to it.

    An iteration with slow linear convergence turns always in nearly the same direction.
    """
    turn = new - old
    return for_each(
        [(x,) for x in TURNS],
        lambda row, best: _better(a, b, unit(old + row[0] * turn)[0], best),
        (new * 1.0, overlap(a, b, new)),
        unroll=False,
    )


def initial_direction(a: ConvexShape, b: ConvexShape, scale: Any) -> Direction:
    """Direction of least overlap among the axes of the shapes, their cross products, the face normals of
    meshes and the line of the centres; for a deep overlap among those of a search over the sphere, too.

    A deep overlap may have several minima. If the least two are nearly equal, the direction may be that of
    the other one.
    """
    n = unit(b.centre - a.centre)[0]
    best = n, overlap(a, b, n)
    directions = [sides[:, k] for sides in (a.sides, b.sides) for k in range(3)]
    directions += [unit(cross(a.sides[:, i], b.sides[:, j]), n)[0] for i in range(3) for j in range(3)]
    for shape, other in ((a, b), (b, a)):
        directions += _prism_directions(shape, other, n) if shape.kind == "prism" else []
    for direction in (*directions, *(-direction for direction in directions)):
        best = _better(a, b, direction, best)
    for shape, sign in ((a, 1), (b, -1)):
        if shape.faces is not None:
            normals, begin, end = shape.faces
            best = fori_loop(
                begin,
                end,
                lambda k, best, R=shape.sides, s=sign, rows=normals: _better(a, b, s * (R @ rows[k]), best),
                best,
            )
    return cond(less(SHALLOW * scale, best[1]), lambda best: _searched(a, b, best), lambda best: best, best)


def _prism_directions(prism: ConvexShape, other: ConvexShape, default: np.ndarray) -> list[np.ndarray]:
    """The normals of the sides of a prism, and the cross products of its edges and the other's axes."""
    corners = prism.placed.sizes
    edges = [corners[end] - corners[start] for start, end in PRISM_EDGES]
    found = [prism.sides @ normal for normal in prism_normals(corners)]
    return found + [
        unit(cross(prism.sides @ edge, axis), default)[0] for edge in edges for axis in other.sides.T
    ]


def _searched(a: ConvexShape, b: ConvexShape, best: Direction) -> Direction:
    """The better one of a direction and the best of a search from the directions of every sector."""

    def sector(row: Any, best: Direction) -> Direction:
        directions = [np.array([row[3 * k + i] for i in range(3)]) for k in range(PER_SECTOR)]
        own = directions[0] * 1.0, overlap(a, b, directions[0])
        for direction in directions[1:]:
            own = _better(a, b, direction, own)
        n, depth = for_each(
            WIDTH_TABLE, lambda width, own: _neighbour(a, b, width[0], own), own, unroll=False
        )
        shorter = less(depth, best[1])
        return select_array(shorter, n, best[0]), where(shorter, depth, best[1])

    # the best axis may be a saddle of the overlap, from which the iteration does not depart
    for width in WIDTHS[1:]:
        best = _neighbour(a, b, width, best)
    return for_each(SECTOR_TABLE, sector, best, unroll=False)


def _neighbour(a: ConvexShape, b: ConvexShape, width: Any, own: Direction) -> Direction:
    """The best of a direction and its neighbours at an angle of about `width`."""
    n = own[0]
    T = contact_frame(n)[1:]
    return for_each(
        NEIGHBOURS,
        lambda row, best: _better(a, b, unit(n + width * (np.array([row[0], row[1]]) @ T))[0], best),
        own,
        unroll=False,
    )


def sphere_directions(count: int) -> np.ndarray:
    """Uniformly distributed unit vectors (count, 3), on a golden-angle spiral."""
    z = 1 - (2 * np.arange(count) + 1) / count
    angle = np.arange(count) * np.pi * (3 - 5**0.5)
    return np.stack([np.sqrt(1 - z * z) * np.cos(angle), np.sqrt(1 - z * z) * np.sin(angle), z], axis=1)


def _sectors() -> np.ndarray:
    """The directions of every sector (SECTORS, 3 PER_SECTOR): those nearest to its centre that are left."""
    left, rows = sphere_directions(SECTORS * PER_SECTOR), []
    for centre in sphere_directions(SECTORS):
        order = np.argsort(-left @ centre, kind="stable")
        rows.append(left[order[:PER_SECTOR]].ravel())
        left = left[order[PER_SECTOR:]]
    return np.array(rows)


SECTOR_TABLE = _sectors()
WIDTH_TABLE = [(width,) for width in WIDTHS]

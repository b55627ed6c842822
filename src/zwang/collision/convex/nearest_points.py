"""Contact point of two convex shapes by their support functions, for pairs without a closed form.

The distance of separate shapes is found by the algorithm of Gilbert, Johnson and Keerthi. Overlapping
shapes are moved apart along a direction; the direction of their nearest points is then a better one, and a
search along the turn from the one to the other finds a still better one. At a fixed point of this iteration
the penetration depth has a local minimum. Steps of Newton's method on the optimality conditions end both
iterations, and give the derivatives of their result.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import by_precision
from zwang.collision.contact_point import FAR, ContactPoint, contact_frame, unit
from zwang.collision.convex.contact_optimality import (
    NearestPoints,
    converged_or_start,
    newton_step,
    point_along,
    refined,
    touching_feature,
)
from zwang.collision.convex.expanding_polytope import globally_least_overlap
from zwang.collision.convex.gjk import (
    OVERLAP,
    Simplex,
    closest_to_origin,
    inner,
    nearest_weights,
    select_array,
)
from zwang.collision.convex.least_overlap import (
    SHALLOW,
    OverlapDirection,
    better,
    direction_along_turn,
    initial_direction,
)
from zwang.collision.convex.support_functions import (
    ConvexShape,
    convex_shape_of,
    without_derivatives_of_shapes,
)
from zwang.collision.shapes import PlacedShape
from zwang.scalar import (
    cond,
    equal,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    sqrt,
    where,
    while_loop,
)

SEPARATION = 1e-2  # distance to which overlapping shapes are moved apart, relative to their size
PENETRATION_ITERATIONS = 50  # the limit of directions
NEXT = 1e-3  # [rad] between directions whose points are nearly the same
# relative to the size of the shapes, in double and in single precision
PROGRESS = 1e-12, 1e-7  # of the depth in an iteration
ALIGNED = 1e-9, 1e-5  # distance of nearest points from the line along the direction of least overlap


class Nearest(NamedTuple):
    """Signed distance of two shapes, the unit normal from the first to the second, their nearest points, and
    the corners (4, 3) at these, in the axes of the shape, where it is a mesh.
    """

    distance: Any
    normal: np.ndarray
    first: np.ndarray
    second: np.ndarray
    corners: tuple[Any, Any]


def convex_contact(kind_a: str, kind_b: str, a: PlacedShape, b: PlacedShape, reach: Any) -> ContactPoint:
    """The contact point of two convex shapes, FAR if it is farther than `reach`."""
    shapes = convex_shape_of(kind_a, a), convex_shape_of(kind_b, b)

    def near(found: NearestPoints) -> tuple[Any, ...]:
        nearest = nearest_from(*shapes, found)
        return (nearest.distance, *((nearest.first + nearest.second) / 2), *nearest.normal)

    def far(found: NearestPoints) -> tuple[Any, ...]:
        return (FAR, *a.p, *found.normal)

    found, separated = approximate_points(*shapes, reach)
    values = cond(separated, far, near, found)
    return ContactPoint(values[0], np.array(values[1:4]), contact_frame(np.array(values[4:])))


def nearest_points(a: ConvexShape, b: ConvexShape) -> Nearest:
    """The nearest points of two shapes, or the points of deepest penetration."""
    return nearest_from(a, b, approximate_points(a, b)[0])


def approximate_points(a: ConvexShape, b: ConvexShape, reach: Any = None) -> tuple[NearestPoints, Any]:
    """The nearest points by iteration on plain numbers, and whether the shapes are farther apart than `reach`
    [m], where the nearest points are not found.
    """
    operands = () if reach is None else (reach + a.radius + b.radius,)
    return without_derivatives_of_shapes(_iterated, a, b, *operands)


def nearest_from(a: ConvexShape, b: ConvexShape, found: NearestPoints) -> Nearest:
    """`nearest_points` by a last step of Newton's method, which gives the derivatives on tangents, too."""
    found = newton_step(a, b, found)
    n = found.normal
    first, second = point_along(a, found.a, n), point_along(b, found.b, -n)
    # the points lie on the normal to rounding; their midpoint stays
    middle, half = (first + second) / 2, inner(second - first, n) / 2
    return Nearest(
        2 * half - a.radius - b.radius,
        n,
        middle + n * (a.radius - half),
        middle + n * (half - b.radius),
        (found.a.corners, found.b.corners),
    )


class Contacting(NamedTuple):
    """The normal, points of the core of a and of that of b, (4, 3) each, and the weights of their means,
    which are nearest to each other or at the deepest penetration.
    """

    normal: np.ndarray
    A: np.ndarray
    B: np.ndarray
    weights: np.ndarray


def _iterated(a: ConvexShape, b: ConvexShape, reach: Any = None) -> tuple[NearestPoints, Any]:
    """The nearest points by iteration, refined by steps of Newton's method, and whether the cores are
    farther apart than `reach` [m].
    """
    scale = a.size + b.size
    simplex = closest_to_origin(a, b, scale, unit(b.centre - a.centre)[0], reach)
    separated: Any = less(simplex.overlap, -reach) if reach is not None else False
    length = sqrt(inner(simplex.nearest, simplex.nearest))

    def apart(_: Any) -> Contacting:
        return Contacting(unit(simplex.nearest)[0], simplex.A, simplex.A + simplex.W, simplex.weights)

    # the search may also end by rounding errors, and its direction does not separate the shapes then
    separates = less(simplex.overlap, -length / 2)
    is_found = logical_and(separates, less(by_precision(length, *OVERLAP) * scale, length))
    found = cond(
        logical_or(separated, is_found),
        apart,
        lambda _: penetration_of(a, b, scale, simplex),
        length,
    )
    first, second = found.weights @ found.A, found.weights @ found.B
    start = NearestPoints(
        found.normal,
        touching_feature(a, first, found.normal, found.A, found.weights),
        touching_feature(b, second, -found.normal, found.B, found.weights),
    )
    return converged_or_start(a, b, refined(a, b, start, separated), start), separated


def _least_overlap_of(simplex: Simplex) -> OverlapDirection:
    """The direction of least overlap of those that led to a simplex, and its points as points of a - b."""
    return OverlapDirection(simplex.direction, simplex.overlap, np.concatenate([-simplex.W, -simplex.W]))


# ---------------------------------------------------------------------------------------------- overlapping


class OverlapSearch(NamedTuple):
    """The direction of least overlap so far, and A, B and the weights of `Contacting` on it.

    moves: whether the last direction was better. is_global: whether no direction is better than the local
    minimum from which the iteration began. directions: number of iterations since.
    """

    least: OverlapDirection
    on_it: tuple[np.ndarray, ...]
    moves: Any
    is_global: Any
    directions: Any


def penetration_of(a: ConvexShape, b: ConvexShape, scale: Any, simplex: Simplex) -> Contacting:
    """Normal of least penetration, and the points of a and b on it. simplex: a direction and points to begin
    with.

    A local minimum of the overlap is found from the best of several directions. If it is deep, there may be
    others, and the expanding polytope algorithm finds the best one.
    """
    first = _least_overlap_of(simplex)
    progress, aligned = (scale * by_precision(first.overlap, *x) for x in (PROGRESS, ALIGNED))

    def turn(now: OverlapSearch) -> OverlapSearch:
        """The nearest points of the shapes moved apart, and a better direction along the turn to theirs."""
        least = now.least
        shift = least.normal * (least.overlap + SEPARATION * scale)
        A, B, _ = now.on_it
        simplex = closest_to_origin(a, b.moved(shift), scale, least.normal, points=(B - A + shift, A))
        n, least = unit(simplex.nearest)[0], least.with_kept_points(shift - simplex.W)
        turned = direction_along_turn(a, b, least.normal, n, least.points)
        accepted = less_equal(turned.overlap, least.overlap + progress)
        more = less(turned.overlap, least.overlap * (1 - 1e-13) - progress)
        # points of a direction next to the best one are on that, too: they have been moved apart along it
        beside = less(1 - NEXT * NEXT / 2, inner(n, least.normal))
        kept = logical_or(accepted, logical_or(beside, equal(now.directions, 0)))
        found = OverlapDirection(
            select_array(accepted, turned.normal, least.normal),
            where(accepted, turned.overlap, least.overlap),
            turned.points,
        )
        # moved apart along that direction, the shapes are nearest at the same points if these lie along it
        apart = SEPARATION * scale
        W = simplex.W + (found.normal * (found.overlap + apart) - shift)
        weights = nearest_weights(W)
        aside = weights @ W - apart * found.normal
        settled = less_equal(inner(aside, aside), aligned * aligned)
        kept, more = logical_or(kept, settled), logical_and(more, logical_not(settled))
        new = simplex.A, simplex.A + simplex.W - shift, select_array(settled, weights, simplex.weights)
        points = tuple(select_array(kept, x, y) for x, y in zip(new, now.on_it, strict=True))
        return OverlapSearch(found, points, more, now.is_global, now.directions + 1)

    def search(now: OverlapSearch) -> OverlapSearch:
        """The direction of least overlap of all, from which the iteration begins again if it is better."""
        # the other side of nearly concentric shapes is nearly as good, or better
        opposite = better(a, b, -now.least.normal, now.least)
        least = globally_least_overlap(a, b, scale, opposite)
        more = less(least.overlap, now.least.overlap * (1 - 1e-13) - progress)
        # of shapes with one centre the direction opposite is as good, and the points found are not on it
        least = OverlapDirection(
            select_array(more, least.normal, now.least.normal),
            where(more, least.overlap, now.least.overlap),
            least.points,
        )
        return OverlapSearch(least, now.on_it, more, True, where(more, 0.0, now.directions))

    def is_open(now: OverlapSearch) -> Any:
        is_deep = logical_and(logical_not(now.is_global), less(SHALLOW * scale, now.least.overlap))
        return logical_and(logical_or(now.moves, is_deep), less(now.directions, PENETRATION_ITERATIONS))

    points = simplex.A, simplex.A + simplex.W, simplex.weights
    start = OverlapSearch(initial_direction(a, b, first), points, True, False, 0.0)
    end = while_loop(is_open, lambda now: OverlapSearch(*cond(now.moves, turn, search, now)), start)
    return Contacting(end.least.normal, *end.on_it)

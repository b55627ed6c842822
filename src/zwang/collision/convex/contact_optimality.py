"""The optimality conditions of the nearest points of two convex shapes, and a step of Newton's method.

The nearest points x of a and y of b, the normal n and the signed distance d of the cores satisfy

    y - x = d n,    x in the face of a's support along n,    y in the face of b's support along -n

also for overlapping shapes, where d < 0. Along the flat directions u of these faces, those of an edge or of a
plane face, the points may slide, and n u = 0. Elsewhere they follow the normal: x = s_a(n), y = s_b(-n).
With n' = n + T tau, for a basis T of the tangent plane, Newton's step solves

    K tau - F lambda = T^T (y - x),    F^T tau = -u^T n,    F = T^T u,    K = d - T^T (d(y - x)/dn) T

K is the distance plus the radii of curvature of both shapes. K, lambda and y - x are relative to the shapes'
sizes. Run on tangents from the known solution, the step has the derivatives of the contact by the implicit
function theorem. Source: Griewank, Walther, Evaluating Derivatives (2008), Section 15.1.
"""

from __future__ import annotations

from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual import derivative_along
from zwang.algebra.norms import TINY, by_precision
from zwang.collision.contact_point import contact_frame, unit
from zwang.collision.convex.gjk import inner, select_array
from zwang.collision.convex.support_functions import ConvexShape, without_derivatives_of_shapes
from zwang.scalar import (
    absolute,
    divide,
    less,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    sqrt,
    where,
    while_loop,
    without_derivatives,
)

CONVERGED = 1e-6  # change of the normal in a step of Newton's method, below which the next is the last
NEWTON_STEPS = 6  # at most, before the last
# in double and in single precision
DISTINCT = 1e-9, 1e-6  # distance of two points, relative to a shape's size, below which they are one
PARALLEL = 1e-9, 1e-6  # sine of the angle below which two flat directions are parallel
RESIDUAL = 1e-6, 1e-5  # distance of the points off the normal, relative to the size, which is too large
LARGEST_TURN = 0.01  # [rad] of the normal that a step may correct, and of the points relative to the size


class TouchingFeature(NamedTuple):
    """What of a shape's core is nearest to the other shape, in the shape's axes.

    point (3,). held (3,): which of its coordinates do not follow the normal. directions (m, 3): unit vectors,
    of which those that are `flat` (m,) span the edge or the plane face that contains the point. corners
    (4, 3): of a mesh, the vertices of which the point is a mean, some of them perhaps equal; else the point.
    """

    point: np.ndarray
    held: Any
    directions: np.ndarray
    flat: Any
    corners: np.ndarray


class NearestPoints(NamedTuple):
    """The unit normal from a to b, and the feature of each that contains the nearest point."""

    normal: np.ndarray
    a: TouchingFeature
    b: TouchingFeature


def touching_feature(
    shape: ConvexShape, point: np.ndarray, towards: np.ndarray, corners: np.ndarray, weights: np.ndarray
) -> TouchingFeature:
    """The feature at a point of a shape's core in the world, with the direction (3,) towards the other shape.

    corners (4, 3): points of the shape, whose mean with these weights (4,) is the point. A coordinate of a
    box is flat where the direction is nearer to perpendicular to it than the point to its end.
    """
    return shape.by_kind(lambda own: _feature_of_kind(own, point, towards, corners, weights))


def _feature_of_kind(
    shape: ConvexShape, point: np.ndarray, towards: np.ndarray, corners: np.ndarray, weights: np.ndarray
) -> TouchingFeature:
    """`touching_feature` of a shape of a given kind."""
    x, d, size = (shape.sides.T @ (point - shape.centre), shape.sides.T @ towards, shape.size)
    if shape.kind in ("mesh", "prism"):
        local = shape.sides.T @ (corners - shape.centre).T
        directions, flat, chosen = _directions_between(local, weights, size)
        return TouchingFeature(x, (True, True, True), directions, flat, chosen)
    sizes, round_ = shape.placed.sizes, (False, False, False)
    if shape.kind in ("capsule", "cylinder"):
        upright = less(absolute(d[2]) * size, sizes[1] - absolute(x[2]))
        cap: Any = False
        if shape.kind == "cylinder":
            radial = [sqrt(y[0] * y[0] + y[1] * y[1]) for y in (d, x)]
            cap = less(radial[0] * size, sizes[0] - radial[1])
        flat = (cap, cap, upright)
    elif shape.kind == "box":
        flat = tuple(less(absolute(d[k]) * size, sizes[k] - absolute(x[k])) for k in range(3))
    else:
        flat = round_
    return TouchingFeature(x, flat, np.eye(3), flat, np.array([x] * 4))


def _directions_between(
    corners: np.ndarray, weights: np.ndarray, size: Any
) -> tuple[np.ndarray, Any, np.ndarray]:
    """Unit vectors (3, 3) from the corner (columns of (3, 4)) of the largest weight to the others, in their
    cyclic order, which of these are different corners with a weight, and the corners (4, 3), where the one of
    the largest weight takes the place of those without.
    """
    first = [corners[:, k] for k in range(4)]
    order = [*first, *weights]
    for k in range(1, 4):
        larger = less(order[4], weights[k])
        turned = [corners[:, (k + j) % 4] for j in range(4)]
        chosen = [select_array(larger, x, y) for x, y in zip(turned, order[:4], strict=True)]
        numbers = [where(larger, weights[(k + j) % 4], order[4 + j]) for j in range(4)]
        order = [*chosen, *numbers]
    directions, flat, chosen = [], [], [order[0]]
    for k in range(1, 4):
        direction, length = unit(order[k] - order[0])
        directions.append(direction)
        distinct = by_precision(length, *DISTINCT)
        flat.append(logical_and(less(distinct * size, length), less(distinct, order[4 + k])))
        chosen.append(select_array(flat[-1], order[k], order[0]))
    return np.array(directions), tuple(flat), np.array(chosen)


def point_along(shape: ConvexShape, feature: TouchingFeature, towards: np.ndarray) -> np.ndarray:
    """The point of a feature in the world for a direction towards the other shape."""
    return shape.centre + shape.sides @ shape.by_kind(lambda own: _local_point(own, feature, towards))


def _local_point(shape: ConvexShape, feature: TouchingFeature, towards: np.ndarray) -> np.ndarray:
    """`point_along` in the axes of a shape of one kind."""
    if shape.kind in ("mesh", "prism"):
        return feature.point
    both = zip(feature.held, feature.point, shape.local_support(shape.sides.T @ towards), strict=True)
    return np.array([where(held, x, y) for held, x, y in both])


def _turning(shape: ConvexShape, feature: TouchingFeature, towards: np.ndarray, turn: np.ndarray) -> Any:
    """The derivative of `point_along` where the direction turns (3,)."""

    def of_kind(own: ConvexShape) -> np.ndarray:
        return derivative_along(lambda d: _local_point(own, feature, d), towards, turn)[1]

    return shape.sides @ shape.by_kind(of_kind)


class FlatDirection(NamedTuple):
    """A direction along which the point of one shape may slide: exists, its projection f (2,) on the tangent
    plane, and itself in the axes of a and of b, zero for the other shape.
    """

    exists: Any
    f: np.ndarray
    in_a: np.ndarray
    in_b: np.ndarray


class LinearSystem(NamedTuple):
    """The linear problem of Newton's step: T (2, 3), K (2, 2) relative to the scale [m], two flat directions
    that are not parallel as far as there are any, and p (2,), the tangent that the first one leaves free.
    """

    scale: Any
    T: np.ndarray
    K: np.ndarray
    first: FlatDirection
    second: FlatDirection
    p: np.ndarray

    def solve(self, gap: np.ndarray, slopes: tuple[Any, Any]) -> tuple[np.ndarray, np.ndarray]:
        """tau (2,) and lambda (2,) for T^T (y - x) = gap and the slopes n u of both directions; lambda and
        the gap relative to the scale.

        With two directions tau follows from them, with one of them from it and the equation along p.
        """
        one, two, K, p = self.first, self.second, self.K, self.p
        rows = np.array([select_array(one.exists, one.f, K[0]), select_array(two.exists, two.f, p @ K)])
        right = np.array([where(one.exists, -slopes[0], gap[0]), where(two.exists, -slopes[1], p @ gap)])
        tau = _solve_pair(rows, right)
        columns = [select_array(one.exists, one.f, np.array([1.0, 0.0])), select_array(two.exists, two.f, p)]
        force = _solve_pair(np.array(columns).T, K @ tau - gap)
        return tau, np.array([where(one.exists, force[0], 0.0), where(two.exists, force[1], 0.0)])


def newton_system(a: ConvexShape, b: ConvexShape, found: NearestPoints) -> LinearSystem:
    """The linear problem of Newton's step from the nearest points."""
    n, scale = found.normal, a.size + b.size
    T = contact_frame(n)[1:]
    slopes = [_turning(b, found.b, -n, -t) - _turning(a, found.a, n, t) for t in T]
    distance = inner(point_along(b, found.b, -n) - point_along(a, found.a, n), n)
    K = np.array([[distance * (i == j) - inner(T[i], slopes[j]) for j in range(2)] for i in range(2)]) / scale
    directions = _flat_directions(a, b, found, T)
    first = NO_DIRECTION
    for one in directions:
        first = _choose(logical_and(one.exists, logical_not(first.exists)), one, first)
    second, best = NO_DIRECTION, by_precision(distance, *PARALLEL)
    for one in directions:
        sine = absolute(first.f[0] * one.f[1] - first.f[1] * one.f[0])
        better = logical_and(one.exists, less(best, sine))
        second, best = _choose(better, one, second), where(better, sine, best)
    p = np.array([where(first.exists, -first.f[1], 0.0), where(first.exists, first.f[0], 1.0)])
    return LinearSystem(scale, T, K, first, second, p)


NO_DIRECTION = FlatDirection(False, np.zeros(2), np.zeros(3), np.zeros(3))


def _flat_directions(
    a: ConvexShape, b: ConvexShape, found: NearestPoints, T: np.ndarray
) -> list[FlatDirection]:
    """All directions along which a point may slide."""
    zero, out = np.zeros(3), []
    for shape, feature, is_a in ((a, found.a, True), (b, found.b, False)):
        for direction, flat in zip(feature.directions, feature.flat, strict=True):
            if flat is not False:
                f = T @ (shape.sides @ direction)
                out.append(FlatDirection(flat, f, *((direction, zero) if is_a else (zero, direction))))
    return out


def _choose(condition: Any, one: FlatDirection, other: FlatDirection) -> FlatDirection:
    """One of two directions."""
    vectors = [select_array(condition, x, y) for x, y in zip(one[1:], other[1:], strict=True)]
    return FlatDirection(logical_or(condition, other.exists), *vectors)


def _solve_pair(A: np.ndarray, b: np.ndarray) -> np.ndarray:
    """The solution of two linear equations; finite, but none, where A is singular."""
    determinant = A[0, 0] * A[1, 1] - A[0, 1] * A[1, 0]
    is_singular = less(absolute(determinant), TINY)
    determinant = where(is_singular, 1.0, determinant)
    first, second = b[0] * A[1, 1] - A[0, 1] * b[1], A[0, 0] * b[1] - b[0] * A[1, 0]
    return np.array([divide(first, determinant), divide(second, determinant)])


def refined(a: ConvexShape, b: ConvexShape, found: NearestPoints, unwanted: Any = False) -> NearestPoints:
    """The nearest points after steps of Newton's method, until only rounding is left; those before it where
    they are unwanted.
    """

    def iterate(state: Any) -> Any:
        now = _with_unknowns(found, state[0])
        new = newton_step(a, b, now)
        change = [absolute(x - y) for x, y in zip(new.normal, now.normal, strict=True)]
        return unknowns(new), reduce(maximum, change), state[2] + 1

    def is_open(state: Any) -> Any:
        return logical_and(less(CONVERGED, state[1]), less(state[2], NEWTON_STEPS))

    def unknowns(points: NearestPoints) -> tuple[np.ndarray, ...]:
        return points.normal, points.a.point, points.b.point

    change = where(unwanted, 0.0, 1.0)
    return _with_unknowns(found, while_loop(is_open, iterate, (unknowns(found), change, 0.0))[0])


def _with_unknowns(found: NearestPoints, unknowns: tuple[np.ndarray, ...]) -> NearestPoints:
    n, first, second = unknowns
    return NearestPoints(n, found.a._replace(point=first), found.b._replace(point=second))


def converged_or_start(
    a: ConvexShape, b: ConvexShape, found: NearestPoints, start: NearestPoints
) -> NearestPoints:
    """The nearest points after Newton's method, or those before it, held, where it has not converged.

    It may not where the normal is within about 1e-4 rad of the axis of a cylinder and the point near the
    rim: the rim point turns by 180 degrees with the sign of that angle.
    """
    n, scale = found.normal, a.size + b.size
    gap = point_along(b, found.b, -n) - point_along(a, found.a, n)
    aside = gap - inner(gap, n) * n
    residual = by_precision(n[0], *RESIDUAL) * scale
    failed = less(residual * residual, inner(aside, aside))

    def held(after: TouchingFeature, before: TouchingFeature) -> TouchingFeature:
        return TouchingFeature(
            select_array(failed, before.point, after.point),
            tuple(logical_or(h, failed) for h in after.held),
            after.directions,
            tuple(f if f is False else logical_and(f, logical_not(failed)) for f in after.flat),
            after.corners,
        )

    return NearestPoints(
        select_array(failed, start.normal, n), held(found.a, start.a), held(found.b, start.b)
    )


def newton_step(a: ConvexShape, b: ConvexShape, found: NearestPoints) -> NearestPoints:
    """The nearest points after a step of Newton's method on the optimality conditions.

    found: plain numbers, while the shapes may be tangents. Where the step is larger than `LARGEST_TURN`, as
    it is not from a solution, the values stay.
    """
    system = without_derivatives_of_shapes(newton_system, a, b, found)
    n, (one, two) = found.normal, (system.first, system.second)
    gap = point_along(b, found.b, -n) - point_along(a, found.a, n)
    slopes = [inner(n, a.sides @ x.in_a + b.sides @ x.in_b) for x in (one, two)]
    tau, slides = system.solve(system.T @ gap / system.scale, (slopes[0], slopes[1]))
    step = np.array([*tau, *slides])
    step = step - without_derivatives(_too_large, step)
    turned = unit(n + step[:2] @ system.T)[0]
    slides = step[2:] * system.scale
    moved_a = found.a.point - slides[0] * one.in_a - slides[1] * two.in_a
    moved_b = found.b.point + slides[0] * one.in_b + slides[1] * two.in_b
    return NearestPoints(turned, found.a._replace(point=moved_a), found.b._replace(point=moved_b))


def _too_large(step: np.ndarray) -> np.ndarray:
    """The step if it is too large, else zero."""
    small: Any = True
    for x in step:
        small = logical_and(small, less(absolute(x), LARGEST_TURN))
    return np.array([where(small, 0.0, x) for x in step])

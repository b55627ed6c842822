"""The derivatives of the forces of hard contacts, by the implicit function theorem on their contact law.

At a solution f = P(f, z) with z = f - c and c = G f + g, see `hard_contact`. With the status of every block
at the solution (open, sticking or sliding; a bound that is reached), and B = dP/dz, the derivatives are those
of a linear problem,

    (1 - B + B G) df = -B (dG f + dg) + dP of the bounds

B contains the turning of the friction of a contact that slides: across the slip c_t it is
df_t = -f_n / |c_t| dc_t. Redundant contacts make G singular; then the change of the forces is that of the
proximal point method from df = 0, and the change of the acceleration is unique, unless `is_ambiguous`.
Source: Griewank, Walther, Evaluating Derivatives (2008), Section 15.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from zwang.algebra.block_lu import solve_block_lu
from zwang.algebra.dual_control_flow import linear_response
from zwang.scalar import (
    MutableArray,
    absolute,
    empty,
    fori_loop,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    sin,
    where,
    while_loop,
)
from zwang.solver.hard_contact import ContactForces, ContactProblem, contact_law, linear_system

ETA = 1e-7  # added to G, relative to its diagonal, whose effect the proximal point method removes
ITERATIONS = 40  # the limit; each reduces the effect of ETA
TOLERANCE = 1e-14  # of a change, relative to the largest derivative of a force
STATUS_CHANGE = 1e-3  # of an entry of B, above which a block has another status
NULL_SPACE_ITERATIONS = 3  # which leave of a force its part that G does not determine
LEAST_NULL_SPACE, LEAST_EFFECT = 1e-4, 1e-5  # relative sizes of forces that are not determined, and of G f


def with_derivatives(p: ContactProblem, found: ContactForces) -> ContactForces:
    """The forces as tangents: their values were found, p has the derivatives of the problem."""
    n = p.width * p.capacity
    c, _ = p.residual(found.f, empty(n), empty(n))
    f = linear_response(_force_rates, (c, p.lower, p.upper), found.f, p, found.f, c)
    return found._replace(f=f)


def _force_rates(rates: tuple[MutableArray, ...], p: ContactProblem, f: Any, c: Any) -> MutableArray:
    """df (n,) for the changes dc = dG f + dg and those of the bounds of all blocks."""
    dc, lower, upper = rates

    def right(k: Any) -> list[Any]:
        _, B = contact_law(p, k, f, c, 0.0, None)
        z_n, change = f[p.width * k] - c[p.width * k], p.block(dc, k)
        out = [-sum(x * y for x, y in zip(row, change, strict=True)) for row in B]
        bound = where(z_n <= p.lower[k], lower[k], where(z_n >= p.upper[k], upper[k], 0.0))
        return [out[0] + bound, *out[1:]]

    n = p.width * p.capacity
    load = fori_loop(0, p.count, lambda k, x: p.with_block(x, k, right(k)), empty(n))
    return _proximal_solution(p, f, c, load, _filled(p, lambda i: 0.0), ITERATIONS)


def _proximal_solution(
    p: ContactProblem, f: MutableArray, c: MutableArray, load: MutableArray, start: MutableArray, most: int
) -> MutableArray:
    """x (n,) of (1 - B + B G) x = load by the proximal point method from `start`: with G + eta and the
    load + eta B x_k, until x does not change any more.
    """

    def iterate(s: tuple[Any, Any, Any, Any]) -> tuple[Any, Any, Any, Any]:
        x, load, _, iterations = s

        def law(k: Any) -> tuple[list[Any], Any]:
            _, B = contact_law(p, k, f, c, 0.0, None)
            own = p.block(x, k)
            pull = [ETA * sum(a * b for a, b in zip(row, own, strict=True)) for row in B]
            return [a + b for a, b in zip(p.block(load, k), pull, strict=True)], B

        y, _ = solve_block_lu(p.count, p.width, *linear_system(p, 1.0, ETA, law))
        largest = _largest(p, lambda i: y[i])
        changed = _largest(p, lambda i: y[i] - x[i]) > TOLERANCE * largest
        x = fori_loop(0, p.count * p.width, lambda i, x: x.set(i, y[i]), x)
        return x, load, changed, iterations + 1

    def unfinished(s: tuple[Any, Any, Any, Any]) -> Any:
        return logical_and(s[2], s[3] < most)

    return while_loop(unfinished, iterate, (start, load, 0.0 < 1.0, 0.0))[0]


def changes_status(p: ContactProblem, found: ContactForces, change: Callable[[Any, Any], Any]) -> Any:
    """Whether a block would have another status if its normal acceleration changed to either side.

    change(k, size): of block k, given the sum of the absolute terms of its accelerations.
    """
    n = p.width * p.capacity
    c, sizes = p.residual(found.f, empty(n), empty(n))
    sides = [_displaced(p, c, lambda k, s=s: s * change(k, p.size(sizes, k))) for s in (1.0, -1.0)]

    def compare(k: Any, changes: Any) -> Any:
        both = [contact_law(p, k, found.f, side, 0.0, None)[1] for side in sides]
        for rows in zip(*both, strict=True):
            for a, b in zip(*rows, strict=True):
                changes = logical_or(changes, absolute(a - b) > STATUS_CHANGE)
        return changes

    return fori_loop(0, p.count, compare, 0.0 > 1.0)


def _displaced(p: ContactProblem, c: MutableArray, change: Callable[[Any], Any]) -> MutableArray:
    """The accelerations with those of the normals changed."""

    def add(k: Any, out: MutableArray) -> MutableArray:
        first, *others = p.block(c, k)
        return p.with_block(out, k, [first + change(k), *others])

    return fori_loop(0, p.count, add, empty(p.width * p.capacity))


def is_ambiguous(p: ContactProblem, found: ContactForces) -> Any:
    """Whether forces that the contact law does not determine change the accelerations: several accelerations
    satisfy it, as of a box that slides and turns on four points.

    Such forces are found as what remains of a generic load, by the proximal point method.
    """
    n = p.width * p.capacity
    c, _ = p.residual(found.f, empty(n), empty(n))
    start, nothing = _filled(p, lambda i: sin(1.0 + 2.0 * i)), _filled(p, lambda i: 0.0)
    x = _proximal_solution(p, found.f, c, nothing, start, NULL_SPACE_ITERATIONS)
    effect = _largest(p, lambda i: _product(p, x, i))
    size = _largest(p, lambda i: x[i])
    return logical_not(effect <= maximum(LEAST_EFFECT * size, LEAST_EFFECT * LEAST_NULL_SPACE))


def _product(p: ContactProblem, x: MutableArray, i: Any) -> Any:
    """(G x)_i."""
    return fori_loop(0, p.count * p.width, lambda j, total: total + p.G[i, j] * x[j], 0.0)


def _filled(p: ContactProblem, value: Any) -> MutableArray:
    """The array (n,) with value(i) as its elements in use."""
    return fori_loop(0, p.count * p.width, lambda i, x: x.set(i, value(1.0 * i)), empty(p.width * p.capacity))


def _largest(p: ContactProblem, value: Any) -> Any:
    """The largest |value(i)| over the rows in use."""
    return fori_loop(0, p.count * p.width, lambda i, largest: maximum(largest, absolute(value(i))), 0.0)

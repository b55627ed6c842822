"""Forces of hard contacts with Coulomb friction: the proximal point method with a semismooth Newton method.

With the Delassus matrix G and the free acceleration g of the contact rows, the forces f satisfy

    c = G f + g,   f_n >= 0,  c_n >= 0,  f_n c_n = 0,   |f_t| <= m f_n,   f_t = -m f_n c_t / |c_t| if c_t != 0

in the coordinates f_t / friction, friction c_t in which the friction cone is round, of slope m. The normal
and the other rows of each block are scaled by the diagonal of G, which makes m about the friction
coefficient: masses and coefficients may differ by many orders of magnitude. With r > 0 this is

    f = P(f, z),   z = f - r c,    P_n = clip(z_n, lower, upper),    P_t = z_t min(1, m P_n / |z_t|)

and a semismooth Newton method solves it (Alart, Curnier, Comput. Methods Appl. Mech. Eng. 92 (1991) 353).
Soft cones have the law of a convex problem: f is in the cone, c in its dual, and f^T c = 0. There P is the
point of the cone nearest to z.

Redundant rows make G singular. So each outer iteration k solves the problem with G + eta and g - eta f_k, the
proximal point method (Rockafellar, Math. Oper. Res. 1 (1976) 97), and eta tends to zero; the part of the
forces that G does not determine stays where it was. Newton's method solves such a problem with r = eta^-1/2,
the geometric mean of the inverse scales of G and eta, or r = 1 / eta if eta > 1. Where it does not converge,
eta is increased.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

from zwang.algebra.block_lu import solve_block_lu
from zwang.algebra.norms import by_precision, norm
from zwang.scalar import (
    MutableArray,
    absolute,
    clip,
    cond,
    empty,
    equal,
    fori_loop,
    less,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    sqrt,
    where,
    while_loop,
    without_derivatives,
)
from zwang.solver.solution import SMALLEST_SCALE

ITERATIONS = 600  # of Newton's method, in all; nearly all problems take less than 30
NEWTON_ITERATIONS = 10  # for one eta, after which eta is increased
INITIAL_ETA, LARGEST_ETA = 0.1, 1e4  # relative to the diagonal of G
SMALLEST_ETA = 1e-8, 1e-4  # in double and in single precision, about the root of the resolution
FASTEST_DECREASE, SLOWEST_DECREASE, ETA_INCREASE = 0.1, 0.9, 5.0  # factors of eta
TOLERANCE = 3e-15  # of the error of a block, relative to the terms that its accelerations are the sum of
STAGNATION = 1e-11  # an error below it that does not decrease any more consists of rounding errors
USABLE_ERROR = 1e-5  # at the iteration limit, forces with a larger error are not to be used
SINGLE_PRECISION = 1e7  # times these tolerances in single precision
NO_SOLUTION, UNBOUNDED = 1e-3, 1e4  # an error and terms so large, relative to the free acceleration
REDUNDANT_ETA = 1e-7, 1e-3  # added to G where the signs of its minors are evaluated; by precision, too
LARGEST_RATIO = 1e6  # of the weight of an equality to its diagonal entry; above, convergence is slow
NO_DIAGONAL = 1e-12, 1e-10  # relative to the inverse weight, below which it vanishes but for rounding
VANISHING = 1e-12, 1e-5  # terms of a row of an equality, relative to those of the others; by precision, too
LEAST_MOBILITY = 1e-6  # of a normal, relative to its first tangent; 0 but for rounding for a wheel's axle
INEXACT, ACCEPTED = 1e-3, 1e-2  # Newton's error in a problem, relative to eta and the error before it


class ContactProblem(NamedTuple):
    """A contact problem in blocks of `width` rows, in coordinates in which cones are round.

    count: the number of blocks, an index, of at most capacity. G (n, n) and g (n,), n = capacity width:
    Delassus matrix, with the regularisation of soft rows on its diagonal, and free acceleration. coupled
    (capacity, capacity): 1 where a block of G is not zero, else 0. Of each block (capacity,): lower and upper
    bound of the force of its first row, the normal; disc, the slope m if its other rows are tangential rows
    of a cone, or 0 if they are unused; soft, 1 for a soft cone, or 0 for Coulomb's law; None if no cone is
    soft; first, the number of the first of the adjacent blocks that are rows of the same equality; None if
    there is no equality.
    """

    count: Any
    width: int
    G: MutableArray
    g: MutableArray
    coupled: MutableArray
    lower: MutableArray
    upper: MutableArray
    disc: MutableArray
    soft: MutableArray | None = None
    first: MutableArray | None = None

    @property
    def capacity(self) -> int:
        """The largest number of blocks."""
        return self.lower.shape[0]

    def block(self, values: MutableArray, k: Any) -> list[Any]:
        """The values of block k."""
        return [values[self.width * k + j] for j in range(self.width)]

    def with_block(self, values: MutableArray, k: Any, block: list[Any]) -> MutableArray:
        """The values with those of block k replaced."""
        for j, x in enumerate(block):
            values = values.set(self.width * k + j, x)
        return values

    def residual(self, f: MutableArray, c: MutableArray, sizes: MutableArray) -> Any:
        """The accelerations c = G f + g (n,), and the sum of the absolute terms of each (n,); of a row that
        vanishes but for rounding, the largest one of its equality.
        """

        def row(I: Any, carry: Any) -> Any:
            c, sizes = carry

            def add(J: Any, carry: Any) -> Any:
                return cond(self.coupled[I, J] > 0, lambda x: self._products(f, I, J, x), lambda x: x, carry)

            start = self.block(self.g, I)
            c_I, terms = fori_loop(0, self.count, add, (start, [absolute(x) for x in start]))
            return self.with_block(c, I, c_I), self.with_block(sizes, I, terms)

        c, sizes = fori_loop(0, self.count, row, (c, sizes))
        return c, sizes if self.first is None else self._shared(self.first, sizes)

    def _shared(self, first: MutableArray, sizes: MutableArray) -> MutableArray:
        """The sizes, with the largest one of all rows of the same equality for those that vanish but for
        rounding: their accelerations consist of the rounding errors of the others.
        """

        def visit(k: Any, carry: Any) -> Any:
            sizes, before, size = carry
            own, place = sizes[self.width * k], 1.0 * first[k]
            size = where(equal(place, before), maximum(size, own), own)
            has_terms = less(by_precision(own, *VANISHING) * size, own)
            return sizes.set(self.width * k, where(has_terms, own, size)), place, size

        sizes = fori_loop(0, self.count, visit, (sizes, -1.0, 0.0))[0]
        return fori_loop(0, self.count, visit, (sizes, -1.0, 0.0), reverse=True)[0]

    def size(self, sizes: MutableArray, k: Any) -> Any:
        """The largest of the sizes of block k."""
        return reduce(maximum, self.block(sizes, k))

    def _products(self, f: MutableArray, I: Any, J: Any, carry: Any) -> Any:
        """c_I + G_IJ f_J, and the sum of the absolute terms."""
        c, terms = [list(x) for x in carry]
        for i in range(self.width):
            for j in range(self.width):
                x = self.G[self.width * I + i, self.width * J + j] * f[self.width * J + j]
                c[i], terms[i] = c[i] + x, terms[i] + absolute(x)
        return c, terms


class ContactForces(NamedTuple):
    """Forces f (n,) in the coordinates of the problem, their accelerations c = G f + g, and how they were
    found.

    error: the largest violation |f - P| of the contact law by a block, relative to the terms of its
    accelerations. converged: whether it is rounding only. usable: whether it is small enough for the forces
    to be used. unbounded: whether the forces that were found are so large that the error is small beside
    them, but not beside the free acceleration: there is no solution. iterations: of Newton's method.
    """

    f: MutableArray
    c: MutableArray
    error: Any
    converged: Any
    usable: Any
    unbounded: Any
    iterations: Any


class _State(NamedTuple):
    """State of the iteration.

    f, c, sizes: forces, accelerations and sizes of their terms. centre: the f_k of the proximal point method.
    best: the forces with the least error so far. eta, and the factor by which it decreases next;
    newton_iterations: for this eta. centre_error: the error of the centre.
    """

    f: MutableArray
    c: MutableArray
    sizes: MutableArray
    centre: MutableArray
    best: MutableArray
    best_error: Any
    eta: Any
    decrease: Any
    newton_iterations: Any
    centre_error: Any
    iterations: Any
    done: Any


def solve_contact_problem(p: ContactProblem, start: MutableArray) -> ContactForces:
    """Forces of hard contacts by the proximal point method with a semismooth Newton method (see the module).

    start (n,): initial forces, overwritten. A problem whose forces are not determined has one of the
    solutions, and one without a solution is reported as not converged.
    """
    n = p.width * p.capacity
    c, sizes = p.residual(start, empty(n), empty(n))
    error = _error(p, start, c, sizes)
    centre, best = _copy(p, start, empty(n)), _copy(p, start, empty(n))
    initial = _State(
        start, c, sizes, centre, best, error, INITIAL_ETA, FASTEST_DECREASE, 0.0, error, 0.0, _is_exact(error)
    )

    def unfinished(s: _State) -> Any:
        return logical_and(logical_not(s.done), s.iterations < ITERATIONS)

    last = while_loop(unfinished, lambda s: _iterate(p, s), initial)
    c, sizes = p.residual(last.best, last.c, last.sizes)
    factor = by_precision(last.best_error, 1.0, SINGLE_PRECISION)
    unbounded = _is_unbounded(p, last.best, c, sizes)
    converged = logical_and(last.best_error <= STAGNATION * factor, logical_not(unbounded))
    usable = last.best_error <= USABLE_ERROR * maximum(1.0, 1e-2 * factor)
    usable = logical_and(usable, logical_not(unbounded))
    return ContactForces(last.best, c, last.best_error, converged, usable, unbounded, last.iterations)


def _is_unbounded(p: ContactProblem, f: MutableArray, c: MutableArray, sizes: MutableArray) -> Any:
    """Whether terms are large, and the error is not small, beside the free acceleration."""

    def largest(k: Any, found: Any) -> Any:
        free, size = found
        for x in p.block(p.g, k):
            free = maximum(free, absolute(x))
        return free, maximum(size, p.size(sizes, k))

    free, size = fori_loop(0, p.count, largest, (0.0, 0.0))
    n = p.width * p.capacity
    units = fori_loop(0, p.count * p.width, lambda i, x: x.set(i, 1.0), empty(n))
    least = NO_SOLUTION * by_precision(free, 1.0, 100.0) * free
    return logical_and(size > UNBOUNDED * free, _error(p, f, c, units) > least)


def solve_from_zero(p: ContactProblem) -> ContactForces:
    """Forces of hard contacts, from initial forces of zero; see `solve_contact_problem`."""
    start = fori_loop(0, p.count * p.width, lambda i, f: f.set(i, 0.0), empty(p.width * p.capacity))
    return solve_contact_problem(p, start)


def _iterate(p: ContactProblem, s: _State) -> _State:
    """State after one Newton step, and the next problem of the proximal point method."""
    f = _newton_step(p, s)
    c, sizes = p.residual(f, s.c, s.sizes)
    # errors of the contact law: with eta, for Newton's method, and without
    newton_error = _error(p, f, c, sizes, s.eta, s.centre)
    error = _error(p, f, c, sizes)
    better = error < s.best_error
    best = cond(better, lambda best: _copy(p, f, best), lambda best: best, s.best)
    best_error = where(better, error, s.best_error)
    factor = by_precision(error, 1.0, SINGLE_PRECISION)
    # a problem is solved when its error is small against the progress that its eta allows
    progress = s.centre_error * minimum(s.eta, 1.0)
    last_one = s.newton_iterations + 1 >= NEWTON_ITERATIONS
    exact = newton_error <= maximum(TOLERANCE * factor, INEXACT * progress)
    tolerable = newton_error <= maximum(30 * TOLERANCE * factor, ACCEPTED * progress)
    solved = logical_or(exact, logical_and(last_one, tolerable))
    failed = logical_and(logical_not(solved), logical_or(last_one, logical_not(newton_error < 1e100)))
    stagnant = logical_and(best_error <= STAGNATION * factor, error > s.centre_error / 2)
    # eta decreases by a factor that tends to its least in problems that are solved, and to 1 in others
    eta = where(solved, maximum(s.decrease * s.eta, by_precision(error, *SMALLEST_ETA)), s.eta)
    eta = where(failed, minimum(ETA_INCREASE * s.eta, LARGEST_ETA), eta)
    root = sqrt(s.decrease)
    decrease = where(solved, maximum(s.decrease * root, FASTEST_DECREASE), s.decrease)
    decrease = where(failed, minimum(root, SLOWEST_DECREASE), decrease)
    centre = cond(solved, lambda x: _copy(p, f, x), lambda x: x, s.centre)
    f, c = cond(failed, lambda f, c: _restart(p, centre, f, c, sizes), lambda f, c: (f, c), f, c)
    return _State(
        f, c, sizes, centre, best, best_error, eta, decrease,
        where(logical_or(solved, failed), 0.0, s.newton_iterations + 1),
        where(solved, error, s.centre_error),
        s.iterations + 1,
        logical_or(_is_exact(best_error), logical_and(solved, stagnant)),
    )  # fmt: skip


def _newton_step(p: ContactProblem, s: _State) -> MutableArray:
    """Forces after a step of Newton's method on F = f - P(f, z) with G + eta and g - eta centre.

    With B = dP/dz (see `contact_law`), F' = 1 - B (1 - r (G + eta)).
    """

    def law(k: Any) -> tuple[list[Any], list[list[Any]]]:
        return contact_law(p, k, s.f, s.c, s.eta, s.centre)

    d, _ = solve_block_lu(p.count, p.width, *linear_system(p, _step_length(s.eta), s.eta, law))

    def add(k: Any, f: MutableArray) -> MutableArray:
        return p.with_block(f, k, [x + y for x, y in zip(p.block(f, k), p.block(d, k), strict=True)])

    return fori_loop(0, p.count, add, s.f)


def linear_system(
    p: ContactProblem, r: Any, eta: Any, law: Callable[[Any], tuple[list[Any], Any]]
) -> tuple[MutableArray, MutableArray, MutableArray]:
    """The matrix 1 - B + r B (G + eta), its blocks that are not zero, and the right-hand side; law(k):
    right-hand side and B of block k.
    """
    w, n = p.width, p.width * p.capacity

    def row(I: Any, carry: Any) -> Any:
        residual, B = law(I)
        A, coupled, right = carry
        right = p.with_block(right, I, residual)

        def column(J: Any, carry: Any) -> Any:
            return cond(p.coupled[I, J] > 0, lambda x: products(J, x), lambda x: zero(J, x), carry)

        def products(J: Any, carry: Any) -> Any:
            A, coupled = carry
            G = [[p.G[w * I + k, w * J + j] for j in range(w)] for k in range(w)]
            for i in range(w):
                for j in range(w):
                    A = A.set((w * I + i, w * J + j), r * sum(B[i][k] * G[k][j] for k in range(w)))
            return A, coupled.set((I, J), 1.0)

        def zero(J: Any, carry: Any) -> Any:
            A, coupled = carry
            for i in range(w):
                for j in range(w):
                    A = A.set((w * I + i, w * J + j), 0.0)
            return A, coupled.set((I, J), 0.0)

        A, coupled = fori_loop(0, p.count, column, (A, coupled))
        for i in range(w):
            for j in range(w):
                diagonal = (1 if i == j else 0) - B[i][j] + r * eta * B[i][j]
                A = A.set((w * I + i, w * I + j), A[w * I + i, w * I + j] + diagonal)
        return A, coupled.set((I, I), 1.0), right

    initial = empty((n, n)), empty((p.capacity, p.capacity)), empty(n)
    return fori_loop(0, p.count, row, initial)


def is_undetermined(p: ContactProblem, found: ContactForces, slip: MutableArray, slides: MutableArray) -> Any:
    """Whether rigid friction leaves no or several accelerations (Painleve's paradox), at contacts that slide.

    slip (n,): velocity, of any size, in the coordinates of the problem. slides (capacity,): 1 where a contact
    is closed and slides at it. While the direction of sliding holds, f_t = -m f_n slip / |slip|, and the
    accelerations are determined for every load if the principal minors of the linear system are positive.
    Evaluated are the leading ones, with the modes of the other contacts as they were found. Source: Genot,
    Brogliato, Eur. J. Mech. A 18 (1999) 653.
    """
    w = p.width

    def law(k: Any) -> tuple[list[Any], list[list[Any]]]:
        _, B = contact_law(p, k, found.f, found.c, 0.0, None)
        direction = p.block(slip, k)
        size = norm(direction[1:])
        sliding = [1.0, *(-p.disc[k] * x / where(size > 0, size, 1.0) for x in direction[1:])]
        columns = [[x, *(0.0 for _ in direction[1:])] for x in sliding]
        return [0.0] * w, [_chosen(slides[k] > 0, a, b) for a, b in zip(columns, B, strict=True)]

    def evaluate() -> Any:
        eta = by_precision(found.error, *REDUNDANT_ETA)
        _, least = solve_block_lu(p.count, w, *linear_system(p, 1.0, eta, law))
        return least < -eta

    any_slides = fori_loop(0, p.count, lambda k, x: maximum(x, slides[k]), 0.0)
    return cond(any_slides > 0, evaluate, lambda: 0.0 > 1.0)


def contact_law(
    p: ContactProblem, k: Any, f: MutableArray, c: MutableArray, eta: Any, centre: MutableArray | None
) -> tuple[list[Any], list[list[Any]]]:
    """P(f, z) - f of block k, without cancellation, and the derivative B = dP/dz.

    centre None: the problem without eta, with r = 1.
    """
    x, y = p.block(f, k), p.block(c, k)
    if centre is not None:
        y = [a + eta * (b - b_k) for a, b, b_k in zip(y, x, p.block(centre, k), strict=True)]
    r = 1.0 if centre is None else _step_length(eta)
    step = [r * a for a in y]
    z = [a - b for a, b in zip(x, step, strict=True)]
    size = norm(z[1:])
    direction = [a / where(size > 0, size, 1.0) for a in z[1:]]
    change, B = _coulomb_law(p, k, x, step, z, size, direction)
    if p.soft is None:
        return change, B
    is_soft = p.soft[k] > 0
    convex, convex_B = _convex_law(p.disc[k], x, step, z, size, direction)
    rows = zip(convex_B, B, strict=True)
    return _chosen(is_soft, convex, change), [_chosen(is_soft, a, b) for a, b in rows]


def _coulomb_law(
    p: ContactProblem, k: Any, x: list[Any], step: list[Any], z: list[Any], size: Any, direction: list[Any]
) -> tuple[list[Any], list[list[Any]]]:
    """P - x and B of a row between its bounds, and of Coulomb's law; z = x - step, with its tangential part's
    size and direction.
    """
    # normal: between its bounds; tangential: in the disc of radius m P_n
    normal = clip(z[0], p.lower[k], p.upper[k])
    free = where(logical_and(p.lower[k] < z[0], z[0] < p.upper[k]), 1.0, 0.0)
    radius = p.disc[k] * normal
    slides = size >= radius
    scale = where(slides, radius / where(size > 0, size, 1.0), 1.0)
    B: list[list[Any]] = [[free, *(0.0 for _ in direction)]]
    for t, unit in zip(direction, _unit_rows(len(direction)), strict=True):
        across = [one - where(slides, t * u, 0.0) for one, u in zip(unit, direction, strict=True)]
        B.append([where(slides, p.disc[k] * free * t, 0.0), *(scale * a for a in across)])
    tangential = [where(slides, scale * c - a, -b) for a, b, c in zip(x[1:], step[1:], z[1:], strict=True)]
    return [where(free > 0, -step[0], normal - x[0]), *tangential], B


def _convex_law(
    m: Any, x: list[Any], step: list[Any], z: list[Any], size: Any, direction: list[Any]
) -> tuple[list[Any], list[list[Any]]]:
    """P - x and B of a soft cone, as `_coulomb_law` has them: P is the point of the cone nearest to z."""
    inside, in_polar = size <= m * z[0], m * size <= -z[0]
    # on the surface P = (P_n, m P_n t), with P_n = (z_n + m |z_t|) / (1 + m^2)
    share = 1 / (1 + m * m)
    rise = share * (m * (size - m * x[0]) - step[0])
    radius = m * (x[0] + rise)
    surface = [rise, *(radius * t - a for t, a in zip(direction, x[1:], strict=True))]
    change = [where(inside, -b, where(in_polar, -a, c)) for a, b, c in zip(x, step, surface, strict=True)]
    along, turn = [1.0, *(m * t for t in direction)], radius / where(size > 0, size, 1.0)
    B = []
    for i, unit in enumerate(_unit_rows(len(x))):
        own = [share * along[i] * a for a in along]
        if i > 0:
            others = zip(own[1:], unit[1:], direction, strict=True)
            own[1:] = [a + turn * (one - direction[i - 1] * t) for a, one, t in others]
        B.append([where(inside, one, where(in_polar, 0.0, a)) for one, a in zip(unit, own, strict=True)])
    return change, B


def _unit_rows(n: int) -> list[list[float]]:
    """The rows of the identity (n, n)."""
    return [[1.0 if i == j else 0.0 for j in range(n)] for i in range(n)]


def _chosen(condition: Any, then: list[Any], otherwise: list[Any]) -> list[Any]:
    """The values of one list or of the other."""
    return [where(condition, a, b) for a, b in zip(then, otherwise, strict=True)]


def _error(
    p: ContactProblem, f: MutableArray, c: MutableArray, sizes: MutableArray, eta: Any = 0.0,
    centre: MutableArray | None = None,
) -> Any:  # fmt: skip
    """The norm of |f - P| / r over the normals and the tangents of the blocks, each relative to the terms of
    the accelerations on which it depends; with centre, of the problem with eta.
    """
    r = 1.0 if centre is None else _step_length(eta)

    def add(k: Any, total: Any) -> Any:
        (normal, *tangential), B = contact_law(p, k, f, c, eta, centre)
        size_n, *others = p.block(sizes, k)
        size_t = reduce(maximum, others, 0.0)
        # a sliding contact has the friction of its normal force, and a soft cone the normal of its slip
        coupling_n, coupling_t = [
            sum((absolute(x) for x in own), start=0.0) for own in (B[0][1:], [row[0] for row in B[1:]])
        ]
        errors = [normal / (r * maximum(size_n + coupling_n * size_t, SMALLEST_SCALE))]
        scale = 1 / (r * maximum(size_t + coupling_t * size_n, SMALLEST_SCALE))
        errors += [scale * x for x in tangential]
        return total + sum(x * x for x in errors)

    return sqrt(fori_loop(0, p.count, add, 0.0))


def contact_law_residuals(p: ContactProblem, f: MutableArray) -> tuple[Any, Any, Any]:
    """The largest residuals of the laws of Signorini, Coulomb and maximum dissipation over all blocks, each
    relative to the terms of the block's accelerations: |f_n - P_n|, max(0, |f_t| - m f_n) and |f_t - P_t|.
    """
    n = p.width * p.capacity
    c, sizes = p.residual(f, empty(n), empty(n))

    def add(k: Any, largest: Any) -> Any:
        (normal, *tangential), _ = contact_law(p, k, f, c, 0.0, None)
        x, scale = p.block(f, k), 1 / maximum(p.size(sizes, k), SMALLEST_SCALE)
        beyond = norm(x[1:]) - p.disc[k] * maximum(x[0], 0.0)
        found = absolute(normal), beyond, norm(tangential)
        return [maximum(a, b * scale) for a, b in zip(largest, found, strict=True)]

    signorini, coulomb, dissipation = fori_loop(0, p.count, add, [0.0, 0.0, 0.0])
    return signorini, coulomb, dissipation


def _step_length(eta: Any) -> Any:
    """r: the geometric mean of the scales 1 of G and 1 / eta, or 1 / eta where that dominates."""
    return 1 / maximum(sqrt(eta), eta)


def _is_exact(error: Any) -> Any:
    """Whether the error is rounding at its least."""
    return error <= TOLERANCE * by_precision(error, 1.0, SINGLE_PRECISION)


def _copy(p: ContactProblem, source: MutableArray, target: MutableArray) -> MutableArray:
    """The values of all blocks, in another array."""
    return fori_loop(0, p.count, lambda k, x: p.with_block(x, k, p.block(source, k)), target)


def _restart(
    p: ContactProblem, centre: MutableArray, f: MutableArray, c: MutableArray, sizes: MutableArray
) -> tuple[MutableArray, MutableArray]:
    """Forces and accelerations of the centre."""
    f = _copy(p, centre, f)
    return f, p.residual(f, c, empty(sizes.shape[0]))[0]


def scaled_problem(
    p: ContactProblem, friction: MutableArray, inverse_weight: MutableArray
) -> tuple[ContactProblem, MutableArray]:
    """The problem of rows in their own units, scaled, and the factors (n,) by which scaled forces are forces.

    p: with the lower triangle of any G and with any g, which are overwritten, any `coupled`, and a disc of 1
    or 0. friction (n,): 1 for the first row of a block, the friction coefficient of a tangential row, 0 for
    an unused row. inverse_weight (capacity,): of blocks that are hard equalities, else 0. The factors are D_n
    and friction_i D_t, with which G has the diagonal 1 for the normal and for the tangential row where it is
    largest; for an equality 1 / D_n^2 is its inverse weight, at most `LARGEST_RATIO` times its diagonal
    entry unless this vanishes. Of redundant equalities the sum of squares of the scaled forces is the least,
    so that they share their force by these weights. A normal that hardly moves anything is scaled as if it
    moved `LEAST_MOBILITY`.
    """
    w = p.width
    whole = [(i, j) for i in range(w) for j in range(w)]
    triangle = [(i, j) for i, j in whole if j <= i]

    def root_of(diagonal: Any) -> Any:
        """1 / D, infinite where G overflows. A constant: only how redundant forces are shared depends on
        it, whose derivative is left out.
        """
        return without_derivatives(lambda x: sqrt(where(x > 0, x, 1.0)), diagonal)

    def factors(k: Any, carry: Any) -> Any:
        scale, lower, upper, disc = carry
        normal, *tangents = [w * k + j for j in range(w)]
        least = LEAST_MOBILITY * p.G[tangents[0], tangents[0]] * disc[k] if tangents else 0.0
        largest: Any = 0.0
        for i in tangents:
            largest = maximum(largest, friction[i] * friction[i] * p.G[i, i])
        given, own = inverse_weight[k], maximum(p.G[normal, normal], least)
        vanishes = less(own, by_precision(own, *NO_DIAGONAL) * given)
        given = where(vanishes, given, minimum(given, LARGEST_RATIO * own))
        root, root_t = root_of(where(given > 0, given, own)), root_of(largest)
        scale = p.with_block(scale, k, [1 / root, *(friction[i] * (1 / root_t) for i in tangents)])
        disc = disc.set(k, disc[k] * root_t / root)
        return scale, lower.set(k, lower[k] * root), upper.set(k, upper[k] * root), disc

    initial = empty(w * p.capacity), p.lower, p.upper, p.disc
    scale, lower, upper, disc = fori_loop(0, p.count, factors, initial)

    def row(I: Any, carry: Any) -> Any:
        G, g, coupled = carry
        g = p.with_block(g, I, [x * y for x, y in zip(p.block(g, I), p.block(scale, I), strict=True)])

        def block(J: Any, carry: Any, entries: list[tuple[int, int]] = whole) -> Any:
            G, coupled, size = *carry, 0.0
            for i, j in entries:
                k, l = w * I + i, w * J + j
                x = scale[k] * G[k, l] * scale[l]
                G, size = G.set((k, l), x).set((l, k), x), size + absolute(x)
            is_coupled = where(size > 0, 1.0, 0.0)
            return G, coupled.set((I, J), is_coupled).set((J, I), is_coupled)

        G, coupled = block(I, fori_loop(0, I, block, (G, coupled)), triangle)
        return G, g, coupled

    G, g, coupled = fori_loop(0, p.count, row, (p.G, p.g, p.coupled))
    return p._replace(G=G, g=g, coupled=coupled, lower=lower, upper=upper, disc=disc), scale

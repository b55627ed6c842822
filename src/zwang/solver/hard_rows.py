"""Gauss's problem with hard contacts, limits or friction, in dual (Delassus) form.

    A = J M^-1 J^T + R,    c = A f + J a_free - aref,    a = a_free + M^-1 J^T f

The active rows of each world are gathered in blocks, one for each contact and one for each other row, and
`hard_contact` finds their forces. Soft rows, R > 0, are part of the same problem, with their own law.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import Factors, factor
from zwang.algebra.woodbury import delassus_matrix
from zwang.constraint.context import StepForm
from zwang.constraint.rows import Rows, scalar_array
from zwang.constraint.softness import closing_acceleration
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    MutableArray,
    absolute,
    cond,
    empty,
    fori_loop,
    lane_maximum,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    where,
    without_derivatives,
    zeros,
)
from zwang.solver.hard_contact import (
    ContactForces,
    ContactProblem,
    is_undetermined,
    scaled_problem,
    solve_from_zero,
)
from zwang.solver.hard_derivatives import changes_status, is_ambiguous, with_derivatives
from zwang.solver.multipliers import is_inconsistent
from zwang.solver.primal_cost import PrimalCost, RowBlock
from zwang.solver.solution import Solution

BALANCED = 0.01  # a sum of terms of J^T y, relative to their absolute values, up to which it counts as zero
CLOSED = 0.01  # largest normal velocity of a closed contact, with distance / h, relative to its slip
# Memory for contacts that act at once, as the Delassus matrix grows with its square:
FEWEST_CONTACTS = 64  # in all, or
CONTACTS_PER_VELOCITY = 2  # twelve for a free body
PER_BLOCK = ("lower", "upper", "disc", "soft", "inverse_weight", "first")  # fields of gathered rows


class _GatheredRows(NamedTuple):
    """The active rows of each world, block by block.

    count: the number of blocks of this world, and of the arrays' blocks. J (capacity width, nx): by the nv
    velocities and the spatial velocities of links. aref, R, slip, friction, number (capacity width,): of each
    row; slip: -aref without Jdot v of hard cones, else 0; friction as for `scaled_problem`; number among all
    rows, -1 for unused rows. lower, upper, disc, soft, first (capacity,): as in `ContactProblem`;
    inverse_weight: of blocks that are hard equalities, else 0.
    """

    count: Any
    J: MutableArray
    aref: MutableArray
    R: MutableArray
    slip: MutableArray
    friction: MutableArray
    number: MutableArray
    lower: MutableArray
    upper: MutableArray
    disc: MutableArray
    soft: MutableArray
    inverse_weight: MutableArray
    first: MutableArray


class _GatheredProblem(NamedTuple):
    """The contact problem of the active rows.

    count: the number of rows. M: its factors. X (n, nv): L^-T J^T by rows. scale (n,): the factors by which
    the forces of `contacts` are forces.
    """

    contacts: ContactProblem
    gathered: _GatheredRows
    M: Factors
    X: MutableArray
    scale: MutableArray
    count: Any


def solve_hard_rows(
    problem: GaussProblem, rows: Rows, *, step: StepForm | None = None, tangents: bool = False
) -> Solution:
    """Solution of a problem some of whose rows are hard (R = 0): hard contacts obey Coulomb's law.

    step: see `solve`. tangents: whether the data are tangents; the iteration then runs on their
    values, and the derivatives are those of its solution. The forces reported are those of all rows but the
    ones of pair-type groups.
    """
    g = _gathered_problem(problem, rows, step)
    p = g.contacts
    found = without_derivatives(solve_from_zero, p)
    if tangents:
        found = with_derivatives(p, found)
        undetermined: Any = 0.0 > 1.0  # a step that fails has no derivatives
    else:
        undetermined = is_undetermined(p, found, *_sliding(p, g))
        undetermined = logical_or(undetermined, logical_and(found.unbounded, _has_friction(p)))
    solution = _solution(problem, rows, g, found)
    overfull = g.gathered.count > p.capacity
    converged = logical_and(solution.converged, logical_not(logical_or(undetermined, overfull)))
    return solution._replace(
        converged=converged, undetermined=undetermined, overfull=overfull, near_change=NearChange(g, found)
    )


def _has_friction(p: ContactProblem) -> Any:
    """Whether a block is a contact with friction."""
    return fori_loop(0, p.count, lambda k, found: maximum(found, p.disc[k]), 0.0) > 0


class NearChange(NamedTuple):
    """The function of changes of a solution, whether they make its derivative one-sided, or whether it is not
    that of a unique acceleration, see `hard_derivatives`.
    """

    problem: _GatheredProblem
    forces: ContactForces

    def __call__(self, close: float, displacement: float = 0.0, timestep: Any = 1.0) -> Any:
        """close: the change of an acceleration, relative to its terms. displacement [m, rad]: the change of
        the distance of a hard row, or [m/s, rad/s] of a speed for friction, and timestep [s]: within which a
        hard row closes a distance or stops a speed; none for impacts.
        """
        g, p = self.problem, self.problem.contacts

        def change(k: Any, size: Any) -> Any:
            """Of the normal acceleration of block k, whose terms have this size."""
            own = displacement / timestep * where(p.lower[k] < 0, 1.0, 1 / timestep) * g.scale[p.width * k]
            return close * size + where(g.gathered.R[p.width * k] > 0, 0.0, own)

        return logical_or(changes_status(p, self.forces, change), is_ambiguous(p, self.forces))


def _gathered_problem(problem: GaussProblem, rows: Rows, step: StepForm | None = None) -> _GatheredProblem:
    """The contact problem of the active rows of each world."""
    primal = PrimalCost(problem, rows)
    width = _largest_block(rows)
    gathered = _gathered_rows(primal, rows, width, step)
    capacity = gathered.lower.shape[0]
    count = lane_maximum(gathered.count, capacity)
    gathered = _without_unused_blocks(gathered, count, width)
    M = factor(problem.M, problem.parents)
    X, g = _row_arrays(problem, primal, rows, gathered, M, count, width)
    coupled = _sharing_trees(problem, X, count, width)
    G = delassus_matrix(X, M.reciprocals, count, X.shape[0], width, lambda i: gathered.R[i], coupled)
    p = ContactProblem(
        count, width, G, g, empty((capacity, capacity)), gathered.lower, gathered.upper, gathered.disc,
        gathered.soft if _any_soft_cone(rows) else None, gathered.first if _any_equality(rows) else None,
    )  # fmt: skip
    p, scale = scaled_problem(p, gathered.friction, gathered.inverse_weight)
    return _GatheredProblem(p, gathered, M, X, scale, count * width)


def _any_soft_cone(rows: Rows) -> bool:
    """Whether the law of a cone is that of a convex problem."""
    own = any(not rows.hard[cone.start] for cone in rows.cones)
    return own or any("cone" in group.kinds and not group.hard for group in rows.row_groups)


def _any_equality(rows: Rows) -> bool:
    """Whether a row is a hard equality."""
    return any(hard and kind == "equality" for hard, kind in zip(rows.hard, rows.kinds, strict=True))


def _largest_block(rows: Rows) -> int:
    """The largest number of rows in a block."""
    cones = [cone.stop - cone.start for cone in rows.cones]
    return max([1, *cones, *(group.size for group in rows.row_groups if "cone" in group.kinds)])


def _gathered_rows(primal: PrimalCost, rows: Rows, width: int, step: StepForm | None) -> _GatheredRows:
    """The active rows of each world; every row outside cones is a block of its own.

    Where more contacts are active than there is memory for, the count exceeds the capacity, and the values of
    the last block are meaningless.
    """
    cones = sum(len(group) * (1 if "cone" in group.kinds else group.size) for group in rows.row_groups)
    most = max(FEWEST_CONTACTS, CONTACTS_PER_VELOCITY * primal.nv)
    capacity = len(rows.cones) + sum(kind != "cone" for kind in rows.kinds) + min(cones, most)
    nx = primal.nv + 6 * len(primal.link_numbers)
    n = capacity * width
    gathered = _GatheredRows(
        0.0, empty((n, nx)), *(empty(n) for _ in range(5)), *(empty(capacity) for _ in PER_BLOCK)
    )

    def add(block: RowBlock, gathered: _GatheredRows) -> _GatheredRows:
        return cond(block.active, lambda x: append(block, x), lambda x: x, gathered)

    def append(block: RowBlock, gathered: _GatheredRows) -> _GatheredRows:
        if block.cone is not None:
            law = 0.0, np.inf, 1.0, where(1 / block.D[0] > 0, 1.0, 0.0), 0.0, gathered.count
            chosen = list(range(len(block.kinds)))
            return _appended(gathered, block, chosen, law, width, _slip(block, step))
        start = gathered.count
        for i, kind in enumerate(block.kinds):
            bound = block.bound[i] if kind == "friction" else np.inf
            lower = 0.0 if kind in ("limit", "contact") else -bound
            is_hard_equality = kind == "equality" and block.group.rows.hard
            own = (block.inverse_weight[i], start) if is_hard_equality else (0.0, gathered.count)
            gathered = _appended(gathered, block, [i], (lower, bound, 0.0, 0.0, *own), width, [0.0])
        return gathered

    return primal.over_active_blocks(add, gathered)


def _slip(block: RowBlock, step: StepForm | None) -> list[Any]:
    """-aref of a hard cone without Jdot v; its velocity in an impact, whose unknown is a change of it."""
    if not block.group.rows.hard:
        return [0.0] * len(block.kinds)
    if step is None:
        return list(block.velocity)
    distances = [block.position[0], *[0] * (len(block.kinds) - 1)]
    own = zip(block.velocity, distances, strict=True)
    return [closing_acceleration(u, x, step.size, step.closing_damping) for u, x in own]


def _appended(
    gathered: _GatheredRows, block: RowBlock, chosen: list[int], law: tuple[Any, ...], width: int,
    slip: list[Any],
) -> _GatheredRows:  # fmt: skip
    """The gathered rows with one more block: the chosen rows of a block of the problem, with their slip."""
    nx, first = gathered.J.shape[1], gathered.count * width
    values = gathered._asdict()

    def clear(e: Any, J: MutableArray) -> MutableArray:
        for j in range(width):
            J = J.scatter((first + j) * nx + 1.0 * e, 0.0)
        return J

    J, own, cone = fori_loop(0, nx, clear, gathered.J), block.J, block.cone
    for j in range(width):
        used = j < len(chosen)
        i = chosen[j] if used else 0
        friction = (cone.friction[j - 1] if j else 1.0) if used and cone is not None else 1.0
        row = {
            "aref": block.aref[i] if used else 0.0,
            "R": 1 / block.D[i] if used else 0.0,
            "slip": slip[j] if used else 0.0,
            "friction": friction if used else 0.0,
            "number": 1.0 * (block.start + i) if used else -1.0,
        }
        for name, x in row.items():
            values[name] = values[name].scatter(first + j, x)
        for c, column in enumerate(block.columns if used else ()):
            position = (first + j) * nx + 1.0 * column
            J = J.scatter(position, J.gather(position) + own[i, c])
    for name, x in zip(PER_BLOCK, law, strict=True):
        values[name] = values[name].scatter(gathered.count, x)
    return _GatheredRows(**{**values, "J": J, "count": gathered.count + 1.0})


def _without_unused_blocks(gathered: _GatheredRows, count: Any, width: int) -> _GatheredRows:
    """The rows with blocks without effect where this world has fewer blocks than its neighbours."""
    nx = gathered.J.shape[1]

    def fill(k: Any, gathered: _GatheredRows) -> _GatheredRows:
        used = 1.0 * k < gathered.count
        values = gathered._asdict()
        for name in PER_BLOCK:
            values[name] = values[name].set(k, where(used, values[name][k], 0.0))
        for j in range(width):
            i = width * k + j
            for name, otherwise in (
                ("aref", 0.0),
                ("R", 0.0),
                ("slip", 0.0),
                ("friction", 0.0 if j else 1.0),
                ("number", -1.0),
            ):
                values[name] = values[name].set(i, where(used, values[name][i], otherwise))

            def mask(e: Any, J: MutableArray, i: Any = i) -> MutableArray:
                return J.set((i, e), where(used, J[i, e], 0.0))

            values["J"] = fori_loop(0, nx, mask, values["J"])
        return _GatheredRows(**values)

    return fori_loop(0, count, fill, gathered)


def _row_arrays(
    problem: GaussProblem,
    primal: PrimalCost,
    rows: Rows,
    gathered: _GatheredRows,
    M: Factors,
    count: Any,
    width: int,
) -> tuple[MutableArray, MutableArray]:
    """X = L^-T J^T by rows (n, nv), and g = J a_free - aref (n,)."""
    nv = primal.nv
    link_jacobians = [
        (nv + 6 * k, rows.screws.jacobian(nv, link))
        for link, k in primal.link_numbers.items()
        if rows.screws is not None
    ]

    def enter(i: Any, carry: Any) -> Any:
        X, g = carry
        J = np.array([gathered.J[i, e] for e in range(nv)])
        for start, B in link_jacobians:
            J = sum((gathered.J[i, start + c] * B[c] for c in range(6)), start=J)
        for e, x in enumerate(M.solve_transposed(J)):
            X = X.set((i, e), x)
        return X, g.set(i, J @ problem.a_free - gathered.aref[i])

    n = gathered.aref.shape[0]
    return fori_loop(0, count * width, enter, (empty((n, nv)), empty(n)))


def _sharing_trees(
    problem: GaussProblem, X: MutableArray, count: Any, width: int
) -> Callable[[Any, Any], Any] | None:
    """Whether two blocks of rows may move common trees of velocities; None if there is one tree."""
    nv = X.shape[1]
    tree: list[int] = []
    for parent in problem.parents:
        tree.append(tree[parent] if parent >= 0 else max(tree, default=-1) + 1)
    if max(tree, default=0) == 0:
        return None

    def block(K: Any, carry: Any) -> Any:
        """The first and the last tree that the rows of block K move."""
        first, last = carry
        low, high = float(nv), -1.0
        for k in range(max(tree) + 1):
            entries = [X[width * K + j, e] for j in range(width) for e in range(nv) if tree[e] == k]
            moved = sum(x * x for x in entries) > 0
            low, high = where(moved, minimum(low, float(k)), low), where(moved, float(k), high)
        return first.set(K, low), last.set(K, high)

    size = X.shape[0] // width
    first, last = fori_loop(0, count, block, (empty(size), empty(size)))
    return lambda K, J: logical_and(first[K] <= last[J], first[J] <= last[K])


def _sliding(p: ContactProblem, problem: _GatheredProblem) -> tuple[Any, Any]:
    """The slip of every hard contact, by rows, and whether it is closed and slides before the step.

    It slides if friction would have to exceed the other loads, the share of Jdot v among them, in order to
    stop it within the step.
    """

    def add(k: Any, carry: Any) -> Any:
        slip, slides = carry
        own = [
            x * s for x, s in zip(p.block(problem.gathered.slip, k), p.block(problem.scale, k), strict=True)
        ]
        loads = sum((x - u) * (x - u) for x, u in zip(p.block(p.g, k), own, strict=True))
        size = sum(u * u for u in own[1:])
        hard_cone = logical_and(p.disc[k] > 0, problem.gathered.soft[k] < 0.5)
        closed = own[0] * own[0] <= CLOSED * CLOSED * size
        sliding = logical_and(logical_and(hard_cone, closed), size > loads)
        return p.with_block(slip, k, own), slides.set(k, where(sliding, 1.0, 0.0))

    return fori_loop(0, p.count, add, (empty(p.width * p.capacity), empty(p.capacity)))


def _solution(problem: GaussProblem, rows: Rows, g: _GatheredProblem, found: ContactForces) -> Solution:
    """The acceleration a = a_free + L^-1 D^-1 X^T f, and the force of every row."""
    nv, gathered, X = len(problem.a_free), g.gathered, g.X

    def add(i: Any, carry: Any) -> Any:
        generalised_force, forces = carry
        f = g.scale[i] * found.f[i]
        generalised_force = generalised_force + f * np.array([X[i, e] for e in range(nv)])
        inside = gathered.number[i] >= 0
        number = where(inside, gathered.number[i], 0.0)
        return generalised_force, cond(inside, lambda x: x.scatter(number, f), lambda x: x, forces)

    total = rows.count
    generalised_force, forces = fori_loop(0, g.count, add, (np.zeros(nv), zeros(max(total, 1))))
    a = problem.a_free + g.M.solve_scaled(generalised_force)
    inconsistent = cond(
        found.converged,
        lambda: False,
        lambda: logical_and(is_inconsistent(problem.M, rows, a), _is_least(g, found.c)),
    )
    inaccurate = logical_not(found.usable)
    force = scalar_array([forces[i] for i in range(len(rows))])
    return Solution(
        a, force, found.iterations, found.converged, inconsistent, inaccurate=inaccurate, row_force=forces
    )


def _is_least(g: _GatheredProblem, c: MutableArray) -> Any:
    """Whether no acceleration reduces the residuals of the hard equalities together, so that those which
    are left prove a contradiction: J^T y = 0 for y = w (J a - aref), with the weights w of the scaled rows.

    c (n,): the residuals of the scaled rows. An iterate that has only not converged has other residuals.
    """
    p, X = g.contacts, g.X
    nv = X.shape[1]

    def add(k: Any, carry: Any) -> Any:
        total, size = carry
        i = p.width * k
        both_signs = logical_and(p.lower[k] <= -np.inf, p.upper[k] >= np.inf)
        is_hard_equality = logical_and(both_signs, g.gathered.R[i] <= 0)
        y = where(is_hard_equality, g.scale[i] * c[i], 0.0)
        terms = np.array([y * X[i, e] for e in range(nv)])
        return total + terms, size + np.array([absolute(x) for x in terms])

    total, size = fori_loop(0, p.count, add, (np.zeros(nv), np.zeros(nv)))
    left = [absolute(x) - BALANCED * y for x, y in zip(total, size, strict=True)]
    return reduce(maximum, left, 0.0) <= 0

"""The primal cost Z(a) + sum s_i(J_i a - aref_i): its slope and curvature, gathered group by group.

A group's rows act together or not at all, and touch the same few unknowns: a contact, a loop. What no world at hand needs, a group of rows
that does not act, is not worked out when compiled; on floats it is skipped.

The unknowns x that rows are by are the speeds and, behind them, the screws of links that are held against the world: rows at a link need six
columns only, K = J^T W J is a stiffness at the link, and the tree carries it on to the speeds (seed 002's K_k).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.blocked_ldlt import BlockedLDLT
from zwang.algebra.factorization import sparse_ltdl, sparse_ltdl_solve
from zwang.constraint.rows import Cone, RowGroup, Rows, array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    MutableArray,
    absolute,
    are_constant,
    cond,
    empty,
    for_each,
    is_zero,
    logical_or,
    value_is_constant,
    zeros,
)
from zwang.scalar.stacked_pytree import StackedPytree
from zwang.solver.cones import cone_force, row_force
from zwang.solver.line_search import exact_step

WRITTEN_OUT = 10_000  # multiplications up to which the Hessian's factorisation is written out entry by entry
WORTH_ASKING = 4  # times the work, from which on it is asked whether some rows fill in the Hessian
ROUNDING = 1e-13  # what sums of this size may be off by


class Group(NamedTuple):
    """Rows number start, start + 1, ... of the problem, with J (n, k) on the k unknowns `columns` that they touch only.

    number: of the group itself. places: where the entries (i >= j) of J^T W J belong in the Hessian's array, by (place in columns of i, of j).
    """

    number: Any
    start: Any
    columns: Sequence[Any]
    places: Sequence[tuple[int, int, Any]]
    J: np.ndarray
    aref: np.ndarray
    D: np.ndarray
    kinds: tuple[str, ...]
    bound: Any
    cone: Cone | None
    active: Any
    may_rest: bool

    def along(self, x: MutableArray) -> np.ndarray:
        """J x (n,)."""
        return self.J @ np.array([x[k] for k in self.columns])

    def answer(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Forces (n,) and curvature W (n, n) of the rows' costs at y = J a - aref."""
        if self.cone is not None:
            force, W = cone_force(self.cone, self.D, y)
            return array(force), W
        both = [row_force(*numbers) for numbers in zip(self.kinds, self.D, y, self.bound, strict=True)]
        return array([force for force, _ in both]), diagonal([w for _, w in both])

    def read(self, y: MutableArray) -> np.ndarray:
        """The elements of y (or another array of all rows) that are this group's (n,)."""
        return array([y[i] for i in self.rows()])

    def rows(self) -> list[Any]:
        """The numbers of the rows."""
        return [self.start + i for i in range(len(self.kinds))]


Work = Callable[[Group, Any], Any]
RowForce = Callable[[Group, Any], tuple[np.ndarray, np.ndarray]]


class PrimalCost:
    """The cost of a problem and its rows, as functions of the acceleration a (nv,)."""

    def __init__(self, problem: GaussProblem, rows: Rows) -> None:
        self.problem, self.rows = problem, rows
        self.nv = len(problem.a_free)
        self.count = len(rows) + sum(len(batch.columns) * batch.size for batch in rows.batches)
        on_links = [part.link for part in rows.on_links]
        on_links += [link for batch in rows.batches if batch.on_links for (link,) in batch.columns]
        self.slots = {link: k for k, link in enumerate(sorted(set(on_links)))}
        spans = [(start, stop, self._static_columns(start, stop)) for start, stop in _spans(rows)]
        coupling = [columns for _, _, columns in spans]
        coupling += [own for batch in rows.batches if not batch.on_links for own in batch.columns]
        self.tree, self.filled = self._sparsity(coupling)
        self.tiles = BlockedLDLT(self.nv, self.filled) if _work(self.filled) > WRITTEN_OUT else None
        if self.tiles is None:
            self.size, self.place = len(self.filled), {e: k for k, e in enumerate(sorted(self.filled))}
        else:
            self.size, self.place = self.tiles.size, {e: self.tiles.place(*e) for e in self.filled}
        self.groups = [self._static(number, *span) for number, span in enumerate(spans)]
        self.batches = self._dynamic()
        self.group_count = len(self.groups) + sum(len(batch.columns) for batch in rows.batches)

    # -------------------------------------------------------------------------------------- rows in groups

    def _static_columns(self, start: int, stop: int) -> tuple[int, ...]:
        """The unknowns that these rows touch."""
        link = next((part.link for part in self.rows.on_links if part.start == start), None)
        if link is not None:
            return self._screw(link)
        return tuple(k for k in range(self.nv) if not is_zero(self.rows.J[start:stop, k]))

    def _screw(self, link: int) -> tuple[int, ...]:
        """The numbers of a link's screw among the unknowns."""
        start = self.nv + 6 * self.slots[link]
        return tuple(range(start, start + 6))

    def _static(self, number: int, start: int, stop: int, columns: tuple[int, ...]) -> Group:
        rows, span = self.rows, slice(start, stop)
        part = next((part for part in rows.on_links if part.start == start), None)
        active = rows.active[start]
        # a single speed's rows are cheaper worked out than asked about
        may_rest = part is not None or len(columns) > 1 or value_is_constant(active)
        J = rows.J[span][:, list(columns)] if part is None else part.w
        return Group(
            number, start, columns, self._places(columns), J, rows.aref[span], rows.D[span], rows.kinds[span], rows.bound[span],
            rows.cone_of.get(start), active, may_rest,
        )  # fmt: skip

    def _places(self, columns: Sequence[int]) -> list[tuple[int, int, int]]:
        """For the entries of a block of these unknowns that are kept, (i, j) in it and the place in the Hessian's array.

        Columns that only fill up, being those before again, have zeros and no place of their own.
        """
        pairs = [(i, j) for i in range(len(columns)) for j in range(i + 1)]
        if columns and not self._of_speeds(columns):
            start = self.size + 21 * ((columns[0] - self.nv) // 6)
            return [(i, j, start + k) for k, (i, j) in enumerate(pairs)]
        ordered = [(max(columns[i], columns[j]), min(columns[i], columns[j])) for i, j in pairs]
        return [(i, j, self.place[entry]) for (i, j), entry in zip(pairs, ordered, strict=True)]

    def _dynamic(self) -> list[tuple[RowGroup, Callable[[Any], Group]]]:
        """The batches, each with the function that reads a group by its number."""
        found, first, offset = [], len(self.groups), len(self.rows)
        for batch in self.rows.batches:
            found.append((batch, self._reader(batch, first, offset)))
            first += len(batch.columns)
            offset += len(batch.columns) * batch.size
        return found

    def _reader(self, batch: RowGroup, first: int, offset: int) -> Callable[[Any], Group]:
        columns = [self._screw(own[0]) if batch.on_links else own for own in batch.columns]
        blocks, n = [self._places(own) for own in columns], batch.size
        columns_of, places_of = StackedPytree(columns), StackedPytree([[k for _, _, k in block] for block in blocks])
        shape = n, len(columns[0])

        def group(k: Any) -> Group:
            places = [(i, j, at) for (i, j, _), at in zip(blocks[0], places_of[k], strict=True)]
            J = np.array([batch.J[k, e] for e in range(shape[0] * shape[1])]).reshape(shape)
            aref, D = (array([store[k, i] for i in range(n)]) for store in (batch.aref, batch.D))
            return Group(
                first + k, offset + k * n, columns_of[k], places, J, aref, D, batch.kinds, (0,) * n, batch.cone(k), batch.active[k] > 0, True
            )  # fmt: skip

        return group

    def over_acting_groups(self, work: Work, total: Any) -> Any:
        """`total` after work(group, total) for every group that acts in some world."""
        for group in self.groups:
            if group.may_rest:
                total = cond(group.active, lambda t, g=group: work(g, t), lambda t: t, total)
            else:
                total = work(group, total)
        for batch, group_of in self.batches:
            total = for_each(batch.those_that_act, lambda k, t, of=group_of: work(of(k), t), total)
        return total

    def acting(self) -> Any:
        """Whether some row acts."""
        found = [group.active for group in self.groups] + [batch.acting for batch, _ in self.batches]
        return reduce(logical_or, found, False)

    # -------------------------------------------------------------------------------------- along directions

    def effort(self, a: Any) -> np.ndarray:
        """M (a - a_free) (nv,): what all constraints together have to bring up."""
        return self.problem.M @ (a - self.problem.a_free)

    def _spread(self, a: Any) -> MutableArray:
        """The unknowns x: a and, if some rows ask for them, the links' screws for a."""
        x = empty(self.nv + 6 * len(self.slots))
        for k, value in enumerate(a):
            x = x.set(k, value)
        if self.slots and self.rows.screws is not None:
            spatial_velocities = self.rows.screws.spatial_velocities(a)
            for link in self.slots:
                for k, value in zip(self._screw(link), spatial_velocities[link], strict=True):
                    x = x.set(k, value)
        return x

    def along(self, p: Any) -> MutableArray:
        """J p of all rows that act."""
        x = self._spread(p)
        return self.over_acting_groups(
            lambda group, y: _set(y, zip(group.rows(), group.along(x), strict=True)),
            empty(self.count),
        )

    def residual(self, a: Any) -> MutableArray:
        """y = J a - aref of all rows that act."""
        x = self._spread(a)
        return self.over_acting_groups(
            lambda group, y: _set(y, zip(group.rows(), group.along(x) - group.aref, strict=True)),
            empty(self.count),
        )

    def advanced(self, y: MutableArray, step: Any, Jp: MutableArray) -> MutableArray:
        """y + step J p of all rows that act."""
        return self.over_acting_groups(
            lambda group, y: _set(y, [(i, y[i] + step * Jp[i]) for i in group.rows()]), y
        )

    def push(self, y: MutableArray, answer: RowForce = Group.answer) -> np.ndarray:
        """J^T f (nv,): what the rows' forces bring up where they miss by y, on speeds and as wrenches on links."""
        nv = self.nv

        def add(group: Group, total: MutableArray) -> MutableArray:
            force, _ = answer(group, group.read(y))
            return _added(total, zip(group.columns, group.J.T @ force, strict=True))

        total = self.over_acting_groups(add, zeros(nv + 6 * len(self.slots)))
        push = np.array([total[k] for k in range(nv)])
        if not self.slots or self.rows.screws is None:
            return push
        wrenches = {link: np.array([total[k] for k in self._screw(link)]) for link in self.slots}
        return push + self.rows.screws.efforts(wrenches, nv)

    def forces(self, a: Any) -> np.ndarray:
        """f (n,) of all rows at a, batches left out."""
        x = self._spread(a)
        found = [group.answer(group.along(x) - group.aref)[0] for group in self.groups]
        return array([force for forces in found for force in forces])

    # -------------------------------------------------------------------------------------- curvature

    def newton_direction(self, y: MutableArray, gradient: Any, answer: RowForce) -> np.ndarray:
        """-(M + J^T W J)^-1 gradient, with the sparsity of M and what the groups fill in."""
        M = self.problem.M
        H = zeros(self.size + 21 * len(self.slots))
        for (i, j), k in self.place.items():
            H = H.set(k, M[i][j])

        def add(group: Group, H: MutableArray) -> MutableArray:
            WJ = answer(group, group.read(y))[1] @ group.J
            return _added(H, ((k, group.J[:, i] @ WJ[:, j]) for i, j, k in group.places))

        H = self._with_links(self.over_acting_groups(add, H))

        def solve(entries: Any, H: MutableArray) -> np.ndarray:
            n = range(self.nv)
            lower = [[H[self.place[i, j]] if (i, j) in entries else 0 for j in range(i + 1)] for i in n]
            return -sparse_ltdl_solve(*sparse_ltdl(lower), gradient)

        def in_tiles(H: MutableArray) -> np.ndarray:
            assert self.tiles is not None
            return -self.tiles.solve(self.tiles.factor(H), gradient)

        whole = in_tiles if self.tiles is not None else lambda H: solve(self.filled, H)
        across = self._across()
        if any(value_is_constant(acts) and acts for acts in across):
            return whole(H)
        across = [acts for acts in across if not value_is_constant(acts)]
        if not across or _work(self.filled) < WORTH_ASKING * _work(self.tree):
            return whole(H)
        fills = reduce(logical_or, across)
        return cond(fills, whole, lambda H: solve(self.tree, H), H)

    def _across(self) -> list[Any]:
        """Whether each group that couples branches acts."""
        found = [group.active for group in self.groups if self._couples(group.columns)]
        dynamic = [batch for batch in self.rows.batches if not batch.on_links]
        return found + [batch.acting for batch in dynamic if any(map(self._couples, batch.columns))]

    def _couples(self, columns: Sequence[int]) -> bool:
        return self._of_speeds(columns) and not _entries(columns) <= self.tree

    def _of_speeds(self, columns: Sequence[int]) -> bool:
        """Whether these unknowns are speeds, not a link's screw."""
        return bool(columns) and columns[0] < self.nv

    def _speeds_to(self, link: int) -> list[int]:
        """The speeds that move a link."""
        screws = self.rows.screws
        if screws is None:
            return []
        return [k for i in screws.path(link) for k in range(self.nv)[screws.speeds[i]]]

    def _sparsity(
        self, coupling: Sequence[Sequence[int]]
    ) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
        """The entries (i >= j) of the Hessian that are not zero where all rows keep to one branch; and where groups couple branches."""
        M, n = self.problem.M, range(self.nv)
        tree = {(i, j) for i in n for j in range(i + 1) if not is_zero(M[i][j])}
        tree = tree.union(*(_entries(self._speeds_to(link)) for link in self.slots))
        return tree, tree.union(*(_entries(columns) for columns in coupling if self._of_speeds(columns)))

    def _with_links(self, H: MutableArray) -> MutableArray:
        """H + sum B^T K B with the stiffnesses K at links, carried down the tree as composites; if some group at a link acts."""
        screws = self.rows.screws
        if not self.slots or screws is None:
            return H

        def add(H: MutableArray) -> MutableArray:
            stiffness = {}
            for link in self.slots:
                K = np.zeros((6, 6), object)
                for i, j, k in self._places(self._screw(link)):
                    K[i, j] = K[j, i] = H[k]
                stiffness[link] = K
            curvature = screws.curvature(stiffness)
            return _added(H, ((self.place[entry], value) for entry, value in curvature.items()))

        acting = [
            group.active for group in self.groups if group.columns and not self._of_speeds(group.columns)
        ]
        acting += [batch.acting for batch in self.rows.batches if batch.on_links]
        return cond(reduce(logical_or, acting), add, lambda H: H, H)

    def exact_step(
        self, at: tuple[Any, MutableArray], p: Any, Jp: MutableArray, gradient: Any, first: Any = 1.0, tolerance: float = 1e-7
    ) -> Any:  # fmt: skip
        """How far to go from at = (a, y), where the cost has this gradient, along p to where the cost is least."""
        a, y = at
        Mp = self.problem.M @ p
        smooth_slope, smooth_curvature = Mp @ (a - self.problem.a_free), Mp @ p

        def slope_at(t: Any) -> tuple[Any, Any]:
            def add(group: Group, sums: tuple[Any, Any]) -> tuple[Any, Any]:
                rate = group.read(Jp)
                force, W = group.answer(group.read(y) + t * rate)
                return sums[0] - force @ rate, sums[1] + rate @ (W @ rate)

            return self.over_acting_groups(add, (smooth_slope + t * smooth_curvature, smooth_curvature + 0.0))

        downhill = gradient @ p
        noise = ROUNDING * (absolute(smooth_slope) + absolute(downhill - smooth_slope))
        return exact_step(slope_at, downhill, first, tolerance, noise)


def _spans(rows: Rows) -> list[tuple[int, int]]:
    """The rows in groups: a cone's rows, and neighbours of one name that act together."""
    cones, on_links = rows.cone_of, {part.start for part in rows.on_links}
    starts = [i for i in range(len(rows)) if i == 0 or i in on_links or not _together(rows, cones, i - 1, i)]
    return list(zip(starts, [*starts[1:], len(rows)], strict=True)) if starts else []


def _together(rows: Rows, cones: dict[int, Cone], i: int, j: int) -> bool:
    if i in cones or j in cones:
        return cones.get(i) is cones.get(j)
    same = rows.active[i] is rows.active[j] or are_constant(rows.active[i], rows.active[j])
    return (
        same
        and rows.names[i] == rows.names[j]
        and bool(rows.active[i] is rows.active[j] or rows.active[i] == rows.active[j])
    )


def _entries(columns: Sequence[int]) -> set[tuple[int, int]]:
    """The lower half of the block of these rows and columns."""
    return {(i, j) for i in columns for j in columns if j <= i}


def _work(entries: Iterable[tuple[int, int]]) -> float:
    """Roughly, how many multiplications the factorisation of a matrix with these entries takes."""
    return sum(n * n / 2 for n in Counter(i for i, _ in entries).values())


def diagonal(values: Sequence[Any]) -> np.ndarray:
    """The square matrix with these entries, and zeros elsewhere."""
    return np.array([[x if i == j else 0 for j in range(len(values))] for i, x in enumerate(values)])


def _set(y: MutableArray, values: Iterable[tuple[Any, Any]]) -> MutableArray:
    """The array with these elements."""
    for i, value in values:
        y = y.set(i, value)
    return y


def _added(total: MutableArray, parts: Iterable[tuple[Any, Any]]) -> MutableArray:
    """The array with values added at places."""
    for k, x in parts:
        total = total.set(k, total[k] + x)
    return total

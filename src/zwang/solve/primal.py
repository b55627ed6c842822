"""The primal cost Z(a) + sum s_i(J_i a - aref_i): its slope and curvature, gathered group by group.

A group's rows act together or not at all, and touch the same speeds: a contact, a loop. What no world at hand needs, a group of rows
that does not act, is not worked out when compiled; on floats it is skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.linear import sparse_ltdl, sparse_ltdl_solve
from zwang.constraint.rows import Cone, Rows, array
from zwang.gauss.problem import GaussProblem
from zwang.scalar import (
    Scratch,
    absolute,
    are_constant,
    is_zero,
    logical_or,
    scratch,
    value_is_constant,
    when,
)
from zwang.solve.cones import cone_answer, row_answer
from zwang.solve.line_search import exact_step

ROUNDING = 1e-13  # what sums of this size may be off by


class Group(NamedTuple):
    """Rows start ... stop of a problem, with J (n, k) on the k speeds `columns` that they touch only.

    With a link, their J (n, 6) is by that link's screw instead, and needs no speeds: K = J^T W J is a stiffness at the link.
    """

    start: int
    stop: int
    columns: tuple[int, ...]
    J: np.ndarray
    aref: np.ndarray
    D: np.ndarray
    kinds: tuple[str, ...]
    bound: np.ndarray
    cone: Cone | None
    active: Any
    link: int | None

    @property
    def may_rest(self) -> bool:
        """Whether to ask first if the rows act; a single speed's rows are cheaper worked out than asked about."""
        return self.link is not None or len(self.columns) > 1 or value_is_constant(self.active)

    def along(self, a: Any, screws: list[np.ndarray]) -> np.ndarray:
        """J a (n,); screws: those of all links for a."""
        return self.J @ (np.array([a[k] for k in self.columns]) if self.link is None else screws[self.link])

    def missed(self, a: Any, screws: list[np.ndarray]) -> np.ndarray:
        """y (n,) = J a - aref."""
        return self.along(a, screws) - self.aref

    def answer(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Forces (n,) and curvature W (n, n) of the rows' costs at y."""
        if self.cone is not None:
            force, W = cone_answer(self.cone, self.D, y)
            return array(force), W
        both = [row_answer(*numbers) for numbers in zip(self.kinds, self.D, y, self.bound, strict=True)]
        W = [[w if i == j else 0 for j in range(len(both))] for i, (_, w) in enumerate(both)]
        return array([force for force, _ in both]), np.array(W)


Work = Callable[[Group, Any], Any]


def groups_of(rows: Rows) -> tuple[Group, ...]:
    """The rows in groups: a cone's rows, and neighbours of one name that act together."""
    D, cones, on_links = rows.D, rows.cone_of, {part.start: part for part in rows.on_links}
    starts = [i for i in range(len(rows)) if i == 0 or i in on_links or not _together(rows, cones, i - 1, i)]
    found = []
    for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
        span, part = slice(start, stop), on_links.get(start)
        J = rows.J[span]
        columns = tuple(k for k in range(J.shape[1]) if not is_zero(J[:, k])) if part is None else ()
        found.append(
            Group(start, stop, columns, J[:, list(columns)] if part is None else part.w, rows.aref[span], D[span],
                  rows.kinds[span], rows.bound[span], cones.get(start), rows.active[start],
                  None if part is None else part.link)
        )  # fmt: skip
    return tuple(found)


def _together(rows: Rows, cones: dict[int, Cone], i: int, j: int) -> bool:
    if i in cones or j in cones:
        return cones.get(i) is cones.get(j)
    same = rows.active[i] is rows.active[j] or are_constant(rows.active[i], rows.active[j])
    return (
        same
        and rows.names[i] == rows.names[j]
        and bool(rows.active[i] is rows.active[j] or rows.active[i] == rows.active[j])
    )


class Primal:
    """The cost of a problem and its rows, as functions of the acceleration a (nv,)."""

    def __init__(self, problem: GaussProblem, rows: Rows) -> None:
        self.problem, self.rows = problem, rows
        self.groups = groups_of(rows)
        self.nv = len(problem.a_free)
        links = sorted({group.link for group in self.groups if group.link is not None})
        self.slots = {link: k for k, link in enumerate(links)}

    def over_acting_groups(self, work: Work, total: Any) -> Any:
        """`total` after work(group, total) for every group that acts in some world."""
        for group in self.groups:
            if group.may_rest:
                total = when(group.active, lambda t, g=group: work(g, t), lambda t: t, total)
            else:
                total = work(group, total)
        return total

    def motions(self, a: Any) -> list[np.ndarray]:
        """The screws of all links for a, if some rows ask for them."""
        return self.rows.screws.motions(a) if self.slots and self.rows.screws is not None else []

    def effort(self, a: Any) -> np.ndarray:
        """M (a - a_free) (nv,): what all constraints together have to bring up."""
        return self.problem.M @ (a - self.problem.a_free)

    def push(self, a: Any) -> np.ndarray:
        """J^T f (nv,): what the rows' forces bring up at a, on speeds and as wrenches on links."""
        nv, screws = self.nv, self.motions(a)

        def add(group: Group, total: Scratch) -> Scratch:
            pushes = group.J.T @ group.answer(group.missed(a, screws))[0]
            return _added(total, zip(self._places(group), pushes, strict=True))

        total = self.over_acting_groups(add, scratch(nv + 6 * len(self.slots)))
        push = np.array([total[k] for k in range(nv)])
        if not self.slots or self.rows.screws is None:
            return push
        wrenches = {
            link: np.array([total[nv + 6 * k + c] for c in range(6)]) for link, k in self.slots.items()
        }
        return push + self.rows.screws.efforts(wrenches, nv)

    def _places(self, group: Group) -> list[int]:
        """Where a group's push belongs: its speeds, or its link's wrench behind them."""
        if group.link is None:
            return list(group.columns)
        start = self.nv + 6 * self.slots[group.link]
        return list(range(start, start + 6))

    def _speeds_to(self, link: int) -> list[int]:
        """The speeds that move a link."""
        screws = self.rows.screws
        return (
            [] if screws is None else [k for i in screws.path(link) for k in range(self.nv)[screws.speeds[i]]]
        )

    def forces(self, a: Any) -> np.ndarray:
        """f (n,) of all rows at a."""
        screws = self.motions(a)
        return array([force for group in self.groups for force in group.answer(group.missed(a, screws))[0]])

    def newton_direction(self, a: Any, gradient: Any) -> np.ndarray:
        """-(M + J^T W J)^-1 gradient, with the sparsity of M and what the groups fill in."""
        M, screws = self.problem.M, self.motions(a)
        tree, filled = self._sparsity()
        place = {entry: k for k, entry in enumerate(sorted(filled))}
        H = scratch(len(place) + 36 * len(self.slots))
        for (i, j), k in place.items():
            H = H.set(k, M[i][j])

        def add(group: Group, H: Scratch) -> Scratch:
            J = group.J
            WJ = group.answer(group.missed(a, screws))[1] @ J
            if group.link is None:
                pairs = [
                    (x, y, place[i, j])
                    for x, i in enumerate(group.columns)
                    for y, j in enumerate(group.columns)
                    if j <= i
                ]
            else:
                start = len(place) + 36 * self.slots[group.link]
                pairs = [(x, y, start + 6 * x + y) for x in range(6) for y in range(x + 1)]
            return _added(H, ((k, J[:, x] @ WJ[:, y]) for x, y, k in pairs))

        H = self._with_links(self.over_acting_groups(add, H), place)

        def solved(entries: Any, H: Scratch) -> np.ndarray:
            lower = [
                [H[place[i, j]] if (i, j) in entries else 0 for j in range(i + 1)] for i in range(self.nv)
            ]
            return -sparse_ltdl_solve(*sparse_ltdl(lower), gradient)

        across = [group.active for group in self.groups if _entries(group.columns) - tree]
        if not across:
            return solved(filled, H)
        fills = reduce(logical_or, across)
        return when(fills, lambda H: solved(filled, H), lambda H: solved(tree, H), H)

    def _sparsity(self) -> tuple[set[tuple[int, int]], set[tuple[int, int]]]:
        """The entries (i >= j) of the Hessian that are not zero where all rows keep to one branch; and where groups couple branches."""
        M, n = self.problem.M, range(self.nv)
        tree = {(i, j) for i in n for j in range(i + 1) if not is_zero(M[i][j])}
        tree = tree.union(*(_entries(self._speeds_to(link)) for link in self.slots))
        return tree, tree.union(*(_entries(group.columns) for group in self.groups))

    def _with_links(self, H: Scratch, place: dict[tuple[int, int], int]) -> Scratch:
        """H + sum B^T K B with the stiffnesses K at links, carried down the tree as composites; if some group at a link acts."""
        screws = self.rows.screws
        if not self.slots or screws is None:
            return H
        size = len(place)

        def add(H: Scratch) -> Scratch:
            stiffness = {
                link: np.array(
                    [[H[size + 36 * k + 6 * max(x, y) + min(x, y)] for y in range(6)] for x in range(6)]
                )
                for link, k in self.slots.items()
            }
            return _added(H, ((place[entry], value) for entry, value in screws.curvature(stiffness).items()))

        acts = reduce(logical_or, [group.active for group in self.groups if group.link is not None])
        return when(acts, add, lambda H: H, H)

    def exact_step(self, a: Any, p: Any, gradient: Any, first: Any = 1.0, tolerance: float = 1e-7) -> Any:
        """How far to go from a, where the cost has this gradient, along p to where the cost is least."""
        Mp = self.problem.M @ p
        smooth_slope, smooth_curvature = Mp @ (a - self.problem.a_free), Mp @ p
        at, along = self.motions(a), self.motions(p)

        def slope_at(t: Any) -> tuple[Any, Any]:
            def add(group: Group, sums: tuple[Any, Any]) -> tuple[Any, Any]:
                Jp = group.along(p, along)
                force, W = group.answer(group.missed(a, at) + t * Jp)
                return sums[0] - force @ Jp, sums[1] + Jp @ (W @ Jp)

            return self.over_acting_groups(add, (smooth_slope + t * smooth_curvature, smooth_curvature + 0.0))

        downhill = gradient @ p
        noise = ROUNDING * (absolute(smooth_slope) + absolute(downhill - smooth_slope))
        return exact_step(slope_at, downhill, first, tolerance, noise)


def _entries(columns: Sequence[int]) -> set[tuple[int, int]]:
    """The lower half of the block of these rows and columns."""
    return {(i, j) for i in columns for j in columns if j <= i}


def _added(total: Scratch, parts: Iterable[tuple[int, Any]]) -> Scratch:
    """The array with values added at places."""
    for k, x in parts:
        total = total.set(k, total[k] + x)
    return total

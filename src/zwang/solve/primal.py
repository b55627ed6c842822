"""The primal cost Z(a) + sum s_i(J_i a - aref_i): its slope and curvature, gathered group by group.

A group's rows act together or not at all, and touch the same speeds: a contact, a loop. What no world at hand needs, a group of rows
that does not act, is not worked out when compiled; on floats it is skipped.
"""

from __future__ import annotations

from collections.abc import Callable
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
    scratch,
    value_is_constant,
    when,
)
from zwang.solve.cones import cone_answer, row_answer
from zwang.solve.line_search import exact_step

ROUNDING = 1e-13  # what sums of this size may be off by


class Group(NamedTuple):
    """Rows start ... stop of a problem, with J (n, k) on the k speeds `columns` that they touch only."""

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

    @property
    def may_rest(self) -> bool:
        """Whether to ask first if the rows act; a single speed's rows are cheaper worked out than asked about."""
        return len(self.columns) > 1 or value_is_constant(self.active)

    def missed(self, a: Any) -> np.ndarray:
        """y (n,) = J a - aref."""
        return self.J @ np.array([a[k] for k in self.columns]) - self.aref

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
    D, cones = rows.D, rows.cone_of
    starts = [i for i in range(len(rows)) if i == 0 or not _together(rows, cones, i - 1, i)]
    found = []
    for start, stop in zip(starts, [*starts[1:], len(rows)], strict=True):
        span = slice(start, stop)
        J = rows.J[span]
        columns = tuple(k for k in range(J.shape[1]) if not is_zero(J[:, k]))
        found.append(
            Group(start, stop, columns, J[:, list(columns)], rows.aref[span], D[span], rows.kinds[span], rows.bound[span],
                  cones.get(start), rows.active[start])
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

    def over_acting_groups(self, work: Work, total: Any) -> Any:
        """`total` after work(group, total) for every group that acts in some world."""
        for group in self.groups:
            if group.may_rest:
                total = when(group.active, lambda t, g=group: work(g, t), lambda t: t, total)
            else:
                total = work(group, total)
        return total

    def effort(self, a: Any) -> np.ndarray:
        """M (a - a_free) (nv,): what all constraints together have to bring up."""
        return self.problem.M @ (a - self.problem.a_free)

    def push(self, a: Any) -> np.ndarray:
        """J^T f (nv,): what the rows' forces bring up at a."""
        total = self.over_acting_groups(lambda group, total: _add_push(group, a, total), scratch(self.nv))
        return np.array([total[k] for k in range(self.nv)])

    def forces(self, a: Any) -> np.ndarray:
        """f (n,) of all rows at a."""
        return array([force for group in self.groups for force in group.answer(group.missed(a))[0]])

    def newton_direction(self, a: Any, gradient: Any) -> np.ndarray:
        """-(M + J^T W J)^-1 gradient, with the sparsity of M and what the groups fill in."""
        n, M = self.nv, self.problem.M
        filled = {(i, j) for i in range(n) for j in range(i + 1) if not is_zero(M[i][j])}
        filled |= {(i, j) for group in self.groups for i in group.columns for j in group.columns if j <= i}
        place = {entry: k for k, entry in enumerate(sorted(filled))}
        H = scratch(len(place))
        for (i, j), k in place.items():
            H = H.set(k, M[i][j])
        H = self.over_acting_groups(lambda group, H: _add_curvature(group, a, place, H), H)
        lower = [[H[place[i, j]] if (i, j) in place else 0 for j in range(i + 1)] for i in range(n)]
        return -sparse_ltdl_solve(*sparse_ltdl(lower), gradient)

    def exact_step(self, a: Any, p: Any, gradient: Any, first: Any = 1.0, tolerance: float = 1e-7) -> Any:
        """How far to go from a, where the cost has this gradient, along p to where the cost is least."""
        Mp = self.problem.M @ p
        smooth_slope, smooth_curvature = Mp @ (a - self.problem.a_free), Mp @ p

        def slope_at(t: Any) -> tuple[Any, Any]:
            begin = (smooth_slope + t * smooth_curvature, smooth_curvature + 0.0)
            return self.over_acting_groups(lambda group, sums: _add_slope(group, a, p, t, sums), begin)

        downhill = gradient @ p
        noise = ROUNDING * (absolute(smooth_slope) + absolute(downhill - smooth_slope))
        return exact_step(slope_at, downhill, first, tolerance, noise)


def _add_push(group: Group, a: Any, total: Scratch) -> Scratch:
    force, _ = group.answer(group.missed(a))
    for k, x in zip(group.columns, group.J.T @ force, strict=True):
        total = total.set(k, total[k] + x)
    return total


def _add_curvature(group: Group, a: Any, place: dict[tuple[int, int], int], H: Scratch) -> Scratch:
    """H + J^T W J, its lower half."""
    _, W = group.answer(group.missed(a))
    WJ = W @ group.J
    for x, i in enumerate(group.columns):
        for y, j in enumerate(group.columns[: x + 1]):
            k = place[i, j]
            H = H.set(k, H[k] + group.J[:, x] @ WJ[:, y])
    return H


def _add_slope(group: Group, a: Any, p: Any, t: Any, sums: tuple[Any, Any]) -> tuple[Any, Any]:
    """Slope and curvature along p at a + t p, with the group's part."""
    Jp = group.J @ np.array([p[k] for k in group.columns])
    force, W = group.answer(group.missed(a) + t * Jp)
    return sums[0] - force @ Jp, sums[1] + Jp @ (W @ Jp)

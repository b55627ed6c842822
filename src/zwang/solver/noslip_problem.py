"""What the noslip solver reads of a problem: contacts with friction in their order, the rows in the
coordinates X = L^-T J^T with M = L^T D L, and the islands: the trees of bodies that active rows connect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import ancestors, factor
from zwang.constraint.islands import constraint_islands, trees_of
from zwang.constraint.rows import RowGroup, Rows
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    MutableArray,
    empty,
    table,
    zeros,
)
from zwang.scalar.stacked_pytree import StackedPytree
from zwang.solver.primal_cost import BlockGroup, PrimalCost, RowBlock
from zwang.solver.solution import Solution


class FrictionalContact(NamedTuple):
    """A contact with friction: its place among all contacts, its number as a block, its first row, the form
    (whether it is a cone, its number of rows), friction coefficients, and the trees of its bodies.
    """

    place: int
    block: int
    start: int
    form: tuple[bool, int]
    friction: tuple[Any, ...]
    trees: tuple[int, ...]


class NoslipProblem:
    """A problem, its rows, and the solution with softness.

    contacts: those with friction. friction: the blocks of dry friction. X (count, nv), y0 = J a_free - aref
    (count,): of the active rows. M: its factors. labels: the island of every tree.
    """

    def __init__(self, problem: GaussProblem, rows: Rows, found: Solution, islands: bool) -> None:
        self.problem, self.rows, self.found = problem, rows, found
        self.cost = PrimalCost(problem, rows)
        self.M = factor(problem.M, problem.parents)
        self.tree_of = _trees(problem.parents)
        self.contacts = sorted(self._contacts(), key=lambda contact: contact.place)
        self.friction = [
            RowBlock(group, 0) for group in self.cost.groups if group.rows.kinds[0] == "friction"
        ]
        self.X, self.y0 = self._row_arrays()
        self.labels = self._islands(islands)

    @property
    def tree_count(self) -> int:
        """The number of kinematic trees."""
        return max(self.tree_of) + 1

    def _contacts(self) -> list[FrictionalContact]:
        """The contacts with friction; those outside groups are in their order."""
        found = []
        for group in filter(_has_contact_friction, self.cost.groups):
            n = len(group.rows.kinds)
            for k, own in enumerate(self._velocities(group)):
                cone = group.rows.cone(k)
                form, friction = (cone is not None, n), () if cone is None else cone.friction
                at = _rows(group).order[k], group.first + k, group.start + k * n
                found.append(FrictionalContact(*at, form, friction, trees_of(own, self.tree_of)))
        return found

    def _velocities(self, group: BlockGroup) -> list[tuple[int, ...]]:
        """The generalised velocities on which each block of a group depends."""
        return _rows(group).velocities(self.rows.screws)

    def _row_arrays(self) -> tuple[MutableArray, MutableArray]:
        """X (count, nv) and y0 (count,) of the active rows."""
        nv = self.cost.nv
        arrays = empty((self.cost.count, nv)), empty(self.cost.count)

        def enter(block: RowBlock, J: np.ndarray, arrays: Any) -> Any:
            X, y0 = arrays
            for i, aref, own in zip(block.places, block.aref, J, strict=True):
                for k, x in enumerate(self.M.solve_transposed(own)):
                    X = X.set((i, k), x)
                y0 = y0.set(i, np.array(own) @ self.problem.a_free - aref)
            return X, y0

        for group in self.cost.groups:
            full = self._jacobians(group)
            arrays = group.rows.active_indices.for_each(
                lambda k, t, g=group, full=full: enter(RowBlock(g, k), full(k, RowBlock(g, k)), t), arrays
            )
        return arrays

    def _jacobians(self, group: BlockGroup) -> Callable[[Any, RowBlock], np.ndarray]:
        """J (n, nv) of block k of a group, as a function of k and the block."""
        nv, screws = self.cost.nv, self.rows.screws
        if not group.rows.by_wrench:
            return lambda _, block: _scattered(block, nv)
        assert screws is not None
        S = np.concatenate(screws.columns, axis=1)
        moved = [set(own) for own in self._velocities(group)]
        masks = StackedPytree([tuple(float(k in own) for k in range(nv)) for own in moved])
        return lambda k, block: np.array(masks[k]) * (block.J @ S)

    def forces(self) -> MutableArray:
        """A copy of the forces of all active rows, 0 elsewhere."""
        found = self.found

        def copy(block: RowBlock, f: MutableArray) -> MutableArray:
            for i in block.places:
                f = f.set(i, found.force_of(i))
            return f

        return self.cost.over_active_blocks(copy, zeros(self.cost.count))

    def _islands(self, islands: bool) -> MutableArray:
        """The island of every tree: the smallest number of a tree that active rows connect with it."""
        count = self.tree_count
        if count == 1 or not islands:
            return zeros(count)
        return constraint_islands(list(map(_rows, self.cost.groups)), self.rows.screws, self.tree_of)

    def cost_of_softness(self) -> MutableArray:
        """1/2 f^T R f of each island, the part of the cost that the first sweep gains."""

        def add(tree: Any, block: RowBlock, total: MutableArray) -> MutableArray:
            label = self.labels[tree]
            f = [self.found.force_of(i) for i in block.places]
            cost = sum(x * x / (2 * d) for x, d in zip(f, block.D, strict=True))
            return total.scatter(label, total.gather(label) + cost)

        total = zeros(self.tree_count)
        for group in (group for group in self.cost.groups if group.rows.by_wrench or group.rows.width):
            first = StackedPytree([trees_of(own, self.tree_of)[:1] for own in self._velocities(group)])
            total = group.rows.active_indices.for_each(
                lambda k, total, g=group, first=first: add(first[k][0], RowBlock(g, k), total), total
            )
        return total

    def active_contacts(self) -> MutableArray:
        """1 for every active contact with friction, in their order, else 0."""
        active = zeros(len(self.contacts))
        place = {contact.block: k for k, contact in enumerate(self.contacts)}
        for group in filter(_has_contact_friction, self.cost.groups):
            places = table([place[group.first + k] for k in range(len(group.rows))])
            active = group.rows.active_indices.for_each(lambda k, t, at=places: t.set(at[k], 1.0), active)
        return active


def _has_contact_friction(group: BlockGroup) -> bool:
    return group.rows.kinds[0] in ("contact", "cone") and len(group.rows.kinds) > 1


def _rows(group: BlockGroup) -> RowGroup:
    """The rows of a group; those that are kept by world are read by Newton's method only."""
    assert isinstance(group.rows, RowGroup)
    return group.rows


def _trees(parents: Sequence[int]) -> list[int]:
    """The number of the kinematic tree of every generalised velocity."""
    roots = [[k, *ancestors(parents, k)][-1] for k in range(len(parents))]
    numbers = {root: t for t, root in enumerate(dict.fromkeys(roots))}
    return [numbers[root] for root in roots]


def _scattered(block: RowBlock, nv: int) -> np.ndarray:
    """J (n, nv) of a block, from its columns, of which some may be repeated with zeros."""
    J, columns = block.J, block.columns
    full = zeros((len(J), nv))
    for i, row in enumerate(J):
        for k, x in zip(columns, row, strict=True):
            full = full.set((i, k), full[i, k] + x)
    return np.array([[full[i, k] for k in range(nv)] for i in range(len(J))])

"""What the noslip solver reads of a problem: contacts with friction in their order, the rows in the
coordinates X = L^-T J^T with M = L^T D L, and the islands: the trees of bodies that active rows connect.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import ancestors, factor
from zwang.constraint.islands import constraint_islands, trees_of
from zwang.constraint.row_arrays import WRENCH
from zwang.constraint.rows import RowGroup, Rows
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    ActiveIndices,
    AppendedIndices,
    MutableArray,
    cond,
    empty,
    fori_loop,
    table,
    where,
    zeros,
)
from zwang.scalar.compact_loop import pack_signs, unpack_signs
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


class _StoredRows(NamedTuple):
    """The active rows in the form in which they are given: J (count, nv) in X, or wrenches (count, 6) with
    the packed signs of the velocities; aref (count,). rows: the active ones.
    """

    X: MutableArray
    wrenches: MutableArray
    signs: MutableArray
    aref: MutableArray
    rows: AppendedIndices

    @staticmethod
    def of_size(count: int, nv: int) -> _StoredRows:
        """Space for so many rows."""
        X, wrenches, signs = (empty((count, n)) for n in (nv, WRENCH, len(pack_signs([0] * nv))))
        return _StoredRows(X, wrenches, signs, empty(count), AppendedIndices.none(count))

    def with_group(
        self, group: BlockGroup, store: Callable[[RowBlock, _StoredRows], _StoredRows]
    ) -> _StoredRows:
        """With the active rows of a group, which `store` adds block by block."""
        indices = group.rows.active_indices

        def visit(position: Any, stored: _StoredRows) -> _StoredRows:
            block, rows = RowBlock(group, indices[position]), stored.rows
            flag = where(block.active, 1.0, 0.0)
            for i in block.places:
                rows = rows.set(i, flag).append(i)
            return cond(flag > 0, lambda s: store(block, s), lambda s: s, stored._replace(rows=rows))

        return fori_loop(0, indices.count, visit, self)

    def with_block(self, block: RowBlock, **values: Any) -> _StoredRows:
        """With the rows of a block, for each of which these fields have several values."""
        stored, aref = {name: getattr(self, name) for name in values}, self.aref
        for n, i in enumerate(block.places):
            for name, own in values.items():
                for c, x in enumerate(own[n]):
                    stored[name] = stored[name].set((i, c), x * 1.0)
            aref = aref.set(i, block.aref[n] * 1.0)
        return self._replace(**stored, aref=aref)

    def with_jacobian(self, i: Any, S: np.ndarray, X: MutableArray) -> MutableArray:
        """X with the J of row i: its wrench w times the screws S (6, nv) with their signs."""
        w = np.array([self.wrenches[i, c] for c in range(WRENCH)])
        signs = unpack_signs([self.signs[i, c] for c in range(self.signs.shape[1])], X.shape[1])
        for k, x in enumerate(np.array(signs) * (w @ S)):
            X = X.set((i, k), x)
        return X


class NoslipProblem:
    """A problem, its rows, and the solution with softness.

    contacts: those with friction. friction: the blocks of dry friction. X (count, nv), y0 = J a_free - aref
    (count,): of the active rows. M: its factors. labels: the island of every tree. active_contacts: the
    places of the active ones in `contacts`.
    """

    def __init__(self, problem: GaussProblem, rows: Rows, found: Solution, islands: bool) -> None:
        self.problem, self.rows, self.found = problem, rows, found
        self.cost = PrimalCost(problem, rows.uncoupled)
        self.M = factor(problem.M, problem.parents)
        self.tree_of = _trees(problem.parents)
        self.contacts = sorted(self._contacts(), key=lambda contact: contact.place)
        self.friction = [
            RowBlock(group, 0) for group in self.cost.groups if group.rows.kinds[0] == "friction"
        ]
        self.X, self.y0 = self._row_arrays()
        self.labels = self._islands(islands)
        self.active_contacts = ActiveIndices(self._flags_of_contacts())

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
        stored = _StoredRows.of_size(self.cost.count, self.cost.nv)
        groups = [group for group in self.cost.groups if group.rows.by_wrench]
        for group in groups:
            stored = stored.with_group(group, self._stored_wrenches(group))
        if groups:
            assert self.rows.screws is not None
            S = np.concatenate(self.rows.screws.columns, axis=1)
            X = stored.rows.for_each(lambda i, X, own=stored: own.with_jacobian(i, S, X), stored.X)
            stored = stored._replace(X=X)
        for group in self.cost.groups:
            if not group.rows.by_wrench:
                stored = stored.with_group(group, self._stored_jacobian)

        def finish(i: Any, arrays: tuple[MutableArray, MutableArray]) -> tuple[MutableArray, MutableArray]:
            X, y0 = arrays
            J = np.array([X[i, k] for k in range(self.cost.nv)])
            for k, x in enumerate(self.M.solve_transposed(J)):
                X = X.set((i, k), x)
            return X, y0.set(i, J @ self.problem.a_free - y0[i])

        return stored.rows.for_each(finish, (stored.X, stored.aref))

    def _stored_jacobian(self, block: RowBlock, stored: _StoredRows) -> _StoredRows:
        """The rows with those of a block by velocities."""
        return stored.with_block(block, X=_scattered(block, self.cost.nv))

    def _stored_wrenches(self, group: BlockGroup) -> Callable[[RowBlock, _StoredRows], _StoredRows]:
        """The function that stores the rows of a block whose J is wrenches."""
        rows, screws, nv = _rows(group), self.rows.screws, self.cost.nv
        assert screws is not None
        signs = [screws.signs(links) for links in rows.links]
        words = StackedPytree([tuple(pack_signs([own.get(k, 0) for k in range(nv)])) for own in signs])

        def store(block: RowBlock, stored: _StoredRows) -> _StoredRows:
            own = [words[block.k]] * rows.size
            return stored.with_block(block, wrenches=rows.jacobian(block.k), signs=own)

        return store

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

    def sums_of_inertia(self) -> MutableArray:
        """The sum of the diagonal of the mass matrix of each island."""
        total = zeros(self.tree_count)
        for k, tree in enumerate(self.tree_of):
            label = self.labels[tree]
            total = total.scatter(label, total.gather(label) + self.problem.M[k, k])
        return total

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

    def _flags_of_contacts(self) -> MutableArray:
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

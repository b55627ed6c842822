"""The reduced primal cost Z(a) + sum s_i(J_i a - aref_i): its gradient, its Hessian and its slope along a
line.

Rows are gathered in blocks. The rows of a block are active together and touch the same few unknowns: one
contact, one loop. Compiled code evaluates a block only if it is active in some world of the vector register;
on floats an inactive block is skipped.

The unknowns x of the blocks are the generalised velocities (or accelerations) followed by the spatial
velocities of links in contact with the world. Rows of such a contact need six columns only, K = J^T W J is a
stiffness at the link, and the composite-rigid-body recursion carries it down the tree into the Hessian
(MuJoCo documentation, Computation, "Reduced primal problem").
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import ancestors
from zwang.algebra.updated_matrix import Columns, PlacesOfBlock, RowBlocks, UpdatedMatrix, dense_entries
from zwang.constraint.rows import Cone, RowGroup, Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    MutableArray,
    absolute,
    cond,
    empty,
    is_zero,
    logical_or,
    zeros,
)
from zwang.scalar.stacked_pytree import StackedPytree
from zwang.solver.cones import cone_force, row_force
from zwang.solver.line_search import exact_line_search

ROUNDING = 1e-13  # rounding error of the slope, relative to its terms


class RowBlock(NamedTuple):
    """Block k of a group: rows start, start + 1, ... of the problem, which are active together. The arrays
    are read where they are asked for.
    """

    group: BlockGroup
    k: Any

    @property
    def number(self) -> Any:
        """The number of the block."""
        return self.group.first + self.k

    @property
    def start(self) -> Any:
        """The number of its first row."""
        return self.group.start + self.k * self.group.rows.size

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each row."""
        return self.group.rows.kinds

    @property
    def columns(self) -> Sequence[Any]:
        """The unknowns that J multiplies."""
        return self.group.columns[self.k]

    @property
    def hessian_entries(self) -> list[tuple[int, int, Any]]:
        """(i, j, index) with i >= j, where entry (i, j) of J^T W J is added at `index` of the Hessian's
        array.
        """
        return self.group.places(self.k)

    @property
    def J(self) -> np.ndarray:
        """J (n, number of columns)."""
        rows = self.group.rows
        J = rows.jacobian(self.k)
        return -J if rows.by_wrench and not rows.moves_second else J

    @property
    def aref(self) -> np.ndarray:
        """The reference accelerations (n,)."""
        return self.group.rows.read("aref", self.k)

    @property
    def D(self) -> np.ndarray:
        """1/R (n,)."""
        return self.group.rows.read("D", self.k)

    @property
    def bound(self) -> np.ndarray:
        """The largest forces (n,) of rows of friction."""
        return self.group.rows.read("bound", self.k)

    @property
    def cone(self) -> Cone | None:
        """The cone of the rows."""
        return self.group.rows.cone(self.k)

    @property
    def active(self) -> Any:
        """Whether the block is active in this world."""
        return self.group.rows.active_indices.has(self.k)

    def jacobian_product(self, x: MutableArray) -> np.ndarray:
        """J x (n,) for the array x of all unknowns."""
        return self.J @ np.array([x[k] for k in self.columns])

    def force_and_curvature(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Forces (n,) of the rows at the residual y = J a - aref, and the curvature W = -df/dy (n, n)."""
        cone = self.cone
        if cone is not None:
            force, W = cone_force(cone, self.D, y)
            return scalar_array(force), W
        both = [row_force(*numbers) for numbers in zip(self.kinds, self.D, y, self.bound, strict=True)]
        return scalar_array([force for force, _ in both]), diagonal([w for _, w in both])

    def read(self, y: MutableArray) -> np.ndarray:
        """The entries (n,) of an array over all rows that belong to this block."""
        return scalar_array([y[i] for i in self.row_numbers()])

    def row_numbers(self) -> list[Any]:
        """The numbers of the block's rows."""
        return [self.start + i for i in range(len(self.kinds))]


class BlockGroup(NamedTuple):
    """The blocks of a group of rows. first, start: the numbers of the first block and of its first row.
    columns: the unknowns of each block. places: see `RowBlock.hessian_entries`.
    """

    rows: RowGroup
    first: int
    start: int
    columns: StackedPytree
    places: PlacesOfBlock


BlockFunction = Callable[[RowBlock, Any], Any]
ForceLaw = Callable[[RowBlock, Any], tuple[np.ndarray, np.ndarray]]


class PrimalCost:
    """The reduced primal cost of a problem and its rows, as functions of the acceleration a (nv,)."""

    def __init__(self, problem: GaussProblem, rows: Rows) -> None:
        self.problem, self.rows = problem, rows
        self.nv = len(problem.a_free)
        links = {max(both) for group in rows.row_groups if group.by_wrench for both in group.links}
        self.link_numbers = {link: k for k, link in enumerate(sorted(links))}
        groups = rows.in_groups()
        self.M = self._hessian(groups)
        self.groups, self.block_count, self.count = list[BlockGroup](), 0, 0
        for group in groups:
            self.groups.append(self._block_group(group, self.block_count, self.count))
            self.block_count += len(group)
            self.count += len(group) * group.size

    # -------------------------------------------------------------------------------------- blocks of rows

    def _link_columns(self, link: int) -> tuple[int, ...]:
        """The six unknowns that are a link's spatial velocity."""
        start = self.nv + 6 * self.link_numbers[link]
        return tuple(range(start, start + 6))

    def _block_group(self, group: RowGroup, first: int, start: int) -> BlockGroup:
        """The blocks of a group; first, start: the numbers of its first block and row."""
        columns: Sequence[Columns] = group.columns
        if group.by_wrench:  # one of the links is the world: J multiplies the other's velocity
            columns = [self._link_columns(max(both)) for both in group.links]
        return BlockGroup(group, first, start, StackedPytree(columns), self._hessian_places(columns))

    def _hessian_places(self, columns: Sequence[Columns]) -> PlacesOfBlock:
        """The function of k to (i, j, place) for the entries i >= j of a block of the unknowns columns[k],
        where `place` is the position in the Hessian's array.
        """
        if columns[0] and columns[0][0] >= self.nv:
            starts = StackedPytree([self.M.size + 21 * ((own[0] - self.nv) // 6) for own in columns])
            pairs = [(i, j) for i in range(len(columns[0])) for j in range(i + 1)]
            return lambda k: [(i, j, starts[k] + at) for at, (i, j) in enumerate(pairs)]
        return self.M.places(columns)

    def over_active_blocks(self, work: BlockFunction, total: Any) -> Any:
        """`total` after total = work(block, total) for every block that is active in some world."""
        for group in self.groups:
            if group.rows.width > 1:
                indices = group.rows.active_indices
                total = indices.for_each(lambda k, t, g=group: work(RowBlock(g, k), t), total)
            else:  # rows on a single velocity are cheaper to evaluate than to test
                total = work(RowBlock(group, 0), total)
        return total

    def any_active(self) -> Any:
        """Whether any row is active."""
        return reduce(logical_or, [group.rows.any_active for group in self.groups], False)

    # -------------------------------------------------------------------------------------- residuals and
    # generalised forces

    def smooth_force(self, a: Any) -> np.ndarray:
        """M (a - a_free) (nv,): the gradient of Z, the generalised force that the constraints must supply."""
        return self.problem.force_of(a - self.problem.a_free)

    def _extended(self, a: Any) -> MutableArray:
        """The array of all unknowns x: a, followed by the spatial accelerations J_k a of links in contact
        with the world.
        """
        x = empty(self.nv + 6 * len(self.link_numbers))
        for k, value in enumerate(a):
            x = x.set(k, value)
        if self.link_numbers and self.rows.screws is not None:
            link_velocities = self.rows.screws.spatial_velocities(a)
            for link in self.link_numbers:
                for k, value in zip(self._link_columns(link), link_velocities[link], strict=True):
                    x = x.set(k, value)
        return x

    def jacobian_product(self, p: Any) -> MutableArray:
        """J p of all active rows."""
        x = self._extended(p)
        return self.over_active_blocks(
            lambda block, y: with_entries(
                y, zip(block.row_numbers(), block.jacobian_product(x), strict=True)
            ),
            empty(self.count),
        )

    def residual(self, a: Any) -> MutableArray:
        """y = J a - aref of all active rows."""
        x = self._extended(a)
        return self.over_active_blocks(
            lambda block, y: with_entries(
                y, zip(block.row_numbers(), block.jacobian_product(x) - block.aref, strict=True)
            ),
            empty(self.count),
        )

    def advanced_residual(self, y: MutableArray, step: Any, Jp: MutableArray) -> MutableArray:
        """y + step J p of all active rows."""
        return self.over_active_blocks(
            lambda block, y: with_entries(y, [(i, y[i] + step * Jp[i]) for i in block.row_numbers()]), y
        )

    def constraint_force(
        self, y: MutableArray, force_law: ForceLaw = RowBlock.force_and_curvature
    ) -> np.ndarray:
        """J^T f (nv,), the generalised constraint force at the residual y; forces on links are gathered as
        wrenches first.
        """
        nv = self.nv

        def add(block: RowBlock, total: MutableArray) -> MutableArray:
            force, _ = force_law(block, block.read(y))
            return _with_added(total, zip(block.columns, block.J.T @ force, strict=True))

        total = self.over_active_blocks(add, zeros(nv + 6 * len(self.link_numbers)))
        constraint_force = np.array([total[k] for k in range(nv)])
        if not self.link_numbers or self.rows.screws is None:
            return constraint_force
        wrenches = {
            link: np.array([total[k] for k in self._link_columns(link)]) for link in self.link_numbers
        }
        return constraint_force + self.rows.screws.generalised_forces(wrenches, nv)

    def virtual_power(self, a: Any, v: Any) -> Any:
        """f^T J v, the power of the constraint forces at the accelerations a (nv,) for velocities v (nv,)."""
        x, motion = self._extended(a), self._extended(v)

        def add(block: RowBlock, power: Any) -> Any:
            force, _ = block.force_and_curvature(block.jacobian_product(x) - block.aref)
            return power + force @ block.jacobian_product(motion)

        return self.over_active_blocks(add, 0.0)

    def forces(self, a: Any) -> MutableArray:
        """Forces f (count,) of all rows at a, 0 where they are inactive."""
        x = self._extended(a)

        def store(block: RowBlock, f: MutableArray) -> MutableArray:
            force, _ = block.force_and_curvature(block.jacobian_product(x) - block.aref)
            return with_entries(f, zip(block.row_numbers(), force, strict=True))

        return self.over_active_blocks(store, zeros(self.count))

    # -------------------------------------------------------------------------------------- Hessian and line
    # search

    def newton_direction(self, y: MutableArray, gradient: Any, force_law: ForceLaw) -> np.ndarray:
        """Newton direction -(M + J^T W J)^-1 gradient, with the sparsity of M and the fill-in of the
        coupling blocks.
        """

        def add_block(block: RowBlock, H: MutableArray) -> MutableArray:
            J = block.J
            WJ = force_law(block, block.read(y))[1] @ J
            return _with_added(H, ((k, J[:, i] @ WJ[:, j]) for i, j, k in block.hessian_entries))

        def add(H: MutableArray) -> MutableArray:
            return self._with_link_stiffness(self.over_active_blocks(add_block, H))

        return -self.M.update(add, 21 * len(self.link_numbers)).solve(gradient)

    def response(self, a: Any, force: Any) -> np.ndarray:
        """(M + J^T W J)^-1 force (nv,), with the curvature W at the accelerations a (nv,)."""
        x = self._extended(a)

        def law(block: RowBlock, _: Any) -> tuple[np.ndarray, np.ndarray]:
            return block.force_and_curvature(block.jacobian_product(x) - block.aref)

        return -self.newton_direction(zeros(self.count), force, law)

    def dense_hessian(self, y: MutableArray, force_law: ForceLaw) -> np.ndarray:
        """M + J^T W J (nv, nv)."""
        nv = self.nv

        def add(block: RowBlock, H: MutableArray) -> MutableArray:
            J, columns = block.J, block.columns
            K = J.T @ force_law(block, block.read(y))[1] @ J
            entries = [(i, j) for i in range(len(columns)) for j in range(len(columns))]
            return _with_added(H, (((columns[i], columns[j]), K[i, j]) for i, j in entries))

        K = self.over_active_blocks(add, zeros((nv, nv)))
        return np.array([[self.problem.M[i][j] + K[i, j] for j in range(nv)] for i in range(nv)])

    def _velocities_moving(self, link: int) -> list[int]:
        """The generalised velocities on the path from a link to the world."""
        screws = self.rows.screws
        if screws is None:
            return []
        return [k for i in screws.path(link) for k in range(self.nv)[screws.velocities[i]]]

    def _hessian(self, groups: Sequence[RowGroup]) -> UpdatedMatrix:
        """The storage of the Hessian; rows that couple two branches of the tree fill in entries."""
        M, parents = self.problem.M, self.problem.parents
        branches = [{i, *ancestors(parents, i)} for i in range(self.nv)]
        tree = {(i, j) for i, branch in enumerate(branches) for j in branch if not is_zero(M[i][j])}
        tree = tree.union(*(dense_entries(self._velocities_moving(link)) for link in self.link_numbers))
        row_blocks = [
            RowBlocks(group.columns, group.active_indices, group.any_active)
            for group in groups
            if not group.by_wrench and group.width
        ]
        # rows on one branch do not couple it with another one
        for columns in {tuple(columns) for group in row_blocks for columns in group.columns}:
            if branches[max(columns)].issuperset(columns):
                tree |= dense_entries(columns)
        return UpdatedMatrix(M, parents, tree, row_blocks)

    def _with_link_stiffness(self, H: MutableArray) -> MutableArray:
        """H + sum B^T K B with the stiffness K of each link, if any row at a link is active."""
        screws = self.rows.screws
        if not self.link_numbers or screws is None:
            return H

        def add(H: MutableArray) -> MutableArray:
            stiffness = {}
            for link in self.link_numbers:
                K = np.zeros((6, 6), object)
                for i, j, k in self._hessian_places([self._link_columns(link)])(0):
                    K[i, j] = K[j, i] = H[k]
                stiffness[link] = K
            curvature = screws.stiffness_entries(stiffness)
            return _with_added(H, ((self.M.place(*entry), value) for entry, value in curvature.items()))

        any_active = [row_group.any_active for row_group in self.rows.row_groups if row_group.by_wrench]
        return cond(reduce(logical_or, any_active), add, lambda H: H, H)

    def exact_line_search(
        self, at: tuple[Any, MutableArray], p: Any, Jp: MutableArray, gradient: Any,
        first_step: Any = 1.0, tolerance: float = 1e-7,
    ) -> Any:  # fmt: skip
        """Step length along p that minimises the cost, from at = (a, y) where the cost has this gradient."""
        a, y = at
        Mp = self.problem.force_of(p)
        smooth_slope, smooth_curvature = Mp @ (a - self.problem.a_free), Mp @ p

        def slope_at(t: Any) -> tuple[Any, Any]:
            def add(block: RowBlock, sums: tuple[Any, Any]) -> tuple[Any, Any]:
                Jp_block = block.read(Jp)
                force, W = block.force_and_curvature(block.read(y) + t * Jp_block)
                return sums[0] - force @ Jp_block, sums[1] + Jp_block @ (W @ Jp_block)

            return self.over_active_blocks(add, (smooth_slope + t * smooth_curvature, smooth_curvature + 0.0))

        initial_slope = gradient @ p
        slope_noise = ROUNDING * (absolute(smooth_slope) + absolute(initial_slope - smooth_slope))
        return exact_line_search(slope_at, initial_slope, first_step, tolerance, slope_noise)


def diagonal(values: Sequence[Any]) -> np.ndarray:
    """The diagonal matrix with these entries."""
    return np.array([[x if i == j else 0 for j in range(len(values))] for i, x in enumerate(values)])


def with_entries(y: MutableArray, values: Iterable[tuple[Any, Any]]) -> MutableArray:
    """The array with these entries replaced."""
    for i, value in values:
        y = y.set(i, value)
    return y


def _with_added(total: MutableArray, parts: Iterable[tuple[Any, Any]]) -> MutableArray:
    """The array with values added to its entries."""
    for k, x in parts:
        total = total.set(k, total[k] + x)
    return total

"""The reduced primal cost Z(a) + sum s_i(J_i a - aref_i): its gradient, its Hessian and its slope along a
line.

Rows are gathered in blocks. The rows of a block are active together and touch the same few unknowns: one
contact, one loop. Compiled code evaluates a block only if it is active in some world of the vector register;
on floats an inactive block is skipped.

The unknowns x of the blocks are the generalised velocities (or accelerations) followed by the spatial
velocities of links in contact with the world. Rows of such a contact need six columns only, K = J^T W J is a
stiffness at the link, and the composite-rigid-body recursion carries it down the tree into the Hessian
(MuJoCo documentation, Computation, "Reduced primal problem").

Rows of contacts between moving links couple branches of a large tree, and would fill in its Hessian. They are
no part of it: Woodbury's identity adds them to its factors (`CoupledRows`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import ancestors
from zwang.algebra.updated_matrix import (
    PlacesOfBlock,
    RowBlocks,
    UpdatedFactors,
    UpdatedMatrix,
    dense_entries,
)
from zwang.algebra.woodbury import RowRoots, Woodbury, upper_root
from zwang.constraint.row_arrays import CoupledRows
from zwang.constraint.rows import Cone, RowGroup, Rows, scalar_array
from zwang.dynamics.gauss import GaussProblem
from zwang.scalar import (
    MutableArray,
    absolute,
    empty,
    fori_loop,
    is_zero,
    logical_or,
    where,
    zeros,
)
from zwang.scalar.stacked_pytree import StackedPytree
from zwang.solver.cones import cone_force, row_force
from zwang.solver.line_search import exact_line_search

BlockColumns = Callable[[Any], Sequence[Any]]

ROUNDING = 1e-13  # rounding error of the slope, relative to its terms
CHEAP_WIDTH = 2  # rows on so few velocities are cheaper to evaluate than to test
LOWER_TRIANGLE = [(i, j) for i in range(6) for j in range(i + 1)]  # entries of a stiffness K at a link


class RowBlock(NamedTuple):
    """Block k of a group: rows start, start + 1, ... of the problem, which are active together. The arrays
    are read where they are asked for.
    """

    group: BlockGroup
    k: Any

    @property
    def number(self) -> Any:
        """The number of the block, as a real, which for coupled rows differs between worlds."""
        return self.group.first + self.group.rows.number(self.k)

    @property
    def start(self) -> Any:
        """The place of its first row in the residual."""
        return self.group.start + self.k * self.group.rows.size

    def value_in(self, array: MutableArray) -> Any:
        """The entry of the block in an array that has one for each block."""
        return self.group.rows.value_in(array, self.group.first, self.k)

    def with_value_in(self, array: MutableArray, value: Any) -> MutableArray:
        """The array with this entry replaced."""
        return self.group.rows.with_values_in(array, self.group.first, self.k, [value])

    def with_row_values(self, array: MutableArray, values: Any) -> MutableArray:
        """The array with one entry for each row, with those of the block's rows replaced."""
        return self.group.rows.with_values_in(array, self.group.first_row, self.k, list(values))

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kind of each row."""
        return self.group.rows.kinds

    @property
    def columns(self) -> Sequence[Any]:
        """The unknowns that J multiplies."""
        return self.group.columns(self.k)

    @property
    def hessian_entries(self) -> list[tuple[int, int, Any]]:
        """(i, j, place) with i >= j, where entry (i, j) of J^T W J is added at this place of the array of the
        Hessian or, for contacts of a link with the world, of the stiffnesses.
        """
        return self.group.places(self.k)

    @property
    def J(self) -> np.ndarray:
        """J (n, number of columns)."""
        edges = self.edges
        return self.axes if edges is None else edges @ self.axes

    @property
    def axes(self) -> np.ndarray:
        """The J of the contact axes (m, number of columns), of which the rows are combinations, or J."""
        rows = self.group.rows
        axes = rows.axes(self.k)
        return rows.sign(self.k) * axes if isinstance(rows, RowGroup) and rows.by_wrench else axes

    @property
    def edges(self) -> np.ndarray | None:
        """The combinations E (n, m); None where the rows are the axes."""
        edges = self.group.rows.edges
        return None if edges is None else edges(self.k)

    def along_axes(self, force: np.ndarray, W: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """E^T f (m,) and E^T W E (m, m) of forces and curvatures of the rows."""
        edges = self.edges
        return (force, W) if edges is None else (edges.T @ force, edges.T @ (W @ edges))

    @property
    def aref(self) -> np.ndarray:
        """The reference accelerations (n,)."""
        return self.group.rows.read("aref", self.k)

    @property
    def D(self) -> np.ndarray:
        """1/R (n,)."""
        return self.group.rows.read("D", self.k)

    @property
    def velocity(self) -> np.ndarray:
        """The velocities J v (n,)."""
        return self.group.rows.read("velocity", self.k)

    @property
    def position(self) -> np.ndarray:
        """The violations or distances (n,)."""
        return self.group.rows.read("position", self.k)

    @property
    def bound(self) -> np.ndarray:
        """The largest forces (n,) of rows of friction."""
        return self.group.rows.read("bound", self.k)

    @property
    def inverse_weight(self) -> np.ndarray:
        """The inverse weights (n,)."""
        return self.group.rows.read("inverse_weight", self.k)

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
        edges, moved = self.edges, self.axes @ np.array([x[k] for k in self.columns])
        return moved if edges is None else edges @ moved

    def force_and_curvature(self, y: Any) -> tuple[np.ndarray, np.ndarray]:
        """Forces (n,) of the rows at the residual y = J a - aref, and the curvature W = -df/dy (n, n)."""
        cone = self.cone
        if cone is not None:
            force, W = cone_force(cone, self.D, y)
            return scalar_array(force), W
        both = [row_force(*numbers) for numbers in zip(self.kinds, self.D, y, self.bound, strict=True)]
        return scalar_array([force for force, _ in both]), diagonal([w for _, w in both])

    def read(self, y: MutableArray) -> np.ndarray:
        """The block's entries (n,) of the residual, or of another array with its places."""
        return scalar_array([y[i] for i in self.places])

    def with_values(self, y: MutableArray, values: Any) -> MutableArray:
        """The residual, or another array with its places, with the entries of the block replaced."""
        for i, value in zip(self.places, values, strict=True):
            y = y.set(i, value)
        return y

    @property
    def places(self) -> list[Any]:
        """The places of the block's rows in the residual."""
        return [self.start + i for i in range(len(self.kinds))]


class BlockGroup(NamedTuple):
    """The blocks of a group of rows. first, first_row: the numbers of the first block and of its first row;
    start: the place of this row in the residual. columns: the unknowns of block k. places: see
    `RowBlock.hessian_entries`; none for coupled rows.
    """

    rows: RowGroup | CoupledRows
    first: int
    first_row: int
    start: int
    columns: BlockColumns
    places: PlacesOfBlock


class Expansion(NamedTuple):
    """The generalised constraint force J^T f (nv,), and the solver of M + J^T W J."""

    force: np.ndarray
    hessian: UpdatedFactors | Woodbury


BlockFunction = Callable[[RowBlock, Any], Any]
ForceLaw = Callable[[RowBlock, Any], tuple[np.ndarray, np.ndarray]]


class PrimalCost:
    """The reduced primal cost of a problem and its rows, as functions of the acceleration a (nv,).

    block_count, row_count: the number of all blocks and rows. count: the number of places in a residual, in
    which coupled rows are those of each world, one after the other.
    """

    def __init__(self, problem: GaussProblem, rows: Rows) -> None:
        self.problem, self.rows = problem, rows
        self.nv = len(problem.a_free)
        groups = [group for group in rows.in_groups() if not group.is_coupled]
        links = {max(both) for group in groups if group.by_wrench for both in group.links}
        self.link_numbers = {link: k for k, link in enumerate(sorted(links))}
        self.M = self._hessian(groups)
        self.groups, self.block_count, self.row_count, self.count = list[BlockGroup](), 0, 0, 0
        for group in groups:
            self._append(group, len(group), *self._columns_and_places(group))
        columns = range(self.nv)
        for coupled in rows.coupled:
            self._append(coupled, coupled.count, lambda k: columns, lambda k: [])

    def _append(
        self, rows: RowGroup | CoupledRows, blocks: int, columns: BlockColumns, places: PlacesOfBlock
    ) -> None:
        """Append a group with this number of blocks."""
        self.groups.append(BlockGroup(rows, self.block_count, self.row_count, self.count, columns, places))
        self.block_count += blocks
        self.row_count += blocks * rows.size
        self.count += len(rows) * rows.size

    # -------------------------------------------------------------------------------------- blocks of rows

    def _link_columns(self, link: int) -> tuple[int, ...]:
        """The six unknowns that are a link's spatial velocity."""
        start = self.nv + 6 * self.link_numbers[link]
        return tuple(range(start, start + 6))

    def _columns_and_places(self, group: RowGroup) -> tuple[BlockColumns, PlacesOfBlock]:
        """The columns and the places of the Hessian's entries of the blocks of a group."""
        if group.by_wrench:  # one of the links is the world: J multiplies the other's velocity
            links = [self.link_numbers[max(both)] for both in group.links]
            columns = StackedPytree(
                [tuple(range(start, start + 6)) for start in (self.nv + 6 * k for k in links)]
            )
            starts = StackedPytree([len(LOWER_TRIANGLE) * k for k in links])
            entries = list(enumerate(LOWER_TRIANGLE))
            return lambda k: columns[k], lambda k: [(i, j, starts[k] + at) for at, (i, j) in entries]
        columns = StackedPytree(group.columns)
        return lambda k: columns[k], self.M.places(group.columns)

    def over_active_blocks(
        self, work: BlockFunction, total: Any, groups: Sequence[BlockGroup] | None = None
    ) -> Any:
        """`total` after total = work(block, total) for every block that is active in some world; groups: all,
        or some of them.
        """
        for group in self.groups if groups is None else groups:
            if len(group.rows) > 1 or group.rows.width > CHEAP_WIDTH:
                indices = group.rows.active_indices
                total = indices.for_each(lambda k, t, g=group: work(RowBlock(g, k), t), total)
            else:
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

    def extended(self, a: Any) -> MutableArray:
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
        x = self.extended(p)
        return self.over_active_blocks(
            lambda block, y: block.with_values(y, block.jacobian_product(x)), empty(self.count)
        )

    def residual(self, a: Any) -> MutableArray:
        """y = J a - aref of all active rows."""
        x = self.extended(a)
        return self.over_active_blocks(
            lambda block, y: block.with_values(y, block.jacobian_product(x) - block.aref),
            empty(self.count),
        )

    def constraint_force(
        self, y: MutableArray, force_law: ForceLaw = RowBlock.force_and_curvature
    ) -> np.ndarray:
        """J^T f (nv,), the generalised constraint force at the residual y."""
        return self.expansion(y, force_law).force

    def virtual_power(self, a: Any, v: Any) -> Any:
        """f^T J v, the power of the constraint forces at the accelerations a (nv,) for velocities v (nv,)."""
        x, motion = self.extended(a), self.extended(v)

        def add(block: RowBlock, power: Any) -> Any:
            force, _ = block.force_and_curvature(block.jacobian_product(x) - block.aref)
            return power + force @ block.jacobian_product(motion)

        return self.over_active_blocks(add, 0.0)

    def forces(self, a: Any) -> MutableArray:
        """Forces f (row_count,) of all rows at a, 0 where they are inactive."""
        x = self.extended(a)

        def store(block: RowBlock, f: MutableArray) -> MutableArray:
            force, _ = block.force_and_curvature(block.jacobian_product(x) - block.aref)
            return block.with_row_values(f, force)

        return self.over_active_blocks(store, zeros(self.row_count))

    # -------------------------------------------------------------------------------------- Hessian and line
    # search

    def expansion(self, y: MutableArray, force_law: ForceLaw) -> Expansion:
        """J^T f, and M + J^T W J, with the forces and curvatures that the law has at the residual y; forces
        and stiffnesses at links are gathered first.
        """

        def add(block: RowBlock, carry: tuple[MutableArray, MutableArray]) -> Any:
            total, H = carry
            J, (force, W) = block.axes, block.along_axes(*force_law(block, block.read(y)))
            WJ = W @ J
            total = _with_added(total, zip(block.columns, J.T @ force, strict=True))
            return total, _with_added(H, ((k, J[:, i] @ WJ[:, j]) for i, j, k in block.hessian_entries))

        coupled = [group for group in self.groups if isinstance(group.rows, CoupledRows)]
        at_links = [group for group in self.groups if group.rows.by_wrench]
        others = [group for group in self.groups if group not in (*at_links, *coupled)]
        total, K = zeros(self.nv + 6 * len(self.link_numbers)), zeros(21 * len(self.link_numbers))
        total, K = self.over_active_blocks(add, (total, K), at_links)
        total, H = self.over_active_blocks(add, (total, self.M.array()), others)
        for (i, j), x in self._curvature_of_links(K).items():
            H = H.set(self.M.place(i, j), H[self.M.place(i, j)] + x)
        hessian: UpdatedFactors | Woodbury = UpdatedFactors(self.M, H)
        if coupled:
            roots = list[RowRoots]()
            for group in coupled:
                total, own = self._with_coupled_rows(group, total, y, force_law)
                roots.append(own)
            hessian = hessian.update(roots)
        return Expansion(self._with_link_forces(total), hessian)

    def _with_coupled_rows(
        self, group: BlockGroup, total: MutableArray, y: MutableArray, force_law: ForceLaw
    ) -> tuple[MutableArray, RowRoots]:
        """The forces with those of coupled rows, and the roots C J of their part J^T W J of the Hessian, with
        W = C^T C by contact axes.
        """
        rows = group.rows
        assert isinstance(rows, CoupledRows)
        m = rows.form.axis_count
        places = {entry: at for at, entry in enumerate((i, j) for i in range(m) for j in range(i, m))}

        def add(block: RowBlock, carry: Any) -> Any:
            total, C, counts = carry
            axes, (force, W) = block.axes, block.along_axes(*force_law(block, block.read(y)))
            total = _with_added(total, zip(block.columns, axes.T @ force, strict=True))
            for (i, j), x in upper_root(W).items():
                C = C.set(block.k * len(places) + places[i, j], x)
            return total, C, counts.set(block.k, where(np.trace(W) > 0, 1.0, 0.0))

        counts = fori_loop(0, rows.blocks, lambda k, counts: counts.set(k, 0.0), empty(len(rows)))
        total, C, counts = self.over_active_blocks(
            add, (total, empty(len(rows) * len(places)), counts), [group]
        )

        def root(k: Any, i: int) -> np.ndarray:
            """Row i of C J of block k."""
            J = rows.axes(k)
            return np.array([C[k * len(places) + places[i, j]] for j in range(i, m)]) @ J[i:]

        return total, RowRoots(m, counts, rows.items.count, rows.blocks, root)

    def _with_link_forces(self, total: MutableArray) -> np.ndarray:
        """Generalised forces (nv,), of an array of these and of the wrenches on links."""
        force = np.array([total[k] for k in range(self.nv)])
        if not self.link_numbers or self.rows.screws is None:
            return force
        wrenches = {
            link: np.array([total[k] for k in self._link_columns(link)]) for link in self.link_numbers
        }
        return force + self.rows.screws.generalised_forces(wrenches, self.nv)

    def _curvature_of_links(self, K: MutableArray) -> dict[tuple[int, int], Any]:
        """The entries (i >= j) of sum B^T K B with the stiffness K of each link, in an array."""
        screws, stiffness = self.rows.screws, dict[int, np.ndarray]()
        for link, number in self.link_numbers.items():
            stiffness[link] = own = np.zeros((6, 6), object)
            for at, (i, j) in enumerate(LOWER_TRIANGLE):
                own[i, j] = own[j, i] = K[21 * number + at]
        return {} if screws is None else screws.stiffness_entries(stiffness)

    def newton_direction(self, y: MutableArray, gradient: Any, force_law: ForceLaw) -> np.ndarray:
        """Newton direction -(M + J^T W J)^-1 gradient."""
        return -self.expansion(y, force_law).hessian.solve(gradient)

    def response(self, a: Any, force: Any) -> np.ndarray:
        """(M + J^T W J)^-1 force (nv,), with the curvature W at the accelerations a (nv,)."""
        x = self.extended(a)

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

    def exact_line_search(
        self, at: tuple[Any, MutableArray], p: Any, Mp: Any, Jp: MutableArray, gradient: Any,
        first_step: Any = 1.0, tolerance: float = 1e-7,
    ) -> Any:  # fmt: skip
        """Step length along p that minimises the cost, from at = (M (a - a_free), y) where the cost has this
        gradient.
        """
        smooth_force, y = at
        smooth_slope, smooth_curvature = p @ smooth_force, p @ Mp

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


def _with_added(total: MutableArray, parts: Iterable[tuple[Any, Any]]) -> MutableArray:
    """The array with values added to its entries."""
    for k, x in parts:
        total = total.set(k, total[k] + x)
    return total

"""Constraint rows: the constraints on the accelerations, as the record that the solvers read.

Row i requires J_i a = aref_i with the softness of its regularisation R_i (R = 0: hard). Its force f_i lies
in a set that depends on its kind:

    equality   any force
    friction   |f| <= bound
    limit      f >= 0
    contact    f >= 0 (a frictionless contact, or an edge of a friction pyramid)
    cone       several rows, one `Cone`: f_0 >= 0 and sum (f_j / friction_j)^2 <= f_0^2 over the others

The force is minus the derivative of the cost s_i(y_i) of the residual y = J a - aref. Source: MuJoCo
documentation, Computation, "Constraint model".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.row_arrays import HARD, OWN, PER_ROW, STORED, WRENCH, Cone, CoupledRows, RowArrays
from zwang.deprecation import renamed_attributes
from zwang.mechanism.tree import WORLD
from zwang.scalar import MutableArray, divide, empty, is_zero, where
from zwang.scalar.compact_loop import IndexSet, SingleIndex
from zwang.scalar.stacked_pytree import StackedPytree

WarmStart = Callable[[int, int], MutableArray]
"""A warm start: the stored status of n rows, or blocks, given their number n and the largest status, which is
an integer; 0 where none is stored."""

KINDS = ("equality", "friction", "limit", "contact", "cone")
MOST_ROWS_OF_A_BLOCK = 10
"""So that the status of a block, with up to two bits for each row, is a number that single precision has."""


class JointScrews(NamedTuple):
    """Joint screws of a tree: the parent of each link (or -1), the range of its velocities, and their motion
    subspace (6, n).

    Spatial velocities are (velocity at the world's origin, angular velocity) and wrenches (force, moment
    about that origin), both in world axes.
    """

    parents: tuple[int, ...]
    velocities: tuple[slice, ...]
    columns: tuple[np.ndarray, ...]

    def path(self, link: int) -> list[int]:
        """The links from `link` to the world."""
        found = []
        while link >= 0:
            found.append(link)
            link = self.parents[link]
        return found

    def signs(self, links: tuple[int, int]) -> dict[int, int]:
        """The velocities that move the second of two links (1), or the first (-1); those that move both are
        omitted.
        """
        first, second = (set(self.path(link)) for link in links)
        return {
            k: 1 if i in second else -1
            for i in sorted(first ^ second)
            for k in range(self.velocities[i].start, self.velocities[i].stop)
        }

    def jacobian(self, nv: int, link: int, other: int = WORLD) -> np.ndarray:
        """Jacobian B (6, nv) of the spatial velocity B v of a link relative to another one."""
        B = np.zeros((6, nv), int).astype(object)
        S = np.concatenate(self.columns, axis=1)
        for k, sign in self.signs((other, link)).items():
            B[:, k] = sign * S[:, k]
        return B

    def spatial_velocities(self, v: Any) -> list[np.ndarray]:
        """Spatial velocity B v of every link, from the root to the leaves; v may also be accelerations,
        without bias.
        """
        found: list[np.ndarray] = []
        for parent, columns, S in zip(self.parents, self.velocities, self.columns, strict=True):
            joint_velocity = S @ v[columns]
            found.append(joint_velocity if parent < 0 else found[parent] + joint_velocity)
        return found

    def generalised_forces(self, wrenches: dict[int, Any], nv: int) -> np.ndarray:
        """Generalised forces (nv,) sum B^T wrench of wrenches (6,) on links, from the leaves to the root."""
        subtree, forces = dict(wrenches), [0] * nv
        for i in reversed(range(len(self.parents))):
            if i in subtree:
                forces[self.velocities[i]] = self.columns[i].T @ subtree[i]
                self._add_to_parent(subtree, i)
        return np.array(forces)

    def stiffness_entries(self, stiffness: dict[int, np.ndarray]) -> dict[tuple[int, int], Any]:
        """Entries (i >= j) of sum B^T K B for stiffnesses K (6, 6) at links, by the composite-rigid-body
        recursion.
        """
        subtree, entries = dict(stiffness), {}
        for i in reversed(range(len(self.parents))):
            if i not in subtree:
                continue
            # K S, then s^T K S for every velocity on the path to the world
            KS = subtree[i] @ self.columns[i]
            for k, F in zip(range(self.velocities[i].start, self.velocities[i].stop), KS.T, strict=True):
                for at in self.path(i):
                    for j, s in zip(
                        range(self.velocities[at].start, self.velocities[at].stop),
                        self.columns[at].T,
                        strict=True,
                    ):
                        if j <= k:
                            entries[k, j] = s @ F
            self._add_to_parent(subtree, i)
        return entries

    def _add_to_parent(self, subtree: dict[int, Any], i: int) -> None:
        """Add the quantity of link i's subtree to its parent's."""
        parent = self.parents[i]
        if parent >= 0:
            subtree[parent] = subtree[parent] + subtree[i] if parent in subtree else subtree[i]


@dataclass(frozen=True)
class RowGroup:
    """Blocks of n rows of the same form: those of all contacts of a pair-type group, or a single other block.

    kinds (n,). names and order: the name of each block, and its place among all contacts, which other blocks
    precede. links: of block k, of both bodies; -1: the world. columns: the velocities that J of block k
    multiplies; without them it multiplies the spatial velocity (6,) of the second link relative to the first,
    so that J^T f is the wrench on it. arrays: those of the rows, defined where a block is active; row, entry:
    the first of this group's rows, and of its entries of J, there. hard: whether R = 0. active (count,): 1
    where a block is, else 0. cone: that of block k, or None. any_active: whether any block is active.
    active_indices: the active ones. edges: of block k the matrix E (n, m) of friction pyramids, whose J is E
    times that of m contact axes. is_coupled: whether the solver reads the rows in `Rows.coupled`.
    """

    kinds: tuple[str, ...]
    names: tuple[str, ...]
    order: tuple[int, ...]
    links: tuple[tuple[int, int], ...]
    columns: tuple[tuple[int, ...], ...]
    arrays: RowArrays
    row: int
    entry: int
    hard: bool
    active: MutableArray
    cone: Callable[[Any], Cone | None]
    any_active: Any
    active_indices: IndexSet
    edges: Callable[[Any], np.ndarray] | None = None
    is_coupled: bool = False

    def __len__(self) -> int:
        return len(self.names)

    @property
    def by_wrench(self) -> bool:
        """Whether J multiplies the relative spatial velocity of the links."""
        return not self.columns

    def sign(self, k: Any) -> Any:
        """1 where the first link of block k is the world, whose J then multiplies the velocity of the second
        one, and -1 where the second is.
        """
        return self._signs[k]

    @cached_property
    def _signs(self) -> StackedPytree:
        return StackedPytree([1.0 if first == WORLD else -1.0 for first, _ in self.links])

    @property
    def width(self) -> int:
        """The number of columns of J."""
        return WRENCH if self.by_wrench else len(self.columns[0])

    @property
    def size(self) -> int:
        """n, the number of rows in a block."""
        return len(self.kinds)

    def jacobian(self, k: Any) -> np.ndarray:
        """J (n, width) of block k."""
        return self.axes(k) if self.edges is None else self.edges(k) @ self.axes(k)

    def axes(self, k: Any) -> np.ndarray:
        """The J of the contact axes (m, width) of block k, of which its rows are combinations, or J."""
        count = self.axis_count * self.width
        return np.array(self.arrays.J.segment(self.entry + k * count, count)).reshape(
            self.axis_count, self.width
        )

    @property
    def axis_count(self) -> int:
        """m, the number of the contact axes, or n."""
        return self.size if self.edges is None else 1 + self.size // 2

    def read(self, name: str, k: Any) -> np.ndarray:
        """The values (n,) of one field of block k."""
        if self.hard and name in HARD:
            return np.full(self.size, HARD[name])
        values, first = self.arrays.values[name], self.row + k * self.size
        if self.edges is not None and name not in OWN:
            return np.array([values[first]] * self.size)
        return np.array(values.segment(first, self.size))

    def number(self, k: Any) -> Any:
        """The number of block k in the group, as a real."""
        return 1.0 * k

    def value_in(self, array: MutableArray, start: int, k: Any) -> Any:
        """The entry of block k in an array that has those of all blocks from a start on."""
        return array[start + k]

    def with_values_in(self, array: MutableArray, start: int, k: Any, values: Sequence[Any]) -> MutableArray:
        """The array with as many entries for each block, with those of block k replaced."""
        for i, x in enumerate(values):
            array = array.set(start + len(values) * k + i, x)
        return array

    def velocities(self, screws: JointScrews | None) -> list[tuple[int, ...]]:
        """The generalised velocities on which each block depends."""
        if screws is None or not self.by_wrench:
            return list(self.columns)
        return [tuple(screws.signs(links)) for links in self.links]

    def block(self, k: int, screws: JointScrews, nv: int) -> Rows:
        """The rows of block k with their J (n, nv), zeros where it is inactive."""
        active = self.active[k] > 0

        def masked(name: str, values: np.ndarray) -> np.ndarray:
            otherwise = 1.0 if name in ("R", "inverse_weight") else 0.0
            return scalar_array([x if is_zero(x) else where(active, x, otherwise) for x in np.ravel(values)])

        narrow = masked("J", self.jacobian(k)).reshape(self.size, -1)
        if self.by_wrench:
            other, link = self.links[k]
            J = narrow @ screws.jacobian(nv, link, other)
        else:
            J = np.zeros((self.size, nv), int).astype(object)
            for c, column in enumerate(self.columns[k]):  # columns that pad a block are repeated, and zero
                J[:, column] = J[:, column] + narrow[:, c]
        values: dict[str, Any] = {
            name: masked(name, self.read(name, k)) for name in PER_ROW if name != "active"
        }
        cone, names = self.cone(k), (self.names[k],) * self.size
        values["active"] = np.array([active] * self.size)
        return Rows(names, self.kinds, J, **values, cones=() if cone is None else (cone,))


@renamed_attributes(weight="inverse_weight")
@dataclass(frozen=True)
class Rows:
    """n constraint rows. names: the constraint of each row. kinds: see the module. J (n, nv). All others
    have shape (n,).

    aref: reference acceleration [row unit/s^2]. R: regularisation [row unit/s^2 per force unit], 0 for hard
    rows. position: the violation or distance; velocity: J v; margin: the position at which the row becomes
    active. impedance: d. inverse_weight: the approximate diagonal of A = J M^-1 J^T from which R was
    computed. bound: the largest friction force, else 0. active: whether the row is active; an inactive row
    has no force. row_groups: the rows of contacts, in arrays, with the joint screws of their links.
    coupled: those of contacts between moving links that each world has, by form.
    """

    names: tuple[str, ...]
    kinds: tuple[str, ...]
    J: np.ndarray
    aref: np.ndarray
    R: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    margin: np.ndarray
    impedance: np.ndarray
    inverse_weight: np.ndarray
    bound: np.ndarray
    active: np.ndarray
    cones: tuple[Cone, ...] = ()
    screws: JointScrews | None = None
    row_groups: tuple[RowGroup, ...] = ()
    coupled: tuple[CoupledRows, ...] = ()

    def __len__(self) -> int:
        return len(self.names)

    @property
    def count(self) -> int:
        """The number of all rows, those of groups, active or not, included."""
        return len(self) + sum(len(group) * group.size for group in self.row_groups)

    @property
    def starts(self) -> dict[str, int]:
        """The number of the first row of every name, where the rows of groups follow the others."""
        found = {name: k for k, name in reversed(list(enumerate(self.names)))}
        start = len(self)
        for group in self.row_groups:
            found |= {name: start + k * group.size for k, name in enumerate(group.names)}
            start += len(group) * group.size
        return found

    @property
    def active_by_name(self) -> dict[str, Any]:
        """Whether the rows of every name are active, those of groups included."""
        found = dict(zip(self.names, self.active, strict=True))
        for group in self.row_groups:
            found |= {name: group.active[k] > 0 for k, name in enumerate(group.names)}
        return found

    @property
    def any_hard(self) -> bool:
        """Whether any row is hard by structure, those of groups included."""
        return any(self.hard) or any(group.hard for group in self.row_groups)

    @property
    def hard(self) -> list[bool]:
        """For each row whether it is hard by structure (R = 0)."""
        return [is_zero(R) for R in self.R]

    @property
    def stored_values(self) -> dict[str, np.ndarray]:
        """The values (n,) that are stored of rows in arrays; some of hard rows are known."""
        known = HARD if all(self.hard) else ()
        return {name: getattr(self, name) for name in STORED if name not in known}

    @property
    def D(self) -> np.ndarray:
        """1 / R; 0 where the row is inactive; inf where it is hard."""
        return scalar_array(
            [where(is_active, divide(1, R), 0.0) for is_active, R in zip(self.active, self.R, strict=True)]
        )

    @property
    def cone_of(self) -> dict[int, Cone]:
        """The cone of each row that belongs to one."""
        return {i: cone for cone in self.cones for i in range(cone.start, cone.stop)}

    def replaced(self, **changes: Any) -> Rows:
        """The same rows with other values."""
        return replace(self, **changes)

    def as_cone(self, cone: Cone) -> Rows:
        """These rows as those of one elliptic cone."""
        return replace(self, kinds=("cone",) * len(self), cones=(cone,))

    def select(self, chosen: Sequence[int]) -> Rows:
        """Some of the rows, in the given order; the rows of a cone must stay together, the normal first."""
        new_index = {old: new for new, old in enumerate(chosen)}
        cones = tuple(c._replace(start=new_index[c.start]) for c in self.cones if c.start in new_index)
        index = list(chosen)
        return replace(
            self,
            names=tuple(self.names[i] for i in chosen),
            kinds=tuple(self.kinds[i] for i in chosen),
            J=self.J[index],
            **{name: getattr(self, name)[index] for name in PER_ROW},
            cones=cones,
        )

    @property
    def uncoupled(self) -> Rows:
        """The same rows, all of which are read in groups."""
        groups = tuple(replace(group, is_coupled=False) for group in self.row_groups)
        return replace(self, row_groups=groups, coupled=())

    def in_groups(self) -> tuple[RowGroup, ...]:
        """All rows in groups: before those of contacts, each block of other rows is a group of its own."""
        return (*(self._block(start, stop) for start, stop in _block_spans(self)), *self.row_groups)

    def _block(self, start: int, stop: int) -> RowGroup:
        """Rows outside groups that are active together as a group with a single block."""
        own, active, cone = self.select(range(start, stop)), self.active[start], self.cone_of.get(start)
        columns = tuple(k for k in range(self.J.shape[1]) if not is_zero(own.J[:, k]))
        arrays = RowArrays.of_size(len(own), len(own) * len(columns))
        arrays = arrays.stored(0, 0, own.J[:, list(columns)], own.stored_values)
        flags = empty(1).set(0, where(active, 1.0, 0.0))
        return RowGroup(
            own.kinds, own.names[:1], (start - len(self),), ((WORLD, WORLD),), (columns,), arrays, 0, 0,
            all(own.hard), flags, lambda k: cone, active, SingleIndex(active),
        )  # fmt: skip

    def without_groups(self) -> Rows:
        """All rows, those of groups included, in one table; contacts are in the order of their pairs."""
        return self._listed(range(len(self)), lambda group, k: True)[0]

    def only_active(self) -> tuple[Rows, list[int]]:
        """The active rows in one table, as `without_groups`, and their numbers among all rows; on floats."""
        own = [i for i, is_active in enumerate(self.active) if is_active]
        return self._listed(own, lambda group, k: group.active[k] > 0)

    def _listed(self, own: Sequence[int], listed: Callable[[RowGroup, int], Any]) -> tuple[Rows, list[int]]:
        """These of the rows, and the blocks of groups that are listed, with their numbers."""
        nv, screws, blocks, first = self.J.shape[1], self.screws, list[tuple[int, Rows, int]](), len(self)
        for group in self.row_groups:
            assert screws is not None
            chosen = [(place, k) for k, place in enumerate(group.order) if listed(group, k)]
            blocks += [(place, group.block(k, screws, nv), first + k * group.size) for place, k in chosen]
            first += len(group) * group.size
        rows = replace(self.select(own), row_groups=(), screws=None, coupled=())
        blocks.sort(key=lambda block: block[0])
        numbers = [*own, *(start + i for _, block, start in blocks for i in range(len(block)))]
        return concatenated([rows, *(block for _, block, _ in blocks)], nv), numbers

    def indices(self, *kinds: str) -> list[int]:
        """The numbers of the rows of these kinds."""
        return [i for i, kind in enumerate(self.kinds) if kind in kinds]


def _block_spans(rows: Rows) -> list[tuple[int, int]]:
    """(start, stop) of the blocks: the rows of one cone, or up to `MOST_ROWS_OF_A_BLOCK` adjacent rows of one
    name that are active together.
    """
    cones, starts = rows.cone_of, list[int]()
    for i in range(len(rows)):
        if not starts or i - starts[-1] >= MOST_ROWS_OF_A_BLOCK or not _in_one_block(rows, cones, i - 1, i):
            starts.append(i)
    return list(zip(starts, [*starts[1:], len(rows)], strict=True)) if starts else []


def _in_one_block(rows: Rows, cones: dict[int, Cone], i: int, j: int) -> bool:
    """Whether adjacent rows i and j belong to one block."""
    if i in cones or j in cones:
        return cones.get(i) is cones.get(j)
    return rows.names[i] == rows.names[j] and rows.active[i] is rows.active[j]


def scalar_array(values: Sequence[Any]) -> np.ndarray:
    """Scalars as an array: of floats if all are numbers, else of objects."""
    return np.array(values) if len(values) else np.zeros(0)


def no_rows(nv: int) -> Rows:
    """The empty set of rows for nv velocities."""
    return rows_of_kind((), "equality", np.zeros((0, nv)), ()).replaced(active=np.zeros(0, bool))


def rows_of_kind(
    names: str | Sequence[str],
    kind: str,
    J: Any,
    aref: Any,
    *,
    R: Any = 0,
    position: Any = 0,
    velocity: Any = 0,
    margin: Any = 0,
    impedance: Any = 1,
    inverse_weight: Any = 1,
    bound: Any = 0,
    active: Any = True,
) -> Rows:
    """n rows J a = aref of one kind, hard ones by default; aref (n,), all other values and the names are one
    for each row or one for all.
    """
    n = len(aref)
    values = aref, R, position, velocity, margin, impedance, inverse_weight, bound, active
    fields_of_rows: dict[str, Any] = dict(
        zip(PER_ROW, (scalar_array(per_row(x, n)) for x in values), strict=True)
    )
    names = (names,) * n if isinstance(names, str) else tuple(names)
    return Rows(names, (kind,) * n, np.array(J), **fields_of_rows)


def per_row(value: Any, n: int) -> list[Any]:
    """One value for each of n rows."""
    return list(value) if np.ndim(value) else [value] * n


def concatenated(parts: Sequence[Rows], nv: int) -> Rows:
    """All rows of the parts, in order."""
    parts = [part for part in parts if len(part) or part.row_groups] or [no_rows(nv)]
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    cones = tuple(
        cone._replace(start=cone.start + offset)
        for part, offset in zip(parts, offsets, strict=False)
        for cone in part.cones
    )
    joined: dict[str, Any] = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Rows)
        if field.name in ("J", *PER_ROW)
    }
    return Rows(
        names=tuple(name for part in parts for name in part.names),
        kinds=tuple(kind for part in parts for kind in part.kinds),
        cones=cones,
        screws=next((part.screws for part in parts if part.screws is not None), None),
        row_groups=tuple(group for part in parts for group in part.row_groups),
        coupled=tuple(rows for part in parts for rows in part.coupled),
        **joined,
    )

"""Rows: what restricts the accelerations, as a record that the solvers read.

Row i of a problem asks for J_i a = aref_i, as softly as R_i says (R = 0 is exact), with a constraint force f_i from the set
that its kind allows:

    equality   any force
    friction   |f| <= bound
    limit      f >= 0
    contact    f >= 0 (a contact without friction, or an edge of a friction pyramid)
    cone       several rows, one `Cone`: f_0 >= 0 and sum (f_j / friction_j)^2 <= f_0^2 over the others

In Gauss's problem with softness the force of a row is what the cost s_i(J_i a - aref_i) of missing aref gives. Source: seed 002.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.compacted_rows import CompactedRows
from zwang.scalar import ActiveIndices, MutableArray, divide, is_zero, where

WarmStart = Callable[[int], MutableArray]
"""What is remembered of so many rows, or groups of rows: how they answered in the step before, zeros where nothing is known."""

KINDS = ("equality", "friction", "limit", "contact", "cone")
PER_ROW = ("aref", "R", "position", "velocity", "margin", "impedance", "weight", "bound", "active")


class Cone(NamedTuple):
    """Rows start, start + 1, ... of one elliptic cone: the normal, then one row for each entry of `friction`.

    mu: the cone's slope in the metric of R, friction[0] sqrt(R[start + 1] / R[start]).
    """

    start: int
    friction: tuple[Any, ...]
    mu: Any

    @property
    def stop(self) -> int:
        return self.start + 1 + len(self.friction)


class Screws(NamedTuple):
    """How the links of a tree move: for each its parent (or -1), its range of speeds, and the screws (6, n) of these.

    A screw is (velocity at the world's origin, angular velocity) in world axes, a wrench (force, moment about that origin).
    """

    parents: tuple[int, ...]
    speeds: tuple[slice, ...]
    columns: tuple[np.ndarray, ...]

    def path(self, link: int) -> list[int]:
        """The links from `link` to the world."""
        found = []
        while link >= 0:
            found.append(link)
            link = self.parents[link]
        return found

    def jacobian(self, link: int, nv: int) -> np.ndarray:
        """B (6, nv): the link's screw is B v."""
        B = np.zeros((6, nv), int).astype(object)
        for i in self.path(link):
            B[:, self.speeds[i]] = self.columns[i]
        return B

    def spatial_velocities(self, v: Any) -> list[np.ndarray]:
        """Every link's screw, for speeds (or accelerations without the bias) v."""
        found: list[np.ndarray] = []
        for parent, speeds, S in zip(self.parents, self.speeds, self.columns, strict=True):
            own = S @ v[speeds]
            found.append(own if parent < 0 else found[parent] + own)
        return found

    def efforts(self, wrenches: dict[int, Any], nv: int) -> np.ndarray:
        """(nv,): what wrenches on links ask of the speeds, from the leaves to the world."""
        carried, efforts = dict(wrenches), [0] * nv
        for i in reversed(range(len(self.parents))):
            if i in carried:
                efforts[self.speeds[i]] = self.columns[i].T @ carried[i]
                self._pass_on(carried, i)
        return np.array(efforts)

    def curvature(self, stiffness: dict[int, np.ndarray]) -> dict[tuple[int, int], Any]:
        """The entries (i >= j) of sum B^T K B for K (6, 6) at links: composites as for the mass matrix, seed 002's K_k."""
        carried, entries = dict(stiffness), {}
        for i in reversed(range(len(self.parents))):
            if i not in carried:
                continue
            felt = carried[i] @ self.columns[i]
            for k, F in zip(range(self.speeds[i].start, self.speeds[i].stop), felt.T, strict=True):
                for at in self.path(i):
                    for j, s in zip(
                        range(self.speeds[at].start, self.speeds[at].stop), self.columns[at].T, strict=True
                    ):
                        if j <= k:
                            entries[k, j] = s @ F
            self._pass_on(carried, i)
        return entries

    def _pass_on(self, carried: dict[int, Any], i: int) -> None:
        parent = self.parents[i]
        if parent >= 0:
            carried[parent] = carried[parent] + carried[i] if parent in carried else carried[i]


class LinkRows(NamedTuple):
    """Rows start ... stop - 1 that hold one link against the world: J = w B with w (n, 6) and the link's B of `Screws`."""

    start: int
    stop: int
    link: int
    w: np.ndarray


@dataclass(frozen=True)
class RowGroup:
    """Many groups of n rows of one form that act together or not at all, kept in arrays: all contacts of a family of pairs.

    kinds (n,). Group k touches the speeds columns[k] only or, with on_links, those that move the one link in columns[k], and J is by these or by
    the link's screw. What belongs to group k is read at k: active (count,), 1 or 0; J (count, n w), row by row; aref and D = 1/R (count, n),
    these where the group acts only. cone: the cone of group k, or None. acting: whether some group acts. those_that_act: their numbers.
    """

    kinds: tuple[str, ...]
    columns: tuple[tuple[int, ...], ...]
    on_links: bool
    active: MutableArray
    J: MutableArray
    aref: MutableArray
    D: MutableArray
    cone: Callable[[Any], Cone | None]
    acting: Any
    those_that_act: ActiveIndices

    @property
    def size(self) -> int:
        """n, the number of rows in a group."""
        return len(self.kinds)


@dataclass(frozen=True)
class Rows:
    """n rows. names: the constraint that each belongs to. kinds: see above. J (n, nv). All others (n,).

    aref: wanted acceleration, in the row's unit/s^2. R: regularisation [row unit/s^2 per force unit], 0 if hard. position: how far the
    constraint is violated, or the gap, velocity: J v; margin: the position at which it sets in. impedance d.
    weight: the approximate diagonal of A = J M^-1 J^T that R was made with. bound: largest friction force, else 0.
    active: whether the row acts; one that does not has no force. on_links: rows that are known by their link too, with its screws.
    batches: further rows, beside the n, kept in arrays. listed: or all of them, as they act, and then n is 0.
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
    weight: np.ndarray
    bound: np.ndarray
    active: np.ndarray
    cones: tuple[Cone, ...] = ()
    on_links: tuple[LinkRows, ...] = ()
    screws: Screws | None = None
    row_groups: tuple[RowGroup, ...] = ()
    listed: CompactedRows | None = None

    def __len__(self) -> int:
        return len(self.names)

    @property
    def hard(self) -> list[bool]:
        """For each row, whether it is exact by structure: R = 0."""
        return [is_zero(R) for R in self.R]

    @property
    def D(self) -> np.ndarray:
        """1 / R; 0 where the row does not act; inf where it is hard."""
        return array([where(on, divide(1, R), 0.0) for on, R in zip(self.active, self.R, strict=True)])

    @property
    def cone_of(self) -> dict[int, Cone]:
        """The cone of each row that belongs to one."""
        return {i: cone for cone in self.cones for i in range(cone.start, cone.stop)}

    def replaced(self, **changes: Any) -> Rows:
        """The same rows with other numbers; with another J they are not known by their links any more."""
        if "J" in changes:
            changes = {"on_links": (), "screws": None, **changes}
        return replace(self, **changes)

    def as_cone(self, cone: Cone) -> Rows:
        """These rows as those of one elliptic cone."""
        return replace(self, kinds=("cone",) * len(self), cones=(cone,))

    def select(self, chosen: Sequence[int]) -> Rows:
        """Some of the rows, in the given order; a cone's rows have to stay together, its normal first."""
        new_place = {old: new for new, old in enumerate(chosen)}
        cones = tuple(c._replace(start=new_place[c.start]) for c in self.cones if c.start in new_place)
        on_links = tuple(
            o._replace(start=new_place[o.start], stop=new_place[o.start] + o.stop - o.start)
            for o in self.on_links
            if all(i in new_place for i in range(o.start, o.stop))
        )
        index = list(chosen)
        return replace(
            self,
            names=tuple(self.names[i] for i in chosen),
            kinds=tuple(self.kinds[i] for i in chosen),
            J=self.J[index],
            **{name: getattr(self, name)[index] for name in PER_ROW},
            cones=cones,
            on_links=on_links,
        )

    def only_active(self) -> Rows:
        """The rows that act; only of rows whose `active` are plain truth values."""
        return self.select([i for i, on in enumerate(self.active) if on])

    def indices(self, *kinds: str) -> list[int]:
        """The numbers of the rows of these kinds."""
        return [i for i, kind in enumerate(self.kinds) if kind in kinds]


def array(values: Sequence[Any]) -> np.ndarray:
    """Scalars as an array: of floats if all are plain numbers, else of objects."""
    return np.array(values) if len(values) else np.zeros(0)


def no_rows(nv: int) -> Rows:
    """The empty set of rows for nv speeds."""
    return Rows((), (), np.zeros((0, nv)), **dict.fromkeys(PER_ROW, np.zeros(0)), cones=())


def hard_rows(
    names: Sequence[str], J: Any, aref: Any, *, position: Any = None, velocity: Any = None, weight: Any = None
) -> Rows:
    """Exact equalities J a = aref, as of nonholonomic constraints and constraints by expression."""
    n = len(names)
    zero, one = [0] * n, [1] * n
    position, velocity = (zero if x is None else x for x in (position, velocity))
    return Rows(
        tuple(names), ("equality",) * n, np.array(J).reshape(n, -1), array(aref), np.zeros(n, int), array(position),
        array(velocity), array(zero), array(one), array(one if weight is None else weight), array(zero),
        np.array([True] * n),
    )  # fmt: skip


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
    on_links = tuple(
        o._replace(start=o.start + offset, stop=o.stop + offset)
        for part, offset in zip(parts, offsets, strict=False)
        for o in part.on_links
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
        on_links=on_links,
        screws=next((part.screws for part in parts if part.screws is not None), None),
        row_groups=tuple(batch for part in parts for batch in part.row_groups),
        **joined,
    )

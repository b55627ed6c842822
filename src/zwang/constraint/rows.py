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

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, NamedTuple

import numpy as np

from zwang.scalar import divide, is_zero, where

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


@dataclass(frozen=True)
class Rows:
    """n rows. names: the constraint that each belongs to. kinds: see above. J (n, nv). All others (n,).

    aref: wanted acceleration, in the row's unit/s^2. R: regularisation [row unit/s^2 per force unit], 0 if hard. position: how far the
    constraint is violated, or the gap, velocity: J v; margin: the position at which it sets in. impedance d.
    weight: the approximate diagonal of A = J M^-1 J^T that R was made with. bound: largest friction force, else 0.
    active: whether the row acts; one that does not has no force.
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
        """The same rows with other numbers."""
        return replace(self, **changes)

    def as_cone(self, cone: Cone) -> Rows:
        """These rows as those of one elliptic cone."""
        return replace(self, kinds=("cone",) * len(self), cones=(cone,))

    def select(self, chosen: Sequence[int]) -> Rows:
        """Some of the rows, in the given order; a cone's rows have to stay together, its normal first."""
        new_place = {old: new for new, old in enumerate(chosen)}
        cones = tuple(c._replace(start=new_place[c.start]) for c in self.cones if c.start in new_place)
        index = list(chosen)
        return replace(
            self,
            names=tuple(self.names[i] for i in chosen),
            kinds=tuple(self.kinds[i] for i in chosen),
            J=self.J[index],
            **{name: getattr(self, name)[index] for name in PER_ROW},
            cones=cones,
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
    parts = [part for part in parts if len(part)] or [no_rows(nv)]
    if len(parts) == 1:
        return parts[0]
    offsets = np.cumsum([0, *(len(part) for part in parts)]).tolist()
    cones = tuple(
        cone._replace(start=cone.start + offset)
        for part, offset in zip(parts, offsets, strict=False)
        for cone in part.cones
    )
    joined = {
        field.name: np.concatenate([getattr(part, field.name) for part in parts])
        for field in fields(Rows)
        if field.name not in ("names", "kinds", "cones")
    }
    return Rows(
        names=tuple(name for part in parts for name in part.names),
        kinds=tuple(kind for part in parts for kind in part.kinds),
        cones=cones,
        **joined,
    )

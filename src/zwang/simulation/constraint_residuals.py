"""How far constraints are from holding, as one number each: the drift off exact ones, the give of soft ones."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.hard import velocity_level_rows
from zwang.mechanism.constraints import (
    Connect,
    Distance,
    Holonomic,
    JointCoupling,
    NonIdeal,
    NoSideSlip,
    Rolling,
    Weld,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling
from zwang.scalar import are_constant, sqrt
from zwang.simulation.constraint_stage import equalities_on

LENGTHS = (Connect, Distance, Weld, NoSideSlip, Rolling)
FORMULA = "as its formula"


class ConstraintResidual(NamedTuple):
    """A constraint, or the turning part of a weld: its name, its unit, its rows, and what these are multiplied by.

    placed: which of these rows tell a position; a constraint of speeds alone has none.
    """

    name: str
    unit: str
    constraint: Any
    rows: slice
    scale: Any
    placed: tuple[int, ...]


def constraint_residuals(mechanism: Mechanism) -> tuple[ConstraintResidual, ...]:
    """What may be open in a mechanism: its constraints in order, less what the options switch off."""
    return tuple(_gaps_of(mechanism)) if equalities_on(mechanism) else ()


def _gaps_of(mechanism: Mechanism) -> Iterator[ConstraintResidual]:
    for c in mechanism.constraints:
        name = c.name or type(c).__name__.lower()
        match c:
            case NonIdeal():
                continue
            case Weld():
                yield ConstraintResidual(name, "m", c, slice(0, 3), 1, (0, 1, 2))
                if not (are_constant(c.torque_scale) and c.torque_scale == 0):
                    yield ConstraintResidual(f"{name}, turned", "rad", c, slice(3, 6), 2 / c.torque_scale, (0, 1, 2))
            case Connect():
                yield ConstraintResidual(name, "m", c, slice(0, 3), 1, (0, 1, 2))
            case Rolling():
                yield ConstraintResidual(name, "m", c, slice(0, 3), 1, (2,))
            case Holonomic():
                count = len(c.expressions)
                yield ConstraintResidual(name, FORMULA, c, slice(0, count), 1, tuple(range(count)))
            case Distance() | JointCoupling() | TendonCoupling():
                yield ConstraintResidual(name, _unit(mechanism, c), c, slice(0, 1), 1, (0,))
            case _:
                yield ConstraintResidual(name, "m" if isinstance(c, NoSideSlip) else FORMULA, c, slice(0, 1), 1, ())


def _unit(mechanism: Mechanism, c: Distance | JointCoupling | TendonCoupling) -> str:
    """Metres, or what the coordinate, or the first of a tendon's joints, is measured in."""
    if isinstance(c, Distance):
        return "m"
    joint = c.joint if isinstance(c, JointCoupling) else None
    if joint is None:
        tendon = next(t for t in mechanism.tendons if t.name == c.tendon)  # type: ignore[union-attr]
        if tendon.path:
            return "m"
        joint = tendon.joints[0][0]
    return "m" if mechanism.joint(joint).kind == "prismatic" else "rad"


def residuals_at(mechanism: Mechanism, q: Any, v: Any, t: Any) -> list[Any]:
    """The gaps of `gaps_of(mechanism)` at q, v and the time t, then the speeds with which their constraints are missed; on any scalar.

    A weld's turning part is the angle by which it is turned, for small ones.
    """
    open_by, missed_by = [], []
    for gap in constraint_residuals(mechanism):
        found = velocity_level_rows(mechanism, gap.constraint, q, v, t)
        positions = [found.position[gap.rows][k] for k in gap.placed]
        speeds = (found.A @ np.asarray(v) + found.a)[gap.rows]
        open_by.append(_length(positions) * gap.scale)
        missed_by.append(_length(speeds) * gap.scale)
    return [*open_by, *missed_by]


def _length(values: Any) -> Any:
    return sqrt(sum((x * x for x in values), start=0))

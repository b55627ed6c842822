"""The violation and the velocity residual of each constraint, as one number each."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import norm
from zwang.constraint.hard import equality_enabled, velocity_level_rows
from zwang.mechanism.constraints import (
    Connect,
    CoulombFriction,
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
from zwang.scalar import are_constant

LENGTHS = (Connect, Distance, Weld, NoSideSlip, Rolling)
FORMULA = "as its formula"


class ConstraintResidual(NamedTuple):
    """A constraint, or the rotational part of a weld: its name, unit, rows, and the factor of their norm.

    position_rows: the rows with a position; a velocity-level constraint has none.
    """

    name: str
    unit: str
    constraint: Any
    rows: slice
    scale: Any
    position_rows: tuple[int, ...]


def constraint_residuals(mechanism: Mechanism) -> tuple[ConstraintResidual, ...]:
    """The residuals of a mechanism: those of its constraints in their order, if the options enable them."""
    return tuple(_residuals_of(mechanism)) if equality_enabled(mechanism) else ()


def _residuals_of(mechanism: Mechanism) -> Iterator[ConstraintResidual]:
    for c in mechanism.constraints:
        name = c.name or type(c).__name__.lower()
        match c:
            case NonIdeal() | CoulombFriction():
                continue
            case Weld():
                yield ConstraintResidual(name, "m", c, slice(0, 3), 1, (0, 1, 2))
                if not (are_constant(c.torque_scale) and c.torque_scale == 0):
                    scale = 2 / c.torque_scale
                    yield ConstraintResidual(f"{name}, turned", "rad", c, slice(3, 6), scale, (0, 1, 2))
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
                unit = "m" if isinstance(c, NoSideSlip) else FORMULA
                yield ConstraintResidual(name, unit, c, slice(0, 1), 1, ())


def _unit(mechanism: Mechanism, c: Distance | JointCoupling | TendonCoupling) -> str:
    """Metres, or the unit of the joint, or of a fixed tendon's first joint."""
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
    """The violations of all `constraint_residuals` in a state, followed by their velocity residuals; on any
    scalar.

    Each is the Euclidean norm of the rows. The rotational part of a weld is the angle, if it is small.
    """
    violations, residuals = [], []
    for residual in constraint_residuals(mechanism):
        rows = velocity_level_rows(mechanism, residual.constraint, q, v, t)
        positions = [rows.position[residual.rows][k] for k in residual.position_rows]
        velocities = (rows.A @ np.asarray(v) + rows.a)[residual.rows]
        violations.append(norm(positions) * residual.scale)
        residuals.append(norm(velocities) * residual.scale)
    return [*violations, *residuals]

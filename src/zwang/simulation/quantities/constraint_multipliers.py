"""The multipliers of the constraints: the force of each row, such as the torque of a prescribed motion.

The generalised force of a constraint is A^T lambda with the rows A of its velocity residual A v + a. A
constraint "angle - w t = 0" has the row A = 1, so that its multiplier is the torque that a motor must exert
on this joint. The power of a row is lambda times the speed at which it is driven.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang import scalar
from zwang.constraint.context import RowContext
from zwang.constraint.hard import velocity_level_rows
from zwang.mechanism.constraints import Connect, Holonomic, Pfaffian, Rolling, Weld
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.quantities.constraint_forces import forces_of_constraints
from zwang.simulation.quantities.constraint_residuals import FORMULA, ConstraintResidual, constraint_residuals
from zwang.solver.solution import Solution

AXES = ("x", "y", "z")
ROWS_OF_ROLLING = ("first", "second", "normal")
UNITS = {"m": "N", "rad": "N m"}
PER_FORMULA = {Holonomic: "J per unit of its formula", Pfaffian: "W per unit of its formula"}
PROBES = (0.37, 0.61)  # coordinates at which the row of a joint's drive is recognised, as it is constant


class MultiplierLabel(NamedTuple):
    """The name of a row, that of its constraint, and the unit of its force."""

    name: str
    constraint: str
    unit: str


def multiplier_labels(mechanism: Mechanism) -> tuple[MultiplierLabel, ...]:
    """The labels of all rows of the constraints that the options enable.

    A constraint of one row has its name; those of points have one row for each axis of the world. The
    multiplier of a formula whose row is the velocity of one joint is the force or torque at this joint.
    """
    found = []
    for residual in constraint_residuals(mechanism):
        count = residual.rows.stop - residual.rows.start
        rows: tuple[Any, ...] = tuple(range(1, count + 1))
        if isinstance(residual.constraint, Connect | Weld):
            rows = AXES
        elif isinstance(residual.constraint, Rolling):
            rows = ROWS_OF_ROLLING
        for k, row in enumerate(rows):
            name = residual.name if count == 1 else f"{residual.name} {row}"
            found.append(
                MultiplierLabel(
                    name, residual.constraint.name or residual.name, _unit(mechanism, residual, k)
                )
            )
    return tuple(found)


def multipliers(context: RowContext, solution: Solution) -> list[Any]:
    """The forces of all rows of `multiplier_labels`, from the solution of Gauss's problem; on any scalar."""
    forces = {id(c): f for c, f in forces_of_constraints(context, solution)}
    return [x for r in constraint_residuals(context.mechanism) for x in forces[id(r.constraint)][r.rows]]


def _unit(mechanism: Mechanism, residual: ConstraintResidual, k: int) -> str:
    """The unit of the force of the k-th row of a constraint."""
    c = residual.constraint
    if residual.unit != FORMULA:
        return UNITS[residual.unit]
    for joint in mechanism.joints:
        if joint.kind in ("revolute", "prismatic") and _drives(mechanism, c, k, joint.v.start):
            return UNITS["m" if joint.kind == "prismatic" else "rad"]
    return PER_FORMULA.get(type(c), PER_FORMULA[Pfaffian])


def _drives(mechanism: Mechanism, c: Any, k: int, speed: int) -> bool:
    """Whether the k-th row of a formula is plus or minus one velocity, whatever the state."""
    name = mechanism.speed_names[speed]
    if isinstance(c, Holonomic):
        names = {str(s) for s in scalar.symbols_of(c.expressions[k])} & set(mechanism.coordinate_names)
    elif isinstance(c, Pfaffian):
        names = {given for given, _ in c.coefficients}
    else:
        return False
    if names != {name}:
        return False
    return all(
        _is_unit(velocity_level_rows(mechanism, c, q, v, 0.0).A[k][speed]) for q, v in _probes(mechanism)
    )


def _probes(mechanism: Mechanism) -> list[tuple[np.ndarray, np.ndarray]]:
    return [(np.full(mechanism.nq, x), np.zeros(mechanism.nv)) for x in PROBES]


def _is_unit(x: Any) -> bool:
    return scalar.are_constant(x) and abs(x) == 1

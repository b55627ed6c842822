"""The holonomic constraints of a mechanism: those that kinematics and statics satisfy."""

from __future__ import annotations

from typing import Any

from zwang.constraint.equality import LOOPS
from zwang.constraint.hard import acting_constraints, depends_on_time
from zwang.errors import DescriptionError
from zwang.mechanism.constraints import Connect, Distance, Holonomic, JointCoupling, Pfaffian, Weld
from zwang.mechanism.joint_index import JointIndex
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling
from zwang.scalar import symbols_of

HolonomicConstraint = Connect | Weld | Distance | JointCoupling | TendonCoupling | Holonomic


def holonomic_constraints(mechanism: Mechanism) -> tuple[HolonomicConstraint, ...]:
    """The constraints that act, all of which restrict the configuration.

    Raises DescriptionError for others, see `checked_holonomic`.
    """
    return tuple(checked_holonomic(c) for c in acting_constraints(mechanism))


def checked_holonomic(constraint: Any) -> HolonomicConstraint:
    """The constraint, if it restricts the configuration, at all times in the same way.

    Raises DescriptionError for constraints of velocities and for formulas with the time.
    """
    if not isinstance(constraint, (*LOOPS, Holonomic)):
        raise DescriptionError(
            f"{type(constraint).__name__} constraint {constraint.name!r} restricts velocities; kinematics "
            "and statics of robots have rows for holonomic constraints only: remove it with "
            "mechanism.replace(constraints=...)"
        )
    if depends_on_time(constraint):
        raise DescriptionError(
            f"{type(constraint).__name__} constraint {constraint.name!r} depends on the time t, which "
            "kinematics and statics of robots do not have: replace it by one with a number for t"
        )
    return constraint


def compared_joints(mechanism: Mechanism, constraint: Any) -> tuple[JointIndex, ...]:
    """The joints whose coordinates a constraint reads, so that a whole revolution is not the same
    configuration.
    """
    if isinstance(constraint, JointCoupling):
        names = {constraint.joint, constraint.to}
    elif isinstance(constraint, TendonCoupling):
        ends = {constraint.tendon, constraint.to}
        names = {name for t in mechanism.tendons if t.name in ends for name, _ in t.joints}
    elif isinstance(constraint, Holonomic):
        read = {str(s) for x in constraint.expressions for s in symbols_of(x)}
        return tuple(index for index in mechanism.joints if read & set(index.coordinates))
    elif isinstance(constraint, Pfaffian):
        read = {name for name, _ in constraint.coefficients}
        return tuple(index for index in mechanism.joints if read & set(index.speeds))
    else:
        names = set()
    return tuple(index for index in mechanism.joints if index.name in names)

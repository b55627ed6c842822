"""A mechanism with some of its joints fixed, for measurements in which they do not move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from zwang.mechanism.constraints import EXPRESSION_CONSTRAINTS
from zwang.mechanism.joints import Fixed
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.serialization import symbol_names
from zwang.mechanism.type_validation import validated_arguments

BY_JOINT = ("joint", "to", "relative_to")
"""The fields that name a joint, of the forces, constraints and sensors that have a `joint`."""

BY_VELOCITY = ("coefficients", "forces", "sliding")
"""The fields of constraints by formulas with numbers by the name of a generalised velocity."""


@validated_arguments()
def with_fixed_joints(mechanism: Mechanism, names: Sequence[str]) -> Mechanism:
    """The mechanism with those joints fixed where their coordinates have their reference values.

    Forces, constraints, sensors and tendons that involve a fixed joint are left out, also constraints whose
    formulas contain its coordinates or velocities; so are all keyframes. The home configuration of the other
    joints is kept. names: of joints, each the only one of its body. Raises UnknownNameError for another name.
    """
    chosen = {mechanism.joint(name).name for name in names}
    if not chosen:
        return mechanism
    bodies = [
        replace(body, joint=_kept(body.joints, chosen)) if chosen & {j.name for j in body.joints} else body
        for body in mechanism.bodies
    ]
    tendons = [t for t in mechanism.tendons if not chosen & {name for name, _ in t.joints}]
    lost = {t.name for t in mechanism.tendons} - {t.name for t in tendons}
    forces = [f for f in mechanism.forces if not _involves(f, chosen, lost)]
    kept = {getattr(f, "name", None) for f in forces} | {None}
    sensors = [
        s
        for s in mechanism.sensors
        if not _involves(s, chosen, lost) and getattr(s, "actuator", None) in kept
    ]
    constraints, inactive = (
        _constraints_left(mechanism, given, chosen, lost)
        for given in (mechanism.constraints, mechanism.inactive_constraints)
    )
    return mechanism.replace(bodies=bodies, tendons=tendons, forces=forces, sensors=sensors,
                             constraints=constraints, inactive_constraints=inactive, keyframes=(),
                             home=_home(mechanism, chosen))  # fmt: skip


def _kept(joints: tuple, chosen: set[str]) -> Any:
    """The joints of a body that are not chosen, or Fixed if none remains."""
    kept = tuple(j for j in joints if j.name not in chosen)
    return kept if kept else Fixed()


def _home(m: Mechanism, chosen: set[str]) -> tuple | None:
    """The home configuration of the joints that are not chosen."""
    if m.home is None:
        return None
    home = tuple(m.home)
    return tuple(x for joint in m.joints if joint.name not in chosen for x in home[joint.q])


def _involves(part: Any, joints: set[str], tendons: set[str]) -> bool:
    """Whether a force, constraint or sensor names one of the joints or of the tendons."""
    if hasattr(part, "joint"):
        named = {getattr(part, name, None) for name in BY_JOINT}
        return bool(named & joints) or getattr(part, "tendon", None) in tendons
    return bool({getattr(part, name, None) for name in ("tendon", "to")} & tendons)


def _constraints_left(
    m: Mechanism, constraints: Sequence[Any], chosen: set[str], tendons: set[str]
) -> list[Any]:
    """The constraints without those that involve the joints or tendons, and the forces of these."""
    indices = [joint for joint in m.joints if joint.name in chosen]
    velocities = {name for joint in indices for name in joint.speeds}
    formula = {name for joint in indices for name in joint.coordinates} | {f"{v}_dot" for v in velocities}
    left = [
        c
        for c in constraints
        if not _involves(c, chosen, tendons)
        and not (isinstance(c, EXPRESSION_CONSTRAINTS) and _has_names(c, velocities, formula))
    ]
    lost = {c.name for c in constraints} - {c.name for c in left}
    return [c for c in left if getattr(c, "constraint", None) not in lost]


def _has_names(c: Any, velocities: set[str], formula: set[str]) -> bool:
    """Whether a constraint given by expressions contains one of the names."""
    by_name = {name for field in BY_VELOCITY for name, _ in getattr(c, field, None) or ()}
    return bool(by_name & velocities) or bool(symbol_names(c) & formula)

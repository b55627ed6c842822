"""A mechanism with some of its joints fixed, for measurements in which they do not move."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from zwang.mechanism.joints import Fixed
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments

REFERENCES = ("joint", "to", "relative_to")
"""The fields of forces, constraints and sensors that name a joint."""


@validated_arguments()
def with_fixed_joints(mechanism: Mechanism, names: Sequence[str]) -> Mechanism:
    """The mechanism with those joints fixed where their coordinates have their reference values.

    Forces, constraints, sensors, tendons and keyframes that involve a fixed joint are left out. names: of
    joints, each the only one of its body. Raises UnknownNameError for another name.
    """
    chosen = {mechanism.joint(name).name for name in ((names,) if isinstance(names, str) else names)}
    if not chosen:
        return mechanism
    bodies = [
        replace(body, joint=_kept(body.joints, chosen)) if chosen & {j.name for j in body.joints} else body
        for body in mechanism.bodies
    ]
    tendons = [t for t in mechanism.tendons if not chosen & {name for name, _ in t.joints}]
    lost = {t.name for t in mechanism.tendons} - {t.name for t in tendons}
    forces = [f for f in mechanism.forces if not _involves(f, chosen, lost)]
    motors = {getattr(f, "name", None) for f in mechanism.forces} - {getattr(f, "name", None) for f in forces}
    sensors = [s for s in mechanism.sensors if not _involves(s, chosen, lost | motors)]
    constraints = [c for c in mechanism.constraints if not _involves(c, chosen, lost)]
    return mechanism.replace(bodies=bodies, tendons=tendons, forces=forces, sensors=sensors,
                             constraints=constraints, keyframes=(), home=None)  # fmt: skip


def _kept(joints: tuple, chosen: set[str]) -> Any:
    """The joints of a body that are not chosen, or Fixed if none remains."""
    kept = tuple(j for j in joints if j.name not in chosen)
    return kept if kept else Fixed()


def _involves(part: Any, joints: set[str], others: set) -> bool:
    """Whether a force, constraint or sensor names one of the joints, or of the other parts."""
    if {getattr(part, name, None) for name in REFERENCES} & joints:
        return True
    named = {getattr(part, name, None) for name in ("tendon", "actuator", "to")} - {None}
    return bool(named & others)

"""Inputs for a wrench on each of some bodies, as MuJoCo's `xfrc_applied`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from zwang.errors import DescriptionError
from zwang.mechanism.force_elements import Wrench
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments

COMPONENTS = ("fx", "fy", "fz", "tx", "ty", "tz")
UNITS = ((1, 0, 0), (0, 1, 0), (0, 0, 1))


@validated_arguments()
def with_applied_wrenches(mechanism: Mechanism, *bodies: str) -> Mechanism:
    """The mechanism with six more inputs for each body: a force [N] at its centre of mass and a torque [N m].

    mechanism: any mechanism; without inputs of its own its control is then these inputs, and no longer the
    generalised force.
    bodies: names of bodies, by default all. The inputs of a body are `BODY.fx`, `BODY.fy`, `BODY.fz`,
    `BODY.tx`, `BODY.ty` and `BODY.tz`, in world axes; together they are a row of MuJoCo's `xfrc_applied`.
    Like every control they may change at each step, and are zero by default and in keyframes.

    Raises UnknownNameError for an unknown body, and DescriptionError where an input of that name exists.
    """
    forces = []
    for name in bodies or tuple(body.name for body in mechanism.bodies):
        com = mechanism.body(name).com
        for k, component in enumerate(COMPONENTS):
            wrench: dict[str, Any] = {"force" if k < 3 else "torque": UNITS[k % 3]}
            forces.append(Wrench(name, point=com, input=f"{name}.{component}", **wrench))
    taken = [force.input for force in forces if force.input in mechanism.inputs]
    if taken:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has the input {taken[0]!r} already; give other bodies"
        )
    keyframes = tuple(
        replace(key, control=(*key.control, *[0.0] * len(forces))) if key.control else key
        for key in mechanism.keyframes
    )
    return mechanism.replace(forces=(*mechanism.forces, *forces), keyframes=keyframes)

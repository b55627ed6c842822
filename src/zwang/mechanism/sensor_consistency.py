"""Consistency of sensors and cameras: names, references, and the kinds of joints that they are on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Protocol

from zwang.errors import DescriptionError, UnknownNameError
from zwang.mechanism.bodies import Body, Frame
from zwang.mechanism.force_elements import Actuator, Force, Motor
from zwang.mechanism.geometry import Geometry
from zwang.mechanism.joint_index import JointIndex, joint_indices
from zwang.mechanism.sensors import CameraSensor, ContactSensor, DistanceSensor, JointSensor
from zwang.mechanism.tendon_elements import Tendon

_REFERENCES = {
    "frame": "frame", "zone_frame": "frame", "relative_to": "frame", "joint": "joint", "tendon": "tendon",
    "actuator": "actuator", "body": "body", "camera": "camera",
}  # fmt: skip
"""The fields of a sensor that are names, with the kind of the part that they name."""
_OF_BALL = ("quaternion", "angular_velocity")


class SensedParts(Protocol):
    """The parts of a mechanism to which sensors refer."""

    @property
    def bodies(self) -> Sequence[Body]: ...
    @property
    def frames(self) -> Sequence[Frame]: ...
    @property
    def forces(self) -> Sequence[Force]: ...
    @property
    def tendons(self) -> Sequence[Tendon]: ...
    @property
    def geometry(self) -> Sequence[Geometry]: ...
    @property
    def sensors(self) -> Sequence[Any]: ...
    @property
    def cameras(self) -> Sequence[Any]: ...


def check_sensors(mechanism: SensedParts) -> None:
    """Raises DescriptionError or UnknownNameError for a name that is used twice or is unknown, and for a
    sensor that its joint or camera does not admit.
    """
    if not mechanism.sensors and not mechanism.cameras:
        return
    for kind, parts in (("sensor", mechanism.sensors), ("camera", mechanism.cameras)):
        _check_unique(kind, [part.name for part in parts])
    tables = _tables(mechanism)
    for camera in mechanism.cameras:
        for name in (camera.body, camera.target):
            _check_known("body", name, tables)
    for sensor in mechanism.sensors:
        for field, kind in _REFERENCES.items():
            _check_known(kind, getattr(sensor, field, None), tables)
        for part in _parts(sensor):
            _check_known("shape" if part[0] == "shape" else "body", part[1], tables)
        if isinstance(sensor, JointSensor):
            _check_joint(sensor, tables["joint"][sensor.joint])
        if isinstance(sensor, CameraSensor):
            _check_camera(sensor, tables["camera"][sensor.camera])


def _tables(mechanism: SensedParts) -> dict[str, Mapping[str, Any]]:
    """The parts to which sensors refer, by kind and name."""
    bodies = {"world": None, **{b.name: b for b in mechanism.bodies}}
    shapes = (*mechanism.geometry, *(shape for body in mechanism.bodies for shape in body.geometry))
    return {
        "body": bodies,
        "frame": {**bodies, **{f.name: f for f in mechanism.frames}},
        "joint": {j.name: j for j in joint_indices(mechanism.bodies)},
        "tendon": {t.name: t for t in mechanism.tendons},
        "actuator": {f.name: f for f in mechanism.forces if isinstance(f, Actuator | Motor)},
        "camera": {c.name: c for c in mechanism.cameras},
        "shape": {shape.name: shape for shape in shapes if shape.name},
    }


def _check_unique(kind: str, names: Iterable[str]) -> None:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise DescriptionError(f"the {kind} name {name!r} is used twice; names must be unique")
        seen.add(name)


def _check_known(kind: str, name: str | None, tables: Mapping[str, Mapping[str, Any]]) -> None:
    if name is not None and name not in tables[kind]:
        raise UnknownNameError(kind, name, tables[kind])


def _parts(sensor: Any) -> list[tuple[str, str]]:
    """The parts (kind, name) that a sensor of distances or contacts refers to."""
    if isinstance(sensor, DistanceSensor):
        return [sensor.a, sensor.b]
    if isinstance(sensor, ContactSensor):
        return [part for part in (sensor.first, sensor.second) if part is not None]
    return []


def _check_joint(sensor: JointSensor, joint: JointIndex) -> None:
    """Quantities of a coordinate are of joints with one coordinate, orientations of ball joints; a limit may
    be on both.
    """
    if sensor.kind in _OF_BALL:
        allowed, expected = joint.kind == "ball", "a ball joint"
    elif sensor.kind.startswith("limit"):
        allowed, expected = joint.joint.nv == 1 or joint.kind == "ball", "a ball joint or one with one speed"
    else:
        allowed, expected = joint.joint.nv == 1, "a joint with one speed"
    if not allowed:
        raise DescriptionError(
            f"sensor {sensor.name!r} measures the {sensor.kind} of joint {joint.name!r}, which is "
            f"{joint.kind}; it must be {expected}"
        )


def _check_camera(sensor: CameraSensor, camera: Any) -> None:
    """A camera that a sensor uses is fixed to its body."""
    if camera.mode != "fixed":
        raise DescriptionError(
            f"sensor {sensor.name!r} uses camera {camera.name!r}, whose mode is {camera.mode!r}; the camera "
            "of a sensor must be fixed to its body: mode 'fixed'"
        )

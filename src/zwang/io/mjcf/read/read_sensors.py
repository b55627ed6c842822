"""Sensors and cameras of a compiled MJCF model, and the frames on which sensors are mounted."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from zwang.io.mjcf.inexact_in_mujoco import WORLD_TORQUE, is_torque_of_world
from zwang.io.mjcf.mujoco_library import mujoco, numbers_of
from zwang.io.mjcf.read.compiled_model import MjcfModel
from zwang.io.mjcf.read.read_bodies import zeroed
from zwang.io.mjcf.read.unique_frames import UniqueFrames
from zwang.io.mjcf.sensor_kinds import CAMERA_MODES, SENSOR_KINDS
from zwang.io.structural_numbers import matrix_of
from zwang.mechanism.bodies import Frame
from zwang.mechanism.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, Sphere
from zwang.mechanism.sensors import (
    CONTACT_DATA,
    RAY_DATA,
    REDUCTIONS,
    ActuatorSensor,
    Camera,
    CameraSensor,
    ContactSensor,
    DistanceSensor,
    FrameSensor,
    GlobalSensor,
    InsideSensor,
    JointSensor,
    RangeSensor,
    Sensor,
    SiteSensor,
    SubtreeSensor,
    TendonSensor,
    TouchSensor,
    UserSensor,
)

SENSOR, OBJECT, GEOM = (numbers_of(kind) for kind in (mujoco.mjtSensor, mujoco.mjtObj, mujoco.mjtGeom))
_TYPES: dict[int, tuple[Any, str]] = {
    getattr(SENSOR, f"mjSENS_{name}"): (kind, spelling)
    for kind, names in SENSOR_KINDS.items()
    for name, spelling in names.items()
    if hasattr(SENSOR, f"mjSENS_{name}")  # versions of MuJoCo differ in their sensors
}
"""The class and the kind of each sensor type of MuJoCo."""
_ZONES: dict[int, Callable[[float, float, float], Geometry]] = {
    GEOM.mjGEOM_SPHERE: lambda a, b, c: Sphere(a),
    GEOM.mjGEOM_CAPSULE: lambda a, b, c: Capsule(a, 2 * b),
    GEOM.mjGEOM_ELLIPSOID: Ellipsoid,
    GEOM.mjGEOM_CYLINDER: lambda a, b, c: Cylinder(a, 2 * b),
    GEOM.mjGEOM_BOX: lambda a, b, c: Box(2 * a, 2 * b, 2 * c),
}
"""The shape of a site around its frame, by its type and sizes."""


class SensorReader:
    """Reads the sensors of a model.

    tendons, actuators: the names of those that were read. frames: the frames of the mechanism, to which those
    are added that sensors need.
    """

    def __init__(self, source: MjcfModel, tendons: set[str], actuators: set[str], frames: UniqueFrames):
        self.source, self.m, self.frames = source, source.model, frames
        self.kept = {"tendon": tendons, "actuator": actuators}

    def sensors(self) -> tuple[Sensor, ...]:
        """The sensors of the model, in their order; those that zwang does not support are reported."""
        found = []
        for i in range(self.m.nsensor):
            name, where = self.source.name("sensor", i), self.source.location("sensor", i)
            feature = self._unsupported_feature(i)
            if feature:
                self.source.unsupported(f"sensor {name!r} {feature}", where)
                continue
            with self.source.at("sensor", i):
                found.append(self._sensor(i, name))
        return tuple(found)

    # --------------------------------------------------------------------------------- what is not supported

    def _unsupported_feature(self, i: int) -> str:
        """The feature of sensor i that is not supported; empty if there is none."""
        m, kind = self.m, int(self.m.sensor_type[i])
        if kind not in _TYPES:
            return f"of the kind {mujoco.mjtSensor(kind).name[7:].lower()}"
        for field, what in (("delay", "a delay"), ("interval", "an interval"), ("history", "a history")):
            values = getattr(m, f"sensor_{field}", None)
            if values is not None and np.any(np.ravel(values[i])[:1] > 0):
                return f"with {what}"
        for target, kept in self.kept.items():
            if m.sensor_objtype[i] == getattr(OBJECT, f"mjOBJ_{target.upper()}"):
                name = self.source.name(target, int(m.sensor_objid[i]))
                if name not in kept:
                    return f"of {target} {name!r}, which is omitted"
        for prefix in ("obj", "ref"):
            if getattr(m, f"sensor_{prefix}type")[i] == OBJECT.mjOBJ_CAMERA:
                camera = int(getattr(m, f"sensor_{prefix}id")[i])
                if m.cam_mode[camera]:
                    return f"with the moving camera {self.source.name('camera', camera)!r}"
        if _TYPES[kind][0] is SiteSensor:
            body = self.source.name("body", int(m.site_bodyid[m.sensor_objid[i]]))
            if is_torque_of_world(_TYPES[kind][1], body):
                return f"at the world: {WORLD_TORQUE}"
        site = self._zone_site(i)
        if site is not None and (shape := int(m.site_type[site])) not in _ZONES:
            shape_name = mujoco.mjtGeom(shape).name[7:].lower()
            return f"with the site {self.source.name('site', site)!r} of the type {shape_name} as its zone"
        if kind == SENSOR.mjSENS_RANGEFINDER:
            return self._unsupported_ray(i)
        if _TYPES[kind][0] is ContactSensor and self._parameter(i, 0) >> len(CONTACT_DATA):
            return f"with other data than {', '.join(CONTACT_DATA)}"
        return ""

    def _unsupported_ray(self, i: int) -> str:
        """The feature of a range sensor that is not supported: images, and rays at meshes."""
        m = self.m
        if m.sensor_objtype[i] != OBJECT.mjOBJ_SITE:
            return "with a camera: depth images"
        if self._parameter(i, 0, 1) >> len(RAY_DATA):
            return f"with other data than {', '.join(RAY_DATA)}"
        if self._opaque_distance_fields - {int(m.site_bodyid[m.sensor_objid[i]])}:
            return "in a model with signed distance fields, which its rays cannot meet"
        return ""

    @cached_property
    def _opaque_distance_fields(self) -> set[int]:
        """The numbers of the bodies that have a signed distance field at which rays end."""
        m = self.m
        found = set()
        for g in np.flatnonzero(m.geom_type == GEOM.mjGEOM_SDF):
            material = int(m.geom_matid[g])
            if m.mat_rgba[material][3] if material >= 0 else m.geom_rgba[g][3]:
                found.add(int(m.geom_bodyid[g]))
        return found

    # ------------------------------------------------------------------------------------------------ sensors

    def _parameter(self, i: int, k: int, default: int = 0) -> int:
        """The integer parameter k of sensor i, which older versions of MuJoCo do not have."""
        values = getattr(self.m, "sensor_intprm", None)
        return default if values is None else int(np.ravel(values[i])[k])

    def _sensor(self, i: int, name: str) -> Sensor:
        m = self.m
        kind, spelling = _TYPES[int(m.sensor_type[i])]
        target, reference = int(m.sensor_objid[i]), int(m.sensor_refid[i])
        cutoff = zeroed([m.sensor_cutoff[i]])[0]
        if kind in (JointSensor, TendonSensor, ActuatorSensor, SubtreeSensor):
            table = {JointSensor: "joint", TendonSensor: "tendon", ActuatorSensor: "actuator"}
            return kind(name, spelling, self.source.name(table.get(kind, "body"), target), cutoff=cutoff)
        if kind is SiteSensor:
            return SiteSensor(name, spelling, self.source.name("site", target), cutoff=cutoff)
        if kind is FrameSensor:
            base = None if reference < 0 else self._frame(int(m.sensor_reftype[i]), reference)
            return FrameSensor(
                name, spelling, self._frame(int(m.sensor_objtype[i]), target), base, cutoff=cutoff
            )
        if kind is GlobalSensor:
            return GlobalSensor(name, spelling, cutoff=cutoff)
        if kind is DistanceSensor:
            a = self._part(int(m.sensor_objtype[i]), target)
            b = self._part(int(m.sensor_reftype[i]), reference)
            assert a is not None and b is not None
            return DistanceSensor(name, spelling, a, b, cutoff=cutoff)
        return _SINGLE_READERS[kind](self, i, name, cutoff)

    def touch(self, i: int, name: str, cutoff: Any) -> Sensor:
        """A touch sensor: sensor i with this name and cutoff."""
        site = int(self.m.sensor_objid[i])
        return TouchSensor(name, self.source.name("site", site), self._zone(site), cutoff=cutoff)

    def range(self, i: int, name: str, cutoff: Any) -> Sensor:
        """A range sensor: sensor i with this name and cutoff."""
        chosen = _names_of_bits(self._parameter(i, 0, 1), tuple(RAY_DATA))
        return RangeSensor(name, self.source.name("site", int(self.m.sensor_objid[i])), chosen, cutoff=cutoff)

    def projection(self, i: int, name: str, cutoff: Any) -> Sensor:
        """A camera projection: sensor i with this name and cutoff."""
        site, camera = int(self.m.sensor_objid[i]), int(self.m.sensor_refid[i])
        return CameraSensor(
            name, self.source.name("site", site), self.source.name("camera", camera), cutoff=cutoff
        )

    def inside(self, i: int, name: str, cutoff: Any) -> Sensor:
        """A sensor that tests whether a point is inside a site: sensor i with this name and cutoff."""
        m, site = self.m, int(self.m.sensor_refid[i])
        frame = self._frame(int(m.sensor_objtype[i]), int(m.sensor_objid[i]))
        return InsideSensor(name, frame, self.source.name("site", site), self._zone(site), cutoff=cutoff)

    def contact(self, i: int, name: str, cutoff: Any) -> Sensor:
        """A contact sensor: sensor i with this name and cutoff."""
        m, target = self.m, int(self.m.sensor_objid[i])
        data = _names_of_bits(self._parameter(i, 0), tuple(CONTACT_DATA))
        size = sum(CONTACT_DATA[field] for field in data)
        in_site = m.sensor_objtype[i] == OBJECT.mjOBJ_SITE
        return ContactSensor(
            name,
            None if in_site else self._part(int(m.sensor_objtype[i]), target),
            self._part(int(m.sensor_reftype[i]), int(m.sensor_refid[i])),
            self.source.name("site", target) if in_site else None,
            self._zone(target) if in_site else None,
            data=data,
            count=int(m.sensor_dim[i]) // size,
            reduce=REDUCTIONS[self._parameter(i, 1)],
            cutoff=cutoff,
        )

    def user(self, i: int, name: str, cutoff: Any) -> Sensor:
        """A user sensor: sensor i with this name and cutoff."""
        return UserSensor(name, int(self.m.sensor_dim[i]), cutoff=cutoff)

    # ---------------------------------------------------------------------------------- frames, zones, parts

    def _part(self, kind: int, target: int) -> tuple[str, str] | None:
        """The part of the mechanism that an object of MuJoCo is; None for no object."""
        if kind == OBJECT.mjOBJ_UNKNOWN or target < 0:
            return None
        if kind == OBJECT.mjOBJ_GEOM:
            return "shape", self.m.geom(target).name
        return "body" if kind == OBJECT.mjOBJ_BODY else "subtree", self.source.name("body", target)

    def _zone_site(self, i: int) -> int | None:
        """The site whose shape is the zone of sensor i; None if it has no zone."""
        m, kind = self.m, _TYPES[int(self.m.sensor_type[i])][0]
        if kind is InsideSensor:
            return int(m.sensor_refid[i])
        in_site = kind is ContactSensor and m.sensor_objtype[i] == OBJECT.mjOBJ_SITE
        return int(m.sensor_objid[i]) if kind is TouchSensor or in_site else None

    def _zone(self, site: int) -> Geometry:
        """The shape of a site, around its frame."""
        return _ZONES[int(self.m.site_type[site])](*(float(x) for x in self.m.site_size[site]))

    def _frame(self, kind: int, target: int) -> str:
        """The name of the frame of an object: a body, its inertial frame, a site, a shape or a camera.

        A frame that the mechanism does not have is added to `frames`, under a free name.
        """
        m = self.m
        if kind == OBJECT.mjOBJ_XBODY:
            return self.source.name("body", target)
        if kind == OBJECT.mjOBJ_SITE:
            return self.source.name("site", target)
        if kind == OBJECT.mjOBJ_BODY:
            body, p, q, what = target, m.body_ipos[target], m.body_iquat[target], "inertial frame"
            name = self.source.name("body", target)
        elif kind == OBJECT.mjOBJ_GEOM:
            body, p, q, what = m.geom_bodyid[target], m.geom_pos[target], m.geom_quat[target], "shape"
            name = m.geom(target).name
        else:
            body, p, q, what = m.cam_bodyid[target], m.cam_pos[target], m.cam_quat[target], "camera"
            name = self.source.name("camera", target)
        frame = Frame(f"{name} ({what})", self.source.name("body", int(body)), zeroed(p), matrix_of(q))
        return self.frames.name_of(frame)


_SINGLE_READERS: dict[Any, Callable[[SensorReader, int, str, Any], Sensor]] = {
    TouchSensor: SensorReader.touch, RangeSensor: SensorReader.range, CameraSensor: SensorReader.projection,
    InsideSensor: SensorReader.inside, ContactSensor: SensorReader.contact, UserSensor: SensorReader.user,
}  # fmt: skip


def _names_of_bits(bits: int, names: tuple[str, ...]) -> tuple[str, ...]:
    """The names whose bits are set."""
    return tuple(name for k, name in enumerate(names) if bits >> k & 1)


def cameras(source: MjcfModel) -> tuple[Camera, ...]:
    """The cameras of the model, with the length of an angle in radians."""
    m = source.model
    found = []
    for k in range(m.ncam):
        target = int(m.cam_targetbodyid[k])
        found.append(
            Camera(
                source.name("camera", k),
                source.name("body", int(m.cam_bodyid[k])),
                zeroed(m.cam_pos[k]),
                matrix_of(m.cam_quat[k]),
                fovy=float(np.radians(m.cam_fovy[k])),
                resolution=tuple(int(n) for n in m.cam_resolution[k]),
                sensor_size=zeroed(m.cam_sensorsize[k]),
                focal_length=_focal_length(m, k),
                mode=CAMERA_MODES[int(m.cam_mode[k])],
                target=source.name("body", target) if target >= 0 else None,
            )
        )
    return tuple(found)


def _focal_length(m: Any, k: int) -> tuple[Any, ...]:
    """The focal lengths of camera k [m], such that those in pixels are MuJoCo's, which has them in single
    precision.
    """
    sizes, pixels = m.cam_sensorsize[k], m.cam_resolution[k].astype(np.float32)
    if not np.all(sizes):
        return zeroed(m.cam_intrinsic[k][:2])
    in_pixels = np.asarray(m.cam_intrinsic[k][:2] / sizes * pixels, np.float32).astype(float)
    return zeroed(in_pixels * sizes.astype(float) / pixels.astype(float))

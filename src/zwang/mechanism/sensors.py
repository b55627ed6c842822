"""Sensors and cameras as data: what is measured, and where. The kinds are those of MuJoCo.

The values are computed in `zwang.simulation.quantities.sensor_values`. Noise is not part of a sensor: as in
MuJoCo, its values are exact. Source: MuJoCo documentation, XML reference, "sensor".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, NamedTuple

from zwang.errors import DescriptionError
from zwang.mechanism.geometry import Box, Capsule, Cylinder, Ellipsoid, Geometry, Sphere
from zwang.mechanism.numbers import (
    IDENTITY,
    Matrix3,
    Number,
    Vector3,
    bounded,
    integer,
    number_tuple,
    orientation_of,
    vector,
)
from zwang.mechanism.type_validation import short_repr, validated


class Quantity(NamedTuple):
    """What a kind of sensor measures: the number of its elements, their unit, and how a cutoff acts on them.

    cutoff: "both" limits an element to +-cutoff, "above" limits it to at most cutoff, "none" does not.
    """

    size: int
    unit: str
    cutoff: Literal["both", "above", "none"] = "both"


MOST = 100_000
"""The largest number of slots or elements of a sensor."""
ZONES = (Sphere, Capsule, Ellipsoid, Cylinder, Box)
"""The shapes of a zone in space, around a frame."""


@dataclass(frozen=True)
class Sensor:
    """The base class of all sensors.

    cutoff: largest absolute value of an element, in the unit of the sensor; 0 for none.
    """

    name: str
    cutoff: Number = field(default=0, kw_only=True)

    KINDS: ClassVar[Mapping[str, Quantity]] = {}

    def __post_init__(self):
        where = type(self).__name__
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"the name of a {where} is {self.name!r}; it must be a non-empty string")
        kind = getattr(self, "kind", None)
        if kind is not None and (not isinstance(kind, str) or kind not in self.KINDS):
            raise DescriptionError(
                f"kind of {where} {self.name!r} is {kind!r}; the kinds are {', '.join(self.KINDS)}"
            )
        object.__setattr__(self, "cutoff", bounded(self.cutoff, f"cutoff of sensor {self.name!r}", least=0))

    @property
    def quantity(self) -> Quantity:
        """What the sensor measures."""
        return self.KINDS[getattr(self, "kind", "")]

    @property
    def components(self) -> tuple[str, ...]:
        """The names of its elements: x, y, z of a vector, w, x, y, z of a quaternion, else numbers."""
        size = self.quantity.size
        return {1: ("",), 3: tuple("xyz"), 4: tuple("wxyz")}.get(size, tuple(str(k) for k in range(size)))


@validated
@dataclass(frozen=True)
class SiteSensor(Sensor):
    """A sensor that is mounted at a frame, with its result in the axes of that frame.

    kind: "accelerometer", the acceleration less that of gravity [m/s^2]; "velocimeter", the linear velocity
    [m/s]; "gyro", the angular velocity [rad/s]; "force" [N] and "torque" [N m], those that the parent exerts
    on the body of the frame, the torque about the frame's origin; "magnetometer", the magnetic field of the
    options.
    """

    kind: str
    frame: str

    KINDS: ClassVar[Mapping[str, Quantity]] = {
        "accelerometer": Quantity(3, "m/s^2"),
        "velocimeter": Quantity(3, "m/s"),
        "gyro": Quantity(3, "rad/s"),
        "force": Quantity(3, "N"),
        "torque": Quantity(3, "N m"),
        "magnetometer": Quantity(3, "1"),
    }


@validated
@dataclass(frozen=True)
class TouchSensor(Sensor):
    """The sum of the normal forces of contacts of a body in a zone [N].

    frame: of the body, around which the zone lies. zone: zw.Sphere, zw.Capsule, zw.Ellipsoid, zw.Cylinder or
    zw.Box, without position and orientation, as the frame has them. A contact counts if its point, or the
    ray from it along the normal out of the body, meets the zone.
    Raises DescriptionError for another zone.
    """

    frame: str
    zone: Geometry

    KINDS: ClassVar[Mapping[str, Quantity]] = {"": Quantity(1, "N", "above")}

    def __post_init__(self):
        super().__post_init__()
        _check_zone(self.zone, self.name)


@validated
@dataclass(frozen=True)
class InsideSensor(Sensor):
    """1 if the origin of a frame is inside a zone, else 0.

    frame: whose origin is tested. zone_frame, zone: as `frame` and `zone` of `TouchSensor`.
    Raises DescriptionError for another zone.
    """

    frame: str
    zone_frame: str
    zone: Geometry

    KINDS: ClassVar[Mapping[str, Quantity]] = {"": Quantity(1, "1")}

    def __post_init__(self):
        super().__post_init__()
        _check_zone(self.zone, self.name)


RAY_DATA = {"distance": 1, "direction": 3, "origin": 3, "point": 3, "normal": 3, "depth": 1}
"""The fields of a range sensor, with their sizes, in their order."""


@validated
@dataclass(frozen=True)
class RangeSensor(Sensor):
    """The distance [m] from the origin of a frame along its z axis to the nearest shape; -1 if there is none.

    Shapes of the frame's body and invisible shapes (opacity 0) are ignored. data: some of the fields
    "distance", "direction" of the ray (0 if nothing is hit), its "origin", the "point" that is hit, the
    outward "normal" of the surface there (both 0 if there is none), in world axes, and the "depth", which is
    the distance again; they are returned in this order.
    """

    frame: str
    data: tuple[str, ...] = ("distance",)

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "data", _fields(self.data, RAY_DATA, f"data of sensor {self.name!r}"))

    @property
    def quantity(self) -> Quantity:
        """What the sensor measures."""
        return Quantity(sum(RAY_DATA[name] for name in self.data), "m")


@validated
@dataclass(frozen=True)
class CameraSensor(Sensor):
    """The position of a frame's origin in the image of a camera, in pixels from the upper left corner."""

    frame: str
    camera: str

    KINDS: ClassVar[Mapping[str, Quantity]] = {"": Quantity(2, "1")}


@validated
@dataclass(frozen=True)
class JointSensor(Sensor):
    """A quantity of a joint.

    kind: "position" or "velocity" of the coordinate; "actuator_force", the generalised force of all
    actuators; "limit_position" (distance to the active limit, less its margin), "limit_velocity",
    "limit_force", all 0 where no limit is active; of a ball joint "quaternion" (w, x, y, z) or
    "angular_velocity". Units are rad or m, and N m or N; `Mechanism` checks the kind of the joint.
    """

    kind: str
    joint: str

    KINDS: ClassVar[Mapping[str, Quantity]] = {
        "position": Quantity(1, "rad or m"),
        "velocity": Quantity(1, "rad/s or m/s"),
        "actuator_force": Quantity(1, "N m or N"),
        "limit_position": Quantity(1, "rad or m"),
        "limit_velocity": Quantity(1, "rad/s or m/s"),
        "limit_force": Quantity(1, "N m or N", "above"),
        "quaternion": Quantity(4, "1", "none"),
        "angular_velocity": Quantity(3, "rad/s"),
    }


@validated
@dataclass(frozen=True)
class TendonSensor(Sensor):
    """A quantity of a tendon.

    kind: "position" (its length) [m], "velocity" [m/s], "actuator_force" [N], the sum over its actuators, or
    "limit_position", "limit_velocity", "limit_force", as for a joint.
    """

    kind: str
    tendon: str

    KINDS: ClassVar[Mapping[str, Quantity]] = {
        "position": Quantity(1, "m"),
        "velocity": Quantity(1, "m/s"),
        "actuator_force": Quantity(1, "N"),
        "limit_position": Quantity(1, "m"),
        "limit_velocity": Quantity(1, "m/s"),
        "limit_force": Quantity(1, "N", "above"),
    }


@validated
@dataclass(frozen=True)
class ActuatorSensor(Sensor):
    """The length ("position"), "velocity" or "force" of an actuator or motor; kind: one of the three.

    The velocity is zero if the options disable "actuation", as in MuJoCo.
    """

    kind: str
    actuator: str

    KINDS: ClassVar[Mapping[str, Quantity]] = {
        "position": Quantity(1, "rad or m"),
        "velocity": Quantity(1, "rad/s or m/s"),
        "force": Quantity(1, "N m or N"),
    }


@validated
@dataclass(frozen=True)
class FrameSensor(Sensor):
    """The pose or the motion of a frame, in world axes or relative to another frame.

    kind: "position" [m], "quaternion" (w, x, y, z), "x_axis", "y_axis", "z_axis", "linear_velocity" [m/s],
    "angular_velocity" [rad/s], "linear_acceleration" [m/s^2], less that of gravity, as MuJoCo has it, or
    "angular_acceleration" [rad/s^2]. relative_to: the frame whose axes the result has, and relative to which
    it is measured; None for the world. Accelerations admit None only.
    """

    kind: str
    frame: str
    relative_to: str | None = None

    KINDS: ClassVar[Mapping[str, Quantity]] = {
        "position": Quantity(3, "m"),
        "quaternion": Quantity(4, "1", "none"),
        "x_axis": Quantity(3, "1", "none"),
        "y_axis": Quantity(3, "1", "none"),
        "z_axis": Quantity(3, "1", "none"),
        "linear_velocity": Quantity(3, "m/s"),
        "angular_velocity": Quantity(3, "rad/s"),
        "linear_acceleration": Quantity(3, "m/s^2"),
        "angular_acceleration": Quantity(3, "rad/s^2"),
    }

    def __post_init__(self):
        super().__post_init__()
        if self.relative_to is not None and self.kind.endswith("acceleration"):
            raise DescriptionError(
                f"sensor {self.name!r} measures an acceleration, and relative_to is {self.relative_to!r}; "
                "accelerations are relative to the world: give None"
            )


@validated
@dataclass(frozen=True)
class SubtreeSensor(Sensor):
    """A quantity of a body and its descendants, in world axes.

    kind: "mass_centre" [m], its "linear_velocity" [m/s], or "angular_momentum" about it [kg m^2/s].
    Without mass, the centre is that of the body alone, where its `com` has it, and the others are zero.
    """

    kind: str
    body: str

    KINDS: ClassVar[Mapping[str, Quantity]] = {
        "mass_centre": Quantity(3, "m"),
        "linear_velocity": Quantity(3, "m/s"),
        "angular_momentum": Quantity(3, "kg m^2/s"),
    }


Part = tuple[str, str]
"""A part of a mechanism: ("shape", name), ("body", name) or ("subtree", name of a body)."""


@validated
@dataclass(frozen=True)
class DistanceSensor(Sensor):
    """The signed distance of two shapes, or of the nearest shapes of two bodies.

    kind: "distance" [m], at most cutoff; "normal", the direction from the nearest point of a to that of b;
    "segment", these two points (6,), in world axes [m]. normal and segment are 0 where the distance is not
    less than cutoff, which must be positive if separate shapes are to be measured.
    a, b: ("shape", name) or ("body", name).
    """

    kind: str
    a: Part
    b: Part

    KINDS: ClassVar[Mapping[str, Quantity]] = {
        "distance": Quantity(1, "m"),
        "normal": Quantity(3, "1", "none"),
        "segment": Quantity(6, "m", "none"),
    }

    def __post_init__(self):
        super().__post_init__()
        for name in ("a", "b"):
            object.__setattr__(self, name, _part(getattr(self, name), ("shape", "body"), name, self.name))


CONTACT_DATA = {"found": 1, "force": 3, "torque": 3, "distance": 1, "position": 3, "normal": 3, "tangent": 3}
"""The fields of a contact sensor, with their sizes, in their order."""
REDUCTIONS = ("none", "mindist", "maxforce", "netforce")


@validated
@dataclass(frozen=True)
class ContactSensor(Sensor):
    """The contacts between two parts of a mechanism, in `count` slots of the fields `data`; free slots are 0.

    first, second: ("shape", name), ("body", name), ("subtree", name of a body), or None for everything.
    frame, zone: instead of `first`, the zone in which the contact point lies, as for `TouchSensor`.
    data: some of "found" (the number of contacts), "force" [N] and "torque" [N m] in the axes of the contact,
        normal first, as they act on the second part, "distance" [m], "position" [m], "normal" (from the first
        part to the second) and "tangent", in world axes. They are returned in this order.
    reduce: which contacts are reported: "none", the first ones; "mindist", those of least distance;
        "maxforce", those of greatest force; "netforce", one slot with the sum of all in world axes, at the
        point that is the mean of the positions weighted by the force.
    """

    first: Part | None = None
    second: Part | None = None
    frame: str | None = None
    zone: Geometry | None = None
    data: tuple[str, ...] = ("found",)
    count: int = 1
    reduce: str = "none"

    def __post_init__(self):
        super().__post_init__()
        where = f"sensor {self.name!r}"
        for name in ("first", "second"):
            if getattr(self, name) is not None:
                part = _part(getattr(self, name), ("shape", "body", "subtree"), name, self.name)
                object.__setattr__(self, name, part)
        object.__setattr__(self, "data", _fields(self.data, CONTACT_DATA, f"data of {where}"))
        object.__setattr__(self, "count", _count(self.count, f"count of {where}"))
        if self.reduce not in REDUCTIONS:
            raise DescriptionError(
                f"reduce of {where} is {self.reduce!r}; it must be one of {', '.join(REDUCTIONS)}"
            )
        if (self.frame is None) != (self.zone is None) or (self.frame is not None and self.first is not None):
            raise DescriptionError(f"{where} must have both frame and zone, without first, or neither")
        if self.zone is not None:
            _check_zone(self.zone, self.name)

    @property
    def quantity(self) -> Quantity:
        """What the sensor measures."""
        return Quantity(self.count * sum(CONTACT_DATA[name] for name in self.data), "SI", "none")


@validated
@dataclass(frozen=True)
class GlobalSensor(Sensor):
    """The "time" [s], the "potential_energy" of gravity and springs, or the "kinetic_energy" [J].

    kind: one of the three.
    """

    kind: str

    KINDS: ClassVar[Mapping[str, Quantity]] = {
        "time": Quantity(1, "s"),
        "potential_energy": Quantity(1, "J"),
        "kinetic_energy": Quantity(1, "J"),
    }


@validated
@dataclass(frozen=True)
class UserSensor(Sensor):
    """A place for `size` numbers of the user, which are 0 here, as in MuJoCo without a callback."""

    size: int = 1

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "size", _count(self.size, f"size of sensor {self.name!r}"))

    @property
    def quantity(self) -> Quantity:
        """What the sensor measures."""
        return Quantity(self.size, "1", "none")


@validated
@dataclass(frozen=True)
class Camera:
    """A camera on a body. It looks along -z of its frame; x points to the right and y up in the image.

    position [m], orientation: pose of the camera in the frame of the body, in the home configuration.
    fovy: vertical angle of view [rad]. resolution: width and height in pixels. sensor_size [m] and
    focal_length [m], both horizontal and vertical, replace fovy if sensor_size is not zero.
    mode: "fixed", or how the camera moves in MuJoCo: "track", "trackcom", "targetbody", "targetbodycom", with
    target, the name of a body.
    """

    name: str
    body: str = "world"
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY
    fovy: Number = 0.7853981633974483
    resolution: tuple[int, ...] = (1, 1)
    sensor_size: tuple[Number, ...] = (0, 0)
    focal_length: tuple[Number, ...] = (0, 0)
    mode: Literal["fixed", "track", "trackcom", "targetbody", "targetbodycom"] = "fixed"
    target: str | None = None

    def __post_init__(self):
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"a camera's name is {self.name!r}; it must be a non-empty string")
        where, put = f"camera {self.name!r}", object.__setattr__
        put(self, "position", vector(self.position, 3, f"position of {where}"))
        put(self, "orientation", orientation_of(self.orientation, f"orientation of {where}"))
        put(self, "fovy", bounded(self.fovy, f"fovy of {where}", above=0))
        resolution = vector(self.resolution, 2, f"resolution of {where}")
        put(self, "resolution", tuple(integer(n, f"resolution of {where}", least=1) for n in resolution))
        for name in ("sensor_size", "focal_length"):
            put(self, name, number_tuple(vector(getattr(self, name), 2, f"{name} of {where}"), where))


SENSORS = (
    SiteSensor, TouchSensor, InsideSensor, RangeSensor, CameraSensor, JointSensor, TendonSensor,
    ActuatorSensor, FrameSensor, SubtreeSensor, DistanceSensor, ContactSensor, GlobalSensor, UserSensor,
)  # fmt: skip
"""The classes of sensors."""


# ----------------------------------------------------------------------------------------------- validation


def _check_zone(zone: Any, name: str) -> None:
    """Raises DescriptionError unless `zone` is a shape of `ZONES` at the origin of its frame, in its axes."""
    if not isinstance(zone, ZONES):
        kinds = ", ".join(f"zw.{kind.__name__}" for kind in ZONES)
        raise DescriptionError(f"zone of sensor {name!r} is {zone!r}; it must be one of {kinds}")
    for field_name, neutral in (("position", (0, 0, 0)), ("orientation", IDENTITY)):
        if getattr(zone, field_name) != neutral:
            raise DescriptionError(
                f"zone of sensor {name!r} has the {field_name} {getattr(zone, field_name)!r}; a zone lies "
                "around a frame, in its axes: omit this, and give the sensor a zw.Frame at that pose"
            )


def _count(value: Any, where: str) -> int:
    """`value` as a number of elements. Raises DescriptionError unless it is an integer from 1 to MOST."""
    count = integer(value, where, least=1)
    if count > MOST:
        raise DescriptionError(f"{where} is {short_repr(count)}; it must be at most {MOST:,}")
    return count


def _fields(values: Any, known: Mapping[str, int], where: str) -> tuple[str, ...]:
    """`values` as names of fields, in the order of `known`. Raises DescriptionError."""
    names = (values,) if isinstance(values, str) else tuple(values)
    for name in names:
        if name not in known:
            raise DescriptionError(f"{where} contains {name!r}; the fields are {', '.join(known)}")
    if not names:
        raise DescriptionError(f"{where} is empty; the fields are {', '.join(known)}")
    return tuple(name for name in known if name in names)


def _part(value: Any, kinds: tuple[str, ...], field_name: str, name: str) -> Part:
    """`value` as (kind of part, name). Raises DescriptionError."""
    items = tuple(value) if isinstance(value, tuple | list) else ()
    if len(items) != 2 or items[0] not in kinds or not isinstance(items[1], str):
        allowed = " or ".join(f"({kind!r}, name)" for kind in kinds)
        raise DescriptionError(f"{field_name} of sensor {name!r} is {value!r}; it must be {allowed}")
    return items[0], items[1]

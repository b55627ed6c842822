"""The joint types, each as a sequence of elementary joints.

There are four elementary joints: revolute (rotation about an axis), prismatic (translation along an axis),
screw (both, proportional to each other) and ball (unrestricted rotation). A cylindrical joint is a revolute
and a prismatic one; a planar joint is two prismatic ones and a revolute one; a free joint is three prismatic
ones along the axes that `Body.orientation` gives the body in its parent, and a ball. The generalised velocity
of a free joint therefore consists of the velocity of its point relative to the parent, in these axes, and the
angular velocity in the axes of the body. By default the point is the origin of the body frame, and the axes
are those of the parent.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from zwang.algebra import rotations
from zwang.errors import DescriptionError
from zwang.mechanism.numbers import (
    Interval,
    Number,
    Numbers,
    Vector3,
    checked_solimp,
    checked_solref,
    number,
    vector,
)
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


class ElementaryJoint(NamedTuple):
    """An elementary joint.

    kind, axis: a unit vector in the link frame. pitch: of a screw joint [m/rad]. nq, nv: number of
    coordinates and of generalised velocities.
    """

    kind: Literal["revolute", "prismatic", "screw", "ball"]
    axis: Vector3 = Z
    pitch: Number = 0
    nq: int = 1
    nv: int = 1


@validated
@dataclass(frozen=True)
class Softness:
    """Softness of a constraint by MuJoCo's solver parameters.

    solref: (time constant [s], damping ratio), both positive, or (-stiffness, -damping), neither positive and
        not both zero.
    solimp: (d0, d_width, width, midpoint, power) of the impedance d(r): d0, d_width and midpoint from 0 to 1,
        width [m or rad] >= 0, power >= 1.
    margin: distance [m or rad] at which the constraint becomes active.
    Raises DescriptionError for values outside these ranges.
    Source: MuJoCo documentation, "Solver parameters".
    """

    solref: Numbers = (0.02, 1.0)
    solimp: Numbers = (0.9, 0.95, 0.001, 0.5, 2.0)
    margin: Number = 0.0

    def __post_init__(self):
        object.__setattr__(self, "solref", checked_solref(self.solref, "solref of a softness"))
        object.__setattr__(self, "solimp", checked_solimp(self.solimp, "solimp of a softness"))
        object.__setattr__(self, "margin", number(self.margin, "margin of a softness"))


def check_softness(value: Any, where: str) -> None:
    """Raises DescriptionError unless `value` is a Softness or None (a hard constraint)."""
    if value is not None and not isinstance(value, Softness):
        raise DescriptionError(f"{where} is {value!r}; give a zw.Softness, or None for a hard constraint")


@dataclass(frozen=True)
class Joint:
    """The base class of all joints.

    position: a point on the joint axis, in the body frame [m].
    armature: rotor inertia times the square of the gear ratio, added to the diagonal of the mass matrix for
        each generalised velocity of the joint [kg m^2 or kg].
    limits: (lower, upper) of the coordinate [rad or m]; for a ball joint, (0, largest angle), as in MuJoCo.
        Joints with several coordinates, other than a ball joint, have no limits.
    velocity_limit [rad/s or m/s], effort_limit [N m or N]: limits of the actuator; they are stored and not
        enforced.
    actuator_range: (lower, upper) [N m or N]. In simulation the sum of all actuator forces on the joint is
        clipped to it; in a mechanism without inputs, the generalised force that `control` requests. Wrenches
        are not clipped. The effort of a URDF joint sets both `effort_limit` and `actuator_range`.
    actuator_gravity_compensation: whether the share of this joint in the forces of `GravityCompensation` is
        part of its actuator force, which `actuator_range` limits; without motors and actuators it is omitted.
    friction: magnitude of the dry friction [N m or N].
    reference: value of the coordinate at which the body frame is at `Body.position` [rad or m]; for joints
        with one coordinate.
    limit_softness, friction_softness: softness of the limit and friction constraints; None makes them hard.
    Raises DescriptionError for a zero axis, negative armature or friction, limits in the wrong order, or a
    lower limit of a ball joint other than 0.
    """

    name: str

    coordinates: ClassVar[tuple[str, ...]] = ("",)
    speeds: ClassVar[tuple[str, ...]] = ("",)

    @property
    def nq(self) -> int:
        """Number of coordinates."""
        return len(self.coordinates)

    @property
    def nv(self) -> int:
        """Number of generalised velocities."""
        return len(self.speeds)

    @property
    def kind(self) -> str:
        """The name of the joint type in lower case, such as "revolute"."""
        return type(self).__name__.lower()

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        """The elementary joints of which the joint consists, from the parent to the body."""
        raise NotImplementedError


@validated
@dataclass(frozen=True)
class Fixed(Joint):
    """A fixed joint, without coordinates: the body is rigidly attached to its parent.

    The name is optional.
    """

    name: str = ""
    coordinates: ClassVar[tuple[str, ...]] = ()
    speeds: ClassVar[tuple[str, ...]] = ()

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return ()


@dataclass(frozen=True)
class MovingJoint(Joint):
    """The base class of all joints other than `Fixed`; see `Joint` for the fields.

    axis: any vector but zero, also with symbols; it is divided by its length.
    """

    axis: Vector3 = Z
    position: Vector3 = (0, 0, 0)
    armature: Number = 0
    limits: Interval | None = None
    velocity_limit: Number | None = None
    effort_limit: Number | None = None
    friction: Number = 0
    reference: Number = 0
    actuator_range: Interval | None = None
    actuator_gravity_compensation: bool = False
    limit_softness: Softness | None = Softness()
    friction_softness: Softness | None = Softness()

    def __post_init__(self):
        where = f"joint {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"a joint's name is {self.name!r}; it must be a non-empty string")
        put = object.__setattr__
        put(self, "axis", rotations.unit_vector(vector(self.axis, 3, f"axis of {where}"), f"axis of {where}"))
        put(self, "position", vector(self.position, 3, f"position of {where}"))
        for name in ("armature", "friction", "reference", "velocity_limit", "effort_limit"):
            value = getattr(self, name)
            if value is None:
                continue
            put(self, name, number(value, f"{name} of {where}", infinite=name.endswith("limit")))
            if name != "reference" and are_constant(value) and value < 0:
                raise DescriptionError(f"{name} of {where} is {value}; it must not be negative")
        if self.limits is not None:
            put(self, "limits", checked_range(self.limits, f"limits of {where}"))
        for name in ("limit_softness", "friction_softness"):
            value = getattr(self, name)
            check_softness(value, f"{name} of {where}")
        if self.actuator_range is not None:
            put(self, "actuator_range", checked_range(self.actuator_range, f"actuator_range of {where}"))
        if self.nq > 1:
            _check_multiple_coordinates(self, where)


def _check_multiple_coordinates(joint: MovingJoint, where: str) -> None:
    """Raises DescriptionError for values that a joint with several coordinates cannot have."""
    several = f"a {joint.kind} joint has several coordinates"
    if joint.limits is not None and not isinstance(joint, Ball):
        raise DescriptionError(
            f"limits of {where}: {several}, so that one pair of limits is ambiguous; replace the joint by "
            "joints "
            "with one coordinate each, or omit the limits"
        )
    if joint.limits is not None and are_constant(joint.limits[0]) and joint.limits[0] != 0:
        raise DescriptionError(
            f"limits of {where} are {joint.limits}; those of a ball joint are (0, largest angle), since its "
            "angle from the reference is never negative and has no lower limit"
        )
    if not (are_constant(joint.reference) and joint.reference == 0):
        raise DescriptionError(
            f"reference of {where} is {joint.reference}: {several}, so that one reference is ambiguous; "
            "set the pose of the body by Body(position=..., orientation=...)"
        )
    if isinstance(joint, Ball | Free) and joint.axis != Z:
        raise DescriptionError(
            f"axis of {where} is {joint.axis}: a {joint.kind} joint rotates about every axis; omit the axis"
        )


def checked_range(ends: Any, where: str) -> tuple[Number, Number]:
    """`ends` as (lower, upper), each of which may be infinite.

    Raises DescriptionError unless lower <= upper.
    """
    if isinstance(ends, str) or not hasattr(ends, "__len__") or len(ends) != 2:
        raise DescriptionError(f"{where} is {ends!r}; give (lower, upper)")
    lower, upper = (number(end, where, infinite=True) for end in ends)
    if are_constant(lower, upper) and lower > upper:
        raise DescriptionError(f"{where} is ({lower}, {upper}); lower must not exceed upper")
    return lower, upper


@validated
@dataclass(frozen=True)
class Revolute(MovingJoint):
    """A revolute joint: rotation about `axis` by the angle q [rad].

    armature [kg m^2], friction [N m], limits and reference [rad], velocity_limit [rad/s], effort_limit and
    actuator_range [N m]: see `zwang.mechanism.joints.Joint`.
    """

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("revolute", self.axis),)


@validated
@dataclass(frozen=True)
class Prismatic(MovingJoint):
    """A prismatic joint: translation along `axis` by q [m].

    armature [kg], friction [N], limits and reference [m], velocity_limit [m/s], effort_limit and
    actuator_range [N]: see `zwang.mechanism.joints.Joint`.
    """

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("prismatic", self.axis),)


@validated
@dataclass(frozen=True)
class Screw(MovingJoint):
    """A screw joint: rotation about `axis` by q [rad], translation along it by pitch * q; pitch [m/rad].

    The other fields have the units of those of `Revolute`.
    """

    pitch: Number = 0

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "pitch", number(self.pitch, f"pitch of joint {self.name!r}"))

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("screw", self.axis, self.pitch),)


@validated
@dataclass(frozen=True)
class Cylindrical(MovingJoint):
    """A cylindrical joint about and along `axis`, q = (angle [rad], displacement [m])."""

    coordinates: ClassVar[tuple[str, ...]] = ("angle", "displacement")
    speeds: ClassVar[tuple[str, ...]] = ("angle", "displacement")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("revolute", self.axis), ElementaryJoint("prismatic", self.axis))


@validated
@dataclass(frozen=True)
class Universal(MovingJoint):
    """A universal joint: rotation about `axis`, then about `second_axis`, q = (first, second) [rad]."""

    axis: Vector3 = X
    second_axis: Vector3 = Y
    coordinates: ClassVar[tuple[str, ...]] = ("first", "second")
    speeds: ClassVar[tuple[str, ...]] = ("first", "second")

    def __post_init__(self):
        super().__post_init__()
        where = f"second_axis of joint {self.name!r}"
        object.__setattr__(
            self, "second_axis", rotations.unit_vector(vector(self.second_axis, 3, where), where)
        )
        if are_constant(*self.axis, *self.second_axis):
            if rotations.are_parallel(self.axis, self.second_axis):
                raise DescriptionError(f"{where} is parallel to the first axis; give another direction")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("revolute", self.axis), ElementaryJoint("revolute", self.second_axis))


@validated
@dataclass(frozen=True)
class Planar(MovingJoint):
    """A planar joint: motion in the plane normal to `axis`, q = (x, y [m], angle [rad]).

    x and y are measured along two fixed axes of that plane: for `axis` along z, x or y of the frame, these
    are its axes (x, y), (y, z) or (z, x).
    """

    coordinates: ClassVar[tuple[str, ...]] = ("x", "y", "angle")
    speeds: ClassVar[tuple[str, ...]] = ("x", "y", "angle")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        first, second = rotations.perpendicular_axes(self.axis)
        return (
            ElementaryJoint("prismatic", first),
            ElementaryJoint("prismatic", second),
            ElementaryJoint("revolute", self.axis),
        )


@validated
@dataclass(frozen=True)
class Ball(MovingJoint):
    """A ball joint: q is a unit quaternion (w, x, y, z), v the angular velocity in body axes [rad/s]."""

    coordinates: ClassVar[tuple[str, ...]] = ("qw", "qx", "qy", "qz")
    speeds: ClassVar[tuple[str, ...]] = ("wx", "wy", "wz")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("ball", nq=4, nv=3),)


@validated
@dataclass(frozen=True)
class Free(MovingJoint):
    """A free joint: six degrees of freedom, q = (x, y, z [m], qw, qx, qy, qz).

    v = (velocity [m/s], angular velocity in body axes [rad/s]), relative to the parent. x, y, z and the
    velocity are those of the point `position` of the body, by default its origin: x, y, z are its
    displacement from the place that `Body.position` gives it. Both are in the axes that `Body.orientation`
    gives the body in its parent, by default those of the parent.
    """

    coordinates: ClassVar[tuple[str, ...]] = ("x", "y", "z", "qw", "qx", "qy", "qz")
    speeds: ClassVar[tuple[str, ...]] = ("vx", "vy", "vz", "wx", "wy", "wz")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (
            *(ElementaryJoint("prismatic", axis) for axis in (X, Y, Z)),
            ElementaryJoint("ball", nq=4, nv=3),
        )

"""The kinds of joints, one row a kind.

Each kind is a sequence of moves, and there are four kinds of moves only: to turn about an axis, to slide along one, to do both
at once (screw), and to turn freely (ball). So a cylindrical joint turns and slides, a planar one slides, slides and
turns, and a free one slides along the three axes of its parent and turns as a ball. Hence
its speeds: the velocity of the body frame's origin in the parent's axes and the angular velocity in body axes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar, Literal, NamedTuple

from zwang.algebra import rotations
from zwang.errors import DescriptionError
from zwang.mechanism.numbers import Number, Vector3, checked_solimp, checked_solref, number, vector
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant

X, Y, Z = (1, 0, 0), (0, 1, 0), (0, 0, 1)


class ElementaryJoint(NamedTuple):
    """One move of a joint: its kind, its axis (unit, in the moving frame), and for a screw the advance per radian."""

    kind: Literal["revolute", "prismatic", "screw", "ball"]
    axis: Vector3 = Z
    pitch: Number = 0
    nq: int = 1
    nv: int = 1


@validated
@dataclass(frozen=True)
class Softness:
    """How softly a constraint acts, in MuJoCo's numbers.

    solref: (time constant [s], damping ratio), both positive, or (-stiffness, -damping), none positive and not both zero.
    solimp: (d0, d_width, width, midpoint, power) of the impedance d(r): d0, d_width and midpoint from 0 to 1, width [m or rad] >= 0, power >= 1.
    margin: distance at which it sets in. Raises DescriptionError for other numbers.
    """

    solref: tuple[Number, ...] = (0.02, 1.0)
    solimp: tuple[Number, ...] = (0.9, 0.95, 0.001, 0.5, 2.0)
    margin: Number = 0.0

    def __post_init__(self):
        object.__setattr__(self, "solref", checked_solref(self.solref, "solref of a softness"))
        object.__setattr__(self, "solimp", checked_solimp(self.solimp, "solimp of a softness"))
        object.__setattr__(self, "margin", number(self.margin, "margin of a softness"))


def check_softness(value: Any, where: str) -> None:
    """A softness is one, or None. Raises DescriptionError."""
    if value is not None and not isinstance(value, Softness):
        raise DescriptionError(f"{where} is {value!r}; give zw.Softness, or None for exact")


@dataclass(frozen=True)
class Joint:
    """What all joints have.

    position [m]: a point on the joint's axis, in the body's frame. armature [kg m^2 or kg]: rotor inertia times the
    square of the gear ratio, added to each of the joint's speeds. limits: (lower, upper) of the coordinate
    [rad or m]; for a ball, (0, largest angle). velocity_limit, effort_limit: of the
    actuator, kept and not enforced. actuator_range: the sum of all actuators' efforts on the joint, or, where a mechanism has no inputs, what
    `control` asks of it, is clipped to it in simulation [N m or N]; a URDF's effort becomes both `effort_limit` and `actuator_range`. friction [N m or N]: the largest dry friction. reference: the coordinate's value at which the
    body is where `Body.position` says. Limits and reference are for joints of one coordinate (and a ball's angle). The softness of limits and friction matters where these act; None makes them exact.
    Raises DescriptionError for a zero axis, negative armature or friction, or limits in the wrong order.
    """

    name: str

    coordinates: ClassVar[tuple[str, ...]] = ("",)
    speeds: ClassVar[tuple[str, ...]] = ("",)

    @property
    def nq(self) -> int:
        return len(self.coordinates)

    @property
    def nv(self) -> int:
        return len(self.speeds)

    @property
    def kind(self) -> str:
        return type(self).__name__.lower()

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        raise NotImplementedError


@validated
@dataclass(frozen=True)
class Fixed(Joint):
    """No motion: the body is part of its parent. The name may be left out."""

    name: str = ""
    coordinates: ClassVar[tuple[str, ...]] = ()
    speeds: ClassVar[tuple[str, ...]] = ()

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return ()


@dataclass(frozen=True)
class _Moving(Joint):
    axis: Vector3 = Z
    position: Vector3 = (0, 0, 0)
    armature: Number = 0
    limits: tuple[Number, Number] | None = None
    velocity_limit: Number | None = None
    effort_limit: Number | None = None
    friction: Number = 0
    reference: Number = 0
    actuator_range: tuple[Number, Number] | None = None
    limit_softness: Softness | None = Softness()
    friction_softness: Softness | None = Softness()

    def __post_init__(self):
        where = f"joint {self.name!r}"
        if not isinstance(self.name, str) or not self.name:
            raise DescriptionError(f"a joint's name is {self.name!r}; it must be a text that is not empty")
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
            _check_several(self, where)


def _check_several(joint: _Moving, where: str) -> None:
    """A joint of several coordinates has nothing that one number says of all of them."""
    several = f"a {joint.kind} joint's coordinates are several"
    turns = isinstance(joint, Ball | Free)
    if joint.limits is not None and not isinstance(joint, Ball):
        raise DescriptionError(
            f"limits of {where}: {several}, and one pair of limits does not say which it means; split it into "
            "single joints, or leave the limits out"
        )
    if not (are_constant(joint.reference) and joint.reference == 0):
        raise DescriptionError(
            f"reference of {where} is {joint.reference}: {several}, and one number does not say which it means; "
            "place the body with Body(position=..., orientation=...)"
        )
    if turns and joint.axis != Z:
        raise DescriptionError(
            f"axis of {where} is {joint.axis}: a {joint.kind} joint turns about every axis; leave it out"
        )


def checked_range(ends: Any, where: str) -> tuple[Number, Number]:
    """(lower, upper), either may be infinite. Raises DescriptionError."""
    if isinstance(ends, str) or not hasattr(ends, "__len__") or len(ends) != 2:
        raise DescriptionError(f"{where} are {ends!r}; give (lower, upper)")
    lower, upper = (number(end, where, infinite=True) for end in ends)
    if are_constant(lower, upper) and lower > upper:
        raise DescriptionError(f"{where} are ({lower}, {upper}); the lower must not exceed the upper")
    return lower, upper


@validated
@dataclass(frozen=True)
class Revolute(_Moving):
    """Turns about `axis` by the angle q [rad]."""

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("revolute", self.axis),)


@validated
@dataclass(frozen=True)
class Prismatic(_Moving):
    """Slides along `axis` by q [m]."""

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("prismatic", self.axis),)


@validated
@dataclass(frozen=True)
class Screw(_Moving):
    """Turns about `axis` by q [rad] and slides along it by pitch * q; pitch [m/rad]."""

    pitch: Number = 0

    def __post_init__(self):
        super().__post_init__()
        object.__setattr__(self, "pitch", number(self.pitch, f"pitch of joint {self.name!r}"))

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("screw", self.axis, self.pitch),)


@validated
@dataclass(frozen=True)
class Cylindrical(_Moving):
    """Turns about `axis` and slides along it: q = (angle [rad], displacement [m])."""

    coordinates: ClassVar[tuple[str, ...]] = ("angle", "displacement")
    speeds: ClassVar[tuple[str, ...]] = ("angle", "displacement")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("revolute", self.axis), ElementaryJoint("prismatic", self.axis))


@validated
@dataclass(frozen=True)
class Universal(_Moving):
    """Turns about `axis`, then about `second_axis`: q = (first, second) [rad]."""

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
                raise DescriptionError(f"{where} is parallel to its first axis; give another direction")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("revolute", self.axis), ElementaryJoint("revolute", self.second_axis))


@validated
@dataclass(frozen=True)
class Planar(_Moving):
    """Moves in the plane across `axis`: q = (x, y [m], angle [rad]); x and y along two fixed axes of that plane.

    For the axes z, x and y of the frame, (x, y) run along (x, y), (y, z) and (z, x).
    """

    coordinates: ClassVar[tuple[str, ...]] = ("x", "y", "angle")
    speeds: ClassVar[tuple[str, ...]] = ("x", "y", "angle")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        first, second = rotations.perpendicular_axes(self.axis)
        return (ElementaryJoint("prismatic", first), ElementaryJoint("prismatic", second), ElementaryJoint("revolute", self.axis))


@validated
@dataclass(frozen=True)
class Ball(_Moving):
    """Turns freely: q is a unit quaternion (w, x, y, z), v the angular velocity in body axes [rad/s]."""

    coordinates: ClassVar[tuple[str, ...]] = ("qw", "qx", "qy", "qz")
    speeds: ClassVar[tuple[str, ...]] = ("wx", "wy", "wz")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("ball", nq=4, nv=3),)


@validated
@dataclass(frozen=True)
class Free(_Moving):
    """Moves freely: q = (x, y, z, qw, qx, qy, qz); v = (velocity of the body frame's origin in the parent's axes
    [m/s], angular velocity in body axes [rad/s])."""

    coordinates: ClassVar[tuple[str, ...]] = ("x", "y", "z", "qw", "qx", "qy", "qz")
    speeds: ClassVar[tuple[str, ...]] = ("vx", "vy", "vz", "wx", "wy", "wz")

    @property
    def elementary_joints(self) -> tuple[ElementaryJoint, ...]:
        return (ElementaryJoint("prismatic", X), ElementaryJoint("prismatic", Y), ElementaryJoint("prismatic", Z), ElementaryJoint("ball", nq=4, nv=3))

"""Constraints other than limits, friction and contact, as data; the package `constraint` forms their rows.

A constraint with `softness=None` is hard; with a `Softness`, it acts as a constraint of MuJoCo with these
solver parameters. A soft velocity-level constraint (no side slip, the slip rows of rolling, Pfaffian) has
no violation: its reference acceleration is that of MuJoCo without stiffness, -b u for the residual velocity
u, at the impedance d(0), so that u decays and a constant load makes it creep. A point is given as (body
name, position in the body frame [m]); the body "world" is the ground. `active` of a soft loop or coupling is
1, or 0 for one without effect, or a symbol, so that it can be switched, see `zw.with_equality_parameters`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from zwang.algebra import rotations
from zwang.errors import DescriptionError
from zwang.mechanism.joints import Softness, check_softness
from zwang.mechanism.numbers import (
    IDENTITY,
    Matrix3,
    Number,
    Numbers,
    Vector3,
    bounded,
    number,
    number_tuple,
    orientation_of,
    vector,
)
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant, is_zero

Point = tuple[str, Vector3]


def checked_point(value: Any, where: str) -> Point:
    """`value` as (body name, point). Raises DescriptionError."""
    if not (isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)):
        raise DescriptionError(f"{where} is {value!r}; give (body name, (x, y, z))")
    return value[0], vector(value[1], 3, where)


def checked_switch(value: Any, softness: Softness | None, where: str) -> Number:
    """`value` as the field `active` of a loop or coupling: 0, 1 or a symbol.

    Raises DescriptionError for another number, and for a hard constraint that is not always active.
    """
    value = number(value, f"active of {where}")
    if are_constant(value) and value not in (0, 1):
        raise DescriptionError(f"active of {where} is {value}; it must be 1, 0 or a symbol")
    if softness is None and not (are_constant(value) and value == 1):
        raise DescriptionError(f"{where} is hard and cannot be switched; give it a zw.Softness")
    return value


@validated
@dataclass(frozen=True)
class Connect:
    """Two points coincide, as in a ball joint that closes a kinematic loop.

    a, b: (name of the body, point (x, y, z) in its frame [m]); the body "world" is the ground. softness: None
    for a hard constraint. active: 1, or for a soft constraint 0, which switches it off, or a symbol.
    Raises DescriptionError.
    """

    name: str
    a: Point
    b: Point
    softness: Softness | None = None
    active: Number = 1

    def __post_init__(self):
        for end in ("a", "b"):
            object.__setattr__(
                self, end, checked_point(getattr(self, end), f"{end} of connect {self.name!r}")
            )
        check_softness(self.softness, f"softness of connect {self.name!r}")
        object.__setattr__(
            self, "active", checked_switch(self.active, self.softness, f"connect {self.name!r}")
        )


@validated
@dataclass(frozen=True)
class Weld:
    """The frame of body b has the pose (position [m], orientation) in the frame of body a.

    anchor: point of body b at which the positions are compared [m]. torque_scale: length that weighs the
    rotational residual against the translational one [m].
    Source: MuJoCo documentation, XML reference, "weld".
    """

    name: str
    a: str
    b: str
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY
    anchor: Vector3 = (0, 0, 0)
    torque_scale: Number = 1.0
    softness: Softness | None = None
    active: Number = 1

    def __post_init__(self):
        where = f"weld {self.name!r}"
        object.__setattr__(self, "position", vector(self.position, 3, f"position of {where}"))
        object.__setattr__(self, "anchor", vector(self.anchor, 3, f"anchor of {where}"))
        object.__setattr__(self, "orientation", orientation_of(self.orientation, f"orientation of {where}"))
        scale = bounded(self.torque_scale, f"torque_scale of {where}", least=0)
        object.__setattr__(self, "torque_scale", scale)
        check_softness(self.softness, f"softness of {where}")
        object.__setattr__(self, "active", checked_switch(self.active, self.softness, where))


@validated
@dataclass(frozen=True)
class Distance:
    """The distance of two points is constant: `length` [m].

    a, b, softness and active: as for `Connect`. Raises DescriptionError for a negative length.
    """

    name: str
    a: Point
    b: Point
    length: Number
    softness: Softness | None = None
    active: Number = 1

    def __post_init__(self):
        for end in ("a", "b"):
            object.__setattr__(
                self, end, checked_point(getattr(self, end), f"{end} of distance {self.name!r}")
            )
        object.__setattr__(self, "length", number(self.length, f"length of distance {self.name!r}"))
        if are_constant(self.length) and self.length < 0:
            raise DescriptionError(
                f"length of distance {self.name!r} is {self.length}; it must not be negative"
            )
        check_softness(self.softness, f"softness of distance {self.name!r}")
        object.__setattr__(
            self, "active", checked_switch(self.active, self.softness, f"distance {self.name!r}")
        )


@validated
@dataclass(frozen=True)
class JointCoupling:
    """A coordinate is a polynomial of another one.

    q_joint - q0 = c0 + c1 x + c2 x^2 + ..., with x = q_to - q_to0. q0 and q_to0 are the references of the
    joints. Without `to`, the joint is fixed at q_joint - q0 = c0. A mimic joint of URDF has the coefficients
    (offset, multiplier).
    """

    name: str
    joint: str
    to: str | None = None
    coefficients: Numbers = (0, 1)
    softness: Softness | None = None
    active: Number = 1

    def __post_init__(self):
        where = f"coefficients of joint coupling {self.name!r}"
        object.__setattr__(self, "coefficients", number_tuple(self.coefficients, where))
        check_softness(self.softness, f"softness of joint coupling {self.name!r}")
        object.__setattr__(
            self, "active", checked_switch(self.active, self.softness, f"joint coupling {self.name!r}")
        )
        if self.to == self.joint:
            raise DescriptionError(
                f"joint coupling {self.name!r} (mimic) couples joint {self.joint!r} to itself"
            )


@validated
@dataclass(frozen=True)
class NoSideSlip:
    """A knife-edge (no-side-slip) constraint: the velocity of a point along a direction is zero.

    point [m], direction: in the frame of `body`. The direction is divided by its length, also with symbols.
    The velocity is relative to the body `on`.
    """

    name: str
    body: str
    direction: Vector3 = (0, 1, 0)
    point: Vector3 = (0, 0, 0)
    on: str = "world"
    softness: Softness | None = None

    def __post_init__(self):
        where = f"no-side-slip {self.name!r}"
        check_softness(self.softness, f"softness of {where}")
        object.__setattr__(self, "point", vector(self.point, 3, f"point of {where}"))
        object.__setattr__(self, "direction", direction(self.direction, f"direction of {where}"))


@validated
@dataclass(frozen=True)
class Rolling:
    """A sphere, or with `axis` a thin disc, rolls on a plane without slip and stays in contact with it.

    radius [m]; centre [m] and axis in the frame of `body`; plane_point [m] and normal, which points towards
    the sphere, in the frame of the body `on`. Both directions are divided by their lengths. The constraint
    has three rows: no slip along two axes of the plane, and contact, which is holonomic. Raises
    DescriptionError, also for a normal with symbols: the two axes are chosen by its numbers, as no formula
    gives them for all directions. A plane of symbolic inclination belongs to a body `on` with a symbolic
    `orientation`.
    """

    name: str
    body: str
    radius: Number
    axis: Vector3 | None = None
    centre: Vector3 = (0, 0, 0)
    on: str = "world"
    plane_point: Vector3 = (0, 0, 0)
    normal: Vector3 = (0, 0, 1)
    softness: Softness | None = None

    def __post_init__(self):
        where = f"rolling {self.name!r}"
        check_softness(self.softness, f"softness of {where}")
        object.__setattr__(self, "radius", number(self.radius, f"radius of {where}"))
        for name in ("centre", "plane_point"):
            object.__setattr__(self, name, vector(getattr(self, name), 3, f"{name} of {where}"))
        normal = direction(self.normal, f"normal of {where}")
        if not are_constant(*normal):
            raise DescriptionError(
                f"normal of {where} is {self.normal}; it must be numeric, as the axes along which nothing "
                "slips are chosen by it. Give the plane to a body, such as zw.Body('plane', orientation=...) "
                "with the symbols in its orientation, and on='plane', or tilt the gravity of the mechanism"
            )
        object.__setattr__(self, "normal", normal)
        if self.axis is not None:
            object.__setattr__(self, "axis", direction(self.axis, f"axis of {where}"))
        if are_constant(self.radius) and self.radius <= 0:
            raise DescriptionError(f"radius of {where} is {self.radius}; it must be positive")


@validated
@dataclass(frozen=True)
class Holonomic:
    """A holonomic constraint g(q, t) = 0, given by one expression or by several.

    Symbols with the name of a coordinate stand for it, and `t` for the time; all others are parameters. The
    force is along the gradient, which must not vanish where the constraint holds: write z, not z**2. A
    formula that is 0, as where a parameter that multiplies it is 0, constrains nothing.
    """

    name: str
    expression: Number | Numbers
    softness: Softness | None = None

    def __post_init__(self):
        where = f"expression of holonomic {self.name!r}"
        check_softness(self.softness, f"softness of holonomic {self.name!r}")
        many = isinstance(self.expression, tuple | list)
        value = number_tuple(self.expression, where) if many else number(self.expression, where)
        object.__setattr__(self, "expression", value)

    @property
    def expressions(self) -> tuple[Number, ...]:
        """The expressions, one for each row."""
        return self.expression if isinstance(self.expression, tuple) else (self.expression,)


@validated
@dataclass(frozen=True)
class Pfaffian:
    """A velocity-level (Pfaffian) constraint A(q, t) v + rate(q, t) = 0, given by expressions.

    coefficients: the elements of A by the name of the generalised velocity; where all are 0, and the rate
    too, nothing is constrained. Symbols are as in `Holonomic`.
    """

    name: str
    coefficients: Any
    rate: Number = 0
    softness: Softness | None = None

    def __post_init__(self):
        where = f"pfaffian {self.name!r}"
        check_softness(self.softness, f"softness of {where}")
        items = self.coefficients.items() if isinstance(self.coefficients, Mapping) else self.coefficients
        object.__setattr__(self, "coefficients", named_numbers(items, f"coefficients of {where}"))
        object.__setattr__(self, "rate", number(self.rate, f"rate of {where}"))


@validated
@dataclass(frozen=True)
class NonIdeal:
    """A non-ideal constraint force: the part of the force of `constraint` that does work.

    forces: generalised forces by the name of the generalised velocity. Besides those of `Holonomic`, symbols
    can be `NAME_dot`, the generalised velocity NAME, and `N`, the magnitude of the multipliers of
    `constraint`: sqrt(sum of lambda_i^2) over its rows, in the presence of this non-ideal force. The ideal
    force is sum of lambda_i times the gradient of row i. So `N` is its magnitude [N] only where the gradients
    have unit length and are orthogonal, in coordinates that are lengths along orthogonal axes of one body:
    write the ring of a bead as sqrt(x^2 + y^2) - R, since the gradient of x^2 + y^2 - R^2 has the length 2 R,
    and N is the force / (2 R). Coulomb friction of this bead on a horizontal ring is {"x": -mu N x_dot /
    speed, "y": -mu N y_dot / speed}. Components along the constraint directions are balanced by the ideal
    constraint force.
    Source: Luchtenburg, Shah, Impelluso, Rykkje, "A projection-based derivation of the equations of motion
    for the moving frame method", IMECE2021-72324, Eqs. 47-50; Udwadia, Kalaba, Int. J. Non-Linear Mech. 37
    (2002) 1079.
    """

    name: str
    constraint: str
    forces: Any

    def __post_init__(self):
        items = self.forces.items() if isinstance(self.forces, Mapping) else self.forces
        object.__setattr__(self, "forces", named_numbers(items, f"forces of non-ideal {self.name!r}"))


@validated
@dataclass(frozen=True)
class CoulombFriction:
    """Coulomb friction in a joint or along a constraint, whose bound is proportional to the load N.

    In sliding the friction force is -mu N sign(speed). At rest it has the value that keeps the body at rest,
    as long as this is at most mu_s N: the law is set-valued, so that a body comes to rest and stays. N is
    the load in the presence of the friction. A body at rest that could also slip, such as a bracket that its
    own friction locks, stays at rest. In steps of fixed size, and in `constrained_dynamics` with the
    step size of the options, a sliding that the friction would end within the step counts as rest. With every
    integrator, a sliding slower than 1e-9 m/s or rad/s counts as rest. A law with mu_s > mu that begins to
    slide has mu_s until the end of that step, except in "rk4". The options that disable "constraint" or
    "frictionloss" disable the law.

    coefficient: mu, a number or an expression in the coordinates. static_coefficient: mu_s >= mu, by default
    mu.
    Exactly one of:
    joint: the name of a revolute or prismatic joint, whose bearing has friction (load-dependent joint
        friction). N is the force that the bearing transmits normal to the axis.
        radius [m]: of the pin of a revolute joint, so that the friction torque is mu radius N.
        collar_radius [m]: mean radius of a collar that carries the axial force F_a of a revolute joint; it
        adds mu collar_radius |F_a| to the torque. By default the axial force causes no friction.
        bearing_distance [m]: distance of the two bearings, which are at equal distances from the joint's
        `position` on the axis. They carry the moment normal to the axis by a couple of forces, and N is the
        sum of the two bearing forces. By default the moment causes no friction.
    constraint: the name of a constraint. N is the magnitude of its multipliers, sqrt(sum of lambda_i^2) over
        its rows, as for `NonIdeal`: the force [N] only where the gradients of its rows have unit length, as
        that of the ring sqrt(x^2 + y^2) - R; for x^2 + y^2 - R^2 it is the force / (2 R), and so the friction
        too small or too large. Divide such a formula by the length of its gradient.
        sliding: the sliding speed [m/s], as its coefficients by the name of the generalised velocity:
        numbers or expressions in the coordinates, as for `Pfaffian`. For a bead on a ring of radius R about
        the origin, {"x": -y / R, "y": x / R}; for a pin of radius r about which a body turns by phi,
        {"phi": r}.
    Raises DescriptionError for negative numbers, and for fields that do not belong together.
    Source: Coulomb (1785); Armstrong-Helouvry, Dupont, Canudas de Wit, Automatica 30 (1994) 1083; the
    set-valued law: Glocker, Set-Valued Force Laws (2001), Chapter 5.
    """

    name: str
    coefficient: Number
    joint: str | None = None
    constraint: str | None = None
    static_coefficient: Number | None = None
    radius: Number | None = None
    collar_radius: Number = 0
    bearing_distance: Number | None = None
    sliding: Any = None

    def __post_init__(self):
        where = f"Coulomb friction {self.name!r}"
        put = object.__setattr__
        for field in ("coefficient", "static_coefficient", "radius", "collar_radius", "bearing_distance"):
            if (value := getattr(self, field)) is not None:
                put(self, field, bounded(value, f"{field} of {where}", least=0))
        static = self.static_coefficient
        if static is not None and are_constant(static, self.coefficient) and static < self.coefficient:
            raise DescriptionError(
                f"static_coefficient of {where} is {static}; it must be at least the coefficient of sliding, "
                f"{self.coefficient}"
            )
        if (self.joint is None) == (self.constraint is None):
            raise DescriptionError(
                f"{where} has joint={self.joint!r} and constraint={self.constraint!r}; give exactly one"
            )
        if self.constraint is None and self.sliding is not None:
            raise DescriptionError(f"{where} is that of a joint; sliding= belongs to that of a constraint")
        if self.constraint is not None:
            self._check_constraint(where)
        if self.bearing_distance is not None and is_zero(self.bearing_distance):
            raise DescriptionError(f"bearing_distance of {where} is 0; it must be positive, or omitted")

    @property
    def has_collar(self) -> bool:
        """Whether a collar carries the axial force of the joint."""
        return not is_zero(self.collar_radius)

    def _check_constraint(self, where: str) -> None:
        """The sliding speed as a tuple. Raises DescriptionError without it, and for fields of joints."""
        if any(x is not None for x in (self.radius, self.bearing_distance)) or self.has_collar:
            raise DescriptionError(
                f"{where} is that of a constraint; radius=, collar_radius= and bearing_distance= belong to "
                "that of a joint; give sliding= in metres per second"
            )
        if not self.sliding:
            raise DescriptionError(
                f"{where} is that of a constraint, and needs sliding=, the sliding speed: a dictionary of "
                "its coefficients by the name of the generalised velocity"
            )
        items = self.sliding.items() if isinstance(self.sliding, Mapping) else self.sliding
        object.__setattr__(self, "sliding", named_numbers(items, f"sliding of {where}"))


EXPRESSION_CONSTRAINTS = (Holonomic, Pfaffian, NonIdeal, CoulombFriction)
"""The constraints that are given by expressions."""


@validated
@dataclass(frozen=True)
class PointSpeed:
    """An independent velocity for `equations`: the velocity of a point of a body along a direction.

    point [m]: in the frame of `body`. axes: "body" or "world", the axes of `direction`, which is divided by
    its length, also with symbols.
    """

    name: str
    body: str
    direction: Vector3 = (1, 0, 0)
    point: Vector3 = (0, 0, 0)
    axes: str = "body"

    def __post_init__(self):
        where = f"speed {self.name!r}"
        object.__setattr__(self, "point", vector(self.point, 3, f"point of {where}"))
        object.__setattr__(self, "direction", direction(self.direction, f"direction of {where}"))
        if self.axes not in ("body", "world"):
            raise DescriptionError(f"axes of {where} is {self.axes!r}; give 'body' or 'world'")


def direction(values: Any, where: str) -> Vector3:
    """`values` as a unit vector, also with symbols. Raises DescriptionError for a zero vector."""
    x, y, z = rotations.unit_vector(vector(values, 3, where), where)
    return x, y, z


def named_numbers(items: Any, where: str) -> tuple[tuple[str, Number], ...]:
    """`items`, pairs of a name and a number, as a tuple. Raises DescriptionError."""
    try:
        pairs = [(name, value) for name, value in items]
    except (TypeError, ValueError):
        raise DescriptionError(f"{where} are {items!r}; give a dictionary from names to numbers") from None
    return tuple((name, number(value, f"{where} ({name!r})")) for name, value in pairs)

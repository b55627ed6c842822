"""What restricts: loops, couplings, rolling, tendons, and which shapes may touch. Data only; `constraint` makes rows of them.

A restriction with `softness=None` is exact (hard); with a `Softness` it acts as MuJoCo's of that softness does.
Points are (body name, point in its frame [m]); the body "world" is the ground.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from zwang.algebra import rotations
from zwang.errors import DescriptionError
from zwang.mechanism.geometry import checked_condim, checked_friction
from zwang.mechanism.joints import Softness, check_softness, checked_range
from zwang.mechanism.numbers import (
    IDENTITY,
    Matrix3,
    Number,
    Vector3,
    boolean,
    bounded,
    checked_solimp,
    checked_solref,
    integer,
    number,
    number_tuple,
    orientation_of,
    vector,
)
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant

Point = tuple[str, Vector3]


def _point(value: Any, where: str) -> Point:
    if not (isinstance(value, (tuple, list)) and len(value) == 2 and isinstance(value[0], str)):
        raise DescriptionError(f"{where} is {value!r}; give (body name, (x, y, z))")
    return value[0], vector(value[1], 3, where)


@validated
@dataclass(frozen=True)
class Connect:
    """Two points coincide (a ball joint that closes a loop)."""

    name: str
    a: Point
    b: Point
    softness: Softness | None = None

    def __post_init__(self):
        for end in ("a", "b"):
            object.__setattr__(self, end, _point(getattr(self, end), f"{end} of connect {self.name!r}"))
        check_softness(self.softness, f"softness of connect {self.name!r}")


@validated
@dataclass(frozen=True)
class Weld:
    """Body b's frame, moved by (position, orientation), coincides with body a's frame.

    T_a * (position, orientation) = T_b at point `anchor` of b: MuJoCo's weld, with its torque_scale [m].
    """

    name: str
    a: str
    b: str
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY
    anchor: Vector3 = (0, 0, 0)
    torque_scale: Number = 1.0
    softness: Softness | None = None

    def __post_init__(self):
        where = f"weld {self.name!r}"
        object.__setattr__(self, "position", vector(self.position, 3, f"position of {where}"))
        object.__setattr__(self, "anchor", vector(self.anchor, 3, f"anchor of {where}"))
        object.__setattr__(self, "orientation", orientation_of(self.orientation, f"orientation of {where}"))
        scale = bounded(self.torque_scale, f"torque_scale of {where}", least=0)
        object.__setattr__(self, "torque_scale", scale)
        check_softness(self.softness, f"softness of {where}")


@validated
@dataclass(frozen=True)
class Distance:
    """Two points keep their distance [m]."""

    name: str
    a: Point
    b: Point
    length: Number
    softness: Softness | None = None

    def __post_init__(self):
        for end in ("a", "b"):
            object.__setattr__(self, end, _point(getattr(self, end), f"{end} of distance {self.name!r}"))
        object.__setattr__(self, "length", number(self.length, f"length of distance {self.name!r}"))
        if are_constant(self.length) and self.length < 0:
            raise DescriptionError(
                f"length of distance {self.name!r} is {self.length}; it must not be negative"
            )
        check_softness(self.softness, f"softness of distance {self.name!r}")


@validated
@dataclass(frozen=True)
class JointCoupling:
    """A coordinate is a polynomial of another: q_joint - q0 = c0 + c1 x + c2 x^2 + ..., x = q_to - q_to0.

    Without `to` the joint is held at c0. q0, q_to0 are the joints' `reference`. A URDF's mimic is (offset, multiplier).
    """

    name: str
    joint: str
    to: str | None = None
    coefficients: tuple[Number, ...] = (0, 1)
    softness: Softness | None = None

    def __post_init__(self):
        where = f"coefficients of couple {self.name!r}"
        object.__setattr__(self, "coefficients", number_tuple(self.coefficients, where))
        check_softness(self.softness, f"softness of couple {self.name!r}")
        if self.to == self.joint:
            raise DescriptionError(f"couple {self.name!r} (mimic) ties joint {self.joint!r} to itself")


@validated
@dataclass(frozen=True)
class NoSideSlip:
    """A runner, knife edge or thin wheel: at `point` [m] of `body` the velocity along `direction` (body axes) is zero.

    The velocity is that against the body `on`, at the place where the point is.
    """

    name: str
    body: str
    direction: Vector3 = (0, 1, 0)
    point: Vector3 = (0, 0, 0)
    on: str = "world"

    def __post_init__(self):
        where = f"no-side-slip {self.name!r}"
        object.__setattr__(self, "point", vector(self.point, 3, f"point of {where}"))
        object.__setattr__(self, "direction", direction(self.direction, f"direction of {where}"))


@validated
@dataclass(frozen=True)
class Rolling:
    """A ball, or with `axis` (body axes) a thin disc or wheel, rolls on a plane without slip and without leaving it.

    centre [m] is in the body's frame, the plane in that of the body `on`: through `plane_point`, with `normal` towards the ball.
    Three rows: no slip along two axes of the plane, and no leaving, which is holonomic.
    """

    name: str
    body: str
    radius: Number
    axis: Vector3 | None = None
    centre: Vector3 = (0, 0, 0)
    on: str = "world"
    plane_point: Vector3 = (0, 0, 0)
    normal: Vector3 = (0, 0, 1)

    def __post_init__(self):
        where = f"rolling {self.name!r}"
        object.__setattr__(self, "radius", number(self.radius, f"radius of {where}"))
        for name in ("centre", "plane_point"):
            object.__setattr__(self, name, vector(getattr(self, name), 3, f"{name} of {where}"))
        object.__setattr__(self, "normal", direction(self.normal, f"normal of {where}"))
        if self.axis is not None:
            object.__setattr__(self, "axis", direction(self.axis, f"axis of {where}"))
        if are_constant(self.radius) and self.radius <= 0:
            raise DescriptionError(f"radius of {where} is {self.radius}; it must be positive")


@validated
@dataclass(frozen=True)
class Holonomic:
    """g(q, t) = 0 by expression, or by several: symbols are named as coordinates (joint names), `t`, or else are parameters."""

    name: str
    expression: Number | tuple[Number, ...]

    def __post_init__(self):
        where = f"expression of holonomic {self.name!r}"
        many = isinstance(self.expression, tuple | list)
        value = number_tuple(self.expression, where) if many else number(self.expression, where)
        object.__setattr__(self, "expression", value)

    @property
    def expressions(self) -> tuple[Number, ...]:
        """All of them, one a row."""
        return self.expression if isinstance(self.expression, tuple) else (self.expression,)


@validated
@dataclass(frozen=True)
class Pfaffian:
    """A(q, t) v + rate(q, t) = 0 by expressions: `coefficients` maps names of speeds to theirs; symbols as in `Holonomic`."""

    name: str
    coefficients: Any
    rate: Number = 0

    def __post_init__(self):
        where = f"pfaffian {self.name!r}"
        items = self.coefficients.items() if isinstance(self.coefficients, Mapping) else self.coefficients
        object.__setattr__(self, "coefficients", named_numbers(items, f"coefficients of {where}"))
        object.__setattr__(self, "rate", number(self.rate, f"rate of {where}"))


@validated
@dataclass(frozen=True)
class NonIdeal:
    """The working part of a constraint's force, prescribed: generalised forces on speeds, by expressions.

    Beside coordinates, `t` and parameters, symbols may be `NAME_dot` (the speed NAME) and `N`: the size of the force of
    `constraint`, sqrt(sum lambda_i^2) over its rows, as it is with this force acting. So Coulomb friction of a bead on a
    horizontal ring of radius R is {"x": -mu N x_dot / speed, "y": -mu N y_dot / speed}. Forces that would drive the constraint
    itself are taken up by it. Source: seed 003, Eqs. 47-50; Udwadia, Kalaba, Int. J. Non-Linear Mech. 37 (2002) 1079.
    """

    name: str
    constraint: str
    forces: Any

    def __post_init__(self):
        items = self.forces.items() if isinstance(self.forces, Mapping) else self.forces
        object.__setattr__(self, "forces", named_numbers(items, f"forces of non-ideal {self.name!r}"))


EXPRESSION_CONSTRAINTS = (Holonomic, Pfaffian, NonIdeal)


@validated
@dataclass(frozen=True)
class PointSpeed:
    """An essential speed for `equations`: the velocity of `point` [m] of `body` along `direction`, in body or world axes."""

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
            raise DescriptionError(f"axes of {where} is {self.axes!r}; it is 'body' or 'world'")


def direction(values: Any, where: str) -> Vector3:
    """A vector at unit length, if it is numeric."""
    return rotations.unit_vector(vector(values, 3, where), where)  # type: ignore[return-value]


def named_numbers(items: Any, where: str) -> tuple[tuple[str, Number], ...]:
    """((name, number), ...) checked."""
    try:
        pairs = [(name, value) for name, value in items]
    except (TypeError, ValueError):
        raise DescriptionError(f"{where} are {items!r}; give a dictionary from names to numbers") from None
    return tuple((name, number(value, f"{where} ({name!r})")) for name, value in pairs)


@validated
@dataclass(frozen=True)
class Wrap:
    """A ball, or a cylinder along z, around which a tendon runs: its frame is number `at` of the tendon's path.

    radius [m]. side: a frame outside of it; the tendon goes around as the way by that frame does. Without it, the shorter way.
    """

    at: int
    radius: Number
    kind: Literal["sphere", "cylinder"] = "sphere"
    side: str | None = None

    def __post_init__(self):
        object.__setattr__(self, "at", integer(self.at, "at of a wrap", least=0))
        object.__setattr__(self, "radius", bounded(self.radius, "radius of a wrap", above=0))
        if self.kind not in ("sphere", "cylinder"):
            raise DescriptionError(f"kind of a wrap is {self.kind!r}; it is 'sphere' or 'cylinder'")
        if self.side is not None and not isinstance(self.side, str):
            raise DescriptionError(f"side of a wrap is {self.side!r}; give a frame's name, or None")


@validated
@dataclass(frozen=True)
class Tendon:
    """A fixed tendon: its length is sum of coefficient * q over joints; or a spatial one: a path through frames.

    joints: ((name, coefficient), ...). path: frame names in order, None where a pulley starts a new branch of
    `divisors`; those that `wraps` names are bodies to go around. Springs and dampers pull back to spring_length =
    (lower, upper); limits and friction as a joint's.
    """

    name: str
    joints: tuple[tuple[str, Number], ...] = ()
    path: tuple[str | None, ...] = ()
    divisors: tuple[Number, ...] = ()
    wraps: tuple[Wrap, ...] = ()
    stiffness: Number = 0
    damping: Number = 0
    spring_length: tuple[Number, Number] = (0, 0)
    limits: tuple[Number, Number] | None = None
    friction: Number = 0
    armature: Number = 0
    limit_softness: Softness | None = Softness()
    friction_softness: Softness | None = Softness()

    def __post_init__(self):
        where = f"tendon {self.name!r}"
        items = self.joints.items() if isinstance(self.joints, Mapping) else self.joints
        object.__setattr__(self, "joints", named_numbers(items, f"joints of {where}"))
        object.__setattr__(self, "path", tuple(self.path))
        if bool(self.joints) == bool(self.path):
            raise DescriptionError(f"{where} has joints or a path, one of the two; give it one")
        put = object.__setattr__
        put(self, "stiffness", number(self.stiffness, f"stiffness of {where}"))
        for name in ("damping", "friction", "armature"):
            put(self, name, bounded(getattr(self, name), f"{name} of {where}", least=0))
        divisors = number_tuple(self.divisors, f"divisors of {where}", least=0)
        put(self, "divisors", tuple(bounded(x, f"a divisor of {where}", above=0) for x in divisors))
        put(self, "spring_length", checked_range(self.spring_length, f"spring_length of {where}"))
        if self.limits is not None:
            put(self, "limits", checked_range(self.limits, f"limits of {where}"))
        for name in ("limit_softness", "friction_softness"):
            check_softness(getattr(self, name), f"{name} of {where}")
        for wrap in self.wraps:
            if not isinstance(wrap, Wrap):
                raise DescriptionError(f"wraps of {where} hold {wrap!r}; give zw.Wrap")


@validated
@dataclass(frozen=True)
class TendonCoupling:
    """A tendon's length (less its length at home) is a polynomial of another's, as `Couple` for joints."""

    name: str
    tendon: str
    to: str | None = None
    coefficients: tuple[Number, ...] = (0, 1)
    softness: Softness | None = None

    def __post_init__(self):
        where = f"couple of tendons {self.name!r}"
        object.__setattr__(self, "coefficients", number_tuple(self.coefficients, f"coefficients of {where}"))
        check_softness(self.softness, f"softness of {where}")


@validated
@dataclass(frozen=True)
class ContactPair:
    """Two shapes, by name, that may touch whatever their bit masks say, with their own numbers: see `Surface`.

    friction: sliding along two directions, torsional [m], rolling [m] about two. solreffriction: as solref, for the rows of friction;
    empty: as the normal's. Raises DescriptionError as `Surface` does.
    """

    name: str
    geometry: tuple[str, str]
    condim: int = 3
    friction: tuple[Number, ...] = (1.0, 1.0, 0.005, 0.0001, 0.0001)
    solref: tuple[Number, ...] = (0.02, 1.0)
    solreffriction: tuple[Number, ...] = ()
    solimp: tuple[Number, ...] = (0.9, 0.95, 0.001, 0.5, 2.0)
    margin: Number = 0.0
    gap: Number = 0.0

    def __post_init__(self):
        where, put = f"contact pair {self.name!r}", object.__setattr__
        put(self, "geometry", _two_names(self.geometry, f"geometry of {where}"))
        put(self, "condim", checked_condim(self.condim, f"condim of {where}"))
        put(self, "friction", checked_friction(self.friction, 5, f"friction of {where}"))
        put(self, "solref", checked_solref(self.solref, f"solref of {where}"))
        if len(number_tuple(self.solreffriction, f"solreffriction of {where}", least=0)):
            put(self, "solreffriction", checked_solref(self.solreffriction, f"solreffriction of {where}"))
        put(self, "solimp", checked_solimp(self.solimp, f"solimp of {where}"))
        for name in ("margin", "gap"):
            put(self, name, number(getattr(self, name), f"{name} of {where}"))


@validated
@dataclass(frozen=True)
class ContactExclude:
    """Two bodies whose shapes never touch each other."""

    bodies: tuple[str, str]

    def __post_init__(self):
        object.__setattr__(self, "bodies", _two_names(self.bodies, "bodies of a contact exclusion"))


def _two_names(values: Any, where: str) -> tuple[str, str]:
    """Two texts. Raises DescriptionError."""
    names = tuple(values) if isinstance(values, tuple | list) else ()
    if len(names) != 2 or not all(isinstance(name, str) for name in names):
        raise DescriptionError(f"{where} is {values!r}; give two names, such as ('one', 'other')")
    return names


DISABLED = (
    "constraint", "equality", "frictionloss", "limit", "contact", "spring", "damper", "gravity", "clampctrl",
    "warmstart", "filterparent", "actuation", "refsafe", "sensor", "midphase", "eulerdamp", "autoreset", "nativeccd",
    "island", "multiccd",
)  # fmt: skip
ENABLED = ("override", "energy", "fwdinv", "invdiscrete", "sleep", "diagexact", "ipc", "speculative")
"""What MuJoCo's options disable and enable, in the order of its bits."""
SOLVERS = ("newton", "cg", "pgs")
INTEGRATORS = ("euler", "implicitfast", "implicit", "rk4", "dop853", "rk45", "radau", "bdf", "lsoda")
"""The integrators that options may ask for: of fixed step, then error-controlled. MuJoCo's "implicit" can be described, but `simulate` has it not."""


@validated
@dataclass(frozen=True)
class Options:
    """How a file wants to be simulated (MJCF's option element); arguments of `simulate` go before it.

    timestep [s] > 0; integrator, cone and solver by name; impratio > 0; iterations >= 1, whole; tolerance >= 0; disabled, enabled: names of
    MuJoCo's flags. Raises DescriptionError for anything else.
    """

    timestep: float = 0.002
    integrator: str = "euler"
    cone: str = "pyramidal"
    impratio: float = 1.0
    solver: str = "newton"
    iterations: int = 100
    tolerance: float = 1e-8
    contact: bool = True
    disabled: tuple[str, ...] = ()
    enabled: tuple[str, ...] = ()

    def __post_init__(self):
        object.__setattr__(self, "timestep", number(self.timestep, "timestep"))
        if self.cone not in ("pyramidal", "elliptic"):
            raise DescriptionError(f"cone is {self.cone!r}; it is 'pyramidal' or 'elliptic' (option element)")
        if not self.timestep > 0:
            raise DescriptionError(f"timestep is {self.timestep}; it must be positive (option element)")
        if not isinstance(self.integrator, str) or self.integrator.lower() not in INTEGRATORS:
            raise DescriptionError(
                f"integrator is {self.integrator!r}; it is one of {', '.join(map(repr, INTEGRATORS))} (option element)"
            )
        put = object.__setattr__
        put(self, "integrator", self.integrator.lower())
        put(self, "impratio", bounded(self.impratio, "impratio (option element)", above=0))
        put(self, "iterations", integer(self.iterations, "iterations (option element)", least=1))
        put(self, "tolerance", bounded(self.tolerance, "tolerance (option element)", least=0))
        put(self, "contact", boolean(self.contact, "contact (option element)"))
        if self.solver not in SOLVERS:
            raise DescriptionError(
                f"solver is {self.solver!r}; it is {' or '.join(map(repr, SOLVERS))} (option element)"
            )
        for name, known in (("disabled", DISABLED), ("enabled", ENABLED)):
            object.__setattr__(self, name, _flags(getattr(self, name), name, known))


def _flags(values: Any, name: str, known: tuple[str, ...]) -> tuple[str, ...]:
    """Names of what is switched off or on. Raises DescriptionError, with those there are."""
    if isinstance(values, str) or not hasattr(values, "__iter__"):
        raise DescriptionError(
            f"{name} is {values!r}; give a tuple of some of {', '.join(known)} (option element)"
        )
    for value in values:
        if value not in known:
            raise DescriptionError(f"{name} has {value!r}; there are {', '.join(known)} (option element)")
    return tuple(values)


@validated
@dataclass(frozen=True)
class Keyframe:
    """A named state: q, v, control, time."""

    name: str
    q: tuple[float, ...] = ()
    v: tuple[float, ...] = ()
    control: tuple[float, ...] = ()
    activation: tuple[float, ...] = ()
    time: float = 0.0

    def __post_init__(self):
        for name in ("q", "v", "control", "activation"):
            values, where = getattr(self, name), f"{name} of keyframe {self.name!r}"
            object.__setattr__(self, name, number_tuple(values, where, least=0))
        object.__setattr__(self, "time", number(self.time, f"time of keyframe {self.name!r}"))

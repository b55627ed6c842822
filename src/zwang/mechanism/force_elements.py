"""Force elements as data: motors, actuators, springs, dampers and wrenches.

The generalised forces that they exert are computed in the package `zwang.dynamics`. Force elements with an
input (a Motor, an Actuator, a Wrench with the name of an input) are driven by `control`; all others are
passive.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

from zwang.errors import DescriptionError
from zwang.mechanism.constraints import Point, checked_point
from zwang.mechanism.controllers import Pid
from zwang.mechanism.joints import checked_range
from zwang.mechanism.numbers import (
    IDENTITY,
    Interval,
    Matrix3,
    Number,
    Numbers,
    Vector3,
    bounded,
    number,
    orientation_of,
    vector,
)
from zwang.mechanism.type_validation import validated
from zwang.scalar import are_constant, is_zero


@validated
@dataclass(frozen=True)
class Motor:
    """A motor on a joint: tau = gear * u [N m or N], with the input u, clipped to control_range.

    The input has the name of the motor.
    """

    name: str
    joint: str
    gear: Number = 1
    control_range: Interval | None = None

    def __post_init__(self):
        _check_name(self.name, "motor")
        object.__setattr__(self, "gear", number(self.gear, f"gear of motor {self.name!r}"))
        where = f"control_range of motor {self.name!r}"
        object.__setattr__(self, "control_range", _optional_range(self.control_range, where))


@validated
@dataclass(frozen=True)
class Muscle:
    """MuJoCo's muscle model: force = -strength * (u * FL(L) * FV(V) + FP(L)), with the activation u.

    strength: peak active force [N].
    length_range: actuator lengths [m] at which the scaled length L has the values `operating_range`.
    shortest, longest: scaled lengths between which there is active force.
    fastest: shortening velocity at which the force vanishes [L0/s].
    passive: FP at L = longest. lengthening: FV at saturation.
    Source: MuJoCo documentation, "Muscles".
    """

    strength: Number
    length_range: Interval
    operating_range: Interval = (0.75, 1.05)
    shortest: Number = 0.5
    longest: Number = 1.6
    fastest: Number = 1.5
    passive: Number = 1.3
    lengthening: Number = 1.2

    def __post_init__(self):
        for name in ("strength", "shortest", "longest", "fastest", "passive", "lengthening"):
            object.__setattr__(self, name, number(getattr(self, name), f"{name} of a muscle"))
        for name in ("length_range", "operating_range"):
            ends = vector(getattr(self, name), 2, f"{name} of a muscle")
            object.__setattr__(self, name, ends)
            if are_constant(*ends) and not ends[0] < ends[1]:
                raise DescriptionError(
                    f"{name} of a muscle is {ends}; the lower bound must be less than the upper bound"
                )


ACTIVATIONS = {
    "integrator": (),
    "filter": ("time constant",),
    "filterexact": ("time constant",),
    "muscle": ("activation time", "deactivation time", "width"),
}
"""The activation dynamics, by name, with the names of their parameters."""


@validated
@dataclass(frozen=True)
class Actuator:
    """MuJoCo's general actuator: force = gain * u + b0 + b1 * length + b2 * velocity.

    joint, tendon, frame, body: the transmission target, exactly one of the four. A body is a target of
        adhesion: a positive force pulls its shapes towards all shapes that they touch, shared equally by all
        contacts at a signed distance below margin + gap; length = 0.
    gear: on a joint, (g,) or, for ball and free joints, one number for each generalised velocity; on a
        tendon, (g,); on a frame, a wrench (force, torque) in that frame. length = gear * joint coordinate or
        tendon length.
    reference: for a frame, another frame in whose axes the gear is. length = gear * (position, rotation
        vector) of `frame` in `reference`; joints that move both have no moment arms.
    in_parent: for a ball or free joint, whether the rotational gear is in the axes of the parent body.
    slider, rod: a slider-crank transmission. `frame` is the pin of the crank, from which a rod of length
        `rod` [m] leads to a slider on the z axis of the frame `slider`; the length is the position of the
        slider.
    gain: (g0, g1, g2) of gain = g0 + g1 * length + g2 * velocity. bias: (b0, b1, b2).
    control_range, force_range, activation_range: the values to which input, force and activation are clipped.
    activation: activation dynamics, whose state then replaces the input as u: ("integrator", ()),
        ("filter", (time constant,)), ("filterexact", (time constant,)), or ("muscle", (activation time,
        deactivation time, width of the transition)); times in s.
    early: whether u is the activation at the end of the step, as its present derivative gives it, so that the
        force follows the input without the delay of a step. Error-controlled integrators have no such delay.
    muscle: a muscle model that computes the force instead of gain and bias.
    pid: a PID controller that computes the force instead of gain and bias.
    Source: MuJoCo documentation, "Actuation model".
    """

    name: str
    joint: str | None = None
    tendon: str | None = None
    frame: str | None = None
    body: str | None = None
    slider: str | None = None
    rod: Number = 0
    gear: Numbers = (1,)
    gain: Numbers = (1, 0, 0)
    bias: Numbers = (0, 0, 0)
    control_range: Interval | None = None
    force_range: Interval | None = None
    activation: tuple[str, tuple[Number, ...]] | None = None
    activation_range: Interval | None = None
    muscle: Muscle | None = None
    kind: str = "general"
    reference: str | None = None
    in_parent: bool = False
    early: bool = False
    pid: Pid | None = None

    @property
    def states(self) -> tuple[str, ...]:
        """The names of its states: those of its controller, NAME STATE, and its activation, NAME."""
        controller = () if self.pid is None else tuple(f"{self.name} {x}" for x in self.pid.states)
        return controller if self.activation is None else (*controller, self.name)

    def __post_init__(self):
        _check_name(self.name, "actuator")
        where = f"actuator {self.name!r}"
        if sum(target is not None for target in (self.joint, self.tendon, self.frame, self.body)) != 1:
            raise DescriptionError(
                f"{where} must have exactly one target: a joint, a tendon, a frame or a body"
            )
        object.__setattr__(self, "rod", number(self.rod, f"rod of {where}"))
        if self.slider is not None and (self.frame is None or (are_constant(self.rod) and self.rod <= 0)):
            raise DescriptionError(
                f"{where} has a slider; give also frame, the pin of the crank, and rod, a positive length"
            )
        if self.reference is not None and (self.frame is None or self.slider is not None):
            raise DescriptionError(f"{where} has a reference; give also frame, and no slider")
        if self.in_parent and self.joint is None:
            raise DescriptionError(f"in_parent of {where} is True; give also joint, a ball or free joint")
        if self.early and self.activation is None:
            raise DescriptionError(f"early of {where} is True; give also activation")
        for name in ("gear", "gain", "bias"):
            object.__setattr__(self, name, _numbers(getattr(self, name), f"{name} of {where}"))
        if self.body is not None and self.gear != (1,):
            raise DescriptionError(
                f"gear of {where}, an adhesion, is {self.gear}; it must be 1: change the gain"
            )
        for name, length in (("gain", len(self.gain)), ("bias", len(self.bias))):
            if length != 3:
                raise DescriptionError(
                    f"{name} of {where} has {length} numbers; it must have 3: the constant part and the "
                    "factors of length and velocity"
                )
        for name in ("control_range", "force_range", "activation_range"):
            object.__setattr__(self, name, _optional_range(getattr(self, name), f"{name} of {where}"))
        if self.activation is not None:
            object.__setattr__(
                self, "activation", _checked_activation(self.activation, f"activation of {where}")
            )
        if self.pid is not None:
            _check_pid(self, self.pid, where)


def _check_pid(actuator: Actuator, pid: Pid, where: str) -> None:
    """Raises DescriptionError for an actuator whose force is not that of its PID controller alone."""
    if actuator.muscle is not None or actuator.gain != (1, 0, 0) or actuator.bias != (0, 0, 0):
        raise DescriptionError(f"{where} has a PID controller; leave out muscle, gain and bias")
    if actuator.activation is not None and actuator.activation[0] == "muscle":
        raise DescriptionError(f"{where} has a PID controller, and its activation is that of a muscle")


def _checked_activation(value: Any, where: str) -> tuple[str, tuple[Number, ...]]:
    """`value` as (kind, parameters).

    Raises DescriptionError for an unknown kind or a wrong number of parameters.
    """
    if not (isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], str)):
        raise DescriptionError(f"{where} is {value!r}; give (kind, parameters), such as ('filter', (0.05,))")
    kind, parameters = value[0], _numbers(value[1], where)
    if kind not in ACTIVATIONS:
        raise DescriptionError(f"{where} has the kind {kind!r}; the kinds are {', '.join(ACTIVATIONS)}")
    names = ACTIVATIONS[kind]
    if len(parameters) != len(names):
        expected = f"({', '.join(names)})" if names else "none, ()"
        raise DescriptionError(
            f"{where}, {kind!r}, has {len(parameters)} parameters; it must have {expected}"
        )
    for name, x in zip(names, parameters, strict=True):
        if name == "time constant" and are_constant(x) and not x > 0:
            raise DescriptionError(f"the {name} in {where} is {x}; it must be positive")
    return kind, parameters


@validated
@dataclass(frozen=True)
class Damper:
    """A viscous damper on a joint: tau = -(c v + c2 v |v| + c3 v^3 + c4 v^3 |v| + ...) for each velocity v.

    coefficient: c [N m s/rad or N s/m], not negative. higher: (c2, c3, ...).
    """

    joint: str
    coefficient: Number
    higher: Numbers = ()

    def __post_init__(self):
        where = f"coefficient of the damper on joint {self.joint!r}"
        object.__setattr__(self, "coefficient", number(self.coefficient, where))
        object.__setattr__(self, "higher", vector(self.higher, len(self.higher), where))
        if are_constant(self.coefficient) and self.coefficient < 0:
            raise DescriptionError(f"{where} is {self.coefficient}; damping must not be negative")


@validated
@dataclass(frozen=True)
class Spring:
    """A spring on a joint: tau = -(k1 x + k2 x^2 + k3 x^3 + ...) with the deflection x = q - rest.

    stiffness: k1 [N m/rad or N/m], or (k1, k2, ...). rest: the coordinate at rest [rad or m].
    relative_to: another joint, on which the spring exerts the opposite torque; x = q - q_other - rest.
    On a ball joint, x is the rotation vector from the default attitude. On a free joint, the spring acts in
    addition on the displacement from the default position. Both admit one stiffness and no rest.
    """

    joint: str
    stiffness: Number | Numbers
    rest: Number = 0
    relative_to: str | None = None

    def __post_init__(self):
        where = f"stiffness of the spring on joint {self.joint!r}"
        object.__setattr__(self, "stiffness", _numbers(self.stiffness, where))
        if self.relative_to is not None and self.relative_to == self.joint:
            raise DescriptionError(
                f"the spring on joint {self.joint!r} has the same joint as relative_to; give another joint"
            )
        object.__setattr__(self, "rest", number(self.rest, f"rest of the spring on joint {self.joint!r}"))


@validated
@dataclass(frozen=True)
class PointSpring:
    """A spring and damper between two points, each given as (body name, position in the body frame [m]).

    The tension at the distance l is k (l - length) + c dl/dt, with stiffness k [N/m], length [m] at rest, and
    damping c [N s/m], which is not negative. Where the points coincide it has no direction, and the force is
    NaN, unless length and damping are zero. Compiled functions then return NaN, and functions on floats raise
    StateError for the acceleration.
    """

    a: Point
    b: Point
    stiffness: Number
    length: Number = 0
    damping: Number = 0

    def __post_init__(self):
        for end in ("a", "b"):
            object.__setattr__(self, end, checked_point(getattr(self, end), f"point {end} of a point spring"))
        for name in ("stiffness", "length", "damping"):
            object.__setattr__(self, name, number(getattr(self, name), f"{name} of a point spring"))
        if are_constant(self.damping) and self.damping < 0:
            raise DescriptionError(f"damping of a point spring is {self.damping}; it must not be negative")

    @property
    def is_linear(self) -> bool:
        """Whether the force is k times the difference of the points, without length and damping."""
        return is_zero(self.length) and is_zero(self.damping)


@validated
@dataclass(frozen=True)
class Wrench:
    """A force [N] and a torque [N m] on a body, applied at a point of the body frame [m].

    axes: "world" or "body", the axes of force and torque. input: name of an input, by which both are
    multiplied; by default they are constant.
    """

    body: str
    force: Vector3 = (0, 0, 0)
    torque: Vector3 = (0, 0, 0)
    point: Vector3 = (0, 0, 0)
    axes: Literal["world", "body"] = "world"
    input: str | None = None

    def __post_init__(self):
        for name in ("force", "torque", "point"):
            value = vector(getattr(self, name), 3, f"{name} of the wrench on body {self.body!r}")
            object.__setattr__(self, name, value)
        if self.input is not None:
            _check_name(self.input, "wrench input")
        if self.axes not in ("world", "body"):
            raise DescriptionError(
                f"axes of the wrench on body {self.body!r} is {self.axes!r}; give 'world' or 'body'"
            )


@validated
@dataclass(frozen=True)
class GravityCompensation:
    """Gravity compensation: the force -factor * mass * gravity at the centre of mass of a body.

    A factor of 1 cancels the weight. As in MuJoCo, the potential energy does not include it.
    """

    body: str
    factor: Number = 1

    def __post_init__(self):
        object.__setattr__(
            self, "factor", number(self.factor, f"factor of the gravity compensation of body {self.body!r}")
        )


@validated
@dataclass(frozen=True)
class FluidDrag:
    """The force of a surrounding fluid on a body, as on a box: MuJoCo's inertia-box model.

    With the velocity u of the box's centre relative to the fluid [m/s], the angular velocity w [rad/s], both
    in the axes of the box, its sides b and their mean d [m], force and torque about the centre are

        f_i = -3 pi viscosity d u_i - density / 2 b_j b_k |u_i| u_i
        n_i = -pi viscosity d^3 w_i - density / 64 b_i (b_j^4 + b_k^4) |w_i| w_i

    density [kg/m^3], viscosity [Pa s]: of the fluid. wind: its velocity in the world [m/s]. position [m],
    orientation: pose of the box in the body frame. Source: MuJoCo documentation, Computation, "Fluid forces".
    """

    body: str
    box: Vector3
    density: Number = 0
    viscosity: Number = 0
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY
    wind: Vector3 = (0, 0, 0)

    def __post_init__(self):
        where = f"the fluid drag of body {self.body!r}"
        for name in ("density", "viscosity"):
            value = bounded(getattr(self, name), f"{name} of {where}", least=0)
            object.__setattr__(self, name, value)
        for name in ("box", "position", "wind"):
            object.__setattr__(self, name, vector(getattr(self, name), 3, f"{name} of {where}"))
        for side in self.box:
            bounded(side, f"a side of the box of {where}", least=0)
        orientation = orientation_of(self.orientation, f"orientation of {where}")
        object.__setattr__(self, "orientation", orientation)


@validated
@dataclass(frozen=True)
class EllipsoidDrag:
    """The force of a surrounding fluid on a body, as on an ellipsoid: MuJoCo's ellipsoid model.

    semiaxes [m]: of the ellipsoid. blunt, slender, angular: coefficients of the drag along and across the
    motion, and of rotation. kutta, magnus: coefficients of the lift of translation, and of rotation.
    virtual_mass [m^3], virtual_inertia [m^5]: of the fluid that moves with the ellipsoid, along its axes,
    divided by the density.
    density, viscosity, position, orientation, wind: as for `FluidDrag`. The equations are those of
    `zwang.dynamics.ellipsoid_drag`. Source: MuJoCo documentation, Computation, "Fluid forces".
    """

    body: str
    semiaxes: Vector3
    density: Number = 0
    viscosity: Number = 0
    blunt: Number = 0.5
    slender: Number = 0.25
    angular: Number = 1.5
    kutta: Number = 1
    magnus: Number = 1
    virtual_mass: Vector3 = (0, 0, 0)
    virtual_inertia: Vector3 = (0, 0, 0)
    position: Vector3 = (0, 0, 0)
    orientation: Matrix3 = IDENTITY
    wind: Vector3 = (0, 0, 0)

    def __post_init__(self):
        where = f"the ellipsoid drag of body {self.body!r}"
        for name in ("density", "viscosity", "blunt", "slender", "angular", "kutta", "magnus"):
            value = bounded(getattr(self, name), f"{name} of {where}", least=0)
            object.__setattr__(self, name, value)
        for name in ("semiaxes", "virtual_mass", "virtual_inertia", "position", "wind"):
            object.__setattr__(self, name, vector(getattr(self, name), 3, f"{name} of {where}"))
        for axis in self.semiaxes:
            bounded(axis, f"a semi-axis of {where}", above=0)
        orientation = orientation_of(self.orientation, f"orientation of {where}")
        object.__setattr__(self, "orientation", orientation)


Force = (
    Motor
    | Actuator
    | Damper
    | Spring
    | PointSpring
    | Wrench
    | GravityCompensation
    | FluidDrag
    | EllipsoidDrag
)


def _check_name(name: object, what: str) -> None:
    if not isinstance(name, str) or not name:
        raise DescriptionError(f"the name of a {what} is {name!r}; it must be a non-empty string")


def _numbers(values: Any, where: str) -> tuple[Number, ...]:
    """`values`, one number or several, as a tuple."""
    several = isinstance(values, tuple | list) or getattr(values, "ndim", 0) == 1
    return vector(values, len(values), where) if several else (number(values, where),)


def _optional_range(ends: Any, where: str) -> tuple[Number, Number] | None:
    return None if ends is None else checked_range(ends, where)

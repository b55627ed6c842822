"""The table of the mechanics functions: name, arguments with their sizes, results, text, and description.

From it come the functions on floats (`reference`), the methods of a compiled mechanism with the shapes and
the validation of their arguments (`compiled`), exported source code (`CompiledMechanism.source`), and their
documentation.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from zwang.api.arguments import validation
from zwang.api.functions import sensor_functions
from zwang.dynamics import energy, generalised_forces, rnea
from zwang.dynamics import forward_dynamics_crba as mass_matrix_solve
from zwang.dynamics.base_inertial_parameters import with_base_parameters
from zwang.dynamics.crba import crba
from zwang.dynamics.forward_dynamics import free_accelerations
from zwang.errors import DescriptionError, UnknownNameError
from zwang.kinematics import configuration, jacobians, poses
from zwang.mechanism.labelled_arrays import without_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names
from zwang.simulation.quantities.prescribed_motion import prescribed_motion_forces

Documented = TypeVar("Documented", bound=Callable[..., Any])

CONFIGURATION, NV_VECTOR, CONTROL, ACTIVATION, TIME = "nq", "nv", "nu", "nz", ""


@dataclass(frozen=True)
class Argument:
    """An argument of a mechanics function: its name, size ("nq", "nv", "nu", "nz" or "", a scalar), unit,
    description, and in Python its default, as text.
    """

    name: str
    size: str
    unit: str
    description: str
    default: str = ""

    @property
    def shape(self) -> str:
        """The shape in one world, as text."""
        return f"({self.size},)" if self.size else "scalar"

    def shape_in(self, mechanism: Mechanism) -> Any:
        """The shape for a mechanism, as the compiler takes it: a length, or () for a scalar."""
        inputs = {CONTROL: len(control_names(mechanism)), ACTIVATION: len(activations(mechanism))}
        return {CONFIGURATION: mechanism.nq, NV_VECTOR: mechanism.nv, TIME: (), **inputs}[self.size]

    def without_labels(self, mechanism: Mechanism, value: Any, name: str) -> Any:
        """A labelled array (..., size) with its elements in the order of the mechanism; others as they are.

        name: the argument, for errors. Raises ShapeError for labels of other elements.
        """
        if type(value) is np.ndarray:
            return value
        if self.size == CONFIGURATION:
            return without_labels(value, mechanism.coordinate_names, name)
        if self.size == NV_VECTOR:
            return without_labels(value, mechanism.speed_names, name)
        return without_labels(value, control_names(mechanism), name) if self.size == CONTROL else value

    def validated(self, mechanism: Mechanism, value: Any) -> Any:
        """The value of one world as floats; quaternions are normalised. Raises ShapeError or StateError."""
        if self.size == CONFIGURATION:
            return validation.configuration(mechanism, value)
        if self.size == NV_VECTOR:
            return validation.nv_vector(mechanism, value, self.name)
        if self.size == CONTROL:
            return validation.control_vector(mechanism, value)
        if self.size == ACTIVATION:
            size = self.shape_in(mechanism)
            return validation.vector(value, size, self.name, self.description)
        return validation.real(value, self.name, self.description)


ARGUMENTS = {
    argument.name: argument
    for argument in (
        Argument("q", CONFIGURATION, "rad, m, unit quaternions (w, x, y, z)", "coordinates"),
        Argument("q0", CONFIGURATION, "rad, m, unit quaternions (w, x, y, z)", "first configuration"),
        Argument("q1", CONFIGURATION, "rad, m, unit quaternions (w, x, y, z)", "second configuration"),
        Argument("v", NV_VECTOR, "rad/s, m/s", "generalised velocities"),
        Argument("a", NV_VECTOR, "rad/s^2, m/s^2", "generalised accelerations"),
        Argument("tau", NV_VECTOR, "N m, N", "generalised forces in addition to the passive forces"),
        Argument("dt", TIME, "s", "a time in seconds"),
        Argument("control", CONTROL, "unit of each input", "inputs, or tau without inputs", "0"),
        Argument("activation", ACTIVATION, "1", "activations of actuators", "0"),
        Argument("time", TIME, "s", "time", "0"),
    )
}

OPTIONS = {
    "actuated": "the numbers of the generalised velocities with motors",
    "frame": "the name of a body or of a frame",
    "axes": 'the axes of the result: "world" (default), or "body" for those of the frame',
}
"""Arguments that are not arrays: each choice has a program of its own."""


@dataclass(frozen=True)
class Result:
    """A result of a mechanics function: its name, shape in one world as text, unit and description."""

    name: str
    shape: str
    unit: str
    description: str


@dataclass(frozen=True)
class MechanicsFunction:
    """A function of a mechanism and of arrays.

    text(mechanism, *arguments, *options) is evaluated on floats, and traced unless there is a `compiled`
    text: an equivalent one that takes fewer operations. symbols: whether the compiled text also takes the
    values of the symbols, after the mechanism. uses_mass_matrix: whether the program contains every element
    of the mass matrix. keywords: description of keyword-only arguments, which lead to other results.
    depends_on_step: whether the text also takes a `StepForm`, step=; by default that of the options.
    """

    name: str
    arguments: tuple[str, ...]
    results: tuple[Result, ...]
    summary: str
    text: Callable[..., Any] | None
    compiled: Callable[..., Any] | None = None
    options: tuple[str, ...] = ()
    raises: str = ""
    source: str = ""
    symbols: bool = False
    uses_mass_matrix: bool = False
    keywords: str = ""
    depends_on_step: bool = False

    def documentation(self, batch: str = "") -> str:
        """The docstring: summary, arguments with shape and unit, results, exceptions, source.

        batch: put in front of all shapes, "..., " for functions of many worlds.
        """

        def shape(text: str) -> str:
            if batch and text.startswith("("):
                return text.replace("(", f"({batch}", 1).replace(",)", ")")
            return "(...)" if batch and text == "scalar" else text

        lines = [self.summary, ""]
        for name in self.arguments:
            x = ARGUMENTS[name]
            default = f"; default {x.default}" if x.default else ""
            lines.append(f"{name}: {shape(x.shape)} [{x.unit}], {x.description}{default}.")
        lines += [f"{name}: {OPTIONS[name]}." for name in self.options]
        lines += [""]
        for r in self.results:
            lines.append(f"Returns {r.name} {shape(r.shape)} [{r.unit}]: {r.description}.")
        if self.raises:
            lines.append(f"Raises {self.raises}.")
        if self.source:
            lines.append(f"Source: {self.source}.")
        lines += ["", self.keywords] if self.keywords else []
        return "\n".join(lines)


# ------------------------------------------------------------------------------------------------- texts


def _forward(m: Mechanism, q: Any, v: Any, tau: Any) -> Any:
    return mass_matrix_solve.forward_dynamics_crba(
        m.tree, q, v, tau + generalised_forces.passive_forces(m, q, v)
    )


def _forward_compiled(m: Mechanism, q: Any, v: Any, tau: Any) -> Any:
    return free_accelerations(m.tree, q, v, tau + generalised_forces.passive_forces(m, q, v))


def _inverse(m: Mechanism, q: Any, v: Any, a: Any) -> Any:
    return rnea.rnea(m.tree, q, v, a) - generalised_forces.passive_forces(m, q, v)


def inverse_compiled(m: Mechanism, q: Any, v: Any, a: Any) -> Any:
    """Inverse dynamics with base inertial parameters."""
    return rnea.rnea(with_base_parameters(m.tree), q, v, a) - generalised_forces.passive_forces(m, q, v)


def _energy(m: Mechanism, q: Any, v: Any) -> tuple[Any, Any]:
    potential = energy.potential_energy(m.tree, q) + generalised_forces.spring_energy(m, q)
    return energy.kinetic_energy(m.tree, q, v), potential


def _zwang_by_body(m: Mechanism, q: Any, v: Any, tau: Any, a: Any) -> dict[str, Any]:
    return energy.zwang_by_body(m.tree, q, v, tau + generalised_forces.passive_forces(m, q, v), a)


def _zwang(m: Mechanism, q: Any, v: Any, tau: Any, a: Any) -> Any:
    return sum(float(part) for part in _zwang_by_body(m, q, v, tau, a).values())


def _zwang_compiled(m: Mechanism, q: Any, v: Any, tau: Any, a: Any) -> Any:
    return energy.zwang_of(m.tree, q, v, tau + generalised_forces.passive_forces(m, q, v), a)


# ------------------------------------------------------------------------------------------------- table

_GAUSS = "Gauss, Ueber ein neues allgemeines Grundgesetz der Mechanik (1829)"
_STATE = ("q", "v", "control", "activation", "time")
_WITH_MOTORS = """With `actuated` or `independent`: the forces of motors in a mechanism with hard constraints
(loops, couplings, rolling, formulas), which then act, as a `ConstrainedInverseDynamics`.

actuated: names of generalised velocities with motors, by default those of `independent`; none of them where
constraints drive the mechanism.
independent: names of joints of one coordinate, as many as there are degrees of freedom; q, v, a (N, n) are
then theirs alone, each sample near the one before, or (N,) for one joint, and those of all others follow from
the loops. Without it, q, v and a are those of the whole mechanism, and must satisfy the constraints.
start (nq,): a configuration near the first sample, which chooses the branch of the loops; default home.
time (...) [s]: of time-dependent constraints, default 0.
Redundant motors share the load by the least sum of the squares of their forces, and then redundant constraint
rows theirs. Limits and contacts do not act.
Raises StateError, with the residual, for a motion that breaks the constraints; SolveError for one that the
motors cannot make, or loops that cannot be closed; DependentVelocitiesError; UnknownNameError; and
DescriptionError for soft or non-ideal constraints and dry friction."""
_WITHOUT_MASS = "DescriptionError for a mechanism without mass, which has no centre of mass"
_UNKNOWN_FRAME = "UnknownNameError with the names of all frames"

_FUNCTIONS = (
    MechanicsFunction(
        "forward_dynamics",
        ("q", "v", "tau"),
        (Result("a", "(nv,)", "rad/s^2, m/s^2", "generalised accelerations"),),
        "Generalised accelerations under the forces tau, without constraints: forward dynamics.",
        _forward,
        _forward_compiled,
        raises="StateError for a singular mass matrix, on floats",
        source="Featherstone, Rigid Body Dynamics Algorithms (2008), Chapter 6 (CRBA, on floats) and "
        "Table 7.1 (ABA, compiled)",
    ),
    MechanicsFunction(
        "inverse_dynamics",
        ("q", "v", "a"),
        (Result("tau", "(nv,)", "N m, N", "generalised forces"),),
        "Generalised forces that cause the accelerations a, by the recursive Newton-Euler algorithm.",
        _inverse,
        inverse_compiled,
        source="Featherstone (2008), Table 5.1",
        keywords=_WITH_MOTORS,
    ),
    MechanicsFunction(
        "mass_matrix",
        ("q",),
        (
            Result(
                "M",
                "(nv, nv)",
                "kg m^2, kg m, kg",
                "symmetric, positive definite; 1/2 v^T M v is kinetic energy",
            ),
        ),
        "Mass matrix by the composite-rigid-body algorithm.",
        lambda m, q: crba(m.tree, q),
        lambda m, q: crba(with_base_parameters(m.tree), q),
        source="Featherstone (2008), Table 6.2",
        uses_mass_matrix=True,
    ),
    MechanicsFunction(
        "bias_forces",
        ("q", "v"),
        (
            Result(
                "h",
                "(nv,)",
                "N m, N",
                "Coriolis, centrifugal and gravity forces, without springs and dampers",
            ),
        ),
        "Bias forces by the recursive Newton-Euler algorithm.",
        lambda m, q, v: rnea.bias_forces(m.tree, q, v),
        lambda m, q, v: rnea.bias_forces(with_base_parameters(m.tree), q, v),
        source="Featherstone (2008), Table 5.1",
    ),
    MechanicsFunction(
        "frame_pose",
        ("q",),
        (
            Result("R", "(3, 3)", "1", "rotation from frame axes to world axes"),
            Result("p", "(3,)", "m", "position of the frame's origin in world axes"),
        ),
        "Pose (R, p) of a body or a frame in the world.",
        lambda m, q, frame: tuple(poses.frame_pose(m.tree, q, frame)),
        options=("frame",),
        raises=_UNKNOWN_FRAME,
    ),
    MechanicsFunction(
        "frame_jacobian",
        ("q",),
        (Result("J", "(6, nv)", "m, 1", "J v is the velocity of the origin, then the angular velocity"),),
        "Jacobian of a body or a frame, linear rows first.",
        lambda m, q, frame, axes: jacobians.frame_jacobian(m.tree, q, frame, axes),
        options=("frame", "axes"),
        raises=f"{_UNKNOWN_FRAME}, and DescriptionError for other axes",
    ),
    MechanicsFunction(
        "frame_jacobian_rate",
        ("q", "v"),
        (Result("Jdot v", "(6,)", "m/s^2, rad/s^2", "in world axes, linear elements first"),),
        "Bias acceleration Jdot v of a body or a frame: its acceleration at constant v.",
        lambda m, q, v, frame: jacobians.frame_jacobian_rate(m.tree, q, v, frame),
        options=("frame",),
        raises=_UNKNOWN_FRAME,
    ),
    MechanicsFunction(
        "energy",
        ("q", "v"),
        (
            Result("kinetic", "scalar", "J", "kinetic energy"),
            Result(
                "potential", "scalar", "J", "energy of gravity, zero at the world's origin, and of springs"
            ),
        ),
        "Kinetic and potential energy.",
        _energy,
    ),
    MechanicsFunction(
        "momentum",
        ("q", "v"),
        (
            Result(
                "momentum", "(6,)", "kg m/s, kg m^2/s", "linear; angular about the centre of mass; world axes"
            ),
        ),
        "Linear and angular momentum of all bodies.",
        lambda m, q, v: energy.momentum(m.tree, q, v),
        raises=_WITHOUT_MASS,
    ),
    MechanicsFunction(
        "mass_centre",
        ("q",),
        (Result("p", "(3,)", "m", "position in world axes"),),
        "Centre of mass of all bodies.",
        lambda m, q: energy.mass_centre(m.tree, q),
        raises=_WITHOUT_MASS,
    ),
    MechanicsFunction(
        "integrate_configuration",
        ("q", "v", "dt"),
        (Result("q", "(nq,)", "rad, m, unit quaternions (w, x, y, z)", "coordinates after the time dt"),),
        "Configuration after the time dt at constant velocities v; quaternions by their exponential.",
        lambda m, q, v, dt: configuration.integrate_configuration(m.tree, q, v, dt),
    ),
    MechanicsFunction(
        "difference_configuration",
        ("q1", "q0"),
        (Result("v", "(nv,)", "rad/s, m/s", "velocities that lead from q0 to q1 in one second"),),
        "Velocities from q0 to q1 in one second: the inverse of `integrate_configuration`.",
        lambda m, q1, q0: configuration.difference_configuration(m.tree, q1, q0),
    ),
    MechanicsFunction(
        "zwang_of",
        ("q", "v", "tau", "a"),
        (Result("Z", "scalar", "W/s", "Gauss's measure, less a part that does not depend on a"),),
        "Gauss's measure Z(a), which the true acceleration minimises.",
        _zwang,
        _zwang_compiled,
        source=_GAUSS,
    ),
    MechanicsFunction(
        "zwang_by_body",
        ("q", "v", "tau", "a"),
        (
            Result(
                "parts",
                "a dictionary",
                "W/s",
                'by body; "generalised forces" with rotors',
            ),
        ),
        "The part of each body in Gauss's measure Z(a).",
        _zwang_by_body,
        source=_GAUSS,
    ),
    MechanicsFunction(
        "sensors",
        _STATE,
        (Result("values", "a dictionary", "see the sensor", "(size,) of each sensor, by its name"),),
        "Values of all sensors, by name: those of MuJoCo's sensordata.",
        sensor_functions.sensors,
        raises="SolveError if the constraint solver fails",
        source="MuJoCo documentation, XML reference, sensor",
        uses_mass_matrix=True,
        depends_on_step=True,
    ),
    MechanicsFunction(
        "frame_velocity",
        ("q", "v"),
        (Result("velocity", "(6,)", "m/s, rad/s", "of the origin, then angular"),),
        "Velocity of a body or a frame, linear elements first.",
        sensor_functions.frame_velocity,
        options=("frame", "axes"),
        raises=f"{_UNKNOWN_FRAME}, and DescriptionError for other axes",
    ),
    MechanicsFunction(
        "frame_acceleration",
        ("q", "v", "a"),
        (Result("acceleration", "(6,)", "m/s^2, rad/s^2", "of the origin, then angular; without gravity"),),
        "Acceleration of a body or a frame, linear elements first.",
        sensor_functions.frame_acceleration,
        options=("frame", "axes"),
        raises=f"{_UNKNOWN_FRAME}, and DescriptionError for other axes",
    ),
    MechanicsFunction(
        "body_quantities",
        ("q", "v"),
        (
            Result("com", "(bodies + 1, 3)", "m", "centres of mass, the world's row first"),
            Result("subtree_com", "(bodies + 1, 3)", "m", "centres of mass of the bodies' subtrees"),
            Result("cinert", "(bodies + 1, 10)", "kg m^2, kg m, kg", "inertias about the tree's centre"),
            Result("cvel", "(bodies + 1, 6)", "rad/s, m/s", "velocities, angular first, there"),
        ),
        "Centres of mass, inertias and velocities of all bodies, as in MuJoCo's mjData.",
        sensor_functions.body_quantities,
        source="MuJoCo documentation, mjData: xipos, subtree_com, cinert, cvel",
    ),
    MechanicsFunction(
        "external_wrenches",
        _STATE,
        (Result("cfrc_ext", "(bodies + 1, 6)", "N m, N", "torque about the tree's centre of mass; force"),),
        "Wrenches of contacts, constraints and spatial tendons on all bodies: MuJoCo's cfrc_ext.",
        sensor_functions.external_wrenches,
        raises="SolveError if the constraint solver fails",
        source="MuJoCo documentation, mjData: cfrc_ext",
        uses_mass_matrix=True,
        depends_on_step=True,
    ),
)

FUNCTIONS = {function.name: function for function in _FUNCTIONS}

MOTOR_FORCES = MechanicsFunction(
    "constrained_inverse_dynamics",
    ("q", "v", "a", "time"),
    (
        Result("forces", "(k,)", "N m, N", "forces of the motors"),
        Result("multipliers", "(rows,)", "N, N m", "forces of the rows of the hard constraints"),
        Result("remainder", "(nv,)", "N m, N", "what motors and constraints together cannot exert"),
        Result("violation", "(rows,)", "m, rad", "violations of the constraints"),
        Result("velocity", "(rows,)", "m/s, rad/s", "residuals of the velocities"),
        Result("acceleration", "(rows,)", "m/s^2, rad/s^2", "residuals of the accelerations"),
    ),
    "Forces of motors at some of the generalised velocities, by number, and of the hard constraints.",
    lambda m, q, v, a, time, actuated: tuple(prescribed_motion_forces(m, actuated, q, v, a, time)),
    options=("actuated",),
    uses_mass_matrix=True,
)
"""The compiled function of `inverse_dynamics` with motors; `actuated` is a tuple of numbers."""


def evaluate(name: str, mechanism: Mechanism, *given: Any, options: Sequence[str] = ()) -> Any:
    """A function of the table on floats, for one world, with validated arguments.

    Raises ArgumentError, ParameterError, ShapeError or StateError, and what the table lists.
    """
    function = FUNCTIONS[name]
    m = validation.numeric_mechanism(mechanism)
    check_axes(dict(zip(function.options, options, strict=True)))
    values = [
        ARGUMENTS[argument].validated(m, value)
        for argument, value in zip(function.arguments, given, strict=True)
    ]
    assert function.text is not None
    return function.text(m, *values, *options)


def check_axes(options: dict[str, str]) -> None:
    """Raises DescriptionError for axes other than "world" and "body"."""
    axes = options.get("axes", "world")
    if not isinstance(axes, str) or axes not in ("world", "body"):
        raise DescriptionError(f"axes is {axes!r}; it must be 'world' or 'body'")


def documented(batch: str = "") -> Callable[[Documented], Documented]:
    """Decorator: the docstring of a function of the table is that of the table."""

    def decorate(function: Documented) -> Documented:
        function.__doc__ = FUNCTIONS[function.__name__].documentation(batch)
        return function

    return decorate


def floats(array: Any) -> np.ndarray:
    """An array of floats."""
    return np.array(array, dtype=float)


def unknown_function(name: object, known: Sequence[str]) -> UnknownNameError:
    """The error for a function that is not in the table."""
    return UnknownNameError("function", name, known)

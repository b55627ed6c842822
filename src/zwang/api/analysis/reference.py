"""The mechanics functions on floats, for one world: the reference for the compiled functions.

Their arguments, validation and documentation are those of the `function_table`. tau is added to the passive
forces of the mechanism. Constraints, limits and contacts are not included; see `constrained_dynamics` and
`simulate`. All raise ShapeError or StateError for invalid arrays, and ParameterError for symbols without
values.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, overload

import numpy as np
import numpy.typing as npt

from zwang.api.analysis.constrained_dynamics import check_inertia
from zwang.api.arguments.validation import checked_mechanism, configuration, numeric_mechanism, or_of_keyframe
from zwang.api.compilation.constrained_inverse_dynamics import (
    ConstrainedInverseDynamics,
    on_floats,
    prescribed_motion,
)
from zwang.api.functions.function_table import ARGUMENTS, documented, evaluate, floats
from zwang.api.functions.sensor_functions import BodyQuantities, by_sensor
from zwang.deprecation import RenamedKeys
from zwang.dynamics.crba import crba
from zwang.dynamics.energy import Energy
from zwang.kinematics.poses import Pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments


@validated_arguments()
@documented()
def forward_dynamics(
    mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike
) -> np.ndarray:
    """Generalised accelerations under the forces tau, without constraints: forward dynamics."""
    with np.errstate(all="ignore"):  # reported below
        a = floats(evaluate("forward_dynamics", mechanism, q, v, tau))
    check_inertia(mechanism, crba(mechanism.tree, configuration(mechanism, q)), a)
    return a


@overload
def inverse_dynamics(
    mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike, a: npt.ArrayLike
) -> np.ndarray: ...
@overload
def inverse_dynamics(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    a: npt.ArrayLike,
    *,
    actuated: str | Sequence[str],
    independent: str | Sequence[str] | None = None,
    start: npt.ArrayLike | None = None,
    time: npt.ArrayLike = 0.0,
) -> ConstrainedInverseDynamics: ...
@overload
def inverse_dynamics(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    a: npt.ArrayLike,
    *,
    actuated: None = None,
    independent: str | Sequence[str],
    start: npt.ArrayLike | None = None,
    time: npt.ArrayLike = 0.0,
) -> ConstrainedInverseDynamics: ...
@validated_arguments()
@documented()
def inverse_dynamics(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    a: npt.ArrayLike,
    *,
    actuated: str | Sequence[str] | None = None,
    independent: str | Sequence[str] | None = None,
    start: npt.ArrayLike | None = None,
    time: npt.ArrayLike = 0.0,
) -> np.ndarray | ConstrainedInverseDynamics:
    """Generalised forces that cause the accelerations a, by the recursive Newton-Euler algorithm."""
    if actuated is None and independent is None:
        return floats(evaluate("inverse_dynamics", mechanism, q, v, a))
    m = numeric_mechanism(mechanism)
    return on_floats(prescribed_motion(m, (q, v, a), actuated, independent, start), time)


@validated_arguments()
@documented()
def mass_matrix(mechanism: Mechanism, q: npt.ArrayLike) -> np.ndarray:
    """Mass matrix by the composite-rigid-body algorithm."""
    return floats(evaluate("mass_matrix", mechanism, q))


@validated_arguments()
@documented()
def bias_forces(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
    """Bias forces by the recursive Newton-Euler algorithm."""
    return floats(evaluate("bias_forces", mechanism, q, v))


@validated_arguments()
@documented()
def frame_pose(mechanism: Mechanism, q: npt.ArrayLike, frame: str) -> Pose:
    """Pose (R, p) of a body or a frame in the world."""
    R, p = evaluate("frame_pose", mechanism, q, options=(frame,))
    return Pose(floats(R), floats(p))


@validated_arguments("axes")
@documented()
def frame_jacobian(
    mechanism: Mechanism, q: npt.ArrayLike, frame: str, axes: Literal["world", "body"] = "world"
) -> np.ndarray:
    """Jacobian of a body or a frame, linear rows first."""
    return floats(evaluate("frame_jacobian", mechanism, q, options=(frame, axes)))


@validated_arguments()
@documented()
def frame_jacobian_rate(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike, frame: str) -> np.ndarray:
    """Bias acceleration Jdot v of a body or a frame: its acceleration at constant v."""
    return floats(evaluate("frame_jacobian_rate", mechanism, q, v, options=(frame,)))


@validated_arguments()
@documented()
def energy(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> Energy:
    """Kinetic and potential energy."""
    kinetic, potential = evaluate("energy", mechanism, q, v)
    return Energy(float(kinetic), float(potential))


@validated_arguments()
@documented()
def momentum(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
    """Linear and angular momentum of all bodies."""
    return floats(evaluate("momentum", mechanism, q, v))


@validated_arguments()
@documented()
def mass_centre(mechanism: Mechanism, q: npt.ArrayLike) -> np.ndarray:
    """Centre of mass of all bodies."""
    return floats(evaluate("mass_centre", mechanism, q))


@validated_arguments()
@documented()
def integrate_configuration(
    mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike, dt: float
) -> np.ndarray:
    """Configuration after the time dt at constant velocities v; quaternions by their exponential."""
    return floats(evaluate("integrate_configuration", mechanism, q, v, dt))


@validated_arguments()
@documented()
def difference_configuration(mechanism: Mechanism, q1: npt.ArrayLike, q0: npt.ArrayLike) -> np.ndarray:
    """Velocities from q0 to q1 in one second: the inverse of `integrate_configuration`."""
    return floats(evaluate("difference_configuration", mechanism, q1, q0))


@validated_arguments()
@documented()
def zwang_of(
    mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike, a: npt.ArrayLike
) -> float:
    """Gauss's measure Z(a), which the true acceleration minimises."""
    return float(evaluate("zwang_of", mechanism, q, v, tau, a))


@validated_arguments()
@documented()
def zwang_by_body(
    mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike, tau: npt.ArrayLike, a: npt.ArrayLike
) -> dict[str, float]:
    """The part of each body in Gauss's measure Z(a)."""
    parts = evaluate("zwang_by_body", mechanism, q, v, tau, a)
    found = {name: float(part) for name, part in parts.items()}
    return RenamedKeys(found, "zwang_by_body", {"efforts": "generalised forces"})


@validated_arguments()
@documented()
def sensors(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    control: npt.ArrayLike | None = None,
    activation: npt.ArrayLike | None = None,
    time: float = 0.0,
) -> dict[str, np.ndarray]:
    """Values of all sensors, by name: those of MuJoCo's sensordata."""
    values = floats(evaluate("sensors", mechanism, q, v, *_inputs(mechanism, q, control, activation), time))
    return by_sensor(mechanism, values)


@validated_arguments("axes")
@documented()
def frame_velocity(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    frame: str,
    axes: Literal["world", "body"] = "world",
) -> np.ndarray:
    """Velocity of a body or a frame, linear elements first."""
    return floats(evaluate("frame_velocity", mechanism, q, v, options=(frame, axes)))


@validated_arguments("axes")
@documented()
def frame_acceleration(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    a: npt.ArrayLike,
    frame: str,
    axes: Literal["world", "body"] = "world",
) -> np.ndarray:
    """Acceleration of a body or a frame, linear elements first."""
    return floats(evaluate("frame_acceleration", mechanism, q, v, a, options=(frame, axes)))


@validated_arguments()
@documented()
def body_quantities(mechanism: Mechanism, q: npt.ArrayLike, v: npt.ArrayLike) -> BodyQuantities:
    """Centres of mass, inertias and velocities of all bodies, as in MuJoCo's mjData."""
    return BodyQuantities(*(floats(x) for x in evaluate("body_quantities", mechanism, q, v)))


@validated_arguments()
@documented()
def external_wrenches(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    control: npt.ArrayLike | None = None,
    activation: npt.ArrayLike | None = None,
    time: float = 0.0,
) -> np.ndarray:
    """Wrenches of contacts, constraints and spatial tendons on all bodies: MuJoCo's cfrc_ext."""
    inputs = _inputs(mechanism, q, control, activation)
    return floats(evaluate("external_wrenches", mechanism, q, v, *inputs, time))


def _inputs(
    mechanism: Mechanism, q: npt.ArrayLike, control: npt.ArrayLike | None, activation: npt.ArrayLike | None
) -> tuple[npt.ArrayLike, npt.ArrayLike]:
    """Control and activation; where they are None, those of the keyframe which q names, or zero."""
    m = checked_mechanism(mechanism)
    control, activation = or_of_keyframe(m, q, control=control, activation=activation)
    return tuple(
        np.zeros(ARGUMENTS[name].shape_in(m)) if value is None else value
        for name, value in (("control", control), ("activation", activation))
    )  # type: ignore[return-value]

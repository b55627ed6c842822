"""The float reference: every function of the front door for one world, slow and obvious, what the tests trust.

q (nq,): coordinates [rad, m, unit quaternions (w, x, y, z)]; v, a (nv,): speeds and their rates; tau (nv,): efforts [N m, N]. tau is
added to what springs, dampers and constant wrenches of the mechanism give. Constraints, limits and contacts do not act here;
they act in `constrained_dynamics` and `simulate`.
All raise ShapeError or StateError for arrays that do not fit, ParameterError for symbols without values.
"""

from __future__ import annotations

from typing import Any, Literal

import numpy as np

from zwang.api import validation
from zwang.dynamics import crba as matrices
from zwang.dynamics import energy as energies
from zwang.dynamics import forward_dynamics_crba as mass_matrix_solve
from zwang.dynamics import generalised_forces, rnea
from zwang.errors import DescriptionError, StateError
from zwang.kinematics import configuration, jacobians, poses
from zwang.kinematics.poses import Pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments


@validated_arguments()
def forward_dynamics(mechanism: Mechanism, q: Any, v: Any, tau: Any) -> np.ndarray:
    """The accelerations a (nv,) [rad/s^2, m/s^2] that the efforts tau give.

    Raises StateError where a mass matrix is singular. Source: seed 000, H(q) a + h(q, v) = J^T w; solved with the sparsity of the tree (Featherstone, RBDA, Ch. 6).
    """
    m = validation.numeric_mechanism(mechanism)
    q, v, tau = validation.configuration(m, q), validation.nv_vector(m, v, "v"), validation.nv_vector(m, tau, "tau")
    with np.errstate(all="ignore"):  # told below
        a = _floats(mass_matrix_solve.forward_dynamics_crba(m.tree, q, v, tau + generalised_forces.passive_forces(m, q, v)))
    if not np.isfinite(a).all():
        k = int(np.argmin(np.isfinite(a)))
        raise StateError(
            f"the acceleration of speed {m.speed_names[k]!r} is not finite: either what it moves has no inertia in this "
            "configuration (give a body an inertia, or the joint an armature), or numbers overflow"
        )
    return a


@validated_arguments()
def inverse_dynamics(mechanism: Mechanism, q: Any, v: Any, a: Any) -> np.ndarray:
    """The efforts tau (nv,) [N m, N] that give the accelerations a: `forward_dynamics_crba` the other way round."""
    m = validation.numeric_mechanism(mechanism)
    q, v, a = validation.configuration(m, q), validation.nv_vector(m, v, "v"), validation.nv_vector(m, a, "a")
    return _floats(rnea.rnea(m.tree, q, v, a) - generalised_forces.passive_forces(m, q, v))


@validated_arguments()
def mass_matrix(mechanism: Mechanism, q: Any) -> np.ndarray:
    """H (nv, nv), symmetric, positive definite [kg m^2, kg m, kg]; kinetic energy is 1/2 v^T H v."""
    m = validation.numeric_mechanism(mechanism)
    return _floats(matrices.crba(m.tree, validation.configuration(m, q)))


@validated_arguments()
def bias_forces(mechanism: Mechanism, q: Any, v: Any) -> np.ndarray:
    """h (nv,) [N m, N]: Coriolis, centrifugal and gravity efforts, without springs and dampers."""
    m = validation.numeric_mechanism(mechanism)
    return _floats(rnea.bias_forces(m.tree, validation.configuration(m, q), validation.nv_vector(m, v, "v")))


@validated_arguments()
def frame_pose(mechanism: Mechanism, q: Any, frame: str) -> Pose:
    """(R, p) of a body's or a named frame in the world: rotation (3, 3) and origin (3,) [m].

    Raises UnknownNameError with the names there are.
    """
    m = validation.numeric_mechanism(mechanism)
    R, p = poses.frame_pose(m.tree, validation.configuration(m, q), frame)
    return Pose(_floats(R), _floats(p))


@validated_arguments()
def frame_jacobian(
    mechanism: Mechanism, q: Any, frame: str, axes: Literal["world", "body"] = "world"
) -> np.ndarray:
    """J (6, nv), linear rows first: J v is the velocity of the frame's origin and its angular velocity.

    In world axes or in the frame's own. Raises UnknownNameError, and ValueError for other axes.
    """
    m = validation.numeric_mechanism(mechanism)
    if axes not in ("world", "body"):
        raise DescriptionError(f"axes is {axes!r}; it must be 'world' or 'body'")
    return _floats(jacobians.frame_jacobian(m.tree, validation.configuration(m, q), frame, axes))


@validated_arguments()
def frame_jacobian_rate(mechanism: Mechanism, q: Any, v: Any, frame: str) -> np.ndarray:
    """J_dot v (6,) in world axes: the frame's acceleration [m/s^2, rad/s^2] while the speeds do not change."""
    m = validation.numeric_mechanism(mechanism)
    q, v = validation.configuration(m, q), validation.nv_vector(m, v, "v")
    return _floats(jacobians.frame_jacobian_rate(m.tree, q, v, frame))


@validated_arguments()
def energy(mechanism: Mechanism, q: Any, v: Any) -> energies.Energy:
    """(kinetic, potential) [J]: of motion; of height, zero at the world's origin, and of springs."""
    m = validation.numeric_mechanism(mechanism)
    q, v = validation.configuration(m, q), validation.nv_vector(m, v, "v")
    potential = energies.potential_energy(m.tree, q) + generalised_forces.spring_energy(m, q)
    return energies.Energy(float(energies.kinetic_energy(m.tree, q, v)), float(potential))


@validated_arguments()
def momentum(mechanism: Mechanism, q: Any, v: Any) -> np.ndarray:
    """Linear momentum [kg m/s] and angular momentum about the mass centre [kg m^2/s] (6,), world axes."""
    m = validation.numeric_mechanism(mechanism)
    return _floats(energies.momentum(m.tree, validation.configuration(m, q), validation.nv_vector(m, v, "v")))


@validated_arguments()
def mass_centre(mechanism: Mechanism, q: Any) -> np.ndarray:
    """The centre of mass of all bodies (3,) in the world [m]."""
    m = validation.numeric_mechanism(mechanism)
    return _floats(energies.mass_centre(m.tree, validation.configuration(m, q)))


@validated_arguments()
def integrate_configuration(mechanism: Mechanism, q: Any, v: Any, dt: float) -> np.ndarray:
    """q after moving with the speeds v for dt [s]; quaternions turn by their exponential and stay unit."""
    m = validation.numeric_mechanism(mechanism)
    q, v = validation.configuration(m, q), validation.nv_vector(m, v, "v")
    return _floats(
        configuration.integrate_configuration(m.tree, q, v, validation.real(dt, "dt", "a time in seconds"))
    )


@validated_arguments()
def difference_configuration(mechanism: Mechanism, q1: Any, q0: Any) -> np.ndarray:
    """The speeds (nv,) that lead from q0 to q1 in one second: the inverse of `integrate_configuration`."""
    m = validation.numeric_mechanism(mechanism)
    q1, q0 = validation.configuration(m, q1), validation.configuration(m, q0)
    return _floats(configuration.difference_configuration(m.tree, q1, q0))


@validated_arguments()
def zwang_of(mechanism: Mechanism, q: Any, v: Any, tau: Any, a: Any) -> float:
    """Z(a), the quantity that the true acceleration makes least, less a part that no acceleration changes [W/s].

    Source: Gauss (1829); seed 000.
    """
    return float(sum(zwang_by_body(mechanism, q, v, tau, a).values()))


@validated_arguments()
def zwang_by_body(mechanism: Mechanism, q: Any, v: Any, tau: Any, a: Any) -> dict[str, float]:
    """Each body's part in `zwang_of`, by name, and the part of efforts and rotors as "efforts"."""
    m = validation.numeric_mechanism(mechanism)
    q, v = validation.configuration(m, q), validation.nv_vector(m, v, "v")
    tau, a = validation.nv_vector(m, tau, "tau"), validation.nv_vector(m, a, "a")
    parts = energies.zwang_by_body(m.tree, q, v, tau + generalised_forces.passive_forces(m, q, v), a)
    return {name: float(part) for name, part in parts.items()}


def _floats(array: Any) -> np.ndarray:
    return np.array(array, dtype=float)

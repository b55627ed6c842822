"""Mass matrix, inertial forces and kinetic energy of tendons with armature.

A tendon of length l(q) with the Jacobian J (nv,) and the armature a has the kinetic energy a/2 (J v)^2 and
the inertial force a J^T (J vdot + Jdot v). Source: MuJoCo documentation, XML reference, tendon/armature.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.norms import TINY
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.tendon_inertia import TendonInertia, TendonSegment
from zwang.scalar import divide, less, sqrt, where


def tendon_mass_matrix(kinematics: Kinematics) -> Any:
    """sum a J^T J (nv, nv) of all tendons with armature; 0 without any."""
    found: Any = 0
    for tendon in kinematics.tree.tendon_inertias:
        J = _jacobian(kinematics, tendon)
        found = found + tendon.armature * np.outer(J, J)
    return found


def tendon_inertial_force(kinematics: Kinematics, a: Any) -> Any:
    """sum a_t J^T (J a + Jdot v) (nv,) of all tendons for the generalised accelerations a (nv,); 0 without
    any.
    """
    found: Any = 0
    for tendon in kinematics.tree.tendon_inertias:
        found = found + inertial_tension(kinematics, tendon, a) * _jacobian(kinematics, tendon)
    return found


def inertial_tension(kinematics: Kinematics, tendon: TendonInertia, a: Any) -> Any:
    """The tension [N] that accelerates the armature of a tendon at the generalised accelerations a (nv,)."""
    return tendon.armature * _acceleration(kinematics, tendon, a)


def tendon_kinetic_energy(kinematics: Kinematics, x: Any) -> Any:
    """sum 1/2 a (J x)^2 [J] of all tendons at the generalised velocities x (nv,); 0 without any."""
    found: Any = 0
    for tendon in kinematics.tree.tendon_inertias:
        speed = _jacobian(kinematics, tendon) @ x
        found = found + tendon.armature * speed * speed / 2
    return found


def tendon_zwang(kinematics: Kinematics, a: Any) -> Any:
    """sum 1/2 a_t (J a + Jdot v)^2 of all tendons, their part of Gauss's measure Z(a); 0 without any."""
    found: Any = 0
    for tendon in kinematics.tree.tendon_inertias:
        acceleration = _acceleration(kinematics, tendon, a)
        found = found + tendon.armature * acceleration * acceleration / 2
    return found


def _acceleration(kinematics: Kinematics, tendon: TendonInertia, a: Any) -> Any:
    """The second derivative J a + Jdot v of the length of a tendon."""
    return _jacobian(kinematics, tendon) @ a + _bias_acceleration(kinematics, tendon)


def _jacobian(kinematics: Kinematics, tendon: TendonInertia) -> np.ndarray:
    """J = dl/dq (nv,) of the length of a tendon."""
    J: list[Any] = [0] * kinematics.tree.nv
    for k, coefficient in tendon.coefficients:
        J[k] = J[k] + coefficient
    total = np.array(J)
    for segment in tendon.segments:
        # dl = n . (J_last - J_first) dq
        *_, n = _direction(kinematics, segment)
        ends = [kinematics.placement_jacobian(x)[:3] for x in (segment.first, segment.last)]
        total = total + n @ (ends[1] - ends[0]) / segment.divisor
    return total


def _bias_acceleration(kinematics: Kinematics, tendon: TendonInertia) -> Any:
    """Jdot v, the second derivative of the length at zero generalised acceleration."""
    total: Any = 0
    for segment in tendon.segments:
        # l'' = n . d'' + (|d'|^2 - (n . d')^2) / |d|, and as in MuJoCo without the second term if d = 0
        apart, distance, n = _direction(kinematics, segment)
        velocities = [kinematics.placement_velocity(x)[:3] for x in (segment.first, segment.last)]
        accelerations = [kinematics.placement_bias_acceleration(x)[:3] for x in (segment.first, segment.last)]
        d_dot, d_ddot = velocities[1] - velocities[0], accelerations[1] - accelerations[0]
        along = n @ d_dot
        turning = where(apart, divide(d_dot @ d_dot - along * along, distance), 0)
        total = total + (n @ d_ddot + turning) / segment.divisor
    return total


def _direction(kinematics: Kinematics, segment: TendonSegment) -> tuple[Any, Any, np.ndarray]:
    """Whether the ends of a segment are apart, its length [m] and the unit vector along it; 1 and (1, 0, 0)
    where its ends coincide.
    """
    d = kinematics.placement_pose(segment.last).p - kinematics.placement_pose(segment.first).p
    square = d @ d
    apart = less(TINY * TINY, square)
    distance = sqrt(where(apart, square, 1.0))
    n = [where(apart, divide(x, distance), e) for x, e in zip(d, (1, 0, 0), strict=True)]
    return apart, distance, np.array(n)

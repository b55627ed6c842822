"""Forces of a fluid on bodies, as on boxes: MuJoCo's inertia-box model.

Source: MuJoCo documentation, Computation, "Fluid forces", "Inertia model".
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.force_elements import EllipsoidDrag, FluidDrag
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Placement
from zwang.scalar import absolute


def drag_force(mechanism: Mechanism, drag: FluidDrag, kinematics: Kinematics) -> np.ndarray:
    """Generalised force tau (nv,) = J^T f of the drag of a body [N m, N]."""
    J, velocity = motion_in_fluid(mechanism, drag, kinematics)
    linear, quadratic = _coefficients(drag)
    f = [-(a + b * absolute(u)) * u for a, b, u in zip(linear, quadratic, velocity, strict=True)]
    return J.T @ np.array(f)


def drag_damping(mechanism: Mechanism, drag: FluidDrag, kinematics: Kinematics) -> np.ndarray:
    """The damping matrix (nv, nv) of the drag of a body: -J^T (d f / d velocity) J."""
    J, velocity = motion_in_fluid(mechanism, drag, kinematics)
    linear, quadratic = _coefficients(drag)
    slopes = [a + 2 * b * absolute(u) for a, b, u in zip(linear, quadratic, velocity, strict=True)]
    return J.T @ (np.array(slopes)[:, None] * J)


def motion_in_fluid(
    mechanism: Mechanism, drag: FluidDrag | EllipsoidDrag, kinematics: Kinematics
) -> tuple[np.ndarray, np.ndarray]:
    """Jacobian (6, nv) and velocity (6,) of the box or ellipsoid relative to the fluid, linear first, in its
    axes.
    """
    base = mechanism.tree.placement(drag.body)
    shape = Placement(
        base.link, base.R @ np.array(drag.orientation), base.p + base.R @ np.array(drag.position)
    )
    R, J = kinematics.placement_pose(shape).R, kinematics.placement_jacobian(shape)
    velocity = kinematics.placement_velocity(shape)
    relative = R.T @ (velocity[:3] - np.array(drag.wind))
    return np.concatenate([R.T @ J[:3], R.T @ J[3:]]), np.concatenate([relative, R.T @ velocity[3:]])


def _coefficients(drag: FluidDrag) -> tuple[list[Any], list[Any]]:
    """The factors of u and |u| u for the six velocities: of viscosity, and of density."""
    b, mu, rho = drag.box, drag.viscosity, drag.density
    d = (b[0] + b[1] + b[2]) / 3
    others = [(b[1], b[2]), (b[2], b[0]), (b[0], b[1])]
    # f_i = -3 pi mu d u_i - rho/2 b_j b_k |u_i| u_i
    # n_i = -pi mu d^3 w_i - rho/64 b_i (b_j^4 + b_k^4) |w_i| w_i
    linear = [3 * math.pi * mu * d] * 3 + [math.pi * mu * d**3] * 3
    forces = [rho * j * k / 2 for j, k in others]
    torques = [rho * i * (j**4 + k**4) / 64 for i, (j, k) in zip(b, others, strict=True)]
    return linear, [*forces, *torques]

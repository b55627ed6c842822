"""Null-space objectives for `solve_ik`: velocities to follow in the null space of the tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zwang.algebra.factorization import cholesky, cholesky_solve
from zwang.api.arguments import validation
from zwang.deprecation import renamed_arguments
from zwang.errors import DescriptionError
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.robot.independent_coordinates import IndependentCoordinates
from zwang.robot.inverse_kinematics.tasks import COMPONENTS, PARTS
from zwang.robot.jacobian_derivative import jacobian_derivative
from zwang.robot.velocity_transformation import velocity_transformation

REGULARISATION = 1e-9  # share of the trace of J J^T on its diagonal, so that it can be factored if singular
SMALLEST_DIAGONAL = 1e-300  # that of J = 0


@renamed_arguments(length="characteristic_length")
@validated_arguments()
def away_from_singularities(
    mechanism: Mechanism,
    frame: str,
    *,
    part: str = "pose",
    gain: float = 0.1,
    characteristic_length: float = 1.0,
) -> Callable[[Any], np.ndarray]:
    """A null-space objective for `solve_ik`: the scaled gradient of the log manipulability measure.

    Returns the function q -> gain * d log mu / dq (nv,) = gain * tr(J^+ dJ) over a generic scalar. It is the
    gradient along the independent velocities u with v = B u of joint couplings, with J B in the place of J;
    its entries for the dependent velocities are 0.

    part, characteristic_length [m]: as in `manipulability`, default "pose" and 1 m.
    gain [rad^2]: the step along the gradient in one iteration, default 0.1.
    Raises UnknownNameError for an unknown frame, and DescriptionError for an invalid part or length, or a
    frame that a closed loop or a formula restricts.
    Source: Yoshikawa, Int. J. Robotics Research 4(2) (1985) 3.
    """
    m = validation.numeric_mechanism(mechanism)
    placement = m.tree.placement(frame)
    if part not in PARTS:
        raise DescriptionError(f"part is {part!r}; it must be one of {', '.join(map(repr, PARTS))}")
    if not 0 < characteristic_length < np.inf:
        raise DescriptionError(
            f"characteristic_length is {characteristic_length}; it must be a positive number of metres"
        )
    rows = [COMPONENTS.index(c) for c in PARTS[part]]
    transformation = velocity_transformation(m, (frame,), None)
    if transformation.has_loops:
        raise DescriptionError(
            f"frame {frame!r} is carried by a closed loop or restricted by a formula; the gradient of its "
            "manipulability is not supported"
        )
    coordinates = transformation.coordinates
    scale = np.array([1 / characteristic_length if part == "pose" and row < 3 else 1 for row in rows])

    def gradient(q: Any) -> np.ndarray:
        poses = link_poses(m.tree, q)
        J = placement_jacobian(m.tree, poses, placement)[rows] * scale[:, None]
        dJ = jacobian_derivative(m.tree, poses, placement)[rows] * scale[:, None, None]
        dJ = _along_independent(coordinates, J, dJ, q)
        J = coordinates.columns(J, q)
        diagonal = REGULARISATION * sum((x * x for x in J.flat), start=0) + SMALLEST_DIAGONAL
        gram = [[J[i] @ J[j] + (diagonal if i == j else 0) for j in range(i + 1)] for i in range(len(J))]
        L = cholesky(gram)
        inverse = np.stack([cholesky_solve(L, column) for column in J.T], axis=1)  # (J J^T)^-1 J = (J^+)^T
        z: list[Any] = [0] * m.nv
        for k, velocity in enumerate(coordinates.free):
            z[velocity] = gain * sum((inverse * dJ[:, :, k]).flat, start=0)
        return np.array(z)

    return gradient


def _along_independent(c: IndependentCoordinates, J: np.ndarray, dJ: np.ndarray, q: Any) -> np.ndarray:
    """The derivatives (m, free, free) of J B along the independent velocities, with v = B u of couplings:
    sum_ji dJ[:, j, i] B[j, k] B[i, l] + sum_j J[:, j] dB[j, k, l] of J (m, nv) and dJ (m, nv, nv).
    """
    for _ in range(2):
        rows, n, _ = dJ.shape
        along = c.columns(dJ.reshape(rows * n, -1), q)
        dJ = along.reshape(rows, n, len(c.free)).transpose(0, 2, 1)
    dB = c.basis_derivative(q)
    for k in (coupling.velocity for coupling in c.couplings):  # of the other velocities it is 0
        dJ = dJ + J[:, k, None, None] * dB[k]
    return dJ

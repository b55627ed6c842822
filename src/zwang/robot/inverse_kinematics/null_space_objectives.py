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
from zwang.robot.inverse_kinematics.tasks import COMPONENTS, PARTS
from zwang.robot.jacobian_derivative import jacobian_derivative

REGULARISATION = 1e-9  # added to the diagonal of J J^T, so that it can be factored at a singularity


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

    Returns the function q -> gain * d log mu / dq (nv,) = gain * tr(J^+ dJ) over a generic scalar.

    part, characteristic_length [m]: as in `manipulability`, default "pose" and 1 m.
    gain [rad^2]: the step along the gradient in one iteration, default 0.1.
    Raises UnknownNameError for an unknown frame and DescriptionError for an invalid part or length.
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
    scale = np.array([1 / characteristic_length if part == "pose" and row < 3 else 1 for row in rows])

    def gradient(q: Any) -> np.ndarray:
        poses = link_poses(m.tree, q)
        J = placement_jacobian(m.tree, poses, placement)[rows] * scale[:, None]
        dJ = jacobian_derivative(m.tree, poses, placement)[rows] * scale[:, None, None]
        gram = [
            [J[i] @ J[j] + (REGULARISATION if i == j else 0) for j in range(i + 1)] for i in range(len(J))
        ]
        L = cholesky(gram)
        inverse = np.stack([cholesky_solve(L, column) for column in J.T], axis=1)  # (J J^T)^-1 J = (J^+)^T
        return gain * np.array([sum((inverse * dJ[:, :, i]).flat, start=0) for i in range(m.nv)])

    return gradient

"""Wishes for `solve_ik`: directions to follow in what freedom the targets leave."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from zwang.algebra.factorization import cholesky, cholesky_solve
from zwang.api import validation
from zwang.errors import DescriptionError
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import link_poses
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.jacobian_derivative import jacobian_derivative
from zwang.robot.tasks import COMPONENTS, PARTS

SMALLEST = 1e-9  # added to J J^T, so that it can be factored where the frame is singular


@checked_arguments()
def away_from_singularities(
    mechanism: Mechanism, frame: str, *, part: str = "pose", gain: float = 0.1, length: float = 1.0
) -> Callable[[Any], np.ndarray]:
    """A wish for `solve_ik(..., wish=)`: uphill in the logarithm of a frame's manipulability measure.

    Gives gain * d log mu / dq (nv,) = gain * tr(J^+ dJ), a function over a generic scalar. part, length: as of `manipulability`.
    gain [rad^2]: how far one turn goes. Raises UnknownNameError and DescriptionError. Source: Yoshikawa (1985).
    """
    m = validation.numeric_mechanism(mechanism)
    place = m.tree.place(frame)
    if part not in PARTS:
        raise DescriptionError(f"part is {part!r}; it must be one of {', '.join(map(repr, PARTS))}")
    if not 0 < length < np.inf:
        raise DescriptionError(f"length is {length}; it must be a positive number of metres")
    rows = [COMPONENTS.index(c) for c in PARTS[part]]
    scale = np.array([1 / length if part == "pose" and row < 3 else 1 for row in rows])

    def uphill(q: Any) -> np.ndarray:
        poses = link_poses(m.tree, q)
        J = placement_jacobian(m.tree, poses, place)[rows] * scale[:, None]
        dJ = jacobian_derivative(m.tree, poses, place)[rows] * scale[:, None, None]
        gram = [[J[i] @ J[j] + (SMALLEST if i == j else 0) for j in range(i + 1)] for i in range(len(J))]
        L = cholesky(gram)
        inverse = np.stack([cholesky_solve(L, column) for column in J.T], axis=1)  # (J J^T)^-1 J = (J^+)^T
        return gain * np.array([sum((inverse * dJ[:, :, i]).flat, start=0) for i in range(m.nv)])

    return uphill

"""The derivative of a frame's Jacobian (the kinematic Hessian)."""

from __future__ import annotations

import numpy as np

from zwang.algebra.rotations import cross
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import Pose
from zwang.mechanism.tree import Placement, Tree


def jacobian_derivative(tree: Tree, poses: list[Pose], placement: Placement) -> np.ndarray:
    """Kinematic Hessian dJ (6, nv, nv): dJ[:, j, i] is the derivative of column j of J along unit velocity i.

    J (6, nv) is the Jacobian of the frame in world axes, with columns (l, w). The derivative of column j is
    (w_i x l_j, w_i x w_j) if joint i precedes j on the path to the frame or i = j, and (w_j x l_i, 0)
    otherwise.
    Source: Hourtash, The kinematic Hessian and higher derivatives, IEEE CIRA (2005); Haviland, Corke,
    Manipulator differential kinematics II, IEEE Robotics & Automation Magazine (2023).
    """
    J = placement_jacobian(tree, poses, placement)
    order = {k: n for n, i in enumerate(tree.path(placement.link)) for k in _velocities(tree, i)}

    def entry(j: int, i: int) -> np.ndarray:
        if i not in order or j not in order:
            return np.zeros(6, int)
        return _column_derivative(J[:, j], J[:, i], rotated=order[i] <= order[j])

    # dJ[:, j, i] for all pairs of velocities
    entries = [[entry(j, i) for i in range(tree.nv)] for j in range(tree.nv)]
    return np.array(entries, dtype=object).transpose(2, 0, 1)


def _velocities(tree: Tree, link: int) -> range:
    return range(tree.links[link].v.start, tree.links[link].v.stop)


def _column_derivative(column: np.ndarray, by: np.ndarray, *, rotated: bool) -> np.ndarray:
    """The derivative of `column` along the velocity of column `by`, which may rotate its axis."""
    if rotated:
        return np.concatenate([cross(by[3:], column[:3]), cross(by[3:], column[3:])])
    return np.concatenate([cross(column[3:], by[:3]), np.zeros(3, int)])

"""How the Jacobian of a frame changes along the speeds."""

from __future__ import annotations

import numpy as np

from zwang.algebra.rotations import cross
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import Pose
from zwang.mechanism.tree import Placement, Tree


def jacobian_derivative(tree: Tree, poses: list[Pose], place: Placement) -> np.ndarray:
    """dJ (6, nv, nv): dJ[:, j, i] is how column j of the world Jacobian changes when speed i moves the mechanism.

    With columns (l, w): for i at or before j on the way to the frame (w_i x l_j, w_i x w_j), else (w_j x l_i, 0).
    Source: Hourtash, The kinematic Hessian and higher derivatives, IEEE CIRA (2005); Haviland, Corke, Manipulator
    differential kinematics II, IEEE Robotics & Automation Magazine (2023).
    """
    J = placement_jacobian(tree, poses, place)
    order = {k: n for n, i in enumerate(tree.path(place.link)) for k in _speeds(tree, i)}

    def entry(j: int, i: int) -> np.ndarray:
        if i not in order or j not in order:
            return np.zeros(6, int)
        return _change(J[:, j], J[:, i], carried=order[i] <= order[j])

    every = [[entry(j, i) for i in range(tree.nv)] for j in range(tree.nv)]
    return np.array(every, dtype=object).transpose(2, 0, 1)


def _speeds(tree: Tree, link: int) -> range:
    return range(tree.links[link].v.start, tree.links[link].v.stop)


def _change(column: np.ndarray, by: np.ndarray, *, carried: bool) -> np.ndarray:
    if carried:
        return np.concatenate([cross(by[3:], column[:3]), cross(by[3:], column[3:])])
    return np.concatenate([cross(column[3:], by[:3]), np.zeros(3, int)])

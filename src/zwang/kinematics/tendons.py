"""Tendons: their lengths and how these change with the speeds."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.kinematics.jacobians import place_jacobian
from zwang.kinematics.poses import link_poses, place_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.restrictions import Tendon
from zwang.scalar import divide, sqrt


def tendon_length(mechanism: Mechanism, tendon: Tendon, q: Any) -> tuple[Any, np.ndarray]:
    """Length [m, or the coordinates' unit] and its derivative (nv,) with respect to the speeds.

    Fixed: sum of coefficient * q. Spatial: the straight pieces between neighbouring frames of the path, each branch
    over its pulley's divisor. Source: MuJoCo documentation, "Tendon".
    """
    if tendon.path:
        return _path_length(mechanism, tendon, q)
    length: Any = 0
    moment: list[Any] = [0] * mechanism.nv
    for name, coefficient in tendon.joints:
        joint = mechanism.joint(name)
        length = length + coefficient * q[joint.q.start]
        moment[joint.v.start] = moment[joint.v.start] + coefficient
    return length, np.array(moment)


def _path_length(mechanism: Mechanism, tendon: Tendon, q: Any) -> tuple[Any, np.ndarray]:
    tree = mechanism.tree
    poses = link_poses(tree, q)
    length, moment = 0, np.zeros(mechanism.nv, int)
    divisors = iter(tendon.divisors or (1,))
    divisor = next(divisors) if tendon.path[0] is not None else 1
    for first, second in zip(tendon.path, tendon.path[1:], strict=False):
        if first is None:
            divisor = next(divisors)
        if first is None or second is None:
            continue
        places = [tree.place(first), tree.place(second)]
        d = place_pose(poses, places[1]).p - place_pose(poses, places[0]).p
        piece = sqrt(d @ d)
        J = place_jacobian(tree, poses, places[1])[:3] - place_jacobian(tree, poses, places[0])[:3]
        length = length + piece / divisor
        moment = moment + np.array([divide(x, piece) for x in d]) @ J / divisor
    return length, moment

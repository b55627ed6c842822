"""Lengths of tendons, and their Jacobians (moment arms)."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.spatial_tendons import SpatialTendons, spatial_tendons
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import Tendon
from zwang.scalar import is_zero


def tendon_length(mechanism: Mechanism, tendon: Tendon, kinematics: Kinematics) -> tuple[Any, np.ndarray]:
    """Length of a tendon [m, or the unit of the coordinates] and its Jacobian (nv,) at one configuration.

    Fixed tendon: sum of coefficient times coordinate. Spatial tendon: the straight segments between
    neighbouring frames of the path and the segments wrapped around bodies; the length of each branch is
    divided by its pulley's divisor. Source: MuJoCo documentation, "Tendon".
    """
    if tendon.path:
        return spatial_tendons_at(mechanism, kinematics).length_and_jacobian(tendon.name, mechanism.nv)
    length: Any = 0
    moment: list[Any] = [0] * mechanism.nv
    for name, coefficient in tendon.joints:
        joint = mechanism.joint(name)
        length = length + coefficient * kinematics.q[joint.q.start]
        moment[joint.v.start] = moment[joint.v.start] + coefficient
    return length, np.array(moment)


def spatial_tendons_at(mechanism: Mechanism, kinematics: Kinematics) -> SpatialTendons:
    """All spatial tendons of a mechanism at a configuration, computed once."""
    paths = mechanism.tendon_paths
    return kinematics.kept(paths, lambda: spatial_tendons(mechanism.tree, paths, kinematics.poses))


def has_moment_arms(mechanism: Mechanism, tendon: Tendon) -> bool:
    """Whether joints change the length of a tendon: not that of one whose branches are on one body each, with
    all around which they wrap.
    """
    if not tendon.path:
        return not all(is_zero(coefficient) for _, coefficient in tendon.joints)
    links: list[set[int]] = [set()]
    for name in tendon.path:
        if name is None:  # a pulley
            links.append(set())
        else:
            links[-1].add(mechanism.tree.placement(name).link)
    return any(len(branch) > 1 for branch in links)

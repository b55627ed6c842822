"""Lengths of tendons, their Jacobians (moment arms), and their bias accelerations."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.dual import derivative_along
from zwang.kinematics.configuration import configuration_rate
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.spatial_tendons import SpatialTendons, spatial_tendons
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.tendon_paths import tendon_paths
from zwang.scalar import is_zero, use_backend
from zwang.scalar.float_backend import FLOATS


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


def tendon_bias(mechanism: Mechanism, tendon: Tendon, kinematics: Kinematics) -> Any:
    """Jdot v, the second derivative of the length of a tendon at zero generalised acceleration [m/s^2], by
    dual numbers; 0 for a fixed tendon.

    It is neglected, 0, where the tendon passes through a wrapping body: its point there is found by an
    iteration. So it is where that is not known, as the side frame moves relative to the body or the radius is
    a symbol.
    """
    tree, v = mechanism.tree, np.asarray(kinematics.v)
    paths = tendon_paths(tree, [tendon])
    around = [segment.around for *_, segment in paths.segments if segment.around is not None]
    if not paths.segments or not all(body.inside is False for body in around):
        return 0

    def speed(q: Any) -> np.ndarray:
        """J v as a function of the configuration, with v fixed."""
        moving = spatial_tendons(tree, paths, Kinematics(tree, q).poses)
        return np.array([moving.length_and_jacobian(tendon.name, mechanism.nv)[1] @ v])

    # Arrays of floats hold dual numbers of any backend; the loops over the few segments are unrolled. The
    # slopes of paths that `where` rejects may be infinite.
    with use_backend(FLOATS), np.errstate(all="ignore"):
        rates = configuration_rate(tree, kinematics.q, v)
        return derivative_along(speed, kinematics.q, rates)[1][0]


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

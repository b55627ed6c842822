"""The inertial regressor Y(q, v, a) of inverse dynamics: tau = Y pi is linear in the inertial parameters.

The wrench of one rigid body about the origin of its frame is W pi, with the parameters pi of that body and
the columns of W
    mass                force a,        moment 0,
    first moment h      force U,        moment -[a]x,
    inertia I           force 0,        moment K(wd) + [w]x K(w),   I w = K(w) (Ixx, Ixy, Iyy, Ixz, Iyz, Izz),
where a is the acceleration of the origin less that of gravity and U = [wd]x + [w]x [w]x. The generalised
forces are J^T W pi, with the Jacobian J of the body's frame in its own axes; only the joints between the body
and the world have columns in J. Source: Atkeson, An, Hollerbach, Int. J. Robotics Research 5(3) (1986) 101.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.algebra.rotations import cross, skew
from zwang.dynamics.rnea import LinkAcceleration, link_motions
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.tree import WORLD

INERTIAL_PARAMETERS = 10
"""The number of inertial parameters of a body: m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz."""


def inertial_regressor(
    kinematics: Kinematics, origins: Sequence[tuple[int, np.ndarray]], a: Any
) -> np.ndarray:
    """Y (nv, 10 n) with tau = Y pi, for n rigid bodies, by the Jacobians of their frames.

    kinematics: of the state (q, v). origins: for each body its link, and the origin of its frame in the
    link's frame (3,) [m]; the axes are those of the link. a (nv,): generalised accelerations.
    pi of a body: mass [kg], mass times centre of mass (3,) [kg m], and the inertia at the origin (Ixx, Ixy,
    Iyy, Ixz, Iyz, Izz) [kg m^2]. tau [N m or N] includes gravity, and excludes armature and passive forces.
    """
    motions, jacobians = link_motions(kinematics, a), link_jacobians(kinematics)
    Y = np.zeros((kinematics.tree.nv, INERTIAL_PARAMETERS * len(origins)), dtype=object)
    for k, (link, p) in enumerate(origins):
        W = unit_parameter_wrenches(motions[link], p)
        columns = slice(INERTIAL_PARAMETERS * k, INERTIAL_PARAMETERS * (k + 1))
        for j, s in jacobians[link].items():
            # tau_j = s_j^T W pi, with s_j at the origin of the body's frame
            Y[j, columns] = np.concatenate([s[:3] + cross(s[3:], p), s[3:]]) @ W
    return Y


def unit_parameter_wrenches(motion: LinkAcceleration, p: Any) -> np.ndarray:
    """W (6, 10): force and moment about the point p (3,) of a link, for each unit inertial parameter."""
    w, wd, acceleration, U = motion
    at_origin = acceleration + U @ p
    moment = inertia_columns(wd) + skew(w) @ inertia_columns(w)
    force = np.concatenate([at_origin.reshape(3, 1), U, np.zeros((3, 6), int)], axis=1)
    about = np.concatenate([np.zeros((3, 1), int), -skew(at_origin), moment], axis=1)
    return np.concatenate([force, about])


def inertia_columns(w: Any) -> np.ndarray:
    """K (3, 6) with I w = K (Ixx, Ixy, Iyy, Ixz, Iyz, Izz)."""
    x, y, z = w
    return np.array([[x, y, 0, z, 0, 0], [0, x, y, 0, z, 0], [0, 0, 0, x, y, z]])


def link_jacobians(kinematics: Kinematics) -> list[dict[int, np.ndarray]]:
    """The nonzero columns (6,) of the Jacobian of each link's frame in its own axes, by generalised
    velocity, linear rows first.
    """
    found: list[dict[int, np.ndarray]] = []
    poses, subspaces = kinematics.joint_poses, kinematics.motion_subspaces
    for link, (R, p), S in zip(kinematics.tree.links, poses, subspaces, strict=True):
        above = found[link.parent] if link.parent != WORLD else {}
        # s_w' = R^T s_w,  s_v' = R^T (s_v + s_w x p)
        columns = {
            j: np.concatenate([R.T @ (s[:3] + cross(s[3:], p)), R.T @ s[3:]]) for j, s in above.items()
        }
        columns.update(zip(range(link.v.start, link.v.stop), S.T, strict=True))
        found.append(columns)
    return found

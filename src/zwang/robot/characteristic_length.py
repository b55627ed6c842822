"""The characteristic length, which weighs position errors in metres against orientation errors in radians."""

from __future__ import annotations

import numpy as np

from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.sampling import random_configurations

SAMPLES = 64
SMALLEST = (
    1e-9  # length, relative to the standard deviation of the positions, that is not zero but for rounding
)


def characteristic_length(mechanism: Mechanism, frames: tuple[str, ...]) -> float:
    """Characteristic length [m]: the root mean square of |linear| / |angular| over the Jacobian's columns.

    The mean is taken over the columns of rotating joints at random configurations. It is the typical distance
    of the frames from the joint axes. Where no joint rotates a frame, and where all axes pass through it, it
    is the standard deviation of the positions of the frames, and 1 m for frames that do not move.
    """
    tree = mechanism.tree
    squares, positions = [], []
    for q in random_configurations(mechanism, SAMPLES, seed=0):
        poses = link_poses(tree, q)
        for frame in frames:
            positions.append(placement_pose(poses, tree.placement(frame)).p.astype(float))
            J = np.asarray(placement_jacobian(tree, poses, tree.placement(frame)), dtype=float)
            rotating = np.linalg.norm(J[3:], axis=0) > 0.5
            squares += (J[:3, rotating] ** 2).sum(axis=0).tolist()
    mean = float(np.sqrt(np.mean(squares))) if squares else 0.0
    spread = float(np.linalg.norm(np.reshape(positions, (SAMPLES, -1)).std(axis=0)))
    return mean if mean > SMALLEST * spread else spread or 1.0

"""How fast everything moves: the links' velocities, from q and v."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.kinematics.poses import link_pose, motion_subspace
from zwang.mechanism.tree import WORLD, Tree


def link_velocities(tree: Tree, q: Any, v: Any) -> list[tuple[np.ndarray, np.ndarray]]:
    """For each link the velocity of its origin and its angular velocity, against the world, in its own axes.

    u' = R^T (u + w x p) + S_v v,  w' = R^T w + S_w v. Source: Featherstone, RBDA (2008), Eq. 5.14.
    """
    found: list[tuple[np.ndarray, np.ndarray]] = []
    rest = (np.zeros(3, int), np.zeros(3, int))
    for link in tree.links:
        u, w = found[link.parent] if link.parent != WORLD else rest
        R, p = link_pose(link, q)
        s = motion_subspace(link) @ v[link.v]
        found.append((R.T @ (u + cross(w, p)) + s[:3], R.T @ w + s[3:]))
    return found

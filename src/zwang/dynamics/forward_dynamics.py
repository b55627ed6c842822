"""Forward dynamics by ABA or by CRBA, whichever takes fewer operations for the given tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.dynamics.aba import aba_of
from zwang.dynamics.base_inertial_parameters import with_base_parameters
from zwang.dynamics.forward_dynamics_crba import forward_dynamics_crba_of, velocity_parents
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.tree import Tree

# Operation counts, fitted to chains and trees of 4 to 40 revolute links with base parameters.
CRBA_PER_VELOCITY = 65
CRBA_PER_ANCESTOR = 12
CRBA_PER_ANCESTOR_PAIR = 0.55
ABA_PER_LINK = 245


def free_accelerations(tree: Tree, q: Any, v: Any, tau: Any) -> np.ndarray:
    """Generalised accelerations a (nv,) without constraints, by ABA or CRBA, whichever is cheaper for this
    tree.

    q (nq,), v (nv,), tau (nv,): configuration, generalised velocities and generalised forces [N m or N].
    The inertias are first reduced to base inertial parameters.
    """
    return free_accelerations_of(Kinematics(tree, q, v), tau)


def free_accelerations_of(kinematics: Kinematics, tau: Any) -> np.ndarray:
    """Generalised accelerations a (nv,), as `free_accelerations`, at a state whose poses are known."""
    tree = kinematics.tree
    # articulated bodies have no room for the inertia of tendons between them
    dynamics = aba_of if aba_is_cheaper(tree) and not tree.tendon_inertias else forward_dynamics_crba_of
    return dynamics(kinematics.with_inertias_of(with_base_parameters(tree)), tau)


def aba_is_cheaper(tree: Tree) -> bool:
    """Whether ABA takes fewer operations than CRBA and factorisation, as on deep trees."""
    depths: list[int] = []
    for parent in velocity_parents(tree):
        depths.append(1 + (depths[parent] if parent >= 0 else 0))
    per_depth = sum(CRBA_PER_ANCESTOR * d + CRBA_PER_ANCESTOR_PAIR * d * d for d in depths)
    return CRBA_PER_VELOCITY * tree.nv + per_depth > ABA_PER_LINK * len(tree.links)

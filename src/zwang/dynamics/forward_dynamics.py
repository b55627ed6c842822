"""Forward dynamics by whichever way takes fewer operations for the tree at hand."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.dynamics.aba import aba
from zwang.dynamics.base_parameters import with_base_parameters
from zwang.dynamics.forward_dynamics_crba import forward_dynamics_crba, velocity_parents
from zwang.mechanism.tree import Tree

PER_SPEED, PER_ANCESTOR, PER_PAIR = (
    65,
    12,
    0.55,
)  # operations by the mass matrix: per speed, per ancestor, per pair of them
PER_LINK = 245  # operations by articulated bodies; all measured on regrouped chains and trees of 4 to 40 turning links


def free_accelerations(tree: Tree, q: Any, v: Any, tau: Any) -> np.ndarray:
    """The accelerations (nv,) that the efforts tau give: the same as `forward_dynamics_crba`, in fewer operations."""
    dynamics = aba if aba_is_cheaper(tree) else forward_dynamics_crba
    return dynamics(with_base_parameters(tree), q, v, tau)


def aba_is_cheaper(tree: Tree) -> bool:
    """Whether deep branches make the mass matrix the longer way, by estimated operations."""
    depths: list[int] = []
    for parent in velocity_parents(tree):
        depths.append(1 + (depths[parent] if parent >= 0 else 0))
    by_matrix = PER_SPEED * tree.nv + sum(PER_ANCESTOR * d + PER_PAIR * d * d for d in depths)
    return by_matrix > PER_LINK * len(tree.links)

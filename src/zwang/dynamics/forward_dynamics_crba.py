"""Forward dynamics by the mass matrix: CRBA, and its L^T D L factorisation with the sparsity of the tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.factorization import factor
from zwang.dynamics.crba import crba_of
from zwang.dynamics.rnea import bias_forces_of
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.tree import WORLD, Tree


def velocity_parents(tree: Tree) -> list[int]:
    """Expanded parent array (nv,): for each generalised velocity the next one towards the world, or -1.

    It gives the sparsity of the mass matrix. Source: Featherstone 2008, Sec. 6.4; MuJoCo's `dof_parentid`.
    """
    parents = []
    for link in tree.links:
        before = tree.links[link.parent].v.stop - 1 if link.parent != WORLD else -1
        parents += [before, *range(link.v.start, link.v.stop - 1)]
    return parents


def solve_mass_matrix(tree: Tree, M: Any, b: Any) -> np.ndarray:
    """M^-1 b (nv,) by the L^T D L factorisation with the sparsity of the tree (Featherstone 2008, Tables 6.3
    and 6.5).
    """
    return factor(M, velocity_parents(tree)).solve(b)


def forward_dynamics_crba(tree: Tree, q: Any, v: Any, tau: Any) -> np.ndarray:
    """Generalised accelerations a (nv,) from M(q) a + h(q, v) = tau, by CRBA and RNEA (Featherstone 2008, Ch.
    6).

    q (nq,), v (nv,), tau (nv,): configuration, generalised velocities and generalised forces [N m or N].
    """
    return forward_dynamics_crba_of(Kinematics(tree, q, v), tau)


def forward_dynamics_crba_of(kinematics: Kinematics, tau: Any) -> np.ndarray:
    """Generalised accelerations a (nv,), as `forward_dynamics_crba`, at a state whose poses are known."""
    M = crba_of(kinematics)
    return solve_mass_matrix(kinematics.tree, M, np.array(tau) - bias_forces_of(kinematics))

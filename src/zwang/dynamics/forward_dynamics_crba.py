"""Forward dynamics: the accelerations that efforts give, by the mass matrix or by articulated bodies."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.algebra.factorization import ltdl, ltdl_solve
from zwang.dynamics.crba import crba
from zwang.dynamics.rnea import bias_forces
from zwang.mechanism.tree import WORLD, Tree


def velocity_parents(tree: Tree) -> list[int]:
    """For each speed the next one towards the world, or -1."""
    parents = []
    for link in tree.links:
        before = tree.links[link.parent].v.stop - 1 if link.parent != WORLD else -1
        parents += [before, *range(link.v.start, link.v.stop - 1)]
    return parents


def solve_mass_matrix(tree: Tree, H: Any, b: Any) -> np.ndarray:
    """H^-1 b with the sparsity of the tree."""
    parents = velocity_parents(tree)
    L, reciprocals = ltdl(H, parents)
    return ltdl_solve(L, reciprocals, parents, b)


def forward_dynamics_crba(tree: Tree, q: Any, v: Any, tau: Any) -> np.ndarray:
    """The accelerations (nv,) from H(q) a + h(q, v) = tau. Source: seed 000; Featherstone, RBDA (2008), Ch. 6."""
    return solve_mass_matrix(tree, crba(tree, q), np.array(tau) - bias_forces(tree, q, v))

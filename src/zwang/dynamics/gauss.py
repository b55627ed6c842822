"""Gauss's problem without constraints: the mass matrix and the free acceleration."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import tree_product


class GaussProblem(NamedTuple):
    """Z(a) = 1/2 (a - a_free)^T M (a - a_free), which the true acceleration minimises subject to the
    constraints.

    M: mass matrix (nv, nv). a_free: free acceleration (nv,). parents: the sparsity of M, see
    `velocity_parents`. free_force: M a_free (nv,), where it is known.
    """

    M: np.ndarray
    a_free: np.ndarray
    parents: tuple[int, ...]
    free_force: np.ndarray | None = None

    def zwang(self, a: Any) -> Any:
        """Z(a) [kg m^2/s^4] at the generalised accelerations a (nv,)."""
        d = np.array(a) - self.a_free
        return d @ self.force_of(d) / 2

    def free_force_of(self) -> np.ndarray:
        """M a_free (nv,): the applied and the bias forces [N m, N]."""
        return self.force_of(self.a_free) if self.free_force is None else self.free_force

    def force_of(self, a: Any) -> np.ndarray:
        """The generalised force M a (nv,) [N m, N] of the accelerations a (nv,)."""
        return tree_product(self.M, self.parents, a)

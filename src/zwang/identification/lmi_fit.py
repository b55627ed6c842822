"""Physically consistent parameters by a semidefinite program, with bounds of any parameter.

    minimise  |C^-1/2 (B pi - beta)|^2 + w |(pi - prior) / scale|^2
    subject to  P_k(pi) >= e P_k0 for every body k (linear matrix inequalities),  lower <= pi <= upper,

with the pseudo-inertia P, linear in pi. The problem is convex. Sources: Sousa, Cortesao, Int. J. Robotics
Research 33 (2014) 931; Wensing, Kim, Slotine (2018).
"""

from __future__ import annotations

import importlib
import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from zwang.errors import MissingExtraError
from zwang.identification.base_parameters import BaseParameters, Combinations
from zwang.identification.consistent_fit import SMALL, raised
from zwang.identification.pseudo_inertia import (
    PSEUDO_INERTIA_UNITS,
    parameters_of_pseudo_inertia,
    pseudo_inertia,
)

WEIGHT = 1e-6  # w, in squared standard deviations of the data
LEAST = 1e-6  # e: how near to singular a pseudo-inertia may be, relative to the model's


def parameters_by_lmi(
    base: BaseParameters | Combinations,
    beta: np.ndarray,
    covariance: np.ndarray,
    prior: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, bool]:
    """pi (parameters,) of physically consistent bodies within the bounds, and whether the solver converged.

    beta (n,), covariance (n, n): the estimate. prior (parameters,): pi of the model. bounds: (lower, upper)
    (parameters,). Raises MissingExtraError without the package cvxpy.
    """
    if find_spec("cvxpy") is None:
        raise MissingExtraError("consistent=\"lmi\" needs the package cvxpy: pip install 'zwang[lmi]'")
    cvxpy: Any = importlib.import_module("cvxpy")
    bodies = [p.kind for p in base.parameters].count("mass")
    prior, units = prior.copy(), np.zeros((bodies, 10, 4, 4))
    scale = np.maximum(np.abs(prior), SMALL)
    for k in range(bodies):
        part = slice(10 * k, 10 * k + 10)
        P_0 = raised(pseudo_inertia(prior[part]))
        # T^-1 P T^-T with P_0 = T T^T, which is the unit matrix for the model; units change it by 1
        inverse = np.linalg.inv(np.linalg.cholesky(P_0))
        units[k] = inverse @ PSEUDO_INERTIA_UNITS @ inverse.T
        prior[part] = parameters_of_pseudo_inertia(P_0)
        scale[part] = 1 / np.linalg.norm(units[k], axis=(1, 2))
    deviations = np.sqrt(np.diag(covariance))
    L = np.linalg.cholesky(covariance / np.outer(deviations, deviations))
    whitening = np.linalg.inv(L) / deviations
    # cost = |A z + b|^2 + w |z|^2 with pi = prior + scale z. In y it is |y|^2 and a constant, however exact
    # the data are: z = z_free + V S^-1 y, with the singular values S of [A; sqrt(w) 1] = U S V^T
    A, b = whitening @ base.matrix * scale, whitening @ (base.matrix @ prior - beta)
    U, S, V = np.linalg.svd(np.vstack([A, np.sqrt(WEIGHT) * np.eye(len(prior))]), full_matrices=False)
    y, z = cvxpy.Variable(len(prior)), cvxpy.Variable(len(prior))

    def minimum(z: Any, cost: Any) -> np.ndarray | None:
        """The value of z, or None without convergence."""
        constraints = []
        for k in range(bodies):
            P: Any = sum(scale[10 * k + a] * z[10 * k + a] * units[k, a] for a in range(10))
            constraints.append(P + (1 - LEAST) * np.eye(4) >> 0)
        for k, (low, high) in enumerate(zip(*bounds, strict=True)):
            pi_k = prior[k] + scale[k] * z[k]
            constraints += [pi_k >= low] if np.isfinite(low) else []
            constraints += [pi_k <= high] if np.isfinite(high) else []
        problem = cvxpy.Problem(cvxpy.Minimize(cost), constraints)
        try:
            with warnings.catch_warnings():
                warnings.filterwarnings("ignore", "Solution may be inaccurate")  # which is no solution here
                problem.solve(solver=cvxpy.CLARABEL)
        except cvxpy.SolverError:
            return None
        return np.asarray(z.value) if problem.status == "optimal" else None

    found = minimum((V.T / S) @ (y - U.T[:, : len(b)] @ b), cvxpy.sum_squares(y))
    if found is None:  # z_free is far from all consistent parameters
        found = minimum(z, cvxpy.sum_squares(A @ z + b) + WEIGHT * cvxpy.sum_squares(z))
    if found is None:
        return prior, False
    return np.clip(prior + scale * found, *bounds), True

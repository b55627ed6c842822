"""Physically consistent parameters by a semidefinite program, with bounds of any parameter.

    minimise  |C^-1/2 (B pi - beta)|^2 + w |(pi - prior) / scale|^2
    subject to  P_k(pi) >= e P_kc for every body k (linear matrix inequalities),  lower <= pi <= upper,

with the pseudo-inertia P, linear in pi. The problem is convex. It is scaled by the parameters with the
pseudo-inertias P_kc of `consistent_fit`, which are near the solution. Sources: Sousa, Cortesao, Int. J.
Robotics Research 33 (2014) 931; Wensing, Kim, Slotine (2018).
"""

from __future__ import annotations

import warnings
from importlib.util import find_spec
from typing import Any

import numpy as np

from zwang.errors import MissingExtraError
from zwang.identification.base_parameters import BaseParameters, Combinations
from zwang.identification.consistent_fit import consistent_parameters, raised, scales, whitened
from zwang.identification.pseudo_inertia import (
    PSEUDO_INERTIA_UNITS,
    parameters_of_pseudo_inertia,
    pseudo_inertia,
    relative,
)
from zwang.lazy_imports import import_module

WEIGHT = 1e-6  # w, in squared standard deviations of the data
FAR = 1e6  # in scales of the parameters: bounds that no solution reaches
LEAST = 1e-6  # e: how near to singular a pseudo-inertia may be, relative to P_kc


def parameters_by_lmi(
    base: BaseParameters | Combinations,
    beta: np.ndarray,
    root: np.ndarray,
    prior: np.ndarray,
    bounds: tuple[np.ndarray, np.ndarray],
) -> tuple[np.ndarray, bool]:
    """pi (parameters,) of physically consistent bodies within the bounds, and whether the solver converged.

    beta (n,): the estimate. root (n, m): F of its covariance F F^T. prior (parameters,): pi of the model.
    bounds: (lower, upper) (parameters,). Raises MissingExtraError without the package cvxpy.
    """
    if find_spec("cvxpy") is None:
        raise MissingExtraError("consistent=\"lmi\" needs the package cvxpy: pip install 'zwang[lmi]'")
    cvxpy: Any = import_module("cvxpy")
    bodies = [p.kind for p in base.parameters].count("mass")
    # pi = centre + scale z about consistent parameters near the solution, however far the model is from it
    centre = consistent_parameters(base, beta, root, prior, bounds).pi
    M, target = whitened(base, beta, root, prior)
    prior, units, offset = prior.copy(), np.zeros((bodies, 10, 4, 4)), np.zeros((bodies, 4, 4))
    weighed, scale = np.tile(scales(M, target, np.maximum(np.abs(prior), np.abs(centre))), (2, 1))
    for k in range(bodies):
        part = slice(10 * k, 10 * k + 10)
        model, P = raised(pseudo_inertia(prior[part])), pseudo_inertia(centre[part])
        prior[part] = parameters_of_pseudo_inertia(model)
        weighed[part] = 1 / np.linalg.norm(relative(PSEUDO_INERTIA_UNITS, model + raised(P)), axis=(1, 2))
        # T^-1 P T^-T with T T^T = P at the centre, which units change by 1
        units[k], offset[k] = relative(PSEUDO_INERTIA_UNITS, raised(P)), relative(P, raised(P))
        scale[part] = 1 / np.linalg.norm(units[k], axis=(1, 2))
    # cost = |A z + b|^2, with w |(pi - prior) / scale|^2 as its last rows. In y it is |y|^2 and a constant,
    # however exact the data are: z = V S^-1 (y - U^T b), with the singular values S of A = U S V^T
    A = np.vstack([M, np.sqrt(WEIGHT) * np.diag(1 / weighed)]) * scale
    b = np.concatenate([M @ centre - target, np.sqrt(WEIGHT) * (centre - prior) / weighed])
    U, S, V = np.linalg.svd(A, full_matrices=False)
    at_bounds = (np.clip(centre, *bounds) - centre) / scale
    y, z = cvxpy.Variable(len(prior)), cvxpy.Variable(len(prior))

    def minimum(z: Any, cost: Any) -> np.ndarray | None:
        """The value of z, or None without convergence."""
        constraints = []
        for k in range(bodies):
            P: Any = sum(scale[10 * k + a] * z[10 * k + a] * units[k, a] for a in range(10))
            constraints.append(P + offset[k] - LEAST * np.eye(4) >> 0)
        for k, (low, high) in enumerate(zip(*((x - centre) / scale for x in bounds), strict=True)):
            constraints += [z[k] >= low] if low > -FAR else []
            constraints += [z[k] <= high] if high < FAR else []
        problem = cvxpy.Problem(cvxpy.Minimize(cost), constraints)
        return np.asarray(z.value) if _is_solved(cvxpy, problem) else None

    found = None
    # the solver takes huge costs for a sign that there is no solution; the cost is at most about that of the
    # centre, or of the centre within its bounds
    for unit in (max(1.0, float(np.linalg.norm(x))) for x in (b, A @ at_bounds + b)):
        if found is None:
            found = minimum((V.T / S) @ (unit * y - U.T @ b), cvxpy.sum_squares(y))
        if found is None:  # the unconstrained minimum is far from all consistent parameters
            found = minimum(z, cvxpy.sum_squares((A / unit) @ z + b / unit))
    if found is None:
        return prior, False
    return np.clip(centre + scale * found, *bounds), True


def _is_solved(cvxpy: Any, problem: Any) -> bool:
    """Whether Clarabel finds the minimum of a problem to its tolerance."""
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", "Solution may be inaccurate")  # which is no solution here
            problem.solve(solver=cvxpy.CLARABEL)
    except cvxpy.SolverError:
        return False
    return problem.status == "optimal"

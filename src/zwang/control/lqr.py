"""The linear-quadratic regulator of a linear model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from zwang.api.analysis.linearize import LinearModel
from zwang.api.arguments import validation
from zwang.api.arguments.validation import validated_arguments
from zwang.errors import ArgumentError, ShapeError, SolveError, StateError

ROUNDING = 1e-9  # of the elements of a weight, relative to the largest
MARGIN = 1e-8  # of poles from the boundary of stability, relative to the largest, or to 1 if discrete


class Regulator(NamedTuple):
    """The feedback u = -K y for the deviations y of a linear model's states, and u of its inputs.

    K (m, n). cost (n, n): the cost from y is y^T cost y. poles (n,): of the closed loop.
    """

    K: np.ndarray
    cost: np.ndarray
    poles: np.ndarray


@validated_arguments("model")
def lqr(model: LinearModel, Q: npt.ArrayLike, R: npt.ArrayLike) -> Regulator:
    """The feedback that minimises the integral, or the sum over all steps, of y^T Q y + u^T R u.

    model: continuous or discrete, of `zw.linearize`. Q: (n, n) symmetric and positive semidefinite, or its
    diagonal (n,). R: (m, m) symmetric and positive definite, or its diagonal (m,).
    The closed loop is asymptotically stable: the real parts of its poles are below -1e-8 times the largest
    pole, and the absolute values of those of a discrete model below 1 - 1e-8.
    Raises ArgumentError, also for other weights and for a model without inputs, StateError, ShapeError, and
    SolveError where no feedback stabilises the model, or Q does not see a state that does not decay by
    itself.
    Source: SciPy's solutions of the algebraic Riccati equations; Anderson, Moore, Optimal Control
    (1990), Chapters 2 and 3.
    """
    if not isinstance(model, LinearModel):
        raise ArgumentError(
            f"model is {validation.short_repr(model)}; it must be a LinearModel, such as "
            "zw.linearize(mechanism, q) returns"
        )
    n, m = model.B.shape
    if not m:
        raise ArgumentError(
            "the model has no inputs, so that no feedback acts on it; give zw.linearize inputs"
        )
    q, r = _weight(Q, n, "Q"), _weight(R, m, "R")
    # u = T w and cost = c cost': the elements of q are at most 1, and those on the diagonal of r are 1
    c, diagonal = float(np.abs(q).max(initial=0.0)) or 1.0, r.diagonal()
    T = np.sqrt(c / np.where(diagonal > 0, diagonal, c))
    q, r = q / c, r * np.outer(T, T) / c
    if not (diagonal > 0).all() or not np.linalg.eigvalsh(r).min() > 0:
        raise ArgumentError("R must be positive definite, so that every input has a cost")
    A, B = model.A, model.B * T
    try:
        if model.step is None:
            S = scipy.linalg.solve_continuous_are(A, B, q, r)
            K = np.linalg.solve(r, B.T @ S)
        else:
            S = scipy.linalg.solve_discrete_are(A, B, q, r)
            K = np.linalg.solve(r + B.T @ S @ B, B.T @ S @ A)
        poles = np.linalg.eigvals(A - B @ K)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise _without_solution(str(error)) from None
    size = np.abs(poles).max(initial=0.0)
    margin = -poles.real / max(size, 1e-300) if model.step is None else 1 - np.abs(poles)
    if not (margin > MARGIN).all():
        pole = poles[np.argmin(margin)]
        raise _without_solution(f"the pole {pole:.6g} of the closed loop is not stable")
    return Regulator(T[:, None] * K, c * S, poles)


def _without_solution(reason: str) -> SolveError:
    return SolveError(
        "no feedback stabilises this model: a state that does not decay is not controlled, or Q does not see "
        f"it; reduce the states or change the weights ({reason})"
    )


def _weight(W: npt.ArrayLike, size: int, name: str) -> np.ndarray:
    array = validation.real_values(W, name)
    array = np.diag(array) if array.ndim == 1 else array
    if array.shape != (size, size):
        raise ShapeError(f"{name} must have the shape ({size}, {size}) or ({size},); it is {array.shape}")
    if not np.isfinite(array).all():
        raise StateError(f"{name} must hold finite numbers")
    largest = np.abs(array).max(initial=0.0)
    if np.abs(array - array.T).max(initial=0.0) > ROUNDING * largest:
        raise ArgumentError(f"{name} must be symmetric")
    array = (array + array.T) / 2
    if np.linalg.eigvalsh(array).min(initial=0.0) < -ROUNDING * largest:
        raise ArgumentError(f"{name} must have no negative eigenvalue, as it weighs squares")
    return array

"""The linear-quadratic regulator of a linear model."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg

from zwang.api.analysis.linearize import LinearModel
from zwang.api.arguments import validation
from zwang.api.arguments.validation import validated_arguments
from zwang.errors import ShapeError, SolveError


class Regulator(NamedTuple):
    """The feedback u = -K y for the deviations y of a linear model's states, and u of its inputs.

    K (m, n). cost (n, n): the cost from y is y^T cost y. poles (n,): of the closed loop.
    """

    K: np.ndarray
    cost: np.ndarray
    poles: np.ndarray


@validated_arguments()
def lqr(model: LinearModel, Q: npt.ArrayLike, R: npt.ArrayLike) -> Regulator:
    """The feedback that minimises the integral, or the sum over all steps, of y^T Q y + u^T R u.

    model: continuous or discrete. Q: (n, n), or its diagonal (n,). R: (m, m), or its diagonal (m,), positive.
    Raises ArgumentError, StateError, ShapeError, and SolveError where no feedback stabilises the model.
    Source: SciPy's solutions of the algebraic Riccati equations; Anderson, Moore, Optimal Control
    (1990), Chapters 2 and 3.
    """
    n, m = model.B.shape
    q, r = _weight(Q, n, "Q"), _weight(R, m, "R")
    A, B = model.A, model.B
    try:
        if model.step is None:
            S = scipy.linalg.solve_continuous_are(A, B, q, r)
            K = np.linalg.solve(r, B.T @ S)
        else:
            S = scipy.linalg.solve_discrete_are(A, B, q, r)
            K = np.linalg.solve(r + B.T @ S @ B, B.T @ S @ A)
    except (np.linalg.LinAlgError, ValueError) as error:
        raise SolveError(
            "no feedback stabilises this model: a growing state is not controlled, or Q does not "
            f"see it; reduce the states or change the weights ({error})"
        ) from None
    return Regulator(K, S, np.linalg.eigvals(A - B @ K))


def _weight(W: npt.ArrayLike, size: int, name: str) -> np.ndarray:
    array = validation.real_values(W, name)
    array = np.diag(array) if array.ndim == 1 else array
    if array.shape != (size, size):
        raise ShapeError(f"{name} must have the shape ({size}, {size}) or ({size},); it is {array.shape}")
    return array

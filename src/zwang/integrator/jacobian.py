"""Jacobians of functions of floats by central differences with bounded steps."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

STEP = 6e-6  # the cube root of the rounding unit: the sum of truncation and rounding errors is least


def difference_jacobian(
    function: Callable[[np.ndarray], np.ndarray], y: np.ndarray, scales: np.ndarray
) -> np.ndarray:
    """The Jacobian (m, n) of a function of y (n,) by central differences with the steps STEP * scales.

    scales (n,): the change of each variable over which the function varies by its own size. Unlike the steps
    of SciPy's implicit methods these are fixed, and do not grow without bound where the function does not
    depend on a variable. Relative error about 1e-10. Source: Press et al., Numerical Recipes, Sec. 5.7.
    """
    columns = []
    for k, scale in enumerate(scales):
        displaced = []
        for sign in (1.0, -1.0):
            at = y.copy()
            at[k] += sign * STEP * scale
            displaced.append((at[k], np.asarray(function(at), dtype=float)))
        (above, f_above), (below, f_below) = displaced
        columns.append((f_above - f_below) / (above - below))
    return np.stack(columns, axis=1) if columns else np.zeros((len(function(y)), 0))

"""Gauss's problem without constraints, as a record: the free acceleration and the metric of deviations from it."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np


class GaussProblem(NamedTuple):
    """Z(a) = 1/2 (a - a_free)^T M (a - a_free): M (nv, nv), a_free (nv,); parents, the sparsity of M (see `velocity_parents`)."""

    M: np.ndarray
    a_free: np.ndarray
    parents: tuple[int, ...]

    def zwang(self, a: Any) -> Any:
        """Z(a) [kg m^2/s^4]."""
        d = np.array(a) - self.a_free
        return d @ (self.M @ d) / 2

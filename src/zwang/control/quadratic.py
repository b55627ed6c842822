"""Quadratic costs of a trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.api.arguments import validation
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.errors import ArgumentError, ShapeError


@dataclass(frozen=True)
class Quadratic:
    """The cost sum_k (x_k - goal_k)^T W (x_k - goal_k) / 2 + (u_k - rest_k)^T R (u_k - rest_k) / 2, with
    other weights at the end.

    q: the configuration of the goal (nq,), or one for each state (steps + 1, nq). state, control, final: the
    diagonals of W (n,), R (nu,) and of W at the end (n,), of x = (dq, v, activation); state and control may
    have one row for each step, (steps, n) and (steps, nu). v, rest: the velocities of the goal and the
    controls without cost, by default zero, likewise (nv,) or (steps + 1, nv) and (nu,) or (steps, nu). The
    activations of the goal are zero.
    """

    q: npt.ArrayLike
    state: npt.ArrayLike
    control: npt.ArrayLike
    final: npt.ArrayLike
    v: npt.ArrayLike = 0.0
    rest: npt.ArrayLike = 0.0


class TrajectoryCost(NamedTuple):
    """A quadratic cost over a number of steps.

    q (steps + 1, nq), v (steps + 1, nv), rest (steps, nu): the goal. W (steps + 1, n), R (steps, nu): the
    weights of states and controls.
    """

    fast: CompiledMechanism
    q: np.ndarray
    v: np.ndarray
    rest: np.ndarray
    W: np.ndarray
    R: np.ndarray

    def deviations(self, q: Any, v: Any, z: Any) -> np.ndarray:
        """x - goal (..., steps + 1, n)."""
        return np.concatenate([self.fast.difference_configuration(q, self.q), v - self.v, z], axis=-1)

    def of(self, q: Any, v: Any, z: Any, u: Any) -> np.ndarray:
        """The cost (...) of states (..., steps + 1, size) and controls (..., steps, nu); infinite where it is
        not finite.
        """
        x, du = self.deviations(q, v, z), u - self.rest
        found = (np.einsum("...ki,ki->...", x**2, self.W) + np.einsum("...ki,ki->...", du**2, self.R)) / 2
        return np.where(np.isfinite(found), found, np.inf)


def cost_over_steps(cost: Quadratic, fast: CompiledMechanism, steps: int, nz: int, nu: int) -> TrajectoryCost:
    """The cost for a number of steps, checked. Raises ShapeError, StateError or ArgumentError."""
    m, n = fast.mechanism, 2 * fast.mechanism.nv + nz
    q = _rows(cost.q, "q", (steps + 1, m.nq))
    v = _rows(cost.v, "v", (steps + 1, m.nv))
    W = np.concatenate([_weights(cost.state, "state", (steps, n)), _weights(cost.final, "final", (1, n))])
    R = _weights(cost.control, "control", (steps, nu))
    return TrajectoryCost(fast, q, v, _rows(cost.rest, "rest", (steps, nu)), W, R)


def _rows(given: npt.ArrayLike, name: str, shape: tuple[int, int]) -> np.ndarray:
    """One row for each step; a single row, or the number 0, holds for all."""
    array = validation.real_values(given, f"{name} of the cost")
    if array.shape != () and array.shape != shape and array.shape != shape[1:]:
        rows = "" if shape[0] == 1 else f" or {shape}"
        raise ShapeError(f"{name} of the cost must have the shape ({shape[1]},){rows}; it is {array.shape}")
    return np.broadcast_to(array, shape)


def _weights(given: npt.ArrayLike, name: str, shape: tuple[int, int]) -> np.ndarray:
    array = validation.real_values(given, f"{name} of the cost")
    if array.shape == ():
        raise ShapeError(f"{name} of the cost must have the shape ({shape[1]},); it is a number")
    if not (np.isfinite(array) & (array >= 0)).all():
        raise ArgumentError(
            f"{name} of the cost is {array.tolist()}; weights must be finite and not negative"
        )
    return _rows(array, name, shape)

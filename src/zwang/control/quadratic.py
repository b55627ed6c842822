"""Quadratic costs of a trajectory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.api.arguments import validation
from zwang.api.compilation.compiled import CompiledMechanism
from zwang.errors import ArgumentError, ShapeError, StateError
from zwang.kinematics.configuration import displacement_rate


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

    def expansion(self, q: np.ndarray, v: np.ndarray, z: np.ndarray, u: np.ndarray) -> np.ndarray:
        """The Gauss-Newton Hessian (steps + 1, nu + n + 1, nu + n + 1) of the cost as a function of
        (du, dx, 1) along a trajectory, dx in the tangent space; its last row and column are the gradient.
        """
        x, last = self.deviations(q, v, z), np.zeros((1, u.shape[1]))
        R, du = np.concatenate([self.R, last]), np.concatenate([u - self.rest, last])
        nu, (count, n) = u.shape[1], x.shape
        D, W = self._deviation_derivatives(x), self.W
        H = np.zeros((count, nu + n + 1, nu + n + 1))
        H[:, range(nu), range(nu)] = R
        H[:, nu:-1, nu:-1] = D.swapaxes(1, 2) @ (W[:, :, None] * D)
        H[:, :-1, -1] = np.concatenate([R * du, np.einsum("kij,ki->kj", D, W * x)], axis=1)
        H[:, -1, :-1] = H[:, :-1, -1]
        return H

    def _deviation_derivatives(self, x: np.ndarray) -> np.ndarray:
        """D (steps + 1, n, n): the derivatives of deviations x (steps + 1, n) by a change of the state in the
        tangent space. They are the identity but for rotations: d log(exp(x) exp(dx)) / d dx.
        """
        nv, (count, n) = self.fast.mechanism.nv, x.shape
        D = np.tile(np.eye(n), (count, 1, 1))
        u, v = np.repeat(x[:, :nv].T, nv, axis=1), np.tile(np.eye(nv), count)
        rates = displacement_rate(self.fast.mechanism.tree, u, v)
        D[:, :nv, :nv] = rates.reshape(nv, count, nv).swapaxes(0, 1)
        return D


def cost_over_steps(cost: Quadratic, fast: CompiledMechanism, steps: int, nz: int, nu: int) -> TrajectoryCost:
    """The cost for a number of steps, checked. Raises ShapeError, StateError or ArgumentError."""
    m, n = fast.mechanism, 2 * fast.mechanism.nv + nz
    q = np.array(_rows(cost.q, "q", (steps + 1, m.nq)), float)
    validation.normalise_quaternions(m, q, " of the cost")
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
    if not np.isfinite(array).all():
        raise StateError(f"{name} of the cost must hold finite numbers")
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

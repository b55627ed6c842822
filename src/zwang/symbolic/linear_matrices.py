"""The matrices of a linear model by the exact derivatives of Gauss's problem, on any scalar.

At a state with the acceleration a and the constraint forces lambda,
    r(x, u) = tau(x, u) + A^T lambda - ID(q, v, a) = 0,      s(x) = b - A a = 0,
so that along a direction in which r and s change by dr and ds, with a and lambda held,
    M da - A^T dlambda = dr,     A da = ds,     da = V (V^T M V)^-1 V^T (dr - M p) + p,   A V = 0,  A p = ds.
Admissible states are x = T y with C dq = 0 for holonomic constraints, and d(A v + a)/dq dq + A dv = 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual_control_flow import parts, tangent_array, tangents
from zwang.api.analysis.linearize import constraint_gradients
from zwang.constraint.hard import all_velocity_level_rows
from zwang.dynamics.base_inertial_parameters import with_base_parameters
from zwang.dynamics.crba import crba
from zwang.dynamics.rnea import rnea
from zwang.kinematics.configuration import configuration_rate
from zwang.kinematics.jacobians import frame_jacobian
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activation_rate, activations, applied_forces
from zwang.simulation.step_tangent import Direction, deviation_rate
from zwang.symbolic.elimination import solve_exactly, solve_transposed
from zwang.symbolic.numeric_probe import independent_rows, row_sizes_near


class LinearisationState(NamedTuple):
    """q (nq,), v (nv,), the activations z (nz,), the control u (nu,) and the time t."""

    q: Any
    v: Any
    z: Any
    u: Any
    t: Any


class Structure(NamedTuple):
    """What is chosen on numbers: independent rows of the constraints, and of their gradients in x, the
    independent velocities, the independent entries of x, and the matrices of the two eliminations.
    """

    rows: list[int]
    gradient_rows: list[int]
    velocities: list[int]
    states: list[int]
    velocity_matrix: np.ndarray
    state_matrix: np.ndarray


class Matrices(NamedTuple):
    """A (n, n), B (n, nu) and T (N, n) of x_dot = A y + B u, x = T y; a (nv,): the acceleration."""

    A: np.ndarray
    B: np.ndarray
    T: np.ndarray
    a: np.ndarray


def gradient_matrix(m: Mechanism, at: LinearisationState) -> tuple[np.ndarray, np.ndarray]:
    """A (k, nv), and G (n, N) with G x = 0 for the admissible x = (dq, dv, dz), rows of positions first."""
    A, C, by_q = constraint_gradients(m, at.q, at.v, at.t)
    nv, nz = m.nv, len(at.z)
    positions = np.concatenate([C, np.zeros((len(C), nv + nz), int)], axis=1)
    velocities = np.concatenate([by_q, A, np.zeros((len(A), nz), int)], axis=1)
    return A, np.concatenate([positions, velocities])


def structure(numbers: Mechanism, at: LinearisationState, velocities: Any, states: Any) -> Structure:
    """The structure at a state in numbers. velocities, states: functions that choose independent entries of
    v and x by null spaces, given A and G, whose rows are relative to their sizes.
    """
    A, G = (np.asarray(x, dtype=float) for x in gradient_matrix(numbers, at))
    sizes, position = row_sizes_near(numbers), all_velocity_level_rows(numbers, at.q, at.v, at.t).position
    holonomic = [k for k, violation in enumerate(position) if violation is not None]
    A = A / sizes[:, None]
    G = G / np.concatenate([sizes[holonomic], sizes])[:, None]
    rows, gradient_rows = independent_rows(A), independent_rows(G)
    u, y = velocities(A), states(G)
    return Structure(
        rows, gradient_rows, u, y,
        np.concatenate([A[rows], np.eye(numbers.nv)[u]]),
        np.concatenate([G[gradient_rows], np.eye(G.shape[1])[y]]),
    )  # fmt: skip


def linear_matrices(m: Mechanism, at: LinearisationState, chosen: Structure) -> Matrices:
    """The matrices of the linear model at a state that satisfies the constraints."""
    nv, N = m.nv, 2 * m.nv + len(at.z)
    A, G = gradient_matrix(m, at)
    A, G = A[chosen.rows], G[chosen.gradient_rows]
    k, n = len(A), len(chosen.states)
    # S T = 1 for the independent entries of x, G T = 0
    S = np.eye(N, dtype=int)[chosen.states]
    right = np.concatenate([np.zeros((len(G), n), int), np.eye(n, dtype=int)])
    T = solve_exactly(np.concatenate([G, S]), right, chosen.state_matrix)
    problem = _AccelerationProblem(m, at, A, chosen)
    # the acceleration and the constraint forces of the state itself
    zero = (np.zeros(nv, int), np.zeros(k, int))
    r, s, _ = _residuals(m, at, zero, chosen.rows)
    a = problem.solved(r[:, None], s[:, None])[:, 0]
    multipliers = problem.multipliers(problem.M @ a - r)
    # d(v_dot, z_dot) along each direction: the columns of T, and unit controls
    still = np.zeros(len(at.u), int)
    directions = [Direction(x[:nv], x[nv : 2 * nv], x[2 * nv :], still) for x in T.T]
    changes = [_change(m, at, (a, multipliers), chosen.rows, x) for x in directions]
    dq_dot = [deviation_rate(m.tree, at.v, x) for x in directions]
    by_control = [_change_by_control(m, at, k, unit) for unit in np.eye(len(at.u), dtype=int)]
    changes, dq_dot = changes + by_control, dq_dot + [np.zeros(nv, int)] * len(at.u)
    dr, ds, dz = (np.stack(x, axis=1) for x in zip(*changes, strict=True))
    x_dot = np.concatenate([np.stack(dq_dot, axis=1), problem.solved(dr, ds), dz])[chosen.states]
    return Matrices(x_dot[:, :n], x_dot[:, n:], T, a)


def frame_rows(m: Mechanism, at: LinearisationState, frame: str) -> np.ndarray:
    """The derivative (3, N) of the position of a frame by x."""
    J = frame_jacobian(m.tree, at.q, frame, "world")[:3]
    return np.concatenate([J, np.zeros((3, m.nv + len(at.z)), int)], axis=1)


class _AccelerationProblem:
    """Gauss's problem at a state: accelerations with A a = s that take up the forces r."""

    def __init__(self, m: Mechanism, at: LinearisationState, A: np.ndarray, chosen: Structure) -> None:
        self.M = crba(with_base_parameters(m.tree), at.q)
        self._K = np.concatenate([A, np.eye(m.nv, dtype=int)[chosen.velocities]])
        self._near, self._free = chosen.velocity_matrix, len(chosen.velocities)
        zero = np.zeros((len(A), self._free), int)
        right = np.concatenate([zero, np.eye(self._free, dtype=int)])
        self.V = solve_exactly(self._K, right, self._near)

    def solved(self, r: np.ndarray, s: np.ndarray) -> np.ndarray:
        """The accelerations (nv, n) of the forces r (nv, n) with A a = s (k, n)."""
        p = solve_exactly(self._K, np.concatenate([s, np.zeros((self._free, s.shape[1]), int)]), self._near)
        reduced = self.V.T @ (self.M @ self.V)  # positive definite
        z = solve_exactly(reduced, self.V.T @ (r - self.M @ p), np.eye(self._free))
        return self.V @ z + p

    def multipliers(self, load: np.ndarray) -> np.ndarray:
        """The constraint forces (k,) with A^T lambda = load (nv,)."""
        return solve_transposed(self._K, load[:, None], self._near)[: len(load) - self._free, 0]


def _residuals(
    m: Mechanism, at: LinearisationState, motion: tuple[Any, Any], rows: list[int]
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """r (nv,), s (k,) and z_dot (nz,) with the acceleration and the constraint forces of the motion held."""
    a, multipliers = motion
    found = all_velocity_level_rows(m, at.q, at.v, at.t)
    A = found.A[rows]
    applied, z_dot = _driven(m, at)
    r = applied + A.T @ multipliers - rnea(with_base_parameters(m.tree), at.q, at.v, a)
    return r, found.b[rows] - A @ a, z_dot


def _driven(m: Mechanism, at: LinearisationState) -> tuple[np.ndarray, np.ndarray]:
    """The applied forces (nv,) and z_dot (nz,)."""
    kinematics = Kinematics(m.tree, at.q, at.v)
    driven = at.z, at.u, at.t, m.options.timestep
    applied = applied_forces(m, kinematics, *driven)
    rate = activation_rate(m, kinematics, *driven) if activations(m) else np.zeros(0, int)
    return applied, rate


def _change(
    m: Mechanism, at: LinearisationState, motion: tuple[Any, Any], rows: list[int], d: Direction
) -> list[np.ndarray]:
    """The derivatives of the residuals along a direction of the state."""
    with tangents():
        q = tangent_array(at.q, configuration_rate(m.tree, at.q, d.dq))
        moved = at._replace(q=q, v=tangent_array(at.v, d.dv), z=tangent_array(at.z, d.dz))
        return [_derivatives(values) for values in _residuals(m, moved, motion, rows)]


def _change_by_control(m: Mechanism, at: LinearisationState, rows: int, du: np.ndarray) -> list[np.ndarray]:
    """The derivatives of the residuals along a direction of the control, on which no row depends."""
    with tangents():
        applied, z_dot = _driven(m, at._replace(u=tangent_array(at.u, du)))
        return [_derivatives(applied), np.zeros(rows, int), _derivatives(z_dot)]


def _derivatives(values: Any) -> np.ndarray:
    return np.array([parts(x)[1] for x in values], dtype=object)

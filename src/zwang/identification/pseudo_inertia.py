"""The pseudo-inertia matrix of a rigid body, and its log-Cholesky coordinates.

The ten inertial parameters of a body are physically consistent, i.e. those of a distribution of positive
mass, if and only if the pseudo-inertia
    P = [[S, h], [h^T, m]],   S = integral r r^T dm = tr(I)/2 1 - I,
is positive definite. Every positive definite P is U U^T with the upper triangular matrix
    U = e^alpha [[e^d1, s12, s13, t1], [0, e^d2, s23, t2], [0, 0, e^d3, t3], [0, 0, 0, 1]],
so that theta = (alpha, d1, d2, d3, s12, s23, s13, t1, t2, t3) in R^10 describes exactly the consistent
bodies. Sources: Wensing, Kim, Slotine, IEEE Robotics and Automation Letters 3 (2018) 60, for P;
Rucker, Wensing, IEEE Robotics and Automation Letters 7 (2022) 2771, for theta.
"""

from __future__ import annotations

import numpy as np

ENTRIES = ((0, 1), (1, 2), (0, 2), (0, 3), (1, 3), (2, 3))
"""Row and column in U of s12, s23, s13, t1, t2, t3."""


def pseudo_inertia(pi: np.ndarray) -> np.ndarray:
    """P (4, 4) of the parameters pi (10,): m, m c (3), Ixx, Ixy, Iyy, Ixz, Iyz, Izz about the origin."""
    m, hx, hy, hz, xx, xy, yy, xz, yz, zz = pi
    I = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    P = np.zeros((4, 4))
    P[:3, :3] = np.trace(I) / 2 * np.eye(3) - I
    P[:3, 3] = P[3, :3] = hx, hy, hz
    P[3, 3] = m
    return P


PSEUDO_INERTIA_UNITS = np.array([pseudo_inertia(unit) for unit in np.eye(10)])
"""P (10, 4, 4) of each unit parameter; P is their linear combination with the coefficients pi."""


SYMMETRIC_BASIS = np.array(
    [
        (np.outer(a, b) + np.outer(b, a)) / (2 if i == j else np.sqrt(2))
        for i, a in enumerate(np.eye(4))
        for j, b in enumerate(np.eye(4))
        if i <= j
    ]
)
"""An orthonormal basis (10, 4, 4) of the symmetric matrices."""


def parameters_of_pseudo_inertia(P: np.ndarray) -> np.ndarray:
    """pi (..., 10) of P (..., 4, 4), the inverse of `pseudo_inertia`; linear in P."""
    S = P[..., :3, :3]
    I = np.trace(S, axis1=-2, axis2=-1)[..., None, None] * np.eye(3) - S
    order = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
    return np.stack(
        [P[..., 3, 3], P[..., 0, 3], P[..., 1, 3], P[..., 2, 3], *(I[..., i, j] for i, j in order)], axis=-1
    )


def relative(P: np.ndarray, other: np.ndarray) -> np.ndarray:
    """T^-1 P T^-T (..., 4, 4) with other = T T^T."""
    inverse = np.linalg.inv(np.linalg.cholesky(other))
    return inverse @ P @ inverse.T


def inertial_parameters(theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """pi (10,) of log-Cholesky coordinates theta (10,), and its exact Jacobian (10, 10)."""
    scale = np.exp(theta[0])
    shape = np.diag([*np.exp(theta[1:4]), 1.0])
    for (i, j), value in zip(ENTRIES, theta[4:], strict=True):
        shape[i, j] = value
    U = scale * shape
    changes = np.zeros((10, 4, 4))
    changes[0] = U  # dU / d alpha
    for k in range(3):
        changes[1 + k, k, k] = U[k, k]
    for k, (i, j) in enumerate(ENTRIES):
        changes[4 + k, i, j] = scale
    # dP = dU U^T + U dU^T
    half = changes @ U.T
    return (
        parameters_of_pseudo_inertia(U @ U.T),
        parameters_of_pseudo_inertia(half + half.swapaxes(1, 2)).T,
    )


def log_cholesky(P: np.ndarray) -> np.ndarray:
    """theta (10,) of a positive definite pseudo-inertia P (4, 4): the inverse of `inertial_parameters`."""
    # P = U U^T, U upper triangular: the Cholesky factor of the matrix in reversed order
    U = np.linalg.cholesky(P[::-1, ::-1])[::-1, ::-1]
    shape = U / U[3, 3]
    return np.array(
        [np.log(U[3, 3]), *np.log(np.diag(shape)[:3]), *(shape[i, j] for i, j in ENTRIES)], dtype=float
    )


def is_consistent(pi: np.ndarray) -> bool:
    """Whether the parameters pi (10,) are those of a distribution of positive mass."""
    values = np.linalg.eigvalsh(pseudo_inertia(pi))
    return bool(values[0] > -1e-12 * max(abs(values[-1]), 1e-300))

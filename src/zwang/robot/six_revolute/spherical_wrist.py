"""All solutions of a chain of six revolute joints whose last three axes meet in a point, in closed form.

The wrist centre w gives the first three angles. With y = B_2 Z(t_3) w and u = B_1^-1 Z(-t_1) B_0^-1 P the
equation Z(t_2) y = u has the invariants y_z = u_z and |y|^2 = |u|^2, two equations linear in the cosines and
sines of t_1 and t_3. The orientation gives the last three angles.
Source: Pieper, The kinematics of manipulators under computer control, Stanford University (1968).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from zwang.robot.six_revolute.revolute_chain import RevoluteChain, about_z, inverse_pose

GAP = 1e-9  # of axes that meet, relative to the length of the chain
RANK = 1e-9  # relative singular value below which the equations do not depend on t_1
ROUNDING = 1e-7  # by which a cosine may exceed 1, at the border of the workspace


def wrist_heights(chain: RevoluteChain) -> tuple[float, float] | None:
    """The coordinates of the wrist centre along the axes of joints 4 and 6; None where they do not meet."""
    allowed = GAP * max(chain.length, 1e-300)
    first = _meeting(chain.B[4], allowed)
    last = _meeting(chain.B[5], allowed)
    # the centre along axis 5, from both sides
    if first is None or last is None or abs(first[1] - last[0]) > allowed:
        return None
    return first[0], last[1]


def _meeting(B: np.ndarray, allowed: float) -> tuple[float, float] | None:
    """The coordinates, along either axis, of the point where the z axis meets that of the pose B (4, 4)."""
    p, axis = B[:3, 3], B[:3, 2]
    normal = np.cross((0, 0, 1), axis)
    square = normal @ normal
    if square < GAP or abs(p @ normal) > allowed * np.sqrt(square):
        return None
    # p + s axis = (0, 0, h)
    s = -(p[:2] @ axis[:2]) / (axis[:2] @ axis[:2])
    return float(p[2] + s * axis[2]), float(s)


def spherical_wrist_candidates(
    chain: RevoluteChain, T: np.ndarray, heights: tuple[float, float]
) -> np.ndarray:
    """Angles (n, 6), n <= 8 but for rounding, of all solutions for the pose T (4, 4)."""
    B = chain.B
    wrist = B[3] @ np.array([0, 0, heights[0], 1])
    P = inverse_pose(B[0]) @ T @ inverse_pose(B[6]) @ np.array([0, 0, heights[1], 1])
    found = []
    for t1, t3 in _first_and_third(B, wrist, P):
        y, u = B[2] @ about_z(t3) @ wrist, inverse_pose(B[1]) @ about_z(-t1) @ P
        t2 = _turn(y, u)
        arm = B[0] @ about_z(t1) @ B[1] @ about_z(t2) @ B[2] @ about_z(t3) @ B[3]
        R = (inverse_pose(arm) @ T @ inverse_pose(B[6]))[:3, :3]
        for t5 in _solutions_of_cosine(*_wrist_equation(B[4], B[5]), R[2, 2]):
            middle = (B[4] @ about_z(t5) @ B[5])[:3, :3]
            # Z(t_4) middle Z(t_6) = R
            t4 = _turn(middle[:, 2], R[:, 2])
            rest = middle.T @ about_z(-t4)[:3, :3] @ R
            t6 = np.arctan2(rest[1, 0] - rest[0, 1], rest[0, 0] + rest[1, 1])
            found.append((t1, t2, t3, t4, t5, t6))
    return np.array(found).reshape(-1, 6)


def _first_and_third(B: np.ndarray, wrist: np.ndarray, P: np.ndarray) -> list[tuple[float, float]]:
    """(t_1, t_3) with y_z = u_z and |y|^2 = |u|^2."""
    left = _linear(lambda t: _invariants(B[2] @ about_z(t) @ wrist))
    right = _linear(lambda t: _invariants(inverse_pose(B[1]) @ about_z(-t) @ P))
    # A_1 (c_1, s_1) = A_3 (c_3, s_3) + a
    A1, A3, a = right[:, :2], left[:, :2], left[:, 2] - right[:, 2]
    U, s, Vt = np.linalg.svd(A1)
    scale = max(np.abs(left).max(), np.abs(right).max())
    if s[1] > RANK * scale:
        inverse = np.linalg.inv(A1)
        M, b = inverse @ A3, inverse @ a
        return [(float(np.arctan2(*(M @ (np.cos(t), np.sin(t)) + b)[::-1])), t) for t in _on_circle(M, b)]
    # one combination of the equations does not depend on t_1
    pairs = []
    first, third = (float(s[0] * Vt[0, 0]), float(s[0] * Vt[0, 1])), U[:, 1] @ A3
    for t3 in _solutions_of_cosine(float(third[0]), float(third[1]), float(U[:, 1] @ a), 0.0):
        d = float(U[:, 0] @ (A3 @ (np.cos(t3), np.sin(t3)) + a))
        pairs += [(t1, t3) for t1 in _solutions_of_cosine(*first, 0.0, d)]
    return pairs


def _on_circle(M: np.ndarray, b: np.ndarray) -> list[float]:
    """The angles t at which |M (cos t, sin t) + b| = 1, by the roots of a quartic in exp(i t)."""
    nodes = 2 * np.pi * np.arange(5) / 5
    points = M @ np.stack([np.cos(nodes), np.sin(nodes)]) + b[:, None]
    # coefficients of z^-2 ... z^2
    F = np.exp(1j * np.outer(nodes, np.arange(-2, 3)))
    roots = np.roots(np.linalg.solve(F, (points**2).sum(0) - 1)[::-1])
    return [float(np.angle(z)) for z in roots if abs(abs(z) - 1) < np.sqrt(ROUNDING)]


def _invariants(x: np.ndarray) -> np.ndarray:
    return np.array([x[2], x[:3] @ x[:3]])


def _linear(function: Callable[[float], np.ndarray]) -> np.ndarray:
    """Coefficients (n, 3) of (cos t, sin t, 1) of a function of t."""
    f0, f1, f2 = (function(t) for t in (0.0, np.pi / 2, np.pi))
    constant = (f0 + f2) / 2
    return np.stack([(f0 - f2) / 2, f1 - constant, constant], axis=1)


def _wrist_equation(B4: np.ndarray, B5: np.ndarray) -> tuple[float, float, float]:
    """Coefficients of (cos t_5, sin t_5, 1) of the cosine between the axes of joints 4 and 6."""
    (row,) = _linear(lambda t: np.array([(B4 @ about_z(t) @ B5)[2, 2]]))
    return float(row[0]), float(row[1]), float(row[2])


def _solutions_of_cosine(a: float, b: float, c: float, d: float) -> list[float]:
    """The angles t with a cos t + b sin t + c = d; 0 where a and b vanish and every angle is one."""
    r = float(np.hypot(a, b))
    x = d - c
    if r <= RANK * max(abs(c), abs(d), 1e-300):
        return [0.0]
    if abs(x) > r * (1 + ROUNDING):
        return []
    half, middle = float(np.arccos(np.clip(x / r, -1, 1))), float(np.arctan2(b, a))
    return [middle + half, middle - half]


def _turn(x: np.ndarray, y: np.ndarray) -> float:
    """The angle about z that turns x into y; 0 where they lie on the z axis."""
    return float(np.arctan2(x[0] * y[1] - x[1] * y[0], x[0] * y[0] + x[1] * y[1]))

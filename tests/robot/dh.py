"""An oracle: forward kinematics of a Denavit-Hartenberg table, by 4x4 matrices in plain NumPy."""

from __future__ import annotations

from typing import Any

import numpy as np

import zwang as zw
from tests.cases import case

ARMS = ("puma560", "ur5", "panda")


def table(name: str) -> dict[str, Any]:
    return case("robot_analysis", "G01_manipulability")["parameters"]["arms"][name]


def arm(name: str, limits: Any = None) -> zw.Mechanism:
    t = table(name)
    return zw.robot.from_dh(
        d=t["d"],
        a=t["a"],
        alpha=t["alpha"],
        limits=limits or t["qlim"],
        convention=t["convention"],
        name=name,
    )


def two_link(a1: float = 1, a2: float = 1) -> zw.Mechanism:
    return zw.robot.from_dh(d=[0, 0], a=[a1, a2], alpha=[0, 0], name="two-link arm")


def pose(name: str, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """(R, p) of the flange for q (N, n)."""
    t = table(name)
    T = np.broadcast_to(np.eye(4), (len(q), 4, 4))
    for i, (d, a, alpha) in enumerate(zip(t["d"], t["a"], t["alpha"], strict=True)):
        turn = _rz(q[:, i]) @ _translation(0, 0, d)
        twist = _translation(a, 0, 0) @ _rx(alpha)
        T = T @ (twist @ turn if t["convention"] == "modified" else turn @ twist)
    return T[:, :3, :3], T[:, :3, 3]


def errors(name: str, q: np.ndarray, R: np.ndarray, p: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distances [m] and angles [rad] between the poses at q and the targets."""
    R_q, p_q = pose(name, q)
    D = R @ R_q.swapaxes(1, 2)
    w = np.stack([D[:, 2, 1] - D[:, 1, 2], D[:, 0, 2] - D[:, 2, 0], D[:, 1, 0] - D[:, 0, 1]], axis=1) / 2
    angle = np.arctan2(np.linalg.norm(w, axis=1), (np.trace(D, axis1=1, axis2=2) - 1) / 2)
    return np.linalg.norm(p - p_q, axis=1), angle


def _rz(angle: np.ndarray) -> np.ndarray:
    T = np.zeros((len(angle), 4, 4))
    T[:, 0, 0] = T[:, 1, 1] = np.cos(angle)
    T[:, 1, 0] = np.sin(angle)
    T[:, 0, 1] = -T[:, 1, 0]
    T[:, 2, 2] = T[:, 3, 3] = 1
    return T


def _rx(angle: float) -> np.ndarray:
    c, s = np.cos(angle), np.sin(angle)
    return np.array([[1, 0, 0, 0], [0, c, -s, 0], [0, s, c, 0], [0, 0, 0, 1.0]])


def _translation(x: float, y: float, z: float) -> np.ndarray:
    T = np.eye(4)
    T[:3, 3] = x, y, z
    return T

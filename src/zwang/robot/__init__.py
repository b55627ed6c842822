"""What a robot can do: manipulability, singularities, workspace, statics and inverse kinematics."""

from __future__ import annotations

from zwang.robot.arms import from_dh
from zwang.robot.manipulability import Ellipsoid, Manipulability, manipulability
from zwang.robot.solution import Residual, Solution, Trace
from zwang.robot.solve import solve_ik

__all__ = [
    "Ellipsoid",
    "Manipulability",
    "Residual",
    "Solution",
    "Trace",
    "from_dh",
    "manipulability",
    "solve_ik",
]

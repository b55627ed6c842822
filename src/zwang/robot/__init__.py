"""What a robot can do: manipulability, singularities, workspace, statics and inverse kinematics."""

from __future__ import annotations

from zwang.robot.arms import from_dh
from zwang.robot.solution import Residual, Solution, Trace
from zwang.robot.solve import solve_ik

__all__ = ["Residual", "Solution", "Trace", "from_dh", "solve_ik"]

"""What a robot can do: manipulability, singularities, workspace, statics and inverse kinematics."""

from __future__ import annotations

from zwang.robot.denavit_hartenberg import from_dh
from zwang.robot.manipulability import Ellipsoid, Manipulability, manipulability
from zwang.robot.null_space_objectives import away_from_singularities
from zwang.robot.solution import IKSolution, Residual, Trace
from zwang.robot.solve_ik import solve_ik
from zwang.robot.statics import (
    Equilibrium,
    Payload,
    equilibrium,
    gravity_torques,
    holding_torques,
    joint_torques,
    payload,
)
from zwang.robot.workspace import Workspace, workspace

__all__ = [
    "Ellipsoid",
    "Equilibrium",
    "Manipulability",
    "Payload",
    "Residual",
    "IKSolution",
    "Trace",
    "Workspace",
    "away_from_singularities",
    "equilibrium",
    "from_dh",
    "gravity_torques",
    "holding_torques",
    "joint_torques",
    "manipulability",
    "payload",
    "solve_ik",
    "workspace",
]

"""Robot analysis: manipulability, singularities, workspace, statics and inverse kinematics."""

from __future__ import annotations

from zwang.deprecation import module_getattr
from zwang.robot.denavit_hartenberg import from_dh
from zwang.robot.ik_solution import IKSolution, Residual, Trace
from zwang.robot.inverse_kinematics import solve_ik
from zwang.robot.manipulability import Manipulability, ManipulabilityEllipsoid, manipulability
from zwang.robot.null_space_objectives import away_from_singularities
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
    "Equilibrium",
    "IKSolution",
    "Manipulability",
    "ManipulabilityEllipsoid",
    "Payload",
    "Residual",
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

__getattr__ = module_getattr(__name__, {"Ellipsoid": "ManipulabilityEllipsoid", "Solution": "IKSolution"})

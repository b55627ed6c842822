"""Robot analysis: manipulability, singularities, workspace, statics and inverse kinematics."""

from __future__ import annotations

from zwang.deprecation import module_getattr
from zwang.robot.com_jacobian import com_jacobian
from zwang.robot.denavit_hartenberg import from_dh
from zwang.robot.inverse_kinematics.ik_solution import IKSolution, Residual, Trace
from zwang.robot.inverse_kinematics.null_space_objectives import away_from_singularities
from zwang.robot.inverse_kinematics.solve_ik import solve_ik
from zwang.robot.manipulability import Manipulability, ManipulabilityEllipsoid, manipulability
from zwang.robot.six_revolute.all_solutions import AllIKSolutions, all_ik_solutions
from zwang.robot.statics import (
    Equilibrium,
    Payload,
    equilibrium,
    gravity_torques,
    holding_torques,
    joint_torques,
    payload,
)
from zwang.robot.whole_body.differential_ik import IKStep, differential_ik
from zwang.robot.whole_body.weighted_tasks import CollisionAvoidance, ComTask, FrameTask, PostureTask
from zwang.robot.whole_body.whole_body_ik import WholeBodySolution, whole_body_ik
from zwang.robot.workspace import Workspace, workspace

__all__ = [
    "AllIKSolutions",
    "CollisionAvoidance",
    "ComTask",
    "Equilibrium",
    "FrameTask",
    "IKSolution",
    "IKStep",
    "Manipulability",
    "ManipulabilityEllipsoid",
    "Payload",
    "PostureTask",
    "Residual",
    "Trace",
    "WholeBodySolution",
    "Workspace",
    "all_ik_solutions",
    "away_from_singularities",
    "com_jacobian",
    "differential_ik",
    "equilibrium",
    "from_dh",
    "gravity_torques",
    "holding_torques",
    "joint_torques",
    "manipulability",
    "payload",
    "solve_ik",
    "whole_body_ik",
    "workspace",
]

__getattr__ = module_getattr(__name__, {"Ellipsoid": "ManipulabilityEllipsoid", "Solution": "IKSolution"})


def __dir__() -> list[str]:
    return sorted(__all__)

"""Robots from URDF: inverse kinematics and manipulability, with Pinocchio as the oracle."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.oracles.pinocchio_cases import PinocchioCase, loaded
from zwang.robot.sampling import random_configurations


@pytest.fixture(scope="module", params=["F_panda", "F_ur5", "F_xarm7"])
def robot(request) -> PinocchioCase:
    return loaded(request.param)


def tool(m: zw.Mechanism) -> str:
    """The frame that the most joints carry."""
    return max(m.tree.placements, key=lambda name: len(m.tree.path(m.tree.placements[name].link)))


def test_random_poses_are_reached(robot):
    m = robot.mechanism
    frame = tool(m)
    q = random_configurations(m, 200, seed=8)
    targets = [zw.frame_pose(m, row, frame) for row in q]
    solution = zw.robot.solve_ik(m, frame, targets)
    assert solution.converged.all()
    for row, target in zip(solution.q, targets, strict=True):
        pose = zw.frame_pose(m, row, frame)
        np.testing.assert_allclose(pose.p, target.p, atol=2e-6)
        np.testing.assert_allclose(pose.R, target.R, atol=4e-6)


def test_solutions_and_measures_agree_with_pinocchio(robot):
    """The pose and the manipulability of the solution, by another library."""
    pin = pytest.importorskip("pinocchio", exc_type=ImportError)
    m = robot.mechanism
    frame = tool(m)
    model = pin.buildModelFromXML(robot.parameters["urdf"])
    data = model.createData()
    start, end = random_configurations(m, 2, seed=2)
    target = zw.frame_pose(m, end, frame)
    solution = zw.robot.solve_ik(m, frame, target, q0=start)
    assert solution.converged
    q = np.zeros(model.nq)
    for joint, there, _ in robot.slots:
        q[there] = solution.q[joint.q]
    pin.framesForwardKinematics(model, data, q)
    placement = data.oMf[model.getFrameId(frame)]
    np.testing.assert_allclose(placement.translation, target.p, atol=2e-6)
    np.testing.assert_allclose(placement.rotation, target.R, atol=4e-6)
    J = pin.computeFrameJacobian(model, data, q, model.getFrameId(frame), pin.LOCAL_WORLD_ALIGNED)
    w = zw.robot.manipulability(m, solution.q, frame, part="pose")
    np.testing.assert_allclose(w.singular_values, np.linalg.svd(J, compute_uv=False)[:6], atol=1e-9)


def test_a_leg_of_a_floating_robot():
    """A foot's position by the leg's own joints, the base left where it is."""
    m = loaded("F_anymal_c").mechanism
    foot = next(name for name in m.tree.placements if name.endswith("LF_FOOT"))
    leg = [j.name for j in m.joints if j.name.startswith("LF_")]
    q0 = np.array(m.neutral, dtype=float)
    bent = q0.copy()
    bent[[m.joint(name).q.start for name in leg]] = (0.1, 0.4, -0.8)
    target = zw.frame_pose(m, bent, foot).p
    solution = zw.robot.solve_ik(m, foot, target, q0=q0, joints=leg)
    assert solution.converged
    np.testing.assert_array_equal(solution.q[:7], q0[:7])
    np.testing.assert_allclose(zw.frame_pose(m, solution.q, foot).p, target, atol=2e-6)
    whole = zw.robot.solve_ik(m, foot, np.add(target, (0.5, 0.2, 0.1)), q0=q0)
    assert whole.converged and np.linalg.norm(whole.q[3:7]) == pytest.approx(1)

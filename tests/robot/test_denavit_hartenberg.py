"""Arms from Denavit-Hartenberg tables."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from tests.robot import dh


@pytest.mark.parametrize("name", dh.ARMS)
def test_poses_and_jacobians_are_those_of_the_table(name):
    m = dh.arm(name)
    for reference in case("robot_analysis", "G01_manipulability")["reference"][name].values():
        R, p = zw.frame_pose(m, reference["q"], "tip")
        T = np.array(reference["T"])
        np.testing.assert_allclose(R, T[:3, :3], atol=1e-14)
        np.testing.assert_allclose(p, T[:3, 3], atol=1e-14)
        np.testing.assert_allclose(zw.frame_jacobian(m, reference["q"], "tip"), reference["J0"], atol=1e-14)


@pytest.mark.parametrize("name", dh.ARMS)
def test_poses_equal_products_of_matrices(name):
    m = dh.arm(name)
    q = np.random.default_rng(1).uniform(-3, 3, (5, m.nq))
    R, p = dh.pose(name, q)
    for k in range(5):
        pose = zw.frame_pose(m, q[k], "tip")
        np.testing.assert_allclose(pose.R, R[k], atol=1e-14)
        np.testing.assert_allclose(pose.p, p[k], atol=1e-14)


@pytest.mark.parametrize("convention", ["standard", "modified"])
def test_prismatic_joints_offsets_and_tools(convention):
    """A table with a slide, an angle's offset and a tool, against its product of matrices."""
    d, a, alpha, theta = [0.3, 0.1, 0.2], [0.1, 0.4, 0.0], [0.7, -1.1, 0.4], [0.2, 0.5, -0.3]
    tool = (np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1]]), (0.1, 0.2, 0.3))
    m = zw.robot.from_dh(
        d=d,
        a=a,
        alpha=alpha,
        theta=theta,
        joints="RPR",
        convention=convention,
        tool=tool,
        limits=[None, (0, 1), None],
    )
    q = np.array([0.4, 0.35, -0.8])
    T = np.eye(4)
    for i in range(3):
        angle, slide = (theta[i], d[i] + q[i]) if i == 1 else (theta[i] + q[i], d[i])
        turn = dh._rz(np.array([angle]))[0] @ dh._translation(0, 0, slide)
        twist = dh._translation(a[i], 0, 0) @ dh._rx(alpha[i])
        T = T @ (twist @ turn if convention == "modified" else turn @ twist)
    R, p = zw.frame_pose(m, q, "tip")
    np.testing.assert_allclose(R, T[:3, :3] @ tool[0], atol=1e-14)
    np.testing.assert_allclose(p, T[:3, 3] + T[:3, :3] @ tool[1], atol=1e-14)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"a": [1]}, "column a of the table has 1 entries"),
        ({"joints": "RX"}, "'R' .revolute"),
        ({"convention": "craig"}, "'standard' or 'modified'"),
        ({"limits": [(1, 0), None]}, "lower must not exceed"),
    ],
)
def test_an_invalid_table_is_reported(change, message):
    table = {"d": [0, 0], "a": [1, 1], "alpha": [0, 0], **change}
    with pytest.raises(zw.errors.DescriptionError, match=message):
        zw.robot.from_dh(**table)

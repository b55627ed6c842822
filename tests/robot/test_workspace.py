"""Workspaces by sampling."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation
from scipy.stats import kstest

import zwang as zw
from tests.robot import dh


def test_the_two_link_arm_covers_a_ring():
    """Between |a1 - a2| and a1 + a2, in the plane."""
    space = zw.robot.workspace(dh.two_link(1, 0.4), "tip", samples=20_000)
    low, high = space.reach()
    assert 0.6 <= low < 0.601 and 1.399 < high <= 1.4
    assert np.abs(space.positions[:, 2]).max() == 0 and space.hull_volume == 0
    assert str(space).startswith("<workspace of 'tip': 20,000 samples, x -1.") and len(str(space)) < 100
    np.testing.assert_allclose(space.bounds, [(-1.4, -1.4, 0), (1.4, 1.4, 0)], atol=0.01)


def test_samples_keep_to_the_limits_and_are_the_frame_s_poses():
    m = dh.arm("panda")
    space = zw.robot.workspace(m, "tip", samples=500, seed=3)
    limits = np.array(dh.table("panda")["qlim"])
    assert (space.q >= limits[:, 0]).all() and (space.q <= limits[:, 1]).all()
    R, p = dh.pose("panda", space.q)
    np.testing.assert_allclose(space.positions, p, atol=1e-12)
    np.testing.assert_allclose(space.rotations, R, atol=1e-12)
    assert space.manipulability(part="position").measure.shape == (500,)
    assert 1 < space.hull_volume < 4 / 3 * np.pi * 1.3**3


def test_slides_fill_their_box():
    """Three slides along x, y, z with limits: the hull is the box."""
    parent, bodies = "world", []
    for k, axis in enumerate(np.eye(3)):
        bodies.append(zw.Body(f"b{k}", zw.Prismatic(f"s{k}", axis=axis, limits=(0, k + 1)), parent, mass=1))
        parent = f"b{k}"
    space = zw.robot.workspace(zw.Mechanism(bodies=tuple(bodies)), parent, samples=20_000)
    assert space.hull_volume == pytest.approx(6, rel=0.02)


def test_the_same_seed_gives_the_same_samples():
    first, second = (zw.robot.workspace(dh.two_link(), "tip", samples=10, seed=7).q for _ in range(2))
    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize("largest", [1e-3, 0.5, 3.0])
def test_ball_joints_with_limits_are_sampled_uniformly_within_them(largest):
    """The angles have the distribution (a - sin a) / (largest - sin largest), and the axes no direction."""
    ball = zw.Body("a", zw.Ball("s", limits=(0, largest)), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism("b", [ball], frames=[zw.Frame("tip", "a", (0, 0, 1))])
    space = zw.robot.workspace(m, "tip", samples=4000)
    vectors = Rotation.from_quat(space.q, scalar_first=True).as_rotvec()
    angles = np.linalg.norm(vectors, axis=1)
    assert angles.max() <= largest * (1 + 1e-12)

    def distribution(a):
        return (a - np.sin(a)) / (largest - np.sin(largest))

    assert kstest(angles, distribution).pvalue > 1e-3
    assert np.abs((vectors / angles[:, None]).mean(axis=0)).max() < 4 / np.sqrt(3 * 4000)

"""All solutions of six revolute joints: their number, their poses, and Newton's method from many starts."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import zwang as zw
from tests.robot import dh
from zwang.robot import all_ik_solutions
from zwang.robot.six_revolute.revolute_chain import revolute_chain

SIXTEEN = (0.14529531, -2.5485990, 2.98804470, 0.44265272, -3.06026493, 1.69042505)


def sixteen_solution_arm():
    """The arm of Manseur and Doty, Int. J. Robotics Research 8(5) (1989) 75, which has up to 16 solutions."""
    twist = np.radians([90, 1, 90, 1, 90, 1])
    return zw.robot.from_dh(
        d=[0, 0, 0.2, 0, 0, 0], a=[0.3, 1, 0, 1.5, 0, 1.1353], alpha=twist, convention="standard"
    )


def random_arm(rng, *, spherical=False):
    """Six revolute joints about random axes at random points; with a spherical wrist the last three meet."""
    bodies, parent = [], "world"
    for k in range(6):
        axis = rng.standard_normal(3)
        bodies.append(
            zw.Body(
                f"body {k}",
                zw.Revolute(f"joint {k}", axis=tuple(axis / np.linalg.norm(axis))),
                parent=parent,
                position=np.zeros(3) if spherical and k > 3 else rng.uniform(-0.5, 0.5, 3),
                orientation=Rotation.random(random_state=int(rng.integers(2**31))).as_matrix(),
                mass=1.0,
                inertia=np.eye(3),
            )
        )
        parent = f"body {k}"
    return zw.Mechanism(bodies=bodies, frames=[zw.Frame("tip", parent, position=(0.1, 0.2, 0.05))])


def solutions_at(m, q, **options):
    pose = zw.frame_pose(m, q, "tip")
    return all_ik_solutions(m, "tip", (pose.R, pose.p), **options)


def check(m, q, found):
    """Every solution has the pose of q by forward kinematics, q is one of them, and they differ."""
    pose = zw.frame_pose(m, q, "tip")
    for x in found.q:
        own = zw.frame_pose(m, x, "tip")
        np.testing.assert_allclose(own.p, pose.p, atol=1e-9)
        np.testing.assert_allclose(own.R, pose.R, atol=1e-9)
    turned = np.abs(np.angle(np.exp(1j * (found.q[:, None] - found.q[None])))).max(axis=-1)
    assert (turned + np.eye(len(found)) > 1e-5).all()
    assert np.abs(np.angle(np.exp(1j * (found.q - q)))).max(axis=1).min() < 1e-6


def solutions_from_many_starts(m, q, count=400):
    """The number of solutions that Newton's method finds from random starts."""
    chain, rng = revolute_chain(m, "tip"), np.random.default_rng(5)
    T = chain.pose(np.asarray(q, dtype=float) - chain.reference)
    t, residual = chain.refined(rng.uniform(-np.pi, np.pi, (count, 6)), T)
    distinct: list[np.ndarray] = []
    for x in t[residual < 1e-9]:
        if all(np.abs(np.angle(np.exp(1j * (x - y)))).max() > 1e-4 for y in distinct):
            distinct.append(x)
    return len(distinct)


def test_an_arm_with_sixteen_solutions():
    m = sixteen_solution_arm()
    found = solutions_at(m, SIXTEEN)
    assert len(found) == 16 and found.method == "elimination" and found.residual.max() < 1e-12
    assert not found.singular.any()
    check(m, SIXTEEN, found)


@pytest.mark.parametrize("seed", range(12))
def test_general_arms_are_complete(seed):
    """The generating angles are found, the number is even, and no start of Newton's method finds another."""
    rng = np.random.default_rng(seed)
    m, q = random_arm(rng), rng.uniform(-3, 3, 6)
    found = solutions_at(m, q)
    check(m, q, found)
    assert len(found) % 2 == 0 and len(found) <= 16
    if seed < 4:
        assert solutions_from_many_starts(m, q) == len(found)


@pytest.mark.parametrize("seed", range(20))
def test_spherical_wrists_have_up_to_eight(seed):
    rng = np.random.default_rng(100 + seed)
    m, q = random_arm(rng, spherical=True), rng.uniform(-3, 3, 6)
    found = solutions_at(m, q)
    check(m, q, found)
    assert found.method == "spherical wrist" and len(found) in (2, 4, 6, 8)
    if seed < 3:
        assert solutions_from_many_starts(m, q) == len(found)


def test_puma_has_eight_and_a_wrist_equal_to_that_of_elimination():
    m, rng = dh.arm("puma560"), np.random.default_rng(0)
    for q in rng.uniform(-3, 3, (10, 6)):
        found = solutions_at(m, q)
        check(m, q, found)
        assert len(found) == 8 and found.method == "spherical wrist"


def test_parallel_axes():
    """UR5, of whose axes three are parallel and no three meet: 8 solutions, or 2, 4 or 6 near the border."""
    m, rng = dh.arm("ur5"), np.random.default_rng(0)
    counts = Counter()
    for q in rng.uniform(-3, 3, (8, 6)):
        found = solutions_at(m, q)
        check(m, q, found)
        counts[len(found)] += 1
    assert set(counts) <= {2, 4, 6, 8} and counts[8] >= 5


def test_limits_are_reported_and_used_to_choose_the_revolution():
    m = dh.arm("puma560", [(2.5, 4.5)] + [(-3.2, 3.2)] * 5)
    q = np.array([3.6, 0.4, -0.3, 0.5, 0.7, -0.6])
    found = solutions_at(m, q)
    assert len(found) == 8 and 0 < found.within_limits.sum() < 8
    inside = found.q[found.within_limits]
    assert (inside[:, 0] >= 2.5).all() and (inside[:, 0] <= 4.5).all()
    assert np.abs(inside - q).max(axis=1).min() < 1e-8


def test_singular_solutions_are_marked_and_a_far_target_has_none():
    m = dh.arm("puma560")
    straight = solutions_at(m, np.array([0.3, 0.4, -0.3, 0.5, 0.0, -0.6]))  # axes 4 and 6 coincide
    assert straight.singular.any() and straight.residual.max() < 1e-9
    assert len(all_ik_solutions(m, "tip", (np.eye(3), (5.0, 0, 0)))) == 0
    assert len(all_ik_solutions(sixteen_solution_arm(), "tip", (np.eye(3), (9.0, 0, 0)))) == 0


def test_other_arms_are_refused():
    with pytest.raises(zw.errors.DescriptionError, match="7 joints"):
        all_ik_solutions(dh.arm("panda"), "tip", (np.eye(3), (0.5, 0, 0.3)))
    with pytest.raises(zw.errors.DescriptionError, match="one pose"):
        all_ik_solutions(dh.arm("ur5"), "tip", [(np.eye(3), (0.5, 0, 0.3))] * 2)
    with pytest.raises(zw.errors.UnknownNameError, match="tip"):
        all_ik_solutions(dh.arm("ur5"), "tp", (np.eye(3), (0.5, 0, 0.3)))

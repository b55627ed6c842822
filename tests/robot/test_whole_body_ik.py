"""Whole-body inverse kinematics: reached targets by forward kinematics, and the reasons for failure."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import zwang as zw
from tests.robot import dh
from tests.robot.test_differential_ik import FEET, HAND, HUMANOID, bent
from zwang.robot import CollisionAvoidance, ComTask, FrameTask, PostureTask, whole_body_ik
from zwang.robot.sampling import random_configurations

TASKS = (*FEET, HAND, ComTask(weight=2))


@pytest.fixture(scope="module")
def humanoid():
    return zw.load(HUMANOID)


@pytest.fixture(scope="module")
def reachable(humanoid):
    """Poses of the feet, and 200 positions of the hand and of the centre of mass that they allow."""
    m, rng = humanoid, np.random.default_rng(1)
    feet = [(pose.R, pose.p) for pose in (zw.frame_pose(m, bent(m), task.frame) for task in FEET)]
    q = np.tile(bent(m), (200, 1))
    q[:, 7:] += 0.3 * rng.standard_normal((200, m.nq - 7))
    standing = whole_body_ik(m, FEET, feet, q)
    which = standing.converged
    assert which.mean() > 0.98
    fast = zw.compile(m)
    return feet, fast.frame_pose(standing.q[which], "right_forearm").p, fast.mass_centre(standing.q[which])


def test_humanoid_reaches_all_targets_of_other_postures(humanoid, reachable):
    """Feet, hand and centre of mass are at their targets by the functions on floats; limits hold."""
    m, (feet, hands, centres) = humanoid, reachable
    found = whole_body_ik(m, TASKS, [*feet, hands, centres], bent(m), restarts=20)
    assert found.converged.all() and (found.reason == "converged").all()
    for q, hand, centre in zip(found.q[::10], hands[::10], centres[::10], strict=True):
        for (R, p), task in zip(feet, FEET, strict=True):
            pose = zw.frame_pose(m, q, task.frame)
            np.testing.assert_allclose(pose.p, p, atol=1e-6)
            np.testing.assert_allclose(pose.R, R, atol=2e-6)
        np.testing.assert_allclose(zw.frame_pose(m, q, "right_forearm").p, hand, atol=1e-6)
        np.testing.assert_allclose(zw.mass_centre(m, q), centre, atol=1e-6)
    for index in m.joints:
        if index.kind != "free" and index.joint.limits is not None:
            low, high = (float(x) for x in index.joint.limits)
            assert (found.q[:, index.q] >= low - 1e-15).all() and (found.q[:, index.q] <= high + 1e-15).all()


def test_what_cannot_be_reached_is_told(humanoid, reachable):
    m, (feet, hands, centres) = humanoid, reachable
    hands = np.array(hands[:4])
    hands[1] += (3, 0, 0)
    found = whole_body_ik(m, TASKS, [*feet, hands, centres[:4]], bent(m), restarts=2)
    assert found.converged.tolist() == [True, False, True, True]
    assert found.reason[1] in ("limit", "stationary") and found.residual.position[1, 2] > 1
    assert "limit" in found.explain(1) or "out of reach" in found.explain(1)
    assert "3 converged" in str(found)
    short = whole_body_ik(m, TASKS, [*feet, hands[0], centres[0]], bent(m), iterations=1)
    assert short.reason == "iterations" and not short.converged


def test_posture_of_second_priority_does_not_move_the_tool():
    """The redundant arm takes the posture's side of its self-motion, and the tool stays at its target."""
    m = dh.arm("panda", dh_limits())
    q = random_configurations(m, 30, 3)
    pose = zw.compile(m).frame_pose(q, "tip")
    rest = np.array([0, -0.3, 0, -2.2, 0, 2.0, 0.8])
    tool, posture = FrameTask("tip"), PostureTask()
    plain = whole_body_ik(m, tool, [(pose.R, pose.p)], q)
    nearer = whole_body_ik(m, (tool, posture), [(pose.R, pose.p), rest], q)
    assert plain.converged.all() and nearer.converged.all()
    before, after = (np.linalg.norm(s.q - rest, axis=1) for s in (plain, nearer))
    assert (after <= before + 1e-9).all() and (after < before - 0.01).mean() > 0.5
    # within a few iterations too, which all priorities share
    count = int(plain.iterations.max()) + 2
    soon = whole_body_ik(m, (tool, posture), [(pose.R, pose.p), rest], q, iterations=count)
    position, orientation = dh.errors("panda", soon.q, pose.R, pose.p)
    assert soon.converged.all() and max(position.max(), orientation.max()) < 1e-6 + 1e-9
    assert soon.iterations.max() == count
    # stationary: the posture's pull has no part in the null space of the free joints
    for x in nearer.q[:5]:
        limits = np.array(dh_limits())
        free = (x > limits[:, 0] + 1e-9) & (x < limits[:, 1] - 1e-9)
        J = zw.frame_jacobian(m, x, "tip")[:, free]
        pull = (rest - x)[free]
        rest_of_it = pull - np.linalg.pinv(J) @ (J @ pull)
        assert np.abs(rest_of_it).max() < 2e-3


def dh_limits():
    return [(-2.9, 2.9), (-1.76, 1.76), (-2.9, 2.9), (-3.07, -0.07), (-2.9, 2.9), (-0.02, 3.75), (-2.9, 2.9)]


def test_equal_weights_compromise_by_their_ratio():
    """A slider between two targets of weights 2 and 1 stops at the mean with the weights 4 and 1."""
    m = zw.Mechanism(
        bodies=[
            zw.Body("cart", zw.Prismatic("slide", axis=(1, 0, 0)), mass=1.0, inertia=np.eye(3)),
        ]
    )
    row = np.array([1.0, 0, 0, 0, 0, 0])
    tasks = (FrameTask("cart", weight=2 * row), FrameTask("cart", weight=row))
    found = whole_body_ik(m, tasks, [(0.0, 0, 0), (1.0, 0, 0)], damping=1e-9, compiled=False)
    assert found.q[0] == pytest.approx(0.2, abs=1e-6)
    assert found.reason == "stationary" and "compete" in found.explain()


@pytest.mark.parametrize("unit", [1e-6, 1e-3, 1.0, 1e3])
@pytest.mark.parametrize("kind", ["arm", "gantry"])
def test_targets_are_reached_in_any_unit_of_length(kind, unit):
    """By both searches for inverse kinematics, to a tolerance of 1e-9 of the arm."""
    axes, bodies = {"arm": [(0, 0, 1), (0, 1, 0), (0, 1, 0)], "gantry": np.eye(3)}[kind], []
    for k, axis in enumerate(axes):
        limits = (-2 * unit, 2 * unit)
        joint = zw.Revolute(f"j{k}", axis) if kind == "arm" else zw.Prismatic(f"j{k}", axis, limits=limits)
        position = (0.5 * unit if kind == "arm" and k else 0, 0, 0)
        bodies.append(zw.Body(f"b{k}", joint, f"b{k - 1}" if k else "world", position, mass=1))
    m = zw.Mechanism(kind, bodies, frames=[zw.Frame("tip", "b2", (0.5 * unit, 0, 0))])
    target, start = np.array([0.7, 0.274, 0.504]) * unit, np.full(3, 0.1 if kind == "arm" else 0.1 * unit)
    task = FrameTask("tip", weight=(1, 1, 1, 0, 0, 0))
    for found in (
        whole_body_ik(m, task, [target], start, tolerance=1e-9 * unit, compiled=False),
        zw.robot.solve_ik(m, "tip", target, q0=start, tolerance=1e-9 * unit, compiled=False),
    ):
        assert found.converged
        assert np.abs(zw.frame_pose(m, found.q, "tip").p - target).max() < 1e-9 * unit


def test_an_obstacle_is_avoided():
    """A planar arm reaches beside a sphere without touching it; a target inside is told."""

    def body(name, parent, x):
        return zw.Body(
            name,
            zw.Revolute(f"joint of {name}", axis=(0, 0, 1)),
            parent=parent,
            position=(x, 0, 0),
            mass=1.0,
            inertia=np.eye(3),
            geometry=[zw.Sphere(radius=0.05, position=(0.5, 0, 0))],
        )

    m = zw.Mechanism(
        bodies=[body("a", "world", 0), body("b", "a", 0.5), body("c", "b", 0.5)],
        frames=[zw.Frame("tip", "c", position=(0.5, 0, 0))],
        geometry=[zw.Sphere(radius=0.2, position=(0.9, 0.1, 0))],
    )
    task = FrameTask("tip", weight=(1, 1, 0, 0, 0, 0))
    keep = CollisionAvoidance((("a", "world"), ("b", "world"), ("c", "world")), distance=0.02, detection=0.5)
    goal, start = (1.0, 0.45, 0), (-0.6, 0.3, 0.2)

    def clearance(q):
        centres = [zw.frame_pose(m, q, name).R @ (0.5, 0, 0) + zw.frame_pose(m, q, name).p for name in "abc"]
        return min(np.linalg.norm(c - (0.9, 0.1, 0)) for c in centres) - 0.25

    through = whole_body_ik(m, task, [goal], start)
    around = whole_body_ik(m, task, [goal], start, avoid=keep, restarts=20)
    assert through.converged and around.converged
    assert clearance(around.q) >= 0.02 - 1e-6
    np.testing.assert_allclose(zw.frame_pose(m, around.q, "tip").p[:2], goal[:2], atol=1e-6)
    inside = whole_body_ik(m, task, [(0.9, 0.12, 0)], start, avoid=keep)
    assert not inside.converged and clearance(inside.q) >= 0.02 - 1e-6
    assert 0.25 - 1e-6 <= inside.residual.position[0] < 0.26  # 0.27 m from the centre, the target 0.02 m


def test_a_closed_loop_and_a_coupling_are_closed():
    bar = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.eye(3)}
    m = zw.Mechanism(
        bodies=[
            zw.Body("crank", zw.Revolute("a", axis=(0, 0, 1)), **bar),
            zw.Body("coupler", zw.Revolute("b", axis=(0, 0, 1)), parent="crank", position=(1, 0, 0), **bar),
            zw.Body("rocker", zw.Revolute("c", axis=(0, 0, 1)), position=(2, 0, 0), **bar),
            zw.Body("follower", zw.Revolute("d", axis=(0, 0, 1)), **bar),
        ],
        constraints=[
            zw.Connect("close", a=("coupler", (1.8, 0, 0)), b=("rocker", (1.5, 0, 0))),
            zw.JointCoupling("gear", "d", "a", coefficients=(0, -2.0)),
        ],
    )
    angle = 0.9
    goal = np.array([np.cos(angle), np.sin(angle), 0])
    found = whole_body_ik(m, FrameTask("coupler", weight=(1, 1, 0, 0, 0, 0)), [goal], (1.2, -0.6, 1.4, 0.0))
    assert found.converged and found.q[0] == pytest.approx(angle, abs=1e-6)
    ends = [zw.frame_pose(m, found.q, name) for name in ("coupler", "rocker")]
    points = [pose.R @ (x, 0, 0) + pose.p for pose, x in zip(ends, (1.8, 1.5), strict=True)]
    np.testing.assert_allclose(points[0], points[1], atol=1e-8)
    assert found.q[3] == pytest.approx(-2 * found.q[0], abs=1e-8)


def test_limits_of_a_ball_joint_hold():
    """Targets of configurations within the limit are reached, others where another one reaches them."""
    body = {"mass": 1.0, "inertia": np.eye(3)}
    m = zw.Mechanism(
        bodies=[
            zw.Body("upper", zw.Ball("shoulder", limits=(0, 0.5)), **body),
            zw.Body("lower", zw.Revolute("elbow", (0, 1, 0)), "upper", (1, 0, 0), **body),
        ],
        frames=[zw.Frame("hand", "lower", (1, 0, 0))],
    )
    rng = np.random.default_rng(0)
    axis, angle = rng.normal(size=(100, 3)), np.r_[np.full(50, 0.5), rng.uniform(0.6, 1.2, 50)]
    shoulder = Rotation.from_rotvec(angle[:, None] * axis / np.linalg.norm(axis, axis=1)[:, None])
    q = np.c_[shoulder.as_quat(scalar_first=True), rng.uniform(-2, 2, 100)]
    fast, hand = zw.compile(m), FrameTask("hand", weight=(1, 1, 1, 0, 0, 0))
    goals = fast.frame_pose(q, "hand").p
    found = whole_body_ik(m, hand, [goals])
    turned = Rotation.from_quat(found.q[:, :4], scalar_first=True).magnitude()
    error = np.linalg.norm(fast.frame_pose(found.q, "hand").p - goals, axis=1)
    assert (turned <= 0.5 + 1e-15).all() and found.converged[:50].all() and not found.converged.all()
    assert ((error < 1e-6) == found.converged).all() and "limit" in found.reason
    beyond = whole_body_ik(m, FrameTask("upper"), [None], q[50], compiled=False)
    assert beyond.reason == "limit" and beyond.residual.orientation[0] == pytest.approx(angle[50] - 0.5)


def test_options_are_checked(humanoid):
    for wrong in ({"tolerance": 0.0}, {"iterations": -1}, {"restarts": -1}, {"avoid": "all"}):
        with pytest.raises(zw.errors.DescriptionError, match=next(iter(wrong))):
            whole_body_ik(humanoid, HAND, [(0, 0, 1)], **wrong)  # type: ignore[arg-type]
    with pytest.raises(zw.errors.DescriptionError, match="tasks"):
        whole_body_ik(humanoid, (), [])
    with pytest.raises(zw.errors.ShapeError, match="different shapes"):
        whole_body_ik(humanoid, (HAND, ComTask()), [np.zeros((3, 3)), np.zeros((2, 3))])


def biped():
    """Two legs of 0.8 m with ball joints on a free trunk, and its configuration with bent knees."""
    bodies = [zw.Body("trunk", zw.Free("root"), mass=5, inertia=(0.1, 0.1, 0.1))]
    for side, y in (("left", 0.15), ("right", -0.15)):
        hip, knee = zw.Ball(f"{side} hip", limits=(0, 1.5)), zw.Revolute(f"{side} knee", axis=(0, 1, 0))
        leg = {"mass": 1, "com": (0, 0, -0.2), "inertia": (0.02, 0.02, 0.01)}
        bodies += [
            zw.Body(f"{side} thigh", hip, "trunk", (0, y, -0.1), **leg),
            zw.Body(f"{side} shank", knee, f"{side} thigh", (0, 0, -0.4), **leg),
            zw.Body(f"{side} foot", zw.Ball(f"{side} ankle"), f"{side} shank", (0, 0, -0.4), mass=0.3,
                    inertia=(0.002,) * 3),
        ]  # fmt: skip
    m = zw.Mechanism("biped", bodies)
    knees = [k for k, name in enumerate(m.coordinate_names) if "knee" in name]
    q = np.array(m.neutral)
    q[knees] = 0.6
    return m, q


def test_a_posture_of_third_priority_is_nearest_where_it_moves_neither_feet_nor_centre_of_mass():
    """All reach what they reach without it; there the posture's gradient is in the row space of their
    Jacobians.
    """
    m, q = biped()
    feet = FrameTask("left foot"), FrameTask("right foot")
    places = [zw.frame_pose(m, q, task.frame) for task in feet]
    offsets = [(0.0, 0.05, -0.05), (0.04, 0.05, 0.01), (-0.06, -0.02, -0.04), (0.0, 0.0, 0.4)]
    targets = zw.mass_centre(m, q) + np.array(offsets)
    alone = whole_body_ik(m, (*feet, ComTask(priority=1)), [*places, targets], q)
    assert alone.converged.tolist() == [True, True, True, False]
    for weight in (0.05, 1.0):
        tasks = *feet, ComTask(priority=1), PostureTask(weight=weight, priority=2)
        found = whole_body_ik(m, tasks, [*places, targets, q], q)
        assert found.converged.tolist() == alone.converged.tolist(), found.reason
        assert found.residual.position[3, 2] == pytest.approx(alone.residual.position[3, 2], abs=1e-6)
        for reached in found.q[:3]:
            frames = [zw.frame_jacobian(m, reached, task.frame) for task in feet]
            J = np.concatenate([*frames, zw.robot.com_jacobian(m, reached)])
            gradient = zw.difference_configuration(m, reached, q)
            gradient[:6] = 0  # the posture has no weight on the free base
            left = gradient - np.linalg.lstsq(J.T, gradient, rcond=None)[0] @ J
            assert np.abs(left).max() < 1e-3 * np.abs(gradient).max()


def test_a_planar_loop_on_a_floating_base_reaches_targets_beside_a_posture():
    """The rows of the loop's pin are three, of rank two: they contradict each other in their rounding."""
    bodies = [zw.Body("base", zw.Free("base"), mass=5, inertia=(0.1, 0.1, 0.1))]
    for k, x in (("l", -0.1), ("r", 0.1)):
        for name, parent, place in (("a", "base", (x, 0, 0)), ("b", f"a{k}", (0, 0, -0.4))):
            joint = zw.Revolute(name + k, axis=(0, 1, 0))
            bodies.append(zw.Body(name + k, joint, parent, place, mass=1, inertia=(0.01, 0.01, 0.01)))
    pin = zw.Connect("pin", ("bl", (0, 0, -0.4)), ("br", (0, 0, -0.4)))
    m = zw.Mechanism("legs", bodies, constraints=[pin], frames=[zw.Frame("tip", "bl", (0, 0, -0.4))])
    q0, _ = zw.assemble(m, [*m.neutral[:7], -0.2, 0.4, 0.2, -0.3])
    targets = zw.frame_pose(m, q0, "tip").p + np.random.default_rng(0).normal(size=(20, 3)) * 0.3
    tasks = FrameTask("tip", weight=(1, 1, 1, 0, 0, 0)), PostureTask()
    found = whole_body_ik(m, tasks, [targets, None], q0)
    assert found.converged.all(), found.reason
    for q, target in zip(found.q, targets, strict=True):
        np.testing.assert_allclose(zw.frame_pose(m, q, "tip").p, target, atol=1e-6)

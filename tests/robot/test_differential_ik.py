"""Differential inverse kinematics against bounded least squares, null spaces, and finite differences."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import lsq_linear, minimize
from scipy.spatial.transform import Rotation

import zwang as zw
from tests.mechanisms import random_mechanism
from tests.robot import dh
from zwang.errors import DescriptionError
from zwang.robot import CollisionAvoidance, ComTask, FrameTask, PostureTask, com_jacobian, differential_ik
from zwang.robot.sampling import random_configurations
from zwang.robot.whole_body.held_rows import HeldRow, independent

HUMANOID = Path(__file__).parents[2] / "examples" / "models" / "humanoid.xml"
FEET = (FrameTask("right_foot", weight=10), FrameTask("left_foot", weight=10))
HAND = FrameTask("right_forearm", weight=(1, 1, 1, 0, 0, 0))


@pytest.fixture(scope="module")
def humanoid():
    return zw.load(HUMANOID)


def bent(m):
    """The humanoid with bent knees and elbows."""
    q = np.array(m.home or m.neutral, dtype=float)
    for index in m.joints:
        for part, angle in (("knee", 0.5), ("hip_swing", -0.25), ("ankle", -0.25), ("elbow", -0.6)):
            if part in index.name:
                q[index.q] = angle
    return q


def stacked(m, q, rows, damping, centre=None):
    """A x = b of the weighted least squares from (J, e, weight) of each task, with the damping."""
    A = [np.asarray(w)[..., None] * J for J, _, w in rows]
    b = [np.asarray(w) * e for _, e, w in rows]
    return np.concatenate([*A, np.sqrt(damping) * np.eye(m.nv)]), np.concatenate([*b, np.zeros(m.nv)])


def position_rows(m, q, frame, target):
    """J (3, nv) of a frame's position, and its error."""
    return zw.frame_jacobian(m, q, frame)[:3], target - zw.frame_pose(m, q, frame).p


def bounds_of(m, q):
    """The displacements (lower, upper) that the joint limits allow."""
    lower, upper = np.full(m.nv, -np.inf), np.full(m.nv, np.inf)
    for index in m.joints:
        if index.kind != "free" and index.joint.limits is not None:
            lower[index.v], upper[index.v] = np.array(index.joint.limits, dtype=float) - q[index.q]
    return lower, upper


# ------------------------------------------------------------------------------ centre of mass


@pytest.mark.parametrize("seed", range(3))
def test_com_jacobian_by_finite_differences(seed):
    m = random_mechanism(np.random.default_rng(seed))
    q, eps = random_configurations(m, 2, seed), 1e-6
    J = com_jacobian(m, q)
    for x, own in zip(q, J, strict=True):
        for k in range(m.nv):
            steps = [zw.integrate_configuration(m, x, s * np.eye(m.nv)[k], eps) for s in (1, -1)]
            slope = (zw.mass_centre(m, steps[0]) - zw.mass_centre(m, steps[1])) / (2 * eps)
            np.testing.assert_allclose(own[:, k], slope, atol=1e-8)
        np.testing.assert_allclose(com_jacobian(m, x), own, atol=1e-12)


def test_a_body_on_the_world_counts_with_its_mass():
    fixed = zw.Body("base", mass=3.0, inertia=np.eye(3))
    arm = zw.Body(
        "arm", zw.Revolute("turn", axis=(0, 0, 1)), parent="base", mass=1.0, com=(1, 0, 0), inertia=np.eye(3)
    )
    m = zw.Mechanism(bodies=[fixed, arm])
    np.testing.assert_allclose(com_jacobian(m, [0.0]).ravel(), (0, 0.25, 0), atol=1e-15)


@pytest.mark.parametrize(
    "call",
    [
        lambda m, q: zw.mass_centre(m, q),
        lambda m, q: zw.momentum(m, q, q),
        lambda m, q: zw.compile(m).mass_centre(q),
        lambda m, q: zw.compile(m).momentum([q, q], [q, q]),
        lambda m, q: com_jacobian(m, q),
        lambda m, q: com_jacobian(m, [q, q]),
    ],
)
@pytest.mark.parametrize("inertia", [0.0, 1.0])
def test_a_mechanism_without_mass_has_no_centre_of_mass(call, inertia):
    """A rotor turns by its armature, and a body with inertia alone has no weight."""
    rotor = zw.Body("rotor", zw.Revolute("turn", axis=(0, 0, 1), armature=1.0), inertia=inertia * np.eye(3))
    m = zw.Mechanism(bodies=[rotor])
    with pytest.raises(DescriptionError, match=r"has no mass.*give at least one of its bodies a mass"):
        call(m, [0.0])


# ------------------------------------------------------------------------------ one priority


def test_step_is_that_of_bounded_least_squares(humanoid):
    """Feet, hand, centre of mass and posture with joint limits: SciPy's BVLS on the same rows."""
    m, q = humanoid, bent(humanoid)
    hand = zw.frame_pose(m, q, "right_forearm").p + np.array([0.15, -0.05, 0.2])
    centre = zw.mass_centre(m, q) + np.array([0.06, 0.03, 0.02])
    tasks = (*FEET, HAND, ComTask(weight=(2, 3, 0)), PostureTask(weight=0.05, priority=0))
    found = differential_ik(
        m, tasks, [None, None, hand, centre, bent(m)], q, 0.1, damping=1e-4, compiled=False
    )
    assert found.solved
    rows = [(zw.frame_jacobian(m, q, t.frame), np.zeros(6), np.full(6, 10.0)) for t in FEET]
    rows.append((*position_rows(m, q, "right_forearm", hand), np.ones(3)))
    rows.append((com_jacobian(m, q)[:2], (centre - zw.mass_centre(m, q))[:2], np.array([2.0, 3.0])))
    rows.append((np.eye(m.nv)[6:], np.zeros(m.nv - 6), np.full(m.nv - 6, 0.05)))
    A, b = stacked(m, q, rows, 1e-4)
    lower, upper = bounds_of(m, q)
    best = lsq_linear(A, b, (lower, upper), method="bvls", tol=1e-14)
    x = found.v * 0.1
    np.testing.assert_allclose(x, best.x, atol=1e-7)
    assert (x <= upper).all() and (x >= lower).all()
    assert np.sum((x == upper) | (x == lower)) == np.sum(best.active_mask != 0) > 0
    np.testing.assert_allclose(found.q, zw.integrate_configuration(m, q, x, 1), atol=1e-14)


def test_speed_limits_hold_exactly_and_are_optimal():
    m, rng = dh.arm("panda"), np.random.default_rng(0)
    q, h = random_configurations(m, 20), 0.01
    target = zw.compile(m).frame_pose(random_configurations(m, 20, 1), "tip").p
    speeds = rng.uniform(0.5, 2, m.nv)
    task = FrameTask("tip", weight=(1, 1, 1, 0, 0, 0))
    found = differential_ik(m, task, [target], q, h, speed_limits=speeds, damping=1e-3, limits=False)
    assert found.solved.all() and (np.abs(found.v) <= speeds * (1 + 1e-15)).all()
    for x, goal, v in zip(q, target, found.v, strict=True):
        A, b = stacked(m, x, [(*position_rows(m, x, "tip", goal), np.ones(3))], 1e-3)
        best = lsq_linear(A, b, (-speeds * h, speeds * h), method="bvls", tol=1e-14)
        np.testing.assert_allclose(v * h, best.x, atol=1e-8)


def test_speed_limits_of_a_floating_base(humanoid):
    """Those of angular velocities hold, too, which are no rates of coordinates."""
    m, q = humanoid, bent(humanoid)
    turned = np.array([[0, -1, 0], [1, 0, 0], [0, 0, 1.0]])
    speeds = np.r_[0.1, 0.2, 0.3, 0.4, 0.5, 0.6, np.full(m.nv - 6, np.inf)]
    found = differential_ik(
        m, FrameTask("pelvis"), [(turned, (1, 1, 1))], q, 0.1, speed_limits=speeds, compiled=False
    )
    assert (np.abs(found.v) <= speeds * (1 + 1e-15)).all()
    np.testing.assert_allclose(found.v[[0, 1, 2, 5]], speeds[[0, 1, 2, 5]], atol=1e-12)


def test_angle_and_speed_limits_of_a_ball_joint_hold_exactly():
    """At the limit, about x, the joint shall turn on about its own y axis, which the linear row allows: the
    rotation vector is that of the linear step, shortened to the limit.
    """
    joint = zw.Ball("shoulder", limits=(0, 0.5))
    m = zw.Mechanism(bodies=[zw.Body("arm", joint, mass=1.0, inertia=np.eye(3))])
    turn = FrameTask("arm", weight=(0, 0, 0, 1, 1, 1))

    def step(start, by, **limits):
        q = start.as_quat(scalar_first=True)
        return differential_ik(m, turn, [(start * by).as_matrix()], q, 0.1, compiled=False, **limits)

    at_limit, by = Rotation.from_rotvec([0.5, 0, 0]), Rotation.from_rotvec([0, 1.0, 0])
    found, linear = step(at_limit, by), (at_limit * by).as_rotvec()
    vector = Rotation.from_quat(found.q, scalar_first=True).as_rotvec()
    np.testing.assert_allclose(vector, 0.5 * linear / np.linalg.norm(linear), atol=1e-5)
    own = at_limit * Rotation.from_rotvec(0.1 * found.v)
    np.testing.assert_allclose(own.as_rotvec(), vector, atol=1e-14)
    # one slow axis: the shortened rotation has a part about it
    at_limit, speeds = Rotation.from_rotvec([0.4, 0.3, 0]), np.array([9.0, 9.0, 0.01])
    found = step(at_limit, Rotation.from_rotvec([-0.6, 0.9, 0]), speed_limits=speeds)
    assert (np.abs(found.v) <= speeds).all() and found.v[1] > 0.1
    assert Rotation.from_quat(found.q, scalar_first=True).magnitude() <= 0.5 + 1e-15


def test_velocity_limits_of_the_joints_are_the_default():
    joint = zw.Revolute("turn", axis=(0, 0, 1), velocity_limit=0.7)
    m = zw.Mechanism(bodies=[zw.Body("arm", joint, mass=1.0, com=(1, 0, 0), inertia=np.eye(3))])
    posture = PostureTask(weight=1.0)
    assert differential_ik(m, posture, [[1.0]], [0.0], 0.1).v == pytest.approx(0.7, abs=1e-15)
    assert differential_ik(m, posture, [[1.0]], [0.0], 0.1, speed_limits=False).v > 9.9


def test_orientation_in_body_axes_leaves_the_tool_axis_free():
    """A twist about the tool's own axis is no error, so that nothing moves."""
    m, (q,) = dh.arm("panda"), random_configurations(dh.arm("panda"), 1)
    pose = zw.frame_pose(m, q, "tip")
    c, s = np.cos(0.7), np.sin(0.7)
    twisted = pose.R @ np.array([[c, -s, 0], [s, c, 0], [0, 0, 1]])
    task = FrameTask("tip", weight=(1, 1, 1, 1, 1, 0), axes="body")
    assert np.abs(differential_ik(m, task, [(twisted, pose.p)], q, 1.0, limits=False).v).max() < 1e-12


def test_levenberg_marquardt_damping_of_a_task():
    m, (q,) = dh.arm("panda"), random_configurations(dh.arm("panda"), 1)
    goal = zw.frame_pose(m, q, "tip").p + np.array([0.1, 0.2, -0.1])
    task = FrameTask("tip", weight=(2, 2, 2, 0, 0, 0), gain=0.5, damping=0.3)
    found = differential_ik(m, task, [goal], q, 1.0, limits=False)
    J, e = position_rows(m, q, "tip", goal)
    A, b = stacked(m, q, [(J, 0.5 * e, np.full(3, 2.0))], 1e-6 + 0.3 * (e @ e))
    np.testing.assert_allclose(found.v, np.linalg.lstsq(A, b, rcond=None)[0], atol=1e-12)


# ------------------------------------------------------------------------------ priorities


def test_a_second_priority_is_in_the_null_space_of_the_first():
    """x = x_1 + Z y with the null space Z of J_1 by singular values, y by least squares."""
    m, (q,) = dh.arm("panda"), random_configurations(dh.arm("panda"), 1)
    goal, rest = zw.frame_pose(m, q, "tip").p + np.array([0.05, -0.02, 0.03]), q + 0.3
    tasks = (FrameTask("tip", weight=(1, 1, 1, 0, 0, 0)), PostureTask(weight=0.5))
    found = differential_ik(m, tasks, [goal, rest], q, 1.0, limits=False)
    J, e = position_rows(m, q, "tip", goal)
    x = np.linalg.solve(J.T @ J + 1e-6 * np.eye(m.nv), J.T @ e)
    Z = np.linalg.svd(J)[2][3:].T
    scaled = 0.25 + 1e-6
    y = Z.T @ (0.25 * (rest - q) / scaled - x)
    np.testing.assert_allclose(found.v, x + Z @ y, atol=1e-9)
    np.testing.assert_allclose(J @ found.v, J @ x, atol=1e-11)


def test_three_priorities_of_which_the_second_cannot_be_reached(humanoid):
    """The feet stay, the hand comes as near as they allow, and the posture uses what is left."""
    m, q = humanoid, bent(humanoid)
    far = zw.frame_pose(m, q, "right_forearm").p + np.array([3.0, 0, 0])
    hand = FrameTask("right_forearm", weight=(1, 1, 1, 0, 0, 0), priority=1)
    found = differential_ik(
        m, (*FEET, hand, PostureTask(priority=2)), [None, None, far, q], q, 1.0, limits=False, compiled=False
    )
    J1 = np.concatenate([zw.frame_jacobian(m, q, t.frame) for t in FEET])
    np.testing.assert_allclose(J1 @ found.v, 0, atol=1e-10)
    _, s, Vt = np.linalg.svd(J1)
    Z = Vt[(s > 1e-9).sum() :].T
    J2, e2 = position_rows(m, q, "right_forearm", far)
    y = np.linalg.solve(Z.T @ (J2.T @ J2 + 1e-6 * np.eye(m.nv)) @ Z, Z.T @ J2.T @ e2)
    np.testing.assert_allclose(J2 @ found.v, J2 @ (Z @ y), atol=1e-5)


def test_priorities_within_joint_limits():
    """The second priority against SLSQP, with the first kept and the limits."""
    m = dh.arm("panda", [(-2.0, 2.0)] * 7)
    q = np.array([0.3, 0.5, -0.2, -1.5, 0.4, 1.2, 1.9])
    goal, rest = (
        zw.frame_pose(m, q, "tip").p + np.array([0.03, 0.05, 0.02]),
        q + np.array([2.5, 0, 0, 0, 3.0, 1.4, 0.9]),
    )
    tasks = (FrameTask("tip", weight=(1, 1, 1, 0, 0, 0)), PostureTask(weight=1.0))
    found = differential_ik(m, tasks, [goal, rest], q, 1.0)
    J, e = position_rows(m, q, "tip", goal)
    lower, upper = bounds_of(m, q)
    A, b = stacked(m, q, [(J, e, np.ones(3))], 1e-6)
    kept = J @ lsq_linear(A, b, (lower, upper), method="bvls", tol=1e-14).x
    best = minimize(
        lambda x: 0.5 * np.sum((x - rest + q) ** 2), np.zeros(7), jac=lambda x: x - rest + q, method="SLSQP",
        bounds=list(zip(lower, upper, strict=True)),
        constraints={"type": "eq", "fun": lambda x: J @ x - kept, "jac": lambda x: J},
        options={"ftol": 1e-15, "maxiter": 500},
    )  # fmt: skip
    np.testing.assert_allclose(found.v, best.x, atol=2e-6)
    assert (np.abs(found.v - upper) < 1e-9).sum() == 2
    np.testing.assert_allclose(J @ found.v, kept, atol=1e-9)


def small_arm(size, n=7, seed=0):
    """An arm of random axes that reaches about `size` [m]."""
    r = np.random.default_rng(seed)
    bodies = []
    for k in range(n):
        joint, offset = zw.Revolute(f"j{k}", tuple(r.normal(size=3))), tuple(0.3 * size * r.normal(size=3))
        place = {"parent": f"l{k - 1}", "position": offset} if k else {}
        com = tuple(0.1 * size * r.normal(size=3))
        bodies.append(zw.Body(f"l{k}", joint, mass=1.0 + k, com=com, inertia=np.eye(3), **place))
    return zw.Mechanism(bodies=bodies, frames=[zw.Frame("tip", f"l{n - 1}", (0.2 * size, 0, 0))])


@pytest.mark.parametrize("size", [1.0, 0.01])
def test_priorities_do_not_depend_on_the_size_of_the_arm(size):
    """The first priority by least squares, the second in its null space, as long as this is unlimited."""
    m, r = small_arm(size), np.random.default_rng(1)
    q = r.uniform(-2, 2, (20, m.nv))
    goals = np.array([zw.frame_pose(m, x, "tip").p for x in q]) + 0.05 * size * r.normal(size=(20, 3))
    rest = q + 0.3 * r.normal(size=q.shape)
    tasks = (FrameTask("tip", weight=(1, 1, 1, 0, 0, 0)), PostureTask(1.0, priority=1))
    found = differential_ik(m, tasks, [goals, rest], q, 1.0)
    assert found.solved.all()
    for x, goal, posture, v in zip(q, goals, rest, found.v, strict=True):
        J, e = position_rows(m, x, "tip", goal)
        first = J.T @ np.linalg.solve(J @ J.T + 1e-6 * np.eye(3), e)
        Z = np.linalg.svd(J)[2][3:].T
        np.testing.assert_allclose(J @ v, J @ first, rtol=0, atol=1e-9 * size)
        np.testing.assert_allclose(Z.T @ v, Z.T @ (posture - x) / (1 + 1e-6), atol=1e-6)


def test_a_priority_is_kept_where_speeds_are_limited():
    """The centre of mass moves as it does without a posture, which is that of bounded least squares."""
    m, r = small_arm(1.0, seed=2), np.random.default_rng(2)
    q = r.uniform(-2, 2, (20, m.nv))
    goals = np.array([zw.mass_centre(m, x) for x in q]) + 0.2 * r.normal(size=(20, 3))
    rest = q + 0.3 * r.normal(size=q.shape)
    options = {"speed_limits": np.ones(m.nv), "damping": 1e-3}
    found = differential_ik(m, (ComTask(), PostureTask(1.0, priority=1)), [goals, rest], q, 0.1, **options)
    J = [com_jacobian(m, x) for x in q]
    assert found.solved.all()
    for k in range(20):
        e = goals[k] - zw.mass_centre(m, q[k])
        A, b = stacked(m, q[k], [(J[k], e, np.ones(3))], 1e-3)
        x = lsq_linear(A, b, (-0.1, 0.1), method="bvls", tol=1e-14).x
        np.testing.assert_allclose(0.1 * J[k] @ found.v[k], J[k] @ x, atol=1e-9)


@pytest.mark.parametrize("seed", [0, 3])
def test_a_posture_beside_tasks_that_press_joints_against_their_speed_limits(humanoid, seed):
    """Feet, hand and centre of mass of a floating base whose speeds saturate, then a posture of the joints,
    by two bounded least-squares problems, the second with the tasks of the first at a large weight, which
    has errors of 1e-4 of a limit.
    """
    m, q, r, most = humanoid, bent(humanoid), np.random.default_rng(seed), 0.005
    frames = ("right_foot", "left_foot", "right_forearm")
    poses = [zw.frame_pose(m, q, frame) for frame in frames]
    steps = 0.02 * r.normal(size=(3, 3))
    targets = [(pose.R, pose.p + step) for pose, step in zip(poses, steps, strict=True)]
    shift = np.array([0.01, 0.01, 0.0])
    tasks = (*map(FrameTask, frames), ComTask(weight=(1, 1, 0)), PostureTask())
    options = {"speed_limits": np.full(m.nv, most / 0.01), "limits": False, "compiled": False}
    found = differential_ik(m, tasks, [*targets, zw.mass_centre(m, q) + shift, None], q, 0.01, **options)
    rows = [
        (zw.frame_jacobian(m, q, frame), [*step, 0, 0, 0]) for frame, step in zip(frames, steps, strict=True)
    ]
    rows = [(J, np.array(e), np.ones(len(e))) for J, e in [*rows, (com_jacobian(m, q)[:2], shift[:2])]]
    A, b = stacked(m, q, rows, 1e-6)
    J, weight = A[: -m.nv], np.sqrt(1e-6 + 0.01 * (np.arange(m.nv) >= 6))
    first = lsq_linear(A, b, (-most, most), method="bvls", tol=1e-15).x
    B = np.concatenate([1e4 * J, np.diag(weight)])
    best = lsq_linear(B, np.concatenate([1e4 * J @ first, np.zeros(m.nv)]), (-most, most), "bvls", 1e-15).x
    assert found.solved and (np.abs(first) > 0.999 * most).sum() > 3
    np.testing.assert_allclose(J @ found.v * 0.01, J @ first, atol=1e-8 * most)
    np.testing.assert_allclose(found.v * 0.01, best, atol=2e-4 * most)


def test_rows_that_are_held_have_the_solutions_of_the_rows_they_come_from():
    """Of six rows of rank 3, one of rounding errors, three orthogonal ones remain."""
    r, inverse = np.random.default_rng(0), np.array([1e-2] * 3 + [1e-6] * 5)
    J, x = r.normal(size=(3, 8)), r.normal(size=8)
    J = np.concatenate([J[:2], [J[0] + 2 * J[1]], 1e-17 * r.normal(size=(1, 8)), J[2:], [J[2] - J[0]]])
    own = independent([HeldRow(row, row @ x, row) for row in J], inverse)
    A, b = np.array([row for row, _ in own]), np.array([value for _, value in own])
    assert [bool(row.any()) for row in A] == [True, True, False, False, True, False]
    kept = A[[0, 1, 4]]
    G = kept @ np.diag(inverse) @ kept.T
    np.testing.assert_allclose(G / np.sqrt(np.outer(np.diag(G), np.diag(G))), np.eye(3), atol=1e-12)
    np.testing.assert_allclose(J @ np.linalg.lstsq(A, b, rcond=None)[0], J @ x, atol=1e-12)


# ------------------------------------------------------------------------------ loops, distances


def test_a_closed_loop_stays_closed_to_first_order():
    """A parallelogram of two cranks and a coupler: opposite cranks turn alike."""
    crank = {"mass": 1.0, "com": (0.5, 0, 0), "inertia": np.eye(3)}
    m = zw.Mechanism(
        bodies=[
            zw.Body("left", zw.Revolute("a", axis=(0, 0, 1)), **crank),
            zw.Body("coupler", zw.Revolute("b", axis=(0, 0, 1)), parent="left", position=(1, 0, 0), **crank),
            zw.Body("right", zw.Revolute("c", axis=(0, 0, 1)), position=(2, 0, 0), **crank),
        ],
        constraints=[zw.Connect("close", a=("coupler", (2, 0, 0)), b=("right", (1, 0, 0)))],
    )
    q = np.array([1.0, -1.0, 1.0])
    goal = zw.frame_pose(m, q, "coupler").p + np.array([-0.01, 0.005, 0])
    found = differential_ik(m, FrameTask("coupler", weight=(1, 1, 0, 0, 0, 0)), [goal], q, 1.0)
    np.testing.assert_allclose(found.v, found.v[0] * np.array([1, -1, 1]), atol=1e-9)
    tangent = np.array([-np.sin(1.0), np.cos(1.0)])
    assert found.v[0] == pytest.approx(tangent @ (-0.01, 0.005), abs=1e-6)


@pytest.mark.parametrize("size", [1.0, 0.01])
def test_a_small_loop_is_kept(size):
    """The step of a four-bar is the posture's, projected onto the motion of the linkage."""
    bodies = [
        zw.Body("left", zw.Revolute("a"), mass=1.0, inertia=np.eye(3)),
        zw.Body("coupler", zw.Revolute("b"), "left", (size, 0, 0), mass=1.0, inertia=np.eye(3)),
        zw.Body("right", zw.Revolute("c"), position=(2 * size, 0, 0), mass=1.0, inertia=np.eye(3)),
    ]
    pin = zw.Connect("pin", ("coupler", (2 * size, 0, 0)), ("right", (size, 0, 0)))
    m, q = zw.Mechanism(bodies=bodies, constraints=[pin]), np.array([0.6, -0.6, 0.6])
    wanted = np.array([0.01, 0.02, 0.03])
    found = differential_ik(m, PostureTask(1.0), [q + wanted], q, 1.0, compiled=False)
    motion = np.array([1, -1, 1]) / np.sqrt(3)
    assert found.solved
    np.testing.assert_allclose(found.v, motion * (motion @ wanted), rtol=1e-5, atol=1e-12)


def test_rows_that_contradict_each_other_have_the_smallest_residual():
    """Two sliders that a coupling wants to meet, faster than they may move."""
    bodies = [zw.Body(x, zw.Prismatic(x, (1, 0, 0)), mass=1.0, inertia=np.eye(3)) for x in "ab"]
    m = zw.Mechanism(bodies=bodies, constraints=[zw.JointCoupling("meet", "a", "b")])
    options = {"speed_limits": np.array([1.0, 2.0]), "compiled": False}
    found = differential_ik(m, PostureTask(), [None], np.array([1.0, 0.0]), 0.1, **options)
    assert found.solved
    np.testing.assert_allclose(found.v, [-1, 2], atol=1e-9)
    assert found.violation == pytest.approx(0.7, abs=1e-9)  # [m] of 1 m


@pytest.mark.parametrize("compiled", [False, True])
def test_the_violation_after_a_step_tells_couplings_that_contradict_each_other(compiled):
    """Turns with k = j / 2 are reached in a step; j = 2 k and j = 1 + 2 k never hold both."""
    bodies = [
        zw.Body("a", zw.Revolute("j", (0, 0, 1)), mass=1.0, inertia=np.eye(3)),
        zw.Body("b", zw.Revolute("k", (0, 1, 0)), "a", mass=1.0, inertia=np.eye(3)),
    ]
    first, second = (zw.JointCoupling(f"c{c}", "j", "k", (c, 2.0)) for c in (0, 1))
    starts = np.array([[0.2, 0.3], [0.2, 0.1]])
    for constraints, violated in (([first], False), ([first, second], True)):
        m = zw.Mechanism(bodies=bodies, constraints=constraints)
        found = differential_ik(m, PostureTask(), [None], starts, 0.1, compiled=compiled)
        assert found.solved.all() and found.violation.shape == (2,)
        assert ((found.violation > 0.1) == violated).all() and ((found.violation < 1e-9) != violated).all()


def test_distance_row_of_two_spheres_is_exact():
    """A slider with a sphere stops where the linearised distance to a fixed sphere is reached."""
    ball = zw.Body(
        "ball",
        zw.Prismatic("slide", axis=(1, 0, 0)),
        mass=1.0,
        inertia=np.eye(3),
        geometry=[zw.Sphere(radius=0.1)],
    )
    m = zw.Mechanism(bodies=[ball], geometry=[zw.Sphere(radius=0.2, position=(1, 0, 0))])
    task = FrameTask("ball", weight=(1, 0, 0, 0, 0, 0))
    for pairs in ((("ball", "world"),), None):
        keep = CollisionAvoidance(pairs, distance=0.05, detection=2.0)
        found = differential_ik(m, task, [(5.0, 0, 0)], [0.0], 1.0, avoid=keep)
        assert found.v[0] == pytest.approx(1 - 0.3 - 0.05, abs=1e-7)
    slow = CollisionAvoidance((("ball", "world"),), distance=0.05, detection=2.0, gain=0.5)
    assert differential_ik(m, task, [(5.0, 0, 0)], [0.0], 1.0, avoid=slow).v[0] == pytest.approx(
        0.325, abs=1e-7
    )
    pushed = differential_ik(m, task, [(5.0, 0, 0)], [0.75], 1.0, avoid=slow)  # 0.05 m inside
    assert pushed.v[0] == pytest.approx(-0.1, abs=1e-7)


@pytest.mark.parametrize("shape", [zw.Sphere(radius=0.125), zw.Cylinder(radius=0.2, length=0.25)])
@pytest.mark.parametrize("floor", [zw.Plane(), zw.Box(20, 20, 1, position=(0, 0, -0.5))])
def test_shapes_that_touch_exactly_slide_along_each_other(floor, shape):
    """The distance is z: the step along x is free, and none leads into the floor."""
    axes = zw.Prismatic("x", (1, 0, 0)), zw.Prismatic("z", (0, 0, 1))
    m = zw.Mechanism(
        bodies=[
            zw.Body("cart", axes[0], position=(3, 0, 0.125), mass=1.0, inertia=np.eye(3)),
            zw.Body("foot", axes[1], "cart", mass=1.0, inertia=np.eye(3), geometry=[shape]),
        ],
        geometry=[floor],
    )
    keep = CollisionAvoidance((("world", "foot"),), distance=0.0)
    task = FrameTask("foot", weight=(1, 1, 1, 0, 0, 0))
    cases = {(2.5, 0, 0.125): (-0.5, 0), (3, 0, -0.2): (0, 0), (2.9, 0, 0.3): (-0.1, 0.175)}
    for target, expected in cases.items():
        found = differential_ik(m, task, [target], [0.0, 0.0], 1.0, avoid=keep, compiled=False)
        np.testing.assert_allclose(found.q, expected, atol=1e-6)


# ------------------------------------------------------------------------------ batches, errors


def test_compiled_batches_equal_floats(humanoid):
    m, rng = humanoid, np.random.default_rng(0)
    q = np.tile(bent(m), (6, 1))
    q[:, 7:] += 0.1 * rng.standard_normal((6, m.nq - 7))
    hands = zw.frame_pose(m, bent(m), "right_forearm").p + rng.uniform(-0.2, 0.2, (6, 3))
    tasks, targets = (*FEET, HAND, PostureTask()), [None, None, hands, bent(m)]
    fast = differential_ik(m, tasks, targets, q, 0.02)
    slow = differential_ik(m, tasks, targets, q, 0.02, compiled=False)
    assert fast.solved.all() and fast.v.shape == (6, m.nv) and fast.residual.position.shape == (6, 4)
    for one, other in zip((fast.v, fast.q, *fast.residual), (slow.v, slow.q, *slow.residual), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-6)
    one = differential_ik(m, tasks, [None, None, hands[3], bent(m)], q[3], 0.02)
    np.testing.assert_array_equal(one.v, fast.v[3])


def test_errors_name_the_argument(humanoid):
    m, q = humanoid, bent(humanoid)
    with pytest.raises(zw.errors.UnknownNameError, match="'right_forearm'"):
        differential_ik(m, FrameTask("right_forarm"), [None], q, 0.1)
    with pytest.raises(zw.errors.DescriptionError, match="weight of the task of frame 'pelvis'"):
        FrameTask("pelvis", weight=(1, 2))
    with pytest.raises(zw.errors.DescriptionError, match="positive"):
        ComTask(weight=0)
    with pytest.raises(zw.errors.DescriptionError, match="gain"):
        PostureTask(gain=2.0)
    with pytest.raises(zw.errors.ShapeError, match="one entry for each of the 1 tasks"):
        differential_ik(m, HAND, [None, None], q, 0.1)
    with pytest.raises(zw.errors.ShapeError, match="nv is 24"):
        differential_ik(m, PostureTask(weight=(1.0,) * 3), [None], q, 0.1)
    with pytest.raises(zw.errors.StateError, match="step"):
        differential_ik(m, HAND, [None], q, 0.0)
    with pytest.raises(zw.errors.DescriptionError, match="damping"):
        differential_ik(m, HAND, [None], q, 0.1, damping=0.0)
    with pytest.raises(zw.errors.UnknownNameError, match="'pelvis'"):
        differential_ik(m, HAND, [None], q, 0.1, avoid=CollisionAvoidance((("pelvs", "world"),)))
    with pytest.raises(zw.errors.DescriptionError, match="no shapes"):
        differential_ik(m, HAND, [None], q, 0.1, avoid=CollisionAvoidance((("pelvis", "pelvis"),)))
    skate = zw.Mechanism(
        bodies=[zw.Body("skate", zw.Planar("plane"), mass=1.0, inertia=np.eye(3))],
        constraints=[zw.NoSideSlip("blade", "skate")],
    )
    with pytest.raises(zw.errors.DescriptionError, match="NoSideSlip"):
        differential_ik(skate, ComTask(), [None], np.zeros(3), 0.1)

"""Inverse kinematics: tables of Fu, ME331, published arms, reasons for failure, and the backends."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.cases import case
from tests.mechanisms import random_mechanism
from tests.robot import dh
from zwang.robot.inverse_kinematics.tasks import rotation_vector
from zwang.robot.sampling import random_configurations

TARGET = (0.2, 1.3)


def printed(x: float, half: float) -> str:
    """x as a table prints it, whose last digit is worth twice `half`."""
    return f"{x:.{round(-np.log10(2 * half))}f}"


# ------------------------------------------------------------ tables of Fu, ME331


def test_me331_jacobian_inverse_table():
    """All ten rows, to 1e-12, and every printed digit."""
    A01 = case("robot_analysis", "A01_ik_jacobian_inverse")
    solution = zw.robot.solve_ik(
        dh.two_link(), "tip", TARGET, method="jacobian_inverse", q0=(0.25, 0.75), alpha=0.75, iterations=10
    )
    np.testing.assert_allclose(solution.trace.q[1:], A01["reference"], rtol=0, atol=1e-12)
    rows = zip(solution.trace.q[1:], A01["printed"], A01["printed_half_ulp"], strict=True)
    for q, shown, half in rows:
        assert [printed(x, h) for x, h in zip(q, half, strict=True)] == [
            printed(x, h) for x, h in zip(shown, half, strict=True)
        ]


@pytest.mark.parametrize(
    ("q0", "key"), [((0.25, 0.75), "reference_from_0p25_0p75"), ((0.3, 0.4), "reference_from_0p3_0p4")]
)
def test_me331_jacobian_transpose_iterates(q0, key):
    A02 = case("robot_analysis", "A02_ik_jacobian_transpose")
    solution = zw.robot.solve_ik(
        dh.two_link(), "tip", TARGET, method="transpose", q0=q0, alpha=0.75, iterations=40, tolerance=1e-9
    )
    np.testing.assert_allclose(solution.trace.q[1:], A02[key], rtol=0, atol=1e-11)


def test_me331_transpose_table_is_from_another_start():
    """The printed table comes from (0.3, 0.4), and its rows 26 to 29 are iterations 27 to 30."""
    A02 = case("robot_analysis", "A02_ik_jacobian_transpose")
    trace = zw.robot.solve_ik(
        dh.two_link(),
        "tip",
        TARGET,
        method="transpose",
        q0=(0.3, 0.4),
        alpha=0.75,
        iterations=40,
        tolerance=1e-9,
    ).trace
    for row in ("1", "2", "3", "4", "5", "26", "27", "28", "29"):
        iterate = trace.q[A02["true_index"][row]]
        assert [f"{x:.4g}" for x in iterate] == [f"{x:.4g}" for x in A02["printed"][row]] or np.allclose(
            iterate, A02["printed"][row], rtol=0, atol=5e-5
        )
    assert not np.allclose(trace.q[26], A02["printed"]["26"], rtol=0, atol=5e-5)


def test_a_position_in_space_gives_the_same_iterates_as_one_in_the_plane():
    """J then has a row of zeros, and the pseudo-inverse takes the place of the inverse."""
    kinds = [
        zw.robot.solve_ik(
            dh.two_link(), "tip", target, method="newton", q0=(0.25, 0.75), alpha=0.75, iterations=5
        )
        for target in ((0.2, 1.3), (0.2, 1.3, 0))
    ]
    np.testing.assert_allclose(kinds[0].trace.q, kinds[1].trace.q, atol=1e-13)


def test_alpha_as_a_function_and_as_a_diagonal():
    """A function of the iteration, counted from 1, and a diagonal that holds the second joint."""
    given = {"method": "newton", "q0": (0.25, 0.75), "iterations": 4}
    plain = zw.robot.solve_ik(dh.two_link(), "tip", TARGET, alpha=0.75, **given)
    by_iteration = zw.robot.solve_ik(
        dh.two_link(), "tip", TARGET, alpha=lambda k: 0.75 if k <= 2 else 0.0, **given
    )
    np.testing.assert_array_equal(by_iteration.trace.q[2], plain.trace.q[2])
    np.testing.assert_array_equal(by_iteration.trace.q[4], by_iteration.trace.q[2])
    diagonal = zw.robot.solve_ik(dh.two_link(), "tip", TARGET, alpha=(0.75, 0.0), **given)
    assert (diagonal.trace.q[:, 1] == 0.75).all() and diagonal.trace.q[1, 0] == plain.trace.q[1, 0]


def test_alpha_as_a_diagonal_by_the_velocities_of_a_ball_joint():
    ball = zw.Body("a", zw.Ball("s"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism("m", [ball], frames=[zw.Frame("tip", "a", (0, 0, 1))])
    given = {"method": "newton", "q0": (1, 0, 0, 0), "iterations": 3}
    plain, diagonal = (zw.robot.solve_ik(m, "tip", (0, 0.6, 0.8), alpha=x, **given) for x in (0.5, [0.5] * 3))
    np.testing.assert_array_equal(diagonal.q, plain.q)
    with pytest.raises(zw.errors.ShapeError, match="nv = 3 numbers"):
        zw.robot.solve_ik(m, "tip", (0, 0.6, 0.8), alpha=[0.5] * 4, **given)


# ------------------------------------------------------------ published arms


@pytest.mark.parametrize("name", dh.ARMS)
def test_random_poses_of_an_arm_are_reached_within_limits(name):
    """All 10,000 poses of the case, checked by products of matrices and against the limits."""
    G03 = case("robot_analysis", "G03_ik_benchmark")["parameters"]["arms"][name]
    limits = np.array(G03["limits"])
    q = np.random.default_rng(G03["seed"]).uniform(*limits.T, (10_000, len(limits)))
    np.testing.assert_array_equal(q[:3], G03["first_3_q"])
    np.testing.assert_allclose(q.mean(axis=0), G03["mean_q"], rtol=0, atol=1e-14)
    R, p = dh.pose(name, q)
    np.testing.assert_allclose(np.column_stack([R[0], p[0]]), np.array(G03["first_pose_T"])[:3], atol=1e-14)
    solution = zw.robot.solve_ik(dh.arm(name, G03["limits"]), "tip", (R, p))
    assert solution.converged.all() and (solution.reason == "converged").all()
    position, orientation = dh.errors(name, solution.q, R, p)
    assert position.max() < 1e-6 and orientation.max() < 1e-6
    np.testing.assert_allclose(position, solution.residual.position, atol=1e-12)
    np.testing.assert_allclose(orientation, solution.residual.orientation, atol=1e-12)
    assert (solution.q >= limits[:, 0]).all() and (solution.q <= limits[:, 1]).all()


@pytest.mark.parametrize("tolerance", [(1e-6, 1e-2), (1e-2, 1e-6)])
def test_converged_solutions_are_within_both_tolerances(tolerance):
    """By products of matrices; q of the smallest weighted error may have one of its errors beyond them."""
    limits = [(-2.9, 2.9), (-1.7, 1.7), (-2.9, 2.9), (-3, -0.1), (-2.9, 2.9), (0, 3.7), (-2.9, 2.9)]
    R, p = dh.pose("panda", np.random.default_rng(1).uniform(*np.array(limits).T, (10_000, 7)))
    solution = zw.robot.solve_ik(dh.arm("panda", limits), "tip", (R, p), tolerance=tolerance)
    position, orientation = dh.errors("panda", solution.q, R, p)
    assert solution.converged.all()
    assert position.max() < tolerance[0] + 1e-12 and orientation.max() < tolerance[1] + 1e-9


def test_a_solution_does_not_depend_on_the_batch():
    limits = np.array(dh.table("panda")["qlim"])
    R, p = dh.pose("panda", np.random.default_rng(5).uniform(*limits.T, (40, 7)))
    m = dh.arm("panda")
    whole = zw.robot.solve_ik(m, "tip", (R, p))
    for k in range(0, 40, 7):
        alone = zw.robot.solve_ik(m, "tip", (R[k], p[k]))
        np.testing.assert_array_equal(alone.q, whole.q[k])
        assert alone.iterations == whole.iterations[k] and alone.starts == whole.starts[k]


def test_compiled_equals_float():
    """The same text, compiled over lanes and on plain floats."""
    limits = np.array(dh.table("ur5")["qlim"])
    R, p = dh.pose("ur5", np.random.default_rng(6).uniform(*limits.T, (8, 6)))
    m = dh.arm("ur5")
    compiled, floats = (zw.robot.solve_ik(m, "tip", (R, p), compiled=c) for c in (True, False))
    np.testing.assert_array_equal(compiled.starts, floats.starts)
    np.testing.assert_allclose(compiled.q, floats.q, atol=1e-8)


# ------------------------------------------------------------ reasons for failure


def test_a_target_beyond_all_links_is_unreachable():
    solution = zw.robot.solve_ik(dh.two_link(), "tip", (0.0, 3.0))
    assert solution.reason == "unreachable" and not solution.converged
    assert solution.residual.position == pytest.approx(1.0, abs=1e-6)  # stretched towards it
    assert "out of reach" in str(solution)


def test_a_target_inside_the_hole_of_the_workspace_is_unreachable():
    """Links of 1 and 0.3 m reach no point nearer than 0.7 m."""
    solution = zw.robot.solve_ik(dh.two_link(1, 0.3), "tip", (0.2, 0.1))
    assert solution.reason == "unreachable"
    assert solution.residual.position == pytest.approx(0.7 - np.hypot(0.2, 0.1), abs=1e-6)


def test_a_target_beyond_the_limits_says_limit():
    m = zw.robot.from_dh(d=[0, 0], a=[1, 1], alpha=[0, 0], limits=[(-0.3, 0.3), (0, 1)])
    solution = zw.robot.solve_ik(m, "tip", TARGET)
    assert solution.reason == "limit" and not solution.converged
    assert (np.abs(solution.q - (0.3, 1.0)) < 1e-9).any()
    free = zw.robot.solve_ik(m, "tip", TARGET, limits=False)
    assert free.converged and free.residual.position < 1e-6


def test_a_stretched_arm_that_cannot_start_says_singular():
    """Towards its own base a stretched arm has no way to begin; restarts find one."""
    stuck = zw.robot.solve_ik(dh.two_link(), "tip", (1, 0), q0=(0, 0), restarts=0)
    assert stuck.reason == "singular" and stuck.residual.position == pytest.approx(1)
    assert zw.robot.solve_ik(dh.two_link(), "tip", (1, 0), q0=(0, 0)).converged


def test_starts_are_given_by_name_too():
    """A dictionary of coordinates, of which the others are those at home, also with a batch; a keyframe."""
    m = dh.two_link()
    first, second = m.coordinate_names
    start, task = (0.25, 0.75), zw.robot.FrameTask("tip", weight=(1, 1, 0, 0, 0, 0))
    m = m.replace(home=(0.25, 0.5), keyframes=[zw.Keyframe("bent", q=start)])

    def found(q0):
        solution = zw.robot.solve_ik(m, "tip", TARGET, q0=q0, compiled=False)
        step = zw.robot.differential_ik(m, task, [(*TARGET, 0)], q0, 1.0, compiled=False)
        return np.array([solution.q, step.q])

    for q0 in ({second: 0.75}, {second: 0.75, first: 0.25}, "bent"):
        np.testing.assert_array_equal(found(q0), found(start))
    several = zw.robot.solve_ik(m, "tip", [TARGET, TARGET], q0={second: [0.75, -0.75]}, compiled=False)
    assert several.converged.all() and (np.sign(several.q[:, 1]) == (1, -1)).all()
    with pytest.raises(zw.errors.UnknownNameError, match="elbow"):
        zw.robot.solve_ik(m, "tip", TARGET, q0={"elbow": 1.0})


@pytest.mark.parametrize("method", ["newton", "transpose"])
def test_too_few_iterations_say_so(method):
    solution = zw.robot.solve_ik(dh.two_link(), "tip", TARGET, method=method, q0=(0.25, 0.75), iterations=2)
    assert solution.reason == "iterations" and solution.iterations == 2


def test_newton_beyond_a_limit_does_not_converge():
    m = zw.robot.from_dh(d=[0, 0], a=[1, 1], alpha=[0, 0], limits=[(-0.1, 0.1), (-3, 3)])
    solution = zw.robot.solve_ik(m, "tip", TARGET, method="newton", q0=(0.0, 1.5), alpha=0.75)
    assert solution.reason == "limit" and not solution.converged and solution.residual.position < 1e-6


def test_whole_revolutions_are_shifted_into_the_limits():
    """Newton may add whole turns: the answer is then the same pose, within the limits."""
    m = zw.robot.from_dh(d=[0, 0], a=[1, 1], alpha=[0, 0], limits=[(-3.1, 3.1), (-3.1, 3.1)])
    solution = zw.robot.solve_ik(
        m, "tip", TARGET, method="newton", q0=(0.5 + 2 * np.pi, 1.7 - 2 * np.pi), tolerance=1e-9
    )
    assert solution.converged and (np.abs(solution.q) <= 3.1).all()


# ------------------------------------------------------------ options


def test_orientation_alone_and_a_free_spin():
    m = dh.arm("panda")
    R, p = zw.frame_pose(m, [0.3, 0.2, -0.4, -1.7, 0.5, 1.9, 0.1], "tip")
    turned = zw.robot.solve_ik(m, "tip", R, part="orientation")
    assert turned.converged and np.allclose(zw.frame_pose(m, turned.q, "tip").R, R, atol=2e-6)
    drill = zw.robot.solve_ik(m, "tip", (R, p), components=("x", "y", "z", "rx", "ry"), axes="body")
    found = zw.frame_pose(m, drill.q, "tip")
    assert drill.converged
    np.testing.assert_allclose(found.p, p, atol=2e-6)
    np.testing.assert_allclose(found.R[:, 2], R[:, 2], atol=2e-6)


def test_forms_of_a_target_agree():
    m = dh.arm("ur5")
    R, p = zw.frame_pose(m, [0.3, -1.2, 1.4, -0.5, 0.7, 0.1], "tip")
    T = np.eye(4)
    T[:3, :3], T[:3, 3] = R, p
    first = zw.robot.solve_ik(m, "tip", (R, p))
    for target in (T, zw.frame_pose(m, [0.3, -1.2, 1.4, -0.5, 0.7, 0.1], "tip")):
        np.testing.assert_array_equal(zw.robot.solve_ik(m, "tip", target).q, first.q)
    many = zw.robot.solve_ik(m, "tip", [(R, p), (R, p)])
    np.testing.assert_array_equal(many.q, [first.q, first.q])
    assert many.converged.shape == (2,) and many.trace is None
    grid = zw.robot.solve_ik(m, "tip", np.tile(T, (2, 3, 1, 1)))
    assert grid.q.shape == (2, 3, 6) and grid.residual.position.shape == (2, 3)


def test_a_path_keeps_to_its_branch():
    """Along a line the joints change steadily, without a jump to another elbow."""
    m = dh.arm("ur5", [(-6.2, 6.2)] * 6)
    R, p = zw.frame_pose(m, [0.3, -1.2, 1.4, -0.5, 0.7, 0.1], "tip")
    line = p + np.linspace(0, 0.2, 41)[:, None] * (0, 0, 1)
    solution = zw.robot.solve_ik(m, "tip", (R, line), q0=[0.3, -1.2, 1.4, -0.5, 0.7, 0.1], path=True)
    assert solution.converged.all() and np.abs(np.diff(solution.q, axis=0)).max() < 0.05


def test_a_posture_is_approached_in_the_null_space():
    """Of all joints with the same pose it finds one that no small motion brings nearer to the posture."""
    m = dh.arm("panda")
    middle = np.array(dh.table("panda")["qlim"]).mean(axis=1)
    q = np.array([0.9, 0.5, -0.6, -1.7, 0.8, 1.9, -0.3])
    target = zw.frame_pose(m, q, "tip")
    plain = zw.robot.solve_ik(m, "tip", target, q0=q)
    pulled = zw.robot.solve_ik(m, "tip", target, q0=q, posture=middle)
    assert plain.converged and pulled.converged
    assert np.linalg.norm(pulled.q - middle) < np.linalg.norm(plain.q - middle) - 0.05
    N = zw.robot.manipulability(m, pulled.q, "tip").null_space()
    assert np.abs(N.T @ (middle - pulled.q)).max() < 1e-4
    follow = zw.robot.solve_ik(
        m, "tip", target, q0=q, null_space_objective=lambda q: [middle[k] - q[k] for k in range(7)]
    )
    np.testing.assert_allclose(follow.q, pulled.q, atol=1e-9)


@pytest.mark.parametrize("kind", [zw.Ball, zw.Free])
def test_a_posture_turns_ball_and_free_joints(kind):
    """A turn about the line to the target leaves the position."""
    body = zw.Body("a", kind("s"), mass=1, inertia=(1, 1, 1))
    m = zw.Mechanism("m", [body], frames=[zw.Frame("tip", "a", (0, 0, 1))])
    q0, posture = np.array(m.neutral, float), np.array(m.neutral, float)
    posture[-4:] = np.cos(0.4), 0, 0, np.sin(0.4)
    found = zw.robot.solve_ik(m, "tip", (0, 0, 1), q0=q0, posture=posture)
    assert found.converged
    np.testing.assert_allclose(found.q, posture, atol=1e-4)


def two_arms() -> zw.Mechanism:
    """A turning column that carries two arms of three joints."""
    bodies = [
        zw.Body("column", zw.Revolute("waist", axis=(0, 0, 1), limits=(-2, 2)), position=(0, 0, 1), mass=5)
    ]
    for side, y in (("left", 0.3), ("right", -0.3)):
        parent, position = "column", (0, y, 0)
        for k, axis in enumerate([(0, 1, 0), (0, 0, 1), (0, 1, 0)]):
            joint = zw.Revolute(f"{side}{k}", axis=axis, limits=(-2.5, 2.5))
            bodies.append(zw.Body(f"{side} link {k}", joint, parent, position, mass=1, com=(0.2, 0, 0)))
            parent, position = bodies[-1].name, (0.4, 0, 0)
        bodies.append(zw.Body(f"{side} hand", parent=parent, position=position))
    return zw.Mechanism(name="two arms", bodies=tuple(bodies))


def test_several_frames_at_once_share_the_waist():
    m = two_arms()
    q = np.random.default_rng(0).uniform(-1, 1, (20, m.nq))
    hands = ("left hand", "right hand")
    targets = [np.array([zw.frame_pose(m, row, hand).p for row in q]) for hand in hands]
    solution = zw.robot.solve_ik(m, hands, targets)
    assert solution.converged.all()
    for hand, target in zip(hands, targets, strict=True):
        reached = np.array([zw.frame_pose(m, row, hand).p for row in solution.q])
        np.testing.assert_allclose(reached, target, atol=2e-6)


def test_weights_decide_between_targets_that_exclude_each_other():
    m = two_arms()
    hands, targets = ("left hand", "right hand"), [(1.2, 2.0, 1.0), (1.2, -2.0, 1.0)]
    even, left = (zw.robot.solve_ik(m, hands, targets, weights=w) for w in ((1, 1), (10, 1)))
    assert even.reason == left.reason == "unreachable"
    distances = [np.linalg.norm(zw.frame_pose(m, s.q, "left hand").p - targets[0]) for s in (even, left)]
    assert distances[1] < distances[0] - 0.01


def test_joints_that_may_not_move_stay():
    m = two_arms()
    q0 = np.full(m.nq, 0.2)
    target = zw.frame_pose(m, q0 + 0.3, "left hand").p
    names = ["left0", "left1", "left2"]
    solution = zw.robot.solve_ik(m, "left hand", target, q0=q0, joints=names)
    moved = {m.joints[k].name for k in np.flatnonzero(solution.q != q0)}
    assert moved <= set(names) and solution.converged


def test_mimic_joints_follow_and_their_limits_count():
    """q2 = 0.1 - 2 q1: the second joint's limits restrict the first one."""
    bodies = (
        zw.Body("a", zw.Revolute("q1", axis=(0, 0, 1)), mass=1),
        zw.Body("b", zw.Revolute("q2", axis=(0, 0, 1), limits=(-2.9, 0.9)), "a", (1, 0, 0), mass=1),
        zw.Body("tip", parent="b", position=(0.8, 0, 0)),
    )
    m = zw.Mechanism(bodies=bodies, constraints=[zw.JointCoupling("mimic", "q2", "q1", (0.1, -2))])

    def p(q1):
        return zw.frame_pose(m, [q1, 0.1 - 2 * q1], "tip").p

    solution = zw.robot.solve_ik(m, "tip", np.array([p(0.7), p(1.4)]))
    assert solution.converged.all()
    np.testing.assert_allclose(solution.q[:, 1], 0.1 - 2 * solution.q[:, 0], atol=1e-12)
    beyond = zw.robot.solve_ik(m, "tip", p(2.4))
    assert not beyond.converged and beyond.reason == "limit" and beyond.q[0] <= 1.5 + 1e-9


def four_bar() -> zw.Mechanism:
    """Ground 1 m, crank 0.4, coupler 1 with a point off its line, rocker 0.5."""
    bodies = (
        zw.Body("crank", zw.Revolute("a", axis=(0, 0, 1)), mass=1, com=(0.2, 0, 0)),
        zw.Body("coupler", zw.Revolute("b", axis=(0, 0, 1)), "crank", (0.4, 0, 0), mass=1, com=(0.5, 0, 0)),
        zw.Body("rocker", zw.Revolute("c", axis=(0, 0, 1)), position=(1, 0, 0), mass=1, com=(0.2, 0, 0)),
        zw.Body("point", parent="coupler", position=(0.5, 0.3, 0)),
    )
    pin = zw.Connect("pin", ("coupler", (1.0, 0, 0)), ("rocker", (0.5, 0, 0)))
    return zw.Mechanism(bodies=bodies, constraints=[pin])


def coupler_point(a: float) -> np.ndarray:
    """Where the crank at angle a puts the point: the pin is where two circles meet."""
    A, C = 0.4 * np.array([np.cos(a), np.sin(a)]), np.array([1.0, 0.0])
    d = C - A
    along = (d @ d + 1.0**2 - 0.5**2) / (2 * np.linalg.norm(d))
    across = np.sqrt(1.0**2 - along**2)
    u = d / np.linalg.norm(d)
    pin = A + along * u + across * np.array([-u[1], u[0]])
    x = pin - A
    return A + 0.5 * x + 0.3 * np.array([-x[1], x[0]])


def test_closed_loops_stay_closed():
    """Points of a four-bar's coupler curve are reached with the loop closed; others are out of reach."""
    m = four_bar()
    targets = np.array([coupler_point(a) for a in (0.4, 0.9, 1.7, 2.4)])
    solution = zw.robot.solve_ik(m, "point", targets)
    assert solution.converged.all()
    for q, target in zip(solution.q, targets, strict=True):
        coupler, rocker, point = (zw.frame_pose(m, q, name) for name in ("coupler", "rocker", "point"))
        np.testing.assert_allclose(point.p[:2], target, atol=2e-6)
        np.testing.assert_allclose(coupler.p + coupler.R[:, 0], rocker.p + 0.5 * rocker.R[:, 0], atol=2e-6)
    beside = zw.robot.solve_ik(m, "point", targets[0] + (0, 0.05), restarts=20)
    assert beside.reason == "unreachable" and beside.residual.position > 1e-3


def test_balls_and_free_joints_turn_on_their_manifold():
    bodies = (
        zw.Body("hip", zw.Ball("ball"), mass=1, com=(0, 0, -0.2)),
        zw.Body("shin", zw.Revolute("knee", axis=(0, 1, 0), limits=(0, 2.5)), "hip", (0, 0, -0.5), mass=1),
        zw.Body("foot", parent="shin", position=(0, 0, -0.5)),
    )
    m = zw.Mechanism(bodies=bodies)
    rng = np.random.default_rng(3)
    p = rng.normal(size=(20, 3))
    p *= rng.uniform(0.35, 0.95, (20, 1)) / np.linalg.norm(p, axis=1, keepdims=True)
    solution = zw.robot.solve_ik(m, "foot", p)
    assert solution.converged.all()
    np.testing.assert_allclose(np.linalg.norm(solution.q[:, :4], axis=1), 1, atol=1e-14)
    np.testing.assert_allclose([zw.frame_pose(m, q, "foot").p for q in solution.q], p, atol=2e-6)


# ------------------------------------------------------------ rotation vectors, invalid calls


@pytest.mark.parametrize("angle", [0.0, 1e-12, 1e-6, 0.5, 3.1, np.pi - 1e-7, np.pi])
def test_rotation_vector_of_a_matrix(angle):
    axis = np.array([0.48, -0.6, 0.64])
    K = np.array([[0, -axis[2], axis[1]], [axis[2], 0, -axis[0]], [-axis[1], axis[0], 0]])
    R = np.eye(3) + np.sin(angle) * K + (1 - np.cos(angle)) * K @ K
    found = rotation_vector(R)
    if angle == np.pi:  # either way round
        found = found * np.sign(found @ axis)
    np.testing.assert_allclose(found, angle * axis, atol=2e-6 if angle > 3.14 else 1e-14)


@pytest.mark.parametrize(
    ("change", "error", "message"),
    [
        ({"frame": "top"}, zw.errors.UnknownNameError, "'tip'"),
        ({"targets": (1, 2, 3, 4)}, zw.errors.ShapeError, r"\(\.\.\., 3\)"),
        ({"targets": (np.nan, 0, 0)}, zw.errors.StateError, "finite"),
        ({"targets": (2 * np.eye(3), (0, 0, 0))}, zw.errors.StateError, "not a rotation"),
        ({"method": "magic"}, zw.errors.DescriptionError, "'newton'"),
        ({"part": "pose"}, zw.errors.ShapeError, "4x4 matrix"),
        ({"components": ("u",)}, zw.errors.DescriptionError, "x, y, z, rx, ry, rz"),
        ({"q0": (0, 0, 0)}, zw.errors.ShapeError, r"\(2,\)"),
        ({"q0": np.zeros((4, 3))}, zw.errors.ShapeError, r"\(2,\) or \(\.\.\., 2\)"),
        ({"q0": np.zeros((4, 2)), "targets": np.ones((5, 3))}, zw.errors.ShapeError, r"or \(5, 2\)"),
        ({"q0": np.zeros((5, 2)), "targets": np.ones((5, 3)), "path": True}, zw.errors.ShapeError, "first"),
        ({"tolerance": 0}, zw.errors.DescriptionError, "positive"),
        ({"tolerance": np.inf}, zw.errors.DescriptionError, "finite"),
        ({"method": "newton", "alpha": np.nan}, zw.errors.StateError, "alpha of iteration 1 is nan"),
        ({"joints": ["q9"]}, zw.errors.UnknownNameError, "q1"),
        ({"joints": []}, zw.errors.DescriptionError, "no joint"),
        ({"method": "newton", "alpha": (1, 1, 1)}, zw.errors.ShapeError, "alpha"),
        ({"iterations": -1}, zw.errors.DescriptionError, "iterations is -1"),
        ({"restarts": 2.5}, zw.errors.DescriptionError, r"restarts is 2\.5"),
        ({"restarts": np.zeros(0)}, zw.errors.DescriptionError, "restarts is array"),
        ({"alpha": 0.5}, zw.errors.DescriptionError, "method 'lm' has no alpha.*'newton' or 'transpose'"),
        ({"method": "newton", "posture": (0, 0)}, zw.errors.DescriptionError, "no posture.*method 'lm'"),
        ({"method": "transpose", "restarts": 3}, zw.errors.DescriptionError, "no restarts.*method 'lm'"),
        (
            {"null_space_objective": lambda q: q[:1]},
            zw.errors.ShapeError,
            r"null_space_objective\(q\).*\(2,\)",
        ),
    ],
)
def test_an_invalid_call_is_reported(change, error, message):
    arguments = {"frame": "tip", "targets": (0.2, 1.3, 0), **change}
    frame, targets = arguments.pop("frame"), arguments.pop("targets")
    with pytest.raises(error, match=message):
        zw.robot.solve_ik(dh.two_link(), frame, targets, **arguments)


def test_limits_of_almost_a_revolution_do_not_restrict_the_search():
    """Solutions satisfy limits of 3.1 rad, though the search may pass through the remaining angle."""
    limits = [(-3.1, 3.1)] * 6
    q = np.random.default_rng(4).uniform(-3.1, 3.1, (300, 6))
    R, p = dh.pose("ur5", q)
    solution = zw.robot.solve_ik(dh.arm("ur5", limits), "tip", (R, p))
    assert solution.converged.all() and np.abs(solution.q).max() <= 3.1 + 1e-9
    assert solution.iterations.mean() < 20


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("method", ["lm", "newton", "transpose"])
def test_an_empty_batch_has_an_empty_solution(method, compiled):
    nothing, model, options = np.zeros((0, 3)), dh.two_link(), {"method": method, "compiled": compiled}
    solution = zw.robot.solve_ik(model, "tip", nothing, **options)
    assert solution.q.shape == (0, 2) and solution.converged.shape == solution.reason.shape == (0,)
    assert zw.robot.solve_ik(model, "tip", nothing, q0=np.zeros((0, 2)), **options).q.shape == (0, 2)
    if method == "lm":
        path = zw.robot.solve_ik(model, "tip", nothing, path=True, **options)
        assert path.q.shape == (0, 2) and path.reason.shape == path.residual.position.shape == (0,)


def test_one_target_has_a_solution_from_each_start():
    """The elbow bends to the side where it starts."""
    starts = np.array([[(0.5, 1.0), (2.3, -1.0)], [(0.6, 1.2), (2.2, -1.2)], [(0.5, 2), (2, -2)]])
    solution = zw.robot.solve_ik(dh.two_link(), "tip", TARGET, q0=starts, restarts=0)
    assert solution.q.shape == starts.shape and solution.converged.all()
    np.testing.assert_array_equal(solution.q[..., 1] > 0, starts[..., 1] > 0)
    np.testing.assert_allclose(solution.q[1:], np.broadcast_to(solution.q[:1], (2, 2, 2)), atol=1e-5)


@pytest.mark.parametrize("seed", range(8))
def test_mechanisms_of_all_kinds_of_joints(seed):
    """Poses, positions and orientations that a random tree of bodies reaches are found again."""
    m = random_mechanism(seed, bodies=5)
    frame = m.bodies[-1].name
    poses = [zw.frame_pose(m, q, frame) for q in random_configurations(m, 10, seed)]
    p, R = np.array([pose.p for pose in poses]), np.array([pose.R for pose in poses])
    part = ("pose", "position", "orientation")[seed % 3]
    targets = {"pose": (R, p), "position": p, "orientation": R}[part]
    solution = zw.robot.solve_ik(m, frame, targets, part=part)
    assert solution.converged.all()
    found = [zw.frame_pose(m, q, frame) for q in solution.q]
    if part != "orientation":
        np.testing.assert_allclose([pose.p for pose in found], p, atol=2e-6)
    if part != "position":
        np.testing.assert_allclose([pose.R for pose in found], R, atol=4e-6)


def test_a_scara_with_its_slide():
    limits = [(-2, 2), (-2.5, 2.5), (0, 0.2), (-3, 3)]
    m = zw.robot.from_dh(
        d=[0.4, 0, 0, 0.1], a=[0.3, 0.25, 0, 0], alpha=[0, np.pi, 0, 0], joints="RRPR", limits=limits
    )
    targets = [zw.frame_pose(m, q, "tip") for q in random_configurations(m, 200, 1)]
    assert zw.robot.solve_ik(m, "tip", targets).converged.all()
    deep = (targets[0].R, targets[0].p - (0, 0, 0.5))
    assert zw.robot.solve_ik(m, "tip", deep).reason in ("unreachable", "limit")


def test_the_null_space_objective_leads_away_from_singularities():
    """The same pose with a better measure, at which the gradient has no part left in the null space."""
    m = dh.arm("panda")
    q = np.array([0.4, 0.5, -0.6, -1.0, 0.8, 1.2, -0.3])
    target = zw.frame_pose(m, q, "tip")
    plain = zw.robot.manipulability(m, q, "tip")
    objective = zw.robot.away_from_singularities(m, "tip", gain=0.3)
    np.testing.assert_allclose(objective(q), 0.3 * plain.gradient() / plain.measure, atol=1e-6)
    better = zw.robot.solve_ik(m, "tip", target, q0=q, null_space_objective=objective)
    found = zw.robot.manipulability(m, better.q, "tip")
    assert better.converged and found.measure > 1.05 * plain.measure
    lower, upper = np.array(dh.table("panda")["qlim"]).T
    assert (better.q > lower + 1e-6).all() and (
        better.q < upper - 1e-6
    ).all()  # so that nothing else holds it back
    assert np.abs(found.null_space().T @ found.gradient()).max() < 1e-4


@pytest.mark.parametrize("size", [1.0, 1e-5])
def test_the_null_space_objective_follows_joint_couplings(size):
    """The gradient of log mu along the allowed displacements by differences, for arms of any size."""
    bodies = [
        zw.Body(name, zw.Revolute(f"q{name}", axis=(0, 0, 1)), parent, (x * size, 0, 0), mass=1)
        for name, parent, x in (("a", "world", 0), ("b", "a", 1), ("c", "b", 1), ("d", "c", 1))
    ]
    mimic = zw.JointCoupling("mimic", "qb", to="qa", coefficients=(0, -2.0))
    m = zw.Mechanism("arm", bodies, frames=[zw.Frame("tip", "d", (size, 0, 0))], constraints=[mimic])

    def log_mu(q):
        return np.log(zw.robot.manipulability(m, q, "tip", part="position").measure)

    q, e = np.array([0.2, -0.4, 0.3, 0.5]), 1e-6
    allowed = np.array([[1, -2, 0, 0], [0, 0, 1, 0], [0, 0, 0, 1]])
    slopes = [(log_mu(q + e * x) - log_mu(q - e * x)) / (2 * e) for x in allowed]
    found = zw.robot.away_from_singularities(m, "tip", part="position", gain=1.0)(q)
    np.testing.assert_allclose(found, [slopes[0], 0, *slopes[1:]], rtol=1e-6)


def test_the_null_space_objective_refuses_what_it_does_not_follow():
    with pytest.raises(zw.errors.DescriptionError, match="carried by a closed loop"):
        zw.robot.away_from_singularities(four_bar(), "point", part="position")


def test_a_posture_attracts_from_far_away():
    """The joints end no farther from the posture than by small steps along the null space, and as near as the
    first-order conditions allow.
    """
    panda = zw.robot.from_dh(
        d=[0.333, 0, 0.316, 0, 0.384, 0, 0.107], a=[0, 0, 0, 0.0825, -0.0825, 0, 0.088],
        alpha=np.array([0, -1, 1, 1, -1, 1, 1]) * np.pi / 2, convention="modified", name="panda",
        limits=[(-2.9, 2.9), (-1.76, 1.76), (-2.9, 2.9), (-3.07, -0.07), (-2.9, 2.9), (-0.02, 3.75),
                (-2.9, 2.9)],
    )  # fmt: skip
    lower, upper = np.array([joint.joint.limits for joint in panda.joints], float).T
    Q = np.random.default_rng(0).uniform(lower, upper, (200, 7))
    for k in (4, 5, 11, 16, 29):
        q0, posture = Q[k], Q[k + 50]
        target = zw.frame_pose(panda, q0, "tip")
        found = zw.robot.solve_ik(panda, "tip", target, q0=q0, posture=posture)
        slow = zw.robot.solve_ik(
            panda, "tip", target, q0=q0, null_space_objective=lambda q, p=posture: 0.05 * (p - q)
        )
        distances = [float(np.linalg.norm(q - posture)) for q in (q0, found.q, slow.q)]
        assert found.converged and distances[1] < distances[0] - 1e-3
        assert distances[1] < distances[2] + 0.01

"""Kinematics and statics satisfy the constraints of a mechanism that act, and no others."""

from __future__ import annotations

import numpy as np
import pytest
import sympy as sp
from scipy import optimize

import zwang as zw
from zwang.errors import DescriptionError, ParameterError

Z = (0, 0, 1)
BODY = {"mass": 1, "com": (0.5, 0, 0), "inertia": (0.1, 0.1, 0.1)}
SOFT = zw.Softness()
a, b, c = sp.symbols("a b c")


def arm(constraints, n=3, **fields):
    """A planar arm of links of 1 m in the plane of gravity, with the joints a, b, c, d."""
    bodies = [
        zw.Body(f"l{k}", zw.Revolute("abcd"[k], Z), *([f"l{k - 1}", (1, 0, 0)] if k else []), **BODY)
        for k in range(n)
    ]
    tip = zw.Frame("tip", f"l{n - 1}", (1, 0, 0))
    return zw.Mechanism("arm", bodies, frames=[tip], gravity=(0, -9.81, 0), constraints=constraints, **fields)


def tip_of(q):
    """The position of the tip (2,) in closed form."""
    angles = np.cumsum(q)
    return np.array([np.cos(angles).sum(), np.sin(angles).sum()])


def potential(q):
    """The potential energy [J] of the arm in closed form."""
    heights = np.sin(np.cumsum(q))
    return 9.81 * float(sum(heights[:k].sum() + heights[k] / 2 for k in range(len(heights))))


COUPLING = zw.JointCoupling("k", "a", "b", softness=SOFT, active=0)
CLOSED = zw.Connect("k", ("l2", (1, 0, 0)), ("world", (0.5, 0, 0)), softness=SOFT)
OFF = {"options": zw.Options(disabled=("equality",))}


@pytest.mark.parametrize(
    ("constraints", "fields"),
    [
        ([COUPLING], {}),
        ([zw.Connect("k", CLOSED.a, CLOSED.b, softness=SOFT, active=0)], {}),
        ([CLOSED], OFF),
        ([zw.Holonomic("k", a - 2 * b), zw.NoSideSlip("n", "l2")], OFF),
    ],
)
def test_constraints_that_do_not_act_have_no_effect(constraints, fields):
    """Everything is as in the arm without constraints, and the equilibrium is one of the simulation."""
    free, m = arm([]), arm(constraints, **fields)
    q, goal = np.array([0.3, 0.8, 0.1]), np.array([1.5, 0.9])
    np.testing.assert_array_equal(
        *(zw.robot.manipulability(x, q, "tip", compiled=False).jacobian for x in (m, free))
    )
    np.testing.assert_array_equal(
        *(zw.robot.solve_ik(x, "tip", goal, q0=q, compiled=False).q for x in (m, free))
    )
    task = zw.robot.FrameTask("tip", weight=(1, 1, 0, 0, 0, 0))
    steps = (zw.robot.differential_ik(x, task, [[*goal, 0]], q, 0.1, compiled=False).v for x in (m, free))
    np.testing.assert_array_equal(*steps)
    found = zw.robot.equilibrium(m, q)
    np.testing.assert_allclose(found.q, zw.robot.equilibrium(free, q).q, rtol=0, atol=1e-9)
    acceleration = zw.constrained_dynamics(m, found.q, np.zeros(3), np.zeros(3)).acceleration
    np.testing.assert_allclose(acceleration, 0, atol=1e-7)


def test_a_symbolic_switch_is_refused_by_name_until_it_has_a_value():
    m = zw.with_equality_parameters(arm([COUPLING])).mechanism
    with pytest.raises(ParameterError, match=r"k\.active"):
        zw.robot.manipulability(m, [0.3, 0.3, 0.1], "tip")
    for value, freedoms in ((0, 3), (1, 2)):
        found = zw.robot.equilibrium(m.subs({"k.active": value}), [-1, -1, 0.1])
        assert found.velocity_transformation.shape == (3, freedoms)


# a curve of the joints: the first coupling is one of polynomials, the last one is not
CURVES = {
    "line": (a - 2 * b, lambda t: np.array([2 * t, t])),
    "sine": (b - sp.sin(a) / 2, lambda t: np.array([t, np.sin(t) / 2])),
}


@pytest.mark.parametrize("name", CURVES)
def test_a_formula_restricts_the_arm_to_its_curve(name):
    """Against the closed form of the arm on the curve q(t)."""
    g, curve = CURVES[name]
    m = arm([zw.Holonomic("k", g)], n=2)
    q, dq = curve(0.4), (curve(0.4 + 1e-6) - curve(0.4 - 1e-6)) / 2e-6
    # manipulability: the velocity of the tip for a unit velocity along the curve
    J = zw.robot.manipulability(m, q, "tip", compiled=False).jacobian
    assert J.shape[1] == 1
    dp = (tip_of(q + 1e-6 * dq) - tip_of(q - 1e-6 * dq)) / 2e-6 / np.linalg.norm(dq)
    np.testing.assert_allclose(np.linalg.norm(J), np.linalg.norm(dp), rtol=1e-8)
    # inverse kinematics: points of the curve are reached on it, others are not
    reached = zw.robot.solve_ik(m, "tip", tip_of(q), compiled=False, tolerance=1e-9, restarts=20)
    assert reached.converged
    np.testing.assert_allclose(float(g.subs({a: reached.q[0], b: reached.q[1]})), 0, atol=1e-8)
    np.testing.assert_allclose(tip_of(reached.q), tip_of(q), atol=1e-8)
    beside = zw.robot.solve_ik(m, "tip", tip_of(q + np.array([0.3, -0.3])), compiled=False, restarts=5)
    assert not beside.converged
    # statics: the minimum of the potential along the curve
    lowest = optimize.minimize_scalar(lambda t: potential(curve(t)), bounds=(-2, 0), method="bounded")
    found = zw.robot.equilibrium(m, curve(-0.4))
    np.testing.assert_allclose(found.q, curve(lowest.x), atol=1e-5)
    # whole-body inverse kinematics: a step along the curve
    task = zw.robot.FrameTask("tip", weight=(1, 1, 0, 0, 0, 0))
    step = zw.robot.differential_ik(m, task, [[*tip_of(curve(0.5)), 0]], q, 1.0, compiled=False)
    np.testing.assert_allclose(step.v / np.linalg.norm(step.v), dq / np.linalg.norm(dq), atol=1e-6)


@pytest.mark.parametrize(
    "constraint",
    [
        zw.NoSideSlip("k", "l1"),
        zw.Pfaffian("k", {"a": 1, "b": -2}),
        zw.Rolling("k", "l1", 0.1),
        zw.Holonomic("k", a - sp.Symbol("t")),
    ],
)
def test_constraints_without_a_row_are_refused_by_name(constraint):
    m, task = arm([constraint]), zw.robot.FrameTask("tip")
    calls = [
        lambda: zw.robot.solve_ik(m, "tip", (1.0, 1.0)),
        lambda: zw.robot.manipulability(m, np.zeros(3), "tip"),
        lambda: zw.robot.equilibrium(m),
        lambda: zw.robot.payload(m, np.zeros(3), "tip", np.ones(3)),
        lambda: zw.robot.workspace(m, "tip"),
        lambda: zw.robot.whole_body_ik(m, task, [None], np.zeros(3)),
    ]
    for call in calls:
        with pytest.raises(DescriptionError, match=r"'k'.*replace"):
            call()


def test_constraints_of_other_branches_do_not_matter():
    wheel = zw.Body("wheel", zw.Revolute("w", Z), position=(5, 0, 0), **BODY)
    m = arm([])
    m = m.replace(bodies=[*m.bodies, wheel], constraints=[zw.Pfaffian("k", {"w": 1})])
    found = zw.robot.solve_ik(m, "tip", tip_of([0.3, 0.4, 0.5]), compiled=False)
    assert found.converged
    assert found.q[3] == 0


def test_all_couplings_of_a_joint_are_satisfied():
    """Two couplings of one joint leave two degrees of freedom of four."""
    pair = [zw.JointCoupling("ab", "a", "b"), zw.JointCoupling("ac", "a", "c", coefficients=(0, 2))]
    m = arm(pair, n=4)

    def curve(t):
        return np.array([2 * t[0], 2 * t[0], t[0], t[1]])

    q = curve((0.2, 0.3))
    J = zw.robot.manipulability(m, q, "tip", compiled=False).jacobian
    difference = [
        (tip_of(curve(np.array((0.2, 0.3)) + h)) - tip_of(curve(np.array((0.2, 0.3)) - h))) / 2e-6
        for h in 1e-6 * np.array([[1 / 3, 0], [0, 1]])
    ]
    sizes = [np.linalg.svd(x, compute_uv=False) for x in (J, np.array(difference).T)]
    np.testing.assert_allclose(*sizes, rtol=1e-7)
    found = zw.robot.solve_ik(m, "tip", tip_of(q), compiled=False, tolerance=1e-9)
    assert found.converged
    np.testing.assert_allclose(found.q[:2], 2 * found.q[2], atol=1e-8)
    lowest = optimize.minimize(lambda t: potential(curve(t)), (-0.3, 0), tol=1e-12)
    np.testing.assert_allclose(zw.robot.equilibrium(m, curve((-0.3, 0))).q, curve(lowest.x), atol=1e-5)
    with pytest.raises(DescriptionError, match="'ac'"):
        zw.robot.workspace(m, "tip", samples=10)


def test_couplings_in_a_cycle_fix_their_joints():
    """a = 2 b and b = 2 a: both are zero."""
    cycle = [
        zw.JointCoupling("k", "a", "b", coefficients=(0, 2)),
        zw.JointCoupling("l", "b", "a", coefficients=(0, 2)),
    ]
    found = zw.robot.solve_ik(arm(cycle), "tip", tip_of([0, 0, 0.4]), compiled=False, tolerance=1e-9)
    np.testing.assert_allclose(found.q, [0, 0, 0.4], atol=1e-7)


def test_a_loop_of_a_coupled_joint_restricts_the_frame():
    """The finger follows a joint on another branch, which a loop fixes."""
    bodies = [zw.Body("l", zw.Revolute("a", Z), **BODY), zw.Body("r", zw.Revolute("b", Z), **BODY)]
    pin = zw.Connect("pin", ("r", (1, 0, 0)), ("world", (np.cos(0.3), np.sin(0.3), 0)))
    m = zw.Mechanism(
        "hand",
        bodies,
        constraints=[zw.JointCoupling("k", "a", "b"), pin],
        frames=[zw.Frame("tip", "l", (1, 0, 0))],
    )
    wanted = [(np.cos(x), np.sin(x)) for x in (0.3, 0.8)]
    found = zw.robot.solve_ik(m, "tip", wanted, restarts=10)
    np.testing.assert_array_equal(found.converged, [True, False])


@pytest.mark.parametrize("kind", ["tendons", "formula"])
def test_angles_are_not_wrapped_where_a_constraint_reads_them(kind):
    """x_0 + 1.5 x_1 = 0.7 x_3 holds in every solution, near the start or not."""
    x, y, z = (sp.Symbol(name) for name in "abd")
    axes = (Z, Z, (0, 1, 0), Z)
    offsets = ((0, 0, 0), (0.3, 0, 0), (0.3, 0, 0), (0.2, 0, 0))
    bodies = [
        zw.Body(f"l{k}", zw.Revolute("abcd"[k], axes[k]), f"l{k - 1}" if k else "world", offsets[k], **BODY)
        for k in range(4)
    ]
    tendons = [zw.Tendon("T1", joints=(("a", 1.0), ("b", 1.5))), zw.Tendon("T2", joints=(("d", 1.0),))]
    constraint = {
        "tendons": zw.TendonCoupling("k", "T1", "T2", coefficients=(0, 0.7)),
        "formula": zw.Holonomic("k", x + 1.5 * y - 0.7 * z),
    }[kind]
    m = zw.Mechanism(
        "arm",
        bodies,
        frames=[zw.Frame("tip", "l3", (0.3, 0, 0.1))],
        tendons=tendons,
        constraints=[constraint],
    )
    u = np.random.default_rng(0).uniform(-1.5, 1.5, (300, 3))
    q = np.column_stack([u, (u[:, 0] + 1.5 * u[:, 1]) / 0.7])
    found = zw.robot.solve_ik(m, "tip", zw.compile(m).frame_pose(q, "tip").p)
    violation = found.q @ [1, 1.5, 0, -0.7]
    assert found.converged.mean() > 0.95
    np.testing.assert_allclose(violation[found.converged], 0, atol=2e-6)

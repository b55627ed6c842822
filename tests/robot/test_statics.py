"""Statics: virtual work, torques of wrenches, payloads, equilibria and their stability."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import linprog

import zwang as zw
from tests.constraint.test_units_of_length import slider_crank
from tests.mechanisms import random_mechanism
from tests.robot import dh
from tests.robot.test_inverse_kinematics import four_bar

G = 9.81


def pendulum(*forces, length: float = 0.5, mass: float = 2.0) -> zw.Mechanism:
    """A point mass that hangs at angle 0 and turns about y."""
    body = zw.Body("bob", zw.Revolute("angle", axis=(0, 1, 0)), mass=mass, com=(0, 0, -length))
    return zw.Mechanism(name="pendulum", bodies=(body,), forces=forces)


# ------------------------------------------------------------ torques


def test_joint_torques_of_the_two_link_arm_in_closed_form():
    """J^T f with the Jacobian of Fu, ME331."""
    q1, q2, fx, fy = 0.4, 1.1, 3.0, -2.0
    s1, c1, s12, c12 = np.sin(q1), np.cos(q1), np.sin(q1 + q2), np.cos(q1 + q2)
    expected = [(-s1 - s12) * fx + (c1 + c12) * fy, -s12 * fx + c12 * fy]
    np.testing.assert_allclose(
        zw.robot.joint_torques(dh.two_link(), (q1, q2), "tip", (fx, fy, 0)), expected, atol=1e-14
    )


@pytest.mark.parametrize("seed", range(3))
def test_virtual_work_of_a_wrench(seed):
    """tau . dq equals the wrench's work over the motion that dq gives the frame."""
    rng = np.random.default_rng(seed)
    m = random_mechanism(seed, bodies=5)
    q = zw.integrate_configuration(m, np.array(m.neutral, float), rng.normal(size=m.nv), 1)
    frame, wrench, dq = m.bodies[-1].name, rng.normal(size=6), rng.normal(size=m.nv)
    h = 1e-6
    p = [zw.frame_pose(m, zw.integrate_configuration(m, q, dq, s * h), frame) for s in (1, -1)]
    turn = (p[0].R - p[1].R) @ zw.frame_pose(m, q, frame).R.T / (2 * h)
    w = np.array([turn[2, 1], turn[0, 2], turn[1, 0]])
    work = wrench[:3] @ (p[0].p - p[1].p) / (2 * h) + wrench[3:] @ w
    assert zw.robot.joint_torques(m, q, frame, wrench) @ dq == pytest.approx(work, abs=1e-7)


def test_gravity_torques_hold_the_mechanism():
    """With them, and against loads and springs with holding torques, nothing accelerates."""
    m = random_mechanism(4, bodies=5)
    q = np.array(m.neutral, float)
    rest = np.zeros(m.nv)
    np.testing.assert_allclose(zw.robot.gravity_torques(m, q), zw.bias_forces(m, q, rest), atol=1e-12)
    loads = [(m.bodies[-1].name, (1.0, 2.0, -3.0, 0.5, 0.1, 0.2))]
    hold = zw.robot.holding_torques(m, q, loads)
    total = hold + zw.robot.joint_torques(m, q, *loads[0])
    assert np.abs(zw.forward_dynamics(m, q, rest, total)).max() < 1e-9


# ------------------------------------------------------------ payloads


def test_the_largest_force_is_where_the_first_joint_reaches_its_limit():
    m = dh.two_link()
    limits = np.array([10.0, 4.0])
    load = zw.robot.payload(m, (0.3, 1.2), "tip", limits)
    for angle in np.linspace(0, 2 * np.pi, 9):
        d = np.array([np.cos(angle), np.sin(angle), 0])
        torques = zw.robot.joint_torques(m, (0.3, 1.2), "tip", load.largest_force(d) * d)
        assert np.max(np.abs(torques) / limits) == pytest.approx(1)


@given(angle=st.floats(0, 6.28), size=st.floats(0, 1))
def test_forces_in_the_payload_ellipsoid_can_be_held(angle, size):
    """With the arm's own weight, which takes its part of the torques."""
    m = pendulum()
    load = zw.robot.payload(m, [0.7], "bob", [12.0])
    assert load.supports_own_weight
    ellipsoid = zw.robot.payload(dh.two_link(), (0.3, 1.2), "tip", (10, 4)).ellipsoid
    plane = np.isfinite(ellipsoid.lengths)
    assert plane.sum() == 2  # across the plane any force can be balanced
    f = ellipsoid.axes[:, plane] @ (
        ellipsoid.lengths[plane] * size * np.array([np.cos(angle), np.sin(angle)])
    )
    torques = zw.robot.joint_torques(dh.two_link(), (0.3, 1.2), "tip", f)
    assert (np.abs(torques) <= np.array([10, 4]) * (1 + 1e-9)).all()


def test_weight_takes_its_part_of_the_torques():
    """A horizontal arm of 1 kg at 0.5 m with 10 N m carries (10 - g / 2) / 0.5 N downwards, more upwards."""
    m = pendulum(length=0.5, mass=1.0)
    frame = zw.Frame("tip", "bob", (0, 0, -0.5))
    m = m.replace(frames=(frame,))
    load = zw.robot.payload(m, [np.pi / 2], "tip", [10.0])
    assert load.largest_force((0, 0, -1)) == pytest.approx((10 - G / 2) / 0.5)
    assert load.largest_force((0, 0, 1)) == pytest.approx((10 + G / 2) / 0.5)
    weak = zw.robot.payload(m, [np.pi / 2], "tip", [4.0])
    assert not weak.supports_own_weight and weak.largest_force((0, 0, -1)) == 0
    with pytest.raises(zw.errors.DescriptionError, match="effort_limit"):
        zw.robot.payload(m, [0.0], "tip")


def test_the_equilibrium_of_a_bead_on_a_sphere_from_a_singular_and_a_regular_start():
    slides = tuple(zw.Prismatic(n, axis=a) for n, a in zip("xyz", np.eye(3), strict=True))
    rod = zw.Distance("rod", ("bead", (0, 0, 0)), ("world", (0, 0, 0)), 1)
    m = zw.Mechanism("m", [zw.Body("bead", slides, mass=1)], constraints=[rod])
    with pytest.raises(zw.errors.DescriptionError, match="give another q0"):
        zw.robot.equilibrium(m, [0, 0, 0])
    np.testing.assert_allclose(zw.robot.equilibrium(m, [0.1, 0, -0.1]).q, [0, 0, -1], atol=1e-9)


def test_torque_limits_by_name_leave_the_others_as_they_are():
    """And none may be negative, which meant that nothing can be held."""
    m = dh.two_link()
    first, second = m.speed_names
    load = zw.robot.payload(m, (0.3, 1.2), "tip", {second: 4.0})
    assert load.torque_limits.tolist() == [np.inf, 4.0]
    d = np.array([0.6, 0.8, 0])
    J = load.jacobian
    assert load.largest_force(2 * d) == pytest.approx(4 / abs(J[:, 1] @ d))
    for limits in ([-10.0, 4.0], {first: -10.0}, [np.nan, 4.0]):
        with pytest.raises(zw.errors.StateError, match=r"torque_limits\[0\]"):
            zw.robot.payload(m, (0.3, 1.2), "tip", limits)
    with pytest.raises(zw.errors.ShapeError, match="torque_limits"):
        zw.robot.payload(m, (0.3, 1.2), "tip", 4.0)


def test_a_direction_of_a_payload_has_three_numbers_and_a_length():
    load = zw.robot.payload(dh.two_link(), (0.3, 1.2), "tip", (10, 4))
    with pytest.raises(zw.errors.StateError, match="direction is zero"):
        load.largest_force((0, 0, 0))
    with pytest.raises(zw.errors.ShapeError, match="direction"):
        load.largest_force((0, 0, -1, 0, 0, 0))


def lift(*, rocker: float | None = None) -> zw.Mechanism:
    """A parallelogram with cranks of length 1, whose coupler of 0.5 kg stays horizontal."""
    axis, inertia = (0, 0, 1), (0.01, 0.01, 0.01)
    bodies = (
        zw.Body("crank", zw.Revolute("a", axis, effort_limit=10), mass=1, inertia=inertia),
        zw.Body(
            "coupler", zw.Revolute("b", axis), "crank", (1, 0, 0), mass=0.5, com=(0.7, 0, 0), inertia=inertia
        ),
        zw.Body(
            "rocker", zw.Revolute("c", axis, effort_limit=rocker), position=(2, 0, 0), mass=1, inertia=inertia
        ),
    )
    pin = zw.Connect("pin", ("coupler", (2, 0, 0)), ("rocker", (1, 0, 0)))
    frames = [zw.Frame("tip", "coupler", (3, 0, 0))]
    return zw.Mechanism("lift", bodies, gravity=(0, -G, 0), frames=frames, constraints=[pin])


@pytest.mark.parametrize(("rocker", "torque"), [(None, 10), (4.0, 14)])
def test_the_motors_of_a_parallelogram_lift_in_closed_form(rocker, torque):
    """delta W = (tau_a + tau_c + (f - m g) cos a) delta a, wherever the force acts on the coupler."""
    load = zw.robot.payload(lift(rocker=rocker), [0.6, -0.6, 0.6], "tip")
    assert load.torque_limits.tolist() == [10, 0, rocker or 0] and load.supports_own_weight
    own = torque / np.cos(0.6)
    assert load.largest_force((0, 1, 0)) == pytest.approx(own + G / 2, rel=1e-9)
    assert load.largest_force((0, -1, 0)) == pytest.approx(own - G / 2, rel=1e-9)
    assert load.largest_force((0, 0, 1)) == load.largest_force((np.cos(0.6), np.sin(0.6), 0)) == np.inf
    weak = zw.robot.payload(lift(), [0.6, -0.6, 0.6], "tip", {"a": 4})
    assert not weak.supports_own_weight and weak.largest_force((0, -1, 0)) == 0
    # the limits left by the weight, of which either motor takes the same share
    left = np.array([10, rocker or 0]) * (1 - G / 2 * np.cos(0.6) / torque)
    np.testing.assert_allclose(load.ellipsoid.lengths, [np.inf, np.inf, np.linalg.norm(left)])
    np.testing.assert_allclose(np.abs(load.ellipsoid.axes[:, 2]), [np.sin(0.6), np.cos(0.6), 0], atol=1e-9)
    with pytest.raises(zw.errors.StateError, match=r"coupling, loop or formula of mechanism 'lift' by 0\.2"):
        zw.robot.payload(lift(), [0.6, -0.5, 0.6], "tip")


def test_a_coupled_joint_without_a_motor_is_passive():
    """Mechanically b = -2 a: delta W = (tau_a + (J_a - 2 J_b) . f) delta a, not that of a motor at b."""
    axis = (0, 0, 1)
    bodies = (
        zw.Body("first", zw.Revolute("a", axis, effort_limit=10), mass=1),
        zw.Body("second", zw.Revolute("b", axis), "first", (1, 0, 0), mass=1),
    )
    coupling = zw.JointCoupling("gear", "b", "a", coefficients=(0, -2))
    m = zw.Mechanism("arm", bodies, gravity=(0, 0, 0), constraints=[coupling],
                     frames=[zw.Frame("tip", "second", (1, 0, 0))])  # fmt: skip
    # the tip moves on a straight line: x = 2 cos a
    load = zw.robot.payload(m, [0.6, -1.2], "tip")
    assert load.largest_force((1, 0, 0)) == pytest.approx(10 / (2 * np.sin(0.6)))
    assert load.largest_force((0, 1, 0)) == np.inf
    both = zw.robot.payload(m, [0.6, -1.2], "tip", {"b": 3})
    assert both.largest_force((1, 0, 0)) == pytest.approx((10 + 2 * 3) / (2 * np.sin(0.6)))


def test_redundant_motors_of_a_five_bar_are_those_of_a_linear_program_with_pin_forces():
    """tau + J^T f + A^T p = g with the forces p of the pin as unknowns, instead of virtual work."""
    axis = (0, 0, 1)
    efforts = {"a": 10.0, "b": 3.0, "c": 4.0, "d": None}
    places = {"a": ("world", (0, 0, 0)), "b": ("a", (1, 0, 0)), "c": ("world", (1.5, 0, 0)),
              "d": ("c", (0.8, 0, 0))}  # fmt: skip
    bodies = [
        zw.Body(k, zw.Revolute(k, axis, effort_limit=efforts[k]), *places[k], mass=0.2, com=(0.3, 0, 0))
        for k in efforts
    ]
    frames = [
        zw.Frame("tip", "b", (1.2, 0.3, 0)),
        zw.Frame("p1", "b", (1, 0, 0)),
        zw.Frame("p2", "d", (1, 0, 0)),
    ]
    pin = zw.Connect("pin", ("b", (1, 0, 0)), ("d", (1, 0, 0)))
    m = zw.Mechanism("five-bar", bodies, gravity=(0, -G, 0), frames=frames, constraints=[pin])
    q, _ = zw.assemble(m, [1.8, -0.9, 1.0, 0.9])
    load, ellipsoid = zw.robot.payload(m, q, "tip"), zw.robot.payload(m, q, "tip").ellipsoid
    J, J1, J2 = (np.asarray(zw.frame_jacobian(m, q, f), float)[:3] for f in ("tip", "p1", "p2"))
    g = np.asarray(zw.bias_forces(m, q, np.zeros(4)), float)
    for angle in np.linspace(0, 2 * np.pi, 12):
        d = np.array([np.cos(angle), np.sin(angle), 0])
        equal = np.concatenate([np.eye(4), (J.T @ d)[:, None], (J1 - J2)[:2].T], axis=1)
        bounds = [(-10, 10), (-3, 3), (-4, 4), (0, 0), (0, None), (None, None), (None, None)]
        best = -linprog([0, 0, 0, 0, -1, 0, 0], A_eq=equal, b_eq=g, bounds=bounds).fun
        assert load.largest_force(d) == pytest.approx(best, rel=1e-6)
        plane = np.isfinite(ellipsoid.lengths)
        inside = 1 / np.linalg.norm((ellipsoid.axes[:, plane].T @ d) / ellipsoid.lengths[plane])
        assert plane.sum() == 2 and 0 < inside <= best * (1 + 1e-9)


def test_what_passive_joints_do_not_hold_is_no_payload():
    """Without a motor at the elbow only forces along the second link can be balanced."""
    q = (0.3, 1.2)
    load = zw.robot.payload(dh.two_link(), q, "tip", (10, 0))
    along = np.array([np.cos(1.5), np.sin(1.5), 0])
    assert load.largest_force((1, 0, 0)) == 0
    assert load.largest_force(along) == pytest.approx(10 / np.sin(1.2))
    np.testing.assert_allclose(load.ellipsoid.lengths, [np.inf, 10 / np.sin(1.2), 0])
    np.testing.assert_allclose(np.abs(load.ellipsoid.axes[:, 1]), np.abs(along), atol=1e-9)


# ------------------------------------------------------------ equilibria


def test_a_pendulum_hangs_and_swings_with_its_frequency():
    hanging = zw.robot.equilibrium(pendulum(), [0.8])
    assert hanging.converged and hanging.stable and abs(hanging.q[0]) < 1e-9
    assert hanging.frequencies[0] == pytest.approx(np.sqrt(G / 0.5), rel=1e-7)


def test_an_upright_pendulum_is_an_unstable_equilibrium():
    upright = zw.robot.equilibrium(pendulum(), [np.pi])
    assert upright.converged and upright.stable is False and np.isnan(upright.frequencies).all()
    assert zw.robot.equilibrium(pendulum(), [np.pi - 0.01]).stable


def test_a_spring_of_critical_stiffness_is_neither():
    """Upright on a spring k: stable above m g l, unstable below, and undecided at m g l."""
    critical = 2 * G * 0.5
    outcome = {}
    for factor in (0.9, 1.0, 1.1):
        spring = zw.Spring("angle", factor * critical, rest=np.pi)
        outcome[factor] = zw.robot.equilibrium(pendulum(spring), [np.pi]).stable
    assert outcome == {0.9: False, 1.0: None, 1.1: True}


@pytest.mark.parametrize("stiffness", [1e6, 1e10])
@pytest.mark.parametrize("height", [-0.5, 0.5])
def test_a_stiff_spring_leaves_the_judgement_of_a_soft_mode(stiffness, height):
    """A pendulum with its mass at a height above its pivot, which a stiff spring carries."""
    bodies = [
        zw.Body("carriage", zw.Prismatic("z", axis=(0, 0, 1)), mass=0.1),
        zw.Body("bob", zw.Revolute("angle", axis=(0, 1, 0)), "carriage", mass=1, com=(0, 0, height)),
    ]
    found = zw.robot.equilibrium(zw.Mechanism("m", bodies, forces=[zw.Spring("z", stiffness)]), [0, 0])
    soft, stiff = found.frequencies
    assert found.stable is (height < 0) and stiff == pytest.approx(np.sqrt(stiffness / 1.1), rel=1e-6)
    np.testing.assert_allclose(soft, np.sqrt(G / 0.5) if height < 0 else np.nan, rtol=1e-5)


def test_a_soft_torsion_spring_is_stable_and_a_turn_about_the_vertical_neutral():
    balance = zw.Body("a", zw.Revolute("j", axis=(0, 0, 1)), mass=1, com=(0.1, 0, 0), inertia=(1, 1, 0.99))
    soft = zw.robot.equilibrium(zw.Mechanism("t", [balance], forces=[zw.Spring("j", 5e-8)]), [0.0])
    assert soft.stable and soft.frequencies[0] == pytest.approx(np.sqrt(5e-8), rel=1e-6)
    bob = zw.Body("a", zw.Ball("s"), mass=1, com=(0, 0, -0.5), inertia=(0.01,) * 3)
    hanging = zw.robot.equilibrium(zw.Mechanism("b", [bob]), [np.cos(0.5), np.sin(0.5), 0, 0])
    swing = np.sqrt(G * 0.5 / (0.25 + 0.01))
    assert hanging.stable is None
    np.testing.assert_allclose(hanging.frequencies, [0, swing, swing], rtol=1e-6)


@pytest.mark.parametrize("unit", [1e-6, 1.0, 1e3])
def test_an_oblique_spring_in_any_unit_of_length(unit):
    """V = k (l - l0)^2 / 2 + m g x with l^2 = L^2 + x^2, so that K = V''."""
    k, rest, weight = 10.0, 0.9, 0.981
    spring = zw.PointSpring(("b", (0, 0, 0)), ("world", (unit, 0, 0)), stiffness=k, length=rest * unit)
    slide = zw.Body("b", zw.Prismatic("x", axis=(0, 0, 1)), mass=1)
    m = zw.Mechanism("spring", [slide], gravity=(0, 0, -weight * unit), forces=[spring])
    found = zw.robot.equilibrium(m, [0.05 * unit], tolerance=1e-12 * unit)
    x = found.q[0] / unit
    length = np.hypot(1, x)
    assert found.converged and found.stable
    assert k * x * (1 - rest / length) == pytest.approx(-weight, rel=1e-10)
    K = k * (1 - rest / length) + k * rest * x * x / length**3
    np.testing.assert_allclose(found.stiffness, [[K]], rtol=1e-12)
    np.testing.assert_allclose(found.frequencies, [np.sqrt(K)], rtol=1e-12)


@pytest.mark.parametrize("unit", [1e-6, 1e3, 1e6])
def test_a_welded_slider_crank_has_one_degree_of_freedom_in_any_unit(unit):
    expected = zw.robot.equilibrium(slider_crank(), zw.assemble(slider_crank(), [0.5, -0.6, 3.5, 0.1])[0])
    m, sizes = slider_crank(unit), np.array([1, 1, unit, 1])
    q, _ = zw.assemble(m, [0.5, -0.6, 3.5 * unit, 0.1])
    found = zw.robot.equilibrium(m, q, tolerance=1e-9 * unit**2 / max(1, unit))
    assert found.converged and found.stable and found.velocity_transformation.shape == (4, 1)
    np.testing.assert_allclose(found.q / sizes, expected.q, atol=1e-8)
    np.testing.assert_allclose(found.frequencies, expected.frequencies, rtol=1e-8)
    with pytest.raises(zw.errors.StateError, match="'slider-crank' by"):
        zw.robot.payload(m, q + np.array([0.1, 0, 0, 0]), "p", {"a": 1.0})


def column_with_follower_force(load):
    """Ziegler's column: two rods of length 1 on springs of stiffness 1, with the masses 2 and 1 at their
    ends, and a force along the second rod.
    """
    axis, tip = (0, 1, 0), (0, 0, 1)
    bodies = [
        zw.Body("lower", zw.Revolute("a", axis), mass=2, com=tip),
        zw.Body("upper", zw.Revolute("b", axis), "lower", tip, mass=1, com=tip),
    ]
    follower = zw.Wrench("upper", force=(0, 0, -load), point=tip, axes="body")
    springs = [zw.Spring("a", 1), zw.Spring("b", 1)]
    return zw.Mechanism("column", bodies, gravity=(0, 0, 0), forces=[*springs, follower])


@pytest.mark.parametrize("load", [1.5, 2.04, 2.2])
def test_a_follower_force_makes_a_column_flutter(load):
    """Ziegler (1952): flutter beyond P l / k = 7/2 - sqrt(2), without an equilibrium nearby."""
    found = zw.robot.equilibrium(column_with_follower_force(load), [0.3, -0.2])
    # in the angles from the vertical
    M, K = np.array([[3, 1], [1, 1]]), np.array([[2 - load, load - 1], [-1, 1]])
    expected = np.sqrt(np.linalg.eigvals(np.linalg.solve(M, K)).astype(complex))
    np.testing.assert_allclose(found.q, 0, atol=1e-9)
    assert found.converged and found.stable is (load < 2.0857)
    if found.stable:
        np.testing.assert_allclose(found.frequencies, np.sort(expected.real), rtol=1e-7)
    else:
        assert abs(expected.imag).min() > 0.1 and np.isnan(found.frequencies).all()


def test_at_the_critical_follower_force_the_stiffness_does_not_decide():
    found = zw.robot.equilibrium(column_with_follower_force(3.5 - np.sqrt(2)), [0, 0])
    # both omega^2 are the square root of det K / det M = 1/2
    assert found.stable is None
    np.testing.assert_allclose(found.frequencies, 0.5**0.25, rtol=1e-4)


@pytest.mark.parametrize("moment, stiffness", [(25, 12), (4, 10), (4, -1)])
def test_a_moment_about_a_fixed_axis_couples_two_axes_one_way(moment, stiffness):
    """Q = (0, T sin a) of a moment about the vertical on a joint about x and one about y, by virtual work."""
    bodies = [
        zw.Body("a", zw.Revolute("a", (1, 0, 0)), mass=0, inertia=(0.5,) * 3),
        zw.Body("b", zw.Revolute("b", (0, 1, 0)), "a", mass=1, inertia=(1, 1, 1)),
    ]
    springs = [zw.Spring("a", 10), zw.Spring("b", stiffness)]
    m = zw.Mechanism("gimbal", bodies, gravity=(0, 0, 0), forces=springs)
    found = zw.robot.equilibrium(m, [0, 0], loads=[("b", (0, 0, 0, 0, 0, moment))])
    np.testing.assert_allclose(found.stiffness, [[10, 0], [-moment, stiffness]], atol=1e-8)
    squares = np.sort([10 / 1.5, stiffness])
    assert found.stable is bool(squares[0] > 0)
    np.testing.assert_allclose(found.frequencies, np.sqrt(np.where(squares > 0, squares, np.nan)), rtol=1e-7)


def test_frequencies_under_follower_forces_are_those_of_the_linear_model():
    m = column_with_follower_force(0.9)
    third = zw.Body("third", zw.Revolute("c", (1, 1, 0)), "upper", (0, 0, 1), mass=1, com=(0, 0, 0.5))
    side = zw.Body("side", zw.Revolute("d", (1, 0, 0)), "third", mass=0.5, com=(0, 0.3, 0.4))
    push = zw.Wrench("side", force=(0.1, 0.2, -0.3), torque=(0.1, 0, 0.2), axes="body")
    m = m.replace(
        bodies=[*m.bodies, third, side],
        forces=[*m.forces, push, zw.Spring("c", 2), zw.Spring("d", 1)],
        constraints=[zw.JointCoupling("gear", "d", "a", (0, -0.5))],
    )
    found = zw.robot.equilibrium(m)
    assert found.converged and found.stable and len(found.frequencies) == 3
    assert np.abs(found.stiffness - found.stiffness.T).max() > 0.1
    poles = zw.linearize(m, found.q, np.zeros(m.nv)).poles
    frequencies = np.sort(poles.imag[poles.imag > 0])
    np.testing.assert_allclose(found.frequencies, frequencies, rtol=1e-6)


@given(torque=st.floats(-9, 9))
def test_a_torque_holds_the_pendulum_aside(torque):
    """sin(angle) = tau / (m g l)."""
    found = zw.robot.equilibrium(pendulum(), [0.1], torques=[torque])
    assert found.converged and np.sin(found.q[0]) == pytest.approx(torque / (2 * G * 0.5), abs=1e-9)
    by_load = zw.robot.equilibrium(pendulum(), [0.1], loads=[("bob", (0, 0, 0, 0, torque, 0))])
    np.testing.assert_allclose(by_load.q, found.q, atol=1e-9)


def test_too_much_torque_has_no_equilibrium():
    found = zw.robot.equilibrium(pendulum(), [0.1], torques=[11.0])
    assert not found.converged and found.residual > 1


def test_a_loop_carries_its_share():
    """A four-bar under weight, gravity in its plane: at rest where gravity does no work along the loop."""
    m = four_bar().replace(gravity=(0, -G, 0))
    q0 = zw.robot.solve_ik(m, "point", (0.45, 0.6)).q
    found = zw.robot.equilibrium(m, q0)
    assert found.converged and found.stable and found.velocity_transformation.shape == (3, 1)
    # what gravity does along the motion vanishes
    assert abs(zw.robot.gravity_torques(m, found.q) @ found.velocity_transformation[:, 0]) < 1e-9


def test_a_joint_coupling_shares_the_load():
    """Two links of which the second turns with the first, q2 = 2 q1: delta W / delta q1 = Q1 + 2 Q2."""
    bodies = (
        zw.Body("a", zw.Revolute("q1", axis=(0, 1, 0)), mass=1, com=(0, 0, -0.3)),
        zw.Body("b", zw.Revolute("q2", axis=(0, 1, 0)), "a", (0, 0, -0.6), mass=2, com=(0, 0, -0.2)),
    )
    m = zw.Mechanism(bodies=bodies, constraints=[zw.JointCoupling("c", "q2", "q1", (0.5, 2))])
    found = zw.robot.equilibrium(m, [0.3, 1.1])
    Q = zw.robot.gravity_torques(m, found.q)
    assert found.converged and found.stable
    assert found.q[1] == pytest.approx(0.5 + 2 * found.q[0]) and abs(Q[0] + 2 * Q[1]) < 1e-9


def test_invalid_wrenches_are_reported():
    with pytest.raises(zw.errors.ShapeError, match="wrench"):
        zw.robot.joint_torques(dh.two_link(), (0, 0), "tip", (1, 2))

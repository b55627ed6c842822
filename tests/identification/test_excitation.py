"""Planned motions keep the limits and tell base parameters better than random ones."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import zwang as zw
from tests.identification.robots import robot
from zwang.errors import DescriptionError, ShapeError, SolveError, StateError
from zwang.identification.base_parameters import base_parameters
from zwang.identification.excitation import _limits_of
from zwang.identification.excitation_search import Search, random_motion
from zwang.identification.fourier_series import FourierSeries
from zwang.identification.motor_forces import compiled_motor_forces
from zwang.identification.regressor import compiled_functions
from zwang.mechanism.samples import double_pendulum


def search_of(m: zw.Mechanism, criterion="condition", samples=84) -> Search:
    times = np.arange(samples) * 10.0 / samples
    return Search(
        compiled_functions(m, ("inertia",)),
        compiled_motor_forces(m),
        base_parameters(m, kinds="inertia"),
        FourierSeries.at(times, 10.0, 7),
        _limits_of(m, 0.9, None, None, None),
        criterion,
    )


def test_a_planned_motion_is_much_better_than_random_ones():
    m = robot("panda")
    planned = zw.identify.excitation(m, kinds="inertia", starts=4, perturbations=2)
    search, rng = search_of(m), np.random.default_rng(0)
    random = [random_motion(search, rng) for _ in range(300)]
    best = min(search.condition(z) for z in random if search.is_within(z))
    assert planned.condition <= best / 3 and planned.random_condition > 2 * planned.condition


def test_the_motion_keeps_every_limit_and_begins_and_ends_at_rest():
    m = robot("ur10")
    speed, effort = np.full(6, 1.0), np.array([330, 330, 150, 54, 54, 54.0])
    planned = zw.identify.excitation(m, kinds="inertia", velocity_limits=speed, effort_limits=effort,
                                     acceleration_limits=np.full(6, 2.0), margin=0.8, starts=2,
                                     perturbations=0)  # fmt: skip
    q, v, a = planned.motion(np.linspace(0, 10, 5001))
    assert (abs(v) <= 0.8 * speed * 1.001).all() and (abs(a) <= 0.8 * 2 * 1.001).all()
    tau = zw.compile(m).inverse_dynamics(q, v, a)
    assert (abs(tau) <= 0.8 * effort * 1.001).all()
    for joint, column in zip(m.joints, q.T, strict=True):
        lower, upper = joint.joint.limits
        middle, half = (lower + upper) / 2, (upper - lower) / 2
        assert (abs(column - middle) <= 0.8 * half * 1.001).all()
    np.testing.assert_allclose(v[[0, -1]], 0, atol=1e-12)
    np.testing.assert_allclose(a[[0, -1]], 0, atol=1e-12)
    np.testing.assert_allclose(np.gradient(q, 0.002, axis=0)[2:-2], v[2:-2], atol=1e-4)
    np.testing.assert_allclose(np.gradient(v, 0.002, axis=0)[2:-2], a[2:-2], atol=1e-4)


def rough_arm(friction: float = 0.4) -> zw.Mechanism:
    """A pendulum of two links with every force that its motors must exert, besides those of constraints."""
    bodies = []
    for k, (name, parent) in enumerate((("upper", "world"), ("lower", "upper"))):
        joint = zw.Revolute(f"{name}_joint", axis=(0, 1, 0), limits=(-2, 2), armature=0.3, friction=friction)
        bodies.append(zw.Body(name, joint, parent=parent, position=(0.4 * k, 0, 0), mass=2.0 - k,
                              com=(0.2, 0.02, 0), inertia=(0.01, 0.03, 0.03)))  # fmt: skip
    belt = zw.Tendon("belt", joints={"upper_joint": 2.0, "lower_joint": -1.0}, stiffness=3.0, damping=0.5,
                     friction=0.2)  # fmt: skip
    forces = [zw.Damper("upper_joint", 2.0, higher=(0.5,)), zw.Spring("lower_joint", 4.0, rest=0.3)]
    law = zw.CoulombFriction("pin", 0.3, joint="lower_joint", radius=0.05)
    return zw.Mechanism("rough", bodies, tendons=[belt], forces=forces, constraints=[law])


def forces_with_friction(m: zw.Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> np.ndarray:
    """Inverse dynamics of `rough_arm`, and the friction by its laws, at one state."""
    ideal = m.replace(constraints=(), options=replace(m.options, disabled=("frictionloss",)))
    tau = zw.inverse_dynamics(ideal, q, v, a)
    reaction = zw.joint_reactions(ideal, q, v, tau).joints["lower_joint"].force  # in world axes
    load = np.linalg.norm((zw.frame_pose(ideal, q, "lower").R.T @ reaction)[[0, 2]])
    along = np.array([2.0, -1.0])
    friction = [j.joint.friction for j in m.joints] * np.sign(v) + 0.2 * np.sign(along @ v) * along
    return tau + friction + np.array([0, 0.3 * 0.05 * load * np.sign(v[1])])


def test_the_forces_of_the_motors_are_inverse_dynamics_and_friction():
    m, rng = rough_arm(), np.random.default_rng(0)
    q, v, a = rng.uniform(-1.5, 1.5, (3, 20, 2))  # within the limits of the joints
    tau, J = compiled_motor_forces(m)(q, v, a)
    expected = [forces_with_friction(m, *state) for state in zip(q, v, a, strict=True)]
    np.testing.assert_allclose(tau, expected, rtol=1e-9)
    h, J = 1e-6, J.reshape(20, 3, 2, 2)
    for k in range(3):
        for i in range(2):
            changed = [[x + sign * h * (n == k) * np.eye(2)[i] for n, x in enumerate((q, v, a))]
                       for sign in (1, -1)]  # fmt: skip
            above, below = (compiled_motor_forces(m)(*states)[0] for states in changed)
            np.testing.assert_allclose(J[:, k, :, i], (above - below) / (2 * h), rtol=1e-6, atol=1e-6)
    smooth = m.replace(options=replace(m.options, disabled=("frictionloss",)))
    expected = zw.compile(smooth).inverse_dynamics(q, v, a)
    np.testing.assert_allclose(compiled_motor_forces(smooth)(q, v, a)[0], expected, rtol=1e-9)


@pytest.mark.parametrize("kinds", [None, ("inertia",), ("friction",)])
def test_the_forces_are_within_the_limits_whatever_the_kinds(kinds):
    m, limits = rough_arm(2.0), np.array([24.0, 10.0])
    planned = zw.identify.excitation(m, kinds=kinds, harmonics=3, starts=2, perturbations=0,
                                     effort_limits=limits)  # fmt: skip
    q, v, a = planned.motion(np.linspace(0, 10, 289))
    peaks = abs(compiled_motor_forces(m)(q, v, a)[0] / limits).argmax(axis=0)
    expected = [forces_with_friction(m, q[k], v[k], a[k])[i] for i, k in enumerate(peaks)]
    np.testing.assert_allclose(planned.usage[3], np.abs(expected) / limits, rtol=1e-9)
    for k in range(0, len(q), 12):
        usage = abs(forces_with_friction(m, q[k], v[k], a[k])) / limits
        assert (usage <= planned.usage[3] * (1 + 1e-9)).all()
    assert planned.usage.max() <= 0.9 + 1e-9


@pytest.mark.parametrize("limit", [1.0, 0.1, 0.03, 0.001])
def test_weak_motors_get_small_motions(limit):
    """About a vertical axis no posture needs a force, so that some motion keeps every limit."""
    joint = zw.Revolute("j", axis=(0, 0, 1), limits=(-2, 2), velocity_limit=3.0)
    m = zw.Mechanism("a", [zw.Body("b", joint, mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.02, 0.02))])
    planned = zw.identify.excitation(m, kinds=("inertia", "friction"), harmonics=2, starts=1, perturbations=0,
                                     effort_limits=[limit])  # fmt: skip
    q, _, a = planned.motion(np.linspace(0, 10, 193))
    tau = (0.02 + 0.3**2) * a  # I_zz about the axis
    assert abs(tau).max() <= 0.9 * limit * (1 + 1e-9) and np.ptp(q) > 0
    assert planned.usage[3] == pytest.approx(abs(tau).max() / limit)


def test_a_posture_that_the_motors_hold_is_found_near_a_limit():
    """Friction of 7.5 N m leaves 1.5 N m of 9 for the weight, 2.94 N m cos q: no posture below 1.03 rad."""
    joint = zw.Revolute("j", axis=(0, 1, 0), limits=(-2, 2), friction=7.5, effort_limit=10.0)
    m = zw.Mechanism("a", [zw.Body("b", joint, mass=1.0, com=(0.3, 0, 0), inertia=(0.01, 0.02, 0.02))])
    planned = zw.identify.excitation(m, harmonics=2, starts=1, perturbations=0)
    assert abs(planned.motion([0.0])[0]) > np.arccos(1.5 / 2.943) and planned.usage[3] <= 0.9 + 1e-9


@pytest.mark.parametrize("criterion", ["condition", "information"])
def test_gradients_are_those_of_finite_differences(criterion):
    search = search_of(robot("ur10"), criterion)
    rng = np.random.default_rng(0)
    z, h = random_motion(search, rng), 1e-6
    for _ in range(3):
        d = rng.normal(size=z.shape)
        numeric = (search.cost(z + h * d, 6.0)[0] - search.cost(z - h * d, 6.0)[0]) / (2 * h)
        np.testing.assert_allclose((search.cost(z, 6.0)[1] * d).sum(), numeric, rtol=1e-6, atol=1e-6)
        numeric = (search.margins(z + h * d)[0] - search.margins(z - h * d)[0]) / (2 * h)
        np.testing.assert_allclose(search.margins(z)[1] @ d.ravel(), numeric, rtol=1e-6, atol=1e-6)


def test_d_optimality_shrinks_the_confidence_ellipsoid():
    m = double_pendulum()
    planned = zw.identify.excitation(m, criterion="information", starts=4, perturbations=4)
    times = np.arange(84) * 10.0 / 84
    search = Search(compiled_functions(m), compiled_motor_forces(m), base_parameters(m),
                    FourierSeries.at(times, 10.0, 7), _limits_of(m, 0.9, None, None, None),
                    "information")  # fmt: skip
    rng = np.random.default_rng(1)
    random = min(search.criterion_of(random_motion(search, rng)) for _ in range(200))
    assert search.criterion_of(planned.coefficients) < random


@pytest.mark.parametrize("limits", [(5.0, np.inf), (-np.inf, -5.0), (0.5, np.inf)])
def test_the_motion_keeps_a_single_limit(limits):
    joint = zw.Revolute("j", axis=(0, 1, 0), limits=limits)
    body = zw.Body("b", joint, mass=1.0, com=(0.05, 0, -0.3), inertia=(0.1, 0.1, 0.1))
    planned = zw.identify.excitation(zw.Mechanism("p", [body]), harmonics=2, starts=1, perturbations=0)
    q = planned.motion(np.linspace(0, 10, 1001))[0]
    assert limits[0] < q.min() and q.max() < limits[1]
    assert planned.usage[0].max() <= 0.9 + 1e-9


def test_wrong_settings_are_told():
    m = double_pendulum()
    coupling = zw.JointCoupling("belt", m.joints[1].name, m.joints[0].name, (0, 2))
    with pytest.raises(DescriptionError, match=r"has constraints \(JointCoupling 'belt'\)"):
        zw.identify.excitation(m.replace(constraints=[coupling]))
    with pytest.raises(DescriptionError, match="is a ball joint"):
        zw.identify.excitation(zw.Mechanism("b", (zw.Body("b", zw.Ball("b"), mass=1, inertia=(1, 1, 1)),)))
    with pytest.raises(ShapeError, match=r"velocity_limits must have the shape \(2,\)"):
        zw.identify.excitation(m, velocity_limits=[1.0])
    with pytest.raises(StateError, match="harmonics is 1"):
        zw.identify.excitation(m, harmonics=1)
    with pytest.raises(SolveError, match=r"in none of 200 random postures .* needs \S+ of 0.0009 N m"):
        zw.identify.excitation(m, effort_limits=[1e-3, 1e-3])
    with pytest.raises(StateError, match="starts is 0"):
        zw.identify.excitation(m, starts=0)


def test_the_result_depends_on_the_seed_alone():
    m = double_pendulum()
    first, again = (zw.identify.excitation(m, starts=2, perturbations=3, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.coefficients, again.coefficients)
    more = zw.identify.excitation(m, starts=2, perturbations=12, seed=4)
    assert more.condition <= first.condition * 1.05

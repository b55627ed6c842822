"""Planned motions keep the limits and tell base parameters better than random ones."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from tests.identification.robots import robot
from zwang.errors import DescriptionError, ShapeError, SolveError, StateError
from zwang.identification.base_parameters import base_parameters
from zwang.identification.excitation import _limits_of
from zwang.identification.excitation_search import Search, random_motion
from zwang.identification.fourier_series import FourierSeries
from zwang.identification.regressor import compiled_functions
from zwang.mechanism.samples import double_pendulum


def search_of(m: zw.Mechanism, criterion="condition", samples=84) -> Search:
    times = np.arange(samples) * 10.0 / samples
    return Search(
        compiled_functions(m, ("inertia",)),
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
    search = Search(compiled_functions(m), base_parameters(m), FourierSeries.at(times, 10.0, 7),
                    _limits_of(m, 0.9, None, None, None), "information")  # fmt: skip
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
    with pytest.raises(SolveError, match="none of 200 random motions"):
        zw.identify.excitation(m, effort_limits=[1e-3, 1e-3])
    with pytest.raises(StateError, match="starts is 0"):
        zw.identify.excitation(m, starts=0)


def test_the_result_depends_on_the_seed_alone():
    m = double_pendulum()
    first, again = (zw.identify.excitation(m, starts=2, perturbations=3, seed=4) for _ in range(2))
    np.testing.assert_array_equal(first.coefficients, again.coefficients)
    more = zw.identify.excitation(m, starts=2, perturbations=12, seed=4)
    assert more.condition <= first.condition * 1.05

"""The Jacobian of implicit error-controlled integrators: exact, and bounded where it is a difference."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import zwang as zw
from tests.mechanisms import random_mechanism, random_state
from zwang.api.arguments.initial_conditions import initial_state
from zwang.api.arguments.settings_validation import simulation_settings
from zwang.api.runs.compiled_rollout import compiled_jacobian
from zwang.api.runs.error_controlled_rollout import continuous_dynamics, continuous_dynamics_in_python
from zwang.errors import SimulationWarning
from zwang.integrator.jacobian import difference_jacobian

IMPLICIT = ("radau", "bdf", "lsoda")


def differenced(mechanism, q, v, u):
    """The derivatives of the state derivative by (q, v, u), by Richardson's extrapolation of differences."""
    dynamics = continuous_dynamics(mechanism, 1e-3, "projection", False)
    x, ends = np.concatenate([q, v, u]), [len(q), len(q) + len(v)]

    def function(x):
        q, v, u = np.split(x, ends)
        return dynamics.derivative(0.0, q, v, np.zeros(0), u)[:-1].astype(float)

    def central(d):
        return np.stack(
            [(function(x + d * e) - function(x - d * e)) / (2 * d) for e in np.eye(len(x))], axis=1
        )

    return (4 * central(5e-4) - central(1e-3)) / 3


@pytest.mark.parametrize("seed", range(3))
def test_the_exact_jacobian_is_that_of_differences_compiled_and_on_floats(seed):
    rng = np.random.default_rng(seed)
    mechanism = random_mechanism(rng, 3)
    q, v = random_state(mechanism, rng)[:2]
    u = rng.normal(size=mechanism.nv)
    expected = differenced(mechanism, q, v, u)
    compiled = compiled_jacobian(mechanism, (1e-3, "projection", False), ())
    found = compiled(np.zeros(1), q, v, np.zeros(0), u).reshape(expected.shape)
    np.testing.assert_allclose(found, expected, atol=1e-6 * np.abs(expected).max())
    plan = simulation_settings(mechanism, 1, 1.0, 1e-3, "radau", None)
    floats = continuous_dynamics_in_python(mechanism, initial_state(mechanism, q, v, 1, None), plan, 0)
    np.testing.assert_allclose(floats.jacobian(0.0, q, v, np.zeros(0), u), found, rtol=1e-9, atol=1e-9)


def cart():
    """A damped cart on a rail, on which the forces do not depend: its coordinate is cyclic."""
    body = zw.Body("cart", zw.Prismatic("x", axis=(1, 0, 0)), mass=1, inertia=(0.1,) * 3)
    wheel = zw.Body("wheel", zw.Revolute("y", axis=(0, 1, 0)), mass=1, inertia=(1.0,) * 3)
    return zw.Mechanism("cart", (body, wheel), gravity=(0, 0, 0))


@pytest.mark.parametrize("compiled", [True, False])
@pytest.mark.parametrize("method", IMPLICIT)
def test_a_cyclic_coordinate_is_not_displaced_without_bounds(method, compiled):
    """A stiff van der Pol oscillator drives a cart: SciPy's differences displace x by more each time."""
    seen = []

    def control(t, q, v):
        seen.append(abs(float(q[0])))
        return [float(v[1]), 100.0 * (1 - float(q[1]) ** 2) * float(v[1]) - float(q[1])]

    with warnings.catch_warnings():
        warnings.simplefilter("error", SimulationWarning)
        run = zw.simulate(
            cart(), [0, 2.0], duration=200.0, step=50.0, control=control, progress=False,
            integrator=zw.Adaptive(method, rtol=1e-5, atol=1e-7), compiled=compiled,
        )  # fmt: skip
    assert run.status.values[0] == 0
    # x_ddot = y_dot: x is the integral of y - 2
    assert max(seen) < 2 * np.abs(run.q.values[0, :, 0]).max() + 1


def test_a_constrained_derivative_has_bounded_differences():
    """A pendulum as a point on a rod (hard constraint): radau against the tree without constraints."""
    point = zw.Body("point", (zw.Prismatic("x", axis=(1, 0, 0)), zw.Prismatic("z", axis=(0, 0, 1))), mass=1,
                    inertia=(0.1,) * 3)  # fmt: skip
    rod = zw.Distance("rod", ("point", (0, 0, 0)), ("world", (0, 0, 0)), 1.0)
    mechanism = zw.Mechanism("pendulum", (point,), constraints=(rod,))
    settings = {"duration": 1.0, "step": 0.1, "progress": False}
    found = zw.simulate(mechanism, [1, 0], integrator=zw.Adaptive("radau", rtol=1e-8, atol=1e-10), **settings)
    swing = zw.Body("bob", zw.Revolute("turn", axis=(0, 1, 0)), mass=1, com=(1, 0, 0))
    exact = zw.simulate(zw.Mechanism("swing", (swing,)), integrator="dop853", **settings).q.values[0, :, 0]
    np.testing.assert_allclose(found.q.values[0, :, 0], np.cos(exact), atol=1e-6)
    np.testing.assert_allclose(found.q.values[0, :, 1], -np.sin(exact), atol=1e-6)


def test_differences_are_accurate_to_about_ten_digits():
    x = np.array([0.3, -1.2, 2.0])
    A = np.array([[1.0, 2, 3], [0, 1, 4]])
    found = difference_jacobian(lambda x: np.sin(A @ x), x, np.ones(3))
    np.testing.assert_allclose(found, np.cos(A @ x)[:, None] * A, rtol=1e-8)


def test_the_message_of_a_diverging_motion_advises_what_is_not_yet_in_use():
    def escape(t, q, v):
        return [float(v[0]) ** 2 + 1, 0.0]

    for method, advice in (("dop853", "radau"), ("radau", "max_step")):
        with pytest.warns(SimulationWarning, match=advice):
            zw.simulate(cart(), duration=2.0, step=0.1, control=escape, integrator=method, progress=False)

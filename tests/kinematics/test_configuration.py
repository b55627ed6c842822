"""The configuration manifold: integration and difference are inverse, and rates are derivatives, for every
joint kind.
"""

from __future__ import annotations

import mujoco
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zwang as zw
from tests.mechanisms import moved, random_mechanism, random_state
from zwang.algebra import rotations
from zwang.algebra.dual_control_flow import parts, tangent_array, tangents
from zwang.kinematics.configuration import (
    configuration_rate,
    difference_configuration,
    displacement_rate,
    integrate_configuration,
    normalized_configuration,
    velocities_of_rate,
)

seeds = st.integers(0, 10_000)


def state(seed: int):
    mechanism = random_mechanism(seed)
    q, v, w, _ = random_state(mechanism, seed)
    return mechanism, mechanism.tree, q, v, w


@given(seeds, st.floats(1e-9, 1.0))
def test_integration_of_the_difference_reaches_the_end(seed, size):
    _, tree, q, v, _ = state(seed)
    end = integrate_configuration(tree, q, v, size).astype(float)
    back = difference_configuration(tree, end, q).astype(float)
    np.testing.assert_allclose(integrate_configuration(tree, q, back).astype(float), end, atol=1e-12)
    if size * np.abs(v).max() < 1.5:  # no ball joint has rotated by pi
        np.testing.assert_allclose(back, size * v, atol=1e-12, rtol=1e-9)


@given(seeds)
def test_steps_at_constant_velocity_add_up_and_keep_unit_quaternions(seed):
    _, tree, q, v, _ = state(seed)
    halves = integrate_configuration(tree, integrate_configuration(tree, q, v, 0.3), v, 0.4).astype(float)
    whole = integrate_configuration(tree, q, v, 0.7).astype(float)
    np.testing.assert_allclose(halves, whole, atol=1e-13)
    assert np.array_equal(normalized_configuration(tree, whole).astype(float), whole)


def test_quaternions_of_unit_length_but_for_rounding_stay_as_they_are_in_every_path():
    """Shorter and longer ones, to six units of rounding of |q|^2, of which those of MuJoCo's steps are."""
    m = zw.Mechanism("top", [zw.Body("top", zw.Ball("b"), mass=1, com=(0, 0, 1), inertia=(1, 2, 3))])
    random, unit = np.random.default_rng(0), 2.0**-52
    q = random.normal(size=(2000, 4))
    q *= (1 + random.uniform(-3.5, 3.5, (2000, 1)) * unit) / np.linalg.norm(q, axis=1, keepdims=True)
    q = q[np.abs((q * q).sum(axis=1) - 1) < 6.5 * unit]
    assert len(q) > 1500
    for x in q:
        assert np.array_equal(normalized_configuration(m.tree, x), x)
    v, u = random.normal(size=(2, len(q), 3))
    worlds = zw.Worlds(m, len(q), step=0.01)
    worlds.reset(q=q, v=v)
    assert np.array_equal(worlds.q, q)
    worlds.step(u)
    rolled = zw.compile(m).rollout(q, v, u, steps=1, step=0.01)
    assert np.array_equal(worlds.q, rolled.q[:, 0]) and np.array_equal(worlds.v, rolled.v[:, 0])


@given(seeds, st.floats(-1, 1))
def test_configurations_are_normalised_also_where_they_are_nearly_unit(seed, error):
    _, tree, q, v, _ = state(seed)
    q = integrate_configuration(tree, q, v, 0.7).astype(float)
    scaled = q.copy()
    for link in tree.links:
        if link.joint.kind == "ball":
            scaled[link.q] *= 1 + 1e-12 * error
    np.testing.assert_allclose(normalized_configuration(tree, scaled).astype(float), q, atol=2e-15, rtol=0)


@given(seeds)
def test_q_dot_is_the_derivative_of_integration_and_its_inverse_gives_v(seed):
    mechanism, tree, q, v, _ = state(seed)
    h = 1e-6
    differences = (moved(mechanism, q, h * v) - moved(mechanism, q, -h * v)) / (2 * h)
    q_dot = configuration_rate(tree, q, v).astype(float)
    np.testing.assert_allclose(q_dot, differences, atol=1e-8)
    np.testing.assert_allclose(velocities_of_rate(tree, q, q_dot).astype(float), v, atol=1e-13)


@given(seeds, st.floats(1e-6, 0.9))
def test_displacement_rate_is_the_derivative_of_the_displacement(seed, size):
    """q = q0 (+) u moves at the velocities v when u_dot = displacement_rate(u, v)."""
    mechanism, tree, q0, v, w = state(seed)
    u = size * w
    q = integrate_configuration(tree, q0, u).astype(float)
    h = 1e-5
    ahead, behind = (difference_configuration(tree, moved(mechanism, q, s * h * v), q0) for s in (1, -1))
    differences = (ahead - behind).astype(float) / (2 * h)
    if np.abs(u).max() < 1.5:
        np.testing.assert_allclose(displacement_rate(tree, u, v).astype(float), differences, atol=1e-6)


@pytest.mark.parametrize("angle", [0.0, 1e-9, 0.9e-3, 1.1e-3, 1e-2, 1.0, 3.1])
def test_the_rate_of_a_rotation_vector_is_smooth_through_its_series(angle):
    """Against the sum of the series with Bernoulli's numbers, 1/12 + a^2/720 + a^4/30240 + ..."""
    direction, w = np.array([0.6, 0, 0.8]), np.array([0.3, -1.0, 0.5])
    phi = angle * direction
    half = angle / 2
    c = 1 / 12 + angle**2 / 720 + angle**4 / 30240 if angle < 0.1 else (1 - half / np.tan(half)) / angle**2
    expected = w + np.cross(phi, w) / 2 + c * np.cross(phi, np.cross(phi, w))
    np.testing.assert_allclose(rotations.exponential_rate(phi, w).astype(float), expected, atol=1e-14)


@given(seeds)
def test_a_ball_joint_rotates_as_in_mujoco(seed):
    rng = np.random.default_rng(seed)
    q, w = rng.normal(size=4), 3 * rng.normal(size=3)
    q /= np.linalg.norm(q)
    expected = q.copy()
    mujoco.mju_quatIntegrate(expected, w, 0.1)
    found = rotations.multiply(q, rotations.exponential(0.1 * w)).astype(float)
    np.testing.assert_allclose(found, expected, atol=1e-15)


def test_the_derivative_of_a_normalisation_is_that_of_the_sphere():
    """d(q / |q|) = dq - q (q.dq) for a unit quaternion, which itself stays as it is."""
    m = zw.Mechanism(bodies=[zw.Body("a", zw.Ball("ball"), mass=1, inertia=(0.1, 0.3, 0.2))])
    q = np.array([0.5, -0.5, 0.1, 0.7])
    q /= np.linalg.norm(q)
    for dq in np.eye(4):
        with tangents():
            both = [parts(x) for x in normalized_configuration(m.tree, tangent_array(q, dq))]
        assert [value for value, _ in both] == list(q)
        np.testing.assert_allclose([rate for _, rate in both], dq - q * (q @ dq), atol=1e-15)

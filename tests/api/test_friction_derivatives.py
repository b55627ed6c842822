"""The exact derivatives of steps with laws of Coulomb friction and non-ideal constraints."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import sympy as sp

import zwang as zw
from tests.api.test_step_derivatives import differences, relative_error
from tests.constraint.test_nonideal_laws import ladder, ring
from zwang.errors import SimulationError

G, H = 9.81, 2e-3
N = sp.Symbol("N")


def block(coefficient=0.3, static=None):
    """A block of 2 kg on a floor with dry friction."""
    law = zw.CoulombFriction("dry", coefficient, joint="x", static_coefficient=static)
    body = zw.Body("block", zw.Prismatic("x", (1, 0, 0)), mass=2)
    return zw.Mechanism("block", [body], constraints=[law])


@cache
def compiled_block(static=None):
    return zw.compile(block(static=static), lanes=1)


def test_a_block_that_slides_or_stays_in_closed_form():
    """v' = v + h (u / m - mu g sign v) while it slides; 0 where friction holds it, whatever v and u are."""
    mu = zw.scalar.symbol("mu", positive=True)
    fast = zw.compile(block(mu))
    options = {"step": H, "integrator": "euler", "params": {"mu": 0.3}}
    for v in (1.0, -1.0):
        found = fast.step_derivatives([0.2], [v], [0.4], **options)
        np.testing.assert_allclose(found.A, [[1, H], [0, 1]], atol=1e-14)
        np.testing.assert_allclose(found.B, [[H * H / 2], [H / 2]], atol=1e-14)
        np.testing.assert_allclose(found.P, [[-H * H * G * v], [-H * G * v]], atol=1e-13)
        assert not found.switching
    stays = fast.step_derivatives([0.2], [1e-3], [0.4], **options)
    np.testing.assert_allclose(stays.A, [[1, 0], [0, 0]], atol=1e-14)
    np.testing.assert_allclose([*stays.B, *stays.P], 0, atol=1e-14)
    assert abs(stays.v) < 1e-15 and not stays.switching


def test_friction_that_is_about_to_stop_or_to_break_away_is_marked():
    fast, options = compiled_block(), {"step": H, "integrator": "euler"}
    stops = 0.3 * G * H  # the speed that friction takes away in a step
    assert fast.step_derivatives([0.0], [stops], [0.0], **options).switching
    assert not fast.step_derivatives([0.0], [1.01 * stops], [0.0], **options).switching
    assert not fast.step_derivatives([0.0], [0.0], [0.0], **options).switching
    firm = compiled_block(0.5)
    assert not firm.step_derivatives([0.0], [0.0], [0.0], **options).switching
    assert firm.step_derivatives([0.0], [0.0], [0.4 * 2 * G], **options).switching


def pendulum():
    """A double pendulum with friction in its bearings, whose loads depend on the motion."""
    arms = [
        zw.Body(name, zw.Revolute(name, (0, 1, 0)), parent, (0, 0, height), mass=1, com=(0, 0.05, -0.3),
                inertia=(0.02,) * 3)
        for name, parent, height in (("a", "world", 0), ("b", "a", -0.6))
    ]  # fmt: skip
    laws = [
        zw.CoulombFriction("upper", 0.3, joint="a", radius=0.05),
        zw.CoulombFriction("lower", 0.2, joint="b", radius=0.04),
    ]
    return zw.Mechanism("pendulum", arms, constraints=laws)


@pytest.mark.parametrize("integrator", ["euler", "implicitfast", "rk4"])
def test_derivatives_of_bearing_friction_are_the_limit_of_differences(integrator):
    m, rng, errors, states = pendulum(), np.random.default_rng(2), [], []
    fast, options = zw.compile(m), {"step": H, "integrator": integrator}
    for k in range(20):
        v = rng.normal(size=2) * (1, 0.003)[k % 2]
        states.append((rng.normal(size=2), v, rng.normal(size=2) * 0.3))
    found = fast.step_derivatives(*(np.array(x) for x in zip(*states, strict=True)), **options)
    for k, at in enumerate(states):
        if not found.switching[k]:
            expected = [differences(fast, *at, eps=eps, **options) for eps in (1e-4, 1e-5)]
            AB = np.concatenate([found.A[k], found.B[k]], axis=1)
            errors.append(min(relative_error(AB, difference) for difference in expected))
    assert len(errors) >= 15 and np.median(errors) < 1e-10 and max(errors) < 1e-8


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
@pytest.mark.parametrize(
    ("m", "q", "v"),
    [
        (ring(0.2 * N**2), [0.5, 0], [0, 2]),
        (ladder(0.3), [0.3, 0.4, -0.9], [0.1, 0, 0]),
    ],
    ids=["ring", "ladder"],
)
def test_derivatives_of_nonideal_constraints_are_the_limit_of_differences(m, q, v, integrator):
    fast, u, options = zw.compile(m, lanes=1), np.full(m.nv, 0.1), {"step": 1e-3, "integrator": integrator}
    q, v = zw.assemble(m, q, v)
    found = fast.step_derivatives(q, v, u, **options)
    expected = [differences(fast, q, v, u, eps=eps, **options) for eps in (1e-3, 1e-4)]
    AB = np.concatenate([found.A, found.B], axis=1)
    assert min(relative_error(AB, difference) for difference in expected) < 3e-8
    assert not found.switching


def slope(angle, static=None):
    """A block of 2 kg on an incline, whose x axis points uphill."""
    flat = block(static=static)
    return flat.replace(gravity=(-G * np.sin(angle), 0, -G * np.cos(angle)))


def test_a_block_that_stops_within_a_runge_kutta_step_in_closed_form():
    """q' = q + v^2 / (2 a), v' = 0 with a = mu g - u / m, so that dq'/dv = v / a, the time of the stop."""
    mu = zw.scalar.symbol("mu", positive=True)
    fast, options = zw.compile(block(mu)), {"step": 0.02, "integrator": "rk4", "params": {"mu": 0.3}}
    for v in (0.03, -0.03):
        a = 0.3 * G - np.sign(v) * 0.4 / 2  # the deceleration
        found = fast.step_derivatives([0.2], [v], [0.4], **options)
        np.testing.assert_allclose(found.q, 0.2 + v * abs(v) / (2 * a), rtol=1e-13)
        np.testing.assert_allclose(found.A, [[1, abs(v) / a], [0, 0]], atol=1e-13)
        np.testing.assert_allclose(found.B, [[v * v / (4 * a * a)], [0]], atol=1e-13)
        np.testing.assert_allclose(found.P, [[-v * abs(v) * G / (2 * a * a)], [0]], atol=1e-13)
        assert not found.switching
    rests = fast.step_derivatives([0.2], [0.0], [0.4], **options)  # any change of its speed is stopped, too
    np.testing.assert_allclose(rests.A, [[1, 0], [0, 0]], atol=1e-14)
    np.testing.assert_allclose([*rests.B, *rests.P], 0, atol=1e-14)
    assert not rests.switching
    slides = fast.step_derivatives([0.2], [1.0], [0.4], **options)
    np.testing.assert_allclose(slides.A, [[1, 0.02], [0, 1]], atol=1e-14)


def test_a_stop_in_a_step_in_which_a_ball_bounces_in_closed_form():
    """The block stops before or after the impact of the ball, which has no influence on it."""
    e, gap, fall = 0.5, 5e-4, 1.0
    hard, decel = zw.Surface(hard=True, restitution=e, condim=1), 0.3 * G
    ball = zw.Body("ball", zw.Prismatic("z", (0, 0, 1)), mass=1, geometry=[zw.Sphere(0.1, surface=hard)])
    m = block()
    fast = zw.compile(m.replace(bodies=[*m.bodies, ball], geometry=[zw.Plane(surface=hard)]))
    down = np.sqrt(fall**2 + 2 * G * gap)  # the speed at the impact
    up = e * down - G * (H - (down - fall) / G)
    for share, marked in ((0.1, False), (0.6, False), (1.0, True), (1.01, False)):
        v = share * decel * H
        found = fast.step_derivatives([0.0, 0.1 + gap], [v, -fall], np.zeros(2), step=H, integrator="rk4")
        time = min(H, v / decel)  # of sliding
        np.testing.assert_allclose(found.q[0], v * time - decel * time**2 / 2, atol=1e-15)
        np.testing.assert_allclose(found.v, [v - decel * time, up], atol=1e-11)
        assert found.switching == marked
        if not marked:
            np.testing.assert_allclose(found.A[[0, 2], 2], [time, time == H], atol=1e-11)


def test_a_block_that_turns_on_an_incline_within_a_step_in_closed_form():
    """Up with the deceleration a, down with b: v' = -b (h - v / a), q' = v^2 / 2a - b (h - v / a)^2 / 2."""
    angle, h, v = np.deg2rad(30), 0.02, 0.05
    a, b = (G * (np.sin(angle) + s * 0.3 * np.cos(angle)) for s in (1, -1))
    for static in (None, 0.4):
        fast = zw.compile(slope(angle, static))
        found = fast.step_derivatives([0.0], [v], [0.0], step=h, integrator="rk4")
        assert found.v[0] == pytest.approx(-b * (h - v / a)) and not found.switching
        np.testing.assert_allclose(found.A, [[1, v / a + b / a * (h - v / a)], [0, b / a]], atol=1e-12)
        assert fast.step_derivatives([0.0], [0.0], [0.0], step=h, integrator="rk4").switching


def test_stops_at_the_end_of_a_runge_kutta_step_and_laws_that_break_away_are_marked():
    fast, options = compiled_block(), {"step": H, "integrator": "rk4"}
    stops, pull = 0.3 * G * H, 0.3 * 2 * G
    for v, u, marked in ((stops, 0, True), (1.01 * stops, 0, False), (0.99 * stops, 0, False),
                         (0, pull, True), (0, 0.9 * pull, False)):  # fmt: skip
        assert fast.step_derivatives([0.0], [v], [u], **options).switching == marked
    firm = compiled_block(0.5)
    found = firm.step_derivatives([0.0], [0.0], [[0.2 * 2 * G], [0.4 * 2 * G], [0.6 * 2 * G]], **options)
    assert found.switching.tolist() == [False, True, True]


def test_the_gradient_of_a_braking_distance():
    """x = v^2 / (2 mu g), by Runge and Kutta over 60 steps; the block stops within one of them."""
    fast, v = compiled_block(), np.array([[1.0], [-0.7]])
    by_state = np.zeros((2, 60, 2))
    by_state[:, -1, 0] = 1.0
    found = fast.rollout_gradient(
        by_state, np.zeros((2, 1)), v, np.zeros((60, 1)), step=0.01, integrator="rk4"
    )
    np.testing.assert_allclose(found.q[:, -1], v * abs(v) / (2 * 0.3 * G), rtol=1e-12)
    np.testing.assert_allclose(found.start, np.hstack([np.ones((2, 1)), abs(v) / (0.3 * G)]), rtol=1e-12)
    assert not found.switching.any()


def test_the_derivatives_of_accelerations_under_friction_are_the_limit_of_differences():
    fast, rng, eps = zw.compile(pendulum()), np.random.default_rng(3), 1e-5
    for scale in (1.0, 1e-3):
        q, v, u = rng.normal(size=2), rng.normal(size=2) * scale, rng.normal(size=2) * 0.3
        D = eps * np.concatenate([np.eye(6), -np.eye(6)])
        moved = fast.constrained_dynamics_derivatives(q + D[:, :2], v + D[:, 2:4], u + D[:, 4:])
        found = fast.constrained_dynamics_derivatives(q, v, u)
        expected = (moved.v_dot[:6] - moved.v_dot[6:]).T / (2 * eps)
        assert relative_error(np.concatenate([found.A, found.B], axis=1)[2:], expected) < 1e-8
        reference = zw.constrained_dynamics(fast.mechanism, q, v, u).acceleration
        np.testing.assert_allclose(found.v_dot, reference, rtol=1e-11, atol=1e-11)
    with pytest.raises(SimulationError, match="no linear model in continuous time"):
        zw.linearize(fast.mechanism, [0.0, 0.0])

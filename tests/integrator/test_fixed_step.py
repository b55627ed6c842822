"""Fixed-step integrators: measured orders of convergence, invariants, and exact arithmetic."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sympy as sp

from zwang.algebra import rotations
from zwang.integrator.fixed_step import State, StateSpace, runge_kutta_4, semi_implicit_euler

FLAT = StateSpace(lambda q, s, h: q + h * s, lambda z, z_dot, h: z + h * z_dot, lambda u, v: v)
BALL = FLAT._replace(
    integrate=lambda q, s, h: rotations.multiply(q, rotations.exponential(h * s)).astype(float),
    displacement_rate=lambda u, v: rotations.exponential_rate(u, v).astype(float),
)
INERTIA = np.array([0.01, 0.02, 0.015])


def oscillator(q, v, z, node, memory):
    """A unit oscillator, and z_dot = -z + q."""
    return -q, -z + q, None


def gyroscope(q, v, z, node, memory):
    """A torque-free asymmetric body."""
    return -np.cross(v, INERTIA * v) / INERTIA, z, None


def run(stepper, space, derivative, state, duration, steps):
    for _ in range(steps):
        state, _ = stepper(derivative, space, state, duration / steps)
    return state


def order(stepper, space, derivative, state, *, steps):
    """The measured order: log2 of how much the error falls when the step is halved."""
    results = [np.concatenate(run(stepper, space, derivative, state, 1.0, steps * 2**k)) for k in range(3)]
    first, second = (np.abs(a - b).max() for a, b in zip(results[1:], results, strict=False))
    return math.log2(first / second)


START = State(np.array([0.3]), np.array([-0.7]), np.array([0.2]))
SPIN = State(np.array([1.0, 0, 0, 0]), np.array([1.0, 2.0, -1.5]), np.zeros(0))


@pytest.mark.parametrize(("stepper", "expected"), [(semi_implicit_euler, 1), (runge_kutta_4, 4)])
def test_order_of_convergence_in_a_plain_space(stepper, expected):
    assert order(stepper, FLAT, oscillator, START, steps=40) == pytest.approx(expected, abs=0.1)


@pytest.mark.parametrize(("stepper", "expected"), [(semi_implicit_euler, 1), (runge_kutta_4, 4)])
def test_order_of_convergence_of_rotations(stepper, expected):
    assert order(stepper, BALL, gyroscope, SPIN, steps=40) == pytest.approx(expected, abs=0.15)


def test_runge_kutta_reaches_the_closed_form_of_the_oscillator():
    state = run(runge_kutta_4, FLAT, oscillator, START, 1.0, 1000)
    q = START.q[0] * math.cos(1) + START.v[0] * math.sin(1)
    assert state.q[0] == pytest.approx(q, abs=1e-12)


def test_semi_implicit_euler_conserves_the_modified_energy():
    """Symplectic: p^2 + q^2 - h p q is conserved."""
    h = 0.1
    state = START

    def invariant(state):
        return (state.q**2 + state.v**2 - h * state.q * state.v)[0]

    before = invariant(state)
    for _ in range(10_000):
        state, _ = semi_implicit_euler(oscillator, FLAT, state, h)
    assert invariant(state) == pytest.approx(before, rel=1e-9)


@pytest.mark.parametrize(("stepper", "expected"), [(semi_implicit_euler, 1), (runge_kutta_4, 4)])
def test_order_of_convergence_with_a_time_dependent_derivative(stepper, expected):
    errors = []
    for steps in (20, 40):
        state, h = State(np.array([0.0]), np.array([1.0]), np.zeros(0)), 1 / steps
        for k in range(steps):
            state, _ = stepper(
                lambda q, v, z, node, _, t=k * h: (np.exp([t + node.dt]), z, None), FLAT, state, h
            )
        errors.append(abs(state.v[0] - math.e))
    assert math.log2(errors[0] / errors[1]) == pytest.approx(expected, abs=0.1)


def test_a_stage_is_displaced_from_the_motion_by_its_lag():
    """The distance from the oscillator is of third order after the displacement, of second before."""
    distances = []
    for h in (0.02, 0.01):
        found = []

        def derivative(q, v, z, node, memory, found=found):
            exact = START.q * math.cos(node.dt) + START.v * math.sin(node.dt)
            found.append([abs(q - exact)[0], abs(q + node.position_lag * -q - exact)[0]])
            return -q, z, memory

        runge_kutta_4(derivative, FLAT, START, h)
        distances.append(found[1:])
    before, after = np.moveaxis(np.log2(np.divide(*distances)), -1, 0)
    assert before[:2] == pytest.approx(2, abs=0.1) and (after > 2.9).all()


def test_steps_work_on_rationals_of_sympy():
    state = State(np.array([sp.Integer(1)]), np.array([sp.Integer(0)]), np.array([sp.Integer(0)]))
    after, _ = semi_implicit_euler(oscillator, FLAT, state, sp.Rational(1, 10))
    assert after.v[0] == sp.Rational(-1, 10) and after.q[0] == sp.Rational(99, 100)

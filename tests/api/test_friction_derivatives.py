"""The exact derivatives of steps with laws of Coulomb friction and non-ideal constraints."""

from __future__ import annotations

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
    fast, options = zw.compile(block()), {"step": H, "integrator": "euler"}
    stops = 0.3 * G * H  # the speed that friction takes away in a step
    assert fast.step_derivatives([0.0], [stops], [0.0], **options).switching
    assert not fast.step_derivatives([0.0], [1.01 * stops], [0.0], **options).switching
    assert not fast.step_derivatives([0.0], [0.0], [0.0], **options).switching
    assert zw.compile(block(static=0.5)).step_derivatives([0.0], [0.0], [0.0], **options).switching


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


@pytest.mark.parametrize("integrator", ["euler", "implicitfast"])
def test_derivatives_of_bearing_friction_are_the_limit_of_differences(integrator):
    m, rng, errors = pendulum(), np.random.default_rng(2), []
    fast, options = zw.compile(m), {"step": H, "integrator": integrator}
    for k in range(20):
        q, v, u = rng.normal(size=2), rng.normal(size=2) * (1, 0.003)[k % 2], rng.normal(size=2) * 0.3
        found = fast.step_derivatives(q, v, u, **options)
        if not found.switching:
            expected = [differences(fast, q, v, np.zeros(0), u, eps, **options) for eps in (1e-4, 1e-5)]
            AB = np.concatenate([found.A, found.B], axis=1)
            errors.append(min(relative_error(AB, difference) for difference in expected))
    assert len(errors) >= 15 and np.median(errors) < 1e-10 and max(errors) < 1e-8


@pytest.mark.parametrize(
    ("m", "q", "v"),
    [
        (ring(0.2 * N**2), [0.5, 0], [0, 2]),
        (ladder(0.3), [0.3, 0.4, -0.9], [0.1, 0, 0]),
    ],
    ids=["ring", "ladder"],
)
def test_derivatives_of_nonideal_constraints_are_the_limit_of_differences(m, q, v):
    fast, u, options = zw.compile(m), np.full(m.nv, 0.1), {"step": 1e-3, "integrator": "euler"}
    q, v = zw.assemble(m, q, v)
    found = fast.step_derivatives(q, v, u, **options)
    expected = [differences(fast, q, v, np.zeros(0), u, eps, **options) for eps in (1e-3, 1e-4)]
    AB = np.concatenate([found.A, found.B], axis=1)
    assert min(relative_error(AB, difference) for difference in expected) < 3e-8
    assert not found.switching


def test_steps_that_are_divided_where_sliding_stops_are_refused_by_name():
    fast = zw.compile(block())
    with pytest.raises(SimulationError, match=r"the Coulomb friction 'dry' starts and stops .*'euler'"):
        fast.step_derivatives([0.0], [1.0], [0.0], integrator="rk4")
    with pytest.raises(SimulationError, match="the Coulomb friction 'dry' starts and stops"):
        fast.constrained_dynamics_derivatives([0.0], [1.0], [0.0])

"""Tangents of rollouts against the chained derivatives of steps, their adjoint, and a closed form."""

from pathlib import Path

import numpy as np
import pytest

import zwang as zw
from tests.api.test_rollout_gradient import jumper
from zwang.errors import ShapeError

MODELS = Path(__file__).parents[2] / "examples" / "models"


@pytest.mark.parametrize("integrator", ["implicitfast", "rk4"])
def test_tangents_are_the_chained_derivatives_of_the_steps_in_many_worlds(integrator):
    m = jumper() if integrator == "rk4" else zw.load(MODELS / "walker2d.xml")
    fast, rng, steps, worlds, nu = zw.compile(m), np.random.default_rng(2), 40, 2, len(m.inputs)
    q0 = np.array(m.home or m.neutral, float) + rng.normal(size=(worlds, m.nv)) * 0.1
    q0[:, 1] -= 0.12
    v0, u = rng.normal(size=(worlds, m.nv)), rng.uniform(-0.5, 0.5, (worlds, steps, nu))
    dx0, du = rng.normal(size=(worlds, 3, 2 * m.nv)), rng.normal(size=(worlds, 3, steps, nu))
    found = fast.rollout_tangents(q0, v0, u, start_direction=dx0, control_direction=du, integrator=integrator)
    assert found.tangents.shape == (worlds, 3, steps, 2 * m.nv)
    q = np.concatenate([q0[:, None], found.q[:, :-1]], axis=1)
    v = np.concatenate([v0[:, None], found.v[:, :-1]], axis=1)
    one = fast.step_derivatives(q, v, u, integrator=integrator)
    dx = dx0
    for k in range(steps):
        dx = np.einsum("wij,wdj->wdi", one.A[:, k], dx) + np.einsum("wij,wdj->wdi", one.B[:, k], du[:, :, k])
        np.testing.assert_allclose(found.tangents[:, :, k], dx, rtol=1e-10, atol=1e-10 * np.abs(dx).max())
    np.testing.assert_array_equal(found.switching, one.switching)


def test_the_gradient_along_a_direction_is_the_product_of_tangents_and_cotangents():
    """A swinging arm with a free mass in 3 worlds: start, controls and two symbols together."""
    mass, arm_mass = (zw.scalar.symbol(name, positive=True) for name in ("m", "n"))
    ball = zw.Body("ball", zw.Free("ball"), mass=mass, inertia=(0.1, 0.2, 0.3))
    arm = zw.Body(
        "arm", zw.Revolute("hip", (0, 1, 0)), parent="ball", mass=arm_mass, com=(0, 0, -0.5),
        inertia=(0.1, 0.1, 0.01),
    )  # fmt: skip
    m = zw.Mechanism("swing", [ball, arm])
    fast, rng, steps = zw.compile(m), np.random.default_rng(5), 30
    values = {"m": np.array([1.0, 2.0, 3.0]), "n": 0.2}
    q0, v0 = np.array(m.neutral, float), rng.normal(size=(3, m.nv))
    u, g = rng.normal(size=(3, steps, m.nv)), rng.normal(size=(3, steps, 2 * m.nv))
    dx, du, dp = rng.normal(size=(4, 14)), rng.normal(size=(4, steps, 7)), rng.normal(size=(4, 2))
    options = {"step": 0.01, "integrator": "rk4", "params": values}
    found = fast.rollout_tangents(
        q0, v0, u, start_direction=dx, control_direction=du, parameter_direction=dp, **options
    )
    gradient = fast.rollout_gradient(g, q0, v0, u, **options)
    along = (gradient.start[:, None] * dx).sum(-1) + np.einsum("wti,dti->wd", gradient.control, du)
    along += gradient.parameters @ dp.T
    np.testing.assert_allclose(np.einsum("wdti,wti->wd", found.tangents, g), along, rtol=1e-9)


def test_tangents_of_a_falling_mass_in_closed_form():
    """z' = z + h v', v' = v + h (F / m - g) in Euler's steps: both are linear in the start."""
    body = zw.Body("ball", zw.Prismatic("z", (0, 0, 1)), mass=2.0)
    fast = zw.compile(zw.Mechanism("fall", [body]))
    found = fast.rollout_tangents([0], [0], np.zeros((5, 1)), start_direction=np.eye(2), step=0.1)
    after = 0.1 * np.arange(1, 6)
    np.testing.assert_allclose(found.tangents[0], np.stack([np.ones(5), np.zeros(5)], axis=1))
    np.testing.assert_allclose(found.tangents[1], np.stack([after, np.ones(5)], axis=1), rtol=1e-14)


def test_wrong_directions_are_told():
    fast = zw.compile(zw.load(MODELS / "walker2d.xml"))
    state = (np.zeros(9), np.zeros(9), np.zeros((4, 6)))
    with pytest.raises(ShapeError, match="there is no direction: give one or more of start_direction"):
        fast.rollout_tangents(*state)
    with pytest.raises(
        ShapeError, match=r"start_direction has the shape \(18,\); it must be .*directions, 18"
    ):
        fast.rollout_tangents(*state, start_direction=np.zeros(18))
    with pytest.raises(ShapeError, match=r"control_direction has the shape \(2, 6\)"):
        fast.rollout_tangents(*state, control_direction=np.zeros((2, 6)))

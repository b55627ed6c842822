"""The gradient over a rollout, against differences of the rollout and the chained derivatives of steps."""

from pathlib import Path

import numpy as np
import pytest

import zwang as zw
from zwang.errors import ShapeError

MODELS = Path(__file__).parents[2] / "examples" / "models"


def loss_and_cotangents(fast, goal):
    """|v|^2 / 2 + |q - goal|^2 / 2 over all steps, q by the displacement from the goal."""

    def loss(run):
        dq = fast.difference_configuration(run[0], goal)
        return 0.5 * (dq**2).sum(axis=(-1, -2)) + 0.5 * (run[1] ** 2).sum(axis=(-1, -2))

    return loss, lambda run: np.concatenate([run[0] - goal, run[1]], axis=-1)


@pytest.mark.parametrize("integrator", ["euler", "rk4"])
def test_the_gradient_is_the_limit_of_differences_in_many_worlds(integrator):
    m = zw.load(MODELS / "walker2d.xml")
    fast, rng, steps = zw.compile(m), np.random.default_rng(1), 12
    q0 = np.array(m.home or m.neutral, float) + rng.normal(size=(3, m.nv)) * 0.1
    q0[:, 1] -= 0.12
    v0, u = rng.normal(size=(3, m.nv)), rng.uniform(-0.5, 0.5, (3, steps, 6))
    loss, cotangents = loss_and_cotangents(fast, np.zeros(m.nq))
    found = fast.rollout_gradient(cotangents, q0, v0, u, integrator=integrator)
    assert found.start.shape == (3, 18) and found.control.shape == (3, steps, 6)

    def total(dq=0.0, dv=0.0, du=0.0):
        return loss(fast.rollout(q0 + dq, v0 + dv, u + du, steps=steps, integrator=integrator))

    for _ in range(3):
        dq, dv, du = rng.normal(size=(3, 9)), rng.normal(size=(3, 9)), rng.normal(size=u.shape)
        eps = 1e-6
        slope = (total(eps * dq, eps * dv, eps * du) - total(-eps * dq, -eps * dv, -eps * du)) / (2 * eps)
        ours = (found.start * np.concatenate([dq, dv], axis=1)).sum(axis=1) + (found.control * du).sum((1, 2))
        usable = ~found.switching.any(axis=1)
        assert usable.sum() >= 2
        assert np.allclose(ours[usable], slope[usable], rtol=1e-5)
    alone = fast.rollout_gradient(cotangents, q0[1], v0[1], u[1], integrator=integrator)
    assert np.allclose(alone.start, found.start[1], rtol=1e-12, atol=1e-12)


def test_the_gradient_by_symbols_of_a_falling_mass_in_closed_form():
    """z' = z + h v, v' = v + h (F / m - g): the height after n Euler steps is known."""
    mass = zw.scalar.symbol("m", positive=True)
    body = zw.Body("ball", zw.Prismatic("z", (0, 0, 1)), mass=mass)
    fast = zw.compile(zw.Mechanism("fall", [body]))
    n, h, force, m = 20, 0.01, 3.0, np.array([1.0, 2.5])
    g = np.zeros((2, n, 2))
    g[:, -1, 0] = 1
    u = np.full((2, n, 1), force)
    found = fast.rollout_gradient(g, np.zeros((2, 1)), np.zeros((2, 1)), u, step=h, params={"m": m})
    by_force = [h * h * (n - k) / m for k in range(n)]
    assert np.allclose(found.start, [[1, n * h]] * 2) and np.allclose(
        found.control[..., 0], np.transpose(by_force)
    )
    assert np.allclose(found.parameters[:, 0], -force * h * h * n * (n + 1) / 2 / m**2)


def test_wrong_cotangents_are_told():
    fast = zw.compile(zw.load(MODELS / "walker2d.xml"))
    with pytest.raises(ShapeError, match=r"cotangents have the shape \(4, 9\); it must be \(4, 18\)"):
        fast.rollout_gradient(np.zeros((4, 9)), np.zeros(9), np.zeros(9), np.zeros((4, 6)))

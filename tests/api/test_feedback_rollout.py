"""Rollouts under feedback, against the same steps one after the other."""

import numpy as np
import pytest

import zwang as zw
from zwang.errors import ArgumentError, ShapeError
from zwang.io.mjcf.read.read_mjcf import read_mjcf

HOVERING = """<mujoco><option timestep="0.005"/><worldbody><geom type="plane" size="3 3 1"/>
  <body name="ball" pos="0 0 0.15"><freejoint/><geom size="0.2" mass="1"/>
    <body pos="0.3 0 0"><joint name="arm" axis="0 1 0" range="-1 1" limited="true"/>
    <geom type="capsule" fromto="0 0 0 .3 0 0" size=".03" mass=".2"/></body></body></worldbody>
  <actuator><motor joint="arm" gear="2"/>
  <general joint="arm" dyntype="filter" dynprm="0.1" biastype="none"/></actuator></mujoco>"""


def test_a_feedback_rollout_is_that_of_single_steps_with_the_feedback():
    """Three worlds with contact, a limit, a free joint and an activation."""
    m, rng, steps = read_mjcf("hovering.xml", text=HOVERING), np.random.default_rng(0), 12
    fast, nu, n = zw.compile(m), len(m.inputs), 2 * m.nv + 1
    q0 = fast.integrate_configuration(np.array(m.home or m.neutral), rng.normal(size=(3, m.nv)) * 0.1, 1.0)
    v0, z0 = rng.normal(size=(3, m.nv)), rng.normal(size=(3, 1))
    control, gain = rng.normal(size=(3, steps, nu)), 0.3 * rng.normal(size=(steps, nu, n))
    reference = [np.repeat(x[None, 0], steps + 1, axis=0) for x in (q0, v0, z0)]
    found = fast.feedback_rollout(q0, v0, control, gain, reference, activation=z0, bounds=(-0.9, [0.5, 0.7]))

    q, v, z = q0, v0, z0
    for k in range(steps):
        dq = fast.difference_configuration(q, reference[0][k])
        dx = np.concatenate([dq, v - reference[1][k], z - reference[2][k]], axis=-1)
        u = np.clip(control[:, k] + dx @ gain[k].T, -0.9, [0.5, 0.7])
        q, v, z = fast.step(q, v, u, activation=z)
        assert np.allclose(found.control[:, k], u, atol=1e-9)
        for x, y in ((found.q, q), (found.v, v), (found.activation, z)):
            assert np.allclose(x[:, k], y, atol=1e-8)
    assert (found.control == -0.9).any() and (found.control[..., 1] == 0.7).any()


def test_without_gain_it_is_the_rollout_with_symbols_and_time():
    a, b = zw.scalar.symbol("a"), zw.scalar.symbol("x")
    t = zw.scalar.symbol("t")
    bodies = [
        zw.Body("rail", zw.Prismatic("x", (1, 0, 0)), mass=a),
        zw.Body("mass", zw.Prismatic("y", (0, 1, 0)), "rail", mass=a),
    ]
    m = zw.Mechanism(
        "driven", bodies, forces=[zw.Motor("push", "y")], constraints=[zw.Holonomic("d", b - t**2)]
    )
    fast, steps = zw.compile(m), 8
    params, control = {"a": np.array([1.0, 2.0])}, np.random.default_rng(0).normal(size=(2, steps, 1))
    reference = (np.zeros((steps, 2)), np.zeros((steps, 2)), np.zeros((steps, 0)))
    options = {"params": params, "time": [0.0, 0.1], "step": 0.05, "integrator": "rk4"}
    q0, v0 = [[0, 0], [0.01, 0]], [[0, 0], [0.2, 0]]
    found = fast.feedback_rollout(q0, v0, control, np.zeros((steps, 1, 4)), reference, **options)
    run = fast.rollout(q0, v0, control, steps=steps, **options)
    assert np.allclose(found.q, run[0], atol=1e-12) and np.allclose(found.v, run[1], atol=1e-12)


def test_bad_arguments_are_told():
    body = zw.Body("cart", zw.Prismatic("x", (1, 0, 0)), mass=1)
    fast = zw.compile(zw.Mechanism("rail", [body], forces=[zw.Motor("push", "x")]))
    u, K = np.zeros((5, 1)), np.zeros((5, 1, 2))
    reference = (np.zeros((5, 1)), np.zeros((5, 1)), np.zeros((5, 0)))
    with pytest.raises(ShapeError, match=r"gain must have the shape \(\.\.\., 5, 1, 2\)"):
        fast.feedback_rollout([0.0], [0.0], u, K[:4], reference)
    with pytest.raises(ShapeError, match=r"reference must be \(q, v, activation\)"):
        fast.feedback_rollout([0.0], [0.0], u, K, reference[:2])
    with pytest.raises(ShapeError, match="v of the reference must have the shape"):
        fast.feedback_rollout([0.0], [0.0], u, K, (reference[0], np.zeros((4, 1)), reference[2]))
    with pytest.raises(ArgumentError, match="below the highest"):
        fast.feedback_rollout([0.0], [0.0], u, K, reference, bounds=(1, 0))
    with pytest.raises(ShapeError, match="bounds must be two numbers"):
        fast.feedback_rollout([0.0], [0.0], u, K, reference, bounds=(0, [1, 2]))

"""Compiled functions of mechanisms whose actuators have states, called without these."""

from __future__ import annotations

import numpy as np
import pytest

import zwang as zw
from zwang.errors import ShapeError

STEPS = 3
GOAL = zw.control.Quadratic(q=[0.1], state=np.ones(3), control=[0.1], final=np.ones(3))
CALLS = {
    "step": lambda fast, x, u, **z: fast.step(x, x, u[0], **z),
    "step, of lists": lambda fast, x, u, **z: fast.step([0.0], [0.0], [0.0], **z),
    "rollout": lambda fast, x, u, **z: fast.rollout(x, x, u[0], steps=STEPS, **z),
    "rollout, a control a step": lambda fast, x, u, **z: fast.rollout(x, x, u, steps=STEPS, **z),
    "feedback_rollout": lambda fast, x, u, **z: fast.feedback_rollout(
        x, x, u, np.zeros((STEPS, 1, 3)), [np.zeros((STEPS, 1))] * 3, **z
    ),
    "rollout_gradient": lambda fast, x, u, **z: fast.rollout_gradient(np.ones((STEPS, 3)), x, x, u, **z),
    "rollout_tangents": lambda fast, x, u, **z: fast.rollout_tangents(
        x, x, u, start_direction=np.ones((1, 3)), **z
    ),
    "step_derivatives": lambda fast, x, u, **z: fast.step_derivatives(x, x, u[0], **z),
    "constrained_dynamics_derivatives": lambda fast, x, u, **z: fast.constrained_dynamics_derivatives(
        x, x, u[0], **z
    ),
    "ilqr": lambda fast, x, u, **z: zw.control.ilqr(fast, x, x, u, GOAL, **z),
    "predictive_sampling": lambda fast, x, u, **z: zw.control.predictive_sampling(
        fast, x, x, u, lambda q, v, u: q[:, -1, 0] ** 2, steps=STEPS, noise=0.1, samples=4, **z
    ),
}


@pytest.mark.parametrize("name", CALLS)
def test_a_missing_activation_is_told_with_its_argument(name):
    """The integral of a PID controller; the remedy of the error is accepted."""
    rod = zw.Body("rod", zw.Revolute("hinge", (0, 1, 0)), mass=1, com=(0.2, 0, 0), inertia=(0.01,) * 3)
    servo = zw.Actuator("servo", joint="hinge", pid=zw.Pid(5, 2, 1))
    fast = zw.compile(zw.Mechanism("arm", [rod], forces=[servo]))
    x, u = np.zeros(1), np.zeros((STEPS, 1))
    with pytest.raises(
        ShapeError, match=r"activation is missing: .*'arm'.*'servo integral'.* activation=\.\.\., .*\(1,\)"
    ):
        CALLS[name](fast, x, u)
    CALLS[name](fast, x, u, activation=np.zeros(1))

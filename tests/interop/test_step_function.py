"""Second derivatives of steps whose first ones are those of `step_derivatives`."""

from __future__ import annotations

import numpy as np

import zwang as zw
from tests.interop import cases
from zwang.interop.step_function import StepFunction, StepJacobian
from zwang.mechanism.samples import double_pendulum


def test_the_jacobian_of_a_step_without_constraints_has_derivatives():
    """Those of the step without loops, which are the central differences of the Jacobian."""
    fast = zw.compile(double_pendulum())
    step = StepFunction(fast, ("step", 0.01, "rk4"), "step")
    first = StepJacobian(step, lambda *x: step._jacobian(False, *x), (0, 1), False)
    q, v, z, control = np.array([0.4, -0.7]), np.array([1.0, 0.5]), np.zeros(0), np.array([0.3, 0.1])
    second = first.derivative((1,))(q, v, z, control)[-1].reshape(-1, 2)
    differences = cases.central_differences(lambda v: np.concatenate(first(q, v, z, control)), v)
    np.testing.assert_allclose(second, differences, atol=1e-8)

"""The gradient of a loss over a rollout by start, controls and symbols: the adjoint of the steps.

    lambda_k = A_k^T lambda_{k+1} + g_k,    dL/du_k = B_k^T lambda_{k+1},    dL/dp = sum P_k^T lambda_{k+1}

with the exact derivatives A, B, P of each step, and g_k = dL/dx_k. They are computed for some steps at a
time, from the last ones to the first, all of them in one batch. Source: Griewank, Walther, Evaluating
Derivatives (2008), Section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from zwang.api import validation
from zwang.api.step_derivatives import StepDerivatives
from zwang.errors import ShapeError
from zwang.mechanism.mechanism import Mechanism


class RolloutGradient(NamedTuple):
    """The states after each step, and the gradients of the loss.

    q, v, activation: (..., steps, size). start: (..., n), by the displacement dq of the configuration at the
    start, the velocities and the activations. control: (..., steps, nu). parameters: (..., symbols).
    switching: (..., steps), see `StepDerivatives`.
    """

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    start: np.ndarray
    control: np.ndarray
    parameters: np.ndarray
    switching: np.ndarray


class RolloutStates(NamedTuple):
    """States (..., steps + 1, size), the first one included, and controls (..., steps, nu)."""

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    control: np.ndarray

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.control.shape[-2]

    @property
    def after(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The states after each step."""
        return self.q[..., 1:, :], self.v[..., 1:, :], self.activation[..., 1:, :]


class Differentiable(Protocol):
    """A compiled mechanism: its rollouts, and the derivatives of its steps."""

    mechanism: Mechanism
    rollout: Callable[..., Any]
    step_derivatives: Callable[..., StepDerivatives]


def gradient_of_rollout(
    fast: Differentiable,
    cotangents: Any,
    q0: Any,
    v0: Any,
    control: Any,
    *,
    activation: Any,
    step: float | None,
    integrator: str | None,
    params: Mapping[Any, Any] | None,
) -> RolloutGradient:
    """The gradient of a loss over a rollout; arguments as for `CompiledMechanism.rollout_gradient`."""
    m = fast.mechanism
    q, v, controls = (validation.array(x, name) for x, name in ((q0, "q0"), (v0, "v0"), (control, "control")))
    z = validation.array(activation, "activation")
    worlds = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], controls.shape[:-2])
    q, v, z = (np.broadcast_to(x, (*worlds, x.shape[-1])) for x in (q, v, z))
    controls = np.broadcast_to(controls, (*worlds, *controls.shape[-2:]))
    options: dict[str, Any] = {"step": step, "integrator": integrator}
    run = fast.rollout(
        q, v, controls, steps=controls.shape[-2], activation=z, time=0.0, params=params, **options
    )
    states = [np.concatenate([x[..., None, :], y], axis=-2) for x, y in zip((q, v, z), run, strict=True)]
    trajectory = RolloutStates(states[0], states[1], states[2], controls)
    h = m.options.timestep if step is None else step
    spread = None if params is None else {k: np.asarray(x)[..., None] for k, x in params.items()}

    def derivatives(span: slice) -> StepDerivatives:
        before = [x[..., :-1, :][..., span, :] for x in states]
        return fast.step_derivatives(
            before[0], before[1], controls[..., span, :], activation=before[2],
            time=h * np.arange(span.start, span.stop), params=spread, **options,
        )  # fmt: skip

    g = cotangents(run) if callable(cotangents) else cotangents
    return adjoint(trajectory, derivatives, validation.array(g, "cotangents"))


def adjoint(
    trajectory: RolloutStates,
    derivatives: Callable[[slice], StepDerivatives],
    cotangents: np.ndarray,
) -> RolloutGradient:
    """The gradients for the cotangents g (..., steps, n) of the states after each step.

    derivatives(span): those of the steps in a span. Raises ShapeError for cotangents of another shape.
    """
    steps = trajectory.steps
    n = 2 * trajectory.v.shape[-1] + trajectory.activation.shape[-1]
    expected = (*trajectory.q.shape[:-2], steps, n)
    if cotangents.shape != expected:
        raise ShapeError(
            f"the cotangents have the shape {cotangents.shape}; it must be {expected}: the derivatives of "
            "the loss by the state (dq, v, activation) after each step"
        )
    adjoint_state: Any = np.zeros(n)
    by_control = np.zeros_like(trajectory.control)
    by_parameters: Any = 0.0
    switching = np.zeros((*trajectory.q.shape[:-2], steps), bool)
    block = max(1, math.isqrt(steps))
    for start in reversed(range(0, steps, block)):
        span = slice(start, min(start + block, steps))
        found = derivatives(span)
        switching[..., span] = found.switching
        for k in reversed(range(span.stop - span.start)):
            adjoint_state = adjoint_state + cotangents[..., start + k, :]
            by_control[..., start + k, :] = _pulled_back(found.B[..., k, :, :], adjoint_state)
            by_parameters = by_parameters + _pulled_back(found.P[..., k, :, :], adjoint_state)
            adjoint_state = _pulled_back(found.A[..., k, :, :], adjoint_state)
    return RolloutGradient(*trajectory.after, adjoint_state, by_control, by_parameters, switching)


def _pulled_back(J: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
    """J^T w (..., n)."""
    return np.einsum("...ij,...i->...j", J, cotangent)

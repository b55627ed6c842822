"""The gradient of a loss over a rollout by start, controls and symbols: the adjoint of the steps.

    lambda_k = A_k^T lambda_{k+1} + g_k,    dL/du_k = B_k^T lambda_{k+1},    dL/dp = sum P_k^T lambda_{k+1}

with the exact derivatives A, B, P of each step, and g_k = dL/dx_k. Where a step has an adjoint in reverse
mode, only the products are computed; else A, B and P, for some steps at a time. Source: Griewank, Walther,
Evaluating Derivatives (2008), Section 3.2.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from zwang.api.arguments import validation
from zwang.api.derivatives.rollout_states import Differentiable, RolloutStates
from zwang.api.derivatives.step_adjoint import ADJOINT, BY_CONTROL, BY_SYMBOLS, COTANGENT
from zwang.api.derivatives.step_derivatives import direction_sizes
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.errors import ShapeError


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


def gradient_of_rollout(
    fast: Differentiable,
    cotangents: Any,
    trajectory: RolloutStates,
    params: Mapping[Any, Any] | None,
) -> RolloutGradient:
    """The gradient of a loss over a rollout; arguments as for `CompiledMechanism.rollout_gradient`.

    Raises ShapeError for cotangents of another shape than (..., steps, n).
    """
    given = cotangents(trajectory.after) if callable(cotangents) else cotangents
    g, m = validation.real_values(given, "cotangents"), fast.mechanism
    expected = (*trajectory.q.shape[:-2], trajectory.steps, sum(list(direction_sizes(m).values())[:3]))
    if g.shape != expected:
        raise ShapeError(
            f"the cotangents have the shape {g.shape}; it must be {expected}: the derivatives of the loss by "
            "the state (dq, v, activation) after each step"
        )
    function = fast.compiled_or_none(("rollout_adjoint", *trajectory.options))
    found = None if function is None else by_vector_products(fast, function, trajectory, g)
    return by_jacobians(fast, trajectory, g, params) if found is None else found


def _blocks(steps: int) -> list[slice]:
    """The steps in blocks of about the square root of their number, from the last to the first."""
    size = max(1, math.isqrt(steps))
    return [slice(start, min(start + size, steps)) for start in reversed(range(0, steps, size))]


def by_vector_products(
    fast: Differentiable, function: CompiledFunction, trajectory: RolloutStates, cotangents: np.ndarray
) -> RolloutGradient | None:
    """The gradients by the adjoint of a step, run backwards; None if one of a valid world is not finite.

    function: the compiled adjoint, see `step_adjoint`.
    """
    worlds = trajectory.q.shape[:-2]
    state: dict[str, np.ndarray] = {ADJOINT: np.zeros((*worlds, cotangents.shape[-1]))}
    symbols: list[np.ndarray] = []
    if trajectory.symbols is not None:
        symbols = [np.broadcast_to(trajectory.symbols, (*worlds, trajectory.symbols.shape[-1]))]
        state[BY_SYMBOLS] = np.zeros(symbols[0].shape)
    by_control = np.zeros_like(trajectory.control)
    switching, is_valid = np.zeros(by_control.shape[:-1], bool), np.ones(worlds, bool)
    for span in _blocks(trajectory.steps):
        solved = trajectory.solved(fast, span)
        over_time = [np.flip(x, axis=-2) for x in (*solved.inputs, solved.acceleration)]
        names = [port.name for port in function.program.inputs[: len(over_time)]]
        first, *others = state.values()
        done = run_steps(
            function, *over_time, first, np.flip(cotangents[..., span, :], axis=-2), *others, *symbols,
            steps=span.stop - span.start, over_time=(*names, COTANGENT), record=(BY_CONTROL,),
        )  # fmt: skip
        state = {name: done.state[name] for name in state}
        by_control[..., span, :] = np.flip(done.records[BY_CONTROL], axis=-2)
        switching[..., span] = solved.switching
        is_valid &= solved.is_valid.all(axis=-1)
    by_symbols = state.get(BY_SYMBOLS, np.zeros((*worlds, 0)))
    gradients = [state[ADJOINT], by_control, by_symbols]
    if not all(np.isfinite(x[is_valid]).all() for x in gradients):
        return None
    gradients = [
        np.where(is_valid.reshape(*worlds, *[1] * (x.ndim - len(worlds))), x, np.nan) for x in gradients
    ]
    return RolloutGradient(*trajectory.after, *gradients, switching)


def by_jacobians(
    fast: Differentiable, trajectory: RolloutStates, cotangents: np.ndarray, params: Mapping[Any, Any] | None
) -> RolloutGradient:
    """The gradients by the derivatives A, B, P of all steps, where a step has no adjoint of its own."""
    h, integrator = trajectory.options
    spread = None if params is None else {k: np.asarray(x)[..., None] for k, x in params.items()}
    adjoint_state: Any = np.zeros(cotangents.shape[-1])
    by_control = np.zeros_like(trajectory.control)
    by_parameters: Any = 0.0
    switching = np.zeros(by_control.shape[:-1], bool)
    for span in _blocks(trajectory.steps):
        before = [x[..., :-1, :][..., span, :] for x in trajectory[:3]]
        found = fast.step_derivatives(
            before[0], before[1], trajectory.control[..., span, :], activation=before[2],
            time=h * np.arange(span.start, span.stop), params=spread, step=h, integrator=integrator,
        )  # fmt: skip
        switching[..., span] = found.switching
        for k in reversed(range(span.stop - span.start)):
            adjoint_state = adjoint_state + cotangents[..., span.start + k, :]
            by_control[..., span.start + k, :] = _pulled_back(found.B[..., k, :, :], adjoint_state)
            by_parameters = by_parameters + _pulled_back(found.P[..., k, :, :], adjoint_state)
            adjoint_state = _pulled_back(found.A[..., k, :, :], adjoint_state)
    return RolloutGradient(*trajectory.after, adjoint_state, by_control, by_parameters, switching)


def _pulled_back(J: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
    """J^T w (..., n)."""
    return np.einsum("...ij,...i->...j", J, cotangent)

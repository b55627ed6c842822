"""The gradient of a loss over a rollout by start, controls and symbols: the adjoint of the steps.

    lambda_k = A_k^T lambda_{k+1} + g_k,    dL/du_k = B_k^T lambda_{k+1},    dL/dp = sum P_k^T lambda_{k+1}

with the exact derivatives A, B, P of each step, and g_k = dL/dx_k. Where a step has an adjoint in reverse
mode, only the products are computed; else A, B and P, for some steps at a time. With checkpoints the states
of about sqrt(T) of T steps are stored, and the steps between two of them are run again before they are
differentiated. Source: Griewank, Walther, Evaluating Derivatives (2008), Sections 3.2 and 12.3.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.api.arguments import validation
from zwang.api.derivatives.rollout_states import PARAMETERS, RolloutStart, SolvedSteps
from zwang.api.derivatives.step_adjoint import ADJOINT, BY_CONTROL, BY_SYMBOLS, COTANGENT
from zwang.api.derivatives.step_derivatives import ACCELERATION, direction_sizes
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.rollout_kernel import RepeatedRollout
from zwang.errors import ShapeError


class RolloutGradient(NamedTuple):
    """The states after each step, and the gradients of the loss.

    q, v, activation: (..., steps, size), or, with checkpoints, (..., 1, size), those after the last step.
    start: (..., n), by the displacement dq of the configuration at the start, the velocities and the
    activations. control: (..., steps, nu). parameters: (..., symbols). switching: (..., steps), see
    `StepDerivatives`.
    """

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    start: np.ndarray
    control: np.ndarray
    parameters: np.ndarray
    switching: np.ndarray


class _Sums(NamedTuple):
    """What a reverse sweep changes: the cotangent (worlds, n) of the state between two steps, the sum
    (worlds, symbols) of the gradients by the symbols, and the gradient (worlds, steps, nu) by the controls.
    """

    by_state: np.ndarray
    by_symbols: np.ndarray
    by_control: np.ndarray


Pullback = Callable[[slice, np.ndarray], None]
"""Takes the sums from behind the steps of a span to before them, for the cotangents g (worlds, steps, n) of
the states after these steps.
"""


def gradient_of_rollout(rollout: RolloutStart, cotangents: Any, checkpoints: bool) -> RolloutGradient:
    """The gradient of a loss over a rollout; arguments as for `CompiledMechanism.rollout_gradient`.

    Raises ShapeError for cotangents of another shape than (..., steps, n).
    """
    everything = slice(0, rollout.steps)
    if not callable(cotangents):
        cotangents = _checked(rollout, cotangents, everything)
    spans = _blocks(everything) if checkpoints else [everything]
    parts = list(zip(spans, rollout.states_before(spans), strict=True))
    function = rollout.fast.compiled_or_none(("rollout_adjoint", *rollout.options))
    if function is not None:
        found = _swept(rollout, cotangents, parts, function)
        if _is_finite(found):
            return found
    return _swept(rollout, cotangents, parts, None)


def _is_finite(found: RolloutGradient) -> bool:
    """Whether the gradients of all worlds that do not fail are finite."""
    gradients = (found.start, found.control, found.parameters)
    if all(np.isfinite(x.sum()) for x in gradients):
        return True
    valid = np.isfinite(found.q[..., -1:, :]).all(axis=(-1, -2))
    return all(np.isfinite(x[valid]).all() for x in gradients)


def _checked(rollout: RolloutStart, given: Any, span: slice) -> np.ndarray:
    """The cotangents (worlds, steps, n) of the states after the steps of a span. Raises ShapeError."""
    g = validation.real_values(given, "cotangents", copy=False)
    expected = (*rollout.shape, span.stop - span.start, _state_size(rollout))
    if g.shape != expected:
        raise ShapeError(
            f"the cotangents have the shape {g.shape}; it must be {expected}: the derivatives of the loss by "
            "the state (dq, v, activation) after each step"
        )
    return g.reshape(rollout.worlds, *expected[-2:]).astype(rollout.control.dtype, copy=False)


def _state_size(rollout: RolloutStart) -> int:
    return sum(list(direction_sizes(rollout.fast.mechanism).values())[:3])


def _blocks(span: slice) -> list[slice]:
    """The steps of a span in blocks of about the square root of their number."""
    size = max(1, math.isqrt(span.stop - span.start))
    return [slice(k, min(k + size, span.stop)) for k in range(span.start, span.stop, size)] or [span]


def _swept(
    rollout: RolloutStart,
    cotangents: Any,
    parts: Sequence[tuple[slice, Mapping[str, np.ndarray]]],
    function: CompiledFunction | None,
) -> RolloutGradient:
    """The gradients by the reverse sweep over the parts of a rollout, each with the state before it; NaN for
    worlds that fail. function: the compiled adjoint of a step, if there is one.
    """
    W, T, nu = rollout.control.shape
    dtype = rollout.control.dtype
    sizes = (W, _state_size(rollout)), (W, rollout.symbols.shape[-1]), (W, T, nu)
    sums, switching = _Sums(*(np.zeros(size, dtype) for size in sizes)), np.zeros((W, T), bool)
    after: list[np.ndarray] = []
    needed = function is not None and ACCELERATION in [port.name for port in function.program.inputs]
    solved: SolvedSteps | None = None
    pull: Pullback | None = None
    for span, state in reversed(parts):
        if solved is None or pull is None or solved.steps != span.stop - span.start:
            solved = pull = None  # releases their memory
            solved = SolvedSteps(rollout, span.stop - span.start, needed)
            pull = _by_jacobians(solved, sums) if function is None else _by_products(solved, sums, function)
        solved.solve(state, span)
        g = cotangents
        if callable(g):
            g = _checked(rollout, g(solved.after, *([span] if len(parts) > 1 else [])), span)
        pull(span, g if callable(cotangents) else g[:, span])
        switching[:, span] = solved.switching
        after = after or [x if len(parts) == 1 else x[..., -1:, :].copy() for x in solved.after]
    failed = ~np.isfinite(np.concatenate([x[..., -1:, :] for x in after[:2]], axis=-1)).all(axis=(-1, -2))
    for x in sums:
        x[failed.reshape(-1)] = np.nan
    return RolloutGradient(
        *after, *(rollout.shaped(x) for x in (sums.by_state, sums.by_control, sums.by_symbols, switching))
    )


def _by_products(solved: SolvedSteps, sums: _Sums, function: CompiledFunction) -> Pullback:
    """By the compiled adjoint of a step, run backwards, see `step_adjoint`."""
    names = [port.name for port in function.program.inputs]
    given = {name: np.flip(x, axis=1) for name, x in solved.known.items() if name in names}
    ports, record = (*given, COTANGENT), (BY_CONTROL,)
    given |= {ADJOINT: sums.by_state, BY_SYMBOLS: sums.by_symbols, PARAMETERS: solved.rollout.symbols}
    worlds, steps = solved.rollout.worlds, solved.steps
    if solved.is_whole:
        given[BY_CONTROL] = np.flip(sums.by_control, axis=1)
        return lambda _, g: RepeatedRollout(
            function, worlds, steps, {**given, COTANGENT: np.flip(g, axis=1)}, ports, record
        ).run()
    cotangents = np.zeros((worlds, steps, sums.by_state.shape[-1]), sums.by_state.dtype)
    by_control = solved.control  # each step reads its control, then writes the gradient in its place
    given |= {COTANGENT: np.flip(cotangents, axis=1), BY_CONTROL: np.flip(by_control, axis=1)}
    run = RepeatedRollout(function, worlds, steps, given, ports, record)

    def pull(span: slice, g: np.ndarray) -> None:
        cotangents[:] = g
        run.run()
        sums.by_control[:, span] = by_control

    return pull


def _by_jacobians(solved: SolvedSteps, sums: _Sums) -> Pullback:
    """By the products with the derivatives A, B, P of some steps at a time."""
    rollout, (h, integrator) = solved.rollout, solved.rollout.options
    symbols = rollout.fast.mechanism.symbols
    params = {name: rollout.symbols[:, k, None] for k, name in enumerate(symbols)} or None

    def pull(span: slice, g: np.ndarray) -> None:
        for block in reversed(_blocks(slice(0, solved.steps))):
            q, v, z, control = (x[:, block] for x in solved.before[:4])
            time = rollout.times(slice(span.start + block.start, span.start + block.stop))
            found = rollout.fast.step_derivatives(
                q, v, control, activation=z, time=time, params=params, step=h, integrator=integrator
            )
            for k in reversed(range(block.stop - block.start)):
                step = block.start + k
                sums.by_state[:] += g[:, step]
                sums.by_control[:, span.start + step] = _pulled_back(found.B[:, k], sums.by_state)
                sums.by_symbols[:] += _pulled_back(found.P[:, k], sums.by_state)
                sums.by_state[:] = _pulled_back(found.A[:, k], sums.by_state)

    return pull


def _pulled_back(J: np.ndarray, cotangent: np.ndarray) -> np.ndarray:
    """J^T w (..., n)."""
    return np.einsum("...ij,...i->...j", J, cotangent)

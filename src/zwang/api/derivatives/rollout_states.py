"""The states of a rollout, about which it is differentiated, and the solutions of its steps."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple, Protocol

import numpy as np

from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import parameter_array
from zwang.api.derivatives.step_derivatives import StepDerivatives
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.constraint.hard import rheonomic_constraints
from zwang.mechanism.mechanism import Mechanism

Options = tuple[float, str]
"""The step size [s] and the integrator."""


class Differentiable(Protocol):
    """A compiled mechanism: its rollouts, the derivatives of its steps, and their programs."""

    mechanism: Mechanism
    rollout: Callable[..., Any]
    step_derivatives: Callable[..., StepDerivatives]

    def compiled_function(self, function: Any) -> CompiledFunction:
        """The machine code of a program."""
        ...

    def compiled_or_none(self, function: Any) -> CompiledFunction | None:
        """The machine code of a program; None if it cannot be traced."""
        ...

    def step_key(self, step: float | None = None, integrator: str | None = None) -> tuple[Any, ...]:
        """The key of a step."""
        ...


class SolvedSteps(NamedTuple):
    """Some steps of a rollout.

    inputs: q, v, activation and control at their beginnings and, if a constraint depends on it, the time,
    each (..., steps, size). acceleration (..., steps, n): the solutions of the constraint solver in all
    stages. switching, is_valid (..., steps): whether a row is about to change its status, and whether the
    step has succeeded.
    """

    inputs: list[np.ndarray]
    acceleration: np.ndarray
    switching: np.ndarray
    is_valid: np.ndarray


class RolloutStates(NamedTuple):
    """A rollout: states (..., steps + 1, size), the first one included, and controls (..., steps, nu).

    options: step size and integrator. symbols (..., symbols): the values of the mechanism's symbols, if it
    has any.
    """

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    control: np.ndarray
    options: Options
    symbols: np.ndarray | None

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.control.shape[-2]

    @property
    def after(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The states after each step."""
        return self.q[..., 1:, :], self.v[..., 1:, :], self.activation[..., 1:, :]

    def solved(self, fast: Differentiable, span: slice) -> SolvedSteps:
        """The steps of a span with their solutions."""
        states = (self.q, self.v, self.activation)
        inputs = [*(x[..., :-1, :][..., span, :] for x in states), self.control[..., span, :]]
        if rheonomic_constraints(fast.mechanism):
            inputs.append(self.options[0] * np.arange(span.start, span.stop)[:, None])
        parameters = [] if self.symbols is None else [self.symbols[..., None, :]]
        solution = fast.compiled_function(("step_solution", *self.options))
        q, v, _, acceleration, switching = solution(*inputs, *parameters)
        valid = np.isfinite(np.concatenate([q, v], axis=-1)).all(axis=-1)
        return SolvedSteps(inputs, acceleration, switching[..., 0] > 0, np.asarray(valid))


def rolled_out(
    fast: Differentiable,
    q0: Any,
    v0: Any,
    control: Any,
    *,
    activation: Any,
    step: float | None,
    integrator: str | None,
    params: Mapping[Any, Any] | None,
) -> RolloutStates:
    """The rollout from a start, with a control (..., steps, nu) for each step."""
    m = fast.mechanism
    q, v, u = (validation.real_values(x, name) for x, name in ((q0, "q0"), (v0, "v0"), (control, "control")))
    z = validation.real_values(activation, "activation")
    symbols = parameter_array(m, params) if m.symbols or params else None
    of_symbols = () if symbols is None else symbols.shape[:-1]
    worlds = np.broadcast_shapes(q.shape[:-1], v.shape[:-1], u.shape[:-2], of_symbols)
    q, v, z = (np.broadcast_to(x, (*worlds, x.shape[-1])) for x in (q, v, z))
    u = np.broadcast_to(u, (*worlds, *u.shape[-2:]))
    run = fast.rollout(
        q, v, u, steps=u.shape[-2], activation=z, time=0.0, params=params, step=step, integrator=integrator
    )
    states = [np.concatenate([x[..., None, :], y], axis=-2) for x, y in zip((q, v, z), run, strict=True)]
    _, *options = fast.step_key(step, integrator)
    of_step = (options[0], options[1])
    return RolloutStates(states[0], states[1], states[2], u, of_step, symbols if m.symbols else None)

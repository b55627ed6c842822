"""The derivatives of a rollout along directions: the tangents of its steps, one after the other.

    dx_{k+1} = A_k dx_k + B_k du_k + P_k dp

with the exact derivatives A, B, P of each step, of which only these products are computed. Source: Griewank,
Walther, Evaluating Derivatives (2008), Section 3.1.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.api.arguments import validation
from zwang.api.derivatives.rollout_states import RolloutStart, SolvedSteps
from zwang.api.derivatives.step_derivatives import ACCELERATION, direction_sizes
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.errors import ShapeError


class RolloutTangents(NamedTuple):
    """The states after each step, and their derivatives along directions.

    q, v, activation: (..., steps, size). tangents: (..., directions, steps, n), of the state (dq, v,
    activation) after each step, dq in the tangent space. switching: (..., steps), see `StepDerivatives`.
    """

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    tangents: np.ndarray
    switching: np.ndarray


def tangents_of_rollout(rollout: RolloutStart, start: Any, control: Any, parameters: Any) -> RolloutTangents:
    """The derivatives of a rollout along directions of the start, the controls and the symbols; None for
    those that do not change. Raises ShapeError.
    """
    fast, directions = rollout.fast, _directions(rollout, start, control, parameters)
    solved = SolvedSteps(rollout, rollout.steps)
    solved.solve(rollout.state, slice(0, rollout.steps))
    sizes = direction_sizes(fast.mechanism)
    parts = np.split(directions[0], np.cumsum([sizes["dq"], sizes["dv"]]), axis=-1)
    inputs = [*solved.before, solved.known[ACCELERATION]]
    over_time = [rollout.shaped(x)[..., None, :, :] for x in inputs]
    symbols = [rollout.shaped(rollout.symbols)[..., None, :]] if fast.mechanism.symbols else []
    function = fast.compiled_function(("rollout_tangent", *rollout.options))
    names = [port.name for port in function.program.inputs]
    done = run_steps(
        function, *over_time, *parts, *directions[1:], *symbols,
        steps=rollout.steps, over_time=(*names[: len(over_time)], "du"),
    )  # fmt: skip
    found = np.concatenate([done.records[name] for name in ("dq", "dv", "dz")], axis=-1)
    found = np.where(rollout.shaped(solved.is_valid)[..., None, :, None], found, np.nan)
    return RolloutTangents(*solved.after, found, rollout.shaped(solved.switching))


def _directions(rollout: RolloutStart, start: Any, control: Any, parameters: Any) -> list[np.ndarray]:
    """The directions (..., directions, size) of the start, the controls (..., directions, steps, nu) and the
    symbols.
    """
    *of_state, nu, symbols = direction_sizes(rollout.fast.mechanism).values()
    shapes = {
        "start_direction": (start, (sum(of_state),)),
        "control_direction": (control, (rollout.steps, nu)),
        "parameter_direction": (parameters, (symbols,)),
    }
    given = [name for name, (value, _) in shapes.items() if value is not None]
    if not given:
        raise ShapeError(f"there is no direction: give one or more of {', '.join(shapes)}")
    found = []
    for name, (value, shape) in shapes.items():
        direction = np.zeros((1, *shape)) if value is None else validation.real_values(value, name)
        if direction.ndim < 1 + len(shape) or direction.shape[direction.ndim - len(shape) :] != shape:
            ending = ", ".join(str(n) for n in ("..., directions", *shape))
            raise ShapeError(f"{name} has the shape {direction.shape}; it must be ({ending})")
        found.append(direction)
    return found

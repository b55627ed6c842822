"""Exact derivatives of a step: of the state after it by the state before, the control and the symbols.

The step is solved once; its derivative along a direction is then the step on tangents, in which the linear
problem at its solution takes the place of the constraint solver (`zwang.solver.linearised`). All worlds and
directions are one batch of compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual_control_flow import Tangent
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.errors import SimulationError
from zwang.integrator.fixed_step import State
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import equal, logical_or, value_is_constant, where
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names
from zwang.simulation.status import NONE
from zwang.simulation.step import StepResult, step, step_settings
from zwang.simulation.step_settings import StepSettings
from zwang.simulation.step_tangent import Direction, step_tangent
from zwang.simulation.switching import is_switching
from zwang.solver.linearised import KnownSolutions

STAGES = {"rk4": 4}
"""The number of stages of the integrators that have more than one."""


class StepDerivatives(NamedTuple):
    """The state after a step, and its derivatives on the tangent space.

    q, v, activation: the state after the step. A: (..., n, n), by the state x = (dq, dv, dz) before it, with
    n = 2 nv + nz: dq is a displacement of the configuration as `integrate_configuration` applies it. B:
    (..., n, nu), by the control. P: (..., n, symbols), by the symbols of the mechanism. switching: (...),
    whether a constraint row is so close to a change of its status that the derivative is one-sided.
    """

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    A: np.ndarray
    B: np.ndarray
    P: np.ndarray
    switching: np.ndarray


def step_derivatives(
    mechanism: Mechanism,
    call: Callable[..., Any],
    options: tuple[float, str],
    inputs: tuple[np.ndarray, ...],
    parameters: list[np.ndarray],
) -> StepDerivatives:
    """The derivatives of a step of a compiled mechanism.

    call(key, arrays): the compiled function of a key. options: step size [s] and integrator. inputs: q, v,
    activation, control and, if a constraint depends on it, the time. parameters: the values of the symbols,
    if there are any.
    """
    nv, nz, nu = mechanism.nv, len(activations(mechanism)), len(control_names(mechanism))
    n = 2 * nv + nz
    size = n + nu + len(mechanism.symbols)
    q, v, z, acceleration, switching = call(("step_solution", *options), (*inputs, *parameters))
    worlds = [np.asarray(x)[..., None, :] for x in (*inputs, acceleration)]
    of_symbols = [np.asarray(x)[..., None, :] for x in parameters]
    tangents = call(("step_tangent", *options), (*worlds, np.eye(size), *of_symbols))
    # a row for each direction: the transpose of the Jacobian
    J = np.swapaxes(np.concatenate(tangents, axis=-1), -1, -2)
    return StepDerivatives(q, v, z, J[..., :n], J[..., n : n + nu], J[..., n + nu :], switching[..., 0] > 0)


def check_differentiable(mechanism: Mechanism, h: float, integrator: str) -> None:
    """Raises SimulationError, with the reason, for a step that is divided in time where something happens."""
    if coulomb_frictions(mechanism):
        named = coulomb_frictions(mechanism)[0].name
        raise SimulationError(
            f"the step of mechanism {mechanism.name!r} has no exact derivatives: the Coulomb friction "
            f"{named!r} starts and stops within it; give the joint a dry friction (friction_loss), or "
            "difference the step"
        )
    if step_settings(mechanism, h, integrator).has_impacts:
        raise SimulationError(
            f"the step of mechanism {mechanism.name!r} has no exact derivatives: it is divided at the "
            "impacts of hard contacts; give the contacts a softness, or difference the step"
        )


def step_solution(settings: StepSettings, values: Mapping[str, Any]) -> dict[str, Any]:
    """The state after a step, NaN if it fails, with the accelerations that its constraint solver has found in
    each stage, and whether a row is switching.
    """
    after = step(settings, state_of(values), values["control"], time_of(values))
    state, found = _valid(after), [motion.a for motion in after.motions]
    switching: Any = 0.0 > 1.0
    if settings.constraint_model is not None:
        model = settings.constraint_model
        switching = reduce(logical_or, [is_switching(model, motion) for motion in after.motions], switching)
    acceleration = np.concatenate(found) if found else np.zeros(0)
    return {
        "q": state.q, "v": state.v, "activation": state.z, "acceleration": acceleration,
        "switching": np.array([where(switching, 1.0, 0.0)]),
    }  # fmt: skip


def step_tangents(
    mechanism: Mechanism, options: tuple[float, str], parameters: Any, values: Mapping[str, Any]
) -> dict[str, Any]:
    """The derivative of the state after a step along `direction` (n + nu + symbols,)."""
    h, integrator = options
    sizes = [mechanism.nv, mechanism.nv, len(activations(mechanism)), len(control_names(mechanism))]
    *of_state, of_symbols = np.split(values["direction"], np.cumsum(sizes))

    def settings() -> StepSettings:
        pairs = zip(mechanism.symbols, parameters, of_symbols, strict=True)
        moved = {name: Tangent(x, dx) for name, x, dx in pairs}
        return step_settings(mechanism.subs(moved) if moved else mechanism, h, integrator)

    found = values["acceleration"]
    known = KnownSolutions(np.split(found, len(found) // mechanism.nv) if len(found) else [])
    dq, dv, dz = step_tangent(
        settings, state_of(values), values["control"], time_of(values), known, Direction(*of_state)
    )
    return {"dq": dq, "dv": dv, "dz": dz}


def stage_count(mechanism: Mechanism, h: float, integrator: str) -> int:
    """The number of problems that the constraint solver solves in a step."""
    constrained = step_settings(mechanism, h, integrator).constraint_model is not None
    return STAGES.get(integrator, 1) if constrained else 0


def state_of(values: Mapping[str, Any]) -> State:
    """The state among the inputs of a step."""
    return State(values["q"], values["v"], values["activation"])


def time_of(values: Mapping[str, Any]) -> Any:
    """The time among the inputs of a step, None if nothing depends on it."""
    return values["time"][0] if "time" in values else None


def _valid(after: StepResult) -> State:
    """The state after a step, NaN if the step has failed."""
    if value_is_constant(after.status):
        return after.state if after.status == NONE else State(*(x * np.nan for x in after.state))
    return State(*(where(equal(after.status, NONE), x, np.nan) for x in after.state))

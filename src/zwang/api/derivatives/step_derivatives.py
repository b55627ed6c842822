"""Exact derivatives of a step: of the state after it by the state before, the control and the symbols.

The step is solved once; its derivative along a direction is then the step on tangents, in which the linear
problem at its solution takes the place of the constraint solver (`zwang.solver.linearised`). All worlds and
directions are one batch of compiled code.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual_control_flow import Tangent, parts, tangent_array, tangents
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.constraint.context import StepForm
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.errors import SimulationError
from zwang.integrator.fixed_step import State
from zwang.kinematics.configuration import (
    configuration_rate,
    integrate_configuration,
    velocities_of_rate,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import equal, logical_or, value_is_constant, where
from zwang.simulation.applied_forces import activations
from zwang.simulation.constraint_options import is_constrained
from zwang.simulation.controls import control_names
from zwang.simulation.impact_stage import has_hard_contacts
from zwang.simulation.status import NONE
from zwang.simulation.step import MULTISTAGE, StepResult, state_derivative, step, step_settings
from zwang.simulation.step_program import CarriedState
from zwang.simulation.step_settings import StepSettings
from zwang.simulation.step_tangent import (
    Direction,
    sensor_tangent,
    state_derivative_tangent,
    step_tangent,
)
from zwang.simulation.switching import is_switching, muscle_is_switching, tendon_is_switching
from zwang.solver.linearised import KnownSolutions

STAGES = {"rk4": 4}
"""The number of stages of the integrators that have more than one."""
ACCELERATION = "acceleration"
"""The input and output for the solutions of the constraint solver in all stages of a step."""
CONTINUOUS, CONTINUOUS_STAGE = "continuous", "continuous stage"
"""In the place of an integrator: the derivatives of the state derivative, whose rows are those of
`constrained_dynamics`, or of a stage of an integrator with several.
"""
STATE_DERIVATIVES = (CONTINUOUS, CONTINUOUS_STAGE)


class StepDerivatives(NamedTuple):
    """The state after a step, and its derivatives on the tangent space.

    q, v, activation: the state after the step. A: (..., n, n), by the state x = (dq, dv, dz) before it, with
    n = 2 nv + nz: dq is a displacement of the configuration as `integrate_configuration` applies it. B:
    (..., n, nu), by the control. P: (..., n, symbols), by the symbols of the mechanism. switching: (...),
    whether a constraint row is so close to a change of its status, or a contact point to a kink, that the
    derivative is one-sided.
    """

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    A: np.ndarray
    B: np.ndarray
    P: np.ndarray
    switching: np.ndarray


class SensorDerivatives(NamedTuple):
    """The values of all sensors, one after the other, and their derivatives on the tangent space.

    values: (..., n). C: (..., n, 2 nv + nz), by the state (dq, dv, dz) as in `StepDerivatives`. D:
    (..., n, nu), by the control. P: (..., n, symbols), by the symbols. switching: as in `StepDerivatives`.
    """

    values: np.ndarray
    C: np.ndarray
    D: np.ndarray
    P: np.ndarray
    switching: np.ndarray


class StateDerivatives(NamedTuple):
    """The derivative of the state with respect to time, and its derivatives on the tangent space.

    v_dot (..., nv) and z_dot (..., nz): accelerations, and rates of the activations. A, B, P, switching: as
    in `StepDerivatives`, of the variational equation x_dot = A x + B du + P dp, where x = (dq, dv, dz) is the
    deviation from the motion through this state: dq is a displacement of the configuration that moves, so
    that for ball joints it is a rotation vector in body axes, with dq_dot = dv - v x dq. A is the limit of
    (A of `StepDerivatives` - 1) / h for small steps h, without hard limits, friction and contacts, whose rows
    depend on the step.
    """

    v_dot: np.ndarray
    z_dot: np.ndarray
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
    adjoint: CompiledFunction | None = None,
    sparse: Callable[..., Any] | None = None,
) -> StepDerivatives:
    """The derivatives of a step of a compiled mechanism, or of the state derivative, whose rates are then in
    the place of the state.

    call(key, arrays): the compiled function of a key. options: step size [s] and integrator. inputs: q, v,
    activation, control and, if a constraint depends on it, the time. parameters: the values of the symbols,
    if there are any. adjoint: the compiled "rollout_adjoint" of one of Euler's methods, if there is one.
    sparse: likewise the compiled "step_jacobian", see `step_jacobian`.
    """
    q, v, z, acceleration, switching = call(("step_solution", *options), (*inputs, *parameters))
    if sparse is not None:
        AB, total = sparse(*inputs, acceleration, (v - inputs[1]) / options[0], v)
        n = 2 * mechanism.nv + len(activations(mechanism))
        columns = n + inputs[3].shape[-1]
        AB, valid = AB.reshape(*AB.shape[:-1], n, columns), _is_valid(q, v)
        AB[~valid] = np.nan
        if np.isfinite(total[valid]).all() or np.isfinite(AB[valid]).all():
            P = np.zeros((*AB.shape[:-1], 0))
            return StepDerivatives(q, v, z, AB[..., :n], AB[..., n:], P, switching[..., 0] > 0)
    if adjoint is not None:
        ports = [port.name for port in adjoint.program.inputs]
        solution = (acceleration, v) if ACCELERATION in ports else (v,)
        found = _by_rows(mechanism, call, options, adjoint, (*inputs, *solution), parameters)
        valid = _is_valid(q, v)
        if np.isfinite(found[valid]).all():
            A, B, P = _jacobians(mechanism, found, valid)
            return StepDerivatives(q, v, z, A, B, P, switching[..., 0] > 0)
    along = _along_all(mechanism, call, ("step_tangent", *options), (*inputs, acceleration), parameters)
    A, B, P = _jacobians(mechanism, np.concatenate(along, axis=-1), _is_valid(q, v))
    return StepDerivatives(q, v, z, A, B, P, switching[..., 0] > 0)


def time_derivative(
    call: Callable[..., Any],
    options: tuple[float, str],
    inputs: tuple[np.ndarray, ...],
    parameters: list[np.ndarray],
) -> np.ndarray:
    """The derivative (..., n) of the state (dq, dv, dz) after a step by the time at its beginning, at the
    same state. Arguments as for `step_derivatives`.
    """
    q, v, _, acceleration, _ = call(("step_solution", *options), (*inputs, *parameters))
    found = call(("time_tangent", *options), (*inputs, acceleration, *parameters))
    return np.where(_is_valid(q, v)[..., None], np.concatenate(found, axis=-1), np.nan)


def sensor_derivatives(
    mechanism: Mechanism,
    call: Callable[..., Any],
    form: StepForm,
    inputs: tuple[np.ndarray, ...],
    time: np.ndarray,
    parameters: list[np.ndarray],
) -> SensorDerivatives:
    """The derivatives of the sensors of a compiled mechanism. Arguments as for `step_derivatives`; form: of
    the steps in which constraints act; time (...) [s]: of the sensors.
    """
    options = (form.size, CONTINUOUS_STAGE if form.multistage else CONTINUOUS)
    key = "sensors" if form == StepForm(mechanism.options.timestep) else ("sensors", form)
    q, v, z, control = inputs[:4]
    values = call(key, (q, v, control, z, time, *parameters))
    _, a, _, acceleration, switching = call(("step_solution", *options), (*inputs, *parameters))
    tangent = _along_all(mechanism, call, ("sensor_tangent", *options), (*inputs, acceleration), parameters)
    C, D, P = _jacobians(mechanism, tangent, _is_valid(a, values))
    return SensorDerivatives(values, C, D, P, switching[..., 0] > 0)


def _by_rows(
    mechanism: Mechanism, call: Callable[..., Any], options: tuple[float, str], adjoint: Callable[..., Any],
    inputs: tuple[np.ndarray, ...], parameters: list[np.ndarray],
) -> np.ndarray:  # fmt: skip
    """The derivatives (..., directions, n) of the state after a step of one of Euler's methods.

    Those of velocities and activations have fewer rows than columns, and are found row by row in reverse
    mode. The configuration q' = q + h v' follows from them. inputs: of the adjoint, of which the last is v'.
    """
    nv, sizes = mechanism.nv, direction_sizes(mechanism)
    n = 2 * nv + sizes["dz"]
    worlds = [np.asarray(x)[..., None, :] for x in inputs]
    of_symbols = [np.asarray(x)[..., None, :] for x in parameters]
    nothing = [np.zeros((1, sizes["dp"]))] * len(parameters)
    found = adjoint(*worlds, np.eye(n)[nv:], np.zeros((1, n)), *nothing, *of_symbols)
    columns = np.swapaxes(np.concatenate(found, axis=-1), -1, -2)
    dq = np.eye(columns.shape[-2], nv)
    key = ("displacement_tangent", options[0])
    moved = call(key, (worlds[0], worlds[-1], dq, columns[..., :nv], *of_symbols))
    return np.concatenate([moved, columns], axis=-1)


def displacement_tangent(m: Mechanism, h: float, values: Mapping[str, Any]) -> np.ndarray:
    """The displacement (nv,) of q' = q + h v in the tangent space for those of q and the change of v."""
    with tangents():
        q = tangent_array(values["q"], configuration_rate(m.tree, values["q"], values["dq"]))
        after = integrate_configuration(m.tree, q, tangent_array(values["v"], values["dv"]), h)
        both = [parts(x) for x in after]
        at, rate = (np.array(x, dtype=object) for x in zip(*both, strict=True))
        return velocities_of_rate(m.tree, at, rate)


def _along_all(
    mechanism: Mechanism, call: Callable[..., Any], key: tuple[Any, ...], inputs: tuple[np.ndarray, ...],
    parameters: list[np.ndarray],
) -> Any:  # fmt: skip
    """The results of a derivative program along all directions of state, control and symbols: (...,
    directions, n).
    """
    size = 2 * mechanism.nv + len(activations(mechanism)) + len(control_names(mechanism))
    worlds = [np.asarray(x)[..., None, :] for x in inputs]
    of_symbols = [np.asarray(x)[..., None, :] for x in parameters]
    return call(key, (*worlds, np.eye(size + len(mechanism.symbols)), *of_symbols))


def _jacobians(mechanism: Mechanism, rows: np.ndarray, valid: np.ndarray) -> tuple[np.ndarray, ...]:
    """The derivatives by the state, the control and the symbols, from those along each direction (...,
    directions, n); NaN where a world is not valid.
    """
    n = 2 * mechanism.nv + len(activations(mechanism))
    J = np.where(valid[..., None, None], np.swapaxes(rows, -1, -2), np.nan)
    by_state, by_control, by_symbols = np.split(J, [n, n + len(control_names(mechanism))], axis=-1)
    return by_state, by_control, by_symbols


def _is_valid(*results: np.ndarray) -> np.ndarray:
    """Whether the results of a world are finite: a step that fails has no derivatives."""
    return np.logical_and.reduce([np.isfinite(x).all(axis=-1) for x in results])


def settings_of(mechanism: Mechanism, h: float, integrator: str) -> StepSettings:
    """The settings of a step, or of the state derivative of continuous time."""
    if integrator not in STATE_DERIVATIVES:
        return step_settings(mechanism, h, integrator)
    settings = step_settings(mechanism, h, "rk4")
    model = settings.constraint_model
    if model is None or integrator == CONTINUOUS_STAGE:
        return settings
    return replace(settings, constraint_model=replace(model, step=model.step._replace(multistage=False)))


def step_solution(
    settings: StepSettings, integrator: str, values: Mapping[str, Any], carried: CarriedState | None = None
) -> dict[str, Any]:
    """The state after a step, NaN if it fails, with the accelerations that its constraint solver has found in
    each stage, and whether a row is switching; in continuous time the rates of the state.

    carried: see `CarriedState`, in a rollout. Raises SimulationError for a rollout in which bodies may sleep.
    """
    before, control, t = state_of(values), values["control"], time_of(values)
    model = settings.constraint_model
    if carried is not None and settings.sleep is not None:
        raise SimulationError(
            f"mechanism {settings.mechanism.name!r} has bodies that may sleep, so that its motion has no "
            "exact derivatives; take 'sleep' from the enabled options"
        )
    if integrator in STATE_DERIVATIVES:
        rate = state_derivative(settings, *before, control, 0 if t is None else t)
        after = StepResult(State(before.v, rate.v_dot, rate.z_dot), rate.status)
        if rate.motion is not None and model is not None:
            switching = is_switching(model, rate.motion)
            after = after._replace(switching=switching, accelerations=rate.motion.a)
    else:
        warm_start = None if carried is None else carried.warm_start
        after = step(settings, before, control, t, warm_start, switching=True)
        if carried is not None and after.row_status is not None:
            carried.keep(after.row_status)
    state = _valid(after)
    switching = logical_or(
        muscle_is_switching(settings.mechanism, before.z, control),
        tendon_is_switching(settings.mechanism, before.q),
    )
    if after.switching is not None:
        switching = logical_or(switching, after.switching)
    return {
        "q": state.q, "v": state.v, "activation": state.z, ACCELERATION: np.array(after.accelerations),
        "switching": np.array([where(switching, 1.0, 0.0)]),
    }  # fmt: skip


def direction_sizes(mechanism: Mechanism) -> dict[str, int]:
    """The sizes of the parts of a direction: of the state, the control and the symbols."""
    nz, nu = len(activations(mechanism)), len(control_names(mechanism))
    return {"dq": mechanism.nv, "dv": mechanism.nv, "dz": nz, "du": nu, "dp": len(mechanism.symbols)}


def step_tangents(
    mechanism: Mechanism, name: str, options: tuple[float, str], parameters: Any, values: Mapping[str, Any]
) -> Any:
    """The derivative along `direction` (n + nu + symbols,), or along its parts dq, dv, dz, du, dp, of the
    state after a step, or, for the name "sensor_tangent", of the sensors; for "time_tangent" that of the
    state by the time at the beginning of the step.
    """
    h, integrator = options
    sizes = direction_sizes(mechanism)
    t = time_of(values)
    if name == "time_tangent":
        t = Tangent(t, 1)
        *of_state, of_symbols = (np.zeros(size) for size in sizes.values())
    elif "direction" in values:
        *of_state, of_symbols = np.split(values["direction"], np.cumsum(list(sizes.values()))[:-1])
    else:
        *of_state, of_symbols = (values[name] for name in sizes)

    def settings() -> StepSettings:
        pairs = zip(mechanism.symbols, parameters, of_symbols, strict=True)
        moved = {name: Tangent(x, dx) for name, x, dx in pairs}
        return settings_of(mechanism.subs(moved) if moved else mechanism, h, integrator)

    found = values[ACCELERATION]
    known = KnownSolutions(found, mechanism.nv)
    at = (settings, state_of(values), values["control"], t, known, Direction(*of_state))
    if name == "sensor_tangent":
        return sensor_tangent(*at)
    tangent = state_derivative_tangent if integrator in STATE_DERIVATIVES else step_tangent
    return dict(zip(("dq", "dv", "dz"), tangent(*at), strict=True))


def stage_count(mechanism: Mechanism, integrator: str) -> int:
    """The number of problems that the constraint solver solves in a step."""
    stopping = integrator in MULTISTAGE and bool(coulomb_frictions(mechanism))
    divided = has_hard_contacts(mechanism) or stopping
    divided = divided and integrator not in STATE_DERIVATIVES  # its parts are solved again on tangents
    return 0 if divided or not is_constrained(mechanism) else STAGES.get(integrator, 1)


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

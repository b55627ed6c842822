"""The adjoint of a step: the products of a cotangent with its derivatives, in reverse mode.

A step that satisfies the equations of `step_equations`, F1 = r = 0 for its acceleration a and
F2 = M (a - b) - h D b = 0 for its mean acceleration b, has the adjoint

    omega = w_v + (dq'/dv')^T w_q        at v' = v + h b
    (M + h D) mu = h omega,    (M + J^T W J) lambda = M mu
    dL/dx = (d(q', z')/dx)^T (w_q, w_z) + (dv/dx)^T omega - d/dx (lambda^T F1 - mu^T F2)

where the last derivative, at constant a, b, lambda and mu, is that of one number: the power of all forces
for virtual velocities. Nothing that solves an equation is differentiated. Source: Griewank, Walther,
Evaluating Derivatives (2008), Sections 3.2 and 15.1.

The steps of other integrators, and those with hard equalities, are differentiated as they are, but for the
constraint solver, which is replaced by one step of Newton's method from the known solution
(`zwang.solver.linearised`). In reverse mode either costs a few steps, however many controls and velocities
there are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.api.derivatives.step_derivatives import (
    ACCELERATION,
    direction_sizes,
    settings_of,
    state_of,
    time_of,
)
from zwang.api.derivatives.step_equations import (
    MEAN_ACCELERATION,
    NEXT_VELOCITY,
    OtherEquationsError,
    check_equations,
    contact_pairs,
    implicit_damping,
    row_context_of,
    rows_but_contacts,
    step_equations,
)
from zwang.compiler.derivatives.reverse import Vjp
from zwang.compiler.frontend.trace import trace
from zwang.compiler.passes.dead_code import remove_dead_code
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.constraint.rows_of_mechanism import constraint_rows
from zwang.dynamics.crba import crba_of
from zwang.dynamics.forward_dynamics_crba import solve_mass_matrix, velocity_parents
from zwang.dynamics.gauss import GaussProblem
from zwang.errors import TraceError
from zwang.integrator.fixed_step import State
from zwang.kinematics.configuration import (
    configuration_rate,
    integrate_configuration,
    normalized_configuration,
    velocities_of_rate,
)
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import without_derivatives
from zwang.simulation.applied_forces import activation_rate, next_activation
from zwang.simulation.contact_power import contact_power
from zwang.simulation.step import step
from zwang.solver.linearised import KnownSolutions
from zwang.solver.primal_cost import PrimalCost

DISPLACEMENT = "dq"
"""The input for a displacement of the configuration, by which it is differentiated at 0."""
ADJOINT, COTANGENT, BY_CONTROL, BY_SYMBOLS = "adjoint", "cotangent", "by_control", "by_symbols"
"""The inputs and outputs of the adjoint: what is fed back from the following step, the derivatives of the
loss by the state after this one, those by its control, and the sum of those by the symbols.
"""
FORCE_VELOCITIES, DAMPING_VELOCITIES = "lambda", "mu"
"""The inputs for the virtual velocities lambda and mu."""

Values = Mapping[str, Any]
"""Arrays by the names of the inputs."""
Pullback = Callable[[Values, np.ndarray], dict[str, np.ndarray]]
"""From the inputs and a cotangent w (n,) of the state after a step: w^T J by some of the inputs."""


class SolvedStep(NamedTuple):
    """A step whose solution is among its inputs.

    mechanism, options: of the step, its size [s] and its integrator. inputs: their sizes by name: those of a
    step, ACCELERATION, and NEXT_VELOCITY. parameters: the name of the input for the values of the symbols.
    """

    mechanism: Mechanism
    options: tuple[float, str]
    inputs: Mapping[str, int]
    parameters: str

    @property
    def variables(self) -> tuple[str, ...]:
        """The inputs by which a step is differentiated; the configuration by a displacement."""
        return (DISPLACEMENT, "v", "activation", "control", self.parameters)

    def with_values(self, values: Values) -> tuple[Mechanism, Values]:
        """The mechanism with the values of its symbols, and the inputs with unit quaternions."""
        m = self.mechanism
        if m.symbols:
            m = m.subs(dict(zip(m.symbols, values[self.parameters], strict=True)))
        return m, {**values, "q": normalized_configuration(m.tree, values["q"])}


def adjoint_step(of: SolvedStep) -> tuple[Callable[..., Any], dict[str, int]]:
    """The adjoint of a step, as a function of arrays to be traced, and their sizes.

    Raises TraceError where something has no derivative in reverse mode.
    """
    m, parameters = of.mechanism, of.parameters
    found = {ACCELERATION}  # what the adjoint itself computes
    try:
        check_equations(m, of.options[1])
        pullback = _pullback_by_equations(of)
    except OtherEquationsError:
        pullback, found = _pullback_of_step(of), set()
    of_state = sum(list(direction_sizes(m).values())[:3])
    given = {name: size for name, size in of.inputs.items() if name not in (parameters, *found)}
    given |= {ADJOINT: of_state, COTANGENT: of_state}
    given |= {name: len(m.symbols) for name in (BY_SYMBOLS, parameters) if m.symbols}

    def adjoint(*arrays: Any) -> dict[str, Any]:
        values = dict(zip(given, arrays, strict=True))
        values[DISPLACEMENT] = np.zeros(m.nv)
        gradient = pullback(values, values[ADJOINT] + values[COTANGENT])
        by_state = np.concatenate([gradient[name] for name in (DISPLACEMENT, "v", "activation")])
        outputs = {ADJOINT: by_state, BY_CONTROL: gradient["control"]}
        if m.symbols:
            outputs[BY_SYMBOLS] = values[BY_SYMBOLS] + gradient[parameters]
        return outputs

    return adjoint, given


def _pullback(
    of: SolvedStep, text: Callable[[Mechanism, Values], Any], sizes: Mapping[str, int], by: Sequence[str]
) -> Pullback:
    """The products of cotangents with the derivatives of text(mechanism, values), a function of arrays of
    these sizes, by some of them. Raises TraceError.
    """

    def function(*arrays: Any) -> Any:
        values = dict(zip(sizes, arrays, strict=True))
        m = of.mechanism
        if m.symbols:
            m = m.subs(dict(zip(m.symbols, values[of.parameters], strict=True)))
        return text(m, values)

    try:
        program = remove_dead_code(trace(function, sizes, holds=True))
    except TypeError as error:
        raise TraceError(f"a step has no adjoint in reverse mode: {error}") from None
    vjp, found = Vjp.of(program, by), [name for name in sizes if name in by]
    return lambda values, w: dict(zip(found, vjp([values[name] for name in sizes], list(w)), strict=True))


# ---------------------------------------------------------------------------------------- by the step itself


def _pullback_of_step(of: SolvedStep) -> Pullback:
    sizes = {DISPLACEMENT: of.mechanism.nv, **of.inputs}

    def text(m: Mechanism, values: Values) -> np.ndarray:
        q = normalized_configuration(m.tree, values["q"])
        return displaced_step(m, of.options, {**values, "q": q})

    return _pullback(of, text, sizes, of.variables)


def displaced_step(m: Mechanism, options: tuple[float, str], values: Values) -> np.ndarray:
    """The state (n,) after a step in coordinates of the tangent space, up to a constant, of a state whose
    configuration is displaced by `DISPLACEMENT`. Raises TraceError for laws of Coulomb friction.
    """
    if coulomb_frictions(m):
        raise TraceError(f"the laws of Coulomb friction of mechanism {m.name!r} have no reverse mode")
    found = values[ACCELERATION]
    known = KnownSolutions(found, m.nv)
    settings = settings_of(m, *options)
    after = step(settings, _displaced(m, values), values["control"], time_of(values), known).state
    return np.concatenate([_in_tangent_space(m, after.q), after.v, after.z])


def _displaced(m: Mechanism, values: Values) -> State:
    """The state before a step, with a displaced configuration."""
    before = state_of(values)
    return before._replace(q=before.q + configuration_rate(m.tree, before.q, values[DISPLACEMENT]))


def _in_tangent_space(m: Mechanism, q: np.ndarray) -> np.ndarray:
    """Coordinates (nv,) of the tangent space whose derivatives are those of a configuration."""
    fixed = np.array(without_derivatives(lambda *x: list(x), *q), dtype=object)
    return velocities_of_rate(m.tree, fixed, q)


# ---------------------------------------------------------------------------------------- by its equations


def _pullback_by_equations(of: SolvedStep) -> Pullback:
    nv, sizes = of.mechanism.nv, {DISPLACEMENT: of.mechanism.nv, **of.inputs}
    at_end = _pullback(of, lambda m, x: _end(m, of.options, x), sizes, (*of.variables, NEXT_VELOCITY))
    virtual = {FORCE_VELOCITIES: nv, DAMPING_VELOCITIES: nv}
    known = {**sizes, MEAN_ACCELERATION: nv, **virtual}
    of_forces = _pullback(of, lambda m, x: [_virtual_power(m, of.options, x)], known, of.variables)

    def pullback(values: Values, w: np.ndarray) -> dict[str, np.ndarray]:
        m, values = of.with_values(values)
        values = {**values, MEAN_ACCELERATION: (values[NEXT_VELOCITY] - values["v"]) / of.options[0]}
        is_constrained = of.inputs[ACCELERATION]
        values[ACCELERATION] = _acceleration(m, of.options, values) if is_constrained else np.zeros(0)
        w_q, w_v, w_z = np.split(w, [nv, 2 * nv])
        by_end = at_end(values, np.concatenate([w_q, w_z]))
        omega = w_v + by_end.pop(NEXT_VELOCITY)
        velocities = zip(virtual, _virtual_velocities(m, of.options, values, omega), strict=True)
        by_force = of_forces({**values, **dict(velocities)}, np.array([-1]))
        found = {name: x + by_force[name] for name, x in by_end.items()}
        return {**found, "v": found["v"] + omega}

    return pullback


def _acceleration(m: Mechanism, options: tuple[float, str], values: Values) -> np.ndarray:
    """The acceleration a (nv,) of Gauss's problem: M (a - b) = h D b."""
    state, b = state_of(values), values[MEAN_ACCELERATION]
    kinematics = Kinematics(m.tree, state.q, state.v)
    settings, t = settings_of(m, *options), time_of(values)
    h_D = implicit_damping(settings, kinematics, state.z, values["control"], 0 if t is None else t)
    return b if h_D is None else b + solve_mass_matrix(m.tree, crba_of(kinematics), h_D @ b)


def _end(m: Mechanism, options: tuple[float, str], values: Values) -> np.ndarray:
    """The configuration and the activations after a step, as functions of the velocities there."""
    h = options[0]
    before = _displaced(m, values)
    q = integrate_configuration(m.tree, before.q, values[NEXT_VELOCITY], h)
    kinematics, t = Kinematics(m.tree, before.q, before.v), time_of(values)
    rate = activation_rate(m, kinematics, before.z, values["control"], 0 if t is None else t, h)
    z = next_activation(m, before.z, rate, h)
    return np.concatenate([_in_tangent_space(m, q), z])


class _Solution:
    """The equations of a step at its solution. context: of the constraint rows; None without constraints."""

    def __init__(self, m: Mechanism, options: tuple[float, str], state: State, values: Values) -> None:
        s, kinematics = settings_of(m, *options), Kinematics(m.tree, state.q, state.v)
        model, b = s.constraint_model, values[MEAN_ACCELERATION]
        self.a = b if model is None else values[ACCELERATION]
        self.equations = step_equations(
            s, kinematics, state.z, values["control"], (self.a, b), time_of(values)
        )
        self.problem = GaussProblem(self.equations.M, np.zeros(m.nv), tuple(velocity_parents(m.tree)))
        self.context = None if model is None else row_context_of(model, kinematics, time_of(values))


def _virtual_power(m: Mechanism, options: tuple[float, str], values: Values) -> Any:
    """lambda^T F1 - mu^T F2 of a displaced state."""
    at = _Solution(m, options, _displaced(m, values), values)
    velocities, equations = values[FORCE_VELOCITIES], at.equations
    power = velocities @ equations.force
    if equations.implicit is not None:
        power = power - values[DAMPING_VELOCITIES] @ equations.implicit
    if at.context is None:
        return power
    rows = PrimalCost(at.problem, rows_but_contacts(at.context))
    of_contacts = contact_power(at.context, contact_pairs(m), at.a, velocities)
    return power - rows.virtual_power(at.a, velocities) - of_contacts


def _virtual_velocities(
    m: Mechanism, options: tuple[float, str], values: Values, omega: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """lambda and mu, each (nv,), for the cotangent omega (nv,) of the velocities after the step."""
    at = _Solution(m, options, state_of(values), values)
    M, h_D = at.equations.M, at.equations.h_D
    force, mu = options[0] * omega, np.zeros(m.nv, int)
    if at.context is None:
        return solve_mass_matrix(m.tree, M if h_D is None else M + h_D, force), mu
    if h_D is not None:
        mu = solve_mass_matrix(m.tree, M + h_D, force)
        force = at.problem.force_of(mu)
    return PrimalCost(at.problem, constraint_rows(at.context)).response(at.a, force), mu

"""The programs of a mechanism: each function of the table, its derivatives and its steps, traced and
optimised.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import factor
from zwang.api.arguments import validation
from zwang.api.compilation.dynamics_derivatives import DERIVATIVES
from zwang.api.compilation.feedback_rollout import feedback_sizes, feedback_step
from zwang.api.derivatives.step_adjoint import SolvedStep, adjoint_step
from zwang.api.derivatives.step_derivatives import (
    direction_sizes,
    displacement_tangent,
    settings_of,
    stage_count,
    step_solution,
    step_tangents,
)
from zwang.api.derivatives.step_equations import MEAN_ACCELERATION, NEXT_VELOCITY
from zwang.api.derivatives.step_jacobian import check_sparse, step_jacobian
from zwang.api.functions.function_table import (
    ARGUMENTS,
    CONFIGURATION,
    FUNCTIONS,
    MOTOR_FORCES,
    check_axes,
    inverse_compiled,
)
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.compiler.derivatives.substitution import placeholders, substitute_nodes
from zwang.compiler.frontend.trace import UNROLLED_NODES, named_outputs
from zwang.compiler.ir.program import Program
from zwang.compiler.pipeline import trace_and_optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.constraint.context import StepForm
from zwang.constraint.independent_velocities import check_velocity_count
from zwang.dynamics.base_inertial_parameters import with_base_parameters
from zwang.dynamics.crba import crba
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.errors import DescriptionError, UnknownNameError
from zwang.kinematics import configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr
from zwang.simulation.applied_forces import activations, time_dependent_parts
from zwang.simulation.clock import first_clock
from zwang.simulation.controls import control_names
from zwang.simulation.solver_status import initial_monitor
from zwang.simulation.step import STEPPERS
from zwang.simulation.step_program import StepProgram

PARAMETERS = "parameters"
WARM_START = "warm_start"
"""The names of the inputs for the values of the symbols, and for the row statuses that a rollout carries
along.
"""

STEP_PORTS = {
    "q": "q", "v": "v", "z": "activation", "u": "control", "time": "time", "clock": "clock",
    "solver": "solver_status",
}  # fmt: skip
"""The arguments and results of a `StepProgram` by the names that they have in a compiled mechanism."""

DERIVATIVE_PROGRAMS = (
    "step_solution",
    "rollout_solution",
    "step_tangent",
    "rollout_tangent",
    "time_tangent",
    "rollout_adjoint",
    "sensor_tangent",
    "step_jacobian",
)
"""The names of the programs of which derivatives of steps and sensors are made."""

Key = Any
"""The key of a program: the name of a function, or a tuple of the name and its options."""

NOT_COMPILED = ("frame_jacobian_rate", "zwang_by_body")
COMPILED_FUNCTIONS = (
    {name: f for name, f in FUNCTIONS.items() if name not in NOT_COMPILED}
    | DERIVATIVES
    | {MOTOR_FORCES.name: MOTOR_FORCES}
)
NAMED = (*(name for name, f in COMPILED_FUNCTIONS.items() if not f.options), "step")
"""The functions that a name alone denotes; the step is that of the mechanism's options."""


def check_key(key: Key) -> None:
    """Raises UnknownNameError for a key that is neither a name nor a tuple that begins with one."""
    if not isinstance(key[0] if isinstance(key, tuple) and key else key, str):
        raise UnknownNameError("function", short_repr(key), NAMED)


def check_step(step: Any, integrator: Any) -> None:
    """Raises DescriptionError for a step that is not positive, and UnknownNameError for an integrator."""
    if isinstance(step, np.complexfloating | np.timedelta64 | bool) or not (
        isinstance(step, int | float | np.number) and 0 < step < sys.float_info.max
    ):
        raise DescriptionError(f"step is {step!r}; it must be a positive time in seconds")
    if not isinstance(integrator, str) or integrator not in STEPPERS:
        raise UnknownNameError("integrator of fixed step", integrator, STEPPERS)


class TracedText(NamedTuple):
    """A text to be traced: a function of arrays, the sizes of its inputs by name, the name of the numbers
    that a rollout carries, and the number of nodes up to which a loop of constant length is unrolled.
    """

    function: Callable[..., Any]
    sizes: dict[str, Any]
    carried: str = ""
    unroll: int = UNROLLED_NODES


def program_of(mechanism: Mechanism, key: Key) -> Program:
    """The program of one function, traced and optimised for a backend.

    key: a name of the table; (name, *options); (name, `StepForm`) of a function that depends on the step;
    ("step", h, integrator) or ("step", h, integrator,
    coordinate_reduction), and likewise "rollout"; ("step_outputs", outputs, h, ...), and likewise
    "rollout_outputs"; ("feedback_rollout", h, integrator); ("jacobian", key, inputs); ("unrolled", key), the
    function without loops of constant length. Raises UnknownNameError, CompileError or DescriptionError, and
    TraceError for the Jacobian of a program with loops or branches.
    """
    return trace_and_optimise(*_text_of(mechanism, key))


def _text_of(mechanism: Mechanism, key: Key) -> TracedText:
    """The text of one function."""
    name, *options = key if isinstance(key, tuple) else (key,)
    if name == "jacobian" and len(options) == 2:
        return _jacobian_text(mechanism, *options)
    if name == "unrolled" and len(options) == 1:
        return _text_of(mechanism, options[0])._replace(unroll=sys.maxsize)
    if name in ("step", "rollout") and options:
        return _step_text(mechanism, name, options, ())
    if name in DERIVATIVE_PROGRAMS and len(options) == 2:
        return _derivative_text(mechanism, name, *options)
    if name == "feedback_rollout" and len(options) == 2:
        return _feedback_text(mechanism, *options)
    if name == "displacement_tangent" and len(options) == 1:
        sizes = {"q": mechanism.nq, "v": mechanism.nv, "dq": mechanism.nv, "dv": mechanism.nv}
        return _with_parameters(
            mechanism, lambda m, _, values: displacement_tangent(m, options[0], values), sizes, {"q"}
        )
    if name in ("step_outputs", "rollout_outputs") and options:
        return _step_text(mechanism, name, options[1:], options[0])
    function = COMPILED_FUNCTIONS.get(name)
    form = {"step": options.pop()} if options and isinstance(options[-1], StepForm) else {}
    if function is None or len(options) != len(function.options) or bool(form) > function.depends_on_step:
        raise UnknownNameError("function", key, NAMED)
    check_axes(dict(zip(function.options, options, strict=True)))
    if name == "forward_dynamics_derivatives":
        _check_unconstrained(mechanism)
    if function.uses_mass_matrix:
        validation.check_compilable(mechanism, str(key))
    text = function.compiled or function.text
    assert text is not None
    arguments = [ARGUMENTS[argument] for argument in function.arguments]
    inputs = {argument.name: argument.shape_in(mechanism) for argument in arguments}
    normalised = {argument.name for argument in arguments if argument.size == CONFIGURATION}

    def traced(m: Mechanism, parameters: Any, values: Mapping[str, Any]) -> Any:
        leading = (m, parameters) if function.symbols else (m,)
        return text(*leading, *values.values(), *options, **form)

    return _with_parameters(mechanism, traced, inputs, normalised)


def _jacobian_text(mechanism: Mechanism, key: Key, inputs: tuple[str, ...]) -> TracedText:
    """The results of a function, and then "jacobian" (m, n): their derivatives, flat and one after the other,
    with respect to the elements of these inputs, one after the other.

    The derivatives are those of the function as it is computed, by the elements of its arrays: the
    quaternions in q are normalised first, so that a derivative along a quaternion is zero.
    """
    inner = _text_of(mechanism, key)
    for name in inputs:
        if name not in inner.sizes:
            raise UnknownNameError("input", name, inner.sizes)

    def function(*arrays: Any) -> dict[str, Any]:
        given = dict(zip(inner.sizes, arrays, strict=True))
        outputs = named_outputs(inner.function(*arrays))
        if key == "forward_dynamics":
            derivatives = _forward_jacobian(mechanism, given, outputs["out"], inputs)
        else:
            rows = _flat(outputs.values())
            derivatives = jacobian(rows, _flat(given[name] for name in inputs))
        return {**{f"{name}_of_function": x for name, x in outputs.items()}, "jacobian": derivatives}

    return TracedText(function, inner.sizes, unroll=inner.unroll)


def _flat(arrays: Iterable[Any]) -> np.ndarray:
    """The elements of all arrays, one after the other."""
    parts = [np.asarray(array, dtype=object).reshape(-1) for array in arrays]
    return np.concatenate(parts) if parts else np.zeros(0, dtype=object)


def _forward_jacobian(
    mechanism: Mechanism, given: Mapping[str, Any], a: Any, inputs: tuple[str, ...]
) -> np.ndarray:
    """Derivatives (nv, n) of the acceleration a by the elements of the inputs.

    ID(q, v, a) = tau, so M da = dtau - (d ID / dx)_a dx at the unknown a, whose value is then substituted.
    """
    m = mechanism
    if mechanism.symbols:
        m = mechanism.subs(dict(zip(mechanism.symbols, given[PARAMETERS], strict=True)))
    q = configuration.normalized_configuration(m.tree, given["q"])
    unknown = placeholders(given["q"][0], m.nv) if m.nv else np.zeros(0)
    tau = inverse_compiled(m, q, given["v"], unknown)
    others = [name for name in inputs if name != "tau"]
    by_others = jacobian(tau, _flat(given[name] for name in others))
    by_others = substitute_nodes(by_others, dict(zip(unknown, a, strict=True)))
    ends = np.cumsum([0, *(len(given[name]) for name in others)])
    blocks = {
        name: -by_others[:, begin:end] for name, (begin, end) in zip(others, pairwise(ends), strict=True)
    }
    blocks["tau"] = np.eye(m.nv, dtype=int)
    right = np.concatenate([blocks[name] for name in inputs], axis=1)
    factors = factor(crba(with_base_parameters(m.tree), q), velocity_parents(m.tree))
    columns = [factors.solve(column) for column in right.T]
    return np.stack(columns, axis=1) if columns else np.zeros((m.nv, 0))


def _step_text(mechanism: Mechanism, name: str, options: list[Any], outputs: tuple[str, ...]) -> TracedText:
    """The text of a step: h [s], the integrator, and the coordinate reduction, if there is one.

    outputs: see `step_outputs`. In a rollout with outputs the solver's status is a monitor (3,), both input
    and output.
    """
    h, reduction = options[0], options[2:]
    integrator: Any = options[1] if len(options) > 1 else None  # of which the check tells the valid ones
    check_step(h, integrator)
    if validation.is_restrained(mechanism):
        validation.check_compilable(mechanism, "the constraint solver")
    if not mechanism.symbols and isinstance(options[-1], tuple):
        check_velocity_count(
            mechanism, options[-1], np.array(mechanism.home or mechanism.neutral, dtype=float)
        )
    rollout = name.startswith("rollout")
    inputs: dict[str, Any] = _rollout_inputs(mechanism) if rollout else _step_inputs(mechanism)
    if rollout and outputs:
        outputs = tuple(name for name in outputs if name != "solver_status")
        inputs["solver_status"] = len(initial_monitor(1))

    def traced(m: Mechanism, _: Any, values: Mapping[str, Any], carried: Any = None) -> Any:
        reduced = bool(reduction) and reduction[0]
        program = StepProgram(m, h, integrator, coordinate_reduction=reduced, outputs=outputs)
        given = {name: values[port] for name, port in STEP_PORTS.items() if port in values}
        return {STEP_PORTS.get(name, name): x for name, x in program(**given, carried=carried).items()}

    return _with_parameters(mechanism, traced, inputs, {"q"}, WARM_START if rollout else "")


def _feedback_text(mechanism: Mechanism, h: float, integrator: str) -> TracedText:
    """The text of a step under feedback about a reference trajectory."""

    def traced(m: Mechanism, _: Any, values: Mapping[str, Any], carried: Any = None) -> Any:
        return feedback_step(m, h, integrator, values, carried)

    inputs = feedback_sizes(mechanism, _rollout_inputs(mechanism))
    return _with_parameters(mechanism, traced, inputs, {"q", "reference_q"}, WARM_START)


def _derivative_text(mechanism: Mechanism, name: str, h: float, integrator: str) -> TracedText:
    """The text of "step_solution", a step with the solutions of its constraint solver; of "rollout_solution",
    the same with a warm start; of "step_tangent" and "sensor_tangent", the derivatives of the step and of the
    sensors along a direction; of "rollout_tangent", the former with the direction in parts, of which those of
    the state are fed back; of "time_tangent", the derivatives of the step by the time; of "rollout_adjoint"
    and "step_jacobian".
    """
    inputs = _step_inputs(mechanism)

    def solution(m: Mechanism, _: Any, values: Mapping[str, Any], carried: Any = None) -> Any:
        return step_solution(settings_of(m, h, integrator), integrator, values, carried)

    def tangent(m: Mechanism, parameters: Any, values: Mapping[str, Any]) -> Any:
        return step_tangents(mechanism, name, (h, integrator), parameters, values)

    if name in ("step_solution", "rollout_solution"):
        carried = WARM_START if name == "rollout_solution" else ""
        return _with_parameters(mechanism, solution, inputs, {"q"}, carried)
    inputs["acceleration"] = stage_count(mechanism, integrator) * mechanism.nv
    if name == "rollout_adjoint":
        symbols = {PARAMETERS: len(mechanism.symbols)} if mechanism.symbols else {}
        inputs |= {NEXT_VELOCITY: mechanism.nv, **symbols}
        return TracedText(*adjoint_step(SolvedStep(mechanism, (h, integrator), inputs, PARAMETERS)))
    if name == "step_jacobian":
        check_sparse(mechanism, integrator)
        inputs |= {MEAN_ACCELERATION: mechanism.nv, NEXT_VELOCITY: mechanism.nv}
        return _with_parameters(
            mechanism, lambda m, _, values: step_jacobian(m, (h, integrator), values), inputs, {"q"}
        )
    sizes = direction_sizes(mechanism)
    if name != "time_tangent":
        inputs |= sizes if name == "rollout_tangent" else {"direction": sum(sizes.values())}
    return _with_parameters(mechanism, tangent, inputs, {"q"})


def _step_inputs(mechanism: Mechanism) -> dict[str, int]:
    """The inputs of a step, with their sizes."""
    inputs = {"q": mechanism.nq, "v": mechanism.nv, "activation": len(activations(mechanism))}
    inputs["control"] = len(control_names(mechanism))
    if time_dependent_parts(mechanism):
        inputs["time"] = 1
    return inputs


def _rollout_inputs(mechanism: Mechanism) -> dict[str, int]:
    """The inputs of the steps of a rollout, with their sizes; the time is that at its beginning."""
    inputs = _step_inputs(mechanism)
    return {**inputs, "clock": len(first_clock())} if "time" in inputs else inputs


def _with_parameters(
    mechanism: Mechanism,
    text: Callable[..., Any],
    inputs: dict[str, Any],
    normalised: set[str],
    carried_name: str = "",
) -> TracedText:
    """The function of arrays from text(mechanism, parameters, values by name); the values of the symbols are
    its last input.

    normalised: the inputs whose quaternions are normalised.
    """

    def function(*arrays: Any, **carried: Any) -> Any:
        values = dict(zip([*inputs, PARAMETERS], arrays, strict=False))
        parameters = np.zeros(0)
        m = mechanism
        if mechanism.symbols:
            parameters = values.pop(PARAMETERS)
            m = mechanism.subs(dict(zip(mechanism.symbols, parameters, strict=True)))
        for name in inputs:
            if name in normalised:
                values[name] = configuration.normalized_configuration(m.tree, values[name])
        return text(m, parameters, values, *carried.values())

    sizes = {**inputs, **({PARAMETERS: len(mechanism.symbols)} if mechanism.symbols else {})}
    return TracedText(function, sizes, carried_name)


def _check_unconstrained(mechanism: Mechanism) -> None:
    """Raises DescriptionError, with their names, if constraints act."""
    if {"constraint", "equality"} & set(mechanism.options.disabled) or not mechanism.constraints:
        return
    named = [f"{type(c).__name__} {c.name!r}" for c in mechanism.constraints]
    shown = ", ".join(named[:5]) + (", ..." if len(named) > 5 else "")
    raise DescriptionError(
        f"mechanism {mechanism.name!r} has constraints ({shown}), whose forces are not in the derivatives of "
        "forward dynamics; difference zw.constrained_dynamics, or, for the tree without them, give "
        "mechanism.replace(constraints=())"
    )


def traced_program(
    mechanism: Mechanism, text: Callable[..., Any], inputs: dict[str, Any], normalised: set[str]
) -> Program:
    """The program of text(mechanism, parameters, values by name); the values of the symbols are its last
    input.

    normalised: the inputs whose quaternions are normalised.
    """
    return trace_and_optimise(*_with_parameters(mechanism, text, inputs, normalised))


def compile_function(
    function: Callable[..., Any],
    inputs: Mapping[str, Any],
    *,
    dtype: str = "float64",
    lanes: int | None = None,
    threads: int | None = None,
    cache: bool = True,
    carried: str = "",
) -> CompiledFunction:
    """Machine code of any function of arrays, called with one array (..., size) for each input, in order.

    function: traced once, with an array of traced scalars for each input; it returns an array, a tuple or a
    dictionary of arrays. inputs: the shape of each input, by name. dtype, lanes, threads, cache: as for
    `compile`.
    carried: the name of the numbers that the function carries from step to step, see `trace`.
    Raises TraceError and CompileError.
    """
    program = trace_and_optimise(function, inputs, carried)
    return CompiledFunction(program, dtype=dtype, lanes=lanes, threads=threads, cache=cache)


def empty_warm_start(program: Program) -> list[np.ndarray]:
    """The row statuses of the first step, for a program that carries them."""
    return [np.zeros(port.size) for port in program.inputs if port.name == WARM_START]

"""The functions of a mechanism that are exported as C code, with their programs and their documentation."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zwang.api.compilation.programs import (
    COMPILED_FUNCTIONS,
    PARAMETERS,
    WARM_START,
    program_of,
    traced_program,
)
from zwang.api.functions.function_table import ARGUMENTS, MechanicsFunction, Result
from zwang.api.runs.compiled_rollout import step_function
from zwang.api.runs.error_controlled_rollout import continuous_dynamics
from zwang.compiler.ir.program import Port, Program
from zwang.compiler.pipeline import trace_and_optimise
from zwang.constraint.context import StepForm
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.errors import FormatError
from zwang.interop.export_settings import STATE_DERIVATIVE, STEP, ExportSettings
from zwang.interop.identifiers import unique_identifiers
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activations, slew_limited_actuators
from zwang.simulation.impact_stage import has_hard_contacts
from zwang.simulation.sleep_rule import sleeping_trees
from zwang.simulation.step_program import StepProgram

LONGEST_FRAME = 24
"""Characters of the identifier of a frame."""


@dataclass(frozen=True)
class ExportedArgument:
    """An argument of an exported function: its C name, number of elements, unit, and what it is."""

    name: str
    size: int
    unit: str
    description: str


@dataclass(frozen=True)
class ExportedFunction:
    """A function that is exported: its C name, its program, its inputs and outputs, and what it computes.

    An input or output without elements has no name, and is no argument of the C function.
    """

    name: str
    program: Program
    inputs: tuple[ExportedArgument, ...]
    outputs: tuple[ExportedArgument, ...]
    summary: str

    @property
    def arguments(self) -> tuple[list[str], list[str]]:
        """The C names of the inputs and of the outputs, as `c_function` takes them."""
        inputs, outputs = ([x.name if x.size else "" for x in group] for group in (self.inputs, self.outputs))
        return inputs, outputs


def step_program(settings: ExportSettings) -> Program:
    """The program of one step, that of `zw.simulate` with these settings."""
    m, plan = settings.mechanism, settings.plan
    program = StepProgram(
        m,
        plan.step,
        settings.integrator,
        stabilization=plan.stabilization,
        coordinate_reduction=plan.coordinate_reduction,
    )
    return trace_and_optimise(*step_function(program, m.symbols), WARM_START)


def exported_functions(settings: ExportSettings) -> list[ExportedFunction]:
    """All functions but the step, in the order of the table; one for each frame of functions of frames."""
    return [one for name in settings.functions if name != STEP for one in _of_name(settings, name)]


def _of_name(settings: ExportSettings, name: str) -> Iterator[ExportedFunction]:
    if name == STATE_DERIVATIVE:
        yield state_derivative(settings)
        return
    function, m = COMPILED_FUNCTIONS[name], settings.mechanism
    prefix = f"{settings.name}_{name}"
    if function.depends_on_step:
        yield function_of_step(settings, name, settings.form)
        return
    if not function.options:
        yield _exported(m, function, prefix, program_of(m, name), function.summary)
        return
    axes = ("world",) * (len(function.options) - 1)
    words = unique_identifiers(settings.frames, LONGEST_FRAME)
    for frame, word in zip(settings.frames, words, strict=True):
        program = program_of(m, (name, frame, *axes))
        summary = f"{function.summary} In world axes; the frame is {frame}."
        yield _exported(m, function, f"{prefix}_{word}", program, summary)


def function_of_step(
    settings: ExportSettings, name: str, form: StepForm, word: str | None = None
) -> ExportedFunction:
    """A function of accelerations and forces, with constraints that act as in steps of this form. word: its
    name in C, by default that of the table.
    """
    function, m = COMPILED_FUNCTIONS[name], settings.mechanism
    summary = f"{function.summary} Constraints act as in steps of {form.size!r} s."
    return _exported(m, function, f"{settings.name}_{word or name}", program_of(m, (name, form)), summary)


def _exported(
    mechanism: Mechanism, function: MechanicsFunction, name: str, program: Program, summary: str
) -> ExportedFunction:
    inputs = [_input(name, port) for name, port in zip(function.arguments, program.inputs, strict=False)]
    inputs += [_parameters(mechanism)] * bool(mechanism.symbols)
    taken = {x.name for x in inputs}
    outputs = [_output(r, p, taken) for r, p in zip(function.results, program.outputs, strict=True)]
    return ExportedFunction(name, program, tuple(inputs), tuple(outputs), summary)


def _input(name: str, port: Port) -> ExportedArgument:
    argument = ARGUMENTS[name]
    return ExportedArgument(name, port.size, argument.unit, argument.description)


def _output(result: Result, port: Port, taken: set[str]) -> ExportedArgument:
    word = re.sub(r"\W", "_", result.name)
    shape = " x ".join(str(n) for n in port.shape) if len(port.shape) > 1 else ""
    description = result.description + (f"; {shape}, row by row" if shape else "")
    return ExportedArgument(f"{word}_out" if word in taken else word, port.size, result.unit, description)


def _parameters(mechanism: Mechanism) -> ExportedArgument:
    return ExportedArgument(PARAMETERS, len(mechanism.symbols), "SI", "values of the symbols, in their order")


def state_derivative(settings: ExportSettings) -> ExportedFunction:
    """The continuous-time derivatives of the state, with constraints and soft contacts, and the status.

    Raises FormatError for a mechanism whose motion is not continuous.
    """
    check_continuous(settings.mechanism)
    program = traced_program(settings.mechanism, _derivative_text(settings), state_shapes(settings), set())
    described = (
        ("q_dot", "rad/s, m/s, 1/s", "rates of the coordinates"),
        ("v_dot", "rad/s^2, m/s^2", "generalised accelerations"),
        ("z_dot", "1/s", "rates of the activations"),
        ("status", "1", "0, or the reason of a failure"),
    )
    outputs = [
        ExportedArgument(name, port.size, unit, text)
        for (name, unit, text), port in zip(described, program.outputs, strict=True)
    ]
    summary = "Derivatives of the state by time, with constraints, limits, friction and soft contacts."
    return ExportedFunction(
        f"{settings.name}_{STATE_DERIVATIVE}", program, state_inputs(settings), tuple(outputs), summary
    )


def state_inputs(settings: ExportSettings) -> tuple[ExportedArgument, ...]:
    """Time, q, v, activation and control, and the parameters of a mechanism with symbols, as arguments."""
    sizes = {name: 1 if shape == () else shape for name, shape in state_shapes(settings).items()}
    named = [
        ExportedArgument(name, size, ARGUMENTS[name].unit, ARGUMENTS[name].description)
        for name, size in sizes.items()
    ]
    return (*named, *[_parameters(settings.mechanism)] * bool(settings.mechanism.symbols))


STATE_INPUTS = ("time", "q", "v", "activation", "control")


def state_shapes(settings: ExportSettings) -> dict[str, Any]:
    """The shapes of time, q, v, activation and control, by name."""
    m = settings.mechanism
    sizes = ((), m.nq, m.nv, len(activations(m)), len(settings.controls))
    return dict(zip(STATE_INPUTS, sizes, strict=True))


def _derivative_text(settings: ExportSettings) -> Any:
    plan = settings.plan

    def text(m: Mechanism, _: Any, values: Mapping[str, Any]) -> dict[str, Any]:
        dynamics = continuous_dynamics(m, plan.step, plan.stabilization, plan.coordinate_reduction)
        found = dynamics.derivative(*(values[name] for name in STATE_INPUTS))
        return dict(zip(("q_dot", "v_dot", "z_dot", "status"), parts_of_derivative(m, found), strict=True))

    return text


def parts_of_derivative(mechanism: Mechanism, found: Sequence[Any]) -> list[Any]:
    """q_dot, v_dot, z_dot and the status (1,), from an array of all of them."""
    nq, nv = mechanism.nq, mechanism.nv
    return [found[:nq], found[nq : nq + nv], found[nq + nv : -1], found[-1:]]


def check_continuous(mechanism: Mechanism) -> None:
    """Raises FormatError if velocities may jump, sliding may stop, or bodies may fall asleep, and for the
    slew rate of a controller.
    """
    what = "a law of Coulomb friction" if coulomb_frictions(mechanism) else None
    if what is None and has_hard_contacts(mechanism):
        what = "hard contacts"
    if what is None and sleeping_trees(mechanism):
        what = "bodies that may sleep"
    if what is None and slew_limited_actuators(mechanism):
        what = "a controller with a slew rate from step to step"
    if what is not None:
        raise FormatError(
            f"mechanism {mechanism.name!r} has {what}, so its motion is no solution of a differential "
            "equation alone; export steps of fixed size (the function 'step', or an FMU for co-simulation), "
            "or use soft contacts, joint friction, no sleep, and no slew rate"
        )

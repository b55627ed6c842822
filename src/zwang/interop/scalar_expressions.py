"""A compiled function evaluated on the scalar expressions of another program."""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from zwang.api.compilation.programs import program_of
from zwang.errors import TraceError
from zwang.interop.array_function import ArrayFunction, CompiledArrayFunction
from zwang.simulation.constraint_options import describe_constraints

_OPERATORS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": operator.truediv,
    "neg": operator.neg,
    "fma": lambda a, b, c: a * b + c,
    "fms": lambda a, b, c: a * b - c,
    "fnma": lambda a, b, c: c - a * b,
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "true": lambda: 1,
    "false": lambda: 0,
}
_FUNCTIONS = {
    **{name: name for name in ("sqrt", "floor", "sin", "cos", "tan", "asin", "acos", "exp", "log", "atan2")},
    **{name: name for name in ("sinh", "cosh", "tanh", "asinh", "acosh", "atanh")},
    "abs": "fabs",
    "min": "fmin",
    "max": "fmax",
    "pow": "power",
    "copysign": "copysign",
    "and": "logic_and",
    "or": "logic_or",
    "not": "logic_not",
    "xor": "ne",
    "select": "if_else",
}
"""The functions of CasADi by operation."""


def scalar_expressions(function: ArrayFunction, inputs: Sequence[Sequence[Any]], library: Any) -> list[Any]:
    """The elements of all results, one after the other, as expressions of the elements of the inputs.

    library: the module with the functions of these expressions, casadi. Raises TraceError for a function
    with loops, branches or tables.
    """
    if not isinstance(function, CompiledArrayFunction):
        raise TraceError(f"{function.name} is no expression of its arguments")
    known: Mapping[str, Callable[..., Any]] = {
        **_OPERATORS,
        **{name: getattr(library, other) for name, other in _FUNCTIONS.items()},
        "sech": lambda a: 1 / library.cosh(a),
    }
    mechanism, body = function.mechanism.mechanism, function.program.body
    ops = {*known, "const", "input"}
    if not describe_constraints(mechanism) and any(i.op not in ops for i in body.instructions):
        body = program_of(mechanism, ("unrolled", function.key)).body
    values: dict[int, Any] = {}
    for instruction in body.instructions:
        op, data = instruction.op, instruction.data
        if op == "const":
            value = data
        elif op == "input":
            value = inputs[data[0]][data[1]]
        elif op in known:
            value = known[op](*(values[a] for a in instruction.args))
        else:
            raise TraceError(
                f"{function.name} is no expression of its arguments: its program has loops or branches, as "
                "those of constraints, limits, dry friction, contacts and wrapped tendons have; omit "
                "symbolic=True"
            )
        values[instruction.out[0]] = value
    return [values[number] for number in body.results]

"""The generic scalar: elementary functions, control flow and arrays for floats, symbols and traced values
alike.

An algorithm that uses these functions, Python's operators and NumPy's object arrays runs on every kind of
scalar. A backend implements the functions for one kind: floats (here), SymPy expressions (`zwang.symbolic`),
traced values, which are compiled (`zwang.compiler`), and dual numbers (`zwang.algebra.dual`). The type of the
arguments selects the backend. Backends are registered by `register`, or by `register_lazily`, which imports
them only when they are needed.

Python integers are exact and stay so: `sin(0)` is 0 and `cos(0)` is 1, so that structural zeros and ones fold
away.

On floats nothing raises: as in NumPy, a function gives nan or inf outside its domain. Functions of scalars
also work on arrays, element by element.

Control flow is functional, as in jax.lax: `cond`, `while_loop`, `fori_loop` and `for_each` carry a pytree of
values (tuples, lists, dictionaries, dataclasses, arrays), and their bodies return a new one of the same
structure.
"""

from typing import TYPE_CHECKING

from zwang.scalar.arrays import MutableArray, Table, flat_position
from zwang.scalar.backend import (
    Backend,
    backend_of,
    from_data,
    register,
    register_decoder,
    register_lazily,
    symbol,
    to_data,
    use_backend,
)
from zwang.scalar.compact_loop import (
    AppendedIndices,
    Appender,
    CompactedItems,
    compact,
    pack_signs,
    unpack_signs,
)
from zwang.scalar.control_flow import (
    ActiveIndices,
    cond,
    empty,
    for_each,
    fori_loop,
    lane_by_lane,
    lane_maximum,
    mutable_array,
    table,
    while_loop,
    without_derivatives,
    zeros,
)
from zwang.scalar.deprecated import old_name as _old_name
from zwang.scalar.float_backend import FloatBackend
from zwang.scalar.primitives import (
    ArrayBackend,
    absolute,
    acos,
    acosh,
    are_constant,
    asin,
    asinh,
    atan2,
    atanh,
    clip,
    copysign,
    cos,
    cosh,
    divide,
    equal,
    exp,
    floor,
    is_scalar,
    is_truth,
    is_zero,
    less,
    less_equal,
    log,
    logical_and,
    logical_not,
    logical_or,
    maximum,
    minimum,
    not_equal,
    number_of_constant,
    power,
    raise_if,
    reason_not_real,
    sech,
    sign,
    sin,
    sinh,
    sqrt,
    substitute,
    symbols_of,
    tan,
    tanh,
    unit_vector,
    value_is_constant,
    where,
)
from zwang.scalar.pytree import leaves_of, rebuild, structure_of
from zwang.scalar.real import ExactNumber, exact_value, real_array, real_number

__all__ = [
    "ActiveIndices",
    "AppendedIndices",
    "Appender",
    "ArrayBackend",
    "Backend",
    "CompactedItems",
    "ExactNumber",
    "FloatBackend",
    "MutableArray",
    "Table",
    "absolute",
    "acos",
    "acosh",
    "are_constant",
    "asin",
    "asinh",
    "atan2",
    "atanh",
    "backend_of",
    "clip",
    "compact",
    "cond",
    "copysign",
    "cos",
    "cosh",
    "divide",
    "empty",
    "equal",
    "exact_value",
    "exp",
    "flat_position",
    "floor",
    "for_each",
    "fori_loop",
    "from_data",
    "is_scalar",
    "is_truth",
    "is_zero",
    "lane_by_lane",
    "lane_maximum",
    "leaves_of",
    "less",
    "less_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "mutable_array",
    "not_equal",
    "number_of_constant",
    "pack_signs",
    "power",
    "raise_if",
    "real_array",
    "real_number",
    "reason_not_real",
    "rebuild",
    "register",
    "register_decoder",
    "register_lazily",
    "sech",
    "sign",
    "sin",
    "sinh",
    "sqrt",
    "structure_of",
    "substitute",
    "symbol",
    "symbols_of",
    "table",
    "tan",
    "tanh",
    "to_data",
    "unit_vector",
    "unpack_signs",
    "use_backend",
    "value_is_constant",
    "where",
    "while_loop",
    "without_derivatives",
    "zeros",
]


def __dir__() -> list[str]:
    return sorted(__all__)


if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        return _old_name(name, globals())

"""The primitives of a generic scalar, each passed on to the reading at hand.

An algorithm written with these names, Python's operators and NumPy's object arrays runs on floats, on symbols and
on traced scalars alike. A *reading* is an object with a method for each primitive; it is found by the type of the
arguments. The reading of plain numbers is here; others come with `register` or, without being imported before they
are needed, with `register_lazily`.

Plain integers are exact structure and stay so: `sin(0)` is 0 and `cos(0)` is 1, so that zeros and ones fold away.
On floats nothing raises: as in NumPy, outside its domain a function gives nan or inf.
All primitives of scalars also work element by element on arrays, and then give arrays.

Control flow is functional, in the style of jax.lax: `while_loop`, `when` and `for_each` carry values, nested at will
in tuples, lists, dictionaries, dataclasses and arrays, and bodies return new ones of the same structure.
"""

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
from zwang.scalar.control_flow import (
    ActiveIndices,
    cond,
    empty,
    for_each,
    fori_loop,
    lane_maximum,
    table,
    while_loop,
    zeros,
)
from zwang.scalar.float_backend import FloatBackend
from zwang.scalar.primitives import (
    ArrayBackend,
    absolute,
    acos,
    are_constant,
    asin,
    atan2,
    clip,
    copysign,
    cos,
    divide,
    equal,
    exp,
    floor,
    is_scalar,
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
    power,
    reason_not_real,
    sign,
    sin,
    sqrt,
    substitute,
    symbols_of,
    tan,
    value_is_constant,
    where,
)
from zwang.scalar.pytree import leaves_of, rebuild, structure_of
from zwang.scalar.real import real_array, real_number

__all__ = [
    "ArrayBackend",
    "ActiveIndices",
    "FloatBackend",
    "Backend",
    "MutableArray",
    "Table",
    "absolute",
    "acos",
    "are_constant",
    "asin",
    "use_backend",
    "atan2",
    "clip",
    "copysign",
    "cos",
    "divide",
    "empty",
    "equal",
    "exp",
    "flat_position",
    "floor",
    "for_each",
    "fori_loop",
    "from_data",
    "lane_maximum",
    "is_scalar",
    "is_zero",
    "leaves_of",
    "less",
    "less_equal",
    "log",
    "logical_and",
    "logical_not",
    "logical_or",
    "maximum",
    "minimum",
    "not_equal",
    "power",
    "backend_of",
    "real_array",
    "real_number",
    "rebuild",
    "register",
    "register_decoder",
    "register_lazily",
    "sign",
    "sin",
    "sqrt",
    "structure_of",
    "substitute",
    "symbol",
    "symbols_of",
    "table",
    "tan",
    "to_data",
    "reason_not_real",
    "value_is_constant",
    "cond",
    "where",
    "while_loop",
    "zeros",
]

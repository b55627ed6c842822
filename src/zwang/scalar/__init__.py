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

from zwang.scalar.control import Chosen, Span, for_each, highest, scratch, table, when, while_loop
from zwang.scalar.nest import leaves_of, rebuild, structure_of
from zwang.scalar.plain import FloatReading
from zwang.scalar.primitives import (
    ArrayReading,
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
    sign,
    sin,
    sqrt,
    substitute,
    symbols_of,
    tan,
    value_is_constant,
    where,
)
from zwang.scalar.reading import (
    Reading,
    at_hand,
    from_data,
    reading_of,
    register,
    register_decoder,
    register_lazily,
    symbol,
    to_data,
)
from zwang.scalar.stores import Scratch, Table, flat_position

__all__ = [
    "ArrayReading",
    "Chosen",
    "FloatReading",
    "Reading",
    "Scratch",
    "Span",
    "Table",
    "absolute",
    "acos",
    "are_constant",
    "asin",
    "at_hand",
    "atan2",
    "clip",
    "copysign",
    "cos",
    "divide",
    "equal",
    "exp",
    "flat_position",
    "floor",
    "for_each",
    "from_data",
    "highest",
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
    "reading_of",
    "rebuild",
    "register",
    "register_decoder",
    "register_lazily",
    "scratch",
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
    "value_is_constant",
    "when",
    "where",
    "while_loop",
]

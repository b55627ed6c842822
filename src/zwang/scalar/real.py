"""Real numbers: validated conversion of input, where only what is a real number is accepted, and floats that
keep the expression whose value they are.
"""

from __future__ import annotations

from typing import Any

import numpy as np

REAL = "fiub"  # kinds of NumPy types: floats, signed and unsigned integers, booleans
TOOLS = ("casadi", "jax", "torch")
"""Libraries whose values may stand for numbers that are not known yet, or carry a derivative."""


class ExactNumber(float):
    """A float with the constant expression whose value it is, such as pi / 2.

    Algorithms on numbers read a float; derivations read `expression`. SymPy's operations use the expression.
    """

    __slots__ = ("expression",)
    expression: Any

    def __new__(cls, value: float, expression: Any) -> ExactNumber:
        made = super().__new__(cls, value)
        made.expression = expression
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return ExactNumber, (float(self), self.expression)

    def _sympy_(self) -> Any:  # SymPy's protocol of conversion
        return self.expression


def exact_value(x: Any) -> Any:
    """The expression of an `ExactNumber`; any other scalar as it is."""
    return x.expression if isinstance(x, ExactNumber) else x


def real_array(values: Any) -> np.ndarray:
    """`values` as an array of floats.

    Raises TypeError for complex numbers (even with a zero imaginary part), strings, dates, times, None and
    masked arrays, which NumPy would convert, for symbols and for tensors with a gradient, and ValueError for
    rows of different lengths.
    """
    if isinstance(values, np.ma.MaskedArray):
        raise TypeError("a masked array has elements without values")
    try:
        array = np.asarray(values)
    except (TypeError, ValueError):
        raise
    except Exception as error:  # a tensor with a gradient, a symbol of another library: of any type
        raise TypeError(str(error)) from None
    if array.dtype.kind == "O":  # numbers of other libraries, one by one
        array = np.array([real_number(x) for x in array.flat], dtype=float).reshape(array.shape)
    if array.dtype.kind not in REAL:
        raise TypeError(f"{array.dtype} is not a type of real numbers")
    return np.array(array, dtype=float)


def real_number(value: Any) -> float:
    """`value` as a float. Raises TypeError where it is not a real number, ValueError where a float cannot
    hold it.
    """
    if isinstance(value, np.generic | np.ndarray) and value.dtype.kind not in REAL + "O":
        raise TypeError(f"{value.dtype} is not a type of real numbers")
    if isinstance(value, str | bytes | bytearray | complex):
        raise TypeError(f"a {type(value).__name__} is not a real number")
    try:
        number = float(value)
    except OverflowError:
        raise ValueError("the integer is too large for a float") from None
    except RuntimeError as error:
        raise TypeError(str(error)) from None
    if number != number and not isinstance(value, float | np.generic | np.ndarray):
        raise TypeError(f"a {type(value).__name__} without a value is not a real number")
    return number


def remedy_for(value: Any) -> str:
    """What to do with a value of a library that differentiates, as the end of a sentence; "" for others."""
    if isinstance(value, np.ndarray) and value.dtype.kind == "O" and value.size:
        return remedy_for(value.flat[0])
    root = type(value).__module__.partition(".")[0]
    tool = "jax" if root == "jaxlib" else root
    if tool not in TOOLS:
        return ""
    symbolic = ", symbolic=True" if tool == "casadi" else ""
    return f"; for it make a function by zwang.interop.{tool}.function(fast.forward_dynamics{symbolic})"

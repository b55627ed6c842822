"""The primitives: elementary functions, comparisons and selection, each by the backend of its arguments."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from zwang.scalar.backend import Backend, backend_of, common_backend, register


def sqrt(x: Any) -> Any:
    """Square root; nan below zero."""
    return backend_of(x).sqrt(x)


def sin(x: Any) -> Any:
    """Sine of an angle in radians."""
    return backend_of(x).sin(x)


def cos(x: Any) -> Any:
    """Cosine of an angle in radians."""
    return backend_of(x).cos(x)


def tan(x: Any) -> Any:
    """Tangent of an angle in radians."""
    return backend_of(x).tan(x)


def asin(x: Any) -> Any:
    """Inverse sine, in [-pi/2, pi/2]; nan outside [-1, 1]."""
    return backend_of(x).asin(x)


def acos(x: Any) -> Any:
    """Inverse cosine, in [0, pi]; nan outside [-1, 1]."""
    return backend_of(x).acos(x)


def atan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y), in [-pi, pi]."""
    return common_backend(y, x).atan2(y, x)


def exp(x: Any) -> Any:
    """e to the power of x."""
    return backend_of(x).exp(x)


def log(x: Any) -> Any:
    """Natural logarithm; -inf at zero, nan below."""
    return backend_of(x).log(x)


def sinh(x: Any) -> Any:
    """Hyperbolic sine."""
    return backend_of(x).sinh(x)


def cosh(x: Any) -> Any:
    """Hyperbolic cosine."""
    return backend_of(x).cosh(x)


def tanh(x: Any) -> Any:
    """Hyperbolic tangent."""
    return backend_of(x).tanh(x)


def sech(x: Any) -> Any:
    """Hyperbolic secant, 1 / cosh(x), which falls to 0 where cosh(x) is infinite, as does its derivative."""
    return backend_of(x).sech(x)


def asinh(x: Any) -> Any:
    """Inverse hyperbolic sine."""
    return backend_of(x).asinh(x)


def acosh(x: Any) -> Any:
    """Inverse hyperbolic cosine, at least 0; nan below 1."""
    return backend_of(x).acosh(x)


def atanh(x: Any) -> Any:
    """Inverse hyperbolic tangent; infinite at -1 and 1, nan outside [-1, 1]."""
    return backend_of(x).atanh(x)


def power(x: Any, y: Any) -> Any:
    """x to the power of y. Constant half-integers y up to the backend's largest product (64 in size, but for
    polynomials) use products and one square root.
    """
    if type(x) is not np.ndarray and value_is_constant(y) and abs(y) <= 64 and 2 * y == int(2 * y):
        backend = backend_of(x)
        if abs(y) <= backend.largest_product(x):
            return backend.half_power(x, int(2 * y))
    return common_backend(x, y).power(x, y)


def divide(x: Any, y: Any) -> Any:
    """x / y, with inf or nan where Python's floats raise ZeroDivisionError."""
    return common_backend(x, y).divide(x, y)


def absolute(x: Any) -> Any:
    """Absolute value."""
    return backend_of(x).absolute(x)


def minimum(x: Any, y: Any) -> Any:
    """The smaller of two; nan if either is nan."""
    return common_backend(x, y).minimum(x, y)


def maximum(x: Any, y: Any) -> Any:
    """The larger of two; nan if either is nan."""
    return common_backend(x, y).maximum(x, y)


def clip(x: Any, low: Any, high: Any) -> Any:
    """x clipped to [low, high]."""
    return minimum(maximum(x, low), high)


def floor(x: Any) -> Any:
    """The largest whole number not above x."""
    return backend_of(x).floor(x)


def copysign(x: Any, y: Any) -> Any:
    """The magnitude of x with the sign of y; a negative zero counts as negative."""
    return common_backend(x, y).copysign(x, y)


def sign(x: Any) -> Any:
    """1 for positive, -1 for negative x; zero and nan are returned unchanged."""
    return where(less(0, x), 1, where(less(x, 0), -1, x))


def less(x: Any, y: Any) -> Any:
    """x < y, for scalars, as the operator, and for arrays."""
    return common_backend(x, y).less(x, y)


def less_equal(x: Any, y: Any) -> Any:
    """x <= y."""
    return common_backend(x, y).less_equal(x, y)


def equal(x: Any, y: Any) -> Any:
    """x == y in value; on symbols Python's == compares expressions instead."""
    return common_backend(x, y).equal(x, y)


def not_equal(x: Any, y: Any) -> Any:
    """x != y in value; true if either is nan."""
    return common_backend(x, y).not_equal(x, y)


def logical_and(p: Any, q: Any) -> Any:
    """Logical conjunction."""
    return common_backend(p, q).logical_and(p, q)


def logical_or(p: Any, q: Any) -> Any:
    """Logical disjunction."""
    return common_backend(p, q).logical_or(p, q)


def logical_not(p: Any) -> Any:
    """Logical negation."""
    return backend_of(p).logical_not(p)


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition is true, else y. Both are evaluated; the one not selected may be nan or inf."""
    if type(condition) is bool:
        return x if condition else y
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return elementwise(where, condition, x, y)
    return backend_of(condition).where(condition, x, y)


def floored_division(x: Any, y: Any) -> tuple[Any, Any]:
    """x // y and x % y, as Python's divmod of floats: the remainder has the sign of y.

    Where x / y rounds to a whole number the remainder may be 0 instead of almost y. inf and nan are as for
    `divide`.
    """
    whole = floor(divide(x, y))
    rest = x - y * whole
    passed = less(rest * y, 0)  # the quotient was rounded up
    return where(passed, whole - 1, whole), where(passed, rest + y, rest)


def symmetric_eigenvalues(matrix: Any) -> tuple[Any, ...]:
    """The eigenvalues, in ascending order, of a symmetric matrix (3, 3) of constants."""
    return common_backend(*(x for row in matrix for x in row)).symmetric_eigenvalues(matrix)


# ------------------------------------------------------------------------------ constants, symbols


def value_is_constant(x: Any) -> bool:
    """Whether x is a plain number, on whose value Python may branch."""
    return backend_of(x).constant


def are_constant(*values: Any) -> bool:
    """Whether all of these are plain numbers."""
    return all(value_is_constant(value) for value in values)


def raise_if(condition: Any, error: Callable[[], Exception | None]) -> None:
    """Raise error(), unless it is None, if the condition is a known truth value and true.

    A condition on traced values or symbols is not known yet: there the result has to report the error, by a
    status or by nan.
    """
    if value_is_constant(condition) and condition and (found := error()) is not None:
        raise found


def is_scalar(x: Any) -> bool:
    """Whether x is a scalar of some backend (number, expression, traced value), not an array or a string."""
    try:
        return backend_of(x).rank < ArrayBackend.rank
    except TypeError:
        return False


def is_zero(x: Any) -> bool:
    """Whether x is structurally zero: a constant zero, or an array of them. No traced value is evaluated."""
    return bool(backend_of(x).is_zero(x))


def is_truth(x: Any) -> bool:
    """Whether x is a truth value of some backend, as comparisons give it."""
    return backend_of(x).is_truth(x)


def reason_not_real(x: Any) -> str:
    """Why x cannot be a finite real number, as the end of a sentence; empty where it can be one."""
    return backend_of(x).reason_not_real(x)


def number_of_constant(x: Any) -> Any:
    """x as a number if it is an expression without symbols: an integer, or a float that keeps the expression.

    Other scalars are returned as they are. Raises TypeError for an expression without a real value.
    """
    return backend_of(x).number_of_constant(x)


def unit_vector(a: Sequence[Any]) -> tuple[Any, ...]:
    """The vector of expressions divided by its norm; as it is where the norm is 1 by an identity.

    Vectors of other scalars are returned as they are: those of a description are values of expressions, which
    were divided by their norm when the description was built.
    """
    backends = [backend_of(x) for x in a if not value_is_constant(x)]
    return backends[0].unit_vector(tuple(a)) if len(set(backends)) == 1 else tuple(a)


def substitute(x: Any, mapping: Mapping[Any, Any]) -> Any:
    """x with the symbols in `mapping` replaced by scalars of any backend; numbers are returned unchanged."""
    return backend_of(x).substitute(x, mapping)


def symbols_of(x: Any) -> frozenset[Any]:
    """The symbols on which x depends; empty for numbers."""
    return backend_of(x).symbols_of(x)


# ---------------------------------------------------------------------------------------------- arrays


class ArrayBackend(Backend):
    """Backend of arrays: each primitive is applied element by element, with NumPy's broadcasting."""

    rank = 2

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        if name.startswith("_"):
            raise AttributeError(name)
        primitive = globals()[name]
        return lambda *arrays: elementwise(primitive, *arrays)

    def substitute(self, x: Any, mapping: Mapping[Any, Any]) -> Any:
        return elementwise(lambda element: substitute(element, mapping), x)

    def symbols_of(self, x: Any) -> frozenset[Any]:
        return frozenset().union(*(symbols_of(element) for element in x.flat))

    def is_zero(self, x: Any) -> bool:
        return not x.any() if x.dtype != object else all(is_zero(element) for element in x.flat)


def elementwise(primitive: Callable, *values: Any) -> np.ndarray:
    """The primitive applied to each element, with NumPy's broadcasting; floats give an array of floats."""
    arrays = [np.asarray(value) for value in values]
    objects = np.broadcast_arrays(*(array.astype(object) for array in arrays))
    results = [primitive(*elements) for elements in zip(*(array.flat for array in objects), strict=True)]
    out = np.empty(len(results), dtype=object)
    out[:] = results
    out = out.reshape(objects[0].shape)
    if any(array.dtype == object for array in arrays):
        return out
    return out.astype(bool if results and isinstance(results[0], (bool, np.bool_)) else float)


register(np.ndarray, ArrayBackend())

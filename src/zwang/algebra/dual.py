"""Dual numbers: forward-mode differentiation of any algorithm, over scalars of any backend.

An algorithm that is evaluated on `Dual(x, x_dot)` returns its value and its exact derivative along x_dot. An
algorithm that differentiates by `SecondOrder` numbers may itself be evaluated on `Dual` numbers. At a kink
the derivative of minimum is a one-sided one, and that of absolute the mean of both sides, 0.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from zwang import scalar
from zwang.scalar import cos, divide, exp, log, sin, sqrt
from zwang.scalar.primitives import floored_division


class Dual:
    """A dual number: a value and its derivative."""

    __slots__ = ("derivative", "value")
    level = 1

    def __init__(self, value: Any, derivative: Any) -> None:
        self.value = value
        self.derivative = derivative

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.value!r}, {self.derivative!r})"

    @property
    def exact(self) -> bool:
        """Whether the components are exact fractions."""
        return getattr(self.value, "exact", False)

    def _parts(self, other: Any) -> tuple[Any, Any] | None:
        """Value and derivative of the other operand at this level; None where it has a higher level or is an
        array.
        """
        if type(other) is type(self):
            return other.value, other.derivative
        if isinstance(other, np.ndarray) or getattr(other, "level", 0) > self.level:
            return None
        return other, 0

    def __add__(self, other: Any) -> Any:
        parts = self._parts(other)
        if parts is None:
            return NotImplemented
        x, xd = parts
        derivative = self.derivative if _is_literal_zero(xd) else self.derivative + xd
        return type(self)(self.value + x, derivative)

    __radd__ = __add__

    def __neg__(self) -> Any:
        return type(self)(-self.value, -self.derivative)

    def __pos__(self) -> Any:
        return self

    def __sub__(self, other: Any) -> Any:
        parts = self._parts(other)
        if parts is None:
            return NotImplemented
        x, xd = parts
        derivative = self.derivative if _is_literal_zero(xd) else self.derivative - xd
        return type(self)(self.value - x, derivative)

    def __rsub__(self, other: Any) -> Any:
        return (-self).__add__(other)

    def __mul__(self, other: Any) -> Any:
        parts = self._parts(other)
        if parts is None:
            return NotImplemented
        (x, xd), kind = parts, type(self)
        # products with what is known to be 0 are left out: numbers of n levels would have 3^n of them
        if _is_literal_zero(xd):
            return kind(self.value * x, 0 if _is_literal_zero(self.derivative) else self.derivative * x)
        if _is_literal_zero(self.derivative):
            return kind(self.value * x, self.value * xd)
        return kind(self.value * x, self.derivative * x + self.value * xd)

    __rmul__ = __mul__

    def __truediv__(self, other: Any) -> Any:
        parts = self._parts(other)
        return (
            NotImplemented if parts is None else _quotient(type(self), (self.value, self.derivative), parts)
        )

    def __rtruediv__(self, other: Any) -> Any:
        parts = self._parts(other)
        return (
            NotImplemented if parts is None else _quotient(type(self), parts, (self.value, self.derivative))
        )

    def __pow__(self, exponent: Any) -> Any:
        return scalar.power(self, exponent)

    def __divmod__(self, other: Any) -> Any:
        return NotImplemented if self._parts(other) is None else floored_division(self, other)

    def __rdivmod__(self, other: Any) -> Any:
        return NotImplemented if self._parts(other) is None else floored_division(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return NotImplemented if self._parts(other) is None else floored_division(self, other)[0]

    def __rfloordiv__(self, other: Any) -> Any:
        return NotImplemented if self._parts(other) is None else floored_division(other, self)[0]

    def __mod__(self, other: Any) -> Any:
        return NotImplemented if self._parts(other) is None else floored_division(self, other)[1]

    def __rmod__(self, other: Any) -> Any:
        return NotImplemented if self._parts(other) is None else floored_division(other, self)[1]

    def __abs__(self) -> Any:
        return scalar.absolute(self)

    def __lt__(self, other: Any) -> Any:
        return scalar.less(self, other)

    def __le__(self, other: Any) -> Any:
        return scalar.less_equal(self, other)

    def __gt__(self, other: Any) -> Any:
        return scalar.less(other, self)

    def __ge__(self, other: Any) -> Any:
        return scalar.less_equal(other, self)


class SecondOrder(Dual):
    """A dual number whose value and derivative may be `Dual` numbers themselves."""

    __slots__ = ()
    level = 2


def _is_literal_zero(x: Any) -> bool:
    return type(x) is int and x == 0


def _quotient(kind: type[Dual], a: tuple[Any, Any], b: tuple[Any, Any]) -> Dual:
    x = divide(a[0], b[0])
    rise = a[1] if _is_literal_zero(b[1]) else a[1] - x * b[1]
    return kind(x, 0 if _is_literal_zero(rise) else divide(rise, b[0]))


class DualCondition:
    """The result of a comparison of dual numbers, by which `where` selects values and derivatives."""

    __slots__ = ("truth",)

    def __init__(self, truth: Any) -> None:
        self.truth = truth


class DualBackend(scalar.Backend):
    """Backend of dual numbers: the primitives with their derivatives."""

    def __init__(self, kind: type[Dual]) -> None:
        self.kind = kind
        self.rank = 1 + kind.level / 10

    def _parts(self, x: Any) -> tuple[Any, Any]:
        return (x.value, x.derivative) if type(x) is self.kind else (x, 0)

    def _chain(self, x: Any, value: Any, slope: Any) -> Dual:
        return self.kind(value, 0 if _is_literal_zero(x.derivative) else slope * x.derivative)

    def sin(self, x: Any) -> Any:
        return self._chain(x, sin(x.value), cos(x.value))

    def cos(self, x: Any) -> Any:
        return self._chain(x, cos(x.value), -sin(x.value))

    def tan(self, x: Any) -> Any:
        t = scalar.tan(x.value)
        return self._chain(x, t, 1 + t * t)

    def asin(self, x: Any) -> Any:
        return self._chain(x, scalar.asin(x.value), divide(1, sqrt(1 - x.value * x.value)))

    def acos(self, x: Any) -> Any:
        return self._chain(x, scalar.acos(x.value), -divide(1, sqrt(1 - x.value * x.value)))

    def exp(self, x: Any) -> Any:
        e = exp(x.value)
        return self._chain(x, e, e)

    def log(self, x: Any) -> Any:
        return self._chain(x, log(x.value), divide(1, x.value))

    def sinh(self, x: Any) -> Any:
        return self._chain(x, scalar.sinh(x.value), scalar.cosh(x.value))

    def cosh(self, x: Any) -> Any:
        return self._chain(x, scalar.cosh(x.value), scalar.sinh(x.value))

    def tanh(self, x: Any) -> Any:
        s = scalar.sech(x.value)  # 1 - tanh^2 would cancel
        return self._chain(x, scalar.tanh(x.value), s * s)

    def sech(self, x: Any) -> Any:
        s = scalar.sech(x.value)
        return self._chain(x, s, -s * scalar.tanh(x.value))

    def asinh(self, x: Any) -> Any:
        return self._chain(x, scalar.asinh(x.value), divide(1, sqrt(x.value * x.value + 1)))

    def acosh(self, x: Any) -> Any:
        return self._chain(x, scalar.acosh(x.value), divide(1, sqrt((x.value - 1) * (x.value + 1))))

    def atanh(self, x: Any) -> Any:
        return self._chain(x, scalar.atanh(x.value), divide(1, (1 - x.value) * (1 + x.value)))

    def sqrt(self, x: Any) -> Any:
        root = sqrt(x.value)
        return self._chain(x, root, divide(1, 2 * root))

    def absolute(self, x: Any) -> Any:
        return self._chain(x, scalar.absolute(x.value), scalar.sign(x.value))

    def floor(self, x: Any) -> Any:
        return self.kind(scalar.floor(x.value), 0)

    def divide(self, x: Any, y: Any) -> Any:
        return _quotient(self.kind, self._parts(x), self._parts(y))

    def atan2(self, y: Any, x: Any) -> Any:
        (b, bd), (a, ad) = self._parts(y), self._parts(x)
        return self.kind(scalar.atan2(b, a), divide(a * bd - b * ad, a * a + b * b))

    def power(self, x: Any, y: Any) -> Any:
        (a, ad), (b, bd) = self._parts(x), self._parts(y)
        value = scalar.power(a, b)
        derivative = b * scalar.power(a, b - 1) * ad
        if not scalar.is_zero(bd):  # 0^y = 0 for all y > 0
            derivative = derivative + value * log(scalar.where(scalar.equal(a, 0), 1, a)) * bd
        return self.kind(value, derivative)

    def largest_product(self, x: Any) -> int:
        return scalar.backend_of(x.value).largest_product(x.value)

    def half_power(self, x: Any, twice: int) -> Any:
        """As for other numbers, but x^(3/2), x^(5/2), ... have the derivative 0 at 0, where sqrt has none."""
        if twice < 3 or twice % 2 == 0:
            return super().half_power(x, twice)
        slope = twice / 2 * scalar.power(x.value, twice / 2 - 1)
        return self._chain(x, scalar.power(x.value, twice / 2), slope)

    def copysign(self, x: Any, y: Any) -> Any:
        (a, ad), (b, _) = self._parts(x), self._parts(y)
        value = scalar.copysign(a, b)
        return self.kind(value, ad * scalar.sign(a) * scalar.copysign(1, b))

    def minimum(self, x: Any, y: Any) -> Any:
        return self.where(self.less(x, y), x, y)

    def maximum(self, x: Any, y: Any) -> Any:
        return self.where(self.less(y, x), x, y)

    def less(self, x: Any, y: Any) -> Any:
        return _choice(scalar.less(self._parts(x)[0], self._parts(y)[0]))

    def less_equal(self, x: Any, y: Any) -> Any:
        return _choice(scalar.less_equal(self._parts(x)[0], self._parts(y)[0]))

    def equal(self, x: Any, y: Any) -> Any:
        return _choice(scalar.equal(self._parts(x)[0], self._parts(y)[0]))

    def not_equal(self, x: Any, y: Any) -> Any:
        return _choice(scalar.not_equal(self._parts(x)[0], self._parts(y)[0]))

    def logical_and(self, p: Any, q: Any) -> Any:
        return _choice(scalar.logical_and(_truth(p), _truth(q)))

    def logical_or(self, p: Any, q: Any) -> Any:
        return _choice(scalar.logical_or(_truth(p), _truth(q)))

    def logical_not(self, p: Any) -> Any:
        return _choice(scalar.logical_not(_truth(p)))

    def where(self, condition: Any, x: Any, y: Any) -> Any:
        kind = _kind_of(x, y)
        truth = _truth(condition)
        if kind is None:
            chosen = scalar.where(truth, _truth(x), _truth(y))
            return _choice(chosen) if isinstance(x, DualCondition) or isinstance(y, DualCondition) else chosen
        (a, ad), (b, bd) = ((z.value, z.derivative) if type(z) is kind else (z, 0) for z in (x, y))
        return kind(scalar.where(truth, a, b), scalar.where(truth, ad, bd))

    def cond(self, predicate: Any, then: Callable, otherwise: Callable, operands: tuple) -> Any:
        """The branch that is taken where that is known, else both, between which `where` selects."""
        truth = _truth(predicate)
        if scalar.value_is_constant(truth):
            return then(*operands) if truth else otherwise(*operands)
        chosen, other = then(*operands), otherwise(*operands)
        both = zip(scalar.leaves_of(chosen), scalar.leaves_of(other), strict=True)
        return scalar.rebuild(chosen, [self.where(truth, x, y) for x, y in both])

    def is_truth(self, x: Any) -> bool:
        return isinstance(x, DualCondition)

    def without_derivatives(self, function: Callable, operands: tuple) -> Any:
        leaves = [self._parts(_truth(x))[0] for x in scalar.leaves_of(operands)]
        return scalar.without_derivatives(function, *scalar.rebuild(operands, leaves))

    def substitute(self, x: Any, mapping: Any) -> Any:
        return self.kind(scalar.substitute(x.value, mapping), scalar.substitute(x.derivative, mapping))

    def is_zero(self, x: Any) -> bool:
        return isinstance(x, Dual) and scalar.is_zero(x.value) and scalar.is_zero(x.derivative)


def _choice(truth: Any) -> Any:
    return truth if isinstance(truth, (bool, DualCondition)) else DualCondition(truth)


def _truth(p: Any) -> Any:
    return p.truth if isinstance(p, DualCondition) else p


def _kind_of(*values: Any) -> type[Dual] | None:
    kinds = [type(x) for x in values if isinstance(x, Dual)]
    return max(kinds, key=lambda kind: kind.level) if kinds else None


@cache
def dual_kind(depth: int) -> type[Dual]:
    """The dual numbers of this depth of nesting, from 0: those of an algorithm that itself runs on the dual
    numbers of all smaller depths. Algorithms that use `SecondOrder` numbers may run on those of any depth.
    """
    if depth == 0:
        return Dual
    members = {"__slots__": (), "level": 1 + depth / (depth + 1), "__doc__": f"Dual numbers, nested {depth}."}
    kind = type(f"Dual{depth}", (Dual,), members)
    scalar.register(kind, DualBackend(kind))
    return kind


scalar.register(Dual, DualBackend(Dual))
scalar.register(SecondOrder, DualBackend(SecondOrder))
scalar.register(DualCondition, DualBackend(Dual))


def derivative_along(
    function: Callable[[Any], Any], x: Any, derivative: Any, kind: type[Dual] = Dual
) -> tuple[np.ndarray, np.ndarray]:
    """function(x) and its directional derivative along `derivative`, by dual numbers.

    x, derivative: sequences of scalars of any backend. function: from an array of dual numbers to an array.
    """
    duals = np.empty(len(x), dtype=object)
    duals[:] = [kind(a, b) for a, b in zip(x, derivative, strict=True)]
    return values_and_derivatives(function(duals), kind)


def values_and_derivatives(result: Any, kind: type[Dual] = Dual) -> tuple[np.ndarray, np.ndarray]:
    """The values and the derivatives of an array of dual numbers; plain scalars have the derivative 0."""
    array = np.asarray(result, dtype=object)
    values, derivatives = np.empty(array.shape, dtype=object), np.empty(array.shape, dtype=object)
    for index, item in np.ndenumerate(array):
        values[index], derivatives[index] = (item.value, item.derivative) if type(item) is kind else (item, 0)
    return values, derivatives

"""The backend of floats: Python's and NumPy's numbers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from zwang.scalar.arrays import MutableArray, Table, clamped_index
from zwang.scalar.backend import Backend, register


def _guarded(function: Callable[..., float], ufunc: Callable[..., Any], exact: Mapping[int, int]) -> Any:
    """`function` of math, with NumPy's result where it would raise, and exact integers for some exact
    arguments.
    """

    def evaluate(x: Any) -> Any:
        if type(x) is int and x in exact:
            return exact[x]
        try:
            return function(x)
        except (ValueError, OverflowError):
            return _quietly(ufunc, x)

    return staticmethod(evaluate)


def _quietly(ufunc: Callable[..., Any], *args: Any) -> float:
    with np.errstate(all="ignore"):
        return float(ufunc(*(np.float64(a) for a in args)))


class FloatBackend(Backend):
    """Floats, integers and booleans of Python and NumPy."""

    rank = 0
    constant = True

    sin = _guarded(math.sin, np.sin, {0: 0})
    cos = _guarded(math.cos, np.cos, {0: 1})
    tan = _guarded(math.tan, np.tan, {0: 0})
    asin = _guarded(math.asin, np.arcsin, {0: 0})
    acos = _guarded(math.acos, np.arccos, {1: 0})
    exp = _guarded(math.exp, np.exp, {0: 1})
    log = _guarded(math.log, np.log, {1: 0})
    sinh = _guarded(math.sinh, np.sinh, {0: 0})
    cosh = _guarded(math.cosh, np.cosh, {0: 1})
    tanh = _guarded(math.tanh, np.tanh, {0: 0})
    asinh = _guarded(math.asinh, np.arcsinh, {0: 0})
    acosh = _guarded(math.acosh, np.arccosh, {1: 0})
    atanh = _guarded(math.atanh, np.arctanh, {0: 0})
    absolute = staticmethod(abs)

    @staticmethod
    def sech(x: Any) -> Any:
        if type(x) is int and x == 0:
            return 1
        g = math.exp(-abs(x))  # cosh would be infinite where sech is not yet 0
        return 2 * g / (1 + g * g)

    @staticmethod
    def sqrt(x: Any) -> Any:
        if type(x) is int and x >= 0 and (root := math.isqrt(x)) ** 2 == x:
            return root
        return math.sqrt(x) if x >= 0 else math.nan if x < 0 else float(x)

    @staticmethod
    def floor(x: Any) -> Any:
        return x if type(x) is int else float(np.floor(x))

    @staticmethod
    def atan2(y: Any, x: Any) -> Any:
        if type(y) is int and y == 0 and type(x) is int and x >= 0:
            return 0
        return math.atan2(y, x)

    @staticmethod
    def copysign(x: Any, y: Any) -> float:
        return math.copysign(x, y)

    @staticmethod
    def power(x: Any, y: Any) -> Any:
        try:
            return math.pow(x, y)
        except (ValueError, OverflowError):
            return _quietly(np.power, x, y)

    @staticmethod
    def divide(x: Any, y: Any) -> Any:
        return x / y if y != 0 else _quietly(np.divide, x, y)

    @staticmethod
    def minimum(x: Any, y: Any) -> Any:
        return x if x < y or x != x else y

    @staticmethod
    def maximum(x: Any, y: Any) -> Any:
        return x if x > y or x != x else y

    @staticmethod
    def where(condition: Any, x: Any, y: Any) -> Any:
        return x if condition else y

    @staticmethod
    def logical_and(p: Any, q: Any) -> bool:
        return bool(p) and bool(q)

    @staticmethod
    def logical_or(p: Any, q: Any) -> bool:
        return bool(p) or bool(q)

    @staticmethod
    def logical_not(p: Any) -> bool:
        return not p

    @staticmethod
    def less(x: Any, y: Any) -> bool:
        return bool(x < y)

    @staticmethod
    def less_equal(x: Any, y: Any) -> bool:
        return bool(x <= y)

    @staticmethod
    def equal(x: Any, y: Any) -> bool:
        return bool(x == y)

    @staticmethod
    def not_equal(x: Any, y: Any) -> bool:
        return bool(x != y)

    def is_zero(self, x: Any) -> bool:
        return x == 0

    def is_truth(self, x: Any) -> bool:
        return isinstance(x, (bool, np.bool_))

    def symmetric_eigenvalues(self, matrix: Any) -> tuple[float, ...]:
        return tuple(np.linalg.eigvalsh(np.asarray(matrix, dtype=float)).tolist())

    def allocate(self, shape: tuple[int, ...], uninitialised: bool) -> MutableArray:
        return MutableArray(shape, [math.nan if uninitialised else 0.0] * math.prod(shape))

    def active_indices(self, flags: MutableArray, end: int) -> list[int]:
        """The active indices, zeros up to the length of the flags, and their number."""
        found = [i for i in range(end) if flags[i] > 0]
        return [*found, *[0] * (flags.shape[0] - len(found)), len(found)]

    def active_index(self, indices: list[int], position: int, length: int) -> int:
        return indices[position]

    def count(self, indices: list[int], length: int) -> int:
        return indices[-1]

    def active_loop(self, indices: list[int], count: int, body: Callable, init: Any) -> Any:
        carry = init
        for i in indices[: indices[-1]]:
            carry = body(i, carry)
        return carry

    def lane_number(self) -> float:
        return 0.0

    def lane_maximum(self, x: Any, limit: int) -> int:
        return clamped_index(x, limit + 1)

    def gather_table(self, table: Table, index: Any) -> Any:
        return table.entries[index]


FLOATS = FloatBackend()
for _kind in (float, int, bool, np.floating, np.integer, np.bool_, MutableArray):
    register(_kind, FLOATS)

"""The values of one scalar in several worlds, with which a description is validated for all of them at once.

Python may branch on them as on numbers, as long as all worlds take the same branch. Where they do not,
`WorldsDiffer` says which worlds belong together, so that each group can be evaluated anew. Every world thus
takes the path that it takes alone, and its values are those that floats have there, bit for bit.
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from zwang.scalar.backend import Backend, register
from zwang.scalar.float_backend import FLOATS
from zwang.scalar.real import REAL


class WorldsDiffer(Exception):
    """Raised where worlds take different branches. labels (n,): equal where worlds belong together."""

    def __init__(self, labels: np.ndarray):
        super().__init__("the worlds take different branches")
        self.labels = labels


class WorldValues:
    """The values (n,) of a scalar, or of a condition, in n worlds."""

    __slots__ = ("values",)

    def __init__(self, values: np.ndarray):
        if values.dtype.kind not in REAL:
            raise TypeError(f"the values of worlds are of the type {values.dtype}, which is not real")
        self.values = values

    def __bool__(self) -> bool:
        """The truth that all worlds agree on. Raises WorldsDiffer."""
        return bool(_common(self.values.astype(bool)))

    def __float__(self) -> float:
        """The value that all worlds have. Raises WorldsDiffer."""
        return float(_common(self.values))

    __hash__ = object.__hash__

    def __neg__(self) -> WorldValues:
        return WorldValues(-self.values)

    def __pos__(self) -> WorldValues:
        return self

    def __abs__(self) -> WorldValues:
        return WorldValues(np.abs(self.values))


def _common(values: np.ndarray) -> Any:
    """The element that all are equal to. Raises WorldsDiffer."""
    different, labels = np.unique(values, return_inverse=True)
    if len(different) > 1:
        raise WorldsDiffer(labels)
    return different[0]


def _divided(x: Any, y: Any) -> Any:
    """x / y. Raises ZeroDivisionError, as Python does, and WorldsDiffer where only some divisors are zero."""
    if _common(np.asarray(y) == 0):
        raise ZeroDivisionError("float division by zero")
    return np.divide(x, y)


def _raised(x: Any, y: Any) -> np.ndarray:
    """x ** y, by Python's operator, whose last digit NumPy's does not always have."""
    pairs = zip(*(a.tolist() for a in np.broadcast_arrays(x, y)), strict=True)
    return np.array([a**b for a, b in pairs])


def _operation(function: Callable[[Any, Any], Any], *, swapped: bool = False) -> Callable[[Any, Any], Any]:
    """The method of an operator, also with a number; `swapped` if the number is on the left."""

    def method(self: WorldValues, other: Any) -> Any:
        if isinstance(other, WorldValues):
            other = other.values
        elif not isinstance(other, float | int | np.number):
            return NotImplemented
        with np.errstate(all="ignore"):
            x, y = (other, self.values) if swapped else (self.values, other)
            return WorldValues(function(x, y))

    return method


for _name, _function in (("add", np.add), ("sub", np.subtract), ("mul", np.multiply), ("truediv", _divided),
                         ("pow", _raised)):  # fmt: skip
    setattr(WorldValues, f"__{_name}__", _operation(_function))
    setattr(WorldValues, f"__r{_name}__", _operation(_function, swapped=True))
for _name in ("lt", "le", "gt", "ge", "eq", "ne"):
    setattr(WorldValues, f"__{_name}__", _operation(getattr(operator, _name)))


class WorldBackend(Backend):
    """The primitives on the values of worlds, each world by that of floats."""

    rank = 0.5  # they meet numbers alone
    constant = True

    def __getattr__(self, name: str) -> Callable[..., Any]:
        function = getattr(FLOATS, name)

        def of_worlds(*args: Any) -> WorldValues:
            columns = (x.tolist() for x in np.broadcast_arrays(*map(_array, args)))
            return WorldValues(np.array([function(*row) for row in zip(*columns, strict=True)]))

        return of_worlds

    def is_zero(self, x: WorldValues) -> bool:
        return bool(x == 0)

    def is_truth(self, x: WorldValues) -> bool:
        return x.values.dtype == bool

    def divide(self, x: Any, y: Any) -> WorldValues:
        with np.errstate(all="ignore"):
            return WorldValues(np.divide(_array(x), _array(y)))

    def number_of_constant(self, x: WorldValues) -> Any:
        """x where it is finite, otherwise the number in all worlds. Raises WorldsDiffer."""
        finite = np.isfinite(x.values)
        return x if finite.all() else float(_common(np.where(finite, 0, x.values)))

    def symmetric_eigenvalues(self, matrix: Any) -> tuple[WorldValues, ...]:
        columns = np.broadcast_arrays(*(_array(x) for row in matrix for x in row))
        stacked = np.stack(columns, axis=-1).astype(float).reshape(-1, 3, 3)
        return tuple(WorldValues(x) for x in np.linalg.eigvalsh(stacked).T)


def _array(x: Any) -> np.ndarray:
    return x.values if isinstance(x, WorldValues) else np.asarray(x)


register(WorldValues, WorldBackend())

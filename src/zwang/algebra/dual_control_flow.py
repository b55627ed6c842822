"""Tangents through loops, branches and arrays: forward-mode differentiation of whole algorithms.

A `Tangent` is a dual number below all other dual numbers, so that an algorithm may differentiate by `Dual`
numbers inside. While `tangents()` is entered, control flow carries the value and the derivative of each
number side by side, on floats as in traced code: a loop of the algorithm becomes one loop of both. Branches
and the number of iterations follow the values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from zwang import scalar
from zwang.algebra.dual import Dual, DualBackend, DualCondition
from zwang.scalar import MutableArray, leaves_of, rebuild, zeros
from zwang.scalar.backend import Backend, current_backend, use_backend
from zwang.scalar.float_backend import FLOATS

NUMBER, TRUTH, ARRAY = "number", "truth", "array"


class Tangent(Dual):
    """A value and its derivative along one direction, below all other dual numbers."""

    __slots__ = ()
    level = 0.5


scalar.register(Tangent, DualBackend(Tangent))


class TangentArray(MutableArray):
    """A mutable array of tangents: the array of their values and that of their derivatives."""

    __slots__ = ("derivatives", "values")

    def __init__(self, values: MutableArray, derivatives: MutableArray) -> None:
        super().__init__(values.shape, None)
        self.values = values
        self.derivatives = derivatives

    def _load(self, position: Any) -> Any:
        return Tangent(self.values._load(position), self.derivatives._load(position))

    def _store(self, position: Any, value: Any) -> MutableArray:
        x, dx = parts(value)
        return TangentArray(self.values._store(position, x), self.derivatives._store(position, dx))

    def gather(self, position: Any) -> Any:
        at = value_of(position)
        return Tangent(self.values.gather(at), self.derivatives.gather(at))

    def scatter(self, position: Any, value: Any) -> MutableArray:
        at, (x, dx) = value_of(position), parts(value)
        return TangentArray(self.values.scatter(at, x), self.derivatives.scatter(at, dx))


def parts(x: Any) -> tuple[Any, Any]:
    """The value of a scalar and its derivative, 0 for one that is no tangent."""
    return (x.value, x.derivative) if type(x) is Tangent else (x, 0)


def value_of(x: Any) -> Any:
    """The value of a scalar or the truth of a condition, without its derivative."""
    if type(x) is DualCondition:
        return value_of(x.truth)
    if isinstance(x, TangentArray):
        return x.values
    return x.value if type(x) is Tangent else x


def values_of(tree: Any) -> Any:
    """A pytree with the values of its tangents."""
    return rebuild(tree, [value_of(x) for x in leaves_of(tree)])


def _constant(x: Any) -> Any:
    """An array of values as an array of tangents whose derivatives are zero; other leaves as they are."""
    return TangentArray(x, zeros(x.shape)) if isinstance(x, MutableArray) else x


class TangentControlFlow(Backend):
    """Control flow over tangents, by that of their values and derivatives in another backend."""

    transforms = True

    def __init__(self, inner: Backend) -> None:
        self.inner = inner

    def allocate(self, shape: tuple[int, ...], uninitialised: bool) -> MutableArray:
        return TangentArray(*(self.inner.allocate(shape, uninitialised) for _ in range(2)))

    def while_loop(self, condition: Callable, body: Callable, init: Any) -> Any:
        packed = _Packed(init)
        last = self.inner.while_loop(
            lambda carry: value_of(condition(packed.unpack(carry))), packed.body(body), packed.leaves
        )
        return packed.unpack(last)

    def cond(self, predicate: Any, then: Callable, otherwise: Callable, operands: tuple) -> Any:
        packed = _Packed(operands)
        kinds: list[_Packed] = []

        def branch(function: Callable) -> Callable:
            def call(*leaves: Any) -> list[Any]:
                returned = _Packed(function(*packed.unpack(leaves)))
                kinds.append(returned)
                return returned.leaves

            return call

        found = self.inner.cond(value_of(predicate), branch(then), branch(otherwise), tuple(packed.leaves))
        return kinds[-1].unpack(found)

    def static_loop(self, count: int, body: Callable, init: Any, unroll: bool | None) -> Any:
        packed = _Packed(init)
        return packed.unpack(self.inner.static_loop(count, packed.indexed_body(body), packed.leaves, unroll))

    def dynamic_loop(self, bounds: tuple[Any, Any], reverse: bool, body: Callable, init: Any) -> Any:
        packed = _Packed(init)
        return packed.unpack(
            self.inner.dynamic_loop(bounds, reverse, packed.indexed_body(body), packed.leaves)
        )

    def without_derivatives(self, function: Callable, operands: tuple) -> Any:
        with use_backend(self.inner):
            found = function(*values_of(operands))
            return rebuild(found, [_constant(x) for x in leaves_of(found)])

    def active_indices(self, flags: Any, end: Any) -> Any:
        return self.inner.active_indices(flags.values, end)

    def active_index(self, items: Any, position: Any, length: int) -> Any:
        return self.inner.active_index(items, position, length)

    def count(self, items: Any, length: int) -> Any:
        return self.inner.count(items, length)

    def active_loop(self, items: Any, count: int, body: Callable, init: Any) -> Any:
        packed = _Packed(init)
        return packed.unpack(self.inner.active_loop(items, count, packed.indexed_body(body), packed.leaves))

    def lane_number(self) -> Any:
        return self.inner.lane_number()

    def lane_maximum(self, x: Any, limit: int) -> Any:
        return self.inner.lane_maximum(value_of(x), limit)


class _Packed:
    """The leaves of a pytree for the inner backend: two for a number or an array, one for a truth value, and
    those of both parts for dual numbers above tangents.
    """

    def __init__(self, tree: Any) -> None:
        self.tree = tree
        self.leaves: list[Any] = []
        self.kinds = [self._add(leaf) for leaf in leaves_of(tree)]

    def _add(self, leaf: Any) -> Any:
        """The kind of a leaf, whose parts are added to the leaves; for dual numbers (class, both kinds)."""
        if isinstance(leaf, Dual) and type(leaf) is not Tangent:
            return type(leaf), self._add(leaf.value), self._add(leaf.derivative)
        if isinstance(leaf, TangentArray):
            self.leaves += (leaf.values, leaf.derivatives)
            return ARRAY
        if scalar.is_truth(leaf):
            self.leaves.append(value_of(leaf))
            return TRUTH
        self.leaves += parts(leaf)
        return NUMBER

    def unpack(self, leaves: Sequence[Any]) -> Any:
        """The pytree with these leaves of the inner backend."""
        remaining = iter(leaves)
        return rebuild(self.tree, [_leaf(kind, remaining) for kind in self.kinds])

    def body(self, body: Callable) -> Callable:
        """A loop's body on leaves of the inner backend."""
        return lambda carry: _Packed(body(self.unpack(carry))).leaves

    def indexed_body(self, body: Callable) -> Callable:
        """The body of a loop with an index, on leaves of the inner backend."""
        return lambda i, carry: _Packed(body(i, self.unpack(carry))).leaves


def _leaf(kind: Any, remaining: Iterator[Any]) -> Any:
    """The leaf of this kind, from the next of the remaining leaves of the inner backend."""
    if isinstance(kind, tuple):
        dual, *both = kind
        return dual(*(_leaf(part, remaining) for part in both))
    x = next(remaining)
    if kind == TRUTH:
        return x if isinstance(x, (bool, np.bool_)) else DualCondition(x)
    dx = next(remaining)
    if kind == ARRAY:
        return TangentArray(x, dx)
    return x if scalar.value_is_constant(dx) and dx == 0 else Tangent(x, dx)


@contextmanager
def tangents() -> Iterator[None]:
    """Context in which loops, branches and new arrays carry derivatives beside values."""
    with use_backend(TangentControlFlow(current_backend() or FLOATS)):
        yield


def tangent_array(values: Any, derivatives: Any) -> np.ndarray:
    """An array of tangents, elementwise."""
    out = np.empty(len(values), dtype=object)
    out[:] = [Tangent(x, dx) for x, dx in zip(values, derivatives, strict=True)]
    return out


def linear_response(
    solve: Callable[..., MutableArray], data: Any, values: MutableArray, *operands: Any
) -> Any:
    """The array of tangents with these values and the derivatives solve(derivatives of the data, *operands),
    which are linear in the former; on values of the operands.

    data: a pytree of arrays of tangents. So the derivative of an equation's solution, whose values are known,
    costs one linear problem. Raises TypeError outside of `tangents`.
    """
    flow = current_backend()
    if not isinstance(flow, TangentControlFlow):
        raise TypeError("a linear response is that of tangents: call it within tangents()")
    rates = rebuild(data, [x.derivatives for x in leaves_of(data)])
    with use_backend(flow.inner):
        return TangentArray(value_of(values), solve(rates, *values_of(operands)))

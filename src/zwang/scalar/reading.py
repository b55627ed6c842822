"""Readings: which object answers the primitives for which type of scalar."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any


class Reading:
    """How one kind of scalar answers the primitives; a subclass adds a method for each that its kind has.

    Beside the primitives' own names a reading may answer `substitute(x, mapping)`, `symbols_of(x)`, `is_zero(x)`
    and `look_up(table, index)`. Where readings mix, the one of higher rank takes the call.
    """

    rank = 1

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]:  # sin, sqrt, ...: those that its kind has
            ...

    def substitute(self, x: Any, mapping: Mapping[Any, Any]) -> Any:
        return x

    def symbols_of(self, x: Any) -> frozenset[Any]:
        return frozenset()

    def is_zero(self, x: Any) -> bool:
        return False

    def divide(self, x: Any, y: Any) -> Any:
        return x / y

    def less(self, x: Any, y: Any) -> Any:
        return x < y

    def less_equal(self, x: Any, y: Any) -> Any:
        return x <= y

    def look_up(self, table: Any, index: Any) -> Any:
        raise TypeError(f"a table is read at an integer, not at {type(index).__name__}")

    def while_loop(self, condition: Callable, body: Callable, init: Any) -> Any:
        carry = init
        while condition(carry):
            carry = body(carry)
        return carry

    def when(self, predicate: Any, then: Callable, otherwise: Callable, operands: tuple) -> Any:
        return then(*operands) if predicate else otherwise(*operands)

    def for_each(self, count: int, body: Callable, init: Any, unroll: bool | None) -> Any:
        carry = init
        for i in range(count):
            carry = body(i, carry)
        return carry

    def for_span(self, ends: tuple[int, int], backwards: bool, body: Callable, init: Any) -> Any:
        carry = init
        for i in reversed(range(*ends)) if backwards else range(*ends):
            carry = body(i, carry)
        return carry


_READINGS: dict[type, Reading] = {}
_LAZY: dict[str, Callable[[], object]] = {}
_DECODERS: dict[str, Callable[[Any], Any]] = {}
_AT_HAND: ContextVar[Reading | None] = ContextVar("reading at hand", default=None)


def register(scalar_type: type, reading: Reading) -> None:
    """Let `reading` answer the primitives for `scalar_type` and its subclasses."""
    _READINGS[scalar_type] = reading


def register_lazily(module_prefix: str, loader: Callable[[], object]) -> None:
    """Call `loader`, which has to `register`, when a type of a module under `module_prefix` is first met."""
    _LAZY[module_prefix] = loader


def reading_of(x: Any) -> Reading:
    """The reading that answers for x."""
    reading = _READINGS.get(type(x))
    return reading if reading is not None else _find(type(x))


@contextmanager
def at_hand(reading: Reading) -> Iterator[None]:
    """Within it, control flow and scratch arrays go to `reading`, even where all values at hand are numbers."""
    token = _AT_HAND.set(reading)
    try:
        yield
    finally:
        _AT_HAND.reset(token)


def reading_at_hand() -> Reading | None:
    """The reading that `at_hand` has set, if any."""
    return _AT_HAND.get()


def _find(kind: type) -> Reading:
    for base in kind.__mro__[:-1]:
        if base not in _READINGS:
            _load_for(base)
        if base in _READINGS:
            _READINGS[kind] = _READINGS[base]
            return _READINGS[kind]
    if issubclass(kind, numbers.Real):
        _READINGS[kind] = _READINGS[float]
        return _READINGS[kind]
    raise TypeError(f"no reading is registered for scalars of type {kind.__module__}.{kind.__qualname__}")


def _load_for(kind: type) -> None:
    for prefix in list(_LAZY):
        if kind.__module__ == prefix or kind.__module__.startswith(prefix + "."):
            _LAZY.pop(prefix)()


def shared(*values: Any) -> Reading:
    """The reading of highest rank among those of the values."""
    best = reading_of(values[0])
    for value in values[1:]:
        reading = reading_of(value)
        if reading is best or reading.rank < best.rank:
            continue
        if reading.rank == best.rank:
            raise TypeError(
                f"{type(values[0]).__name__} and {type(value).__name__} do not mix: substitute symbols before tracing"
            )
        best = reading
    return best


# ---------------------------------------------------------------------------------------------- documents


def to_data(x: Any) -> dict[str, Any]:
    """An expression as plain data for a document: {kind of expression: a tree of lists, texts and numbers}."""
    return reading_of(x).to_data(x)


def from_data(data: Mapping[str, Any]) -> Any:
    """The expression that `to_data` wrote. Raises KeyError for a kind of expression that no reading knows."""
    ((kind, tree),) = data.items()
    if kind not in _DECODERS and kind in _LAZY:
        _LAZY.pop(kind)()
    return _DECODERS[kind](tree)


def symbol(name: str, *, positive: bool = False) -> Any:
    """A real symbol of that name, for mechanisms whose numbers are left open; the reading that has symbols makes it."""
    if "symbol" not in _DECODERS and "sympy" in _LAZY:
        _LAZY.pop("sympy")()
    return _DECODERS["symbol"]({"name": name, "positive": positive})


def register_decoder(kind: str, decode: Callable[[Any], Any]) -> None:
    """Let `decode` read the trees that `to_data` wrote under the name `kind`."""
    _DECODERS[kind] = decode

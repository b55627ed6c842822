"""Readings: which object answers the primitives for which type of scalar."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any


class Backend:
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

    def reason_not_real(self, x: Any) -> str:
        return ""

    def divide(self, x: Any, y: Any) -> Any:
        return x / y

    def less(self, x: Any, y: Any) -> Any:
        return x < y

    def less_equal(self, x: Any, y: Any) -> Any:
        return x <= y

    def gather_table(self, table: Any, index: Any) -> Any:
        raise TypeError(f"a table is read at an integer, not at {type(index).__name__}")

    def while_loop(self, condition: Callable, body: Callable, init: Any) -> Any:
        carry = init
        while condition(carry):
            carry = body(carry)
        return carry

    def cond(self, predicate: Any, then: Callable, otherwise: Callable, operands: tuple) -> Any:
        return then(*operands) if predicate else otherwise(*operands)

    def for_each(self, count: int, body: Callable, init: Any, unroll: bool | None) -> Any:
        carry = init
        for i in range(count):
            carry = body(i, carry)
        return carry

    def dynamic_loop(self, ends: tuple[int, int], backwards: bool, body: Callable, init: Any) -> Any:
        carry = init
        for i in reversed(range(*ends)) if backwards else range(*ends):
            carry = body(i, carry)
        return carry


_BACKENDS: dict[type, Backend] = {}
_LAZY: dict[str, Callable[[], object]] = {}
_DECODERS: dict[str, Callable[[Any], Any]] = {}
_CURRENT: ContextVar[Backend | None] = ContextVar("reading at hand", default=None)


def register(scalar_type: type, backend: Backend) -> None:
    """Let `reading` answer the primitives for `scalar_type` and its subclasses."""
    _BACKENDS[scalar_type] = backend


def register_lazily(module_prefix: str, loader: Callable[[], object]) -> None:
    """Call `loader`, which has to `register`, when a type of a module under `module_prefix` is first met."""
    _LAZY[module_prefix] = loader


def backend_of(x: Any) -> Backend:
    """The reading that answers for x."""
    backend = _BACKENDS.get(type(x))
    return backend if backend is not None else _find(type(x))


@contextmanager
def use_backend(backend: Backend) -> Iterator[None]:
    """Within it, control flow and scratch arrays go to `reading`, even where all values at hand are numbers."""
    token = _CURRENT.set(backend)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_backend() -> Backend | None:
    """The reading that `use_backend` has set, if any."""
    return _CURRENT.get()


def _find(kind: type) -> Backend:
    for base in kind.__mro__[:-1]:
        if base not in _BACKENDS:
            _load_for(base)
        if base in _BACKENDS:
            _BACKENDS[kind] = _BACKENDS[base]
            return _BACKENDS[kind]
    if issubclass(kind, numbers.Real):
        _BACKENDS[kind] = _BACKENDS[float]
        return _BACKENDS[kind]
    raise TypeError(f"no reading is registered for scalars of type {kind.__module__}.{kind.__qualname__}")


def _load_for(kind: type) -> None:
    for prefix in list(_LAZY):
        if kind.__module__ == prefix or kind.__module__.startswith(prefix + "."):
            _load(prefix)


def _load(prefix: str) -> None:
    """Load what was registered lazily; other threads that need it wait for Python's own import lock meanwhile."""
    if (load := _LAZY.get(prefix)) is not None:
        load()
        _LAZY.pop(prefix, None)


def common_backend(*values: Any) -> Backend:
    """The reading of highest rank among those of the values."""
    best = backend_of(values[0])
    for value in values[1:]:
        backend = backend_of(value)
        if backend is best or backend.rank < best.rank:
            continue
        if backend.rank == best.rank:
            raise TypeError(
                f"{type(values[0]).__name__} and {type(value).__name__} do not mix: substitute symbols before tracing"
            )
        best = backend
    return best


# ---------------------------------------------------------------------------------------------- documents


def to_data(x: Any) -> dict[str, Any]:
    """An expression as plain data for a document: {kind of expression: a tree of lists, texts and numbers}."""
    return backend_of(x).to_data(x)


def from_data(data: Mapping[str, Any]) -> Any:
    """The expression that `to_data` wrote. Raises KeyError for a kind of expression that no reading knows."""
    ((kind, tree),) = data.items()
    if kind not in _DECODERS and kind in _LAZY:
        _load(kind)
    return _DECODERS[kind](tree)


def symbol(name: str, *, positive: bool = False) -> Any:
    """A real symbol of that name, for mechanisms whose numbers are left open; the reading that has symbols makes it."""
    if "symbol" not in _DECODERS and "sympy" in _LAZY:
        _load("sympy")
    return _DECODERS["symbol"]({"name": name, "positive": positive})


def register_decoder(kind: str, decode: Callable[[Any], Any]) -> None:
    """Let `decode` read the trees that `to_data` wrote under the name `kind`."""
    _DECODERS[kind] = decode

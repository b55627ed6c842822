"""Backends: the implementations of the primitives, and which of them serves which type of scalar."""

from __future__ import annotations

import numbers
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import TYPE_CHECKING, Any

_ITERATIONS_LEFT: ContextVar[list[int] | None] = ContextVar("iterations_left", default=None)


class IterationLimitReached(Exception):
    """Raised where loops take more iterations than `limited_iterations` allows."""


@contextmanager
def limited_iterations(most: int) -> Iterator[None]:
    """A context in which all `while_loop`s on constants together take at most this number of iterations.

    Those of compiled programs are not counted. Raises IterationLimitReached.
    """
    token = _ITERATIONS_LEFT.set([most])
    try:
        yield
    finally:
        _ITERATIONS_LEFT.reset(token)


class Backend:
    """Implementation of the primitives for one kind of scalar.

    A subclass adds a method for each primitive that its scalars support (`sin`, `sqrt`, `where`, ...), and
    overrides the methods below where needed. Where arguments of several backends meet, the one of highest
    `rank` is called.
    """

    rank = 1
    constant = False  # whether Python may branch on its values
    transforms = False  # whether control flow goes to it whatever the type of the condition

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Callable[..., Any]:  # sin, sqrt, ...: those that its kind has
            ...

    def substitute(self, x: Any, mapping: Mapping[Any, Any]) -> Any:
        return x

    def symbols_of(self, x: Any) -> frozenset[Any]:
        return frozenset()

    def is_zero(self, x: Any) -> bool:
        return False

    def is_truth(self, x: Any) -> bool:
        return False

    def reason_not_real(self, x: Any) -> str:
        return ""

    def number_of_constant(self, x: Any) -> Any:
        return x

    def unit_vector(self, a: tuple[Any, ...]) -> tuple[Any, ...]:
        return a

    def divide(self, x: Any, y: Any) -> Any:
        return x / y

    def largest_product(self, x: Any) -> int:
        """The largest size of a constant exponent up to which powers of x are products."""
        return 64

    def half_power(self, x: Any, twice: int) -> Any:
        """x**(twice/2) by squaring."""
        if twice < 0:
            return self.divide(1, self.half_power(x, -twice))
        result = self.sqrt(x) if twice % 2 else 1
        exponent, square = twice // 2, x
        while exponent:
            if exponent % 2:
                result = square if type(result) is int and result == 1 else result * square
            exponent //= 2
            square = square * square if exponent else square
        return result

    def less(self, x: Any, y: Any) -> Any:
        return x < y

    def less_equal(self, x: Any, y: Any) -> Any:
        return x <= y

    def gather_table(self, table: Any, index: Any) -> Any:
        raise TypeError(f"a table is read at an integer, not at {type(index).__name__}")

    def while_loop(self, condition: Callable, body: Callable, init: Any) -> Any:
        carry, left = init, _ITERATIONS_LEFT.get()
        while condition(carry):
            if left is not None:
                left[0] -= 1
                if left[0] < 0:
                    raise IterationLimitReached
            carry = body(carry)
        return carry

    def cond(self, predicate: Any, then: Callable, otherwise: Callable, operands: tuple) -> Any:
        return then(*operands) if predicate else otherwise(*operands)

    def without_derivatives(self, function: Callable, operands: tuple) -> Any:
        return function(*operands)

    def static_loop(self, count: int, body: Callable, init: Any, unroll: bool | None) -> Any:
        """`fori_loop` from 0 to a count that is known now."""
        carry = init
        for i in range(count):
            carry = body(i, carry)
        return carry

    def dynamic_loop(self, bounds: tuple[int, int], reverse: bool, body: Callable, init: Any) -> Any:
        """`fori_loop` between bounds that may be known only when the program runs."""
        carry = init
        for i in reversed(range(*bounds)) if reverse else range(*bounds):
            carry = body(i, carry)
        return carry


_BACKENDS: dict[type, Backend] = {}
_LAZY: dict[str, Callable[[], object]] = {}
_DECODERS: dict[str, Callable[[Any], Any]] = {}
_CURRENT: ContextVar[Backend | None] = ContextVar("current backend", default=None)


def register(scalar_type: type, backend: Backend) -> None:
    """Let `backend` serve `scalar_type` and its subclasses."""
    _BACKENDS[scalar_type] = backend


def register_lazily(module_prefix: str, loader: Callable[[], object]) -> None:
    """Call `loader`, which must `register` a backend, when a type of a module under the prefix is used."""
    _LAZY[module_prefix] = loader


def backend_of(x: Any) -> Backend:
    """The backend of the scalar or array x. Raises TypeError for a type that has none."""
    backend = _BACKENDS.get(type(x))
    return backend if backend is not None else _find(type(x))


@contextmanager
def use_backend(backend: Backend) -> Iterator[None]:
    """Context in which control flow and new arrays use `backend`, even where all values are plain numbers."""
    token = _CURRENT.set(backend)
    try:
        yield
    finally:
        _CURRENT.reset(token)


def current_backend() -> Backend | None:
    """The backend that `use_backend` has set, or None."""
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
    raise TypeError(f"no backend is registered for scalars of type {kind.__module__}.{kind.__qualname__}")


def _load_for(kind: type) -> None:
    for prefix in list(_LAZY):
        if kind.__module__ == prefix or kind.__module__.startswith(prefix + "."):
            _load(prefix)


def _load(prefix: str) -> None:
    """Load a backend that was registered lazily. Other threads that need it wait for Python's import lock."""
    if (load := _LAZY.get(prefix)) is not None:
        load()
        _LAZY.pop(prefix, None)


def common_backend(*values: Any) -> Backend:
    """The backend of highest rank among those of the values. Raises TypeError where two are of equal rank."""
    best = backend_of(values[0])
    for value in values[1:]:
        backend = backend_of(value)
        if backend is best or backend.rank < best.rank:
            continue
        if backend.rank == best.rank:
            raise TypeError(
                f"scalars of types {type(values[0]).__name__} and {type(value).__name__} cannot be combined: "
                "substitute numbers for the symbols before tracing"
            )
        best = backend
    return best


# ------------------------------------------------------------------------- serialisation, symbols


def to_data(x: Any) -> dict[str, Any]:
    """An expression as plain data for a file: {kind of expression: nested lists, strings and numbers}."""
    return backend_of(x).to_data(x)


def from_data(data: Mapping[str, Any]) -> Any:
    """The expression that `to_data` wrote. Raises KeyError for a kind of expression that no backend
    registered.
    """
    ((kind, tree),) = data.items()
    if kind not in _DECODERS and kind in _LAZY:
        _load(kind)
    return _DECODERS[kind](tree)


def symbol(name: str, *, positive: bool = False) -> Any:
    """A real SymPy symbol of this name, to be used as a parameter of a mechanism."""
    if "symbol" not in _DECODERS and "sympy" in _LAZY:
        _load("sympy")
    return _DECODERS["symbol"]({"name": name, "positive": positive})


def register_decoder(kind: str, decode: Callable[[Any], Any]) -> None:
    """Let `decode` read the data that `to_data` wrote for this kind of expression."""
    _DECODERS[kind] = decode

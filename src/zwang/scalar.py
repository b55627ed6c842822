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

from __future__ import annotations

import dataclasses
import math
import numbers
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

# ---------------------------------------------------------------------------------------------- readings


class Reading:
    """How one kind of scalar answers the primitives; a subclass adds a method for each that its kind has.

    Beside the primitives' own names a reading may answer `substitute(x, mapping)`, `symbols_of(x)`, `is_zero(x)`
    and `look_up(table, index)`. Where readings mix, the one of higher rank takes the call.
    """

    rank = 1

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

    def look_up(self, table: Table, index: Any) -> Any:
        raise TypeError(f"a table is read at an integer, not at {type(index).__name__}")

    def scratch(self, shape: tuple[int, ...]) -> Scratch:
        return Scratch(shape, [0.0] * math.prod(shape))

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


def _find(kind: type) -> Reading:
    for base in kind.__mro__[:-1]:
        if base not in _READINGS:
            _load_for(base)
        if base in _READINGS:
            _READINGS[kind] = _READINGS[base]
            return _READINGS[kind]
    if issubclass(kind, numbers.Real):
        _READINGS[kind] = _FLOATS
        return _FLOATS
    raise TypeError(f"no reading is registered for scalars of type {kind.__module__}.{kind.__qualname__}")


def _load_for(kind: type) -> None:
    for prefix in list(_LAZY):
        if kind.__module__ == prefix or kind.__module__.startswith(prefix + "."):
            _LAZY.pop(prefix)()


def _shared(*values: Any) -> Reading:
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


def _of_control(*trees: Any) -> Reading:
    """The reading that runs control flow over these carries."""
    reading = _AT_HAND.get()
    if reading is not None:
        return reading
    values = [leaf for tree in trees for leaf in leaves_of(tree)]
    return _shared(*values) if values else _FLOATS


# ---------------------------------------------------------------------------------------------- plain numbers


def _guarded(function: Callable[..., float], ufunc: Callable[..., Any], exact: Mapping[int, int]) -> Any:
    """`function` of math, with NumPy's answer where it would raise and exact integers where they exist."""

    def read(x: Any) -> Any:
        if type(x) is int and x in exact:
            return exact[x]
        try:
            return function(x)
        except (ValueError, OverflowError):
            return _quietly(ufunc, x)

    return staticmethod(read)


def _quietly(ufunc: Callable[..., Any], *args: Any) -> float:
    with np.errstate(all="ignore"):
        return float(ufunc(*(np.float64(a) for a in args)))


class FloatReading(Reading):
    """Plain numbers: Python's and NumPy's integers, floats and truth values."""

    rank = 0

    sin = _guarded(math.sin, np.sin, {0: 0})
    cos = _guarded(math.cos, np.cos, {0: 1})
    tan = _guarded(math.tan, np.tan, {0: 0})
    asin = _guarded(math.asin, np.arcsin, {0: 0})
    acos = _guarded(math.acos, np.arccos, {1: 0})
    exp = _guarded(math.exp, np.exp, {0: 1})
    log = _guarded(math.log, np.log, {1: 0})
    absolute = staticmethod(abs)

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

    def look_up(self, table: Table, index: Any) -> Any:
        return table.entries[index]


class ArrayReading(Reading):
    """Arrays of scalars: each primitive element by element, with NumPy's broadcasting."""

    rank = 2

    def __getattr__(self, name: str) -> Callable[..., np.ndarray]:
        if name.startswith("_"):
            raise AttributeError(name)
        primitive = globals()[name]
        return lambda *arrays: _elementwise(primitive, *arrays)

    def substitute(self, x: Any, mapping: Mapping[Any, Any]) -> Any:
        return _elementwise(lambda element: substitute(element, mapping), x)

    def symbols_of(self, x: Any) -> frozenset[Any]:
        return frozenset().union(*(symbols_of(element) for element in x.flat))

    def is_zero(self, x: Any) -> bool:
        return all(is_zero(element) for element in x.flat)


def _elementwise(primitive: Callable, *values: Any) -> np.ndarray:
    arrays = [np.asarray(value) for value in values]
    objects = np.broadcast_arrays(*(array.astype(object) for array in arrays))
    results = [primitive(*elements) for elements in zip(*(array.flat for array in objects), strict=True)]
    out = np.empty(len(results), dtype=object)
    out[:] = results
    out = out.reshape(objects[0].shape)
    if any(array.dtype == object for array in arrays):
        return out
    return out.astype(bool if results and isinstance(results[0], (bool, np.bool_)) else float)


_FLOATS = FloatReading()
for _kind in (float, int, bool, np.floating, np.integer, np.bool_):
    register(_kind, _FLOATS)
register(np.ndarray, ArrayReading())


# ---------------------------------------------------------------------------------------------- primitives


def sqrt(x: Any) -> Any:
    """Square root; nan below zero."""
    return reading_of(x).sqrt(x)


def sin(x: Any) -> Any:
    """Sine of an angle in radians."""
    return reading_of(x).sin(x)


def cos(x: Any) -> Any:
    """Cosine of an angle in radians."""
    return reading_of(x).cos(x)


def tan(x: Any) -> Any:
    """Tangent of an angle in radians."""
    return reading_of(x).tan(x)


def asin(x: Any) -> Any:
    """Inverse sine, in [-pi/2, pi/2]; nan outside [-1, 1]."""
    return reading_of(x).asin(x)


def acos(x: Any) -> Any:
    """Inverse cosine, in [0, pi]; nan outside [-1, 1]."""
    return reading_of(x).acos(x)


def atan2(y: Any, x: Any) -> Any:
    """Angle of the point (x, y), in [-pi, pi]."""
    return _shared(y, x).atan2(y, x)


def exp(x: Any) -> Any:
    """e to the power of x."""
    return reading_of(x).exp(x)


def log(x: Any) -> Any:
    """Natural logarithm; -inf at zero, nan below."""
    return reading_of(x).log(x)


def power(x: Any, y: Any) -> Any:
    """x to the power of y; by products and one square root where y is a constant half-integer up to 64."""
    if type(x) is not np.ndarray and value_is_constant(y) and abs(y) <= 64 and 2 * y == int(2 * y):
        return _half_power(x, int(2 * y))
    return _shared(x, y).power(x, y)


def _half_power(x: Any, twice: int) -> Any:
    """x**(twice/2) by squaring."""
    if twice < 0:
        return divide(1, _half_power(x, -twice))
    result = sqrt(x) if twice % 2 else 1
    exponent, square = twice // 2, x
    while exponent:
        if exponent % 2:
            result = square if type(result) is int and result == 1 else result * square
        exponent //= 2
        square = square * square if exponent else square
    return result


def divide(x: Any, y: Any) -> Any:
    """x / y, with inf or nan where Python's own floats would raise ZeroDivisionError."""
    return _shared(x, y).divide(x, y)


def absolute(x: Any) -> Any:
    """Absolute value."""
    return reading_of(x).absolute(x)


def minimum(x: Any, y: Any) -> Any:
    """The smaller of two; nan if either is nan."""
    return _shared(x, y).minimum(x, y)


def maximum(x: Any, y: Any) -> Any:
    """The larger of two; nan if either is nan."""
    return _shared(x, y).maximum(x, y)


def clip(x: Any, low: Any, high: Any) -> Any:
    """x kept within [low, high]."""
    return minimum(maximum(x, low), high)


def floor(x: Any) -> Any:
    """The largest whole number not above x."""
    return reading_of(x).floor(x)


def copysign(x: Any, y: Any) -> Any:
    """The size of x with the sign of y, a negative zero's too."""
    return _shared(x, y).copysign(x, y)


def sign(x: Any) -> Any:
    """1 above zero, -1 below; zero and nan stay."""
    return where(less(0, x), 1, where(less(x, 0), -1, x))


def less(x: Any, y: Any) -> Any:
    """x < y; the operators say the same of scalars, this also of arrays."""
    return _shared(x, y).less(x, y)


def less_equal(x: Any, y: Any) -> Any:
    """x <= y."""
    return _shared(x, y).less_equal(x, y)


def equal(x: Any, y: Any) -> Any:
    """x == y in value (on symbols Python's == asks for the same expression)."""
    return _shared(x, y).equal(x, y)


def not_equal(x: Any, y: Any) -> Any:
    """x != y in value; true if either is nan."""
    return _shared(x, y).not_equal(x, y)


def logical_and(p: Any, q: Any) -> Any:
    """Both true."""
    return _shared(p, q).logical_and(p, q)


def logical_or(p: Any, q: Any) -> Any:
    """One or both true."""
    return _shared(p, q).logical_or(p, q)


def logical_not(p: Any) -> Any:
    """Not true."""
    return reading_of(p).logical_not(p)


def where(condition: Any, x: Any, y: Any) -> Any:
    """x where the condition holds, else y. Both are worked out; the one not taken may be nan or inf without harm."""
    if type(condition) is bool:
        return x if condition else y
    if isinstance(x, np.ndarray) or isinstance(y, np.ndarray):
        return _elementwise(where, condition, x, y)
    return reading_of(condition).where(condition, x, y)


# ---------------------------------------------------------------------------------------------- constants, symbols


def value_is_constant(x: Any) -> bool:
    """Whether x is a plain number, so that Python may branch on it."""
    return reading_of(x) is _FLOATS


def are_constant(*values: Any) -> bool:
    """Whether all of these are plain numbers."""
    return all(value_is_constant(value) for value in values)


def is_scalar(x: Any) -> bool:
    """Whether some reading answers for x: a number, a symbolic expression or a traced scalar; no text, no array."""
    try:
        return reading_of(x).rank < ArrayReading.rank
    except TypeError:
        return False


def is_zero(x: Any) -> bool:
    """Whether x is zero by structure: a constant zero, or an array of such; never asks a value."""
    return bool(reading_of(x).is_zero(x))


def substitute(x: Any, mapping: Mapping[Any, Any]) -> Any:
    """x with the symbols in `mapping` replaced by other scalars, of whatever reading; numbers have none."""
    return reading_of(x).substitute(x, mapping)


def symbols_of(x: Any) -> frozenset[Any]:
    """The symbols on which x depends; none for numbers."""
    return reading_of(x).symbols_of(x)


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


# ---------------------------------------------------------------------------------------------- control flow


def while_loop(condition: Callable[[Any], Any], body: Callable[[Any], Any], init: Any) -> Any:
    """The carry after `carry = body(carry)`, as long as `condition(carry)`; each lane for itself."""
    return _of_control(init).while_loop(condition, body, init)


def when(predicate: Any, then: Callable, otherwise: Callable, *operands: Any) -> Any:
    """`then(*operands)` or `otherwise(*operands)`, which give results of the same structure.

    Unlike `where`, a branch that no lane wants is not run.
    """
    if type(predicate) is bool:
        return then(*operands) if predicate else otherwise(*operands)
    return reading_of(predicate).when(predicate, then, otherwise, operands)


def for_each(items: Any, body: Callable[[Any, Any], Any], init: Any, *, unroll: bool | None = None) -> Any:
    """The carry after `carry = body(item, carry)` for every item.

    `items` is a count, giving the indices 0, 1, ..., or a table of constants, giving its entries or rows.
    When traced, a short loop is unrolled, with plain numbers for items, so that zeros in a table fold away;
    `unroll` True or False decides instead of the length.
    """
    if not isinstance(items, (int, np.integer)):
        rows = items if isinstance(items, Table) else table(items)
        return for_each(rows.shape[0], lambda i, carry: body(rows[i], carry), init, unroll=unroll)
    return _of_control(init).for_each(int(items), body, init, unroll)


def flat_position(shape: tuple[int, ...], index: Any) -> Any:
    """Where the entry `index`, an integer or a tuple of them, lies in a row-major array of this shape."""
    indices = index if isinstance(index, tuple) else (index,)
    if len(indices) != len(shape):
        raise IndexError(f"{len(shape)} indices are needed for the shape {shape}, {len(indices)} were given")
    position: Any = 0
    for i, length in zip(indices, shape, strict=True):
        if isinstance(i, (int, np.integer)) and not 0 <= i < length:
            raise IndexError(f"the index {i} is outside 0 ... {length - 1}")
        position = position * length + i
    return int(position) if isinstance(position, np.integer) else position


class Table:
    """Constants that a loop reads at its index: `t[i]`, `t[i, j]`, or `t[i]` for a row of a matrix.

    A table of integers gives indices, which may be used to read further tables and scratch arrays.
    """

    __slots__ = ("entries", "shape")

    def __init__(self, values: Any) -> None:
        array = np.asarray(values)
        if array.dtype.kind not in "iuf" or array.ndim == 0:
            raise TypeError("a table holds constant numbers: give a list or array of floats or of integers")
        self.shape = array.shape
        self.entries: tuple[float, ...] | tuple[int, ...] = tuple(array.ravel().tolist())

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: Any) -> Any:
        indices = index if isinstance(index, tuple) else (index,)
        rest = self.shape[len(indices) :]
        if not rest:
            position = flat_position(self.shape, indices)
            return reading_of(position).look_up(self, position)
        row = np.empty(rest, dtype=object)
        for inner in np.ndindex(*rest):
            row[inner] = self[(*indices, *inner)]
        return row


def table(values: Any) -> Table:
    """A constant table, to be read at loop indices."""
    return Table(values)


class Scratch:
    """A scratch array of reals with a value's manners: `a[i]` reads, `b = a.set(i, x)` gives the array after it.

    An array is written in place where it is compiled, so after `a.set(...)` only the new one may be used, and a loop
    that changes an array has to carry it.
    """

    __slots__ = ("_elements", "shape")

    def __init__(self, shape: tuple[int, ...], elements: list | None) -> None:
        self.shape = shape
        self._elements = elements

    def __getitem__(self, index: Any) -> Any:
        return self._load(flat_position(self.shape, index))

    def set(self, index: Any, value: Any) -> Scratch:
        """The array with the element at `index` replaced; this one may not be used any more."""
        return self._store(flat_position(self.shape, index), value)

    def _load(self, position: Any) -> Any:
        return self._alive()[position]

    def _store(self, position: Any, value: Any) -> Scratch:
        elements = self._alive()
        self._elements = None
        elements[position] = value
        return Scratch(self.shape, elements)

    def _alive(self) -> list:
        if self._elements is None:
            raise ValueError("this scratch array was changed by set(): use the array that set() returned")
        return self._elements


def scratch(shape: int | tuple[int, ...]) -> Scratch:
    """A scratch array of zeros for use in loops."""
    reading = _AT_HAND.get() or _FLOATS
    return reading.scratch((shape,) if isinstance(shape, int) else tuple(shape))


# ---------------------------------------------------------------------------------------------- nested carries


def leaves_of(tree: Any) -> list[Any]:
    """The scalars (and scratch arrays) in a nest of tuples, lists, dictionaries, dataclasses and arrays, in order."""
    if isinstance(tree, np.ndarray):
        return list(tree.flat)
    children = _children(tree)
    return [tree] if children is None else [leaf for child in children for leaf in leaves_of(child)]


def rebuild(tree: Any, leaves: Sequence[Any]) -> Any:
    """A nest of the structure of `tree` with other leaves; arrays come back as arrays of objects."""
    return _rebuild(tree, iter(leaves))


def structure_of(tree: Any) -> Any:
    """What two nests have in common when they differ in their leaves only."""
    if isinstance(tree, np.ndarray):
        return tree.shape
    children = _children(tree)
    if children is None:
        return tree.shape if isinstance(tree, Scratch) else None
    keys = tuple(tree) if isinstance(tree, dict) else None
    return (type(tree), keys, tuple(structure_of(child) for child in children))


def _children(tree: Any) -> list[Any] | None:
    if isinstance(tree, (tuple, list)):
        return list(tree)
    if isinstance(tree, dict):
        return list(tree.values())
    if dataclasses.is_dataclass(tree):
        return [getattr(tree, field.name) for field in dataclasses.fields(tree)]
    return [] if tree is None else None


def _rebuild(tree: Any, leaves: Iterator[Any]) -> Any:
    if isinstance(tree, np.ndarray):
        out = np.empty(tree.size, dtype=object)
        out[:] = [next(leaves) for _ in range(tree.size)]
        return out.reshape(tree.shape)
    children = _children(tree)
    if tree is None or children is None:
        return None if tree is None else next(leaves)
    rebuilt = [_rebuild(child, leaves) for child in children]
    if isinstance(tree, dict):
        return dict(zip(tree, rebuilt, strict=True))
    if isinstance(tree, (tuple, list)):
        return type(tree)(*rebuilt) if hasattr(tree, "_fields") else type(tree)(rebuilt)
    names = [field.name for field in dataclasses.fields(tree)]
    return dataclasses.replace(tree, **dict(zip(names, rebuilt, strict=True)))


# Scratch arrays of plain numbers are run by the plain reading.
register(Scratch, _FLOATS)

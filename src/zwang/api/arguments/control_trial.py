"""Trial calls of a control function on a copy of its state, so that they leave the user's function
unchanged.

The state of a function is in its closure, in the object that a method is bound to, or in the globals of its
module that it reads.
"""

from __future__ import annotations

import copy
import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

ATOMS = (types.ModuleType, types.BuiltinFunctionType, type)


class ControlTrial:
    """A copy of a function with a copy of its state. Objects that cannot be copied, and zwang's own, are
    shared.
    """

    def __init__(self, function: Callable[..., Any]):
        self._copies: dict[int, Any] = {}
        self._kept: list[Any] = []  # the originals, so that their ids stay unique
        self._cells: list[tuple[types.CellType, types.CellType]] = []
        self._globals: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = []
        self.function: Callable[..., Any] = self._copied(function)

    def has_state(self) -> bool:
        """Whether a call has changed the state of the copy, compared with the original."""
        contents = [(a, self._copies[id(a)]) for a in self._kept]
        contents += [(_contents(a), _contents(b)) for a, b in self._cells]
        contents += [(a[name], b[name]) for a, b, names in self._globals for name in names]
        return any(not _same(a, b, set()) for a, b in contents)

    def _copied(self, value: Any) -> Any:
        if id(value) not in self._copies:
            made = self._made(value)
            self._copies[id(value)] = made
            self._kept.append(value)
        return self._copies[id(value)]

    def _made(self, value: Any) -> Any:
        match value:
            case types.FunctionType():
                return self._function(value)
            case types.MethodType():
                return types.MethodType(self._copied(value.__func__), self._copied(value.__self__))
            case functools.partial():
                named = {name: self._copied(x) for name, x in value.keywords.items()}
                return functools.partial(self._copied(value.func), *map(self._copied, value.args), **named)
        if _is_shared(value):
            return value
        own = {id(x): x for x in vars(value).values() if _is_shared(x)} if hasattr(value, "__dict__") else {}
        try:
            return copy.deepcopy(value, own)
        except Exception:  # a user's class may raise any exception when it is copied
            return value

    def _function(self, f: types.FunctionType) -> types.FunctionType:
        read = {name for name in _names(f.__code__) if name in f.__globals__}
        old = f.__closure__ or ()
        cells = tuple(types.CellType() for _ in old)
        own = dict(f.__globals__)
        made = types.FunctionType(f.__code__, own, f.__name__, f.__defaults__, cells)
        made.__kwdefaults__ = f.__kwdefaults__
        self._copies[id(f)] = made  # first, as its state may contain the function itself
        self._cells += zip(old, cells, strict=True)
        self._globals.append((f.__globals__, own, read))
        for a, b in zip(old, cells, strict=True):
            if (contents := _contents(a)) is not None:
                b.cell_contents = self._copied(contents)
        for name in read:
            if not isinstance(own[name], types.FunctionType) or own[name].__globals__ is f.__globals__:
                own[name] = self._copied(own[name])
        return made


def _is_shared(value: Any) -> bool:
    return isinstance(value, ATOMS) or type(value).__module__.partition(".")[0] == "zwang"


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that code reads, including the functions defined in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is empty
        return None


def _same(a: Any, b: Any, seen: set[int]) -> bool:
    """Whether two objects have equal contents; objects of unknown contents are taken as equal."""
    if a is b or id(a) in seen:
        return True
    seen.add(id(a))
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return a.shape == b.shape and bool(np.array_equal(a, b, equal_nan=a.dtype.kind in "fc"))
    if isinstance(a, (bool, int, float, complex, str, bytes, set, frozenset, bytearray)):
        return a == b or a != a
    if isinstance(a, np.random.Generator):
        return str(a.bit_generator.state) == str(b.bit_generator.state)
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(_same(x, y, seen) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key], seen) for key in a)
    if isinstance(a, types.FunctionType) or not hasattr(a, "__dict__"):
        return True
    return _same(vars(a), vars(b), seen)

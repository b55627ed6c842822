"""A control function to try things on: a copy with a memory of its own, so that a trial leaves no trace in the user's.

What a function holds is in its closure, in the object whose method it is, or among the globals of its own module that it reads.
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
    """A copy of a function. Objects that cannot be copied, and zwang's own, are shared with the original."""

    def __init__(self, function: Callable[..., Any]):
        self._copies: dict[int, Any] = {}
        self._kept: list[Any] = []  # originals, so that their numbers stay theirs
        self._cells: list[tuple[types.CellType, types.CellType]] = []
        self._globals: list[tuple[dict[str, Any], dict[str, Any], set[str]]] = []
        self.function: Callable[..., Any] = self._copied(function)

    def remembers(self) -> bool:
        """Whether the copy holds something else by now than the original."""
        held = [(a, self._copies[id(a)]) for a in self._kept]
        held += [(_contents(a), _contents(b)) for a, b in self._cells]
        held += [(a[name], b[name]) for a, b, names in self._globals for name in names]
        return any(not _same(a, b, set()) for a, b in held)

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
        except Exception:  # whatever a class of the user's says to being copied
            return value

    def _function(self, f: types.FunctionType) -> types.FunctionType:
        read = {name for name in _names(f.__code__) if name in f.__globals__}
        old = f.__closure__ or ()
        cells = tuple(types.CellType() for _ in old)
        own = dict(f.__globals__)
        made = types.FunctionType(f.__code__, own, f.__name__, f.__defaults__, cells)
        made.__kwdefaults__ = f.__kwdefaults__
        self._copies[id(f)] = made  # before what it holds, which may be the function itself
        self._cells += zip(old, cells, strict=True)
        self._globals.append((f.__globals__, own, read))
        for a, b in zip(old, cells, strict=True):
            if (held := _contents(a)) is not None:
                b.cell_contents = self._copied(held)
        for name in read:
            if not isinstance(own[name], types.FunctionType) or own[name].__globals__ is f.__globals__:
                own[name] = self._copied(own[name])
        return made


def _is_shared(value: Any) -> bool:
    return isinstance(value, ATOMS) or type(value).__module__.partition(".")[0] == "zwang"


def _names(code: types.CodeType) -> Iterator[str]:
    """The names that code, and the functions written in it, read from outside."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # nothing is in it yet
        return None


def _same(a: Any, b: Any, seen: set[int]) -> bool:
    """Whether two things hold the same numbers and texts; of what is not known how it looks inside, yes."""
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

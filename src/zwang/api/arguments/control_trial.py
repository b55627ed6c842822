"""Trial calls of a control function that leave its state unchanged.

The state of a function is in its closure, its default arguments and attributes, in the object that a method
is bound to, in classes, in the globals that the code reads, also those of other modules, in the random
generators of NumPy and Python, and in the environment variables. It is recorded before the first call and
restored after each one.
"""

from __future__ import annotations

import collections
import copy
import functools
import os
import random
import struct
import sys
import types
import weakref
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

import numpy as np

MOST_OBJECTS = 20_000  # of a state that is recorded; with more a function is not tried
UNSET = object()  # the value of a name or a cell that has none
CONTAINERS = (list, dict, set, bytearray, collections.deque)
ATOMS = (bool, int, float, complex, str, bytes, type(None), np.generic, np.ufunc)
STATEFUL = ("zwang.api.batch.", "zwang.gym.", "zwang.viewer.")  # packages whose objects have a state
POINTER = struct.calcsize("P")


class _SavedState(NamedTuple):
    """Where state is kept: a function that reads it, one that writes it, and what it was."""

    read: Callable[[], Any]
    write: Callable[[Any], None]
    before: Any


class ControlTrial:
    """Calls of a function after each of which its state is restored.

    is_possible: whether all state that the function reaches can be restored; there is none in objects of
    zwang other than worlds, environments and views. Otherwise, as with these, with a Python generator, a file
    or a table of pandas, the function should not be tried.
    """

    def __init__(self, function: Callable[..., Any]):
        self.is_possible = True
        self._changed = False
        self._places: list[_SavedState] = []
        self._seen: dict[int, Any] = {}
        self._modules: dict[str, types.ModuleType] = {}
        self._names: set[str] = set()
        self._add(np.random.get_state, np.random.set_state)
        self._add(random.getstate, random.setstate)
        self._add(os.environ.copy, _set_environment)
        self._record(function)

        @functools.wraps(function, updated=())
        def tried(*arguments: Any) -> Any:
            try:
                return function(*arguments)
            finally:
                self._restore()

        self.function: Callable[..., Any] = tried

    def has_state(self) -> bool:
        """Whether a call has changed the state."""
        return self._changed

    def _restore(self) -> None:
        changed = [place for place in self._places if _has_changed(place)]
        for place in changed:
            place.write(place.before)
        self._changed = self._changed or bool(changed)

    def _add(self, read: Callable[[], Any], write: Callable[[Any], None]) -> None:
        try:
            self._places.append(_SavedState(read, write, read()))
        except Exception:  # such as that of random.SystemRandom, which has no state to read
            self.is_possible = False

    def _record(self, function: Any) -> None:
        """Record the state of the function and of all that it reaches."""
        found, known = [function], 0
        while found and self.is_possible:
            value = found.pop()
            if not isinstance(value, ATOMS) and id(value) not in self._seen:
                self._seen[id(value)] = value  # so that the id stays unique
                found += self._reached(value)
                self.is_possible = self.is_possible and len(self._seen) < MOST_OBJECTS
            if not found and known < len(self._names) + len(self._modules):
                # a module's globals are those that any of the code names
                known = len(self._names) + len(self._modules)
                found += [x for m in self._modules.values() for x in self._globals(vars(m), self._names)]

    def _reached(self, value: Any) -> list[Any]:
        """The values that a value refers to; its own state is recorded."""
        match value:
            case types.FunctionType():
                return self._of_function(value)
            case types.MethodType():
                return [value.__func__, value.__self__]
            case functools.partial():
                return [value.func, *value.args, *value.keywords.values()]
            case property():
                return [value.fget, value.fset]
            case functools.cached_property():
                return [value.func]
            case classmethod() | staticmethod():
                return [value.__func__]
            case types.ModuleType():
                if _is_users(value.__name__):
                    self._modules[value.__name__] = value
                return []
            case type():
                return self._of_class(value) if _is_users(value.__module__) else []
            case tuple() | frozenset():
                return [type(value), *value]
        if any(f"{cls.__module__}.".startswith(STATEFUL) for cls in type(value).__mro__):
            self.is_possible = False
        if type(value).__module__.partition(".")[0] in ("zwang", "sympy"):
            return []
        return self._of_object(value)

    def _of_function(self, f: types.FunctionType) -> list[Any]:
        reached = [*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values(), vars(f)]
        for cell in f.__closure__ or ():
            self._add(functools.partial(_contents, cell), functools.partial(_fill, cell))
            reached.append(_contents(cell))
        if _is_users(f.__module__):
            names = set(_names(f.__code__))
            self._names |= names
            reached += self._globals(f.__globals__, names)
        return reached

    def _globals(self, namespace: dict[str, Any], names: set[str]) -> list[Any]:
        """The values of these names in the globals of a module."""
        for name in names:
            self._add(lambda name=name: namespace.get(name, UNSET), functools.partial(_set, namespace, name))
        return [namespace[name] for name in names if name in namespace]

    def _of_class(self, cls: type) -> list[Any]:
        def write(before: Mapping[str, Any]) -> None:
            for name, value in {**dict.fromkeys(vars(cls), UNSET), **before}.items():
                if value is UNSET:
                    delattr(cls, name)
                elif vars(cls).get(name, UNSET) is not value:
                    setattr(cls, name, value)

        self._add(lambda: dict(vars(cls)), write)
        own = [
            x for name, x in vars(cls).items() if not _is_pythons(name) or isinstance(x, types.FunctionType)
        ]
        return [*own, *cls.__bases__]

    def _of_object(self, value: Any) -> list[Any]:
        reached: list[Any] = [type(value)]
        if isinstance(value, np.random.Generator):
            self._add(lambda: value.bit_generator.state, functools.partial(_set_state, value))
        elif isinstance(value, np.random.RandomState):
            self._add(value.get_state, value.set_state)
        elif isinstance(value, random.Random):
            self._add(value.getstate, value.setstate)
        elif isinstance(value, np.ndarray):
            if value.flags.writeable:
                self._add(value.copy, functools.partial(value.__setitem__, ...))
            reached += list(value.flat) if value.dtype == object else []
        elif isinstance(value, CONTAINERS):
            self._add(lambda: copy.copy(value), functools.partial(_refill, value))
            reached += [*value.values()] if isinstance(value, dict) else list(value)
            reached.append(getattr(value, "default_factory", None))
        elif isinstance(value, types.BuiltinFunctionType):
            reached.append(value.__self__)
        elif isinstance(value, weakref.ref):
            reached.append(value())
        elif _has_hidden_memory(type(value)):
            self.is_possible = self.is_possible and _is_immutable(value)
        if hasattr(value, "__dict__"):
            reached.append(vars(value))
        for name in _slots(type(value)):
            self._add(functools.partial(getattr, value, name, UNSET), functools.partial(_assign, value, name))
            reached.append(getattr(value, name, None))
        return reached


def _is_users(module: str | None) -> bool:
    """Whether a module is the user's: neither zwang's, nor Python's, nor an installed package's."""
    root = (module or "").partition(".")[0]
    if root == "zwang" or root in sys.stdlib_module_names:
        return False
    file = getattr(sys.modules.get(root), "__file__", None) or ""
    return "site-packages" not in file and "dist-packages" not in file


def _is_pythons(name: str) -> bool:
    """Whether an attribute of a class is one that Python makes, such as `__dict__`."""
    return name.startswith(("__", "_abc_"))


def _names(code: types.CodeType) -> Iterator[str]:
    """The global names that code reads, including the functions defined in it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            yield from _names(constant)


def _slots(cls: type) -> Iterator[str]:
    """The names of the attributes that instances of a class have besides those in `__dict__`."""
    for base in cls.__mro__:
        if "__slots__" in vars(base):
            yield from (name for name, x in vars(base).items() if isinstance(x, types.MemberDescriptorType))


def _has_hidden_memory(cls: type) -> bool:
    """Whether instances of a class hold more than attributes, as those of classes written in C do."""
    return any(
        base.__itemsize__ != base.__base__.__itemsize__
        or base.__basicsize__ > base.__base__.__basicsize__ + POINTER * _own_pointers(base)
        for base in cls.__mro__
        if base.__base__ is not None
    )


def _own_pointers(cls: type) -> int:
    """The pointers that a class adds to its instances: slots, and those to attributes and weak references."""
    base: Any = cls.__base__
    slots = sum(1 for x in vars(cls).values() if isinstance(x, types.MemberDescriptorType))
    return (
        (slots if "__slots__" in vars(cls) else 0)
        + (cls.__dictoffset__ > 0 and base.__dictoffset__ == 0)
        + (cls.__weakrefoffset__ > 0 and base.__weakrefoffset__ == 0)
    )


def _is_immutable(value: Any) -> bool:
    """Whether an object with hidden memory is a function or a descriptor, but no cache of the user's, or its
    own copy as all immutable objects are.
    """
    if hasattr(type(value), "__get__"):
        return not (hasattr(value, "cache_info") and _is_users(value.__module__))
    try:
        return copy.copy(value) is value
    except Exception:  # a generator, a lock, a file
        return False


# --------------------------------------------------------------------------------------- places of state


def _has_changed(place: _SavedState) -> bool:
    """Whether there is another state now; a comparison that raises, as of traced values, tells of one."""
    try:
        return not _same(place.before, place.read(), set())
    except Exception:
        return True


def _contents(cell: types.CellType) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # the cell is empty
        return UNSET


def _fill(cell: types.CellType, value: Any) -> None:
    if value is UNSET:
        del cell.cell_contents
    else:
        cell.cell_contents = value


def _set(namespace: dict[str, Any], name: str, value: Any) -> None:
    if value is UNSET:
        del namespace[name]
    else:
        namespace[name] = value


def _set_environment(variables: Mapping[str, str]) -> None:
    for name in os.environ.keys() - variables.keys():
        del os.environ[name]
    os.environ.update(variables)


def _assign(value: Any, name: str, attribute: Any) -> None:
    if attribute is UNSET:
        delattr(value, name)
    else:
        setattr(value, name, attribute)


def _set_state(generator: np.random.Generator, state: Any) -> None:
    generator.bit_generator.state = state


def _refill(container: Any, contents: Any) -> None:
    container.clear()
    (container.update if isinstance(container, dict | set) else container.extend)(contents)


def _same(a: Any, b: Any, seen: set[int]) -> bool:
    """Whether two objects have equal contents."""
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
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(_same(x, y, seen) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(_same(a[key], b[key], seen) for key in a)
    if isinstance(a, types.FunctionType):
        return True
    if not hasattr(a, "__dict__"):
        return bool(a == b)
    return _same(vars(a), vars(b), seen)

"""Old spellings of public names: each keeps working for one release, with a DeprecationWarning that names
the new one.
"""

from __future__ import annotations

import functools
import warnings
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from zwang.lazy_imports import import_module

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound=type)
V = TypeVar("V")


def warn_of_rename(old: str, new: str, stacklevel: int = 3) -> None:
    """Warn that the name `old` is deprecated in favour of `new`.

    The warning points at the caller's caller.
    """
    warnings.warn(
        f"{old} is deprecated and will be removed in the next release; use {new}",
        DeprecationWarning,
        stacklevel=stacklevel,
    )


def module_getattr(module: str, renamed: Mapping[str, str]) -> Callable[[str], Any]:
    """A `__getattr__` for a module that resolves old names.

    renamed: for each old name the new one, or "package.module:name" where the new name is defined elsewhere.
    The function returned raises AttributeError for any other name.
    """

    def __getattr__(name: str) -> Any:
        if name not in renamed:
            raise AttributeError(f"module {module!r} has no attribute {name!r}")
        place, _, new = renamed[name].rpartition(":")
        warn_of_rename(f"{module}.{name}", new if not place else f"{place}.{new}")
        return getattr(import_module(place or module), new)

    return __getattr__


def renamed_arguments(**renamed: str) -> Callable[[F], F]:
    """Decorator: the keyword arguments `old="new"` are still accepted by their old names.

    The decorated function raises TypeError where both spellings are given.
    """
    old_names = frozenset(renamed)

    def decorate(function: F) -> F:
        @functools.wraps(function)
        def call(*args: Any, **kwargs: Any) -> Any:
            if old_names.isdisjoint(kwargs):
                return function(*args, **kwargs)
            for old in old_names & kwargs.keys():
                new = renamed[old]
                if new in kwargs:
                    raise TypeError(f"{function.__name__}() got both {new!r} and its old spelling {old!r}")
                warn_of_rename(f"the argument {old!r} of {function.__name__}()", repr(new))
                kwargs[new] = kwargs.pop(old)
            return function(*args, **kwargs)

        return call  # type: ignore[return-value]

    return decorate


def renamed_value(function: str, renamed: tuple[str, str, Any], value: Any, new_value: Any) -> Any:
    """`value`, which was given by the old name of an argument, with a warning; for functions that are called
    too often for `renamed_arguments`.

    renamed: the old name, the new name, and the default value. new_value: that of the new name. Raises
    TypeError if both are given.
    """
    old, new, default = renamed
    if new_value is not default:
        raise TypeError(f"{function}() got both {new!r} and its old spelling {old!r}")
    warn_of_rename(f"the argument {old!r} of {function}()", repr(new), stacklevel=4)
    return value


def renamed_attributes(**renamed: str) -> Callable[[C], C]:
    """Class decorator: the attributes `old="new"` can still be read by their old names."""

    def decorate(cls: C) -> C:
        for old, new in renamed.items():
            setattr(cls, old, _alias(cls.__name__, old, new))
        return cls

    return decorate


class RenamedKeys(dict[str, V]):
    """A dictionary whose keys `old: new` of `renamed` can still be read by their old names.

    of: the function that returned it, for the warning.
    """

    def __init__(self, items: Mapping[str, V], of: str, renamed: Mapping[str, str]):
        super().__init__(items)
        self._of, self._renamed = of, renamed

    def __missing__(self, name: str) -> V:
        if name not in self._renamed:
            raise KeyError(name)
        warn_of_rename(f"the key {name!r} of the result of {self._of}()", repr(self._renamed[name]))
        return self[self._renamed[name]]


def _alias(owner: str, old: str, new: str) -> property:
    def read(self: Any) -> Any:
        warn_of_rename(f"{owner}.{old}", f"{owner}.{new}")
        return getattr(self, new)

    return property(read, doc=f"Deprecated: use `{new}`.")

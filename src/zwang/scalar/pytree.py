"""Pytrees: nested tuples, lists, dictionaries, dataclasses and arrays of scalars, as loops carry them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from zwang.scalar.arrays import MutableArray

NUMBERS = frozenset({float, int})


def leaves_of(tree: Any) -> list[Any]:
    """The leaves of a pytree in order: scalars and mutable arrays."""
    found: list[Any] = []
    _collect_leaves(tree, found)
    return found


def _collect_leaves(tree: Any, found: list[Any]) -> None:
    """Append the leaves of a pytree; plain numbers, which are most, are told first."""
    if type(tree) in NUMBERS:
        found.append(tree)
    elif type(tree) in (tuple, list) and NUMBERS.issuperset(map(type, tree)):
        found.extend(tree)
    elif isinstance(tree, np.ndarray):
        found.extend(tree.flat)
    elif (children := _children(tree)) is None:
        found.append(tree)
    else:
        for child in children:
            _collect_leaves(child, found)


def rebuild(tree: Any, leaves: Sequence[Any]) -> Any:
    """A pytree of the structure of `tree` with these leaves; arrays become arrays of objects."""
    return _rebuild(tree, iter(leaves))


def structure_of(tree: Any) -> Any:
    """The structure of a pytree: equal for two pytrees that differ only in their leaves."""
    if isinstance(tree, np.ndarray):
        return tree.shape
    children = _children(tree)
    if children is None:
        return tree.shape if isinstance(tree, MutableArray) else None
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

"""Stacked pytrees: several pytrees of one structure, read at the index of a loop."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np

from zwang.scalar.arrays import Table
from zwang.scalar.control_flow import empty, fori_loop, table
from zwang.scalar.primitives import are_constant
from zwang.scalar.pytree import NUMBERS, leaves_of, rebuild

LARGEST_TABLE = 10_000  # entries of a table up to which an index would cost more than it saves


class StackedPytree:
    """Pytrees that differ only in their leaves: `stacked[i]` is pytree i, where i may be a traced index.

    A leaf that is the same in all pytrees stays as it is, so that a plain number folds away. Other constant
    leaves become a table, and other scalars an array, with a row for each pytree. Of a large table, columns
    that take few different values together are stored once for each of these, and read through an index:
    pairs of bodies repeat the numbers of each body.
    """

    def __init__(self, pytrees: Sequence[Any]) -> None:
        self.pytrees = pytrees
        columns = [list(column) for column in zip(*map(leaves_of, pytrees), strict=True)]
        kinds = [_kind(column) for column in columns]
        tables = {
            kind: _reader([c for c, k in zip(columns, kinds, strict=True) if k == kind])
            for kind in set(kinds)
        }
        count = dict.fromkeys(kinds, 0)
        self._leaves = []
        for kind in kinds:
            self._leaves.append((tables[kind], count[kind]))
            count[kind] += 1

    def __getitem__(self, index: Any) -> Any:
        if type(index) is int:  # as in an algorithm on floats
            return self.pytrees[index]
        return rebuild(self.pytrees[0], [read(index, column) for read, column in self._leaves])


def for_all(
    function: Callable[[Any], Any], pytrees: Sequence[Any], form: Callable[[Any], Hashable]
) -> list[Any]:
    """The scalar function(pytree) of each of the pytrees, in their order; traced, of many in a loop.

    form: what the pytrees that one loop visits have in common. They are of one structure.
    """
    groups: dict[Hashable, list[int]] = {}
    for i, pytree in enumerate(pytrees):
        groups.setdefault(form(pytree), []).append(i)
    found: list[Any] = [None] * len(pytrees)
    for numbers in groups.values():
        stacked = StackedPytree([pytrees[i] for i in numbers])

        def visit(k: Any, results: Any, stacked: StackedPytree = stacked) -> Any:
            return results.set(k, function(stacked[k]))

        results = fori_loop(0, len(numbers), visit, empty(len(numbers)))
        for k, i in enumerate(numbers):
            found[i] = results[k]
    return found


def _kind(column: list[Any]) -> str:
    """How the values of one leaf are stored: all the "same", "whole" or "real" constants, or "scalars"."""
    first = column[0]
    if len(set(map(id, column))) == 1:
        return "same"
    types = set(map(type, column))
    if types <= NUMBERS:
        return "same" if column.count(first) == len(column) else "whole" if types == {int} else "real"
    if not are_constant(*column):
        return "scalars"
    if all(value == first for value in column):
        return "same"
    return "whole" if all(isinstance(value, (int, np.integer)) for value in column) else "real"


def _reader(columns: list[list[Any]]) -> Callable[[Any, int], Any]:
    """The function (index of a pytree, number of a column) -> leaf, for columns that are stored alike."""
    kind, rows = _kind(columns[0]), list(zip(*columns, strict=True))
    if kind == "same":
        return lambda index, column: columns[column][0]
    if kind == "scalars":
        array = empty((len(rows), len(columns)))
        for i, row in enumerate(rows):
            for k, value in enumerate(row):
                array = array.set((i, k), value)
        return lambda index, column: array[index, column]
    values = np.array(rows, int if kind == "whole" else float)
    if values.size > LARGEST_TABLE:
        parts = _factors(values)
        return lambda index, column: parts[column](index)
    if kind == "whole":  # each with its own bounds, as the numbers are indices
        tables = [table(column) for column in values.T]
        return lambda index, column: tables[column][index]
    entries = table(values)
    return lambda index, column: entries[index, column]


def _factors(values: np.ndarray) -> list[Callable[[Any], Any]]:
    """For each column of a table the function that reads it; columns that are functions of one index share
    it.
    """
    indices: list[tuple[np.ndarray, np.ndarray, Table]] = []  # first places, index of each row, as a table
    readers: list[Callable[[Any], Any]] = []
    for column in values.T:
        bits = np.ascontiguousarray(column).view(np.int64)  # which tells 0.0 from -0.0
        known = next((i for i in indices if np.array_equal(bits[i[0]][i[1]], bits)), None)
        if known is None:
            _, first, index = np.unique(bits, return_index=True, return_inverse=True)
            known = first, index, table(index)
            if 2 * len(first) <= len(column):
                indices.append(known)
        first, _, places = known
        if 2 * len(first) <= len(column):
            entries = table(column[first])
            readers.append(lambda index, entries=entries, places=places: entries[places[index]])
        else:
            readers.append(lambda index, entries=table(column): entries[index])
    return readers

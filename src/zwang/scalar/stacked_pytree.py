"""Nests of one structure, laid beside one another, to be read at a loop's index."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zwang.scalar.control_flow import scratch, table
from zwang.scalar.primitives import are_constant
from zwang.scalar.pytree import leaves_of, rebuild


class StackedPytree:
    """Nests that differ in their scalars only: `stacked[i]` is the nest of number i, also where i is a traced index.

    What all nests have in common stays a plain number, so that it folds away; other constants become a table with a row for each nest.
    """

    def __init__(self, nests: Sequence[Any]) -> None:
        self.first = nests[0]
        columns = [list(column) for column in zip(*map(leaves_of, nests), strict=True)]
        kinds = [_kind(column) for column in columns]
        tables = {
            kind: _beside([c for c, k in zip(columns, kinds, strict=True) if k == kind])
            for kind in set(kinds)
        }
        count = dict.fromkeys(kinds, 0)
        self._places = []
        for kind in kinds:
            self._places.append((tables[kind], count[kind]))
            count[kind] += 1

    def __getitem__(self, index: Any) -> Any:
        return rebuild(self.first, [read(index, place) for read, place in self._places])


def _kind(column: list[Any]) -> str:
    if not are_constant(*column):
        return "scalars"
    if all(value == column[0] for value in column):
        return "same"
    return "whole" if all(isinstance(value, (int, np.integer)) for value in column) else "real"


def _beside(columns: list[list[Any]]) -> Callable[[Any, int], Any]:
    """The function from a nest's number and a place among these columns to the scalar there."""
    kind, rows = _kind(columns[0]), list(zip(*columns, strict=True))
    if kind == "same":
        return lambda index, place: columns[place][0]
    if kind == "scalars":
        store = empty((len(rows), len(columns)))
        for i, row in enumerate(rows):
            for k, value in enumerate(row):
                store = store.set((i, k), value)
        return lambda index, place: store[index, place]
    entries = table(np.array(rows, int if kind == "whole" else float))
    return lambda index, place: entries[index, place]

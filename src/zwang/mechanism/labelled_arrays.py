"""Arrays, data sets and tables with labels: their elements in the order of given names.

The labels say which element is which, and reordering or selecting elements keeps them; the position of an
element does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol, TypeVar

import numpy as np

from zwang.errors import ShapeError, ZwangError


class Labelled(Protocol):
    """An xarray.DataArray or xarray.Dataset."""

    dims: Any
    coords: Any

    def isel(self, indexers: Any) -> Any:
        """The elements at these positions of a dimension."""

    def transpose(self, *dims: Any) -> Any:
        """The same elements with another order of the dimensions."""


LabelledValues = TypeVar("LabelledValues", bound=Labelled)

ELEMENTS = ("coordinate", "speed", "input")
"""The dimensions of recordings over the elements of q, v and tau, and control."""


def in_order_of_names(
    values: LabelledValues,
    dimension: str,
    names: Sequence[str],
    what: str,
    error: type[ZwangError] = ShapeError,
) -> LabelledValues:
    """The values with their elements along a dimension in the order of `names`.

    what: the values, for errors. Raises `error` if the labels of the dimension are not these names, in any
    order.
    """
    labels = [str(x) for x in np.ravel(values.coords[dimension])] if dimension in values.coords else []
    if labels == list(names) and (dimension in values.dims or not names):
        return values
    if problem := _problem_of_labels(labels, names, dimension):
        raise error(f"{what} {problem}")
    if dimension not in values.dims:
        raise error(f"{what} has lost the dimension {dimension!r}; select by a list, which keeps it")
    return values.isel({dimension: [labels.index(name) for name in names]})


def _problem_of_labels(labels: Sequence[str], names: Sequence[str], kind: str) -> str:
    """How the labels, of that kind, are not these names, in any order; empty if they are."""
    for found, problem in (
        ([name for name in names if name not in labels], "lacks the"),
        ([label for label in labels if label not in names], "has the unknown"),
        ([name for name in names if labels.count(name) > 1], "has more than once the"),
    ):
        if found:
            return (
                f"{problem} {kind}{'s' * (len(found) > 1)} {_listed(found)}; it needs "
                f"{_listed(names) or 'none'}, each once, by its label"
            )
    return ""


def _listed(names: Sequence[str]) -> str:
    """The first names, for a message."""
    return ", ".join(map(repr, names[:8])) + (", ..." if len(names) > 8 else "")


def without_labels(values: Any, names: Sequence[str], what: str) -> Any:
    """A labelled array with worlds and times first, and its elements, last, in the order of `names`; other
    values as they are.

    Labels are those of the dimensions `ELEMENTS`, and the columns of a table or the index of a series of
    pandas, unless these are numbers. what: the argument, for errors, with which the names of columns may
    begin, as "q_hip" of q. Raises ShapeError.
    """
    if type(values) is np.ndarray:
        return values
    if hasattr(values, "iloc"):
        return _table_without_labels(values, names, what)
    dims, labels = getattr(values, "dims", ()), getattr(values, "coords", ())
    for dimension in ELEMENTS:
        if dimension in dims and dimension in labels:
            first = [d for d in ("world", "time") if d in dims]
            ordered = in_order_of_names(values, dimension, names, what)
            return ordered.transpose(*first, ..., dimension)
    return values


def _table_without_labels(values: Any, names: Sequence[str], what: str) -> np.ndarray:
    """The values of a pandas.DataFrame or Series in the order of `names`; those without names as they are."""
    labels, array = list(values.axes[-1]), np.asarray(values)
    if not any(isinstance(label, str) for label in labels):
        return array
    if not set(labels) & set(names):
        labels = [str(label).removeprefix(f"{what}_") for label in labels]
    if problem := _problem_of_labels(labels, names, "column" if array.ndim > 1 else "element"):
        raise ShapeError(f"{what} {problem}; give {what}.to_numpy(), which is read by position, or rename")
    return array[..., [labels.index(name) for name in names]]

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

    Labels are those of the dimensions `ELEMENTS`, and the columns of a table (of pandas, polars, pyarrow ...)
    or the index of a series of pandas, unless these are numbers. what: the argument, for errors, with which
    the names of columns may begin, as "q_hip" of q. Raises ShapeError.
    """
    if type(values) is np.ndarray:
        return values
    if columns := _names_of_columns(values):
        return _table_without_labels(values, columns, names, what)
    if dimension := _dimension_of_elements(values):
        first = [d for d in ("world", "time") if d in values.dims]
        ordered = in_order_of_names(values, dimension, names, what)
        return ordered.transpose(*first, ..., dimension)
    return values


def has_labels(values: Any) -> bool:
    """Whether `without_labels` reads these values by labels."""
    return type(values) is not np.ndarray and bool(
        _names_of_columns(values) or _dimension_of_elements(values)
    )


def _dimension_of_elements(values: Any) -> str:
    """The labelled dimension of an array over the elements of q, v or tau, or control; empty without one."""
    dims, labels = getattr(values, "dims", ()), getattr(values, "coords", ())
    return next((x for x in ELEMENTS if x in dims and x in labels), "")


def _names_of_columns(values: Any) -> list[Any]:
    """The names of the columns of a table, or of the elements of a series of pandas; empty without names."""
    if hasattr(values, "iloc"):
        names = values.axes[-1]
    else:
        names = getattr(values, "column_names", None) or getattr(values, "columns", None)
        names = names if isinstance(names, list | tuple) else ()
    return list(names) if any(isinstance(name, str) for name in names) else []


def _table_without_labels(values: Any, labels: list[Any], names: Sequence[str], what: str) -> Any:
    """The values of a table with these labels of its columns, or of a series, in the order of `names`."""
    array = np.asarray(values)
    if array.shape[-1:] != (len(labels),):  # such as a table that is not evaluated yet
        return values
    if not set(labels) & set(names):
        labels = [str(label).removeprefix(f"{what}_") for label in labels]
    if problem := _problem_of_labels(labels, names, "column" if array.ndim > 1 else "element"):
        raise ShapeError(
            f"{what} {problem}; give numpy.asarray({what}), which is read by position, or rename"
        )
    return array[..., [labels.index(name) for name in names]]

"""Generic-scalar functions evaluated over batches of configurations, compiled or on floats."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from zwang.api.compilation.compiled import compile_function

Shapes = dict[str, tuple[int, ...]]
BatchFunction = Callable[..., tuple[np.ndarray, ...]]


def compiled_over_batch(
    function: Callable[..., Any], inputs: Shapes, threads: int | None = None
) -> BatchFunction:
    """The compiled function; its arrays have the shape of the batch followed by that of the input or output.

    inputs: the shape of each argument by name. threads: by default one for each core.
    """
    compiled = compile_function(function, inputs, threads=threads)
    shapes = list(inputs.values())
    outputs = [port.shape for port in compiled.program.outputs]

    def evaluate(*arrays: Any) -> tuple[np.ndarray, ...]:
        flat = [
            _flat(np.asarray(a, dtype=float), len(shape)) for a, shape in zip(arrays, shapes, strict=True)
        ]
        made = compiled(*flat)
        results = made if isinstance(made, tuple) else (made,)
        return tuple(r.reshape(*r.shape[:-1], *shape) for r, shape in zip(results, outputs, strict=True))

    return evaluate


def _flat(array: np.ndarray, axes: int) -> np.ndarray:
    """The array with its last axes merged into one."""
    kept = array.ndim - axes
    return array.reshape(*array.shape[:kept], math.prod(array.shape[kept:]))


def floats_over_batch(function: Callable[..., Any], inputs: Shapes) -> BatchFunction:
    """The function evaluated on floats, one configuration after another: the reference for compilation."""

    def evaluate(*arrays: Any) -> tuple[np.ndarray, ...]:
        arrays = tuple(np.asarray(a, dtype=float) for a in arrays)
        shapes = list(inputs.values())
        batches = [a.shape[: a.ndim - len(shape)] for a, shape in zip(arrays, shapes, strict=True)]
        batch = np.broadcast_shapes(*batches)
        wide = [np.broadcast_to(a, (*batch, *shape)) for a, shape in zip(arrays, shapes, strict=True)]
        results = [function(*(a[index] for a in wide)) for index in np.ndindex(*batch)]
        columns = zip(*results, strict=True)
        stacked = [np.array([np.asarray(x, dtype=float) for x in column]) for column in columns]
        return tuple(x.reshape(*batch, *x.shape[1:]) for x in stacked)

    return evaluate

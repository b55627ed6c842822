"""Recordings in the order of their mechanism: what is computed from one finds its elements by label."""

from __future__ import annotations

import numpy as np
import xarray as xr

from zwang.errors import ParameterError, ShapeError
from zwang.mechanism.labelled_arrays import in_order_of_names
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names


def check_not_joined(run: xr.Dataset) -> None:
    """Raises ShapeError for several recordings that are joined in a dimension of their own."""
    for name in ("q", "v", "energy"):
        dims = run[name].dims if name in run else ()
        if others := [str(dim) for dim in dims if dim not in ("world", "time", "coordinate", "speed")]:
            raise ShapeError(
                f"the variable {name!r} has the dimension {others[0]!r} beside those of a recording; select "
                f"one recording by run.isel({others[0]}=0), or join recordings along world"
            )


def in_mechanism_order(run: xr.Dataset, mechanism: Mechanism, *dimensions: str) -> xr.Dataset:
    """The recording with worlds and times first, and the elements of some dimensions in the order of its
    mechanism.

    dimensions: of "coordinate", "speed", "input" and "actuator". Raises ShapeError, with the labels, if some
    are missing, unknown or repeated, and for several recordings that are joined in a dimension of their own.
    """
    check_not_joined(run)
    names = {
        "coordinate": mechanism.coordinate_names,
        "speed": mechanism.speed_names,
        "input": control_names(mechanism),
        "actuator": activations(mechanism),
    }
    for dimension in dimensions:
        run = in_order_of_names(run, dimension, names[dimension], "the recording")
    return run.transpose("world", "time", ...)


def parameters_of(run: xr.Dataset, mechanism: Mechanism) -> dict[str, np.ndarray]:
    """The values (worlds,) of each symbol of its mechanism, in the order of the symbols.

    Raises ParameterError, with the names, for symbols without values.
    """
    if not mechanism.symbols:
        return {}
    missing = "parameters" not in run.variables
    known = xr.Dataset() if missing else run[["parameters"]]
    found = in_order_of_names(known, "parameter", mechanism.symbols, "the recording", ParameterError)
    table = np.asarray(found["parameters"].transpose("world", "parameter").values, dtype=float)
    return dict(zip(mechanism.symbols, table.T, strict=True))

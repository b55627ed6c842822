"""The values that attributes of recordings may have in files: those that are read as they were written."""

from __future__ import annotations

from typing import Any

import numpy as np
import xarray as xr

from zwang.errors import SimulationError
from zwang.mechanism.type_validation import LARGEST, short_repr


def check_attributes(run: xr.Dataset, suffix: str) -> None:
    """Raises SimulationError, with the names of attribute and variable, for an attribute that a file with
    this suffix, .nc or .zarr, does not hold.
    """
    holds, name, kinds = {
        ".nc": (_is_netcdf, "a NetCDF file", "numbers, arrays of numbers, texts and lists of texts"),
        ".zarr": (_is_json, "a Zarr folder", "the values of JSON, and rectangular arrays of them"),
    }[suffix]
    for variable, x in {"": run, **run.variables}.items():
        for key, value in x.attrs.items():
            if not isinstance(key, str) or not _is_rectangular(value) or not holds(value):
                owner = f"variable {str(variable)!r}" if variable else "the recording"
                raise SimulationError(
                    f"attribute {key!r} of {owner} is {short_repr(value)}, a {type(value).__name__}, which "
                    f"{name} does not hold: attributes have texts as names, and {kinds} as values; give "
                    "another value, such as 0 or 1 for a truth value, or delete it from `attrs`"
                )


def _is_rectangular(value: Any) -> bool:
    """Whether the value is none of nested lists whose rows have different lengths."""
    try:
        np.asarray(value)
    except ValueError:
        return False
    return True


def _is_netcdf(value: Any) -> bool:
    if isinstance(value, str):
        return True
    if isinstance(value, list | tuple) and any(isinstance(x, str) for x in value):
        return all(isinstance(x, str) for x in value)
    return np.asarray(value).dtype.kind in "iufc"


def _is_json(value: Any) -> bool:
    if isinstance(value, np.ndarray | np.generic):
        return _is_json(value.tolist())
    if isinstance(value, dict):
        return all(isinstance(key, str) and _is_json(x) for key, x in value.items())
    if isinstance(value, list | tuple):
        return all(map(_is_json, value))
    if isinstance(value, int):
        return abs(value) < LARGEST
    return value is None or isinstance(value, float | str)

"""The description of the mechanism in a recording, as JSON."""

from __future__ import annotations

import numpy as np
import xarray as xr

from zwang.errors import LoadError, ShapeError


def description_of(run: xr.Dataset) -> str:
    """The description of the mechanism; of joined recordings that of all parts.

    `xarray.concat` repeats it along the dimension in which recordings are joined. Raises LoadError without a
    description, ShapeError for different ones.
    """
    if "mechanism" not in run:
        raise LoadError("this dataset is not a recording of zwang: it has no variable 'mechanism'")
    found = sorted({str(x) for x in np.ravel(run["mechanism"].values)})
    if len(found) != 1:
        raise ShapeError(
            f"the variable 'mechanism' holds {len(found)} different descriptions; a recording has one, whose "
            "symbols may have other values in each world: join recordings of equal mechanisms"
        )
    return found[0]

"""The checksum of a recording, which is the same before writing and after reading, in every file format."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
import xarray as xr

ATTRIBUTE = "checksum"
FOUND_BY_XARRAY = ("coordinates", "_FillValue")  # attributes that xarray adds to files


def checksum(run: xr.Dataset) -> str:
    """The SHA-256 of the recording's attributes, and of the names, attributes, dimensions, types and values
    of all variables.

    It does not cover the attribute `checksum`, the order of variables, and the payloads of NaNs.
    """
    digest = hashlib.sha256()
    _add(digest, _attributes(run.attrs))
    for name in sorted(run.variables, key=str):
        variable = run.variables[name]
        _add(digest, [f"variable {name}", *(f"{d} {n}" for d, n in variable.sizes.items())])
        _add(digest, _attributes(variable.attrs))
        _add_values(digest, np.asarray(variable.values))
    return f"sha256:{digest.hexdigest()}"


def _add(digest: Any, texts: Iterable[str]) -> None:
    for text in texts:
        content = text.encode("utf-8", "surrogatepass")
        digest.update(len(content).to_bytes(8, "little") + content)


def _attributes(attributes: Mapping[Any, Any]) -> list[str]:
    """Name and values of each attribute; files do not distinguish a number and a list of one."""
    found: list[str] = []
    for name in sorted(attributes, key=str):
        if name not in (ATTRIBUTE, *FOUND_BY_XARRAY):
            found += [f"attribute {name}", *map(_value_text, np.ravel(np.asarray(attributes[name])).tolist())]
    return found


def _value_text(value: Any) -> str:
    return f"number {float(value).hex()}" if isinstance(value, (bool, int, float)) else f"text {value}"


def _add_values(digest: Any, values: np.ndarray) -> None:
    if values.dtype.kind in "OUT":
        _add(digest, ["texts", *map(str, values.ravel().tolist())])
        return
    plain = np.ascontiguousarray(values, values.dtype.newbyteorder("<"))
    if plain.dtype.kind == "f" and (nan := np.isnan(plain)).any():
        plain = np.where(nan, plain.dtype.type(np.nan), plain)
    _add(digest, [plain.dtype.str])
    digest.update(plain.data if plain.size and plain.dtype.kind not in "mM" else plain.tobytes())

"""Recordings in files: NetCDF files and Zarr folders, written completely or not at all, and verified by a
checksum.
"""

from __future__ import annotations

import io
import json
import os
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import h5netcdf
import numpy as np
import xarray as xr
from xarray.backends import H5NetCDFStore

from zwang.atomic import write_file, write_folder
from zwang.errors import LoadError, MissingExtraError, SimulationError
from zwang.mechanism.type_validation import short_repr
from zwang.recording.attribute_values import check_attributes
from zwang.recording.checksum import ATTRIBUTE, checksum
from zwang.recording.description import description_of
from zwang.recording.mcap_export import mcap_bytes, need_mcap

OF_ZARR = re.compile(
    r"zarr\.json|\.z(array|attrs|group|metadata)|c|\d+(\.\d+)*"
)  # file names in a Zarr array's folder
NO_RECORDINGS = {
    ".mcap": "an MCAP file is an export, which is not read back: save the recording to .nc or .zarr, too",
    **dict.fromkeys(
        (".urdf", ".xml", ".mjcf", ".json"),
        "a file of this ending is a model: zw.simulate, or `zwang simulate`, makes a recording of it",
    ),
}
"""What files are that are no recordings, by their endings."""
TEXTS = np.dtype(object, metadata={"element_type": str})
"""Python's strings, as xarray marks them; it writes other objects as numbers if there are no elements."""


def write_recording(run: xr.Dataset, path: str | Path) -> None:
    """Write a recording to a file or folder; see `zwang.save`."""
    check_destination(path)
    suffix = Path(path).suffix
    if suffix == ".mcap":
        write_file(path, mcap_bytes(run))
        return
    _check_texts(run)
    check_attributes(run, suffix)
    summed = run.assign_attrs({ATTRIBUTE: checksum(run)})
    if suffix == ".nc":
        write_file(path, _netcdf(summed))
        return
    texts = _with_texts(summed, TEXTS)
    write_folder(path, lambda folder: _to_zarr(texts, folder))


def check_destination(path: str | Path) -> None:
    """Raises SimulationError for a path to which no recording is written, and MissingExtraError without the
    library zarr or mcap that it needs.
    """
    suffix = Path(path).suffix
    if suffix not in (".nc", ".zarr", ".mcap"):
        raise SimulationError(
            f"{str(path)!r} ends in {suffix!r}; a recording is written to .nc (NetCDF) or .zarr, "
            "or exported to .mcap"
        )
    if suffix == ".zarr":
        _need_zarr()
        _refuse_foreign(Path(path))
    elif Path(path).is_dir():
        raise SimulationError(
            f"{str(path)!r} is a folder; a recording in {suffix} is a file: give another name"
        )
    elif suffix == ".mcap":
        need_mcap()


def read_recording(path: str | Path) -> xr.Dataset:
    """The dataset in a file, loaded into memory and verified by its checksum, if it has one. Raises
    LoadError.
    """
    if Path(path).suffix == ".zarr":
        _need_zarr()
    if "://" not in str(path) and not os.path.lexists(path):
        raise LoadError(f"there is no recording {str(path)!r}")
    if Path(path).suffix != ".zarr" and os.path.isdir(path):
        raise LoadError(f"{str(path)!r} is a folder, and a recording that is one ends in .zarr")
    try:
        opener = (
            xr.open_zarr(path, consolidated=False)
            if Path(path).suffix == ".zarr"
            else xr.open_dataset(path, engine="h5netcdf")
        )
        with opener as opened:
            run = _with_texts(opened.load(), str)
        stored = run.attrs.pop(ATTRIBUTE, None)
        found = stored if stored is None else checksum(run)
    except Exception as error:  # a damaged file makes the libraries raise almost anything
        reason = NO_RECORDINGS.get(Path(path).suffix.lower(), f"or it is damaged: {error}")
        raise LoadError(f"{str(path)!r} is not a recording; {reason}") from None
    if stored != found:
        raise LoadError(
            f"{str(path)!r} does not hold what was written: its checksum is another one. It was "
            f"damaged, or changed by "
            "another program, which should leave out the attribute 'checksum'; xarray.open_dataset "
            "reads it all the same"
        )
    return run


def _netcdf(run: xr.Dataset) -> bytes:
    """The content of the NetCDF file, written in memory, as HDF5 does not recover from a full disk."""
    content = io.BytesIO()
    with h5netcdf.File(content, "w") as file:
        run.dump_to_store(H5NetCDFStore(file))
    return content.getvalue()


def _check_texts(run: xr.Dataset) -> None:
    """Raises SimulationError for a text that NetCDF and Zarr do not hold, and for other Python objects."""
    for name, x in run.variables.items():
        others = [part for part in x.values.flat if not isinstance(part, str)] if x.dtype == object else []
        if others:
            raise SimulationError(
                f"the variable {short_repr(name)} holds {short_repr(others[0])} among Python objects; a file "
                "holds arrays of numbers, or of texts alone, in which a missing one may be ''"
            )
    for text in _texts(run):
        if re.search("[\0\ud800-\udfff]", text):
            raise SimulationError(
                f"the recording contains the name or text {short_repr(text)}, with a NUL character or half "
                "of a surrogate pair, which a file does not hold; give another name"
            )


def _texts(run: xr.Dataset) -> Iterator[str]:
    """All texts in a recording: of variables, of attributes, and of the description of the mechanism."""
    for name, x in {"": run, **run.variables}.items():
        yield str(name)
        for key, value in x.attrs.items():
            yield str(key)
            yield from _strings(value)
        if isinstance(x, xr.Variable) and x.dtype.kind in "OUT":
            yield from _strings(json.loads(description_of(run)) if name == "mechanism" else x.values.tolist())


def _strings(value: Any) -> Iterator[str]:
    """The strings in nested lists and dictionaries."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        yield from _strings([*value, *value.values()])
    elif isinstance(value, list | tuple):
        for part in value:
            yield from _strings(part)


def _to_zarr(run: xr.Dataset, folder: Path) -> None:
    run.to_zarr(folder, mode="w", consolidated=False)


def _refuse_foreign(path: Path) -> None:
    """Raises SimulationError for a folder that contains other files than a recording, which would be lost."""
    if not path.exists():
        return
    if not path.is_dir():
        raise SimulationError(f"{str(path)!r} is a file; a Zarr recording is a folder: give another name")
    held = sorted(os.listdir(path))
    if held and not {"zarr.json", ".zgroup"} & set(held):
        raise SimulationError(
            f"the folder {str(path)!r} contains {held[0]!r} and no recording; give another name, or empty it"
        )
    for place, _, files in os.walk(path):
        inside = Path(place).relative_to(path).parts
        for name in files:
            if not all(OF_ZARR.fullmatch(part) for part in (*inside[1:], name)) or (
                not inside and name[0].isdigit()
            ):
                raise SimulationError(
                    f"the folder {str(path)!r} contains {str(Path(*inside, name))!r}, which is not part "
                    f"of a recording and "
                    "would be lost; give another name, or move that file away"
                )


def _need_zarr() -> None:
    if find_spec("zarr") is None:
        raise MissingExtraError(
            "recordings in Zarr folders need the library zarr: pip install 'zarr>=2.18'; or write to .nc"
        )


def _with_texts(run: xr.Dataset, kind: type | np.dtype) -> xr.Dataset:
    """The recording with its texts as NumPy strings (str), or as Python's strings (TEXTS) for Zarr."""
    changed = run.copy()
    for name, x in run.variables.items():
        if x.dtype.kind in "OUT":
            values = np.array(x.values.tolist(), dtype=object)
            changed[name] = (x.dims, values.astype(kind), x.attrs)
    return changed

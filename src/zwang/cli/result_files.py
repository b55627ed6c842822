"""Files of results: recordings that commands read, and places that they write to."""

from __future__ import annotations

from pathlib import Path

import xarray as xr

import zwang as zw
from zwang.cli.inputs import missing_file_message
from zwang.errors import LoadError, SimulationError
from zwang.recording.storage import check_destination

RECORDINGS, PICTURES, PAGES = (".nc", ".zarr"), (".png", ".pdf", ".svg"), (".html", ".htm")
EXPORTS = (*RECORDINGS, ".mcap")


def recording_from_file(path: Path) -> xr.Dataset:
    """The recording of a file. Raises LoadError, with similar names, where there is none."""
    if not path.exists():
        raise LoadError(missing_file_message(path, RECORDINGS))
    return zw.open_run(path)


def check_output_files(paths: dict[str, tuple[Path | None, tuple[str, ...]]]) -> None:
    """Check before a long simulation that its output files can be written. Raises SimulationError
    otherwise, MissingExtraError for a recording without the library zarr or mcap that it needs.
    """
    for option, (path, endings) in paths.items():
        if path is None:
            continue
        if path.suffix not in endings:
            raise SimulationError(f"{option} {str(path)!r} must end in {' or '.join(endings)}")
        check_place(option, path, may_be_folder=endings is EXPORTS)
        if endings is EXPORTS:
            check_destination(path)


def check_place(option: str, path: Path, *, may_be_folder: bool = False) -> None:
    """Raises SimulationError if the folder of an output file is missing, or the file is a folder."""
    if not path.resolve().parent.is_dir():
        raise SimulationError(f"{option} {str(path)!r}: there is no folder {str(path.parent)!r}")
    if path.is_dir() and not may_be_folder:
        raise SimulationError(f"{option} {str(path)!r} is a folder; give the name of a file")

"""Export of a mechanism to other tools: a C99 library, an FMU or a WebAssembly module."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy.typing as npt

from zwang.api.runs.termination import (
    check_coordinate_reduction,
    warn_of_penetrations,
    warn_of_violations,
)
from zwang.errors import FormatError
from zwang.interop.c99 import write_c_library
from zwang.interop.export_settings import STATE_DERIVATIVE, STEP, ExportSettings, export_settings
from zwang.interop.fmi import write_fmu
from zwang.interop.wasm import write_wasm
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.report import Note, Report
from zwang.mechanism.type_validation import short_repr, validated_arguments

WRITERS: dict[str, Callable[[ExportSettings, Path], list[Note]]] = {
    "c99": write_c_library,
    "fmu": write_fmu,
    "wasm": write_wasm,
}
"""The writer of each format; it returns notes on the files that it wrote."""

ENDINGS = {".fmu": "fmu", ".wasm": "wasm"}
"""The format of a file by its ending; a path without an ending is a folder, of C99 code."""


@validated_arguments()
def export(
    mechanism: Mechanism,
    path: str | os.PathLike[str],
    *,
    format: str | None = None,
    name: str | None = None,
    step: float | None = None,
    integrator: str | None = None,
    stabilization: str | None = None,
    coordinate_reduction: bool | str | PointSpeed | Sequence[str | PointSpeed] = False,
    dtype: str = "float64",
    functions: Sequence[str] | None = None,
    frames: Sequence[str] | None = None,
    q0: npt.ArrayLike | Mapping[str, npt.ArrayLike] | str | None = None,
    v0: npt.ArrayLike | Mapping[str, npt.ArrayLike] | None = None,
    params: Mapping[Any, Any] | None = None,
) -> Report:
    """Write a mechanism as code for other programs, which computes the same bits as zwang.

    path: a folder, for the format "c99", or a file that ends in .fmu or .wasm.
    format: "c99", for a C99 library NAME.h and NAME.c without dependencies or allocation, with an example
        main.c and a CMakeLists.txt, which do not replace files of the user; "fmu", for a Functional Mock-up
        Unit of FMI 3.0, for co-simulation by steps of fixed size and, where the motion has no jumps, for
        model exchange; "wasm", for a WebAssembly module, with a wrapper STEM.mjs in JavaScript beside it. By
        default it follows from the path.
    name: the prefix of all names in the code, by default the mechanism's name with its letters, digits and
        underscores.
    step: step size [s]. integrator: "euler", "implicitfast", "implicit" or "rk4"; by default those of the
        mechanism's options. stabilization, coordinate_reduction: as for `zw.simulate`.
    dtype: "float64" or "float32", the type of all numbers; an FMU has "float64".
    functions: names of functions of C99 code or WebAssembly, by default "step", "forward_dynamics",
        "inverse_dynamics", "mass_matrix", "bias_forces", "frame_pose", "frame_jacobian", and "sensors" if
        there are any. Others are those of `zw.compile(mechanism).source`, and "state_derivative", the
        derivatives of q, v and the activations by time, with constraints and soft contacts. In sensors and
        external wrenches constraints act as in the step of the export.
    frames: names of bodies and frames, for functions of frames, whose positions are outputs of an FMU; by
        default all frames, or without any all bodies.
    q0, v0: the initial state of the code, (nq,) and (nv,) or dictionaries by name, as for `zw.simulate`. q0
        may also be the name of a keyframe, which then also gives the activations, the default of v0, and the
        control with which an FMU and a WebAssembly module start, and which the example of C99 code uses.
        As in `zw.simulate`, a SimulationWarning tells of a state off the hard constraints, and of shapes that
        penetrate each other deeply.
    params: a value for each symbol of the mechanism, by name. The symbols are inputs of the code, and these
        are the values that its example uses, and the start values of an FMU's tunable parameters.

    Returns a report, whose notes name the files and what an FMU does not offer. Raises FormatError for an
    unknown format or a mechanism that it cannot express, ParameterError for a symbol without a value,
    UnknownNameError, DescriptionError, SimulationError, ShapeError or StateError for an invalid argument,
    MissingExtraError for an FMU without a C compiler or WebAssembly without ziglang, CompileError if the
    compiler fails, and WriteError. Source: Modelica Association, Functional Mock-up Interface
    Specification, version 3.0 (2022).
    """
    format = _format_of(path, format)
    settings = export_settings(
        mechanism,
        name=name,
        step=step,
        integrator=integrator,
        stabilization=stabilization,
        coordinate_reduction=coordinate_reduction,
        dtype=dtype,
        functions=functions,
        frames=frames,
        q0=q0,
        v0=v0,
        params=params,
    )
    if functions is not None and format == "fmu":
        raise FormatError("functions= selects functions of C99 code and WebAssembly; omit it for an FMU")
    if {STEP, STATE_DERIVATIVE}.intersection(settings.functions):
        check_coordinate_reduction(mechanism, settings.initial, settings.plan)
        warn_of_violations(mechanism, settings.initial, settings.plan, stacklevel=4)
        warn_of_penetrations(mechanism, settings.initial, stacklevel=4)
    return Report(str(path), format, tuple(WRITERS[format](settings, Path(path))))


def _format_of(path: str | os.PathLike[str], format: str | None) -> str:
    """The name of the format. Raises FormatError."""
    if format is not None:
        if format not in WRITERS:
            raise FormatError(f"format is {short_repr(format)}; it must be one of {', '.join(WRITERS)}")
        return format
    ending = Path(path).suffix.lower()
    is_folder = not ending or str(path).endswith(("/", os.sep)) or Path(path).is_dir()
    if is_folder or ending in ENDINGS:
        return "c99" if is_folder else ENDINGS[ending]
    endings = "".join(f", or a file name that ends in {known}" for known in ENDINGS)
    raise FormatError(
        f"{str(path)!r} ends in {ending!r}; give the name of a folder for C99 code{endings}, or format=..., "
        f"one of {', '.join(WRITERS)}"
    )

"""A mechanism as a Functional Mock-up Unit (FMI 3.0), for co-simulation and for model exchange.

Source: Modelica Association, Functional Mock-up Interface Specification, version 3.0 (2022).
"""

from __future__ import annotations

import hashlib
import io
import platform
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from zwang.api.compilation.programs import traced_program
from zwang.api.functions.sensor_functions import sensors
from zwang.api.runs.compiled_rollout import LARGEST_EXACT
from zwang.api.runs.error_controlled_rollout import continuous_dynamics
from zwang.atomic import write_file
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.constraint.context import StepForm
from zwang.constraint.hard import hard_constraints
from zwang.constraint.limit import has_hard_limits
from zwang.errors import FormatError, TraceError
from zwang.interop.c99 import CLibrary, c_library, template, written
from zwang.interop.c_compiler import c_compiler, shared_library
from zwang.interop.c_header import Footprint
from zwang.interop.export_settings import SENSORS, STATE_DERIVATIVE, STEP, ExportSettings
from zwang.interop.exported_functions import (
    STATE_INPUTS,
    ExportedArgument,
    ExportedFunction,
    check_continuous,
    function_of_step,
    state_inputs,
    state_shapes,
)
from zwang.interop.model_description import FmuKinds, model_description
from zwang.io.xml_writer import XmlElement, document
from zwang.kinematics import poses
from zwang.kinematics.configuration import normalized_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.report import Note
from zwang.simulation.applied_forces import depend_on_step

POSE, EXCHANGE_SENSORS = "frame_pose", "exchange_sensors"
EARLIEST = (1980, 1, 1, 0, 0, 0)
"""The date of files in an archive: always the same, so that equal FMUs have equal bytes."""


def write_fmu(settings: ExportSettings, path: Path) -> list[Note]:
    """Write an FMU; returns notes on the file and on what it does not offer.

    Raises MissingExtraError without a C compiler, FormatError for another dtype than
    float64, and WriteError.
    """
    if settings.dtype != "float64":
        raise FormatError("an FMU has numbers of double precision only; give dtype='float64'")
    compiler = c_compiler()
    kinds, library = _library(settings)
    sources = {name: text.encode("ascii") for name, text in library.files.items()}
    token = "{" + hashlib.sha256(b"".join(sources.values())).hexdigest()[:32] + "}"
    sources["fmi3.c"] = _fmi_source(settings, library, kinds, token).encode("ascii")
    files = {"modelDescription.xml": model_description(settings, kinds, token)}
    files |= {f"sources/{name}": content for name, content in sources.items()}
    files["sources/buildDescription.xml"] = _build_description(settings.name)
    files |= _binary(settings.name, compiler, sources)
    write_file(path, _archive(files))
    obstacle = model_exchange_obstacle(settings)
    left_out = [Note("ignored", f"for co-simulation only: {obstacle}", "ModelExchange")] * bool(obstacle)
    return [written(path), *left_out]


def model_exchange_obstacle(settings: ExportSettings) -> str:
    """Why the motion cannot be left to an importer's integrator; empty if it can."""
    try:
        check_continuous(settings.mechanism)
    except FormatError:
        return "velocities may jump, sliding may stop or a slew rate acts within a step"
    if hard_constraints(settings.mechanism) and settings.plan.stabilization == "projection":
        return (
            "an importer's integrator does not project onto hard constraints; stabilization='baumgarte' "
            "needs no projection"
        )
    return ""


def _library(settings: ExportSettings) -> tuple[FmuKinds, CLibrary]:
    """The C functions that the FMU calls, and the kinds of simulation that it is for."""
    functions = [STEP, *[SENSORS] * bool(settings.mechanism.sensors), *[POSE] * bool(settings.frames)]
    exchange = not model_exchange_obstacle(settings)
    derivatives = _output_jacobian(settings) if exchange else None
    functions += [STATE_DERIVATIVE] * exchange
    chosen = replace(settings, functions=tuple(functions))
    more = [] if derivatives is None else [derivatives]
    if exchange and settings.mechanism.sensors and _differs_from_step(settings):
        more.append(function_of_step(settings, SENSORS, _exchange_form(settings), EXCHANGE_SENSORS))
    library = c_library(chosen, more)
    return FmuKinds(exchange, derivatives is not None), library


def _exchange_form(settings: ExportSettings) -> StepForm:
    """How the state derivative closes hard constraints: as that of error-controlled integrators."""
    return settings.form._replace(multistage=True, continuous=True)


def _differs_from_step(settings: ExportSettings) -> bool:
    """Whether hard limits close or actuators act otherwise in the state derivative than in a step."""
    m = settings.mechanism
    return depend_on_step(m) or (not settings.form.multistage and has_hard_limits(m))


def _output_jacobian(settings: ExportSettings) -> ExportedFunction | None:
    """The derivatives of (q_dot, v_dot, z_dot, outputs) by (q, v, z, control, parameters), row by row.

    None if a program contains loops, such as that of the constraint solver, or is that of more than
    LARGEST_EXACT velocities.
    """
    plan, m = settings.plan, settings.mechanism
    if m.nv > LARGEST_EXACT:
        return None

    def text(m: Mechanism, parameters: Any, values: Mapping[str, Any]) -> Any:
        dynamics = continuous_dynamics(m, plan.step, plan.stabilization, plan.coordinate_reduction)
        time, *state = (values[name] for name in STATE_INPUTS)
        q, v, z, u = state
        rows = [*dynamics.derivative(time, *state)[:-1]]
        unit = normalized_configuration(m.tree, q)  # as in the functions of the outputs
        rows += [*sensors(m, unit, v, u, z, time, _exchange_form(settings))] if m.sensors else []
        rows += [x for frame in settings.frames for x in poses.frame_pose(m.tree, unit, frame).p]
        return np.ravel(jacobian(rows, [*q, *v, *z, *u, *parameters]))

    try:
        program = traced_program(m, text, state_shapes(settings), set())
    except TraceError:
        return None
    output = ExportedArgument(
        "J", program.outputs[0].size, "SI", "derivatives of state rates and outputs, row by row"
    )
    summary = "Derivatives of the state's rates and the outputs by the state, the control and the parameters."
    return ExportedFunction(f"{settings.name}_jacobian", program, state_inputs(settings), (output,), summary)


# ----------------------------------------------------------------------------------------------------- source


def _fmi_source(settings: ExportSettings, library: CLibrary, kinds: FmuKinds, token: str) -> str:
    """The text of fmi3.c."""
    m, name = settings.mechanism, settings.name
    by_name = {
        function.name: _call(function, footprint, _RESULTS) for function, footprint in library.functions
    }
    sensed, exchange = (by_name.get(f"{name}_{x}", "") for x in (SENSORS, EXCHANGE_SENSORS))
    calls = [f"if (x->co_simulation) {sensed} else {exchange}" if exchange else sensed]
    at = sum(sensor.quantity.size for sensor in m.sensors)
    for function, footprint in library.functions:
        if function.name.startswith(f"{name}_{POSE}_"):
            calls.append(_call(function, footprint, {"R": "rotation", "p": f"x->outputs + {at}"}))
            at += 3
    quaternions = [j.q.stop - 4 for j in m.joints if j.kind in ("ball", "free")]
    text = template("fmi3.c").template + "\n" + template("fmi3_simulation.c").template
    return Template(text).substitute(
        name=name,
        upper=name.upper(),
        token=token,
        outputs=at,
        uses_time=int(settings.depends_on_time),
        has_derivatives=int(kinds.model_exchange),
        has_jacobian=int(kinds.directional_derivatives),
        work=max((footprint.work for _, footprint in library.functions), default=0),
        quaternions="".join(f"{k}, " for k in quaternions),
        derivative_call=by_name.get(f"{name}_{STATE_DERIVATIVE}", ""),
        jacobian_call=by_name.get(f"{name}_jacobian", ""),
        output_calls="\n".join(f"    {call}" for call in calls),
        parameters=", x->parameters" if m.symbols else "",
    )


_RESULTS = {
    "values": "x->outputs",
    "q_dot": "x->derivatives",
    "v_dot": "x->derivatives + NQ",
    "z_dot": "x->derivatives + NQ + NV",
    "status": "&status",
    "J": "J",
}
_STATE = {
    "time": "&x->time",
    "q": "x->state.q",
    "v": "x->state.v",
    "activation": "x->state.activation",
    "control": "x->control",
    "parameters": "x->parameters",
}


def _call(function: ExportedFunction, footprint: Footprint, outputs: Mapping[str, str]) -> str:
    """The call of a function of the library, with the values of the instance x."""
    arguments = [_STATE.get(x.name, "") for x in function.inputs if x.size]
    arguments += [outputs.get(x.name, "") for x in function.outputs if x.size]
    return f"{function.name}({', '.join(arguments + ['work'] * bool(footprint.work))});"


# ---------------------------------------------------------------------------------------------------- archive


def _build_description(name: str) -> bytes:
    root = XmlElement("fmiBuildDescription", {"fmiVersion": "3.0"})
    files = root.add("BuildConfiguration", modelIdentifier=name).add("SourceFileSet", language="C99")
    for source in (f"{name}.c", "fmi3.c"):
        files.add("SourceFile", name=source)
    return document(root)


def platform_name() -> str:
    """The name of this platform in an FMU, such as x86_64-linux."""
    machine = platform.machine().lower()
    architecture = {"amd64": "x86_64", "arm64": "aarch64"}.get(machine, machine)
    systems = {"win32": "windows", "darwin": "darwin"}
    return f"{architecture}-{systems.get(sys.platform, 'linux')}"


def _binary(name: str, compiler: list[str], sources: Mapping[str, bytes]) -> dict[str, bytes]:
    """The shared library for this platform, by its place in the archive."""
    ending = {"win32": ".dll", "darwin": ".dylib"}.get(sys.platform, ".so")
    with tempfile.TemporaryDirectory() as folder:
        for file, content in sources.items():
            Path(folder, file).write_bytes(content)
        library = Path(folder, f"{name}{ending}")
        shared_library(compiler, [Path(folder, file) for file in sources if file.endswith(".c")], library)
        return {f"binaries/{platform_name()}/{library.name}": library.read_bytes()}


def _archive(files: Mapping[str, bytes]) -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in files.items():
            entry = zipfile.ZipInfo(name, EARLIEST)
            entry.compress_type, entry.external_attr = zipfile.ZIP_DEFLATED, 0o644 << 16
            archive.writestr(entry, content)
    return memory.getvalue()

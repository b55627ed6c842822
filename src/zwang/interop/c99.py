"""A mechanism as a C99 library without dependencies: header, source, example and CMake file."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import resources
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from zwang.api.compilation.programs import WARM_START
from zwang.atomic import write_file
from zwang.compiler.backends.c import CFunction, c_function, c_number, c_text, preamble
from zwang.compiler.ir.program import Port, Program
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.errors import WriteError
from zwang.interop.c_header import (
    Footprint,
    StepLayout,
    header,
    parameter_argument,
    real_type,
)
from zwang.interop.export_settings import STEP, ExportSettings
from zwang.interop.exported_functions import ExportedFunction, exported_functions, step_program
from zwang.mechanism.report import Note
from zwang.simulation.solver_status import initial_monitor
from zwang.simulation.status import FAILURE_REASONS

LONGEST_ON_STACK = 64
"""Longer arrays of a function lie in a workspace that the caller provides."""
EXAMPLE_STEPS, EXAMPLE_CONTROL = 100, 0.1
MARK = "Written by zwang, which replaces this file by that of a later export unless it is changed: "
"""The beginning of the first line of main.c and CMakeLists.txt, which a digest of the other lines follows."""
KEPT = "not written, as the file that is there is yours or was changed; delete it, or give another folder"

CHECKS = """\
#include <float.h>
#if defined(__FAST_MATH__)
#error "compile without -ffast-math: the results would depend on the compiler"
#endif
#if !defined(FLT_EVAL_METHOD) || (FLT_EVAL_METHOD != 0 && FLT_EVAL_METHOD != 16)
#error "operations must be rounded to their type: on 32-bit x86 compile with -msse2 -mfpmath=sse"
#endif"""


@dataclass(frozen=True)
class CLibrary:
    """NAME.h and NAME.c as texts by file name, the functions with their memory, and the step's program.

    step_stack: the largest number of bytes of the stack that the step uses.
    """

    files: dict[str, str]
    functions: list[tuple[ExportedFunction, Footprint]]
    step: Program | None
    step_stack: int


def c_library(settings: ExportSettings, more: Sequence[ExportedFunction] = ()) -> CLibrary:
    """The library of the functions of the settings, and of more functions."""
    name = settings.name
    exported = [*exported_functions(settings), *more]
    texts = [_text(settings, one) for one in exported]
    functions = [(one, Footprint(c.work, c.stack)) for one, c in zip(exported, texts, strict=True)]
    step = step_program(settings) if STEP in settings.functions else None
    layout = None
    if step is not None:
        layout, function = _step(settings, step)
        texts = [function, *texts]
    files = {
        f"{name}.h": header(settings, functions, layout),
        f"{name}.c": _source(settings, texts),
    }
    return CLibrary(files, functions, step, layout.footprint.stack if layout else 0)


def write_c_library(settings: ExportSettings, folder: Path) -> list[Note]:
    """Write NAME.h and NAME.c, and for a step main.c and CMakeLists.txt, to a folder; others in it stay.

    A main.c or CMakeLists.txt stays that zwang has not written, or that was changed since. Returns a note on
    each file. Raises WriteError.
    """
    library = c_library(settings)
    files, kept = dict(library.files), []
    if library.step is not None:
        build = template("CMakeLists.txt").substitute(name=settings.name)
        examples = {
            "main.c": _marked(_example(settings, library.step), "/* {} */"),
            "CMakeLists.txt": _marked(build, "# {}"),
        }
        own = {file: text for file, text in examples.items() if _is_replaceable(folder / file)}
        files |= own
        kept = [Note("kept", KEPT, str(folder / file)) for file in examples if file not in own]
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:  # the latter for a NUL character
        reason = getattr(error, "strerror", None) or error
        raise WriteError(f"the folder {str(folder)!r} cannot be created: {reason}") from error
    for file, text in files.items():
        write_file(folder / file, text.encode("ascii"))
    return [*(written(folder / file) for file in files), *kept]


def _marked(text: str, comment: str) -> str:
    """The text after a line with its digest, which tells whether it was changed."""
    return f"{comment.format(MARK + _digest(text.encode()))}\n{text}"


def _is_replaceable(path: Path) -> bool:
    """Whether there is no such file, or one that zwang has written and nobody has changed."""
    try:
        first, _, text = path.read_bytes().replace(b"\r\n", b"\n").partition(b"\n")
    except (OSError, ValueError):
        return True  # whether it can be written, the attempt tells
    return f"{MARK}{_digest(text)}".encode() in first


def _digest(text: bytes) -> str:
    return hashlib.sha256(text).hexdigest()[:16]


def written(path: Path) -> Note:
    """The note on a file that was written."""
    return Note("written", f"{path.name}, {path.stat().st_size:,} bytes", str(path))


def template(name: str) -> Template:
    """A template of this package."""
    return Template(
        resources.files("zwang.interop").joinpath("templates").joinpath(name).read_text(encoding="utf-8")
    )


def _text(settings: ExportSettings, function: ExportedFunction) -> CFunction:
    return c_function(
        function.program,
        function.name,
        settings.dtype,
        arguments=function.arguments,
        tables=f"{settings.name}_table_",
        longest_on_stack=LONGEST_ON_STACK,
    )


def _source(settings: ExportSettings, functions: Sequence[CFunction]) -> str:
    name = settings.name
    parts = [
        f"/* {name}.c: see {name}.h. Generated by zwang. */\n",
        f'#include "{name}.h"\n',
        CHECKS,
        preamble(settings.dtype, "".join(function.text for function in functions)),
    ]
    if settings.mechanism.symbols:
        values = [x[0] for x in settings.initial.params.values()]
        upper = name.upper()
        numbers = numbers_text(values, settings.dtype)
        parts.append(f"const {real_type(settings)} {name}_parameters[{upper}_NP] = {{\n    {numbers},\n}};\n")
    return "\n".join([*parts, c_text(functions)])


def numbers_text(values: Iterable[Any], dtype: str) -> str:
    """The values as the entries of a C array, eight a line."""
    texts = [c_number(float(x), dtype) for x in values]
    rows = [", ".join(texts[k : k + 8]) for k in range(0, len(texts), 8)]
    return ",\n    ".join(rows)


# ----------------------------------------------------------------------------------------------------- step


def _step(settings: ExportSettings, program: Program) -> tuple[StepLayout, CFunction]:
    """The layout of the state, and the step's program with the functions of the state."""
    sizes = {port.name: port.size for port in program.inputs}
    inputs = [_argument(settings, port) for port in program.inputs]
    outputs = [f"{_argument(settings, port)}_out" if port.size else "" for port in program.outputs]
    function = c_function(
        program,
        f"{settings.name}_step_program",
        settings.dtype,
        arguments=(inputs, outputs),
        tables=f"{settings.name}_table_",
        storage="static",
        longest_on_stack=LONGEST_ON_STACK,
    )
    footprint = Footprint(function.work, function.stack)
    solved = "solver" in sizes
    layout = StepLayout(sizes["z"], sizes.get(WARM_START, 0), solved, footprint)
    text = "\n".join([function.text, _wrapper(settings, program, layout)])
    return layout, replace(function, text=text)


_ARGUMENTS = {"z": "activation", "u": "control", "solver": "monitor"}


def _argument(settings: ExportSettings, port: Port) -> str:
    """The C name of an input of the step's program; empty for one without elements."""
    if not port.size:
        return ""
    symbols = [f"parameter {symbol}" for symbol in settings.mechanism.symbols]
    if port.name in symbols:
        return f"parameter_{symbols.index(port.name)}"
    return _ARGUMENTS.get(port.name, port.name)


def _wrapper(settings: ExportSettings, program: Program, layout: StepLayout) -> str:
    """The functions of the state, which call the step's program."""
    name, initial, real = settings.name, settings.initial, real_type(settings)
    places = {"clock": "&clock", "status": "&status", "monitor": "monitor", "control": "control"}
    places |= {f"parameter_{k}": f"parameters + {k}" for k in range(len(settings.mechanism.symbols))}
    ports = [_argument(settings, port) for port in (*program.inputs, *program.outputs) if port.size]
    arguments = [places.get(port, f"state->{port}") for port in ports]
    arguments += ["state->work"] * bool(layout.footprint.work)
    z = numbers_text(initial.z[0], settings.dtype)
    every = ", ".join(c_number(x, settings.dtype) for x in initial_monitor(1))
    texts = ["the state is valid"]
    texts += [f"{reason.description}: {reason.remedy}".rstrip(": ") for reason in FAILURE_REASONS[1:]]
    return template("step.c").substitute(
        name=name,
        upper=name.upper(),
        real=real,
        nq=len(initial.q[0]),
        nv=len(initial.v[0]),
        q=numbers_text(initial.q[0], settings.dtype),
        v=numbers_text(initial.v[0], settings.dtype),
        control=numbers_text(settings.initial_control, settings.dtype),
        initial_z=f"static const {real} initial_z[{len(initial.z[0])}] = {{\n    {z},\n}};\n" if z else "",
        copy_z="    memcpy(state->activation, initial_z, sizeof initial_z);\n" if z else "",
        parameters=parameter_argument(settings),
        monitor=f", monitor[3] = {{{every}}}" if layout.solved else "",
        solver="    state->solver_status = (int)monitor[0];\n" if layout.solved else "",
        arguments=", ".join(arguments),
        texts=",\n        ".join(f'"{text}"' for text in texts),
    )


# -------------------------------------------------------------------------------------------------- example


def _example(settings: ExportSettings, program: Program) -> str:
    """The text of main.c, with the state after some steps as zwang computes it."""
    after = final_state(settings, program, EXAMPLE_STEPS)
    return template("main.c").substitute(
        name=settings.name,
        steps=EXAMPLE_STEPS,
        real=real_type(settings),
        nq=len(after["q"]),
        nv=len(after["v"]),
        nu=len(settings.controls),
        control=numbers_text(_example_control(settings), settings.dtype),
        q=numbers_text(after["q"], settings.dtype),
        v=numbers_text(after["v"], settings.dtype),
        status=int(after["status"][0]),
        done=int(after["clock"][0]),
        parameters=f", {settings.name}_parameters" if settings.mechanism.symbols else "",
    )


def _example_control(settings: ExportSettings) -> tuple[float, ...]:
    """The control of the keyframe that the initial state is, else EXAMPLE_CONTROL for each."""
    return settings.keyframe_control or (EXAMPLE_CONTROL,) * len(settings.controls)


def final_state(settings: ExportSettings, program: Program, steps: int) -> Mapping[str, np.ndarray]:
    """The state after a number of steps of the program from the initial state, at the example's control."""
    initial = settings.initial
    given = {"clock": [0.0], "status": [0.0], "q": initial.q[0], "v": initial.v[0], "z": initial.z[0]}
    given |= {"solver": initial_monitor(steps), "u": np.array(_example_control(settings))}
    given |= {f"parameter {name}": x for name, x in initial.params.items()}
    arrays = [given.get(port.name, np.zeros(port.size)) for port in program.inputs]
    compiled = CompiledFunction(program, dtype=settings.dtype)
    return run_steps(compiled, *arrays, steps=steps, every=steps).state

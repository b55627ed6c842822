"""A mechanism as a WebAssembly module, with a wrapper in JavaScript."""

from __future__ import annotations

import json
import tempfile
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from zwang.atomic import write_file
from zwang.errors import MissingExtraError
from zwang.interop.c99 import CLibrary, c_library, template, written
from zwang.interop.c_compiler import FLAGS, run_compiler, zig
from zwang.interop.c_header import Footprint, real_type
from zwang.interop.export_settings import FUNCTIONS, STEP, ExportSettings
from zwang.interop.exported_functions import ExportedFunction
from zwang.mechanism.report import Note
from zwang.simulation.applied_forces import activations

TARGET = ("-target", "wasm32-wasi", "-mexec-model=reactor")
"""The target of the compiler; the module imports nothing from its host."""
STACK = 65_536
"""Bytes of the stack beside those of the largest function."""


def write_wasm(settings: ExportSettings, path: Path) -> list[Note]:
    """Write the module, and beside it STEM.mjs; the step is always in it.

    Raises MissingExtraError without the package ziglang, CompileError and WriteError.
    """
    if find_spec("ziglang") is None:
        raise MissingExtraError(
            "a WebAssembly module is compiled and linked by the package ziglang, which is not installed: "
            "pip install 'zwang[export]'"
        )
    functions = tuple(name for name in FUNCTIONS if name == STEP or name in settings.functions)
    settings = replace(settings, functions=functions)
    library = c_library(settings)
    module = _module(settings, library)
    wrapper = path.with_suffix(".mjs")
    write_file(path, module)
    write_file(wrapper, _wrapper(settings, library, path).encode("ascii"))
    return [written(path), written(wrapper)]


def _module(settings: ExportSettings, library: CLibrary) -> bytes:
    """The linked module."""
    sources = {**library.files, "wasm.c": _memory(settings, library)}
    stack = STACK + sum(function.stack for _, function in library.functions) + library.step_stack
    exports = [f"-Wl,--export={function.name}" for function, _ in library.functions]
    with tempfile.TemporaryDirectory() as folder:
        for file, text in sources.items():
            Path(folder, file).write_text(text, encoding="ascii")
        target = Path(folder, "module.wasm")
        files = [str(Path(folder, file)) for file in sources if file.endswith(".c")]
        link = [f"-Wl,-z,stack-size={-(-stack // 16) * 16}", "-Wl,--strip-all", "-o", str(target)]
        run_compiler([*zig(), *TARGET, *FLAGS, *files, *exports, *link])
        return target.read_bytes()


def _memory(settings: ExportSettings, library: CLibrary) -> str:
    """The text of wasm.c."""
    sizes = [sum(x["size"] for x in _arguments(*one)) for one in library.functions]
    return template("wasm.c").substitute(
        name=settings.name,
        upper=settings.name.upper(),
        real=real_type(settings),
        scratch=max(sizes, default=0) + 1,
        activation="state.activation" if activations(settings.mechanism) else "0",
        parameters=", parameters" if settings.mechanism.symbols else "",
    )


def _arguments(function: ExportedFunction, footprint: Footprint) -> list[dict[str, Any]]:
    """Name, size and kind of each argument of a function."""
    found = [{"name": x.name, "size": x.size, "input": True} for x in function.inputs if x.size]
    found += [{"name": x.name, "size": x.size, "input": False} for x in function.outputs if x.size]
    return found + [{"name": "work", "size": footprint.work, "input": False}] * bool(footprint.work)


def _wrapper(settings: ExportSettings, library: CLibrary, path: Path) -> str:
    """The text of the JavaScript module."""
    m, prefix = settings.mechanism, f"{settings.name}_"
    layout = {
        "step": settings.h,
        "q": m.coordinate_names,
        "v": m.speed_names,
        "activation": activations(m),
        "control": settings.controls,
        "parameters": m.symbols,
        "functions": {
            function.name.removeprefix(prefix): {
                "exported": function.name,
                "arguments": _arguments(function, footprint),
            }
            for function, footprint in library.functions
        },
    }
    text = json.dumps(layout, indent=1).replace("<", "\\u003c")
    return template("wrapper.mjs").substitute(
        name=settings.name,
        module=_plain(path.with_suffix(".mjs").name),
        wasm=_plain(path.name),
        layout=text,
        array="Float64Array" if settings.dtype == "float64" else "Float32Array",
    )


def _plain(name: str) -> str:
    """A file name without characters that end a comment of one line or are not ASCII."""
    return "".join(c if c.isascii() and c.isprintable() else "_" for c in name)

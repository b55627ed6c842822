"""A mechanism as a WebAssembly module, with a wrapper in JavaScript."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
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

MATH = ("sqrt", "fma", "fabs", "floor", "copysign")
TARGET = ("-target", "wasm32-freestanding", "-Wl,--no-entry")
"""The target of the compiler; the module imports nothing from its host."""
HEADERS = {
    file: "".join(f"#define {name} __builtin_{builtin}\n" for name, builtin in names.items())
    for file, names in {
        "math.h": {f"{name}{suffix}": f"{name}{suffix}" for name in MATH for suffix in ("", "f")}
        | {"NAN": 'nanf("")', "INFINITY": "inff()"},
        "string.h": {name: name for name in ("memcpy", "memset")},
    }.items()
}
"""What generated code needs of C's library: instructions, and functions that the compiler brings along. It
would compile a whole C library for this target at the first use, for half a minute.
"""
STACK = 65_536
"""Bytes of the stack beside those of the largest function."""


@dataclass(frozen=True)
class WasmModule:
    """The bytes of a module, and its layout: the names of the state, the control and the parameters in their
    order, and the arguments of the functions.
    """

    code: bytes
    layout: dict[str, Any]


def write_wasm(settings: ExportSettings, path: Path) -> list[Note]:
    """Write the module, and beside it STEM.mjs; the step is always in it.

    Raises MissingExtraError without the package ziglang, CompileError and WriteError.
    """
    module = wasm_module(settings)
    wrapper = path.with_suffix(".mjs")
    write_file(path, module.code)
    write_file(wrapper, _wrapper(settings, module, path).encode("ascii"))
    return [written(path), written(wrapper)]


def wasm_module(settings: ExportSettings, more: Sequence[ExportedFunction] = ()) -> WasmModule:
    """The module of the functions of the settings, of the step, and of more functions.

    Raises MissingExtraError without the package ziglang, and CompileError.
    """
    if find_spec("ziglang") is None:
        raise MissingExtraError(
            "a WebAssembly module is compiled and linked by the package ziglang, which is not installed: "
            "pip install 'zwang[export]'"
        )
    functions = tuple(name for name in FUNCTIONS if name == STEP or name in settings.functions)
    settings = replace(settings, functions=functions)
    library = c_library(settings, more)
    return WasmModule(_linked(settings, library), _layout(settings, library))


def javascript() -> str:
    """The text of the JavaScript function `instantiate(source, layout)`, which loads a module."""
    return template("instantiate.js").template


def _linked(settings: ExportSettings, library: CLibrary) -> bytes:
    """The linked module."""
    sources = {**library.files, "wasm.c": _memory(settings, library)}
    stack = STACK + sum(function.stack for _, function in library.functions) + library.step_stack
    exports = [f"-Wl,--export={function.name}" for function, _ in library.functions]
    with tempfile.TemporaryDirectory() as folder:
        for file, text in {**HEADERS, **sources}.items():
            Path(folder, file).write_text(text, encoding="ascii")
        target = Path(folder, "module.wasm")
        files = [str(Path(folder, file)) for file in sources if file.endswith(".c")]
        link = [f"-Wl,-z,stack-size={-(-stack // 16) * 16}", "-Wl,--strip-all", "-o", str(target)]
        run_compiler([*zig(), *TARGET, *FLAGS, f"-I{folder}", *files, *exports, *link])
        return target.read_bytes()


def _memory(settings: ExportSettings, library: CLibrary) -> str:
    """The text of wasm.c."""
    sizes = [sum(x["size"] for x in _arguments(*one)) for one in library.functions]
    return template("wasm.c").substitute(
        name=settings.name,
        upper=settings.name.upper(),
        real=real_type(settings),
        workspace=max(sizes, default=0) + 1,
        activation="state.activation" if activations(settings.mechanism) else "0",
        parameters=", parameters" if settings.mechanism.symbols else "",
    )


def _arguments(function: ExportedFunction, footprint: Footprint) -> list[dict[str, Any]]:
    """Name, size and kind of each argument of a function."""
    found = [{"name": x.name, "size": x.size, "input": True} for x in function.inputs if x.size]
    found += [{"name": x.name, "size": x.size, "input": False} for x in function.outputs if x.size]
    return found + [{"name": "work", "size": footprint.work, "input": False}] * bool(footprint.work)


def _layout(settings: ExportSettings, library: CLibrary) -> dict[str, Any]:
    """What JavaScript has to know about the module."""
    m, prefix = settings.mechanism, f"{settings.name}_"
    return {
        "dtype": settings.dtype,
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


def _wrapper(settings: ExportSettings, module: WasmModule, path: Path) -> str:
    """The text of the JavaScript module."""
    return template("wrapper.mjs").substitute(
        name=settings.name,
        module=_plain(path.with_suffix(".mjs").name),
        wasm=_plain(path.name),
        layout=json.dumps(module.layout, indent=1).replace("<", "\\u003c"),
        instantiate=javascript(),
    )


def _plain(name: str) -> str:
    """A file name without characters that end a comment of one line or are not ASCII."""
    return "".join(c if c.isascii() and c.isprintable() else "_" for c in name)

"""Functions of a mechanism as a shared library with the external interface of CasADi, from C99 code.

The library has the values, the functions `jac_` of derivatives, and the sparsity patterns. It needs neither
zwang nor Python, has no state, and is loaded by `casadi.external`.
"""

from __future__ import annotations

import atexit
import hashlib
import os
import platform
import secrets
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from zwang.atomic import write_file
from zwang.compiler.backends.c import CFunction, c_function, c_text, preamble
from zwang.compiler.ir.program import Port, Program
from zwang.compiler.passes.dead_code import remove_dead_code
from zwang.compiler.runtime import cache as object_cache
from zwang.errors import (
    ArgumentError,
    CompileError,
    MissingExtraError,
    SimulationError,
    TraceError,
    WriteError,
)
from zwang.interop.array_function import CompiledArrayFunction
from zwang.interop.c99 import CHECKS, LONGEST_ON_STACK, template
from zwang.interop.c_compiler import c_compiler, shared_library
from zwang.interop.column_function import ColumnFunction
from zwang.interop.identifiers import comment_text
from zwang.interop.step_function import StepJacobian

ENDINGS = {"win32": ".dll", "darwin": ".dylib"}
HIGHEST = 2  # order of the derivatives in a library
LARGEST = 20_000
"""Lines of a function above which gcc does not optimise it, as that would take minutes and gigabytes."""
SHORT = 5_000
"""Lines of C code up to which a library is compiled without being asked for: gcc takes about a second."""
IDENTITY = "identity_"
"""The prefix of the function that returns the digest of a library."""


def write_library(
    function: ColumnFunction, name: str, path: str | os.PathLike[str], derivatives: int | None
) -> tuple[Path, list[float]]:
    """Write the C code of a function and its derivatives beside a library, and compile it.

    name: of the function. path: of the library; the platform's ending is added where there is none.
    derivatives: the highest order; None for 1, or 0 if the function has none. Returns the absolute path, and
    what the function `identity_NAME` of the library returns. A library that is there with the same code is
    kept.
    Raises ArgumentError, also for a name that C does not allow, MissingExtraError, CompileError and
    WriteError; TraceError or SimulationError for an order that the function does not have.
    """
    library = _library_path(path)
    if derivatives is None:
        derivatives = _available_order(function)
    elif not isinstance(derivatives, int) or not 0 <= derivatives <= HIGHEST:
        raise ArgumentError(
            f"derivatives is {derivatives!r}; it must be 0 (values), 1 (and Jacobians) or 2 (and those of "
            "the Jacobians, for exact Hessians)"
        )
    source = library.with_suffix(".c")
    text, digest = library_text(function, name, source.name, derivatives)
    if not _is_current(source, library, text):
        compiler = c_compiler()
        write_file(source, text)
        beside = library.with_name(f".{secrets.token_hex(4)}{library.name}")
        try:
            shared_library(compiler, [source], beside)
            os.replace(beside, library)
        except CompileError:
            with suppress(OSError):  # without room for temporary files
                _check_name(compiler, name)
            raise
        except OSError as error:
            raise WriteError(
                f"the library {str(library)!r} cannot be written: {error.strerror}; another program may "
                "use it"
            ) from error
        finally:
            beside.unlink(missing_ok=True)
    return library, digest


def short_library(function: ColumnFunction, name: str) -> tuple[Path, list[float]] | None:
    """The library of a function with all derivatives up to HIGHEST, as `write_library` returns it.

    None if its code is not SHORT, if there is no C compiler, or if temporary files cannot be written.

    The library is compiled once, kept in the disk cache, and copied to a temporary folder of this process.
    """
    if not isinstance(function.function, CompiledArrayFunction):
        return None
    try:
        compiler = c_compiler()
        for order in range(HIGHEST + 1):  # the code of the next order is much longer
            text, digest = library_text(function, name, f"{name}.c", order)
            if text.count(b"\n") > SHORT:
                return None
        machine = f"{sys.platform} {platform.machine()}\n".encode()
        key = hashlib.sha256(machine + text).hexdigest()
        content = object_cache.fetch(key, lambda: _compiled_library(compiler, text))
        library = _folder() / f"{key}{ENDINGS.get(sys.platform, '.so')}"
        if not library.exists():
            write_file(library, content)
    except (MissingExtraError, TraceError, SimulationError, CompileError, WriteError, OSError):
        return None
    return library, digest


ANY_FIVE = "(int a, int b, int c, int d, int e) { return a + b + c + d + e; }"
"""The arguments and the body of a C function that has as many arguments as those of CasADi."""


def _check_name(compiler: Sequence[str], name: str) -> None:
    """Raises ArgumentError if C has no function of this name beside the headers that a library includes."""
    try:
        _compiled_library(compiler, f"{_head(name)}\nint {name}{ANY_FIVE}\n".encode())
    except CompileError:
        raise ArgumentError(
            f"name is {name!r}, which is a word of C, or of its headers: give the function of the library "
            f"another name, such as name={name + '_function'!r}"
        ) from None


def _compiled_library(compiler: Sequence[str], text: bytes) -> bytes:
    """The content of a shared library. Raises CompileError, and OSError without a temporary file."""
    with tempfile.TemporaryDirectory(prefix="zwang") as folder:
        source = Path(folder) / "library.c"
        source.write_bytes(text)
        shared_library(compiler, [source], Path(folder) / "library.so")
        return (Path(folder) / "library.so").read_bytes()


_FOLDERS: dict[int, Path] = {}
"""The folders of libraries, by process: a forked child has one of its own."""


def _folder() -> Path:
    """The folder of the libraries of this process, which is deleted with it where that is possible.

    Raises OSError if there can be none.
    """
    process = os.getpid()
    if process not in _FOLDERS or not _FOLDERS[process].is_dir():
        _FOLDERS[process] = Path(tempfile.mkdtemp(prefix="zwang"))
        atexit.register(_delete, process, _FOLDERS[process])
    return _FOLDERS[process]


def _delete(process: int, folder: Path) -> None:
    """Delete a folder at the end of its process, and not at that of a child, which inherits this call."""
    if process == os.getpid():
        shutil.rmtree(folder, ignore_errors=True)


def _library_path(path: str | os.PathLike[str]) -> Path:
    """The absolute path of the library. Raises ArgumentError."""
    try:
        library = Path(path).absolute()
    except TypeError:
        raise ArgumentError(
            f"library is {path!r}; give the path of the library to write, such as 'panda.so'"
        ) from None
    if not library.suffix:
        library = library.with_suffix(ENDINGS.get(sys.platform, ".so"))
    if library.suffix == ".c":
        raise ArgumentError(
            f"library is {str(path)!r}; give the path of the library: its C code lies beside it"
        )
    if not library.parent.is_dir():
        raise ArgumentError(f"library is {str(path)!r}, and there is no folder {str(library.parent)!r}")
    return library


def _is_current(source: Path, library: Path, text: bytes) -> bool:
    """Whether the library was compiled from this text."""
    try:
        return source.read_bytes() == text and library.stat().st_mtime_ns >= source.stat().st_mtime_ns
    except OSError:
        return False


def library_text(
    function: ColumnFunction, name: str, file: str, derivatives: int
) -> tuple[bytes, list[float]]:
    """The C code of a library, and its digest as four integers below 2**32."""
    both = [(function, name), *_derivatives(function, name, derivatives)]
    writers = [_FunctionText(f, n, f"{name}_table_") for f, n in both]
    functions = [program for writer in writers for program in writer.functions]
    programs = c_text(functions)
    longest = max([1, *(rows * columns for w in writers for rows, columns in w.function.ports.inputs)])
    described = function.function.name
    head = _head(name, file, described, programs, longest)
    text = "\n".join([head, programs, *(writer.text() for writer in writers)])
    digest = hashlib.sha256(text.encode()).digest()[:16]
    words = [float(int.from_bytes(digest[k : k + 4], "little")) for k in range(0, 16, 4)]
    body = "\n".join(f"    if (res[0]) res[0][{k}] = {word:.1f};" for k, word in enumerate(words))
    identity = _interface(
        f"{IDENTITY}{name}", "a digest of this library", [], [("words", _dense(4, 1))], 0, body
    )
    return (text + identity).encode("ascii"), words


def _head(
    name: str, file: str = "", mechanism: str = "", programs: str | None = None, longest: int = 1
) -> str:
    """The beginning of the C code of a library, with the functions that these programs call, or with all."""
    return template("casadi.c").substitute(
        file=comment_text(file),
        name=name,
        mechanism=comment_text(mechanism),
        checks=CHECKS,
        preamble=preamble("float64", programs),
        longest=longest,
    )


def _derivatives(function: ColumnFunction, name: str, highest: int) -> Iterator[tuple[ColumnFunction, str]]:
    """The functions of derivatives by name, up to an order. Raises TraceError and SimulationError."""
    for _ in range(highest):
        function, name = function.jacobian(), f"jac_{name}"
        yield function, name


def _available_order(function: ColumnFunction) -> int:
    """Whether a function has derivatives: 1 or 0."""
    try:
        function.jacobian()
    except (TraceError, SimulationError):
        return 0
    return 1


class _FunctionText:
    """The C code of one function.

    functions: those of flat arrays that it calls. tables: the prefix of the names of their constant tables.
    before: what stands between them and it. body: its statements. work: elements of its memory.
    """

    def __init__(self, function: ColumnFunction, name: str, tables: str):
        self.function, self.name = function, name
        inner = function.function
        if isinstance(inner, CompiledArrayFunction):
            own, self.body, self.work = _compiled_text(function, name, inner.program, tables)
            self.functions, self.before = [own], ""
        elif isinstance(inner, StepJacobian):
            self.functions, self.before, self.body, self.work = _step_text(function, name, inner, tables)
        else:
            raise ArgumentError(
                "jacobian= is a Python function, which a library cannot contain: omit it, or omit library="
            )

    def text(self) -> str:
        ports = self.function.ports
        inputs = [(n, _dense(*shape)) for n, shape in zip(ports.input_names, ports.inputs, strict=True)]
        outputs = [(n, _sparse(ports, k)) for k, n in enumerate(ports.output_names)]
        body = (
            self.before,
            _interface(
                self.name, comment_text(self.function.function.name), inputs, outputs, self.work, self.body
            ),
        )
        return "\n".join(body)


# ------------------------------------------------------------------------------------------------ interface


def _dense(rows: int, columns: int) -> list[int]:
    return [rows, columns, 1]


def _sparse(ports: Any, k: int) -> list[int]:
    """The pattern of an output in compressed columns."""
    count, width = ports.outputs[k].shape
    rows, columns = ports.pattern(k)
    ends = np.cumsum(np.bincount(columns, minlength=width)) if width else np.zeros(0, int)
    return [count, width, 0, *ends.tolist(), *rows.tolist()]


def _interface(
    name: str,
    summary: str,
    inputs: Sequence[tuple[str, list[int]]],
    outputs: Sequence[tuple[str, list[int]]],
    work: int,
    body: str,
) -> str:
    """The functions of CasADi's interface for one function, from the names and patterns of its ports."""
    ports = [*inputs, *outputs]
    tables, known = [], {}
    for _, pattern in ports:
        key = tuple(pattern)
        if key not in known:
            known[key] = f"{name}_pattern_{len(known)}"
            tables.append(f"static const casadi_int {known[key]}[] = {{{_wrapped(pattern)}}};")
    names = ", ".join(f'"{port}"' for port, _ in ports)
    patterns = ", ".join(known[tuple(pattern)] for _, pattern in ports)
    tables.append(f"static const char *const {name}_names[] = {{{names}}};")
    tables.append(f"static const casadi_int *const {name}_patterns[] = {{{patterns}}};")
    return template("casadi_function.c").substitute(
        name=name,
        summary=summary,
        tables="\n".join(tables),
        n_in=len(inputs),
        n_out=len(outputs),
        work=work,
        body=body,
    )


def _wrapped(numbers: Sequence[int]) -> str:
    rows = [", ".join(map(str, numbers[k : k + 20])) for k in range(0, len(numbers), 20)]
    return ",\n    ".join(rows)


def _inputs(function: ColumnFunction, program: Program) -> list[str]:
    """The C expressions of the nonempty inputs of a program."""
    taken = [k for k, port in zip(function.positions, program.inputs, strict=True) if port.size]
    return [f"arg[{k}] ? arg[{k}] : zeros" for k in taken]


# ------------------------------------------------------------------------------------------------- programs


def _flat_text(program: Program, name: str, arguments: tuple[list[str], list[str]], tables: str) -> CFunction:
    """A program as a static C function."""
    text = c_function(
        program,
        name,
        arguments=arguments,
        tables=tables,
        storage="static",
        longest_on_stack=LONGEST_ON_STACK,
    )
    if text.text.count("\n") > LARGEST:
        return replace(
            text, text=text.text.replace(f"static void {name}(", f"UNOPTIMISED static void {name}(", 1)
        )
    return text


def _named(program: Program) -> tuple[list[str], list[str]]:
    """Names of the arguments of a program, none for empty ones."""
    inputs = [f"in{k}" if port.size else "" for k, port in enumerate(program.inputs)]
    return inputs, [f"out{k}" if port.size else "" for k, port in enumerate(program.outputs)]


def _compiled_text(
    function: ColumnFunction, name: str, program: Program, tables: str
) -> tuple[CFunction, str, int]:
    """The code of a program whose results are the nonzero elements of the outputs."""
    picked = [function.ports.positions(k) for k in range(len(function.ports.outputs))]
    outputs = tuple(Port(f"out{k}", len(p), (len(p),)) for k, p in enumerate(picked))
    results = tuple(program.body.results[i] for p in picked for i in p.tolist())
    body = replace(program.body, results=results)
    program = remove_dead_code(replace(program, outputs=outputs, body=body))
    inner = f"{name}_values"
    text = _flat_text(program, inner, _named(program), tables)
    arguments, at = _inputs(function, program), text.work
    for k, p in enumerate(picked):
        if p.size:
            arguments.append(f"res[{k}] ? res[{k}] : w + {at}")
            at += len(p)
    arguments += ["w"] * bool(text.work)
    listed = ",\n        ".join(arguments)
    return text, f"    {inner}(\n        {listed});", at


def _step_text(
    function: ColumnFunction, name: str, jacobian: StepJacobian, tables: str
) -> tuple[list[CFunction], str, str, int]:
    """The code of the Jacobian of a step with constraints: the matrix, and the choice of its elements."""
    functions, matrix, size, work = _matrix_text(name, jacobian, tables)
    arguments = [*_inputs(function, jacobian.solution), "J", f"w + {size}"]
    lines = [
        "    double *const J = w;",
        f"    {name}_matrix(\n        " + ",\n        ".join(arguments) + ");",
    ]
    choices = []
    for k in range(len(function.ports.outputs)):
        picked = function.ports.positions(k) - sum(jacobian.results[:-1])
        if picked.size:
            table = f"{name}_picked_{k}"
            choices.append(f"static const int {table}[] = {{{_wrapped(picked.tolist())}}};")
            lines.append(f"    if (res[{k}])")
            lines.append(f"        for (int i = 0; i < {len(picked)}; ++i) res[{k}][i] = J[{table}[i]];")
    return functions, "\n".join([matrix, *choices]), "\n".join(lines), size + work


def _matrix_text(name: str, jacobian: StepJacobian, tables: str) -> tuple[list[CFunction], str, int, int]:
    """The programs of the Jacobian matrix of a step, the function that loops over the directions, the number
    of elements of the matrix, and those of the memory of the function.
    """
    inner = {"solution": jacobian.solution, "tangent": jacobian.tangent, "rates": jacobian.rates}
    if jacobian.by_time is not None:
        inner["by_time"] = jacobian.by_time
    texts = {k: _flat_text(program, f"{name}_{k}", _named(program), tables) for k, program in inner.items()}
    m, program, tangent = jacobian.mechanism, jacobian.solution, jacobian.tangent
    sizes = {port.name: port.size for port in (*tangent.inputs, *program.outputs)}
    nz, directions = sizes["activation"], sizes["direction"]
    rows, columns = m.nq + m.nv + nz, sum(port.size for port in program.inputs)

    def call(which: str, inputs: Sequence[str], outputs: Sequence[str]) -> str:
        work = ["work"] * bool(texts[which].work)
        return f"{name}_{which}({', '.join([*inputs, *outputs, *work])})"

    given = [port.name for port in program.inputs if port.size]
    places = {"q": "q_next", "v": "v_next", "activation": "z_next"}
    found = [places.get(port.name, port.name) for port in program.outputs if port.size]

    def along(which: str) -> str:
        ports = inner[which].inputs, inner[which].outputs
        return call(which, *([port.name for port in some if port.size] for some in ports))

    tangents, time = along("tangent"), columns
    if jacobian.by_time is not None:
        tangents = f"if (c == TIME) {along('by_time')};\n        else {tangents}"
        time = sum(port.size for port in program.inputs[:4])
    starts = [joint.q.stop - 4 for joint in m.joints if joint.kind in ("ball", "free")]
    text = template("casadi_step.c").substitute(
        name=name,
        inputs=", ".join(f"const double *{x}" for x in given),
        nq=m.nq,
        nv=m.nv,
        nz=nz,
        rows=rows,
        columns=columns,
        directions=directions,
        accelerations=sizes["acceleration"],
        quaternion_count=len(starts),
        quaternions=", ".join(map(str, [*starts, -1])),
        solution=call("solution", given, found),
        rates=call("rates", ["q"], ["G"]),
        rates_next=call("rates", ["q_next"], ["G_next"]),
        tangent=tangents,
        time=time,
    )
    most = max(c.work for c in texts.values())
    work = rows + sizes["acceleration"] + 1 + 2 * m.nq * m.nv + directions + 2 * m.nv + nz + most
    return list(texts.values()), text, rows * columns, work

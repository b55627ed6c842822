"""The processor: its features and vector width, and the assembly and loading of LLVM IR for it."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import llvmlite
import llvmlite.binding as llvm
import numpy as np
from llvmlite.binding import ffi

from zwang.compiler.runtime.threads import LLVM_LOCK, map_in_threads, run_on_llvm_thread
from zwang.errors import CompileError

OPTIMISATION = 2  # level of LLVM's code generator, 0 to 3
OPTIONS = ("-dag-maps-huge-region=100", "-dag-maps-reduction-size=50", "-post-RA-scheduler=false")
"""Options of LLVM's instruction schedulers. From this number of memory accesses of a basic block on, the
dependencies between them are simplified. With LLVM's 1,000 and 500, the time for long blocks grows with the
square of their length. No scheduling after register allocation: it takes a tenth of LLVM's time, and the code
is not faster.
"""


@dataclass(frozen=True)
class Processor:
    """A target of compilation: LLVM's triple, the processor's name, and its features as "+avx2,-fma,..."."""

    triple: str
    name: str
    features: str

    @cached_property
    def has(self) -> frozenset[str]:
        """The names of the features that the processor has."""
        return frozenset(f[1:] for f in self.features.split(",") if f.startswith("+"))

    @property
    def is_x86(self) -> bool:
        return self.triple.startswith(("x86_64", "i386", "i686", "amd64"))

    @property
    def fuses(self) -> bool:
        """Whether the processor has a fused multiply-add instruction; if not, a slow function computes the
        same result.
        """
        return "fma" in self.has if self.is_x86 else True

    def width(self, dtype: str) -> int:
        """The number of lanes: how many numbers of this type a vector register has."""
        bits = 128
        if self.is_x86 and "avx512f" in self.has:
            bits = 512
        elif self.is_x86 and "avx" in self.has:
            bits = 256
        return bits // (64 if dtype == "float64" else 32)

    @property
    def identity(self) -> str:
        """A text that differs whenever processor or LLVM version lead to different code."""
        version = ".".join(map(str, llvm.llvm_version_info))
        versions = f"llvmlite {llvmlite.__version__} llvm {version}"
        return f"{self.triple} {self.name} {self.features} {versions} {OPTIMISATION} {' '.join(OPTIONS)}"


@cache
def host() -> Processor:
    """The processor of this machine."""
    _initialize()
    return Processor(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    )


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    for option in OPTIONS:
        llvm.set_option("", option)


def _target_machine(processor: Processor) -> Any:
    """LLVM's code generator. It takes the alignment of the stack from the first module that it gets."""
    _initialize()
    # Constants are close to the code, so that instructions address them directly.
    model = "jitdefault" if os.name == "nt" else "small"
    target = llvm.Target.from_triple(processor.triple)
    return target.create_target_machine(
        cpu=processor.name,
        features=processor.features,
        opt=OPTIMISATION,
        reloc="pic",
        codemodel=model,
        jit=True,
    )


def object_code(text: str, processor: Processor | None = None) -> bytes:
    """The object code of LLVM IR. Raises CompileError for invalid IR."""
    return object_codes([text], processor)[0]


def object_codes(texts: Sequence[str], processor: Processor | None = None) -> list[bytes]:
    """The object codes of modules, in a thread for each. Raises CompileError for invalid IR."""

    def make() -> list[bytes]:
        with _exclusive_llvm():
            return map_in_threads(lambda text: _emitted(text, processor, is_object=True), texts)

    return run_on_llvm_thread(make)


def assembly(text: str, processor: Processor | None = None) -> str:
    """The assembly text of LLVM IR, for inspection."""
    with _exclusive_llvm():
        return _emitted(text, processor, is_object=False).decode()


def _emitted(text: str, processor: Processor | None, is_object: bool) -> bytes:
    """The object code or the assembly text of LLVM IR."""
    machine, context = _target_machine(processor or host()), llvm.create_context()
    with closing(context), closing(_module(text, context)) as module, ffi.OutputString() as error:
        buffer = _generate_code()(machine, module, int(is_object), error)
        if not buffer:
            raise CompileError(f"LLVM cannot generate code: {error}")
        try:
            start = ffi.lib.LLVMPY_GetBufferStart(buffer)
            return ctypes.string_at(start, ffi.lib.LLVMPY_GetBufferSize(buffer))
        finally:
            ffi.lib.LLVMPY_DisposeMemoryBuffer(buffer)


@cache
def _generate_code() -> Any:
    """The C function behind llvmlite's `TargetMachine.emit_object`. It may run in several threads at a time,
    each with a context and a code generator of its own; llvmlite's lets one thread in.
    """
    locked, name = ffi.lib.LLVMPY_TargetMachineEmitToMemory, "LLVMPY_TargetMachineEmitToMemory"
    try:
        function = ctypes.CDLL(ffi.lib._name, handle=ffi.lib._handle)[name]
    except AttributeError:  # of an llvmlite with another interior
        return locked
    function.argtypes, function.restype = locked.argtypes, locked.restype
    return function


@contextmanager
def _exclusive_llvm() -> Iterator[None]:
    """A context in which this thread alone uses LLVM, and no process forks."""
    with LLVM_LOCK:
        while _unloaded:
            _loaded.pop(_unloaded.pop()).close()
        yield


_loaded: dict[int, Any] = {}
"""The code in memory by its number. It is held here alone: the garbage collector would finalise it together
with a `MachineCode` in a cycle, in any thread, while another one releases it.
"""
_unloaded: list[int] = []  # numbers of code that is no longer needed; it is released at the next use of LLVM


def _module(text: str, context: Any) -> Any:
    module: Any = None
    try:
        module = llvm.parse_assembly(text, context)
        module.verify()
    except RuntimeError as error:
        if module is not None:
            module.close()  # before its context is
        raise CompileError(f"LLVM rejects the generated code; please report this: {error}") from error
    return module


class MachineCode:
    """Object codes linked and loaded into memory; they are unloaded with this object.

    exported: names of the functions whose addresses are needed; calls: addresses of external functions by
    name; tables: data of external variables by name. Raises CompileError if the code cannot be loaded.
    """

    _numbers = itertools.count()

    def __init__(
        self,
        binaries: Sequence[bytes],
        exported: tuple[str, ...],
        calls: Mapping[str, int] | None = None,
        tables: Mapping[str, np.ndarray] | None = None,
    ):
        self._jit: Any = None
        self._release = _unloaded.append  # the module's names may be gone when the interpreter exits
        self._tables = dict(tables or {})
        builder = llvm.JITLibraryBuilder()
        for binary in binaries:
            builder.add_object_img(binary)
        known = _stack_probe() | (_fallback_functions() if calls is None else dict(calls))
        known |= {name: data.ctypes.data for name, data in self._tables.items()}
        for name, address in known.items():
            builder.import_symbol(name, address)
        for name in exported:
            builder.export_symbol(name)

        def link() -> int:
            number = next(self._numbers)
            with _exclusive_llvm():
                self._jit = _linker()
                _loaded[number] = builder.link(self._jit, f"zwang{number}")
            return number

        try:
            self._number = run_on_llvm_thread(link)
        except RuntimeError as error:
            raise CompileError(f"the code cannot be loaded: {error}") from error

    def __getitem__(self, name: str) -> int:
        """The address of an exported function."""
        return _loaded[self._number][name]

    def __del__(self) -> None:
        if hasattr(self, "_number"):
            self._release(self._number)


@cache
def _linker() -> Any:
    """The JIT linker. It resolves given symbols only, so a missing symbol is an error and not a crash.

    JITLink reserves one region for all sections of an object and reports addresses that are out of reach.
    RuntimeDyld allocates each section separately and aborts the process if two are more than 2 GB apart; on
    Windows, where it is still used, the code model has no such limit.
    """
    return llvm.create_lljit_compiler(
        _target_machine(host()), suppress_errors=True, use_jit_link=os.name != "nt"
    )


@cache
def _stack_probe() -> dict[str, int]:
    """On Windows, the function that code with a large stack frame calls to let the stack grow."""
    if os.name != "nt":
        return {}
    return {"__chkstk": ctypes.cast(ctypes.CDLL("ntdll")["__chkstk"], ctypes.c_void_p).value or 0}


@cache
def _fallback_functions() -> dict[str, int]:
    """Functions of the C library that replace instructions which this processor lacks."""
    processor = host()
    if not processor.is_x86 or {"fma", "sse4.1"} <= processor.has:
        return {}
    return c_functions("fma", "fmaf", "floor", "floorf")


def c_functions(*names: str) -> dict[str, int]:
    """The addresses of functions of the C library by name."""
    library = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names}

"""The processor: what it has, how many lanes suit it, and how LLVM's text becomes code that runs on it."""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, cached_property
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from zwang.compiler.runtime.threads import LLVM_LOCK, apart
from zwang.errors import CompileError

EFFORT = 2  # of LLVM's code generator, 0 to 3
LARGE = 10_000_000  # characters of text from which on that takes too long
LITTLE_EFFORT = 0  # what is spent then


@dataclass(frozen=True)
class Processor:
    """A target of code: LLVM's triple, the processor's name, and its features as "+avx2,-fma,..."."""

    triple: str
    name: str
    features: str

    @cached_property
    def has(self) -> frozenset[str]:
        return frozenset(f[1:] for f in self.features.split(",") if f.startswith("+"))

    @property
    def is_x86(self) -> bool:
        return self.triple.startswith(("x86_64", "i386", "i686", "amd64"))

    @property
    def fuses(self) -> bool:
        """Whether a*b+c rounded once is an instruction. Where it is not, it is a slow call, with the same result."""
        return "fma" in self.has if self.is_x86 else True

    def width(self, dtype: str) -> int:
        """How many numbers of the type fit into a vector register."""
        bits = 128
        if self.is_x86 and "avx512f" in self.has:
            bits = 512
        elif self.is_x86 and "avx" in self.has:
            bits = 256
        return bits // (64 if dtype == "float64" else 32)

    @property
    def identity(self) -> str:
        """All that makes code for one processor and compiler differ from that for another."""
        version = ".".join(map(str, llvm.llvm_version_info))
        return f"{self.triple} {self.name} {self.features} llvmlite {llvmlite.__version__} llvm {version} {EFFORT}"


@cache
def host() -> Processor:
    """The processor that this runs on."""
    _initialize()
    return Processor(
        llvm.get_process_triple(), llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
    )


@cache
def _initialize() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


@cache
def _target_machine(processor: Processor, effort: int = EFFORT) -> Any:
    _initialize()
    # Constants near the code: they are then operands in memory, not addresses to be loaded first.
    model = "jitdefault" if os.name == "nt" else "small"
    target = llvm.Target.from_triple(processor.triple)
    return target.create_target_machine(
        cpu=processor.name,
        features=processor.features,
        opt=effort,
        reloc="pic",
        codemodel=model,
        jit=True,
    )


def assemble(text: str, processor: Processor | None = None) -> bytes:
    """Object code for LLVM's text."""
    effort = EFFORT if len(text) < LARGE else LITTLE_EFFORT

    def make() -> bytes:
        with _llvm_at_work():
            module = _module(text)
            code = _target_machine(processor or host(), effort).emit_object(module)
            module.close()
            return code

    return apart(make)


def assembly(text: str, processor: Processor | None = None) -> str:
    """The processor's instructions for LLVM's text, to read."""
    with _llvm_at_work():
        return _target_machine(processor or host()).emit_assembly(_module(text))


@contextmanager
def _llvm_at_work() -> Iterator[None]:
    """LLVM is used by one thread at a time, and by none while a process forks."""
    with LLVM_LOCK:
        while _gone:
            _gone.pop().close()
        yield


_gone: list[Any] = []  # code that nobody needs any more; LLVM throws it away when it is used next


def _module(text: str) -> Any:
    try:
        module = llvm.parse_assembly(text)
        module.verify()
    except RuntimeError as error:
        raise CompileError(
            f"LLVM refuses the text that was made for it; please report this: {error}"
        ) from error
    return module


class MachineCode:
    """Object code in memory, ready to run; it stays as long as this object lives."""

    _numbers = itertools.count()

    def __init__(self, binary: bytes, exported: tuple[str, ...], calls: Mapping[str, int] | None = None):
        self._jit: Any = None
        builder = llvm.JITLibraryBuilder().add_object_img(binary)
        for name, address in (_calls() if calls is None else calls).items():
            builder.import_symbol(name, address)
        for name in exported:
            builder.export_symbol(name)

        def link() -> Any:
            with _llvm_at_work():
                self._jit = _linker()
                return builder.link(self._jit, f"zwang{next(self._numbers)}")

        try:
            self._tracker = apart(link)
        except RuntimeError as error:
            raise CompileError(f"the code cannot be loaded: {error}") from error

    def __getitem__(self, name: str) -> int:
        """The address of an exported function."""
        return self._tracker[name]

    def __del__(self) -> None:
        if hasattr(self, "_tracker"):
            _gone.append(self._tracker)


@cache
def _linker() -> Any:
    """Knows no symbol but those that it is given: one that is missing is an error, not a crash.

    JITLink reserves one region for all sections of an object, and reports what is out of reach. RuntimeDyld asks for
    memory section by section, and aborts the process where one lands over 2 GB from another; on Windows, where it is
    used still, the large code model reaches everywhere.
    """
    return llvm.create_lljit_compiler(
        _target_machine(host()), suppress_errors=True, use_jit_link=os.name != "nt"
    )


@cache
def _calls() -> dict[str, int]:
    """The functions that stand in for instructions that this processor lacks, from the C library."""
    processor = host()
    if not processor.is_x86 or {"fma", "sse4.1"} <= processor.has:
        return {}
    return c_functions("fma", "fmaf", "floor", "floorf")


def c_functions(*names: str) -> dict[str, int]:
    """Addresses of functions of the C library."""
    library = ctypes.CDLL("ucrtbase" if os.name == "nt" else None)
    return {name: ctypes.cast(getattr(library, name), ctypes.c_void_p).value or 0 for name in names}

"""A program's code for one number of lanes, loaded and ready, with the runtime around it."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from functools import cache

from zwang.compiler.backends.llvm.entry_points import PLAN, entry_points
from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.module import emit, input_starts
from zwang.compiler.backends.llvm.packing import slack
from zwang.compiler.backends.llvm.writer import ALIGNMENT
from zwang.compiler.ir.program import Port, Program
from zwang.compiler.runtime import cache as store
from zwang.compiler.runtime.processor import MachineCode, assemble, host


class Kernel:
    """The code of one program on so many lanes. `loop` and `march` are addresses of functions of the runtime."""

    def __init__(self, program: Program, lanes: Lanes, *, kept: bool = True):
        self.lanes = lanes
        found = _content("body", lanes, kept, lambda: _body(program, lanes), program)
        scratch = int.from_bytes(found[:8], "little")
        self._code = MachineCode(found[8:], ("body",))
        self._runtime = _runtime(lanes, kept)
        self.loop, self.march = self._runtime["loop"], self._runtime["march"]
        self.plan = words(*self._plan(program, scratch))

    def _plan(self, program: Program, scratch: int) -> list[int]:
        inputs, outputs = doors(program)
        sizes = [port.size for port in (*inputs, *outputs)]
        out_offset = _aligned(input_starts(inputs, self.lanes)[-1] * self.lanes.bytes)
        out_size = sum(port.size for port in outputs) + slack(self.lanes)
        scratch_offset = out_offset + _aligned(out_size * self.lanes.bytes)
        allocate, release = _memory()
        row = {
            "work": self._runtime["many"],
            "body": self._code["body"],
            "allocate": allocate,
            "release": release,
            "inputs": len(inputs),
            "outputs": len(outputs),
            "out_offset": out_offset,
            "scratch_offset": scratch_offset,
            "bytes": scratch_offset + scratch + ALIGNMENT,
        }
        return [*(row[name] for name in PLAN), *sizes]


def doors(program: Program) -> tuple[tuple[Port, ...], tuple[Port, ...]]:
    """The ports that data comes and goes through: those that are not empty. There is always an input."""
    inputs = tuple(port for port in program.inputs if port.size)
    outputs = tuple(port for port in program.outputs if port.size)
    return inputs or (Port("", 1),), outputs


def words(*values: int) -> ctypes.Array[ctypes.c_int64]:
    return (ctypes.c_int64 * len(values))(*values)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _body(program: Program, lanes: Lanes) -> bytes:
    emitted = emit(program, lanes)
    return emitted.scratch.to_bytes(8, "little") + assemble(emitted.text)


def _content(name: str, lanes: Lanes, kept: bool, make: Callable[[], bytes], *programs: Program) -> bytes:
    if not kept or store.folder() is None:
        return make()
    settings: Sequence[object] = (name, lanes.dtype, lanes.width, host().identity)
    return store.fetch(store.key(programs[0] if programs else None, *settings), make)


@cache
def _runtime(lanes: Lanes, kept: bool) -> MachineCode:
    return MachineCode(
        _content("runtime", lanes, kept, lambda: assemble(entry_points(lanes, host().is_x86))),
        ("loop", "many", "march"),
    )


@cache
def _memory() -> tuple[int, int]:
    """Addresses of Python's own malloc and free, which may be called without the interpreter's lock."""
    functions = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
    allocate, release = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    return allocate, release

"""The kernel of a program: its machine code for one number of lanes, loaded, with the functions that call
it.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np

from zwang.compiler.backends.llvm.constant_tables import long_tables
from zwang.compiler.backends.llvm.entry_points import KERNEL, entry_points
from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.module import emit, port_starts
from zwang.compiler.backends.llvm.packing import output_padding
from zwang.compiler.backends.llvm.writer import ALIGNMENT
from zwang.compiler.ir.garbage_collection import without_garbage_collection
from zwang.compiler.ir.program import Program, nonempty_ports
from zwang.compiler.runtime import cache as object_cache
from zwang.compiler.runtime.processor import MachineCode, host, object_code, object_codes
from zwang.compiler.runtime.teams import CHUNK_FUNCTION
from zwang.compiler.runtime.threads import cores

KEPT_BYTES = 1 << 16  # of buffers that are kept for the next call: the C library may return them at once


class Kernel:
    """The machine code of one program for one number of lanes.

    `ufunc_loop`, `rollout_loop` and `rollout_address` are addresses of entry points, `rollout` is the last
    one as a function of ctypes, `descriptor` the row of words that these take as `kernel` (see
    `entry_points`). A large buffer is kept, for one call at a time. use_cache: whether object code is read
    from and written to the disk cache.
    """

    def __init__(self, program: Program, lanes: Lanes, *, use_cache: bool = True):
        self.lanes = lanes
        content = _object_code("body", lanes, use_cache, lambda: _assembled_body(program, lanes), program)
        frame_bytes, *objects = _unpacked(content)
        self._body = MachineCode(objects, ("body",), tables=long_tables(program, lanes))
        self._entry_points = _entry_points(lanes, use_cache)
        self.ufunc_loop = self._entry_points["ufunc_loop"]
        self.rollout_loop = self._entry_points["rollout_loop"]
        self.rollout_address = self._entry_points["rollout"]
        self.rollout = CHUNK_FUNCTION(self.rollout_address)
        self.descriptor = int64_array(*self._describe(program, int.from_bytes(frame_bytes, "little")))

    def _describe(self, program: Program, frame_bytes: int) -> list[int]:
        inputs, outputs = nonempty_ports(program)
        sizes = [port.size for port in (*inputs, *outputs)]
        out_offset = _aligned(port_starts(inputs)[-1] * self.lanes.bytes)
        out_size = port_starts(outputs)[-1] + output_padding(self.lanes)
        frame_offset = out_offset + _aligned(out_size * self.lanes.bytes)
        self._bytes = frame_offset + frame_bytes + ALIGNMENT
        kept, self._memory = self.kept_buffers(1)
        allocate, release = _memory_functions()
        fields = {
            **{name: self._entry_points[name] for name in ("batch", "rollout_batch")},
            "body": self._body["body"],
            "allocate": allocate,
            "release": release,
            **kept,
            "inputs": len(inputs),
            "outputs": len(outputs),
            "out_offset": out_offset,
            "frame_offset": frame_offset,
            "bytes": self._bytes,
        }
        return [*(fields[name] for name in KERNEL), *sizes]

    def kept_buffers(self, count: int) -> tuple[dict[str, int], Any]:
        """The fields `kept` and `kept_count` for this number of buffers, none if they are small, and the
        memory that they refer to; the buffers take no memory before they are used.
        """
        buffers = [np.empty(self._bytes, np.uint8) for _ in range(count if self._bytes >= KEPT_BYTES else 0)]
        words = int64_array(*(buffer.ctypes.data for buffer in buffers))
        return {"kept": ctypes.addressof(words), "kept_count": len(buffers)}, (buffers, words)


def int64_array(*values: int) -> ctypes.Array[ctypes.c_int64]:
    """A C array of 64-bit integers."""
    return (ctypes.c_int64 * len(values))(*values)


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _assembled_body(program: Program, lanes: Lanes) -> bytes:
    """The size of the stack frame (8 bytes) and the object codes of the program's body, packed."""
    with without_garbage_collection():
        emitted = emit(program, lanes)
        texts = emitted.parts(cores())
    return _packed(emitted.frame_bytes.to_bytes(8, "little"), *object_codes(texts))


def _packed(*parts: bytes) -> bytes:
    """Some bytes, each behind their length."""
    return b"".join(len(part).to_bytes(8, "little") + part for part in parts)


def _unpacked(content: bytes) -> list[bytes]:
    parts, start = list[bytes](), 0
    while start < len(content):
        end = start + 8 + int.from_bytes(content[start : start + 8], "little")
        parts.append(content[start + 8 : end])
        start = end
    return parts


def _object_code(
    name: str, lanes: Lanes, use_cache: bool, make: Callable[[], bytes], program: Program | None = None
) -> bytes:
    """Object code from the disk cache, or from `make` where it is not there or the cache is not used."""
    if not use_cache or object_cache.folder() is None:
        return make()
    with without_garbage_collection():
        key = object_cache.key(program, name, lanes.dtype, lanes.width, host().identity)
    return object_cache.fetch(key, make)


@cache
def _entry_points(lanes: Lanes, use_cache: bool) -> MachineCode:
    code = _object_code(
        "entry points", lanes, use_cache, lambda: object_code(entry_points(lanes, host().is_x86))
    )
    return MachineCode([code], ("ufunc_loop", "rollout_loop", "batch", "rollout_batch", "rollout"))


def inner_loop(lanes: Lanes, use_cache: bool) -> int:
    """The address of the inner loop of NumPy universal functions, which gets a dispatch table."""
    return _entry_points(lanes, use_cache)["ufunc_loop"]


@cache
def _memory_functions() -> tuple[int, int]:
    """The addresses of Python's raw malloc and free, which may be called without the global interpreter
    lock.
    """
    functions = ctypes.pythonapi.PyMem_RawMalloc, ctypes.pythonapi.PyMem_RawFree
    allocate, release = (ctypes.cast(function, ctypes.c_void_p).value or 0 for function in functions)
    return allocate, release

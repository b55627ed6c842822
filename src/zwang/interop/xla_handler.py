"""A function of flat arrays as a handler of XLA's foreign function interface.

The layout of the structures is that of version 0 of the interface, in `xla/ffi/api/c_api.h` of jaxlib, which
promises to keep it. The handler reports the version that calls it as its own.
"""

from __future__ import annotations

import ctypes
import math
from typing import Any

import numpy as np

from zwang.compiler.backends.llvm.entry_points import DISPATCH
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.processor import MachineCode, object_code
from zwang.interop.array_function import ArrayFunction, CompiledArrayFunction
from zwang.interop.c99 import template

Size = ctypes.c_size_t


def _fields(*names: str, **kinds: Any) -> list[tuple[str, Any]]:
    """Fields of a structure: pointers and sizes, or those of other types."""
    return [(name, kinds.get(name, Size)) for name in names]


class _Version(ctypes.Structure):
    _fields_ = _fields("size", "extension", "major", "minor", major=ctypes.c_int, minor=ctypes.c_int)


class _Extension(ctypes.Structure):
    _fields_ = _fields("size", "type", "next", "metadata", type=ctypes.c_int)


class _Metadata(ctypes.Structure):
    _fields_ = _fields("size", "version", version=_Version)


class _Api(ctypes.Structure):
    _fields_ = _fields("size", "extension", "version", "internal", "create_error", version=_Version)


class _Values(ctypes.Structure):
    """Arguments or results: their number, and the addresses of their buffers."""

    _fields_ = _fields("size", "extension", "count", "types", "buffers")


class _Frame(ctypes.Structure):
    _fields_ = _fields(
        *("size", "extension", "api", "context", "stage", "arguments", "results"),
        stage=ctypes.c_int,
        arguments=_Values,
        results=_Values,
    )


class _Buffer(ctypes.Structure):
    _fields_ = _fields("size", "extension", "dtype", "data", "rank", "dimensions", dtype=ctypes.c_int)


class _Error(ctypes.Structure):
    _fields_ = _fields("size", "extension", "message", "code", message=ctypes.c_char_p, code=ctypes.c_int)


EARLY_VERSION = (0, 1)  # that of jaxlib 0.5
METADATA = 1  # the type of the extension that asks for the version
INTERNAL = 13  # the code of an error
_HANDLER = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)
_CREATE_ERROR = ctypes.CFUNCTYPE(ctypes.c_void_p, ctypes.c_void_p)


class XlaHandler:
    """A handler that evaluates a function; `address` is valid as long as this object exists.

    That of a compiled function is machine code, which does without Python.
    """

    def __init__(self, function: ArrayFunction):
        self._function = function
        self._number = np.ctypeslib.as_ctypes_type(function.dtype)
        self._general = _HANDLER(self._handle)
        self.address: int = ctypes.cast(self._general, ctypes.c_void_p).value or 0
        if isinstance(function, CompiledArrayFunction) and any(function.results) and any(function.sizes):
            binary = object_code(_handler_text(function.compiled, self.address))
            self._code = MachineCode([binary], ("handle",), {})
            self.address = self._code["handle"]

    def _handle(self, address: int) -> int | None:
        """The address of an error, or None."""
        frame = _Frame.from_address(address)
        try:
            if _is_query(frame):
                return None
            arguments, results = self._arrays(frame.arguments), self._arrays(frame.results)
            self._function.compute_into(arguments, results)
        except Exception as error:
            return _error(frame, f"{type(error).__name__}: {error}")
        return None

    def _arrays(self, values: _Values) -> list[np.ndarray]:
        """The memory of arguments or results as arrays, without a copy."""
        return [self._array(at) for at in (Size * values.count).from_address(values.buffers)]

    def _array(self, address: int) -> np.ndarray:
        buffer = _Buffer.from_address(address)
        shape = tuple((ctypes.c_int64 * buffer.rank).from_address(buffer.dimensions))
        count = math.prod(shape)
        if not count:
            return np.empty(shape, self._function.dtype)
        memory: Any = (self._number * count).from_address(buffer.data)
        return np.frombuffer(memory, self._function.dtype).reshape(shape)


def _handler_text(function: CompiledFunction, general: int) -> str:
    """The LLVM text of a handler that calls the inner loop of a function, and in special cases the general
    handler at the address `general`.
    """
    ports = [("arguments", k, port.size) for k, port in enumerate(function.program.inputs) if port.size]
    ports += [("results", k, port.size) for k, port in enumerate(function.program.outputs) if port.size]
    loop, dispatch = function.direct_loop
    transfers = [
        _transfer(n, len(ports), values, k, size * np.dtype(function.dtype).itemsize, function.dtype)
        for n, (values, k, size) in enumerate(ports)
    ]
    return template("xla_handler.ll").substitute(
        extension=_Frame.extension.offset,
        arguments=_Frame.arguments.offset + _Values.buffers.offset,
        results=_Frame.results.offset + _Values.buffers.offset,
        ports=len(ports),
        twice=2 * len(ports),
        transfers="\n".join(transfers),
        last=len(ports) - 1,
        rank=_Buffer.rank.offset,
        shape=_Buffer.dimensions.offset,
        dispatch=dispatch,
        loop=loop,
        failures=DISPATCH.index("failures"),
        general=general,
    )


def _transfer(n: int, ports: int, values: str, k: int, row: int, dtype: str) -> str:
    """The LLVM text that enters buffer k of the arguments or results, with rows of this many bytes, as port n
    of the inner loop.
    """
    return f"""\
  %pointer.{n} = getelementptr inbounds ptr, ptr %{values}, i64 {k}
  %buffer.{n} = load ptr, ptr %pointer.{n}
  %data.at.{n} = getelementptr inbounds i8, ptr %buffer.{n}, i64 {_Buffer.data.offset}
  %data.{n} = load ptr, ptr %data.at.{n}
  %arg.{n} = getelementptr inbounds ptr, ptr %args, i64 {n}
  store ptr %data.{n}, ptr %arg.{n}
  %outer.{n} = getelementptr inbounds i64, ptr %steps, i64 {n}
  store i64 {row}, ptr %outer.{n}
  %inner.{n} = getelementptr inbounds i64, ptr %steps, i64 {ports + n}
  store i64 {np.dtype(dtype).itemsize}, ptr %inner.{n}"""


def _is_query(frame: _Frame) -> bool:
    """Whether the call asks for the version of the interface, which is then answered."""
    at = frame.extension
    while at:
        extension = _Extension.from_address(at)
        if extension.type == METADATA:
            version = _Metadata.from_address(extension.metadata).version
            version.major, version.minor = _calling_version(frame)
            return True
        at = extension.next
    return False


def _calling_version(frame: _Frame) -> tuple[int, int]:
    """The version of the interface that calls; early ones ask without saying theirs."""
    if not frame.api:
        return EARLY_VERSION
    version = _Api.from_address(frame.api).version
    return version.major, version.minor


def _error(frame: _Frame, message: str) -> int | None:
    """A new error of XLA."""
    text = message.encode()
    error = _Error(ctypes.sizeof(_Error), 0, text, INTERNAL)
    create = _CREATE_ERROR(_Api.from_address(frame.api).create_error)
    return create(ctypes.addressof(error))

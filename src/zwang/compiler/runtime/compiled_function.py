"""Compiled programs as functions on NumPy arrays, for one world or many, on several threads."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zwang.compiler.backends.llvm.entry_points import DISPATCH
from zwang.compiler.backends.llvm.lanes import TYPES, WIDTHS, Lanes
from zwang.compiler.backends.llvm.module import emit
from zwang.compiler.ir.program import Block, Cond, For, Port, Program, While, nonempty_ports
from zwang.compiler.runtime.bound_rollout import Rollout
from zwang.compiler.runtime.direct_call import DirectCall, direct_call
from zwang.compiler.runtime.kernel import Kernel, inner_loop, int64_array
from zwang.compiler.runtime.processor import host
from zwang.compiler.runtime.threads import COMPILE_LOCK, cores
from zwang.compiler.runtime.ufunc import MAXIMUM_PORTS, UniversalFunction
from zwang.errors import ArgumentError, ShapeError, StateError
from zwang.scalar.real import REAL, real_array, remedy_for

Arrays = np.ndarray | tuple[np.ndarray, ...]

# Numbers of vector instructions:
WORTH_THREADS = 1_000_000  # of a call from which on several threads are used
WORTH_INTERRUPTING = (
    10_000_000  # of a call on one thread from which on it is split so that it can be interrupted
)
ASSUMED_ITERATIONS = 10  # of a `while`, in the estimate of the cost of a program
UNLIMITED = 2**62


class CompiledFunction:
    """A program as a function of arrays, one per input, of shape (..., size); their leading shapes broadcast.

    A call returns an array for each output, or the array itself if there is only one output. The result of a
    world depends on its own inputs only, bit for bit: not on the number of worlds, lanes or threads.

    dtype: "float64" or "float32". lanes: number of worlds per vector instruction, by default that of the
    processor.
    threads: by default one per core. cache: whether machine code is cached on disk. Code for one world and
    code for many is compiled when it is first needed, or by `prepare`. Raises ArgumentError for invalid
    settings.
    """

    def __init__(
        self,
        program: Program,
        *,
        dtype: Any = "float64",
        lanes: int | None = None,
        threads: int | None = None,
        cache: bool = True,
    ):
        self.program, self._use_cache = program, cache
        self.dtype, self.lanes, self.threads = execution_settings(dtype, lanes, threads)
        self._inputs, self._outputs = nonempty_ports(program)
        self._has_ufunc = len(self._inputs) + len(self._outputs) <= MAXIMUM_PORTS
        self._kernels: dict[int, Kernel] = {}
        # Dispatch tables of the inner loops: for unchecked and for checked arguments.
        self._dispatch = int64_array(*[0] * len(DISPATCH))
        self._checked_dispatch = int64_array(*[0] * len(DISPATCH))
        self.cost = _cost(program.body)
        self.block_seconds = 0.0  # that the last long rollout took for each block of worlds and step
        threshold = WORTH_THREADS if self.threads > 1 else WORTH_INTERRUPTING
        self._max_direct_worlds = max(4 * self.lanes, threshold * self.lanes // self.cost)
        self._dispatch[DISPATCH.index("max_worlds")] = self._max_direct_worlds
        self._checked_dispatch[DISPATCH.index("max_worlds")] = UNLIMITED
        self._checked_ufunc: UniversalFunction | None = None
        self.direct: DirectCall = _never  # of all inputs; returns None where `__call__` does more

    def __call__(self, *arrays: Any) -> Arrays:
        found = self.direct(arrays)
        return self._checked_call(*arrays) if found is None else found

    def __reduce__(self) -> tuple[Any, ...]:
        """Copies, also in another process, are compiled from the program, because machine code cannot be
        copied.
        """
        return _compile, (self.program, self.dtype, self.lanes, self.threads, self._use_cache)

    def prepare(self, *, worlds: int = 2) -> CompiledFunction:
        """Compile or load the code for one world (worlds=1) or for many; returns this object."""
        self.kernel(worlds)
        return self

    def text(self, lanes: int | None = None) -> str:
        """The LLVM IR of the program's body."""
        return emit(self.program, Lanes(self.dtype, lanes or self.lanes)).text

    # --------------------------------------------------------------------------------- kernels and calls

    @property
    def direct_loop(self) -> tuple[int, int]:
        """The address of the inner loop of a NumPy universal function over the ports that are not empty, and
        its last argument, the dispatch table.

        The loop counts a failure in the table, and computes nothing, if there is no kernel for the number of
        worlds yet, or if they are so many that `compute_into` uses threads. Both addresses are valid as long
        as this object exists.
        """
        return inner_loop(Lanes(self.dtype, self.lanes), self._use_cache), ctypes.addressof(self._dispatch)

    @property
    def rollout_loop(self) -> int:
        """The address of the inner loop of universal functions that compute rollouts; see `entry_points`."""
        return next(iter(self._kernels.values())).rollout_loop

    @property
    def kernels(self) -> Mapping[int, Kernel]:
        """The kernels that are ready, by their number of lanes."""
        return dict(self._kernels)

    def kernel(self, worlds: int) -> Kernel:
        """The kernel for one world, or for many."""
        width = 1 if worlds == 1 else self.lanes
        if width in self._kernels:
            return self._kernels[width]
        with COMPILE_LOCK:
            if width not in self._kernels:
                kernel = Kernel(self.program, Lanes(self.dtype, width), use_cache=self._use_cache)
                self._register(width, kernel)
                self._kernels[width] = kernel
            return self._kernels[width]

    def _register(self, width: int, kernel: Kernel) -> None:
        """Enter a new kernel into the dispatch tables. Checked calls accept the other kernel if there is only
        one.
        """
        address = ctypes.addressof(kernel.descriptor)
        for dispatch in (self._dispatch, self._checked_dispatch):
            for field, is_suitable in (("one_world", width == 1), ("many_worlds", width == self.lanes)):
                is_missing = dispatch is self._checked_dispatch and not dispatch[DISPATCH.index(field)]
                if is_suitable or is_missing:
                    dispatch[DISPATCH.index(field)] = address

    def _ufunc_of_checked_calls(self, kernel: Kernel) -> UniversalFunction:
        """The universal function for checked arguments; both universal functions are created with the first
        kernel.
        """
        if self._checked_ufunc is not None:
            return self._checked_ufunc
        with COMPILE_LOCK:
            if self._checked_ufunc is None:
                sizes = [(port.size,) for port in self._inputs], [(port.size,) for port in self._outputs]
                direct, self._checked_ufunc = (
                    UniversalFunction(kernel.ufunc_loop, ctypes.addressof(dispatch), *sizes, self.dtype)
                    for dispatch in (self._dispatch, self._checked_dispatch)
                )
                inputs, outputs = self.program.inputs, self.program.outputs
                if self._outputs and any(port.size for port in inputs):
                    nothing = np.zeros(0, self.dtype)
                    self.direct = direct_call(
                        direct, self._dispatch, inputs, outputs, nothing, unpack_single=True
                    )
            return self._checked_ufunc

    def _checked_call(self, *arrays: Any) -> Arrays:
        """A call with validation and conversion of its arguments, and with selection of kernel and
        threads.
        """
        converted, batch = self.validated_arrays(arrays)
        results = [np.empty((*batch, port.size), self.dtype) for port in self.program.outputs]
        self.compute_into(converted, results)
        return results[0] if len(results) == 1 else tuple(results)

    def compute_into(self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """A call whose results are written into existing arrays.

        arrays: one (..., size) for each input, of the function's type; their leading shapes are broadcast.
        results: one for each output, with the common leading shape. Nothing is checked.
        """
        nonempty = [array for array in arrays if array.shape[-1]] or [np.zeros(1, self.dtype)]
        written = [array for array in results if array.shape[-1]]
        if not written:  # a mechanism without joints may have no outputs
            return
        worlds = math.prod(written[0].shape[:-1])
        kernel = self.kernel(worlds)
        failures = self._checked_dispatch[DISPATCH.index("failures")]
        if worlds > self._max_direct_worlds or not self._has_ufunc:
            self._call_as_rollout(arrays, results)
        else:
            self._ufunc_of_checked_calls(kernel).call(*nonempty, out=tuple(written))
        if self._checked_dispatch[DISPATCH.index("failures")] != failures:
            raise MemoryError("there is not enough memory for the buffers of a block of worlds")

    def validated_arrays(self, arrays: Sequence[Any]) -> tuple[list[np.ndarray], tuple[int, ...]]:
        """The arguments as arrays of the function's type, and the common shape of their leading axes.

        Raises TypeError for a wrong number of arguments, and StateError or ShapeError for an invalid
        argument.
        """
        ports = self.program.inputs
        if len(arrays) != len(ports):
            names = ", ".join(repr(port.name) for port in ports)
            raise TypeError(f"{len(arrays)} arrays were given; there are {len(ports)} arguments: {names}")
        converted = [self.validated_array(array, port) for array, port in zip(arrays, ports, strict=True)]
        shapes = [(port.name, array.shape[:-1]) for array, port in zip(converted, ports, strict=True)]
        return converted, common_leading_shape(shapes)

    def validated_array(self, array: Any, port: Port) -> np.ndarray:
        """An argument as an array of the function's type.

        Raises StateError if it does not consist of real numbers, and ShapeError for a wrong size.
        """
        try:
            converted = real_array(array) if isinstance(array, np.ma.MaskedArray) else np.asarray(array)
            if converted.dtype.kind not in REAL:
                converted = real_array(converted)
            converted = converted.astype(self.dtype, copy=False)
        except Exception:  # that of a tensor or symbol of another library may have any type
            raise StateError(
                f"{port.name!r} is not an array of real numbers but {_abbreviated(array)}{remedy_for(array)}"
            ) from None
        if converted.shape[-1:] != (port.size,):
            raise ShapeError(
                f"{port.name!r} has the shape {converted.shape}; it should be ({port.size},) for one world, "
                f"or (..., {port.size}) for many"
            )
        return converted

    def _call_as_rollout(self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """A call as a rollout of one step, whose worlds several threads share, of any number of ports."""
        worlds, batch = math.prod(results[0].shape[:-1]), results[0].shape[:-1]
        flat = [
            np.broadcast_to(array, (*batch, size)).reshape(worlds, size)
            for array in arrays
            for size in array.shape[-1:]
        ]
        written = [result.reshape(worlds, result.shape[-1]) for result in results]
        names = [port.name for port in self.program.outputs]
        Rollout(self, flat, worlds, dict(zip(names, written, strict=True))).run(1)
        for result, rows in zip(results, written, strict=True):
            if not np.may_share_memory(result, rows):  # its worlds are not at equal distances
                result[...] = rows.reshape(result.shape)


def common_leading_shape(shapes: Sequence[tuple[str, tuple[int, ...]]]) -> tuple[int, ...]:
    """The shape to which the leading shapes of arguments broadcast, each with the name of its argument.

    Raises ShapeError for shapes that do not broadcast.
    """
    batch: tuple[int, ...] = ()
    for name, shape in shapes:
        try:
            batch = np.broadcast_shapes(batch, shape)
        except ValueError:
            raise ShapeError(
                f"{name!r} has the leading shape {shape}, which does not "
                f"broadcast with the leading shape {batch} of the arguments before it; "
                "they must be equal, 1, or missing"
            ) from None
    return batch


# ----------------------------------------------------------------------------------------------- settings


def execution_settings(dtype: Any, lanes: int | None, threads: int | None) -> tuple[str, int, int]:
    """The validated name of the type, number of lanes and number of threads; None means this machine's
    default.

    Raises ArgumentError for an invalid setting.
    """
    name = _type_name(dtype)
    lanes = host().width(name) if lanes is None else lanes
    if lanes not in WIDTHS:
        raise ArgumentError(f"lanes is {lanes!r}; it must be one of {WIDTHS}")
    threads = cores() if threads is None else threads
    if not isinstance(threads, int | np.integer) or threads < 1:
        raise ArgumentError(f"threads is {threads!r}; it must be a positive integer")
    return name, int(lanes), int(threads)


def _compile(program: Program, dtype: str, lanes: int, threads: int, cache: bool) -> CompiledFunction:
    return CompiledFunction(program, dtype=dtype, lanes=lanes, threads=threads, cache=cache)


def _type_name(dtype: Any) -> str:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in TYPES:
        raise ArgumentError(f"dtype is {dtype!r}; it must be one of {TYPES}")
    return name


def _never(arrays: Sequence[Any]) -> None:
    """What a direct call returns while there is no machine code."""


def _cost(block: Block) -> int:
    """The approximate number of instructions that the evaluation of one world takes."""
    total = 1
    for instruction in block.instructions:
        data = instruction.data
        if isinstance(data, For):
            total += data.count * _cost(data.body)
        elif isinstance(data, While):
            total += ASSUMED_ITERATIONS * (_cost(data.condition) + _cost(data.body))
        elif isinstance(data, Cond):
            total += _cost(data.then) + _cost(data.otherwise)
        else:
            total += 1
    return total


def _abbreviated(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

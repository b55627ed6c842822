"""Compiled programs as functions on NumPy arrays: one world or a million, on as many threads as there are cores."""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np

from zwang.compiler.backends.llvm.entry_points import SWITCH
from zwang.compiler.backends.llvm.lanes import TYPES, WIDTHS, Lanes
from zwang.compiler.backends.llvm.module import emit
from zwang.compiler.ir.program import Block, Cond, For, Port, Program, While
from zwang.compiler.runtime.kernel import Kernel, doors, words
from zwang.compiler.runtime.processor import host
from zwang.compiler.runtime.threads import LOCK, cores, share
from zwang.compiler.runtime.ufunc import UniversalFunction
from zwang.errors import ArgumentError, ShapeError, StateError
from zwang.scalar.real import REAL, real_array

Arrays = np.ndarray | tuple[np.ndarray, ...]

WORTH_THREADS = 1_000_000  # vector instructions below which a call stays on its own thread
WORTH_A_THREAD = (
    10_000_000  # those from which on a call without threads is cut into pieces that can be interrupted
)
PIECES = 4  # of the work for each thread, so that they end together
LARGEST_PIECE = 20_000_000  # vector instructions: some hundredths of a second
TURNS = 10  # that a `while` is guessed to take
EVER = 2**62


class CompiledFunction:
    """A program as a function of arrays, one for each input, `(..., size)`; leading shapes broadcast.

    It returns an array for each output, or if there is but one, that array. A result depends on its own world
    only, bit for bit: not on the number of worlds, of lanes, or of threads.

    dtype: "float64" or "float32". lanes: worlds a vector instruction, by default what the processor has. threads: by
    default one a core. cache: keep the machine code on disk. Code for one world alone and for many is made when it
    is first needed; `prepare` does it beforehand.
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
        self.program, self._kept = program, cache
        self.dtype, self.lanes, self.threads = execution_settings(dtype, lanes, threads)
        self._inputs, self._outputs = doors(program)
        self._is_plain = self._inputs == program.inputs and self._outputs == program.outputs
        self._kernels: dict[int, Kernel] = {}
        # What the inner loops find: of calls as they come, and of calls that were looked at and are to be done.
        self._switch, self._sure_switch = words(*[0] * len(SWITCH)), words(*[0] * len(SWITCH))
        self._failures = memoryview(self._switch).cast("B").cast("q")[SWITCH.index("failures") :]
        self.weight = _weight(program.body)
        worth = WORTH_THREADS if self.threads > 1 else WORTH_A_THREAD
        self._crowd = max(4 * self.lanes, worth * self.lanes // self.weight)
        self._switch[SWITCH.index("crowd")] = self._crowd
        self._sure_switch[SWITCH.index("crowd")] = EVER
        self._sure: UniversalFunction | None = None
        self._quick: UniversalFunction | None = None
        self._function: Callable[..., Arrays] = self._carefully

    def __call__(self, *arrays: Any) -> Arrays:
        failures = self._failures[0]
        try:
            result = self._function(*arrays)
        except (TypeError, ValueError, NotImplementedError):
            return self._carefully(*arrays)
        return result if self._failures[0] == failures else self._carefully(*arrays)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, also one in another process, is made of the program again: code in memory cannot be taken along."""
        return _again, (self.program, self.dtype, self.lanes, self.threads, self._kept)

    def prepare(self, *, worlds: int = 2) -> CompiledFunction:
        """Make, or load, the code for one world or for many now; returns itself."""
        self.kernel(worlds)
        return self

    def text(self, lanes: int | None = None) -> str:
        """The LLVM text of the program's body."""
        return emit(self.program, Lanes(self.dtype, lanes or self.lanes)).text

    # --------------------------------------------------------------------------------- code and calls

    def kernel(self, worlds: int) -> Kernel:
        """The code for one world alone, or for many."""
        width = 1 if worlds == 1 else self.lanes
        if width in self._kernels:
            return self._kernels[width]
        with LOCK:
            if width not in self._kernels:
                kernel = Kernel(self.program, Lanes(self.dtype, width), kept=self._kept)
                self._announce(width, kernel)
                self._kernels[width] = kernel
            return self._kernels[width]

    def _announce(self, width: int, kernel: Kernel) -> None:
        """Tell the inner loops of new code. Calls that were looked at take what there is, the others what is theirs."""
        plan = ctypes.addressof(kernel.plan)
        for switch in (self._switch, self._sure_switch):
            for way, fits in (("single", width == 1), ("many", width == self.lanes)):
                if fits or (switch is self._sure_switch and not switch[SWITCH.index(way)]):
                    switch[SWITCH.index(way)] = plan

    def _sure_function(self, kernel: Kernel) -> UniversalFunction:
        """The function for calls that were looked at; made with the first code that there is."""
        if self._sure is not None:
            return self._sure
        with LOCK:
            if self._sure is None:
                sizes = [port.size for port in self._inputs], [port.size for port in self._outputs]
                self._quick, self._sure = (
                    UniversalFunction(kernel.loop, ctypes.addressof(switch), *sizes, self.dtype)
                    for switch in (self._switch, self._sure_switch)
                )
                if self._is_plain:
                    self._function = self._quick.call
            return self._sure

    def _carefully(self, *arrays: Any) -> Arrays:
        """A call that looks at its arguments: it converts them, or says which is wrong, and picks code and threads."""
        given, batch = self.admit(arrays)
        worlds = int(np.prod(batch, dtype=np.int64))
        full = [array for array in given if array.shape[-1]] or [np.zeros(1, self.dtype)]
        results = [np.empty((*batch, port.size), self.dtype) for port in self._outputs]
        if results:  # of a mechanism without joints there may be none
            function = self._sure_function(self.kernel(worlds))
            failures = self._sure_switch[SWITCH.index("failures")]
            if worlds > self._crowd:
                self._in_threads(function.call, full, results)
            else:
                function.call(*full, out=tuple(results))
            if self._sure_switch[SWITCH.index("failures")] != failures:
                raise MemoryError("there is no memory for the blocks of lanes")
        filled = iter(results)
        every = [
            next(filled) if port.size else np.empty((*batch, 0), self.dtype) for port in self.program.outputs
        ]
        return every[0] if len(every) == 1 else tuple(every)

    def admit(self, arrays: Sequence[Any]) -> tuple[list[np.ndarray], tuple[int, ...]]:
        """The arguments as arrays of the type, and the shape that their leading axes have together."""
        ports = self.program.inputs
        if len(arrays) != len(ports):
            names = ", ".join(repr(port.name) for port in ports)
            raise TypeError(f"{len(arrays)} arrays were given; there are {len(ports)} arguments: {names}")
        given = [self.admit_one(array, port) for array, port in zip(arrays, ports, strict=True)]
        batch: tuple[int, ...] = ()
        for array, port in zip(given, ports, strict=True):
            try:
                batch = np.broadcast_shapes(batch, array.shape[:-1])
            except ValueError:
                raise ShapeError(
                    f"{port.name!r} has the leading shape {array.shape[:-1]}, which does not go with the "
                    f"leading shape {batch} of the arguments before it; they must be equal, 1, or missing"
                ) from None
        return given, batch

    def admit_one(self, array: Any, port: Port) -> np.ndarray:
        """An argument as an array of the type. Raises StateError for what are no real numbers, ShapeError for another size."""
        try:
            converted = np.asarray(array)
            if converted.dtype.kind not in REAL:
                converted = real_array(converted)
            converted = converted.astype(self.dtype, copy=False)
        except (TypeError, ValueError):
            raise StateError(f"{port.name!r} is no array of real numbers but {_short(array)}") from None
        if converted.shape[-1:] != (port.size,):
            raise ShapeError(
                f"{port.name!r} has the shape {converted.shape}; it should be ({port.size},) for one world, "
                f"or (..., {port.size}) for many"
            )
        return converted

    def _in_threads(
        self, call: Callable[..., Any], arrays: list[np.ndarray], results: list[np.ndarray]
    ) -> None:
        """The call cut along its longest axis; pieces are whole blocks of lanes where worlds are in a row."""
        batch = results[0].shape[:-1]
        axis = int(np.argmax(batch))
        spread = [np.broadcast_to(array, (*batch, array.shape[-1])) for array in arrays]
        length = batch[axis]
        most = LARGEST_PIECE * self.lanes * length // (self.weight * int(np.prod(batch, dtype=np.int64)))
        piece = max(1, min(-(-length // (self.threads * PIECES)), most))
        piece = -(-piece // self.lanes) * self.lanes
        edges = [*range(0, length, piece), length]

        def work(begin: int, end: int) -> None:
            where = (slice(None),) * axis + (slice(begin, end),)
            call(*(array[where] for array in spread), out=tuple(result[where] for result in results))

        share(work, list(pairwise(edges)), self.threads, is_short=most >= length)


# ----------------------------------------------------------------------------------------------- checks


def execution_settings(dtype: Any, lanes: int | None, threads: int | None) -> tuple[str, int, int]:
    """The type's name, the lanes and the threads, this machine's where None. Raises ArgumentError."""
    name = _type_name(dtype)
    lanes = host().width(name) if lanes is None else lanes
    if lanes not in WIDTHS:
        raise ArgumentError(f"lanes is {lanes!r}; it must be one of {WIDTHS}")
    threads = cores() if threads is None else threads
    if not isinstance(threads, int | np.integer) or threads < 1:
        raise ArgumentError(f"threads is {threads!r}; it must be a positive integer")
    return name, int(lanes), int(threads)


def _again(program: Program, dtype: str, lanes: int, threads: int, cache: bool) -> CompiledFunction:
    return CompiledFunction(program, dtype=dtype, lanes=lanes, threads=threads, cache=cache)


def _type_name(dtype: Any) -> str:
    try:
        name = np.dtype(dtype).name
    except TypeError:
        name = repr(dtype)
    if name not in TYPES:
        raise ArgumentError(f"dtype is {dtype!r}; it must be one of {TYPES}")
    return name


def _weight(block: Block) -> int:
    """About how many instructions one world takes."""
    total = 1
    for instruction in block.instructions:
        data = instruction.data
        if isinstance(data, For):
            total += data.count * _weight(data.body)
        elif isinstance(data, While):
            total += TURNS * (_weight(data.condition) + _weight(data.body))
        elif isinstance(data, Cond):
            total += _weight(data.then) + _weight(data.otherwise)
        else:
            total += 1
    return total


def _short(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + "..."

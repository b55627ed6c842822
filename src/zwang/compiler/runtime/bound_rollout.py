"""A rollout that is bound to its arrays: what the rollout kernel reads and writes, and when its worlds are
shared by several threads.
"""

from __future__ import annotations

import ctypes
import time
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Protocol

import numpy as np

from zwang.compiler.backends.llvm.entry_points import ROLLOUT, STATE_COPY, TRANSFER
from zwang.compiler.backends.llvm.module import port_starts
from zwang.compiler.ir.program import Port, Program, nonempty_ports
from zwang.compiler.runtime.kernel import Kernel, int64_array
from zwang.compiler.runtime.teams import Job, can_be_interrupted, run_job

INSTRUCTION_SECONDS = 1.5e-9  # of a vector instruction, before the first call has been timed
# Numbers of vector instructions, which are estimates:
WORTH_TIMING = 20_000  # of a call from which on it is timed, and several threads may share it
WORTH_INTERRUPTING = 1_000_000  # of a call that is not shared, from which on it is timed
COPY_SECONDS = 2e-10  # of a byte, to new memory
SMALL_PART = 0.1  # of a call: if the copy of its state takes less, the call is undone when it is interrupted
LARGEST_INCREASE = 1.25  # of the time that a call is expected to take, by the one before it


class Compiled(Protocol):
    """What a rollout needs of a compiled function.

    cost: the approximate number of instructions for a block of worlds and step; block_seconds: the time that
    it takes, or 0 if that is not known.
    """

    program: Program
    threads: int
    cost: int
    block_seconds: float

    def kernel(self, worlds: int) -> Kernel:
        """The kernel for so many worlds."""
        ...


class Rollout:
    """A rollout over all worlds with buffers of its own, which can be run again and again.

    inputs: one array for each input port, (worlds, size), or (worlds, steps, size) for ports named in
    `over_time`; a stride of 0 is allowed. records: arrays (worlds, number of records, size) for outputs after
    every few steps, by name. last: arrays (worlds, size) for outputs after the last step, by name. All are of
    the function's type or, with the worlds' values side by side, of 16-bit integers. An array
    in `last` may be that of the input of the same name: each world is read before it is written. before:
    arrays (worlds, size) to which inputs are copied before the first step, by name. then: a rollout of the
    same worlds that follows each run of this one. given: the name of an input that a run may read from
    another array. is_atomic: whether a run that is interrupted leaves the arrays in `last`, and those of
    `then`, as they were, or else is completed.
    """

    def __init__(
        self,
        compiled: Compiled,
        inputs: Sequence[np.ndarray],
        worlds: int,
        last: Mapping[str, np.ndarray],
        records: Mapping[str, np.ndarray] | None = None,
        over_time: Collection[str] = (),
        before: Mapping[str, np.ndarray] | None = None,
        then: Rollout | None = None,
        given: str | None = None,
        is_atomic: bool = False,
    ):
        self.compiled, self.worlds = compiled, worlds
        self.threads = 1  # that shared the last run
        self._kernel: Kernel = compiled.kernel(worlds)
        program = compiled.program
        read = dict(zip((port.name for port in program.inputs), inputs, strict=True))
        tables = {
            "copy": state_copies(program),
            "read": _transfers(program.inputs, read, over_time, given),
            "before": _transfers(program.inputs, before or {}),
            "record": _transfers(program.outputs, records or {}, records or {}),
            "final": _transfers(program.outputs, last),
        }
        self._descriptor, rows = described_rollout(1, 1, tables)
        self._given_row = _row_of(given, program.inputs, rows["read"])
        self._memory = (rows, inputs, before, records, last, then)  # that the descriptor refers to
        self._last = [*last.values(), *(then._last if then is not None else ())]
        self._restored = self._last if is_atomic else []
        kernel, arguments = self._kernel, ctypes.addressof(self._descriptor)
        self._job = Job(
            kernel.rollout,
            kernel.rollout_address,
            arguments,
            ctypes.addressof(kernel.descriptor),
            worlds,
            kernel.lanes.width,
        )
        is_shared = compiled.threads > 1 and self._job.blocks > 1
        self._worth_timing = WORTH_TIMING if is_shared else WORTH_INTERRUPTING
        self._cost, self._cost_after = compiled.cost * self._job.blocks, 0
        kept, self._buffers = kernel.kept_buffers(min(compiled.threads, self._job.blocks))
        self._descriptor[_KEPT], self._descriptor[_KEPT_COUNT] = kept.values()
        if then is not None:
            self._cost_after = then._cost
            job = then._job
            self._descriptor[_THEN], self._descriptor[_THEN_KERNEL] = job.context, job.kernel

    def run_with(self, given: np.ndarray, steps: int) -> None:
        """Compute steps whose input `given` is in this array (worlds, size), which is contiguous, writeable
        and of the function's type. Raises MemoryError.
        """
        row = self._given_row
        own = row[_DATA], row[_WORLD], row[_ELEMENT]
        row[_DATA], (row[_WORLD], row[_ELEMENT]) = _data_address(given), given.strides
        try:
            self.run(steps)
        finally:
            row[_DATA], row[_WORLD], row[_ELEMENT] = own

    def run(self, steps: int, every: int = 1) -> None:
        """Compute `steps` steps, and a record after each `every` of them. Raises MemoryError."""
        descriptor = self._descriptor
        descriptor[_STEPS], descriptor[_EVERY], descriptor[_STOP] = steps, every, 0
        if self._cost * steps + self._cost_after <= self._worth_timing:
            succeeded = self._job.run()
        else:
            succeeded = self._run_timed(steps)
        if not succeeded:
            raise MemoryError("there is not enough memory for the buffers of a block of worlds")

    def _run_timed(self, steps: int) -> bool:
        """Call the rollout kernel in this thread or in several, depending on the time that it takes; whether
        there was memory.

        The time is that of the last calls, for each block of worlds and step, since the number of iterations
        of a solver is not known before; the first call is timed by its instructions. A call that took much
        longer was probably interrupted by another program, and one on several threads may only show that the
        time is less.
        """
        compiled, blocks = self.compiled, self._job.blocks * steps
        known = compiled.block_seconds
        seconds = blocks * (known or compiled.cost * INSTRUCTION_SECONDS)
        kept, stop = [], self._stop
        if self._restored and can_be_interrupted(seconds):
            copying = COPY_SECONDS * sum(x.nbytes for x in self._restored)
            if copying * compiled.threads < SMALL_PART * seconds:
                kept = [x.copy(order="K") for x in self._restored]
            else:
                stop = None
        started = time.perf_counter()
        try:
            succeeded, self.threads = run_job(self._job, seconds, compiled.threads, stop)
        except BaseException:
            self._restore(kept)
            raise
        taken = (time.perf_counter() - started) * self.threads / blocks
        largest = known * (LARGEST_INCREASE if self.threads == 1 else 1.0)
        compiled.block_seconds = min(taken, largest) if known else taken
        return succeeded

    def _restore(self, kept: Sequence[np.ndarray]) -> None:
        """Let the restored arrays be as they were, even if this thread is interrupted again meanwhile."""
        while True:
            try:
                for array, values in zip(self._restored, kept, strict=False):
                    array[:] = values
                return
            except KeyboardInterrupt:
                continue

    def _stop(self) -> None:
        """Let the rollout kernel return after the present step."""
        self._descriptor[_STOP] = 1


_STEPS, _EVERY, _STOP = (ROLLOUT.index(name) for name in ("steps", "every", "stop"))
_THEN, _THEN_KERNEL = ROLLOUT.index("then"), ROLLOUT.index("then_kernel")
_KEPT, _KEPT_COUNT = ROLLOUT.index("kept"), ROLLOUT.index("kept_count")
_DATA, _WORLD, _ELEMENT, _POSITION = (
    TRANSFER.index(name) for name in ("data", "world_stride", "element_stride", "position")
)


def described_rollout(
    steps: int, every: int, tables: Mapping[str, Sequence[int]], counts: tuple[int, int] | None = None
) -> tuple[ctypes.Array[ctypes.c_int64], dict[str, ctypes.Array[ctypes.c_int64]]]:
    """A row of ROLLOUT, and the memory that it refers to.

    tables: rows of STATE_COPY ("copy") and of TRANSFER (the others). counts: numbers of
    inputs and of records whose rows are filled in later.
    """
    rows = {name: int64_array(*words) for name, words in tables.items()}
    fields = {"steps": steps, "every": every}
    for name, table in rows.items():
        size = len(STATE_COPY if name == "copy" else TRANSFER)
        plural = "copies" if name == "copy" else f"{name}s"
        fields |= {plural: ctypes.addressof(table), f"{name}_count": len(table) // size}
    if counts is not None:
        fields["read_count"], fields["record_count"] = counts
    return int64_array(*(fields.get(name, 0) for name in ROLLOUT)), rows


def state_copies(program: Program) -> list[int]:
    """Rows of STATE_COPY for the state; parts that follow one another in both buffers have one row."""
    inputs, outputs = nonempty_ports(program)
    positions = dict(zip((port.name for port in inputs), port_starts(inputs), strict=False))
    copies: list[int] = []
    for port, start in zip(outputs, port_starts(outputs), strict=False):
        if port.name not in positions:
            continue
        target = positions[port.name]
        if copies and copies[-3] + copies[-1] == start and copies[-2] + copies[-1] == target:
            copies[-1] += port.size
        else:
            copies += [start, target, port.size]
    return copies


def _transfers(
    ports: Sequence[Port],
    arrays: Mapping[str, np.ndarray],
    over_time: Collection[str] = (),
    apart: str | None = None,
) -> list[int]:
    """Rows of TRANSFER between the ports' buffer and these arrays (worlds, size), by the names of the ports,
    or (worlds, times, size) for those in `over_time`.

    Arrays in which the values of consecutive worlds are neighbours, and which follow one another in memory as
    their ports do in the buffer, are one row; the port `apart` has one of its own.
    """
    last = ""
    rows: list[dict[str, int]] = []
    for port, position in zip(ports, port_starts(ports), strict=False):
        array = arrays.get(port.name)
        if array is None or not array.size:
            continue
        row = {
            "data": array.ctypes.data,
            "world_stride": array.strides[0],
            "element_stride": array.strides[-1],
            "time_stride": array.strides[1] if port.name in over_time else 0,
            "size": port.size,
            "position": position,
            "element_bytes": array.itemsize,
        }
        is_next = rows and apart not in (port.name, last) and array.strides[0] == array.itemsize
        if is_next and _follows(rows[-1], row):
            rows[-1]["size"] += port.size
        else:
            rows.append(row)
        last = port.name
    return [row[name] for row in rows for name in TRANSFER]


def _follows(before: Mapping[str, int], row: Mapping[str, int]) -> bool:
    """Whether a row of TRANSFER continues the one before it."""
    same = ("world_stride", "element_stride", "time_stride", "element_bytes")
    return (
        all(row[name] == before[name] for name in same)
        and row["data"] == before["data"] + before["size"] * before["element_stride"]
        and row["position"] == before["position"] + before["size"]
    )


def _row_of(name: str | None, ports: Sequence[Port], rows: ctypes.Array[ctypes.c_int64]) -> memoryview:
    """The words of the row of TRANSFER for the port of this name, which has one of its own; empty if no port
    has elements and this name.
    """
    words = memoryview(rows).cast("B").cast("q")
    for port, position in zip(ports, port_starts(ports), strict=False):
        if port.name == name and port.size:
            starts = range(0, len(words), len(TRANSFER))
            start = next(k for k in starts if words[k + _POSITION] == position)
            return words[start : start + len(TRANSFER)]
    return words[:0]


def _data_address(array: Any) -> int:
    """The address of a contiguous writeable array; NumPy's `ctypes.data` takes longer."""
    return ctypes.addressof(ctypes.c_char.from_buffer(array))

"""The rollout kernel: many steps in one call, where outputs named as inputs are fed back to these inputs."""

from __future__ import annotations

import ctypes
import operator
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from zwang.compiler.backends.llvm.entry_points import ROLLOUT, STATE_COPY, TRANSFER
from zwang.compiler.backends.llvm.module import port_starts
from zwang.compiler.ir.program import Port, Program, nonempty_ports
from zwang.compiler.runtime.compiled_function import PIECES_PER_THREAD, WORTH_THREADS, CompiledFunction
from zwang.compiler.runtime.kernel import Kernel, int64_array
from zwang.compiler.runtime.threads import run_pieces
from zwang.errors import ArgumentError, ShapeError, UnknownNameError

MAXIMUM_STEPS = 10**12
INSTRUCTION_SECONDS = 1.5e-9  # of a vector instruction, before the first call has been timed
WORTH_THREADS_SECONDS = 2e-4  # of a call on one thread from which on several are used; to wake one takes 5e-5
LONGEST_PIECE = 0.03  # seconds of a call that need not be interrupted


@dataclass(frozen=True)
class RolloutResult:
    """The state after the last step, (..., size), and the records, (..., number of records, size), by
    name.
    """

    state: dict[str, np.ndarray]
    records: dict[str, np.ndarray]


def run_steps(
    compiled: CompiledFunction,
    *arrays: Any,
    steps: int,
    every: int = 1,
    over_time: Collection[str] = (),
    record: Collection[str] | None = None,
) -> RolloutResult:
    """The state and the records after `steps` applications of a program, in one call of its rollout kernel.

    Outputs that have the name of an input form the state: they are that input of the next step.
    arrays: one per input, (..., size), as in a call of the function. Inputs named in `over_time` have the
    shape (..., steps, size), one row per step; all other inputs that are not part of the state are constant.
    every: the outputs are recorded after every `every`-th step. record: names of the recorded outputs
    (default: all).

    The result equals that of `steps` single calls, bit for bit. Raises ArgumentError, ShapeError, StateError
    or UnknownNameError for an invalid argument, and MemoryError if there is no memory for the buffers.
    """
    steps, every = _integer("steps", steps), _integer("every", every)
    if steps < 0 or every < 1:
        raise ArgumentError(
            f"steps is {steps} and every is {every}; steps must be 0 or more, every 1 or more"
        )
    program = compiled.program
    names = [port.name for port in program.outputs]
    for name in record or ():
        if name not in names:
            raise UnknownNameError("output", name, names)
    inputs, batch = _validated_inputs(compiled, arrays, steps, over_time)
    worlds = int(np.prod(batch, dtype=np.int64))
    flat = [_with_one_world_axis(array, batch, port, over_time) for array, port in inputs]
    recorded = names if record is None else record
    records = {
        port.name: np.empty((worlds, steps // every, port.size), compiled.dtype)
        for port in program.outputs
        if port.name in recorded
    }
    state = {name: np.empty((worlds, size), compiled.dtype) for name, size in state_sizes(program).items()}
    if steps == 0:
        for (_, port), array in zip(inputs, flat, strict=True):
            if port.name in state and port.name not in over_time:
                state[port.name][:] = array
    elif worlds:
        Rollout(compiled, flat, worlds, state, records, over_time).run(steps, every)
    return RolloutResult(
        {name: array.reshape(*batch, array.shape[-1]) for name, array in state.items()},
        {name: array.reshape(*batch, *array.shape[1:]) for name, array in records.items()},
    )


def _integer(name: str, value: Any) -> int:
    """The value as an integer. Raises ArgumentError if it is not an integer or too large."""
    try:
        number = operator.index(value)
    except TypeError:
        raise ArgumentError(f"{name} is {value!r}; it must be an integer") from None
    if abs(number) > MAXIMUM_STEPS:
        raise ArgumentError(f"{name} is {value!r}; a call computes at most {MAXIMUM_STEPS:,} steps")
    return number


def state_sizes(program: Program) -> dict[str, int]:
    """Names and sizes of the ports that are both inputs and outputs. Raises ShapeError if the sizes
    differ.
    """
    inputs = {port.name: port.size for port in program.inputs}
    shared = [port for port in program.outputs if port.name in inputs]
    for port in shared:
        if port.size != inputs[port.name]:
            raise ShapeError(
                f"{port.name!r} has {inputs[port.name]} elements as an input and {port.size} as an output: "
                "a state must have the same number"
            )
    return {port.name: port.size for port in shared}


def _validated_inputs(
    compiled: CompiledFunction, arrays: Sequence[Any], steps: int, over_time: Collection[str]
) -> tuple[list[tuple[np.ndarray, Port]], tuple[int, ...]]:
    """The validated arrays with their ports, and the common shape of their leading axes."""
    ports = compiled.program.inputs
    states = state_sizes(compiled.program)
    for name in over_time:
        if name not in [port.name for port in ports]:
            raise UnknownNameError("input", name, [port.name for port in ports])
        if name in states:
            raise ValueError(f"{name!r} is part of the state and cannot be prescribed over time")
    # the arrays at the first step determine the leading shape
    first = list(arrays)
    for k, (array, port) in enumerate(zip(arrays, ports, strict=False)):
        if port.name in over_time:
            shape = np.shape(array)
            if len(shape) < 2 or shape[-2:] != (steps, port.size):
                raise ShapeError(
                    f"{port.name!r} has the shape {shape}; over time it should be (..., {steps}, {port.size})"
                )
            first[k] = np.asarray(array)[..., 0, :] if steps else np.zeros((*shape[:-2], port.size))
    converted, batch = compiled.validated_arrays(first)
    for k, port in enumerate(ports):
        if port.name in over_time:
            converted[k] = compiled.validated_array(arrays[k], port)
    return list(zip(converted, ports, strict=True)), batch


def _with_one_world_axis(
    array: np.ndarray, batch: tuple[int, ...], port: Port, over_time: Collection[str]
) -> np.ndarray:
    """The array with a single leading axis for the worlds; a view where possible."""
    shape = array.shape[-2:] if port.name in over_time else array.shape[-1:]
    broadcast = np.broadcast_to(array, (*batch, *shape))
    return broadcast if len(batch) == 1 else broadcast.reshape(int(np.prod(batch, dtype=np.int64)), *shape)


class Rollout:
    """A rollout over all worlds with buffers of its own, which can be run again and again.

    inputs: one array for each input port, (worlds, size), or (worlds, steps, size) for ports named in
    `over_time`; a stride of 0 is allowed. records: arrays (worlds, number of records, size) for outputs after
    every few steps, by name. last: arrays (worlds, size) for outputs after the last step, by name. An array
    in `last` may be that of the input of the same name: each world is read before it is written.
    """

    def __init__(
        self,
        compiled: CompiledFunction,
        inputs: Sequence[np.ndarray],
        worlds: int,
        last: Mapping[str, np.ndarray],
        records: Mapping[str, np.ndarray] | None = None,
        over_time: Collection[str] = (),
        before: Mapping[str, np.ndarray] | None = None,
        then: Rollout | None = None,
    ):
        self.compiled, self.worlds = compiled, worlds
        self._kernel: Kernel = compiled.kernel(worlds)
        program = compiled.program
        read = dict(zip((port.name for port in program.inputs), inputs, strict=True))
        tables = {
            "copy": state_copies(program),
            "read": _transfers(program.inputs, read, over_time),
            "before": _transfers(program.inputs, before or {}),
            "record": _transfers(program.outputs, records or {}, records or {}),
            "final": _transfers(program.outputs, last),
        }
        self._descriptor, rows = described_rollout(1, 1, tables)
        self._memory = (rows, inputs, before, records, last, then)  # that the descriptor refers to
        self._function = self._kernel.rollout
        self._arguments = ctypes.addressof(self._descriptor), ctypes.addressof(self._kernel.descriptor)
        self._blocks = -(-worlds // self._kernel.lanes.width)
        self._cost, self._cost_after = compiled.cost * self._blocks, 0
        if then is not None:
            self._cost_after = then._cost
            self._descriptor[_THEN], self._descriptor[_THEN_KERNEL] = then._arguments

    def run(self, steps: int, every: int = 1) -> None:
        """Compute `steps` steps, and a record after each `every` of them. Raises MemoryError."""
        descriptor = self._descriptor
        descriptor[_STEPS], descriptor[_EVERY], descriptor[_STOP] = steps, every, 0
        if self._cost * steps + self._cost_after <= WORTH_THREADS:
            rollout, kernel = self._arguments
            succeeded = self._function(rollout, 0, self.worlds, kernel)
        else:
            succeeded = self._run_long(steps)
        if not succeeded:
            raise MemoryError("there is not enough memory for the buffers of a block of worlds")

    def _run_long(self, steps: int) -> bool:
        """Call the rollout kernel in this thread or in several, depending on the time that it takes; whether
        there was memory.

        The time is that of the last call on one thread, for each block of worlds and step, since the number
        of iterations of a solver is not known before; threads may only have taken less. The first call is
        timed by its instructions.
        """
        compiled, rollout_kernel = self.compiled, self._arguments
        blocks = self._blocks * steps
        seconds = blocks * (compiled.block_seconds or compiled.cost * INSTRUCTION_SECONDS)
        started = time.perf_counter()
        if seconds <= (LONGEST_PIECE if compiled.threads == 1 else WORTH_THREADS_SECONDS):
            rollout, kernel = rollout_kernel
            succeeded = self._function(rollout, 0, self.worlds, kernel)
            compiled.block_seconds = (time.perf_counter() - started) / blocks
        else:
            succeeded = self._run_in_threads(seconds)
            taken = (time.perf_counter() - started) * compiled.threads / blocks
            compiled.block_seconds = min(compiled.block_seconds or taken, taken)
        return succeeded

    def _run_in_threads(self, seconds: float) -> bool:
        """Call the rollout kernel for pieces of the worlds, of this time together; whether there was memory
        for all of them.
        """
        threads, lanes = self.compiled.threads, self._kernel.lanes.width
        piece = -(-self.worlds // (threads * PIECES_PER_THREAD)) if threads > 1 else self.worlds
        piece = -(-piece // lanes) * lanes
        succeeded: list[bool] = []
        rollout, kernel = self._arguments

        def work(begin: int, end: int) -> None:
            succeeded.append(self._function(rollout, begin, end - begin, kernel))

        def stop() -> None:
            self._descriptor[_STOP] = 1

        pieces = list(pairwise([*range(0, self.worlds, piece), self.worlds]))
        # `work` refers to this object, and so to all memory that the threads write to
        run_pieces(work, pieces, threads, is_short=seconds <= LONGEST_PIECE, stop=stop)
        return all(succeeded)


class RepeatedRollout:
    """A rollout of so many steps that is run again and again with new contents of its arrays.

    arrays: by the names of the inputs, (worlds, size), or (worlds, steps, size) for those in `over_time`.
    The state after a run is in its input, from which the next run goes on. records: by the names in `record`,
    (worlds, steps, size), of the state (worlds, steps + 1, size), beginning with that before the first step.
    Arrays that are `given` by the name of a port are used where they are, with the type of the function; the
    other inputs are zeros at first.
    """

    def __init__(
        self, compiled: CompiledFunction, worlds: int, steps: int, given: Mapping[str, np.ndarray],
        over_time: Collection[str] = (), record: Collection[str] = (),
    ) -> None:  # fmt: skip
        program, self.steps = compiled.program, steps
        self.arrays: dict[str, np.ndarray] = {}
        for port in program.inputs:
            shape = (worlds, steps, port.size) if port.name in over_time else (worlds, port.size)
            found = given.get(port.name)
            self.arrays[port.name] = _worlds_last(shape, compiled.dtype) if found is None else found
        state = {name: self.arrays[name] for name in state_sizes(program)}
        sizes = {port.name: port.size for port in program.outputs if port.name in record}
        self.records = {
            name: given[name]
            if name in given and name not in state
            else _worlds_last((worlds, steps + (name in state), size), compiled.dtype)
            for name, size in sizes.items()
        }
        self._recorded_state = [name for name in state if name in sizes]
        after = {name: x[:, 1:] if name in state else x for name, x in self.records.items()}
        self._rollout: Rollout | None = None
        if worlds and steps:
            self._rollout = Rollout(compiled, [*self.arrays.values()], worlds, state, after, over_time)

    def run(self) -> None:
        """Compute the steps. Raises MemoryError."""
        for name in self._recorded_state:
            self.records[name][:, 0] = self.arrays[name]
        if self._rollout is not None:
            self._rollout.run(self.steps)


def _worlds_last(shape: tuple[int, ...], dtype: str) -> np.ndarray:
    """Zeros (worlds, ...) whose worlds are neighbours in memory."""
    return np.moveaxis(np.zeros((*shape[1:], shape[0]), dtype), -1, 0)


_STEPS, _EVERY, _STOP = (ROLLOUT.index(name) for name in ("steps", "every", "stop"))
_THEN, _THEN_KERNEL = ROLLOUT.index("then"), ROLLOUT.index("then_kernel")


def described_rollout(
    steps: int, every: int, tables: Mapping[str, Sequence[int]], counts: tuple[int, int] | None = None
) -> tuple[ctypes.Array[ctypes.c_int64], list[ctypes.Array[ctypes.c_int64]]]:
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
    return int64_array(*(fields.get(name, 0) for name in ROLLOUT)), [*rows.values()]


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
    ports: Sequence[Port], arrays: Mapping[str, np.ndarray], over_time: Collection[str] = ()
) -> list[int]:
    """Rows of TRANSFER between the ports' buffer and these arrays (worlds, size), by the names of the ports,
    or (worlds, times, size) for those in `over_time`.

    Arrays in which the values of consecutive worlds are neighbours, and which follow one another in memory as
    their ports do in the buffer, are one row.
    """
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
        }
        if rows and array.strides[0] == array.itemsize and _follows(rows[-1], row):
            rows[-1]["size"] += port.size
        else:
            rows.append(row)
    return [row[name] for row in rows for name in TRANSFER]


def _follows(before: Mapping[str, int], row: Mapping[str, int]) -> bool:
    """Whether a row of TRANSFER continues the one before it."""
    strides = ("world_stride", "element_stride", "time_stride")
    return (
        all(row[name] == before[name] for name in strides)
        and row["data"] == before["data"] + before["size"] * before["element_stride"]
        and row["position"] == before["position"] + before["size"]
    )

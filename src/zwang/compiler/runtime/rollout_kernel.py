"""Many steps in one call: a program whose outputs bear the names of inputs is applied to its own results."""

from __future__ import annotations

import ctypes
import operator
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from zwang.compiler.backends.llvm.entry_points import JOB, PORT
from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.module import input_starts
from zwang.compiler.ir.program import Port, Program
from zwang.compiler.runtime.compiled_function import LARGEST_PIECE, PIECES, CompiledFunction
from zwang.compiler.runtime.kernel import Kernel, doors, words
from zwang.compiler.runtime.threads import share
from zwang.errors import ArgumentError, ShapeError, UnknownNameError

MOST_STEPS = 10**12


@dataclass(frozen=True)
class RolloutResult:
    """What a run of steps gives: the state after the last, (..., size), and records, (..., records, size), by name."""

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
    """The program applied `steps` times: outputs that are named as inputs are those inputs of the next step.

    arrays: one for each input, (..., size), as for a call; those named in `over_time` are (..., steps, size) and
    give each step its own row. All others but the state stay as they are. Recorded are, after every `every`-th step,
    the outputs named in `record` (by default all). Equal, bit for bit, to as many calls.
    """
    steps, every = _whole("steps", steps), _whole("every", every)
    if steps < 0 or every < 1:
        raise ArgumentError(
            f"steps is {steps} and every is {every}; steps must be 0 or more, every 1 or more"
        )
    program = compiled.program
    names = [port.name for port in program.outputs]
    for name in record or ():
        if name not in names:
            raise UnknownNameError("output", name, names)
    given, batch = _admit(compiled, arrays, steps, over_time)
    worlds = int(np.prod(batch, dtype=np.int64))
    run = _Run(compiled, [_in_a_row(array, batch, port, over_time) for array, port in given], worlds)
    wanted = names if record is None else record
    records = {
        port.name: np.empty((worlds, steps // every, port.size), compiled.dtype)
        for port in program.outputs
        if port.name in wanted
    }
    state = {name: np.empty((worlds, size), compiled.dtype) for name, size in state_sizes(program).items()}
    if steps == 0:
        for (_, port), row in zip(given, run.inputs, strict=True):
            if port.name in state and port.name not in over_time:
                state[port.name][:] = row
    elif worlds:
        run.go(steps, every, records, state, over_time)
    return RolloutResult(
        {name: array.reshape(*batch, array.shape[-1]) for name, array in state.items()},
        {name: array.reshape(*batch, *array.shape[1:]) for name, array in records.items()},
    )


def _whole(name: str, value: Any) -> int:
    try:
        number = operator.index(value)
        if abs(number) > MOST_STEPS:
            raise ArgumentError(f"{name} is {value!r}; at most {MOST_STEPS:,} are run in a call")
        return number
    except TypeError:
        raise ArgumentError(f"{name} is {value!r}; it must be an integer") from None


def state_sizes(program: Program) -> dict[str, int]:
    """Names and sizes of the ports that are both inputs and outputs."""
    inputs = {port.name: port.size for port in program.inputs}
    shared = [port for port in program.outputs if port.name in inputs]
    for port in shared:
        if port.size != inputs[port.name]:
            raise ShapeError(
                f"{port.name!r} goes in with {inputs[port.name]} elements and comes out with {port.size}: "
                "as a state it must have the same number"
            )
    return {port.name: port.size for port in shared}


def _admit(
    compiled: CompiledFunction, arrays: Sequence[Any], steps: int, over_time: Collection[str]
) -> tuple[list[tuple[np.ndarray, Port]], tuple[int, ...]]:
    """The arrays with their ports, and the shape that their leading axes have together."""
    ports = compiled.program.inputs
    states = state_sizes(compiled.program)
    for name in over_time:
        if name not in [port.name for port in ports]:
            raise UnknownNameError("input", name, [port.name for port in ports])
        if name in states:
            raise ValueError(f"{name!r} is part of the state, which has no course of its own over time")
    leading = list(arrays)
    for k, (array, port) in enumerate(zip(arrays, ports, strict=False)):
        if port.name in over_time:
            shape = np.shape(array)
            if len(shape) < 2 or shape[-2:] != (steps, port.size):
                raise ShapeError(
                    f"{port.name!r} has the shape {shape}; over time it should be (..., {steps}, {port.size})"
                )
            leading[k] = np.asarray(array)[..., 0, :] if steps else np.zeros((*shape[:-2], port.size))
    given, batch = compiled.admit(leading)
    for k, port in enumerate(ports):
        if port.name in over_time:
            given[k] = compiled.admit_one(arrays[k], port)
    return list(zip(given, ports, strict=True)), batch


def _in_a_row(
    array: np.ndarray, batch: tuple[int, ...], port: Port, over_time: Collection[str]
) -> np.ndarray:
    """The array with one leading axis, for the worlds; a view where that is possible."""
    own = array.shape[-2:] if port.name in over_time else array.shape[-1:]
    spread = np.broadcast_to(array, (*batch, *own))
    return spread if len(batch) == 1 else spread.reshape(int(np.prod(batch, dtype=np.int64)), *own)


class _Run:
    """One run of steps, over all worlds."""

    def __init__(self, compiled: CompiledFunction, inputs: list[np.ndarray], worlds: int):
        self.compiled, self.inputs, self.worlds = compiled, inputs, worlds
        self.kernel: Kernel = compiled.kernel(worlds)

    def go(
        self,
        steps: int,
        every: int,
        records: dict[str, np.ndarray],
        state: dict[str, np.ndarray],
        over_time: Collection[str],
    ) -> None:
        """Fill the records and the state."""
        program = self.compiled.program
        moves = _moves(program, self.kernel.lanes)
        row = {"steps": steps, "every": every, "moves": len(moves) // 3, "ports": 0, "stop": 0}
        ports = self._input_rows(over_time) + self._output_rows(records, state)
        table = words(*ports)
        row["ports"] = ctypes.addressof(table)
        job = words(*(row[name] for name in JOB), *moves)
        self._march(job, steps, (self, table, records, state))

    def _input_rows(self, over_time: Collection[str]) -> list[int]:
        rows: list[int] = []
        for array, port in zip(self.inputs, self.compiled.program.inputs, strict=True):
            if port.size:
                late = array.strides[1] if port.name in over_time else 0
                rows += _row(array.ctypes.data, array.strides[0], array.strides[-1], late)
        self._nothing = np.zeros(1, self.compiled.dtype)
        return rows or _row(self._nothing.ctypes.data, 0, self._nothing.itemsize, 0)

    def _output_rows(self, records: dict[str, np.ndarray], state: dict[str, np.ndarray]) -> list[int]:
        rows: list[int] = []
        for port in self.compiled.program.outputs:
            if not port.size:
                continue
            kept, last = records.get(port.name), state.get(port.name)
            address = kept.ctypes.data if kept is not None and kept.size else 0
            strides = kept.strides if kept is not None else (0, 0, 0)
            after = last.ctypes.data if last is not None else 0
            rows += _row(address, strides[0], strides[2], strides[1], after)
        return rows

    def _march(self, job: ctypes.Array[ctypes.c_int64], steps: int, written: object) -> None:
        """Do the job; `written` is the memory that it names, which lives as long as a thread works on it."""
        march = ctypes.CFUNCTYPE(
            ctypes.c_bool, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
        )(self.kernel.march)
        plan = ctypes.addressof(self.kernel.plan)
        threads, lanes = self.compiled.threads, self.kernel.lanes.width
        piece = -(-self.worlds // (threads * PIECES)) if threads > 1 else self.worlds
        piece = -(-piece // lanes) * lanes
        done: list[bool] = []
        total = self.compiled.weight * steps * (-(-self.worlds // lanes))

        def work(begin: int, end: int) -> None:
            done.append(march(ctypes.addressof(job), begin, end - begin, plan))
            _ = written  # nothing of it goes while this thread writes

        def stop() -> None:
            job[JOB.index("stop")] = 1

        pieces = list(pairwise([*range(0, self.worlds, piece), self.worlds]))
        share(work, pieces, threads, is_short=total <= LARGEST_PIECE, stop=stop)
        if not all(done):
            raise MemoryError("there is no memory for the blocks of lanes")


def _row(data: int, world: int, element: int, time: int, last: int = 0) -> list[int]:
    row = {
        "data": data,
        "world_stride": world,
        "element_stride": element,
        "time_stride": time,
        "last": last,
    }
    return [row[name] for name in PORT]


def _moves(program: Program, lanes: Lanes) -> list[int]:
    """From where in the outputs to where in the inputs the state goes, and how much of it."""
    inputs, outputs = doors(program)
    places = dict(zip((port.name for port in inputs), input_starts(inputs, lanes), strict=False))
    moves, start = [], 0
    for port in outputs:
        if port.name in places:
            moves += [start, places[port.name], port.size]
        start += port.size
    return moves

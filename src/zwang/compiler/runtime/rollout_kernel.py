"""The rollout kernel: many steps in one call, where outputs named as inputs are fed back to these inputs."""

from __future__ import annotations

import operator
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.compiler.ir.program import Port, Program
from zwang.compiler.runtime.bound_rollout import Rollout
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.errors import ArgumentError, ShapeError, UnknownNameError

MAXIMUM_STEPS = 10**12


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

"""Rollouts as universal functions, which are kept for each number of steps.

A short rollout of few worlds takes less time than the validation of its arguments. The first call with a
number of steps is that of `run_steps`. Later ones call a universal function of NumPy, whose inner loop is the
rollout kernel: it converts, broadcasts and allocates arrays in a fraction of a microsecond.
"""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.compiler.backends.llvm.entry_points import DISPATCH
from zwang.compiler.backends.llvm.module import port_starts
from zwang.compiler.runtime.bound_rollout import INSTRUCTION_SECONDS, described_rollout, state_copies
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.direct_call import DirectCall, direct_call
from zwang.compiler.runtime.kernel import int64_array
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.compiler.runtime.teams import LONGEST_PIECE, WORTH_WAKING
from zwang.compiler.runtime.ufunc import MAXIMUM_PORTS, UniversalFunction

KEPT = 32  # numbers of steps of a function


class KeptRollouts:
    """The rollouts of a compiled function, as `run_steps` computes them, bit for bit.

    record: the names of the recorded outputs.
    """

    def __init__(self, compiled: CompiledFunction, record: Sequence[str]):
        self.compiled, self.record = compiled, tuple(record)
        ports = [x for x in compiled.program.inputs if x.size]
        ports += [x for x in compiled.program.outputs if x.size and x.name in self.record]
        self._has_ufunc = len(ports) <= MAXIMUM_PORTS
        self._kept: dict[tuple[Any, ...], _RolloutFunction] = {}

    def __call__(
        self, arrays: Sequence[np.ndarray], steps: int, every: int, over_time: tuple[str, ...] = ()
    ) -> Sequence[np.ndarray]:
        """The records (..., steps // every, size), in the order of `record`.

        Arguments are those of `run_steps`, whose errors are raised.
        """
        found = self.direct(arrays, steps, every, over_time)
        return self.checked(arrays, steps, every, over_time) if found is None else found

    def direct(
        self, arrays: Sequence[Any], steps: int, every: int, over_time: tuple[str, ...] = ()
    ) -> Sequence[np.ndarray] | None:
        """The records, or None if that needs validation, conversion, compilation or threads."""
        try:
            found = self._kept[type(steps), steps, type(every), every, over_time]
        except (KeyError, TypeError):  # lists have no hash
            return None
        return found.call(arrays)

    def checked(
        self, arrays: Sequence[np.ndarray], steps: int, every: int, over_time: tuple[str, ...] = ()
    ) -> list[np.ndarray]:
        """The records by `run_steps`; what it accepts is called directly the next time."""
        key = (type(steps), steps, type(every), every, over_time)
        done = run_steps(
            self.compiled, *arrays, steps=steps, every=every, over_time=over_time, record=self.record
        )
        if key in self._kept:
            self._kept[key].refresh()
        elif steps >= every and any(x.size for x in done.records.values()) and self._has_ufunc:
            if len(self._kept) >= KEPT:
                self._kept.clear()
            self._kept[key] = _RolloutFunction(self.compiled, self.record, int(steps), int(every), over_time)
        return [done.records[name] for name in self.record]


class _RolloutFunction:
    """The records of a rollout of this number of steps as a function of its inputs, a universal function."""

    def __init__(
        self,
        compiled: CompiledFunction,
        record: Sequence[str],
        steps: int,
        every: int,
        over_time: tuple[str, ...],
    ):
        self._compiled = compiled
        inputs, outputs = compiled.program.inputs, compiled.program.outputs
        starts = dict(zip((port.name for port in outputs), port_starts(outputs), strict=False))
        ports = {port.name: port for port in outputs}
        recorded = [ports[name] for name in record]
        read = [(p, start) for p, start in zip(inputs, port_starts(inputs), strict=False) if p.size]
        written = [(port, starts[port.name]) for port in recorded if port.size]
        tables = {"copy": state_copies(compiled.program), "read": [], "record": [], "final": []}
        row, self._memory = described_rollout(steps, every, tables, (len(read), len(written)))
        operands = [(port.name in over_time, port.size, start) for port, start in read]
        operands += [(True, port.size, start) for port, start in written]
        dispatch = int64_array(*[0] * len(DISPATCH), *row, *(int(x) for words in operands for x in words))
        self._dispatch, self._steps = dispatch, steps
        shapes = [(steps, port.size) if port.name in over_time else (port.size,) for port, _ in read]
        records = [(steps // every, port.size) for port, _ in written]
        function = UniversalFunction(
            compiled.rollout_loop, ctypes.addressof(dispatch), shapes, records, compiled.dtype
        )
        empty = np.zeros((steps // every, 0), compiled.dtype)
        self.call: DirectCall = direct_call(function, dispatch, inputs, recorded, empty)
        self.refresh()

    def refresh(self) -> None:
        """Enter the kernels that are ready, and the largest number of worlds by the last measured time."""
        self._dispatch[DISPATCH.index("max_worlds")] = _most_worlds(self._compiled, self._steps)
        for width, kernel in self._compiled.kernels.items():
            address = ctypes.addressof(kernel.descriptor)
            if width == 1:
                self._dispatch[DISPATCH.index("one_world")] = address
            if width == self._compiled.lanes:
                self._dispatch[DISPATCH.index("many_worlds")] = address


def _most_worlds(compiled: CompiledFunction, steps: int) -> int:
    """The number of worlds up to which a rollout is neither interrupted nor divided among threads."""
    seconds = steps * (compiled.block_seconds or compiled.cost * INSTRUCTION_SECONDS)  # of a block
    if seconds > LONGEST_PIECE:
        return 0
    limit = LONGEST_PIECE if compiled.threads == 1 else WORTH_WAKING
    return max(1, int(limit / seconds)) * compiled.lanes

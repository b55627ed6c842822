"""Rollouts that are repeated with arrays of the same shapes: what was validated and allocated is kept.

A short rollout of few worlds takes less time than the validation of its arguments and the allocation of its
buffers. The first call with arrays of given shapes is that of `run_steps`. Later ones copy their arguments
into buffers whose rollout is described already, and return copies of its records.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.rollout_kernel import Rollout, run_steps
from zwang.scalar.real import REAL

KEPT = 32  # combinations of shapes and numbers of steps of a function
LARGEST = 2**18  # bytes of the buffers of a rollout that is kept


class KeptRollouts:
    """The rollouts of a compiled function, as `run_steps` computes them, bit for bit.

    record: the names of the recorded outputs. Threads that call at the same time have buffers of their own.
    """

    def __init__(self, compiled: CompiledFunction, record: Sequence[str]):
        self.compiled, self.record = compiled, tuple(record)
        self._free: dict[tuple[Any, ...], list[_Buffers]] = {}

    def __call__(
        self, arrays: Sequence[np.ndarray], steps: int, every: int, over_time: tuple[str, ...] = ()
    ) -> list[np.ndarray]:
        """The records (..., steps // every, size), in the order of `record`.

        Arguments are those of `run_steps`, whose errors are raised.
        """
        key = (type(steps), steps, type(every), every, over_time, *[(x.shape, x.dtype) for x in arrays])
        try:
            free = self._free.get(key)
        except TypeError:  # steps or every is no number; `run_steps` raises the error
            free = None
        if free is None:
            return self._first_call(key, arrays, steps, every, over_time)
        try:
            buffers = free.pop()
        except IndexError:  # the first repetition, or other threads are at work
            buffers = _Buffers(self.compiled, arrays, steps, every, over_time, self.record)
        records = buffers.run(arrays)
        free.append(buffers)
        return records

    def _first_call(
        self,
        key: tuple[Any, ...],
        arrays: Sequence[np.ndarray],
        steps: int,
        every: int,
        over_time: tuple[str, ...],
    ) -> list[np.ndarray]:
        """The records by `run_steps`; what it accepts may be repeated, if it is small."""
        done = run_steps(
            self.compiled, *arrays, steps=steps, every=every, over_time=over_time, record=self.record
        )
        records = [done.records[name] for name in self.record]
        worlds = math.prod(records[0].shape[:-2]) if steps >= every else 0
        size = sum(x.nbytes for x in records) + worlds * sum(x.nbytes for x in arrays)
        if worlds and size <= LARGEST and all(x.dtype.kind in REAL for x in arrays):
            if len(self._free) >= KEPT:
                self._free.clear()
            self._free[key] = []
        return records


class _Buffers:
    """The memory of a rollout with arguments of these shapes."""

    def __init__(
        self,
        compiled: CompiledFunction,
        arrays: Sequence[np.ndarray],
        steps: int,
        every: int,
        over_time: tuple[str, ...],
        record: Sequence[str],
    ):
        ports = compiled.program.inputs
        axes = [2 if port.name in over_time else 1 for port in ports]  # those of one world
        batch = np.broadcast_shapes(*(x.shape[: x.ndim - n] for x, n in zip(arrays, axes, strict=True)))
        shapes = [(*batch, *x.shape[x.ndim - n :]) for x, n in zip(arrays, axes, strict=True)]
        own = [np.zeros(shape, compiled.dtype) for shape in shapes]
        worlds = int(np.prod(batch, dtype=np.int64))
        flat = [x.reshape(worlds, *x.shape[len(batch) :]) for x in own]
        sizes = {port.name: port.size for port in compiled.program.outputs}
        records = {name: np.zeros((worlds, steps // every, sizes[name]), compiled.dtype) for name in record}
        self._rollout = Rollout(compiled, flat, worlds, {}, records, over_time)
        self._steps, self._every = int(steps), int(every)
        self._inputs = [(k, x) for k, x in enumerate(own) if x.size]
        self._records = [x.reshape(*batch, *x.shape[1:]) for x in records.values()]

    def run(self, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
        """Copies of the records of a rollout with these arguments."""
        for k, x in self._inputs:
            x[...] = arrays[k]
        self._rollout.run(self._steps, self._every)
        return [x.copy() for x in self._records]

"""The step of many worlds in one call, which reads their control where it is, or after a copy."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.compiler.runtime.bound_rollout import Rollout
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.errors import SimulationError

WORTH_READING = 128  # worlds, from which on a shared call reads a control where it is
CONTROL = "u"


class WorldStepping:
    """Steps of all worlds, which begin at the state and the control in `inputs` and end in `state`.

    inputs, state, before: arrays (worlds, size) by port, as for `Rollout`; then: the rollout that follows.

    When threads share a call, each of them copies the control of its worlds, which are in the cache of its
    core. On one thread it is faster to copy all of them before.
    """

    def __init__(
        self,
        step: CompiledFunction,
        inputs: Mapping[str, np.ndarray],
        state: Mapping[str, np.ndarray],
        before: Mapping[str, np.ndarray],
        then: Rollout | None,
    ):
        self._control = inputs[CONTROL]
        worlds = len(self._control)
        self._running = False
        arrays = [*inputs.values()]
        self._copied = Rollout(step, arrays, worlds, state, before=before, then=then, is_atomic=True)
        self._last = self._copied
        self._read: Rollout | None = None
        if step.threads > 1 and worlds >= WORTH_READING and self._control.size:
            copied = {**before, CONTROL: self._control}
            self._read = Rollout(
                step, arrays, worlds, state, before=copied, then=then, given=CONTROL, is_atomic=True
            )

    def readable(self, control: Any) -> np.ndarray | None:
        """The control, if it is an array that the next call may read where it is."""
        own = self._control
        if self._read is None or self._last.threads == 1 or type(control) is not np.ndarray:
            return None
        has_form = control.shape == own.shape and control.dtype == own.dtype
        return control if has_form and control.flags.c_contiguous and control.flags.behaved else None

    def run(self, steps: int, control: np.ndarray | None = None) -> None:
        """Compute steps at the worlds' control, or at this one, which becomes theirs. A run that is
        interrupted leaves the state and the observation of all worlds as they were, or completes its steps.

        Raises MemoryError, and SimulationError during a call of another thread.
        """
        if self._running:
            self.check_idle()
        self._running = True  # seen by other threads while compiled code runs; a lock would outlive a fork
        try:
            if control is None or self._read is None:
                self._last = self._copied
                self._copied.run(steps)
            else:
                self._last = self._read
                self._run_with(self._read, control, steps)
        finally:
            self._running = False

    def check_idle(self) -> None:
        """Raises SimulationError during a call of another thread."""
        if self._running:
            raise SimulationError(
                "another thread steps these worlds, which one thread at a time may change: let the threads "
                "take turns by a threading.Lock, or give each its own worlds by worlds.with_count(...) or "
                "copy.copy(worlds)"
            )

    def _run_with(self, read: Rollout, control: np.ndarray, steps: int) -> None:
        try:
            read.run_with(control, steps)
        except BaseException:
            self._control[:] = control
            raise

"""The compiled path: the step, traced and repeated in machine code, and what is recorded beside the state."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from zwang.errors import TraceError
from zwang.fast import compile_function
from zwang.mechanism.mechanism import Mechanism
from zwang.simulate.adaptive import Flow, flow
from zwang.simulate.control import Called, Held
from zwang.simulate.observe import observation
from zwang.simulate.rollout import Arrays, Motion, StepProgram
from zwang.simulate.settings import Settings
from zwang.simulate.start import Start

BLOCK = 200_000  # samples whose observation is worked out at a time


class CompiledRoller:
    """Repeats a step program in machine code, all worlds together."""

    def __init__(self, program: StepProgram, begin: Start):
        mechanism = program.mechanism
        self._params = [np.ascontiguousarray(x[:, None]) for x in begin.params.values()]
        sizes = {"clock": 1, **_sizes(mechanism, begin)}

        def function(clock: Any, q: Any, v: Any, z: Any, u: Any, *params: Any) -> Mapping[str, Any]:
            return program(clock, q, v, z, u, **dict(zip(begin.params, params, strict=True)))

        self._step = compile_function(function, sizes)

    def roll(self, state: Arrays, u: np.ndarray, samples: int, every: int) -> tuple[Arrays, Arrays]:
        """The state after samples * every steps, and the states after each `every`; see `Roller`."""
        records = {name: np.empty((samples, *x.shape)) for name, x in state.items()}
        now = tuple(state.values())
        for k in range(samples * every):
            now = self._step(*now, u[k], *self._params)
            if (k + 1) % every == 0:
                for record, x in zip(records.values(), now, strict=True):
                    record[k // every] = x
        return {name: x[-1] for name, x in records.items()}, records


def traced_control(program: StepProgram, control: Called, begin: Start) -> CompiledRoller | None:
    """A roller with the control function traced into its steps, or None where it is not written for that.

    A function that gives other numbers than its trace (it remembers, or throws dice) is not taken.
    """
    whole = replace(program, controller=control)
    sizes = {"time": 1, "q": begin.q.shape[1], "v": begin.v.shape[1]}
    try:
        alone = compile_function(lambda t, q, v: control(t[0], q, v), sizes)
        roller = CompiledRoller(whole, begin)
    except (TraceError, TypeError, AttributeError, ValueError, NotImplementedError):
        return None
    h = program.settings.step
    for t, w in ((0.0, 0), (h, begin.worlds - 1), (1.7 * h, 0)):
        q, v = begin.q[w], begin.v[w]
        expected = np.asarray(control(t, q, v), dtype=float)
        if not np.allclose(alone(np.array([t]), q, v), expected, rtol=1e-9, atol=1e-12, equal_nan=True):
            return None
    return roller


def compiled_flows(mechanism: Mechanism, begin: Start, settings: Settings) -> Callable[[int], Flow]:
    """For each world its flow, (q_dot, v_dot, z_dot) as one array, in machine code."""

    def function(q: Any, v: Any, z: Any, u: Any, *params: Any) -> Any:
        return flow(_with(mechanism, begin, params), settings)(q, v, z, u)

    compiled = compile_function(function, _sizes(mechanism, begin))

    def of_world(w: int) -> Flow:
        params = [x[w : w + 1] for x in begin.params.values()]
        return lambda q, v, z, u: compiled(q, v, z, u, *params)

    return of_world


def observed_compiled(
    mechanism: Mechanism, begin: Start, frames: tuple[str, ...], motion: Motion
) -> dict[str, np.ndarray]:
    """`observation` of every sample of every world, (samples, worlds, n)."""

    def function(q: Any, v: Any, z: Any, u: Any, *params: Any) -> Mapping[str, Any]:
        return observation(_with(mechanism, begin, params), frames, q, v, z, u)

    compiled = compile_function(function, _sizes(mechanism, begin))
    params = [x[None, :, None] for x in begin.params.values()]
    rows = max(1, BLOCK // begin.worlds)
    blocks = [
        compiled(*(x[at : at + rows] for x in (motion.q, motion.v, motion.z, motion.u)), *params)
        for at in range(0, len(motion.q), rows)
    ]
    keys = ("tau", "energies", "positions")
    return {key: np.concatenate([block[k] for block in blocks]) for k, key in enumerate(keys)}


def control_along(control: Called, begin: Start, motion: Motion, h: float) -> np.ndarray:
    """The controls (samples, worlds, nu) that a traced function gave at the recorded states."""
    sizes = {"time": 1, "q": begin.q.shape[1], "v": begin.v.shape[1]}
    return compile_function(lambda t, q, v: control(t[0], q, v), sizes)(motion.clock * h, motion.q, motion.v)


def _sizes(mechanism: Mechanism, begin: Start) -> dict[str, int]:
    controls = len(mechanism.inputs) or mechanism.nv
    state = {"q": mechanism.nq, "v": mechanism.nv, "z": begin.z.shape[1], "u": controls}
    return state | {f"parameter {name}": 1 for name in begin.params}


def _with(mechanism: Mechanism, begin: Start, params: Sequence[Any]) -> Mechanism:
    """The mechanism with traced values for its symbols."""
    values = {name: x[0] for name, x in zip(begin.params, params, strict=True)}
    return mechanism.subs(values) if values else mechanism


def held_nothing(control: Called) -> Held:
    """Stands for the control where the compiled steps work it out themselves."""
    return Held(np.zeros((1, 1, len(control.names))))

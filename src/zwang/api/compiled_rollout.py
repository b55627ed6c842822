"""The compiled path: the step, traced and repeated in machine code, and what is recorded beside the state.

Functions that were compiled for a mechanism are kept for the next run; those with a user's control function are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np

from zwang.api.compiled import WARM_START, CompiledFunction, compile_function, empty_warm_start, run_steps
from zwang.api.control_input import ControlFunction, PrescribedControl, control_names
from zwang.api.control_trial import ControlTrial
from zwang.api.error_controlled_rollout import ContinuousDynamics, continuous_dynamics
from zwang.api.initial_conditions import InitialState
from zwang.api.settings_validation import RecordedQuantities, SimulationSettings
from zwang.errors import TraceError
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.constraint_forces import point_force_labels
from zwang.simulation.rollout import Arrays, StepProgram, Trajectory
from zwang.simulation.state_quantities import KEYS, state_quantities
from zwang.simulation.step import activations

BLOCK = 10_000_000  # numbers of an observation that are worked out at a time
KEPT = 16  # functions of each kind

Names = tuple[str, ...]

STATE = ("clock", "failure", "q", "v", "z")


class CompiledRoller:
    """Repeats a step program in machine code, all worlds together."""

    def __init__(self, program: StepProgram, begin: InitialState):
        self._params = [np.ascontiguousarray(x[:, None]) for x in begin.params.values()]
        make = compiled_step if program.controller is None else compiled_step.__wrapped__
        self._step = make(program, tuple(begin.params))

    def roll(self, state: Arrays, u: np.ndarray, samples: int, every: int) -> tuple[Arrays, Arrays]:
        """See `Roller`."""
        remembered = [state[WARM_START]] if WARM_START in state else empty_warm_start(self._step.program)
        done = run_steps(
            self._step,
            *(state[name] for name in STATE),
            u,
            *self._params,
            *remembered,
            steps=samples * every,
            every=every,
            over_time=("u",),
            record=STATE,
        )
        return done.state, done.records


@lru_cache(KEPT)
def compiled_step(program: StepProgram, params: Names) -> CompiledFunction:
    """(clock, cause, q, v, z) after one step, and its memory, as a function of these, u, the parameters, and the memory."""

    def function(
        clock: Any, failure: Any, q: Any, v: Any, z: Any, u: Any, *values: Any, carried: Any
    ) -> Mapping[str, Any]:
        return program(clock, failure, q, v, z, u, dict(zip(params, values, strict=True)), carried)

    sizes = {"clock": 1, "failure": 1, **_sizes(program.mechanism, params)}
    return compile_function(function, sizes, carried=WARM_START)


@lru_cache(KEPT)
def compiled_continuous_dynamics(mechanism: Mechanism, how: tuple[Any, ...], params: Names) -> tuple[CompiledFunction, CompiledFunction]:
    """A flow's rates as one array, of t (1,), q, v, z, u, and the parameters; and its settled state, of t, q, v and these.

    how: the step, drift and embedding, as `flow` takes them.
    """

    def found(t: Any, q: Any, v: Any, z: Any, u: Any, *values: Any) -> Any:
        return continuous_dynamics(_with(mechanism, params, values), *how).rates(t[0], q, v, z, u)

    def settled(t: Any, q: Any, v: Any, *values: Any) -> Any:
        return continuous_dynamics(_with(mechanism, params, values), *how).settled(t[0], q, v)

    sizes = {"time": 1, **_sizes(mechanism, params)}
    short = {name: size for name, size in sizes.items() if name not in ("z", "u")}
    return compile_function(found, sizes), compile_function(settled, short)


@lru_cache(KEPT)
def compiled_derived_quantities(mechanism: Mechanism, wanted: RecordedQuantities, params: Names) -> CompiledFunction:
    """`observation` as a function of t (1,), q, v, z, u, and the parameters."""

    def function(t: Any, q: Any, v: Any, z: Any, u: Any, *values: Any) -> Mapping[str, Any]:
        return state_quantities(_with(mechanism, params, values), wanted, t[0], q, v, z, u)

    return compile_function(function, {"time": 1, **_sizes(mechanism, params)})


def compiled_control(control: ControlFunction, mechanism: Mechanism) -> CompiledFunction:
    """A user's control function alone, of the time (1,), q and v."""
    sizes = {"time": 1, "q": mechanism.nq, "v": mechanism.nv}
    return compile_function(lambda t, q, v: control(t[0], q, v), sizes)


def traced_control(
    program: StepProgram, control: ControlFunction, begin: InitialState
) -> tuple[CompiledRoller, Callable[..., Any]] | None:
    """A roller with the control function in its steps, and that function compiled; or None where it cannot be traced.

    A function that gives other numbers than its trace, or that remembers, is not taken. All is tried on copies of it.
    """
    try:
        traced = replace(control, function=ControlTrial(control.function).function)
        alone = compiled_control(traced, program.mechanism)
    except (TraceError, TypeError, AttributeError, ValueError, NotImplementedError):
        return None
    trial = ControlTrial(control.function)
    tried = replace(control, function=trial.function)
    for t, w in ((0.0, 0), (program.h, begin.worlds - 1), (1.7 * program.h, 0)):
        q, v = begin.q[w], begin.v[w]
        expected = np.asarray(tried(t, q, v), dtype=float)
        if not np.allclose(alone(np.array([t]), q, v), expected, rtol=1e-9, atol=1e-12, equal_nan=True):
            return None
    if trial.remembers():
        return None
    return CompiledRoller(replace(program, controller=control), begin), alone


def continuous_dynamics_of_worlds(mechanism: Mechanism, begin: InitialState, plan: SimulationSettings) -> Callable[[int], ContinuousDynamics]:
    """For each world its flow in machine code."""
    found, settled = compiled_continuous_dynamics(mechanism, (plan.step, plan.stabilization, plan.coordinate_reduction), tuple(begin.params))

    def of_world(w: int) -> ContinuousDynamics:
        params = [x[w : w + 1] for x in begin.params.values()]
        return ContinuousDynamics(
            lambda t, q, v, z, u: found(np.array([t]), q, v, z, u, *params),
            lambda t, q, v: settled(np.array([t]), q, v, *params),
        )

    return of_world


def derived_quantities_compiled(
    mechanism: Mechanism, begin: InitialState, wanted: RecordedQuantities, motion: Trajectory
) -> dict[str, np.ndarray]:
    """`observation` of every sample of every world, (worlds, samples, n)."""
    compiled = compiled_derived_quantities(mechanism, wanted, tuple(begin.params))
    params = [x[:, None, None] for x in begin.params.values()]
    times = motion.clock * wanted.h
    numbers = 50 + (6 * len(point_force_labels(mechanism)) if wanted.forces else 0)
    rows = max(1, BLOCK // (numbers * motion.q.shape[1]))
    blocks = [
        compiled(*(x[at : at + rows] for x in (times, motion.q, motion.v, motion.z, motion.u, *params)))
        for at in range(0, begin.worlds, rows)
    ]
    return {key: np.concatenate([block[k] for block in blocks]) for k, key in enumerate(KEYS)}


def held_nothing(control: ControlFunction) -> PrescribedControl:
    """Stands for the control where the compiled steps work it out themselves."""
    return PrescribedControl(np.zeros((1, 1, len(control.names))))


def _sizes(mechanism: Mechanism, params: Names) -> dict[str, int]:
    state = {
        "q": mechanism.nq,
        "v": mechanism.nv,
        "z": len(activations(mechanism)),
        "u": len(control_names(mechanism)),
    }
    return state | {f"parameter {name}": 1 for name in params}


def _with(mechanism: Mechanism, params: Names, values: Sequence[Any]) -> Mechanism:
    """The mechanism with traced values for its symbols."""
    return (
        mechanism.subs({name: x[0] for name, x in zip(params, values, strict=True)}) if params else mechanism
    )

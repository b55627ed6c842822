"""The simulation of many worlds in machine code: the compiled step, its repetition, and derived quantities.

Functions compiled for a mechanism are kept for the next simulation; those with a user's control function
are not.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from zwang.api.arguments.control_trial import ControlTrial
from zwang.api.compilation.programs import WARM_START, compile_function, empty_warm_start
from zwang.api.runs.error_controlled_rollout import ContinuousDynamics, continuous_dynamics
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.constraint.hard import hard_constraints
from zwang.errors import TraceError
from zwang.integrator.adaptive_step import IMPLICIT
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activations
from zwang.simulation.clock import clock_size
from zwang.simulation.constraint_options import is_constrained
from zwang.simulation.controls import ControlFunction, PrescribedControl, control_names
from zwang.simulation.events import NamedEvent, event_values_in_python
from zwang.simulation.initial_state import InitialState
from zwang.simulation.quantities.constraint_forces import point_force_labels
from zwang.simulation.quantities.state_quantities import KEYS, state_quantities
from zwang.simulation.rollout import IMPACTS, Arrays, Trajectory
from zwang.simulation.settings import RecordedQuantities, SimulationSettings
from zwang.simulation.solver_status import initial_monitor
from zwang.simulation.step_program import StepProgram

BLOCK = 10_000_000  # numbers of derived quantities that are computed at a time
KEPT = 16  # compiled functions of each kind
LARGEST_EXACT = 30  # velocities; the Jacobian of 20 joints compiles for 5 s, with the cube of their number

Names = tuple[str, ...]
EventValues = Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]

STATE = ("clock", "status", "q", "v", "z")


class CompiledExecutor:
    """Repeats a step program in machine code, for all worlds together."""

    def __init__(self, program: StepProgram, initial: InitialState):
        self._params = [np.ascontiguousarray(x[:, None]) for x in initial.params.values()]
        compiled = compiled_step if program.controller is None else compiled_step.__wrapped__
        self._step = compiled(program, tuple(initial.params))
        self._monitors = is_constrained(program.mechanism)
        monitor = ("solver",) if self._monitors else ()
        self._record = (*STATE, *monitor, *((IMPACTS,) if program.logs_impacts else ()))

    def advance(self, state: Arrays, u: np.ndarray, samples: int, every: int) -> tuple[Arrays, Arrays]:
        """See `RolloutExecutor`."""
        row_status = [state[WARM_START]] if WARM_START in state else empty_warm_start(self._step.program)
        monitor = [np.tile(initial_monitor(every), (len(state["q"]), 1))] if self._monitors else []
        done = run_steps(
            self._step,
            *(state[name] for name in STATE),
            *monitor,
            u,
            *self._params,
            *row_status,
            steps=samples * every,
            every=every,
            over_time=("u",),
            record=self._record,
        )
        return done.state, done.records


@lru_cache(KEPT)
def compiled_step(
    program: StepProgram,
    params: Names,
    with_stage: bool = False,
    dtype: str = "float64",
    threads: int | None = None,
) -> CompiledFunction:
    """The compiled step: (clock, status, q, v, z) and the row statuses, of these, u, and the parameters;
    after z comes the monitor of the solver's status, if something is solved.

    with_stage: as for `step_function`. dtype, threads: as for `compile_function`.
    """
    function, sizes = step_function(program, params, with_stage, clock_size(dtype))
    return compile_function(function, sizes, carried=WARM_START, dtype=dtype, threads=threads)


def step_function(
    program: StepProgram, params: Names, with_stage: bool = False, clock: int = 1
) -> tuple[Callable[..., Any], dict[str, int]]:
    """The step as a function of arrays (clock, status, q, v, z, monitor, stage, u, parameters), to be traced,
    and their sizes; the monitor of the solver's status is there if something is solved.

    with_stage: whether the `Stage` of the last state derivative is a part of the state. clock: the numbers of
    the clock, see `clock_size`.
    """
    sizes = {"clock": clock, "status": 1, **_sizes(program.mechanism, params)}
    state = {name: sizes.pop(name) for name in STATE}
    monitor = {"solver": len(initial_monitor(1))} if is_constrained(program.mechanism) else {}
    accelerations = state["v"] if monitor else 0
    numbers = 1 + state["q"] + state["v"] + state["z"] + sizes["u"] + accelerations
    stage = {"stage": numbers} if with_stage else {}
    sizes = {**state, **monitor, **stage, **sizes}

    def function(*arrays: Any, **carried: Any) -> Mapping[str, Any]:
        given = dict(zip(sizes, arrays, strict=True))
        state = {name: given.pop(name) for name in (*STATE, "solver", "stage", "u") if name in given}
        values = dict(zip(params, given.values(), strict=True))
        return program(**state, params=values, carried=next(iter(carried.values()), None))

    return function, sizes


@lru_cache(KEPT)
def compiled_continuous_dynamics(
    mechanism: Mechanism, settings: tuple[Any, ...], params: Names
) -> tuple[CompiledFunction, CompiledFunction, CompiledFunction | None]:
    """The state derivative, of t (1,), q, v, z, u and the parameters; the projected state, of t, q, v and
    these; with m laws of Coulomb friction the derivative also of their modes (m,), and the third function
    gives what they do.

    settings: step size, stabilisation and coordinate reduction, as `continuous_dynamics` takes them.
    """

    count = len(coulomb_frictions(mechanism))
    signs = {"signs": count} if count else {}

    def dynamics(values: Any) -> ContinuousDynamics:
        return continuous_dynamics(_with(mechanism, params, values[len(signs) :]), *settings)

    def derivative(t: Any, q: Any, v: Any, z: Any, u: Any, *values: Any) -> Any:
        return dynamics(values).derivative(t[0], q, v, z, u, *values[: len(signs)])

    def friction(t: Any, q: Any, v: Any, z: Any, u: Any, *values: Any) -> Any:
        return dynamics(values).friction(t[0], q, v, z, u, values[0])

    def projected(t: Any, q: Any, v: Any, *values: Any) -> Any:
        return dynamics(values).projected(t[0], q, v, *values[: len(signs)])

    sizes = {"time": 1, **_sizes(mechanism, ()), **signs, **{f"parameter {name}": 1 for name in params}}
    short = {name: size for name, size in sizes.items() if name not in ("z", "u")}
    compiled_friction = compile_function(friction, sizes) if count else None
    return compile_function(derivative, sizes), compile_function(projected, short), compiled_friction


@lru_cache(KEPT)
def compiled_jacobian(
    mechanism: Mechanism, settings: tuple[Any, ...], params: Names
) -> CompiledFunction | None:
    """The derivatives of (q_dot, v_dot, z_dot) by (q, v, z, u), flattened, as a compiled function; None if
    the derivative contains loops, or is that of hard constraints, of which it is long code, or of more than
    LARGEST_EXACT velocities.

    Arguments and settings are those of `compiled_continuous_dynamics`.
    """

    def function(t: Any, q: Any, v: Any, z: Any, u: Any, *values: Any) -> Any:
        dynamics = continuous_dynamics(_with(mechanism, params, values), *settings)
        return np.ravel(jacobian(dynamics.derivative(t[0], q, v, z, u)[:-1], [*q, *v, *z, *u]))

    if coulomb_frictions(mechanism) or hard_constraints(mechanism) or mechanism.nv > LARGEST_EXACT:
        return None
    try:
        return compile_function(function, {"time": 1, **_sizes(mechanism, params)})
    except TraceError:
        return None


@lru_cache(KEPT)
def compiled_derived_quantities(
    mechanism: Mechanism, wanted: RecordedQuantities, params: Names
) -> CompiledFunction:
    """The `state_quantities` as a compiled function of t (1,), q, v, z, u, and the parameters."""

    def function(t: Any, q: Any, v: Any, z: Any, u: Any, *values: Any) -> Mapping[str, Any]:
        m = _with(mechanism, params, values)
        return state_quantities(m, wanted, t[0], q, v, z, u)

    return compile_function(function, {"time": 1, **_sizes(mechanism, params)})


def compiled_control(control: ControlFunction, mechanism: Mechanism) -> CompiledFunction:
    """A user's control function in machine code, of the time (1,), q and v."""
    sizes = {"time": 1, "q": mechanism.nq, "v": mechanism.nv}
    return compile_function(lambda t, q, v: control(t[0], q, v), sizes)


def traced_control(
    program: StepProgram, control: ControlFunction, initial: InitialState
) -> tuple[CompiledExecutor, Callable[..., Any]] | None:
    """An executor with the control function in its steps, and that function compiled; None if it cannot be
    traced.

    A function is rejected if its trace returns different numbers, or if it has an internal state, or one that
    cannot be restored after trial calls.
    """
    trial = ControlTrial(control.function)
    if not trial.is_possible:
        return None
    tried = replace(control, function=trial.function)
    try:
        compiled = compiled_control(tried, program.mechanism)
    except (TraceError, TypeError, AttributeError, ValueError, NotImplementedError):
        return None
    for t, w in ((0.0, 0), (program.h, initial.worlds - 1), (1.7 * program.h, 0)):
        q, v = initial.q[w], initial.v[w]
        expected = np.asarray(tried(t, q, v), dtype=float)
        if not np.allclose(compiled(np.array([t]), q, v), expected, rtol=1e-9, atol=1e-12, equal_nan=True):
            return None
    if trial.has_state():
        return None
    return CompiledExecutor(replace(program, controller=control), initial), compiled


def event_values_compiled(
    mechanism: Mechanism, events: Sequence[NamedEvent], initial: InitialState
) -> EventValues:
    """The function of times (worlds, n), q and v that returns the values (worlds, n, events) of events, in
    machine code as far as they can be traced.
    """
    return partial(
        _event_values, initial, [_one_event_compiled(mechanism, event, initial) for event in events]
    )


def _event_values(
    initial: InitialState, functions: Sequence[EventValues], times: np.ndarray, q: np.ndarray, v: np.ndarray
) -> np.ndarray:
    return np.concatenate([function(times, q, v) for function in functions], axis=-1)


def _one_event_compiled(mechanism: Mechanism, event: NamedEvent, initial: InitialState) -> EventValues:
    """As `event_values_compiled`, for one event; called in Python if its trace returns other values."""
    called = partial(event_values_in_python, [event], initial)
    names = tuple(initial.params)
    inputs = {"time": 1, "q": mechanism.nq, "v": mechanism.nv, **{f"parameter {name}": 1 for name in names}}

    def function(t: Any, q: Any, v: Any, *values: Any) -> Any:
        params = {name: x[0] for name, x in zip(names, values, strict=True)}
        return np.array([event._replace(function=trial.function)(t[0], q, v, params)])

    trial = ControlTrial(event.function)
    if not trial.is_possible:
        return called
    params = [x[:, None, None] for x in initial.params.values()]

    def evaluated(times: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        return np.asarray(compiled(times[..., None], q, v, *params))

    try:
        compiled = compile_function(function, inputs)
    except (TraceError, TypeError, AttributeError, ValueError, NotImplementedError):
        return called
    rng = np.random.default_rng(0)  # states around the initial ones
    shape = initial.worlds, 2
    q, v = (
        x[:, None] + rng.normal(size=(*shape, x.shape[1])) * [[[0.0], [1.0]]] for x in (initial.q, initial.v)
    )
    times = np.tile([0.0, 0.7], (initial.worlds, 1))
    expected = event_values_in_python([event._replace(function=trial.function)], initial, times, q, v)
    same = np.allclose(evaluated(times, q, v), expected, rtol=1e-9, atol=1e-12, equal_nan=True)
    return evaluated if same and not trial.has_state() else called


def continuous_dynamics_of_worlds(
    mechanism: Mechanism, initial: InitialState, plan: SimulationSettings
) -> Callable[[int], ContinuousDynamics]:
    """The continuous-time dynamics of each world, in machine code."""
    settings = plan.step, plan.stabilization, plan.coordinate_reduction
    derivative, projected, friction = compiled_continuous_dynamics(mechanism, settings, tuple(initial.params))
    needs_jacobian = plan.adaptive is not None and plan.adaptive.method in IMPLICIT
    exact = compiled_jacobian(mechanism, settings, tuple(initial.params)) if needs_jacobian else None

    def of_world(w: int) -> ContinuousDynamics:
        params = [x[w : w + 1] for x in initial.params.values()]

        def called(function: CompiledFunction) -> Callable[..., Any]:
            return lambda t, *state: function(np.array([t]), *state, *params)

        return ContinuousDynamics(
            called(derivative),
            called(projected),
            (lambda *_: np.zeros(0)) if friction is None else called(friction),
            None if exact is None else called(exact),
        )

    return of_world


def derived_quantities_compiled(
    mechanism: Mechanism, initial: InitialState, wanted: RecordedQuantities, motion: Trajectory
) -> dict[str, np.ndarray]:
    """The state quantities (worlds, samples, n) of all samples of all worlds, in machine code."""
    compiled = compiled_derived_quantities(mechanism, wanted, tuple(initial.params))
    params = [x[:, None, None] for x in initial.params.values()]
    times = motion.clock * wanted.step.size
    numbers = 50 + (6 * len(point_force_labels(mechanism)) if wanted.forces else 0)
    numbers += 6 * len(mechanism.joints) if wanted.reactions else 0
    rows = max(1, BLOCK // (numbers * motion.q.shape[1]))
    blocks = [
        compiled(*(x[at : at + rows] for x in (times, motion.q, motion.v, motion.z, motion.u, *params)))
        for at in range(0, initial.worlds, rows)
    ]
    return {key: np.concatenate([block[k] for block in blocks]) for k, key in enumerate(KEYS)}


def zero_control(control: ControlFunction) -> PrescribedControl:
    """A placeholder for the control, where compiled steps compute it themselves."""
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

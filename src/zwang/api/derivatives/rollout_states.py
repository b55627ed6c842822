"""The states of a rollout, about which it is differentiated, and the solutions of its steps."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import parameter_array
from zwang.api.derivatives.step_derivatives import ACCELERATION, StepDerivatives
from zwang.api.derivatives.step_equations import NEXT_VELOCITY
from zwang.compiler.runtime.compiled_function import CompiledFunction, common_leading_shape
from zwang.compiler.runtime.rollout_kernel import RepeatedRollout, run_steps, state_sizes
from zwang.errors import ShapeError
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.clock import first_clock

Options = tuple[float, str]
"""The step size [s] and the integrator."""
STATE = ("q", "v", "activation")
WARM_START, TIME, CLOCK, PARAMETERS = "warm_start", "time", "clock", "parameters"


class Differentiable(Protocol):
    """A compiled mechanism: the derivatives of its steps, and their programs."""

    mechanism: Mechanism
    step_derivatives: Callable[..., StepDerivatives]

    def compiled_function(self, function: Any) -> CompiledFunction:
        """The machine code of a program."""
        ...

    def compiled_or_none(self, function: Any) -> CompiledFunction | None:
        """The machine code of a program; None if it cannot be traced."""
        ...

    def step_key(self, step: float | None = None, integrator: str | None = None) -> tuple[Any, ...]:
        """The key of a step."""
        ...


class StatesAfter(NamedTuple):
    """The states after steps, each (..., steps, size)."""

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray


class RolloutStart(NamedTuple):
    """A rollout to be differentiated, all worlds along one axis.

    state: by the names of the inputs: q, v, activation, and the row statuses of the warm start, each
    (worlds, size). control: (worlds, steps, nu). time: (worlds, 1) [s], at the beginning; 0 for a mechanism
    that does not depend on it. symbols: (worlds, symbols). shape: the leading shape. options: step size and
    integrator.
    """

    fast: Differentiable
    state: dict[str, np.ndarray]
    control: np.ndarray
    time: np.ndarray
    symbols: np.ndarray
    shape: tuple[int, ...]
    options: Options

    @property
    def worlds(self) -> int:
        """The number of worlds."""
        return len(self.control)

    @property
    def steps(self) -> int:
        """The number of steps."""
        return self.control.shape[1]

    def times(self, span: slice) -> np.ndarray:
        """The times (worlds, steps) [s] at the beginning of the steps of a span."""
        return self.time + self.options[0] * np.arange(span.start, span.stop)

    def shaped(self, values: np.ndarray) -> np.ndarray:
        """Values (worlds, ...) with the leading shape."""
        return values.reshape(*self.shape, *values.shape[1:])

    def states_before(self, spans: Sequence[slice]) -> list[dict[str, np.ndarray]]:
        """The states before the steps of each span; all spans but the last have the same size."""
        if len(spans) == 1:
            return [self.state]
        function, last = self.fast.compiled_function(("rollout", *self.options)), spans[-1].start
        given = {**self.state, "control": self.control[:, :last], TIME: self.time, CLOCK: first_clock()}
        given[PARAMETERS] = self.symbols
        found = run_steps(
            function, *(given[port.name] for port in function.program.inputs), steps=last,
            every=spans[0].stop, over_time=("control",), record=self.state,
        )  # fmt: skip
        kept = dict(found.records)
        if WARM_START in kept:
            kept[WARM_START] = kept[WARM_START].astype(np.int32)  # row statuses are integers
        starts = [{n: x[:, k] for n, x in kept.items()} for k in range(len(spans) - 1)]
        return [self.state, *starts]


class SolvedSteps:
    """Some steps of a rollout with their solutions, which are computed again and again for other steps.

    q, v, activation: states (worlds, steps + 1, size), the first one included. is_whole: whether they are all
    steps. accelerations: whether the solutions of the constraint solver are kept.
    """

    def __init__(self, rollout: RolloutStart, steps: int, accelerations: bool = True) -> None:
        function = rollout.fast.compiled_function(("rollout_solution", *rollout.options))
        names = {port.name for port in function.program.inputs}
        over_time = [name for name in ("control", TIME) if name in names]
        self.rollout, self.steps = rollout, steps
        self.is_whole = steps == rollout.steps
        given = {PARAMETERS: rollout.symbols} | ({"control": rollout.control} if self.is_whole else {})
        record = (*STATE, "switching", *([ACCELERATION] if accelerations else []))
        self._run = RepeatedRollout(function, rollout.worlds, steps, given, over_time, record)
        self._over_time, self._state = over_time, state_sizes(function.program)
        self.q, self.v, self.activation = (self._run.records[name] for name in STATE)

    def solve(self, state: Mapping[str, np.ndarray], span: slice) -> None:
        """Compute the steps of a span of the rollout from the state before them."""
        arrays = self._run.arrays
        for name in self._state:
            arrays[name][:] = state[name]
        if not self.is_whole:
            arrays["control"][:] = self.rollout.control[:, span]
        if TIME in self._over_time:
            arrays[TIME][:] = self.rollout.times(span)[..., None]
        self._run.run()

    @property
    def control(self) -> np.ndarray:
        """The controls of the steps (worlds, steps, nu)."""
        return self._run.arrays["control"]

    @property
    def before(self) -> list[np.ndarray]:
        """The inputs of the steps (worlds, steps, size): state, control and, if a constraint depends on it,
        the time.
        """
        states = [x[:, :-1] for x in (self.q, self.v, self.activation)]
        return [*states, *(self._run.arrays[name] for name in self._over_time)]

    @property
    def known(self) -> dict[str, np.ndarray]:
        """`before`, ACCELERATION (worlds, steps, n) where it is kept, and NEXT_VELOCITY, by their names."""
        found = dict(zip((*STATE, *self._over_time), self.before, strict=True))
        if ACCELERATION in self._run.records:
            found[ACCELERATION] = self._run.records[ACCELERATION]
        return {**found, NEXT_VELOCITY: self.v[:, 1:]}

    @property
    def after(self) -> StatesAfter:
        """The states after each step, with the leading shape of the rollout."""
        return StatesAfter(*(self.rollout.shaped(x[:, 1:]) for x in (self.q, self.v, self.activation)))

    @property
    def switching(self) -> np.ndarray:
        """Whether a row is about to change its status in a step, (worlds, steps)."""
        return self._run.records["switching"][..., 0] > 0

    @property
    def is_valid(self) -> np.ndarray:
        """Whether a step has succeeded, (worlds, steps)."""
        q, v = (np.asarray(np.isfinite(x[:, 1:]).all(axis=-1)) for x in (self.q, self.v))
        return q & v


def rollout_start(
    fast: Differentiable,
    q0: Any,
    v0: Any,
    control: Any,
    *,
    activation: Any,
    time: Sequence[np.ndarray],
    step: float | None,
    integrator: str | None,
    params: Mapping[Any, Any] | None,
) -> RolloutStart:
    """The rollout from a start, with a control (..., steps, nu) for each step. time: the time (..., 1) at the
    beginning, if constraints depend on it, else none. Raises ShapeError, StateError, and ParameterError for
    an invalid argument.
    """
    m, (_, *options) = fast.mechanism, fast.step_key(step, integrator)
    of_step = (options[0], options[1])
    function = fast.compiled_function(("rollout_solution", *of_step))
    ports = {port.name: port for port in function.program.inputs}
    given = {"q": (q0, "q0"), "v": (v0, "v0"), "activation": (activation, "activation")}
    state = {
        port: function.validated_array(validation.real_values(x, name, copy=False), ports[port])
        for port, (x, name) in given.items()
    }
    u = function.validated_array(validation.real_values(control, "control", copy=False), ports["control"])
    if u.ndim < 2:
        raise ShapeError(f"control has the shape {u.shape}; it must be (..., steps, {u.shape[-1]})")
    symbols = parameter_array(m, params) if m.symbols or params else np.zeros(0)
    times = function.validated_array(time[0], ports[TIME]) if time else np.zeros(1)
    leading = {**{name: x.shape[:-1] for name, x in state.items()}, "control": u.shape[:-2]}
    leading |= {TIME: times.shape[:-1], PARAMETERS: symbols.shape[:-1]}
    shape = common_leading_shape([*leading.items()])
    if WARM_START in ports:
        state[WARM_START] = np.zeros(ports[WARM_START].size, function.dtype)
    flat = {name: _flat(x, shape, 1) for name, x in state.items()}
    symbols = _flat(symbols.astype(function.dtype, copy=False), shape, 1)
    return RolloutStart(fast, flat, _flat(u, shape, 2), _flat(times, shape, 1), symbols, shape, of_step)


def _flat(x: np.ndarray, shape: tuple[int, ...], own: int) -> np.ndarray:
    """The array with its leading axes, broadcast to a shape, as one; own: the number of the other axes."""
    spread = np.broadcast_to(x, (*shape, *x.shape[x.ndim - own :]))
    return spread if len(shape) == 1 else spread.reshape(math.prod(shape), *spread.shape[len(shape) :])

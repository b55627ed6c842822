"""Worlds that are stepped at the user's pace: their state lives in one object, between whose steps controls,
parameters and states may be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.api.analysis.contacts import ContactArrays, contact_arrays
from zwang.api.arguments.default_start import DefaultStart, default_start
from zwang.api.arguments.initial_conditions import initial_state, sample_size
from zwang.api.arguments.memory_limit import check_memory
from zwang.api.arguments.parameter_values import Parameters, given_values
from zwang.api.arguments.parameters_of_worlds import check_worlds
from zwang.api.arguments.settings_validation import step_form
from zwang.api.arguments.single_precision import warn_of_small_friction
from zwang.api.arguments.validation import (
    checked_mechanism,
    named_keyframe,
    normalise_quaternions,
    values_of_elements,
)
from zwang.api.batch.compiled_observation import compiled_observation
from zwang.api.batch.observation import STAGE, Observation, ObservedState
from zwang.api.batch.present_quantities import CONTACTS, SENSORS, PresentQuantities
from zwang.api.batch.world_arguments import (
    checked_commands,
    checked_seed,
    merged_rows,
    rows_of,
    step_size,
    whole_number,
    world_count,
)
from zwang.api.batch.world_memory import aligned_array, lane_major_arrays
from zwang.api.batch.world_stepping import WorldStepping
from zwang.api.compilation.programs import WARM_START, compile_function
from zwang.api.functions.sensor_functions import by_sensor
from zwang.api.runs.compiled_rollout import compiled_step
from zwang.compiler.runtime.bound_rollout import Rollout
from zwang.compiler.runtime.compiled_function import CompiledFunction, execution_settings
from zwang.constraint.independent_velocities import independent_velocities
from zwang.errors import ArgumentError, ShapeError, UnknownNameError
from zwang.mechanism.labelled_arrays import without_labels
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.mocap import mocap_values
from zwang.mechanism.type_validation import validated_arguments
from zwang.simulation.applied_forces import activations
from zwang.simulation.clock import clock_of, clock_size, clock_times
from zwang.simulation.controls import check_input_names, control_names
from zwang.simulation.initial_state import InitialState
from zwang.simulation.quantities.contact_forces import contact_labels
from zwang.simulation.settings import CoordinateReduction
from zwang.simulation.sleep_rule import sleeping_bodies, sleeping_trees
from zwang.simulation.sleeping import ASLEEP, MOVING
from zwang.simulation.solver_status import SolverStatus, initial_monitor
from zwang.simulation.status import FAILURE_REASONS
from zwang.simulation.step import STEPPERS
from zwang.simulation.step_program import StepProgram

SETTINGS = ("mechanism", "step_size", "integrator", "_observe", "_reduction", "_settings", "_first_commands")
FIXED = ("mechanism", "count", "step_size", "integrator")
STATE_ARRAYS = ("q", "v", "activation", "control")
KEPT_BEFORE = ("clock", "q", "v", "z", STAGE)  # of the state at the beginning of a call, for observations
PROGRAMS = ("_layout", "_observation_after_step", "_observation_after_reset", "_present", "_step")


class Worlds:
    """`count` worlds of a mechanism in compiled code, with their states.

    mechanism: may have symbols, whose values `params` gives for each world. count: number of worlds, at
    least 1. step: step size [s], by default that of the mechanism's options. integrator: "euler",
    "implicitfast", "implicit" or "rk4", by default that of the options. dtype: "float64" (default) or
    "float32", in which the programs see the time with 24 bits. threads: the largest number for a call, by
    default one for each core.
    params: a number or (count,) for each symbol, by symbol or by name.
    observe: a function of a `WorldView` that returns a dictionary from names to numbers or arrays, written
    with the functions of `zwang.scalar`, without random numbers or a state of its own. It is compiled, and
    evaluated after the last substep; `observation` holds the values.
    commands: numbers or arrays, by name, that the mechanism does not have and `observe` reads by
    `WorldView.command`, such as a commanded velocity; the values of all worlds at the beginning. Those of
    each world may then be changed in `commands`.
    coordinate_reduction: as for `zw.simulate`. seed: of `random`, the generator for the user's own noise.

    The arrays `q` (count, nq), `v` (count, nv), `activation` (count, nz), `control` (count, inputs) and those
    of `params`, `commands` and `observation` are views of the worlds' memory: they may be read and written
    between steps without a copy, also by other libraries through `__dlpack__`, and they are the same arrays
    throughout; `worlds.q = q` is `worlds.set(q=q)`. Write unit quaternions to `q`, or use `set`, which
    normalises them. `time`, `status`, `failed`, `failure_reason`, `solver_status` and `asleep` are copies;
    `sensors` and `contacts` are computed when they are read. Observations and commands have one contiguous
    row for each world. States, controls and parameters have the layout of the vector registers: the values of
    consecutive worlds are neighbours (for few worlds, those of one world), mostly with gaps between the
    columns, which JAX does not import; `x.copy()` has contiguous rows, as observations that are the states
    have.

    A world whose step fails keeps its last valid state and time, and its `status` is not 0; it is not
    stepped again before it is reset. The results of a world do not depend on the other worlds, on their
    number or on the number of threads, bit for bit. The solver's warm start is kept from step to step, so
    that n calls of `step` give what one call with n substeps gives. Bodies that may sleep: see `asleep`.
    One Python thread at a time may change the worlds; during a call of `step`, those of `step`, `set` and
    `reset` in other threads raise SimulationError.

    Raises ArgumentError, UnknownNameError, ShapeError, StateError, ParameterError, SimulationError (for more
    worlds than fit into the memory), CompileError and TraceError.
    """

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    control: np.ndarray

    @validated_arguments("mechanism", "count", "params", "integrator", "coordinate_reduction")
    def __init__(
        self,
        mechanism: Mechanism,
        count: int = 1,
        *,
        step: float | None = None,
        integrator: str | None = None,
        dtype: str = "float64",
        threads: int | None = None,
        params: Parameters | None = None,
        observe: Observation | None = None,
        commands: Mapping[str, npt.ArrayLike] | None = None,
        coordinate_reduction: CoordinateReduction = False,
        seed: int | None = None,
    ):
        self.mechanism = checked_mechanism(mechanism)
        self.count = world_count(count)
        options = mechanism.options
        self.step_size = step_size(options.timestep if step is None else step)
        self.integrator = options.integrator if integrator is None else integrator
        if not isinstance(self.integrator, str) or self.integrator not in STEPPERS:
            raise UnknownNameError("integrator of fixed step", self.integrator, STEPPERS)
        self.random = np.random.default_rng(checked_seed(seed))
        independent = independent_velocities(mechanism, coordinate_reduction)
        self._observe, self._reduction = observe, independent or independent is not None
        self._first_commands = checked_commands(commands)
        name, _, _ = execution_settings(dtype, None, threads)
        self._settings = {"dtype": name, "threads": threads}
        start = initial_state(mechanism, worlds=self.count, params=params)
        self._compile()
        warn_of_small_friction(mechanism, self._step.dtype)
        self._allocate(start.params)
        self._bind()
        self.reset()

    def __setattr__(self, name: str, value: Any) -> None:
        """Assignment to an array of the state changes its values by `set`; it stays the worlds' memory.

        Raises AttributeError for the settings of which the compiled programs were made.
        """
        if name in STATE_ARRAYS and name in self.__dict__:
            self.set(**{name: value})
        elif name in FIXED and name in self.__dict__:
            raise AttributeError(f"{name} of worlds is fixed; make others by zw.Worlds or with_count")
        else:
            super().__setattr__(name, value)

    # --------------------------------------------------------------------------------------------- stepping

    def step(self, control: npt.ArrayLike | Mapping[str, Any] | None = None, substeps: int = 1) -> None:
        """Advance all worlds by `substeps` steps at a constant control.

        control: (inputs,) for all worlds, (count, inputs), or a dictionary from names of inputs to a number
        or (count,); None keeps the present one. Without inputs it is the generalised force tau (nv,) or
        (count, nv) [N m, N]. Raises ShapeError, StateError, UnknownNameError, ArgumentError, and
        SimulationError during a call of another thread. A control that is not finite makes its world fail.
        KeyboardInterrupt leaves all worlds as they were, or the call is completed before it is raised.
        """
        if substeps is not self._substeps:  # identity, as True and 1.0 equal 1
            self._set_substeps(whole_number(substeps, "substeps"))
        read_in_place = self._stepping.readable(control)
        if control is not None and read_in_place is None:
            self._set_control(control)
        self._stepping.run(substeps, read_in_place)

    def reset(
        self,
        mask: npt.ArrayLike | None = None,
        q: npt.ArrayLike | Mapping[str, Any] | str | None = None,
        v: npt.ArrayLike | Mapping[str, Any] | None = None,
        *,
        activation: npt.ArrayLike | None = None,
    ) -> None:
        """Set worlds to an initial state at time 0, without failure and without warm start.

        mask: (count,) truth values, or the numbers of the worlds to reset; None resets all. q: (nq,), one
        row for each world to reset (n, nq), or a dictionary by the names of coordinates or joints; by default
        the home configuration. v: likewise, by default zero. activation: (nz,) or (n, nz), by default zero. q
        may also be the name of a keyframe, which then gives the defaults of v, also of the speeds that a
        dictionary leaves out, and of activation, the controls, which are not changed otherwise, and the poses
        of mocap bodies that are parameters. Symbols in the home configuration and in keyframes have the
        present `params` of each world. Raises ShapeError, StateError, UnknownNameError, ParameterError for
        parameters for which the start is not finite, and SimulationError for a keyframe that moves other
        mocap bodies; then nothing is changed.
        """
        self._stepping.check_idle()
        chosen = self._chosen(mask)
        poses = mocap_values(named_keyframe(self.mechanism, q).mocap)
        params = {
            name: np.array([poses[name]]) if name in poses else x[chosen].astype(float)
            for name, x in self._params.items()
        }
        start = default_start(self.mechanism, q, params)
        control = start.control
        if activation is None and start.activation.size:
            activation = start.activation
        rows = self._initial_rows(len(chosen), None if isinstance(q, str) else q, v, start)
        z = rows_of(activation, (len(chosen), self.activation.shape[1]), "activation", 0.0)
        self.q[chosen], self.v[chosen], self.activation[chosen] = rows.q, rows.v, z
        if control.size:
            self.control[chosen] = control
        for name, x in poses.items():
            if name in self._params:
                self._params[name][chosen] = x
        for name in ("clock", "status", WARM_START):
            if name in self._state:
                self._state[name][chosen] = 0
        if "solver" in self._state:
            self._state["solver"][chosen, :2] = initial_monitor(1)[:2]
        self._set_stage(chosen)
        self._observe_worlds(chosen)

    def set(
        self,
        mask: npt.ArrayLike | None = None,
        *,
        q: npt.ArrayLike | Mapping[str, Any] | None = None,
        v: npt.ArrayLike | Mapping[str, Any] | None = None,
        activation: npt.ArrayLike | None = None,
        control: npt.ArrayLike | Mapping[str, Any] | None = None,
        time: npt.ArrayLike | None = None,
        params: Mapping[Any, npt.ArrayLike] | None = None,
    ) -> None:
        """Change those states, controls, times [s] or parameters of the worlds in `mask` that are given.

        Arguments as for `reset`; a dictionary changes the named coordinates, speeds or inputs only. params:
        some symbols; values that no body can have raise ParameterError. The warm start stays; q wakes bodies.
        `observation` stays that of the last step or reset.
        """
        self._stepping.check_idle()
        chosen = self._chosen(mask)
        n, m = len(chosen), self.mechanism
        q, v = values_of_elements(m, q, "q", "q"), values_of_elements(m, v, "v", "v")
        new_q = merged_rows(q, self.q[chosen], m.coordinate_names, "q")
        new_v = merged_rows(v, self.v[chosen], m.speed_names, "v")
        new_z = rows_of(activation, (n, self.activation.shape[1]), "activation", self.activation[chosen])
        new_u = merged_rows(control, self.control[chosen], control_names(m), "control")
        new_t = rows_of(time, (n,), "time", 0.0)
        values = self._checked_params(params, chosen)
        if q is not None:
            normalise_quaternions(m, new_q)
        self.q[chosen], self.v[chosen], self.activation[chosen] = new_q, new_v, new_z
        self.control[chosen] = new_u
        if time is not None:
            clock = self._state["clock"]
            clock[chosen] = clock_of(new_t / self.step_size, clock.dtype)
        if any(part is not None for part in (q, v, activation, time)):
            self._set_stage(chosen)
        if q is not None and (trees := sleeping_trees(m)):
            self._state[WARM_START][chosen, :trees] = MOVING
        for name, x in values.items():
            self._params[name][chosen] = x

    # ---------------------------------------------------------------------------------------------- reading

    @property
    def time(self) -> np.ndarray:
        """The time (count,) of each world [s], a copy in double precision."""
        return clock_times(self._state["clock"], self.step_size)

    @property
    def status(self) -> np.ndarray:
        """The status (count,) of each world, integers, a copy: 0 while it runs; otherwise the number of its
        failure reason.
        """
        return self._state["status"][:, 0].astype(int)

    @property
    def failed(self) -> np.ndarray:
        """Whether each world (count,) has failed, a copy."""
        return self._state["status"][:, 0] != 0

    @property
    def failure_reason(self) -> np.ndarray:
        """The name (count,) of each world's failure reason, as in recordings; "none" while it runs."""
        return np.array([reason.name for reason in FAILURE_REASONS])[self.status]

    @property
    def solver_status(self) -> np.ndarray:
        """The `SolverStatus` (count,) of each world as a number, a copy: the worst one in the last call of
        `step`; CONVERGED where nothing constrains the mechanism.
        """
        if "solver" not in self._state:
            return np.full(self.count, int(SolverStatus.CONVERGED))
        return self._state["solver"][:, 0].astype(int)

    @property
    def asleep(self) -> Mapping[str, np.ndarray]:
        """Whether each kinematic tree that may sleep does (count,), by the name of its first body."""
        trees = sleeping_bodies(self.mechanism).items()
        return {name: self._state[WARM_START][:, tree] >= ASLEEP for name, tree in trees}

    @property
    def params(self) -> Mapping[str, np.ndarray]:
        """The values (count,) of each symbol, by name: the worlds' memory."""
        return MappingProxyType(self._params)

    @property
    def commands(self) -> Mapping[str, np.ndarray]:
        """The commands (count, ...), by name: the worlds' memory. Neither `step` nor `reset` changes them."""
        return MappingProxyType(self._commands)

    @property
    def observation(self) -> Mapping[str, np.ndarray]:
        """The values of `observe`, by name, (count, ...): the worlds' memory, written by `step` and `reset`.

        After a failed step a world's values are those of its last valid state.
        """
        return MappingProxyType(self._observation)

    @property
    def sensors(self) -> Mapping[str, np.ndarray]:
        """The values (count, ...) of the mechanism's sensors, by name, in the present states under the
        present controls, as `CompiledMechanism.sensors` has them.

        They are computed whenever they are read, in compiled code; a sensor in `observe` is part of the call
        of `step`. Raises the errors of `zw.sensors`.
        """
        if not self.mechanism.sensors:
            return {}
        return by_sensor(self.mechanism, self._present_values(SENSORS))

    @property
    def contacts(self) -> ContactArrays:
        """The candidate contacts of all worlds with their forces, in the present states under the present
        controls, as `zw.contacts` has them; computed whenever they are read, in compiled code.
        """
        if not contact_labels(self.mechanism):
            empty = np.zeros((self.count, 0))
            return contact_arrays(self.mechanism, *[empty] * 5)
        return contact_arrays(self.mechanism, *self._present_values(CONTACTS))

    def _present_values(self, kind: str) -> Any:
        """The array or the arrays of a function of `PresentQuantities` for all worlds."""
        if kind not in self._present:
            m, form = self.mechanism, step_form(self.step_size, self.integrator)
            quantities = PresentQuantities(m, form, tuple(m.symbols), clock_size(self._step.dtype))
            function = compile_function(getattr(quantities, kind), quantities.sizes, **self._settings)
            self._present[kind] = function
        function = self._present[kind]
        return function(*(self._inputs[port.name] for port in function.program.inputs))

    def __len__(self) -> int:
        return self.count

    def __repr__(self) -> str:
        failed = int(self.failed.sum())
        return (
            f"<{self.count} worlds of {self.mechanism.name!r}, step {self.step_size:g} s, "
            f"{self.integrator}, {failed} failed>"
        )

    # ------------------------------------------------------------------------------------------------ copies

    def __getstate__(self) -> dict[str, Any]:
        groups = (self._state | {"control": self.control}, self._params, self._commands, self._observation)
        arrays = [{name: x.copy() for name, x in group.items()} for group in groups]
        return {name: getattr(self, name) for name in (*SETTINGS, "count", "random")} | {"arrays": arrays}

    def __setstate__(self, kept: dict[str, Any]) -> None:
        arrays, params, commands, observation = kept.pop("arrays")
        self.__dict__.update(kept)
        if "_step" not in self.__dict__:
            self._compile()
        self._allocate(params)  # as they are: after they were written, they need not be valid
        for name, x in arrays.items():
            (self.control if name == "control" else self._state[name])[:] = x
        for own, given in ((self._commands, commands), (self._observation, observation)):
            for name, x in own.items():
                x[:] = given[name]
        self._bind()

    def __copy__(self) -> Worlds:
        """Copies have memory of their own."""
        return self.__deepcopy__({})

    def __deepcopy__(self, memo: dict[int, Any]) -> Worlds:
        copied = self._with_programs()
        state = self.__getstate__()
        state["random"] = np.random.Generator(type(self.random.bit_generator)())
        state["random"].bit_generator.state = self.random.bit_generator.state
        copied.__setstate__(state)
        return copied

    def with_count(self, count: int, *, params: Parameters | None = None, seed: int | None = None) -> Worlds:
        """`count` new worlds in the home configuration, with the settings and the compiled programs of these.

        count, params, seed: as for `Worlds`, whose errors are raised.
        """
        made = self._with_programs()
        for name in SETTINGS:
            setattr(made, name, getattr(self, name))
        made.count, made.random = world_count(count), np.random.default_rng(checked_seed(seed))
        made._allocate(initial_state(made.mechanism, worlds=made.count, params=params).params)
        made._bind()
        made.reset()
        return made

    def _with_programs(self) -> Worlds:
        """Worlds that share the compiled programs, and have no memory yet."""
        made = Worlds.__new__(Worlds)
        made.__dict__.update({name: getattr(self, name) for name in PROGRAMS})
        return made

    # --------------------------------------------------------------------------------------------- internals

    def _compile(self) -> None:
        """The step, which is kept for other worlds of the mechanism, and the observations after it and after
        a reset; machine code follows at the first use.
        """
        m, names = self.mechanism, tuple(self.mechanism.symbols)
        clock = clock_size(self._settings["dtype"])
        program = StepProgram(m, self.step_size, self.integrator, coordinate_reduction=self._reduction)
        with_stage = False
        self._present: dict[str, CompiledFunction] = {}
        self._layout: dict[str, tuple[int, ...]] = {}
        self._observation_after_step: CompiledFunction | None = None
        self._observation_after_reset: CompiledFunction | None = None
        if self._observe is not None:
            shapes = {name: x.shape for name, x in self._first_commands.items()}
            form = step_form(self.step_size, self.integrator)
            observed = ObservedState(m, form, names, clock, self._observe, shapes, self._layout)
            sizes = observed.sizes
            self._observation_after_reset = compiled_observation(observed.of_state, sizes, self._settings)
            with_stage = observed.asks_for_last_stage()
            sizes = observed.sizes_after_step(with_stage)
            self._observation_after_step = compiled_observation(observed.after_step, sizes, self._settings)
        self._step: CompiledFunction = compiled_step(program, names, with_stage, **self._settings)

    def _allocate(self, params: Mapping[str, np.ndarray]) -> None:
        """The memory of the state, the control, the parameters, which have these values, and the
        observation.
        """
        ports = {port.name: port for port in self._step.program.inputs}
        m, dtype, n = self.mechanism, self._step.dtype, self.count
        check_memory(n, 1, sum(port.size for port in ports.values()) + sample_size(m))
        lanes = self._step.lanes
        self._inputs = lane_major_arrays([*ports.values()], n, dtype, lanes)
        parts = ("clock", "status", "q", "v", "z", "solver", STAGE, WARM_START)
        self._state = {name: self._inputs[name] for name in parts if name in ports}
        if "solver" in self._state:
            self._state["solver"][:] = initial_monitor(1)
        self.q, self.v, self.activation = (self._state[name] for name in ("q", "v", "z"))
        self.control = self._inputs["u"]
        self._params = {name: self._inputs[f"parameter {name}"][:, 0] for name in m.symbols}
        for name, x in self._params.items():
            x[:] = params[name]
        self._commands = {
            name: aligned_array((n, *x.shape), dtype) for name, x in self._first_commands.items()
        }
        for name, x in self._commands.items():
            x[:] = self._first_commands[name]
        self._observation = {name: aligned_array((n, *shape), dtype) for name, shape in self._layout.items()}
        kept = [name for name in KEPT_BEFORE if name in self._state and self._observe is not None]
        self._before = lane_major_arrays([ports[name] for name in kept], n, dtype, lanes)

    def _bind(self) -> None:
        """The rollout of the step, which the observation follows in the same call, with these buffers."""
        own, observed = dict(self._inputs), None
        if self._observation_after_step is not None:
            nothing = np.zeros((self.count, 0), self._step.dtype)
            own |= {f"{name} before": self._before.get(name, nothing) for name in KEPT_BEFORE}
            own.setdefault(STAGE, nothing)
            own |= {f"command {name}": x.reshape(self.count, -1) for name, x in self._commands.items()}
            after = self._observation_after_step
            values = {
                f"observation {name}": x.reshape(self.count, -1) for name, x in self._observation.items()
            }
            observed = Rollout(after, [own[port.name] for port in after.program.inputs], self.count, values)
        self._stepping = WorldStepping(self._step, self._inputs, self._state, self._before, observed)
        self._set_substeps(1)

    def _set_substeps(self, substeps: int) -> None:
        """Let the worst status of the solver be that of this number of steps."""
        self._substeps = substeps
        if "solver" in self._state:
            self._state["solver"][:, 1:] = 0, substeps

    def _set_stage(self, chosen: np.ndarray) -> None:
        """Let the last stage of these worlds be their present state, without control and acceleration."""
        if STAGE in self._state:
            state = [self.time[chosen, None], *(x[chosen] for x in (self.q, self.v, self.activation))]
            self._state[STAGE][chosen] = np.nan
            self._state[STAGE][chosen, : sum(x.shape[1] for x in state)] = np.concatenate(state, axis=1)

    def _observe_worlds(self, chosen: np.ndarray) -> None:
        """Evaluate the observation of these worlds at their present states."""
        if self._observation_after_reset is None or not len(chosen):
            return
        arrays = [self._state[name][chosen] for name in ("clock", "q", "v", "z")]
        arrays += [self.control[chosen], *(x[chosen, None] for x in self._params.values())]
        arrays += [x[chosen].reshape(len(chosen), -1) for x in self._commands.values()]
        found = self._observation_after_reset(*arrays)
        values = found if isinstance(found, tuple) else (found,)
        for x, part in zip(self._observation.values(), values, strict=True):
            x[chosen] = part.reshape(len(chosen), *x.shape[1:])

    def _set_control(self, control: npt.ArrayLike | Mapping[str, Any]) -> None:
        if type(control) is not np.ndarray and isinstance(control, Mapping):  # to ask the latter takes long
            names, shape = control_names(self.mechanism), (self.count,)
            check_input_names(control, names)
            rows = {x: rows_of(u, shape, f"control[{x!r}]", 0.0, finite=False) for x, u in control.items()}
            for name, row in rows.items():
                self.control[:, names.index(name)] = row
            return
        control = without_labels(control, control_names(self.mechanism), "control")
        try:
            given = np.asarray(control)
            if given.shape[-1:] == self.control.shape[1:]:
                return np.copyto(self.control, given, casting="same_kind")
        except (TypeError, ValueError, OverflowError):
            pass
        self.control[:] = rows_of(control, self.control.shape, "control", 0.0, finite=False)

    def _chosen(self, mask: npt.ArrayLike | None) -> np.ndarray:
        """The numbers of the worlds in a mask. Raises ShapeError or ArgumentError."""
        if mask is None:
            return np.arange(self.count)
        try:
            given = np.asarray(mask)
        except (TypeError, ValueError):  # rows of different lengths, and what is no array
            given = np.full(1, np.nan)
        if given.dtype == bool:
            if given.shape != (self.count,):
                raise ShapeError(f"mask must have the shape ({self.count},); its shape is {given.shape}")
            return np.flatnonzero(given)
        given = np.atleast_1d(given)
        whole = given.size == 0 or given.dtype.kind in "iu"
        if (
            not whole
            or given.ndim != 1
            or (given.size and not (0 <= given.min() <= given.max() < self.count))
        ):
            raise ArgumentError(
                f"mask must hold truth values, one for each of the {self.count} worlds, or numbers of worlds "
                f"0 ... {self.count - 1}; it is {str(mask)[:60]}"
            )
        if len(np.unique(given)) < len(given):
            raise ArgumentError(
                f"mask repeats numbers: {str(mask)[:60]}; give each number once, or a mask of truth "
                "values: np.asarray(mask, dtype=bool)"
            )
        return given.astype(int)

    def _initial_rows(self, n: int, q: Any, v: Any, start: DefaultStart) -> InitialState:
        """Validated initial states of n worlds; those of `start` in place of what is not given."""
        m = self.mechanism
        q, v = values_of_elements(m, q, "q", "q"), values_of_elements(m, v, "v", "v")
        default_q, default_v = np.zeros((n, m.nq)), np.zeros((n, m.nv))
        if q is None or isinstance(q, Mapping):
            default_q[:] = start.q
        if v is None or isinstance(v, Mapping):
            default_v[:] = start.v
        rows_q = merged_rows(q, default_q, m.coordinate_names, "q")
        rows_v = merged_rows(v, default_v, m.speed_names, "v")
        normalise_quaternions(m, rows_q)
        return InitialState(rows_q, rows_v, np.zeros((n, len(activations(m)))), {})

    def _checked_params(
        self, params: Mapping[Any, npt.ArrayLike] | None, chosen: np.ndarray
    ) -> dict[str, Any]:
        """The new values of some symbols in the chosen worlds, validated together with the others."""
        given = given_values(self.mechanism, params)
        new = {name: rows_of(x, (len(chosen),), f"params[{name!r}]", 0.0) for name, x in given.items()}
        if new and len(chosen):
            values = {name: x[chosen].astype(float) for name, x in self._params.items()} | new
            check_worlds(self.mechanism, values, chosen)
            _ = default_start(self.mechanism, None, values).q  # raises ParameterError where it is not finite
        return new

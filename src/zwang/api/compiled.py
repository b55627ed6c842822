"""The one seam: a mechanism and settings in, compiled functions of it out.

Every function of the front door is here as a function of arrays for the compiler to trace: the spine's own text, on the
mechanism with traced values for its symbols. Each is compiled when first asked for.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np

from zwang.algebra.factorization import ltdl, ltdl_solve
from zwang.api import validation
from zwang.compiler.backends import c, ptx
from zwang.compiler.derivatives.differentiate import jacobian
from zwang.compiler.ir.program import Program
from zwang.compiler.pipeline import count_operations, trace_and_optimise
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.compiled_function import execution_settings as check_settings
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.constraint.hard import rheonomic_constraints
from zwang.constraint.independent_velocities import check_velocity_count, independent_velocities
from zwang.dynamics import energy, rnea
from zwang.dynamics import generalised_forces as applied
from zwang.dynamics.base_parameters import with_base_parameters
from zwang.dynamics.crba import crba
from zwang.dynamics.forward_dynamics import free_accelerations
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.errors import (
    ArgumentError,
    DescriptionError,
    ParameterError,
    ShapeError,
    SimulationError,
    UnknownNameError,
)
from zwang.integrator.fixed_step import State
from zwang.kinematics import configuration, jacobians, poses
from zwang.kinematics.poses import Pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr, validated_arguments
from zwang.scalar import equal, real_array, value_is_constant, where
from zwang.simulation.step import STEPPERS, activations, step, step_settings

PARAMETERS = "parameters"
WARM_START = "memory"
Params = Mapping[Any, Any] | None


class Derivatives(NamedTuple):
    """Derivatives (..., nv, nv) of a (or tau) by displacements dq in the tangent space, by v, and by tau (or a);
    `parameters` (..., nv, symbols) by the symbols, in the order of `mechanism.symbols`."""

    dq: np.ndarray
    dv: np.ndarray
    dtau: np.ndarray
    parameters: np.ndarray


def _forward(m: Mechanism, q: Any, v: Any, tau: Any) -> Any:
    return free_accelerations(m.tree, q, v, tau + applied.passive_forces(m, q, v))


def _inverse(m: Mechanism, q: Any, v: Any, a: Any) -> Any:
    return rnea.rnea(with_base_parameters(m.tree), q, v, a) - applied.passive_forces(m, q, v)


def _inverse_derivatives(m: Mechanism, parameters: Any, q: Any, v: Any, a: Any) -> tuple[Any, Any, Any, Any]:
    """Of tau by dq, v, a and the symbols."""
    tau = _inverse(m, q, v, a)
    rates = [configuration.configuration_rate(m.tree, q, unit) for unit in np.eye(m.nv, dtype=int)]
    by_q = jacobian(tau, q) @ np.stack(rates, axis=1) if rates else np.zeros((0, 0))  # d tau / dq G(q)
    return by_q, jacobian(tau, v), crba(with_base_parameters(m.tree), q), jacobian(tau, parameters)


def _forward_derivatives(m: Mechanism, parameters: Any, q: Any, v: Any, a: Any) -> tuple[Any, Any, Any, Any]:
    """Of the acceleration a by dq, v, tau and the symbols: from H da = dtau - (d tau / dx)_a dx."""
    by_q, by_v, H, by_parameters = _inverse_derivatives(m, parameters, q, v, a)
    parents = velocity_parents(m.tree)
    L, reciprocals = ltdl(H, parents)

    def solved(B: Any) -> np.ndarray:
        columns = [ltdl_solve(L, reciprocals, parents, column) for column in np.array(B).T]
        return np.stack(columns, axis=1) if columns else np.zeros((m.nv, 0))

    return solved(-by_q), solved(-by_v), solved(np.eye(m.nv, dtype=int)), solved(-by_parameters)


def _energy(m: Mechanism, q: Any, v: Any) -> tuple[Any, Any]:
    potential = energy.potential_energy(m.tree, q) + applied.spring_energy(m, q)
    return energy.kinetic_energy(m.tree, q, v), potential


def _zwang(m: Mechanism, q: Any, v: Any, tau: Any, a: Any) -> Any:
    return energy.zwang_of(m.tree, q, v, tau + applied.passive_forces(m, q, v), a)


def _stepped(
    m: Mechanism,
    how: tuple[Any, ...],
    q: Any,
    v: Any,
    z: Any,
    control: Any,
    time: Any = None,
    carried: Any = None,
) -> dict[str, Any]:
    """The state one step later, nan where it cannot be; how: h, integrator and embedding."""
    h, integrator, *coordinate_reduction = how
    t = None if time is None else time[0]
    steps = step_settings(m, h, integrator, coordinate_reduction=bool(coordinate_reduction) and coordinate_reduction[0])
    after, status, row_status = step(steps, State(q, v, z), control, t, carried.warm_start if carried else None)
    if carried:
        carried.keep(row_status)
    if not value_is_constant(status):
        after = State(*(where(equal(status, 0), x, np.nan) for x in after))
    found = {"q": after.q, "v": after.v, "activation": after.z}
    return found if t is None else {**found, "time": np.array([t + h])}


Text = Callable[..., Any]

TEXTS: dict[str, tuple[str, Text]] = {
    "forward_dynamics": ("q v tau", _forward),
    "inverse_dynamics": ("q v a", _inverse),
    "mass_matrix": ("q", lambda m, q: crba(with_base_parameters(m.tree), q)),
    "bias_forces": ("q v", lambda m, q, v: rnea.bias_forces(with_base_parameters(m.tree), q, v)),
    "energy": ("q v", _energy),
    "momentum": ("q v", lambda m, q, v: energy.momentum(m.tree, q, v)),
    "mass_centre": ("q", lambda m, q: energy.mass_centre(m.tree, q)),
    "zwang_of": ("q v tau a", _zwang),
    "integrate_configuration": (
        "q v dt",
        lambda m, q, v, dt: configuration.integrate_configuration(m.tree, q, v, dt),
    ),
    "difference_configuration": (
        "q q0",
        lambda m, q, q0: configuration.difference_configuration(m.tree, q, q0),
    ),
}
DERIVATIVES: dict[str, tuple[str, Text]] = {
    "inverse_dynamics_derivatives": ("q v a", _inverse_derivatives),
    "forward_dynamics_derivatives": ("q v a", _forward_derivatives),
}


WITH_MATRIX = ("mass_matrix", *DERIVATIVES)
NAMED = (*TEXTS, *DERIVATIVES, "step")


class CompiledMechanism:
    """A mechanism's functions as machine code, over one world or many at a time.

    Arrays have the worlds first: q (..., nq), v, tau, a (..., nv), of any strides; shapes in front are broadcast. What comes out
    has the same worlds in front. The functions are those of the float reference of the same names, and
    equal them to a relative 1e-10 in double precision; results are the same bits whatever the number of worlds, lanes and threads.

    A symbol of the mechanism is an input: params={"m": value or array (...)} gives every symbol a value, one a world if wanted.
    Raises ShapeError naming the argument, and ParameterError naming the symbol. Non-finite inputs of a world give
    non-finite outputs of that world only.
    """

    def __init__(
        self, mechanism: Mechanism, *, dtype: str, lanes: int | None, threads: int | None, cache: bool
    ):
        self.mechanism = mechanism
        check_settings(dtype, lanes, threads)
        self._settings: dict[str, Any] = {"dtype": dtype, "lanes": lanes, "threads": threads, "cache": cache}
        self._programs: dict[Any, Program] = {}
        self._functions: dict[Any, Any] = {}
        self._symbolic = bool(mechanism.symbols)

    def forward_dynamics(self, q: Any, v: Any, tau: Any, *, params: Params = None) -> np.ndarray:
        """The accelerations (..., nv) that the efforts tau give [rad/s^2, m/s^2]."""
        return self._call("forward_dynamics", (q, v, tau), params)

    def inverse_dynamics(self, q: Any, v: Any, a: Any, *, params: Params = None) -> np.ndarray:
        """The efforts (..., nv) that give the accelerations a [N m, N]."""
        return self._call("inverse_dynamics", (q, v, a), params)

    def mass_matrix(self, q: Any, *, params: Params = None) -> np.ndarray:
        """H (..., nv, nv) [kg m^2, kg m, kg]."""
        return self._call("mass_matrix", (q,), params)

    def bias_forces(self, q: Any, v: Any, *, params: Params = None) -> np.ndarray:
        """h (..., nv): Coriolis, centrifugal and gravity efforts [N m, N]."""
        return self._call("bias_forces", (q, v), params)

    def frame_pose(self, q: Any, frame: str, *, params: Params = None) -> Pose:
        """(R, p) of a frame in the world: (..., 3, 3) and (..., 3) [m]."""
        self.mechanism.tree.placement(frame)
        return Pose(*self._call(("frame_pose", frame), (q,), params))

    def frame_jacobian(self, q: Any, frame: str, axes: str = "world", *, params: Params = None) -> np.ndarray:
        """J (..., 6, nv) of a frame, linear rows first, in "world" or "body" axes."""
        self.mechanism.tree.placement(frame)
        if not isinstance(axes, str) or axes not in ("world", "body"):
            raise DescriptionError(f"axes is {axes!r}; it must be 'world' or 'body'")
        return self._call(("frame_jacobian", frame, axes), (q,), params)

    def energy(self, q: Any, v: Any, *, params: Params = None) -> energy.Energy:
        """(kinetic, potential), each (...) [J]."""
        return energy.Energy(*self._call("energy", (q, v), params))

    def momentum(self, q: Any, v: Any, *, params: Params = None) -> np.ndarray:
        """Linear and angular momentum about the mass centre (..., 6), world axes."""
        return self._call("momentum", (q, v), params)

    def mass_centre(self, q: Any, *, params: Params = None) -> np.ndarray:
        """The centre of mass (..., 3) in the world [m]."""
        return self._call("mass_centre", (q,), params)

    def zwang_of(self, q: Any, v: Any, tau: Any, a: Any, *, params: Params = None) -> np.ndarray:
        """Z(a) (...), less what no acceleration changes."""
        return self._call("zwang_of", (q, v, tau, a), params)

    def integrate_configuration(self, q: Any, v: Any, dt: Any, *, params: Params = None) -> np.ndarray:
        """q (..., nq) after moving with the speeds v for dt (...) [s]."""
        return self._call("integrate_configuration", (q, v, dt), params)

    def difference_configuration(self, q1: Any, q0: Any, *, params: Params = None) -> np.ndarray:
        """The speeds (..., nv) that lead from q0 to q1 in one second."""
        return self._call("difference_configuration", (q1, q0), params)

    def forward_dynamics_derivatives(self, q: Any, v: Any, tau: Any, *, params: Params = None) -> Derivatives:
        """Derivatives of the accelerations by displacements of q in the tangent space, by v, tau and the symbols.

        Of `forward_dynamics_crba`, in which limits, dry friction and contacts do not act. Raises DescriptionError for a mechanism with constraints
        (loops, couplings, rolling ...), whose forces are not in these derivatives.
        """
        a = self.forward_dynamics(q, v, tau, params=params)
        return Derivatives(*self._call("forward_dynamics_derivatives", (q, v, a), params))

    def inverse_dynamics_derivatives(self, q: Any, v: Any, a: Any, *, params: Params = None) -> Derivatives:
        """Derivatives of the efforts by displacements of q in the tangent space, by v, a and the symbols.

        Of `rnea`, in which constraints, limits, dry friction and contacts do not act.
        """
        return Derivatives(*self._call("inverse_dynamics_derivatives", (q, v, a), params))

    def step(
        self,
        q: Any,
        v: Any,
        control: Any,
        *,
        activation: Any = (),
        step: float | None = None,
        integrator: str | None = None,
        time: Any = None,
        coordinate_reduction: Any = False,
        params: Params = None,
    ) -> State:
        """(q, v, z) one step later, each (..., n), at a control held meanwhile.

        control (..., inputs) by the mechanism's inputs in order, or, where it has none, tau (..., nv) [N m, N]. activation z
        (..., nz): the states of the actuators that have some. step [s], integrator "euler" or "rk4": by default the mechanism's options.
        time (...) [s]: at the step's beginning, where constraints depend on it. embedding: as for `zw.simulate`.
        A world that cannot go on (exact constraints that contradict each other or stay open, a solver that does not converge) is nan;
        `zw.simulate` tells why.
        """
        key = self._step_key(step, integrator, coordinate_reduction)
        return State(*self._call(key, (q, v, activation, control, *self._time(time)), params)[:3])

    def rollout(
        self,
        q0: Any,
        v0: Any,
        control: Any,
        *,
        steps: int,
        every: int = 1,
        activation: Any = (),
        step: float | None = None,
        integrator: str | None = None,
        time: Any = 0.0,
        coordinate_reduction: Any = False,
        params: Params = None,
    ) -> State:
        """(q, v, z) after each `every`-th of so many steps, each (..., steps // every, n).

        control (..., inputs) is held; with one axis more than q0, (..., steps, inputs), it has a row for each step. time (...) [s]: at the
        beginning. All steps run inside compiled code. They are those of `step`: bit for bit where a mechanism has no soft constraints, limits,
        friction or contacts; else to the solver's tolerance, as each step begins with how the rows answered in the one before. Raises ShapeError.
        """
        key = ("rollout", *self._step_key(step, integrator, coordinate_reduction)[1:])
        control = validation.array(control, "control")
        over_time = ("control",) if control.ndim > np.ndim(q0) else ()
        arrays = [np.asarray(q0), np.asarray(v0), np.asarray(activation), control, *self._time(time)]
        if params is not None or self._symbolic:
            arrays += self._parameters(params)
        function: Any = self._compiled(key)
        arrays += empty_warm_start(function.program)
        names = ("q", "v", "activation")
        done = run_steps(function, *arrays, steps=steps, every=every, over_time=over_time, record=names)
        return State(*(done.records[name] for name in names))

    def _time(self, time: Any) -> list[np.ndarray]:
        """The input (..., 1) of the time, for mechanisms with constraints that depend on it."""
        timed = rheonomic_constraints(self.mechanism)
        if timed and time is None:
            raise SimulationError(
                f"constraint {timed[0]!r} depends on the time t, and this step is given none: give it, time=..."
            )
        return [np.asarray(time)[..., None]] if timed else []

    def _step_key(
        self, step: float | None, integrator: str | None, coordinate_reduction: Any = False
    ) -> tuple[Any, ...]:
        options = self.mechanism.options
        h = options.timestep if step is None else step
        if isinstance(h, np.complexfloating | np.timedelta64 | bool) or not (
            isinstance(h, int | float | np.number) and 0 < float(h) < np.inf
        ):
            raise DescriptionError(f"step is {step!r}; it must be a positive time in seconds")
        integrator = options.integrator if integrator is None else integrator
        if not isinstance(integrator, str) or integrator not in STEPPERS:
            raise UnknownNameError("integrator of fixed step", integrator, STEPPERS)
        speeds = independent_velocities(self.mechanism, coordinate_reduction)
        return (
            ("step", float(h), integrator)
            if speeds is None
            else ("step", float(h), integrator, speeds or True)
        )

    def count_operations(self, function: Any = "forward_dynamics") -> dict[str, int]:
        """The arithmetic operations of a function for one world, by kind, with their "total" and "flops"."""
        return count_operations(self._program(function))

    def source(self, language: Literal["llvm", "c", "ptx"] = "c", function: Any = "forward_dynamics") -> str:
        """A function's code as text: "llvm" IR for this machine, portable "c" (C99), or "ptx" for NVIDIA GPUs.

        A function's name is that of the method, "step" being that of the mechanism's options; ("frame_pose", frame) and
        ("frame_jacobian", frame, axes) are those of frames, ("step", h, integrator) and ("step", h, integrator, embedding) are other steps.
        """
        if not isinstance(language, str) or language not in SOURCES:
            raise DescriptionError(f"language is {language!r}; it must be one of {', '.join(SOURCES)}")
        return SOURCES[language](self._program(function), self._settings)

    def prepare(self, function: str) -> None:
        """Compile a function now, for one world and for many."""
        _check_key(function)
        key = self._step_key(None, None) if function == "step" else function
        for worlds in (1, 2):
            self._compiled(key).prepare(worlds=worlds)

    def _call(self, key: Any, arrays: tuple[Any, ...], params: Params) -> Any:
        function = self._functions.get(key)
        if function is None:
            function = self._compiled(key)
        if params is not None or self._symbolic:
            arrays = (*arrays, *self._parameters(params))
        return function(*arrays)

    def _parameters(self, params: Params) -> list[np.ndarray]:
        values = parameter_array(self.mechanism, params)
        return [values] if self._symbolic else []

    def _compiled(self, key: Any) -> Callable[..., Any]:
        _check_key(key)
        if key not in self._functions:
            self._functions[key] = ShapedFunction.of(self._program(key), self._settings)
        return self._functions[key]

    def _program(self, key: Any) -> Program:
        _check_key(key)
        if key == "step":
            key = self._step_key(None, None)
        if key not in self._programs:
            self._programs[key] = program_of(self.mechanism, key)
        return self._programs[key]

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, also one in another process, is compiled again: code in memory cannot be taken along."""
        return _again, (self.mechanism, self._settings)

    def __repr__(self) -> str:
        ready = ", ".join(str(key) for key in self._functions) or "nothing yet"
        return f"<compiled {self.mechanism!r}: {ready}>"


def _check_key(key: Any) -> None:
    """A function is asked for by a name, or by a tuple that begins with one. Raises UnknownNameError."""
    if not isinstance(key[0] if isinstance(key, tuple) and key else key, str):
        raise UnknownNameError("function", short_repr(key), NAMED)


def empty_warm_start(program: Program) -> list[np.ndarray]:
    """What a program that has a memory takes for it in its first step."""
    return [np.zeros(port.size) for port in program.inputs if port.name == WARM_START]


class ShapedFunction:
    """A compiled function whose inputs and outputs have the shapes of the program's ports, not flat ones."""

    def __init__(self, compiled: CompiledFunction):
        self.compiled = compiled
        self._inputs = [port.shape for port in compiled.program.inputs]
        self._outputs = [port.shape for port in compiled.program.outputs]

    @staticmethod
    def of(program: Program, settings: Mapping[str, Any]) -> ShapedFunction | CompiledFunction:
        """The compiled function, with nothing around it where all ports are flat anyway."""
        compiled = CompiledFunction(program, **settings)
        flat = all(len(port.shape) == 1 for port in (*program.inputs, *program.outputs))
        return compiled if flat else ShapedFunction(compiled)

    def prepare(self, *, worlds: int) -> None:
        self.compiled.prepare(worlds=worlds)

    def __call__(self, *arrays: Any) -> Any:
        given = [
            np.asarray(a)[..., None] if shape == () else a
            for a, shape in zip(arrays, self._inputs, strict=True)
        ]
        made = self.compiled(*given)
        results = made if isinstance(made, tuple) else (made,)
        shaped = [r.reshape(r.shape[:-1] + shape) for r, shape in zip(results, self._outputs, strict=True)]
        return shaped[0] if len(shaped) == 1 else tuple(shaped)


SOURCES: dict[str, Callable[[Program, Mapping[str, Any]], str]] = {
    "llvm": lambda program, settings: CompiledFunction(program, **settings).text(),
    "c": lambda program, settings: c.source(program, dtype=settings["dtype"]),
    "ptx": lambda program, settings: ptx.ptx(program, settings["dtype"]),
}


@validated_arguments()
def compile(
    mechanism: Mechanism,
    *,
    dtype: str = "float64",
    lanes: int | None = None,
    threads: int | None = None,
    outputs: Sequence[str] = (),
    cache: bool = True,
) -> CompiledMechanism:
    """The mechanism's functions as machine code made for it alone: an object with the front door's functions.

    dtype "float64" or "float32"; lanes: worlds side by side in one instruction, by default what the processor has; threads: by default
    one a core for large batches. outputs: functions to compile at once; the others when first called. cache=False keeps no object code on disk.
    Raises ArgumentError, UnknownNameError for an output that there is not, and CompileError, at once for a mechanism of more
    than 5,000 speeds.
    """
    if not isinstance(mechanism, Mechanism):
        raise ArgumentError(
            f"zw.compile needs a zw.Mechanism, as zw.load(path) returns; it got a {type(mechanism).__name__}"
        )
    validation.check_compilable(mechanism)
    fast = CompiledMechanism(mechanism, dtype=dtype, lanes=lanes, threads=threads, cache=cache)
    for name in outputs:
        if name not in NAMED:
            raise UnknownNameError("function", name, NAMED)
        fast.prepare(name)
    return fast


def _again(mechanism: Mechanism, settings: Mapping[str, Any]) -> CompiledMechanism:
    return CompiledMechanism(mechanism, **settings)


def program_of(mechanism: Mechanism, key: Any) -> Program:
    """The program of one function: the spine's text, traced, and made ready for a back end."""
    names, text = _text_of(key)
    if key == "forward_dynamics_derivatives":
        _check_unconstrained(mechanism)
    steps = key[0] in ("step", "rollout")
    if key in WITH_MATRIX or (steps and validation.is_restrained(mechanism)):
        validation.check_compilable(mechanism, "the constraint solver" if steps else str(key))
    if steps and rheonomic_constraints(mechanism):
        names += " time"
    if steps and not mechanism.symbols and isinstance(key[-1], tuple):
        check_velocity_count(mechanism, key[-1], np.array(mechanism.home or mechanism.neutral, dtype=float))
    sizes: dict[str, Any] = {"q": mechanism.nq, "q0": mechanism.nq, "dt": ()}
    sizes |= {"activation": len(activations(mechanism)), "control": len(mechanism.inputs) or mechanism.nv}
    sizes |= {"time": 1}
    inputs = {name: sizes.get(name, mechanism.nv) for name in names.split()}

    def function(*arrays: Any, **carried: Any) -> Any:
        values = dict(zip([*inputs, PARAMETERS], arrays, strict=False))
        parameters = values.pop(PARAMETERS, np.zeros(0))
        m = (
            mechanism.subs(dict(zip(mechanism.symbols, parameters, strict=True)))
            if mechanism.symbols
            else mechanism
        )
        for name in {"q", "q0"} & set(values):
            values[name] = configuration.normalized_configuration(m.tree, values[name])
        leading = (m, parameters) if key in DERIVATIVES else (m,)
        return text(*leading, *values.values(), **carried)

    if mechanism.symbols:
        inputs[PARAMETERS] = len(mechanism.symbols)
    return trace_and_optimise(function, inputs, WARM_START if key[0] == "rollout" else "")


def _check_unconstrained(mechanism: Mechanism) -> None:
    """No constraint acts. Raises DescriptionError naming those that do."""
    if {"constraint", "equality"} & set(mechanism.options.disabled) or not mechanism.constraints:
        return
    named = [f"{type(c).__name__} {c.name!r}" for c in mechanism.constraints]
    shown = ", ".join(named[:5]) + (", ..." if len(named) > 5 else "")
    raise DescriptionError(
        f"mechanism {mechanism.name!r} has constraints ({shown}), whose forces are not in the derivatives of forward dynamics; "
        "difference zw.constrained_dynamics, or, for the tree without them, give mechanism.replace(constraints=())"
    )


def _text_of(key: Any) -> tuple[str, Text]:
    match key:
        case ("frame_pose", frame):
            return "q", lambda m, q: tuple(poses.frame_pose(m.tree, q, frame))
        case ("step" | "rollout", *how):
            return "q v activation control", lambda m, *at, **carried: _stepped(m, tuple(how), *at, **carried)
        case ("frame_jacobian", frame, axes):
            return "q", lambda m, q: jacobians.frame_jacobian(m.tree, q, frame, axes)
    table = {**TEXTS, **DERIVATIVES}
    if not isinstance(key, str) or key not in table:
        raise UnknownNameError("function", key, NAMED)
    return table[key]


def parameter_array(mechanism: Mechanism, params: Params) -> np.ndarray:
    """The values of all symbols (..., symbols), in order. Raises ParameterError naming what is missing or unknown."""
    if not isinstance(params, Mapping | None):
        raise ParameterError(
            f"params is a {type(params).__name__}; it must be a dictionary of values by symbol"
        )
    given = {str(name): value for name, value in (params or {}).items()}
    for name in given:
        if name not in mechanism.symbols:
            raise ParameterError(
                f"there is no parameter {name!r}; the symbols are: {', '.join(mechanism.symbols) or 'none'}"
            )
    missing = [name for name in mechanism.symbols if name not in given]
    if missing:
        raise ParameterError(
            f"the parameter {missing[0]!r} has no value; give params={{{missing[0]!r}: ...}}"
        )
    values = [_parameter_value(name, given[name]) for name in mechanism.symbols] or [np.zeros(0)]
    try:
        return np.stack(np.broadcast_arrays(*values), axis=-1)
    except ValueError:
        shapes = ", ".join(f"{name!r} {x.shape}" for name, x in zip(mechanism.symbols, values, strict=True))
        raise ShapeError(
            f"the shapes of the parameters do not go together: {shapes}; one value, or one a world"
        ) from None


def _parameter_value(name: str, value: Any) -> np.ndarray:
    try:
        return real_array(value)
    except (TypeError, ValueError):
        raise ParameterError(
            f"the parameter {name!r} is {value!r}; it must be a real number, or one a world"
        ) from None


def compile_function(
    function: Callable[..., Any],
    inputs: Mapping[str, Any],
    *,
    dtype: str = "float64",
    lanes: int | None = None,
    threads: int | None = None,
    cache: bool = True,
    carried: str = "",
) -> CompiledFunction:
    """Any function of arrays of scalars as machine code: called with one array (..., size) for each input, in order.

    `function` is traced once, with an array of traced scalars for each input by name and shape; what it returns, an
    array, a tuple or a dictionary of them, becomes the outputs. memory: the name of what it takes along from step to step (see `trace`).
    Raises TraceError and CompileError.
    """
    program = trace_and_optimise(function, inputs, carried)
    return CompiledFunction(program, dtype=dtype, lanes=lanes, threads=threads, cache=cache)

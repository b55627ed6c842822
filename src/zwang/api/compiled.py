"""A mechanism's functions as machine code, made for that one mechanism.

Each function of the `function_table` is traced and compiled when it is first called.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.api import validation
from zwang.api.function_table import ARGUMENTS, check_axes, documented
from zwang.api.parameters import Parameters, parameter_array
from zwang.api.programs import (
    NAMED,
    WARM_START,
    Key,
    check_key,
    compile_function,
    empty_warm_start,
    program_of,
)
from zwang.api.rollout_gradient import RolloutGradient, gradient_of_rollout
from zwang.api.sensor_functions import BodyQuantities, by_sensor
from zwang.api.shaped_function import ShapedFunction
from zwang.api.step_derivatives import CONTINUOUS, StateDerivatives, StepDerivatives, step_derivatives
from zwang.api.step_results import StepOutputs, checked_outputs, shaped_outputs
from zwang.compiler.backends import c, ptx
from zwang.compiler.ir.program import Program
from zwang.compiler.pipeline import count_operations
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.compiler.runtime.compiled_function import execution_settings as check_settings
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.constraint.hard import rheonomic_constraints
from zwang.constraint.independent_velocities import independent_velocities
from zwang.deprecation import renamed_arguments
from zwang.dynamics.energy import Energy
from zwang.errors import ArgumentError, DescriptionError, SimulationError, UnknownNameError
from zwang.kinematics.poses import Pose
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.simulation.constraint_forces import PointForceLabel, point_force_labels
from zwang.simulation.solver_status import initial_monitor
from zwang.simulation.step import STEPPERS

__all__ = ["WARM_START", "CompiledMechanism", "compile", "compile_function", "program_of", "run_steps"]

ArrayLike = npt.ArrayLike
Reduction = bool | str | PointSpeed | Sequence[str | PointSpeed]
BATCH = "..., "


class Derivatives(NamedTuple):
    """Derivatives of a (or tau) by displacements dq in the tangent space, by v, by tau (or a), and by the
    symbols.

    dq, dv, dtau: (..., nv, nv). parameters: (..., nv, symbols), in the order of `mechanism.symbols`.
    """

    dq: np.ndarray
    dv: np.ndarray
    dtau: np.ndarray
    parameters: np.ndarray


class CompiledMechanism:
    """A mechanism's functions as machine code, for one world or many worlds at a time.

    Arrays have the worlds first: q (..., nq), and v, tau, a (..., nv), with any strides; leading shapes are
    broadcast, and results have the same leading shape. The methods compute what the functions on floats of
    the same names do, to a relative 1e-10 in double precision. Results are bitwise independent of the
    number of worlds, lanes and threads.

    Every method takes params={"m": value or array (...)}: a value for each symbol of the mechanism, or one
    for each world. Methods raise ShapeError, with the name of the argument, and ParameterError, with the
    name of the symbol. Nonfinite inputs of a world lead to nonfinite results of that world only.
    """

    def __init__(
        self, mechanism: Mechanism, *, dtype: str, lanes: int | None, threads: int | None, cache: bool
    ):
        self.mechanism = mechanism
        check_settings(dtype, lanes, threads)
        self._settings: dict[str, Any] = {"dtype": dtype, "lanes": lanes, "threads": threads, "cache": cache}
        self._programs: dict[Key, Program] = {}
        self._functions: dict[Key, Any] = {}
        self._symbolic = bool(mechanism.symbols)

    @documented(BATCH)
    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, params: Parameters | None = None
    ) -> np.ndarray:
        """Generalised accelerations under the forces tau, without constraints: forward dynamics."""
        return self._call("forward_dynamics", (q, v, tau), params)

    @documented(BATCH)
    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, params: Parameters | None = None
    ) -> np.ndarray:
        """Generalised forces that cause the accelerations a, by the recursive Newton-Euler algorithm."""
        return self._call("inverse_dynamics", (q, v, a), params)

    @documented(BATCH)
    def mass_matrix(self, q: ArrayLike, *, params: Parameters | None = None) -> np.ndarray:
        """Mass matrix by the composite-rigid-body algorithm."""
        return self._call("mass_matrix", (q,), params)

    @documented(BATCH)
    def bias_forces(self, q: ArrayLike, v: ArrayLike, *, params: Parameters | None = None) -> np.ndarray:
        """Bias forces by the recursive Newton-Euler algorithm."""
        return self._call("bias_forces", (q, v), params)

    @documented(BATCH)
    def frame_pose(self, q: ArrayLike, frame: str, *, params: Parameters | None = None) -> Pose:
        """Pose (R, p) of a body or a frame in the world."""
        self.mechanism.tree.placement(frame)
        return Pose(*self._call(("frame_pose", frame), (q,), params))

    @documented(BATCH)
    def frame_jacobian(
        self,
        q: ArrayLike,
        frame: str,
        axes: Literal["world", "body"] = "world",
        *,
        params: Parameters | None = None,
    ) -> np.ndarray:
        """Jacobian of a body or a frame, linear rows first."""
        self.mechanism.tree.placement(frame)
        check_axes({"axes": axes})
        return self._call(("frame_jacobian", frame, axes), (q,), params)

    @documented(BATCH)
    def energy(self, q: ArrayLike, v: ArrayLike, *, params: Parameters | None = None) -> Energy:
        """Kinetic and potential energy."""
        return Energy(*self._call("energy", (q, v), params))

    @documented(BATCH)
    def momentum(self, q: ArrayLike, v: ArrayLike, *, params: Parameters | None = None) -> np.ndarray:
        """Linear and angular momentum of all bodies."""
        return self._call("momentum", (q, v), params)

    @documented(BATCH)
    def mass_centre(self, q: ArrayLike, *, params: Parameters | None = None) -> np.ndarray:
        """Centre of mass of all bodies."""
        return self._call("mass_centre", (q,), params)

    @documented(BATCH)
    def zwang_of(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, a: ArrayLike, *, params: Parameters | None = None
    ) -> np.ndarray:
        """Gauss's measure Z(a), which the true acceleration minimises."""
        return self._call("zwang_of", (q, v, tau, a), params)

    @documented(BATCH)
    def integrate_configuration(
        self, q: ArrayLike, v: ArrayLike, dt: ArrayLike, *, params: Parameters | None = None
    ) -> np.ndarray:
        """Configuration after the time dt at constant velocities v; quaternions by their exponential."""
        return self._call("integrate_configuration", (q, v, dt), params)

    @documented(BATCH)
    def difference_configuration(
        self, q1: ArrayLike, q0: ArrayLike, *, params: Parameters | None = None
    ) -> np.ndarray:
        """Velocities from q0 to q1 in one second: the inverse of `integrate_configuration`."""
        return self._call("difference_configuration", (q1, q0), params)

    @documented(BATCH)
    def sensors(
        self,
        q: ArrayLike,
        v: ArrayLike,
        control: ArrayLike | None = None,
        activation: ArrayLike | None = None,
        time: ArrayLike = 0.0,
        *,
        params: Parameters | None = None,
    ) -> dict[str, np.ndarray]:
        """Values of all sensors, by name: those of MuJoCo's sensordata."""
        inputs = (*self._inputs(control, activation), validation.array(time, "time"))
        values = self._call("sensors", (q, v, *inputs), params)
        return by_sensor(self.mechanism, values)

    @documented(BATCH)
    def frame_velocity(
        self,
        q: ArrayLike,
        v: ArrayLike,
        frame: str,
        axes: Literal["world", "body"] = "world",
        *,
        params: Parameters | None = None,
    ) -> np.ndarray:
        """Velocity of a body or a frame, linear elements first."""
        self.mechanism.tree.placement(frame)
        check_axes({"axes": axes})
        return self._call(("frame_velocity", frame, axes), (q, v), params)

    @documented(BATCH)
    def frame_acceleration(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        frame: str,
        axes: Literal["world", "body"] = "world",
        *,
        params: Parameters | None = None,
    ) -> np.ndarray:
        """Acceleration of a body or a frame, linear elements first."""
        self.mechanism.tree.placement(frame)
        check_axes({"axes": axes})
        return self._call(("frame_acceleration", frame, axes), (q, v, a), params)

    @documented(BATCH)
    def body_quantities(
        self, q: ArrayLike, v: ArrayLike, *, params: Parameters | None = None
    ) -> BodyQuantities:
        """Centres of mass, inertias and velocities of all bodies, as in MuJoCo's mjData."""
        return BodyQuantities(*self._call("body_quantities", (q, v), params))

    @documented(BATCH)
    def external_wrenches(
        self,
        q: ArrayLike,
        v: ArrayLike,
        control: ArrayLike | None = None,
        activation: ArrayLike | None = None,
        time: ArrayLike = 0.0,
        *,
        params: Parameters | None = None,
    ) -> np.ndarray:
        """Wrenches of contacts, constraints and spatial tendons on all bodies: MuJoCo's cfrc_ext."""
        inputs = (*self._inputs(control, activation), validation.array(time, "time"))
        return self._call("external_wrenches", (q, v, *inputs), params)

    def _inputs(self, control: ArrayLike | None, activation: ArrayLike | None) -> list[ArrayLike]:
        """Control and activation, zero where they are None."""
        given = (("control", control), ("activation", activation))
        return [
            np.zeros(ARGUMENTS[name].shape_in(self.mechanism))
            if value is None
            else validation.array(value, name)
            for name, value in given
        ]

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, params: Parameters | None = None
    ) -> Derivatives:
        """Derivatives of forward dynamics by displacements of q in the tangent space, by v, tau and the
        symbols.

        q: (..., nq). v, tau: (..., nv). They are those of `forward_dynamics`: limits, dry friction and
        contacts are not included. Raises DescriptionError for a mechanism with constraints (loops,
        couplings, rolling ...).
        """
        a = self.forward_dynamics(q, v, tau, params=params)
        return Derivatives(*self._call("forward_dynamics_derivatives", (q, v, a), params))

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, params: Parameters | None = None
    ) -> Derivatives:
        """Derivatives of inverse dynamics by displacements of q in the tangent space, by v, a and the
        symbols.

        q: (..., nq). v, a: (..., nv). They are those of `inverse_dynamics`: constraints, limits, dry
        friction and contacts are not included.
        """
        return Derivatives(*self._call("inverse_dynamics_derivatives", (q, v, a), params))

    def step_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        control: ArrayLike,
        *,
        activation: ArrayLike = (),
        time: ArrayLike | None = None,
        step: float | None = None,
        integrator: str | None = None,
        params: Parameters | None = None,
    ) -> StepDerivatives:
        """The state one step later and its exact derivatives A, B, P by state, control and symbols.

        Arguments as for `step`. Derivatives are on the tangent space: the state is x = (dq, dv, dz) with a
        displacement dq (nv,) of the configuration. Limits, friction, contacts, constraints and the
        integrator's implicit terms are included, at the status that the rows have at the solution, by the
        implicit function theorem; `switching` marks worlds in which a row is about to change its status.
        The results of a world whose step fails are NaN. Raises SimulationError, with the reason, where a
        step has no exact derivatives: hard contacts with their impacts, and laws of Coulomb friction.
        Source: Griewank, Walther, Evaluating Derivatives (2008), Section 15.1.
        """
        options = self._step_key(step, integrator)[1:]
        return self._derivatives(options, q, v, control, activation, time, params)

    def constrained_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        control: ArrayLike,
        *,
        activation: ArrayLike = (),
        time: ArrayLike | None = None,
        params: Parameters | None = None,
    ) -> StateDerivatives:
        """Accelerations and rates of activations under all constraints, and their exact derivatives.

        Arguments, constraints, and what is refused: as for `step_derivatives`. The state derivative is that
        of continuous time, x_dot = (u_dot, v_dot, z_dot), with the displacement u of the configuration from
        q; the softness of constraints is that of the options' timestep.
        """
        options = (self.mechanism.options.timestep, CONTINUOUS)
        found = self._derivatives(options, q, v, control, activation, time, params)
        return StateDerivatives(found.v, found.activation, *found[3:])

    def _derivatives(
        self, options: Any, q: Any, v: Any, control: Any, activation: Any, time: Any, params: Any
    ) -> StepDerivatives:
        given = {"q": q, "v": v, "activation": activation, "control": control}
        arrays = [validation.array(x, name) for name, x in given.items()]
        parameters = self._parameters(params) if params is not None or self._symbolic else []

        def call(key: Key, inputs: tuple[np.ndarray, ...]) -> Any:
            return self._compiled(key)(*inputs)

        return step_derivatives(self.mechanism, call, options, (*arrays, *self._time(time)), parameters)

    @renamed_arguments(embedding="coordinate_reduction")
    def step(
        self,
        q: ArrayLike,
        v: ArrayLike,
        control: ArrayLike,
        *,
        activation: ArrayLike = (),
        step: float | None = None,
        integrator: str | None = None,
        time: ArrayLike | None = None,
        coordinate_reduction: Reduction = False,
        outputs: Sequence[str] = (),
        params: Parameters | None = None,
    ) -> StepOutputs:
        """The state (q, v, z) one step later, each (..., n), at a constant control.

        q: (..., nq). v: (..., nv). control: (..., inputs) in the order of the mechanism's inputs; without
        inputs the generalised forces tau (..., nv) [N m, N]. activation: (..., nz), of the actuators with
        an activation.
        step: step size [s], by default that of the mechanism's options. integrator: "euler", "implicitfast",
        "implicit" or "rk4", by default that of the options. time: (...) [s], at the beginning of the step,
        required if constraints depend on it. coordinate_reduction: as for `zw.simulate`.
        outputs: some of "solver_status" (the worst one of the step), "constraint_force" and "force" (at the
        beginning of the step), by default none.

        The state of a world is NaN if its step fails: hard constraints are inconsistent or stay violated,
        or the solver does not converge; `zw.simulate` reports the reason. Raises ShapeError,
        DescriptionError, UnknownNameError or SimulationError.
        """
        key, wanted = self._step_key(step, integrator, coordinate_reduction), checked_outputs(outputs)
        if wanted:
            key = ("step_outputs", wanted, *key[1:])
        found = self._call(key, (q, v, activation, control, *self._time(time)), params)
        return shaped_outputs(found[:3], dict(zip(wanted, found[3:], strict=False)))

    @renamed_arguments(embedding="coordinate_reduction")
    def rollout(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        control: ArrayLike,
        *,
        steps: int,
        every: int = 1,
        activation: ArrayLike = (),
        step: float | None = None,
        integrator: str | None = None,
        time: ArrayLike = 0.0,
        coordinate_reduction: Reduction = False,
        outputs: Sequence[str] = (),
        params: Parameters | None = None,
    ) -> StepOutputs:
        """The states (q, v, z) after every k-th of many steps, each (..., steps // every, n).

        q0: (..., nq). v0: (..., nv). control: (..., inputs), constant; with one more axis than q0,
        (..., steps, inputs), one row for each step. steps: number of steps. every: k, default 1. time:
        (...) [s], at the beginning, default 0. activation, step, integrator, coordinate_reduction, outputs:
        as for `step`; the solver's status is the worst one of the k steps, and forces are those of the last
        of them.

        All steps run in compiled code. They are those of `step`: bitwise for a mechanism without soft
        constraints, limits, friction and contacts; otherwise to the solver's tolerance, as each step is
        warm-started from the row statuses of the previous one. Raises what `step` does.
        """
        key = ("rollout", *self._step_key(step, integrator, coordinate_reduction)[1:])
        wanted = checked_outputs(outputs)
        if wanted:
            key = ("rollout_outputs", wanted, *key[1:])
        controls = validation.array(control, "control")
        starts = {"q0": q0, "v0": v0, "activation": activation}
        q, v, z = (validation.array(x, name) for name, x in starts.items())
        over_time = ("control",) if controls.ndim > q.ndim else ()
        arrays = [q, v, z, controls, *self._time(time)]
        arrays += [initial_monitor(every)] if wanted else []
        if params is not None or self._symbolic:
            arrays += self._parameters(params)
        function: Any = self._compiled(key)
        arrays += empty_warm_start(function.program)
        names = ("q", "v", "activation")
        record = (*names, *wanted)
        done = run_steps(function, *arrays, steps=steps, every=every, over_time=over_time, record=record)
        states = [done.records[name] for name in names]
        return shaped_outputs(states, {name: done.records[name] for name in wanted})

    def rollout_gradient(
        self,
        cotangents: ArrayLike | Callable[[StepOutputs], ArrayLike],
        q0: ArrayLike,
        v0: ArrayLike,
        control: ArrayLike,
        *,
        activation: ArrayLike = (),
        step: float | None = None,
        integrator: str | None = None,
        params: Parameters | None = None,
    ) -> RolloutGradient:
        """The exact gradient of a loss over a rollout, by the start, all controls and the symbols.

        cotangents: the derivatives g (..., steps, n) of the loss by the states (dq, v, activation) after each
        step, dq in the tangent space; or a function of the rollout's states that returns them. q0 (..., nq),
        v0 (..., nv), activation (..., nz): the start. control: (..., steps, inputs). step, integrator,
        params: as for `step`; what has no exact derivatives is refused as by `step_derivatives`.

        The gradients have the leading shape of q0. The memory is that of the states and of the derivatives
        of about sqrt(steps) steps.
        """
        return gradient_of_rollout(
            self, cotangents, q0, v0, control, activation=activation, step=step, integrator=integrator,
            params=params,
        )  # fmt: skip

    @property
    def force_labels(self) -> tuple[PointForceLabel, ...]:
        """The name, kind, body and other body of each force of the output "force"."""
        return point_force_labels(self.mechanism)

    def count_operations(self, function: Key = "forward_dynamics") -> dict[str, int]:
        """The number of arithmetic operations of a function for one world, by kind, with "total" and "flops".

        function: as for `source`.
        """
        return count_operations(self._program(function))

    def source(self, language: Literal["llvm", "c", "ptx"] = "c", function: Key = "forward_dynamics") -> str:
        """The code of a function as text.

        language: "llvm" for LLVM IR of this processor, "c" (default) for portable C99, "ptx" for NVIDIA GPUs.
        function: the name of a method, "step" for the step of the mechanism's options; ("frame_pose", frame),
        ("frame_jacobian", frame, axes), ("step", h, integrator) or ("step", h, integrator,
        coordinate_reduction); ("jacobian", function, inputs), such as ("jacobian", "mass_matrix", ("q",)),
        for the results and their derivatives (m, n) by the elements of these inputs. Raises DescriptionError
        for another language, UnknownNameError for another function.
        """
        if not isinstance(language, str) or language not in SOURCES:
            raise DescriptionError(f"language is {language!r}; it must be one of {', '.join(SOURCES)}")
        return SOURCES[language](self._program(function), self._settings)

    def compiled_function(self, function: Key) -> CompiledFunction:
        """A function as machine code over flat arrays (..., size), one for each input of its program.

        function: as for `source`. Raises what `source` does, and TraceError for the Jacobian of a function
        with loops or branches.
        """
        found = self._compiled(function)
        return found.compiled if isinstance(found, ShapedFunction) else found

    def step_key(
        self,
        step: float | None = None,
        integrator: str | None = None,
        coordinate_reduction: Reduction = False,
    ) -> Key:
        """The key of a step with these settings, for `source` and `compiled_function`; arguments as for
        `step`.
        """
        return self._step_key(step, integrator, coordinate_reduction)

    def prepare(self, function: str) -> None:
        """Compile a function now, for one world and for many worlds. function: its name."""
        check_key(function)
        key = self._step_key(None, None) if function == "step" else function
        for worlds in (1, 2):
            self._compiled(key).prepare(worlds=worlds)

    def _time(self, time: ArrayLike | None) -> list[np.ndarray]:
        """The input (..., 1) of the time, for mechanisms with time-dependent constraints."""
        timed = rheonomic_constraints(self.mechanism)
        if timed and time is None:
            raise SimulationError(
                f"constraint {timed[0]!r} depends on the time t, and this step is given none: give "
                f"it, time=..."
            )
        return [np.asarray(time)[..., None]] if timed else []

    def _step_key(
        self, step: float | None, integrator: str | None, coordinate_reduction: Reduction = False
    ) -> tuple[Any, ...]:
        """The key of the program of a step, from validated settings."""
        options = self.mechanism.options
        h: Any = options.timestep if step is None else step
        if isinstance(h, np.complexfloating | np.timedelta64 | bool) or not (
            isinstance(h, int | float | np.number) and 0 < h < sys.float_info.max
        ):
            raise DescriptionError(f"step is {step!r}; it must be a positive time in seconds")
        integrator = options.integrator if integrator is None else integrator
        if not isinstance(integrator, str) or integrator not in STEPPERS:
            raise UnknownNameError("integrator of fixed step", integrator, STEPPERS)
        independent = independent_velocities(self.mechanism, coordinate_reduction)
        key = ("step", float(h), integrator)
        return key if independent is None else (*key, independent or True)

    def _call(self, key: Key, arrays: tuple[Any, ...], params: Parameters | None) -> Any:
        function = self._functions.get(key)
        if function is None:
            function = self._compiled(key)
        if params is not None or self._symbolic:
            arrays = (*arrays, *self._parameters(params))
        return function(*arrays)

    def _parameters(self, params: Parameters | None) -> list[np.ndarray]:
        values = parameter_array(self.mechanism, params)
        return [values] if self._symbolic else []

    def _compiled(self, key: Key) -> Any:
        check_key(key)
        if key not in self._functions:
            self._functions[key] = ShapedFunction.of(self._program(key), self._settings)
        return self._functions[key]

    def _program(self, key: Key) -> Program:
        check_key(key)
        if key == "step":
            key = self._step_key(None, None)
        if key not in self._programs:
            self._programs[key] = program_of(self.mechanism, key)
        return self._programs[key]

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, also one in another process, is compiled again: machine code in memory is not copied."""
        return _compiled_again, (self.mechanism, self._settings)

    def __repr__(self) -> str:
        ready = ", ".join(str(key) for key in self._functions) or "nothing yet"
        return f"<compiled {self.mechanism!r}: {ready}>"


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
    """The mechanism's functions as machine code, as a `CompiledMechanism`.

    mechanism: a mechanism, whose symbols become inputs.
    dtype: "float64" (default) or "float32".
    lanes: worlds in one vector instruction; by default as many as the processor supports.
    threads: by default one for each core, for large batches.
    outputs: names of functions to compile at once; others are compiled when they are first called.
    cache: whether object code is kept on disk, default True.

    Raises ArgumentError; UnknownNameError for an unknown output; CompileError, at once, for a mechanism
    with more than 5,000 generalised velocities.
    """
    if not isinstance(mechanism, Mechanism):
        raise ArgumentError(
            f"zw.compile needs a zw.Mechanism, as zw.load(path) returns; it got a {type(mechanism).__name__}"
        )
    validation.check_compilable(mechanism)
    compiled = CompiledMechanism(mechanism, dtype=dtype, lanes=lanes, threads=threads, cache=cache)
    for name in outputs:
        if name not in NAMED:
            raise UnknownNameError("function", name, NAMED)
        compiled.prepare(name)
    return compiled


def _compiled_again(mechanism: Mechanism, settings: Mapping[str, Any]) -> CompiledMechanism:
    return CompiledMechanism(mechanism, **settings)

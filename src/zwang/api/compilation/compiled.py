"""A mechanism's functions as machine code, made for that one mechanism.

Each function of the `function_table` is traced and compiled when it is first called.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any, Literal, overload

import numpy as np

from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import Parameters
from zwang.api.arguments.single_precision import warn_of_small_friction
from zwang.api.compilation.compiled_derivatives import CompiledDerivatives
from zwang.api.compilation.compiled_programs import ArrayLike, Reduction
from zwang.api.compilation.constrained_inverse_dynamics import ConstrainedInverseDynamics, prescribed_motion
from zwang.api.compilation.constrained_inverse_dynamics import compiled as motion_forces
from zwang.api.compilation.feedback_rollout import APPLIED, REFERENCE, FeedbackRollout, feedback_arrays
from zwang.api.compilation.programs import (
    NAMED,
    WARM_START,
    compile_function,
    empty_warm_start,
    program_of,
)
from zwang.api.compilation.step_results import StepOutputs, shaped_outputs
from zwang.api.derivatives.rollout_gradient import RolloutGradient, gradient_of_rollout
from zwang.api.derivatives.rollout_states import RolloutStart, rollout_start
from zwang.api.derivatives.rollout_tangents import RolloutTangents, tangents_of_rollout
from zwang.api.functions.function_table import check_axes, documented
from zwang.api.functions.sensor_functions import BodyQuantities, by_sensor
from zwang.compiler.runtime.rollout_kernel import run_steps
from zwang.deprecation import renamed_value
from zwang.dynamics.energy import Energy
from zwang.errors import ArgumentError, ShapeError, UnknownNameError
from zwang.kinematics.poses import Pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.simulation.quantities.constraint_forces import PointForceLabel, point_force_labels
from zwang.simulation.solver_status import initial_monitor

__all__ = ["WARM_START", "CompiledMechanism", "compile", "compile_function", "program_of", "run_steps"]

BATCH = "..., "
KEPT = 4  # compiled mechanisms
OLD_NAME = ("embedding", "coordinate_reduction", False)  # the old and the new name, and the default


class CompiledMechanism(CompiledDerivatives):
    """A mechanism's functions as machine code, for one world or many worlds at a time.

    Arrays have the worlds first: q (..., nq), and v, tau, a (..., nv), with any strides; leading shapes are
    broadcast, and results have the same leading shape. The elements of labelled arrays, as of recordings, and
    the columns of tables are read by their labels, those of other arrays by position. The methods compute
    what the functions on floats of the same names do, to a relative 1e-10 in double precision. Results are
    bitwise independent of the number of worlds, lanes and threads.

    Every method takes params={"m": value or array (...)}: a value for each symbol of the mechanism, or one
    for each world; `integrate_configuration` and `difference_configuration`, which depend on none, work
    without. Methods raise ShapeError, with the name of the argument, and ParameterError, with the
    name of the symbol. Nonfinite inputs of a world lead to nonfinite results of that world only.
    """

    @documented(BATCH)
    def forward_dynamics(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, params: Parameters | None = None
    ) -> np.ndarray:
        """Generalised accelerations under the forces tau, without constraints: forward dynamics."""
        return self._call("forward_dynamics", (q, v, tau), params)

    @overload
    def inverse_dynamics(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, params: Parameters | None = None
    ) -> np.ndarray: ...
    @overload
    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        actuated: str | Sequence[str],
        independent: str | Sequence[str] | None = None,
        start: ArrayLike | None = None,
        time: ArrayLike = 0.0,
        params: Parameters | None = None,
    ) -> ConstrainedInverseDynamics: ...
    @overload
    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        actuated: None = None,
        independent: str | Sequence[str],
        start: ArrayLike | None = None,
        time: ArrayLike = 0.0,
        params: Parameters | None = None,
    ) -> ConstrainedInverseDynamics: ...
    @documented(BATCH)
    def inverse_dynamics(
        self,
        q: ArrayLike,
        v: ArrayLike,
        a: ArrayLike,
        *,
        actuated: str | Sequence[str] | None = None,
        independent: str | Sequence[str] | None = None,
        start: ArrayLike | None = None,
        time: ArrayLike = 0.0,
        params: Parameters | None = None,
    ) -> np.ndarray | ConstrainedInverseDynamics:
        """Generalised forces that cause the accelerations a, by the recursive Newton-Euler algorithm."""
        if actuated is None and independent is None:
            return self._call("inverse_dynamics", (q, v, a), params)
        m = self.mechanism
        motion = prescribed_motion(m, (q, v, a), actuated, independent, start, params)
        return motion_forces(
            motion, lambda key, arrays: self._call(key, arrays, params), time, self.settings["dtype"]
        )

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
        return self._call("integrate_configuration", (q, v, dt), self._any_values(params))

    @documented(BATCH)
    def difference_configuration(
        self, q1: ArrayLike, q0: ArrayLike, *, params: Parameters | None = None
    ) -> np.ndarray:
        """Velocities from q0 to q1 in one second: the inverse of `integrate_configuration`."""
        return self._call("difference_configuration", (q1, q0), self._any_values(params))

    def _any_values(self, params: Parameters | None) -> Parameters | None:
        """Parameters of functions whose results depend on none: any values if they are not given."""
        is_given = params is not None and not (isinstance(params, dict) and not params)
        return params if is_given else dict.fromkeys(self.mechanism.symbols, 1.0) or None

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
        inputs = (*self._inputs(control, activation), validation.real_values(time, "time"))
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
        inputs = (*self._inputs(control, activation), validation.real_values(time, "time"))
        return self._call("external_wrenches", (q, v, *inputs), params)

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
        embedding: Reduction | None = None,
    ) -> StepOutputs:
        """The state (q, v, z) one step later, each (..., n), at a constant control.

        q: (..., nq). v: (..., nv). control: (..., inputs) in the order of the mechanism's inputs; without
        inputs the generalised forces tau (..., nv) [N m, N]. activation: (..., nz), of the actuators with
        an activation.
        step: step size [s], by default that of the mechanism's options. integrator: "euler", "implicitfast",
        "implicit" or "rk4", by default that of the options. time: (...) [s], at the beginning of the step,
        required if constraints depend on it. coordinate_reduction: as for `zw.simulate`; embedding is its old
        name.
        outputs: some of "solver_status" (the worst one of the step), "constraint_force" and "force" (at the
        beginning of the step), by default none.

        The state of a world is NaN if its step fails: hard constraints are inconsistent or stay violated,
        or the solver does not converge; `zw.simulate` reports the reason. Raises ShapeError,
        DescriptionError, UnknownNameError or SimulationError.
        """
        if embedding is not None:
            coordinate_reduction = renamed_value("step", OLD_NAME, embedding, coordinate_reduction)
        key, wanted = self._key_and_outputs("step", step, integrator, coordinate_reduction, outputs)
        arrays = q, v, activation, control
        try:
            found = self._call(key, (*arrays, *self._time(time)) if self._time_dependent else arrays, params)
        except ShapeError:
            self._check_activation(activation)
            raise
        if not wanted and len(found) == 3:
            return StepOutputs(*found)
        # the time comes last, if constraints depend on it
        return shaped_outputs(found[:3], dict(zip(wanted, found[3:], strict=False)))

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
        embedding: Reduction | None = None,
    ) -> StepOutputs:
        """The states (q, v, z) after every k-th of many steps, each (..., steps // every, n).

        q0: (..., nq). v0: (..., nv). control: (..., inputs), constant; with one more axis than q0,
        (..., steps, inputs), one row for each step. steps: number of steps. every: k, default 1. time:
        (...) [s], at the beginning, default 0; after n steps of the size h it is `time` + n h. activation,
        step, integrator, coordinate_reduction, embedding, outputs: as for `step`; the solver's status is the
        worst one of the k steps, and forces are those of the last of them.

        All steps run in compiled code. They are those of `step`: bitwise for a mechanism without soft
        constraints, limits, friction and contacts; otherwise to the solver's tolerance, as each step is
        warm-started from the row statuses of the previous one. Raises what `step` does.
        """
        if embedding is not None:
            coordinate_reduction = renamed_value("rollout", OLD_NAME, embedding, coordinate_reduction)
        rollouts, warm_start, wanted = self._rollouts_of(step, integrator, coordinate_reduction, outputs)
        plain = params is None and not wanted and self._is_plain
        if plain and isinstance(control, np.ndarray) and isinstance(q0, np.ndarray):
            over_time = ("control",) if control.ndim > q0.ndim else ()
            found = rollouts.direct((q0, v0, activation, control, *warm_start), steps, every, over_time)
            if found is not None:
                return StepOutputs(*found)
        self._check_activation(activation)
        controls = validation.real_values(self._positional(control, "control"), "control", copy=False)
        starts = {"q0": self._positional(q0, "q", "q0"), "v0": self._positional(v0, "v", "v0")}
        starts["activation"] = activation
        q, v, z = (validation.real_values(x, name, copy=False) for name, x in starts.items())
        over_time = ("control",) if controls.ndim > q.ndim else ()
        arrays = [q, v, z, controls, *self._clock(time)]
        arrays += [initial_monitor(every)] if wanted else []
        if params is not None or self._symbolic:
            arrays += self._parameters(params)
        records = rollouts([*arrays, *warm_start], steps, every, over_time)
        return shaped_outputs(records[:3], dict(zip(wanted, records[3:], strict=True)))

    def feedback_rollout(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        control: ArrayLike,
        gain: ArrayLike,
        reference: Sequence[ArrayLike],
        *,
        activation: ArrayLike = (),
        step: float | None = None,
        integrator: str | None = None,
        time: ArrayLike = 0.0,
        bounds: tuple[ArrayLike, ArrayLike] | None = None,
        params: Parameters | None = None,
    ) -> FeedbackRollout:
        """The states (q, v, z) after each step, and the controls, under u = control + gain (x - reference).

        q0: (..., nq). v0: (..., nv). control: (..., steps, inputs). gain: (..., steps, inputs, n), of the
        state x = (dq, v, z) in the tangent space, n = 2 nv + nz. reference: q, v and activation, each
        (..., steps, size); rows after the last step are not read. bounds: the lowest and highest controls,
        each a number or (inputs,), to which u is clipped. activation, step, integrator, time, params: as for
        `rollout`.

        All steps run in compiled code, warm-started as in `rollout`. Raises what `rollout` does, and
        ArgumentError for bounds without room.
        """
        self._check_activation(activation)
        key = ("feedback_rollout", *self._step_key(step, integrator)[1:])
        given = {"q0": self._positional(q0, "q", "q0"), "v0": self._positional(v0, "v", "v0")}
        given |= {"activation": activation, "control": self._positional(control, "control"), "gain": gain}
        q, v, z, u, K = (validation.real_values(x, name) for name, x in given.items())
        if u.ndim < 2:
            raise ShapeError(f"control must have the shape (..., steps, inputs); its shape is {u.shape}")
        arrays = [q, v, z, u, *self._clock(time), *feedback_arrays(self.mechanism, u, K, reference, bounds)]
        if params is not None or self._symbolic:
            arrays += self._parameters(params)
        function: Any = self._compiled(key)
        arrays += empty_warm_start(function.program)
        record = ("q", "v", "activation", APPLIED)
        over_time = ("control", "gain", *REFERENCE.values())
        done = run_steps(function, *arrays, steps=u.shape[-2], over_time=over_time, record=record)
        return FeedbackRollout(*(done.records[name] for name in record))

    def rollout_gradient(
        self,
        cotangents: ArrayLike | Callable[..., ArrayLike],
        q0: ArrayLike,
        v0: ArrayLike,
        control: ArrayLike,
        *,
        activation: ArrayLike = (),
        step: float | None = None,
        integrator: str | None = None,
        time: ArrayLike = 0.0,
        params: Parameters | None = None,
        checkpoints: bool = False,
    ) -> RolloutGradient:
        """The exact gradient of a loss over a rollout, by the start, all controls and the symbols.

        cotangents: the derivatives g (..., steps, n) of the loss by the states (dq, v, activation) after each
        step, dq in the tangent space; or a function of the rollout's states that returns them. q0 (..., nq),
        v0 (..., nv), activation (..., nz): the start. control: (..., steps, inputs). time: (...) [s], at the
        beginning, as for `rollout`. step, integrator, params: as for `step`; what has no exact derivatives is
        refused as by `step_derivatives`.
        checkpoints: whether to store few states. Then the result has the state after the last step only, and
        a function of cotangents is called for one block of about sqrt(steps) steps after another, from the
        last: with the states after these steps, and the slice of their numbers.

        The gradients have the leading shape of q0. They take about three times as long as the rollout, with
        checkpoints four times, however many controls and symbols there are, by products of cotangents with
        the derivatives of a step in reverse mode; where these have no reverse mode (hard contacts and limits,
        Coulomb friction), they are the products with A, B and P. The memory is that of the states of all
        steps, for RK4 and hard equalities also of the accelerations; with checkpoints, of about
        2 sqrt(steps) steps.
        """
        options = {"step": step, "integrator": integrator, "params": params}
        rollout = self._rollout_start(q0, v0, control, activation, time, options)
        return gradient_of_rollout(rollout, cotangents, checkpoints)

    def rollout_tangents(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        control: ArrayLike,
        *,
        start_direction: ArrayLike | None = None,
        control_direction: ArrayLike | None = None,
        parameter_direction: ArrayLike | None = None,
        activation: ArrayLike = (),
        step: float | None = None,
        integrator: str | None = None,
        time: ArrayLike = 0.0,
        params: Parameters | None = None,
    ) -> RolloutTangents:
        """The exact derivatives of all states of a rollout along directions of its start, controls and
        symbols.

        start_direction (..., directions, n): of the state (dq, v, activation) at the start, dq in the tangent
        space. control_direction (..., directions, steps, inputs). parameter_direction (..., directions,
        symbols). They are broadcast; what is omitted does not change. Other arguments, and what is refused:
        as for `rollout_gradient`.

        The result holds the states (..., steps, size), and tangents (..., directions, steps, n). A direction
        costs a few steps, where `step_derivatives` takes one for each of all n + nu + symbols directions.
        Raises ShapeError for directions of another shape.
        """
        options = {"step": step, "integrator": integrator, "params": params}
        rollout = self._rollout_start(q0, v0, control, activation, time, options)
        return tangents_of_rollout(rollout, start_direction, control_direction, parameter_direction)

    def _rollout_start(
        self,
        q0: ArrayLike,
        v0: ArrayLike,
        control: ArrayLike,
        activation: ArrayLike,
        time: ArrayLike,
        options: Mapping[str, Any],
    ) -> RolloutStart:
        """The rollout to be differentiated. options: step, integrator and params, as for `step`."""
        self._check_activation(activation)
        q, v = self._positional(q0, "q", "q0"), self._positional(v0, "v", "v0")
        u = self._positional(control, "control")
        return rollout_start(self, q, v, u, activation=activation, time=self._time(time), **options)

    @property
    def force_labels(self) -> tuple[PointForceLabel, ...]:
        """The name, kind, body and other body of each force of the output "force"."""
        return point_force_labels(self.mechanism)

    def __reduce__(self) -> tuple[Any, ...]:
        """A copy, also one in another process, is compiled again: machine code in memory is not copied."""
        return _compiled_again, (self.mechanism, self.settings)


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

    Gives a SimulationWarning for contacts with a coefficient of friction that pyramids do not resolve in
    single precision. Raises ArgumentError; UnknownNameError for an unknown output; CompileError, at once, for
    a mechanism with more than 5,000 generalised velocities.
    """
    if not isinstance(mechanism, Mechanism):
        raise ArgumentError(
            f"zw.compile needs a zw.Mechanism, as zw.load(path) returns; it got a {type(mechanism).__name__}"
        )
    validation.check_compilable(mechanism)
    compiled = CompiledMechanism(mechanism, dtype=dtype, lanes=lanes, threads=threads, cache=cache)
    warn_of_small_friction(mechanism, str(np.dtype(dtype)))
    for name in outputs:
        if name not in NAMED:
            raise UnknownNameError("function", name, NAMED)
        compiled.prepare(name)
    return compiled


@lru_cache(KEPT)
def compiled_on_one_thread(mechanism: Mechanism) -> CompiledMechanism:
    """`compile(mechanism, threads=1)`, the same object for the same mechanism: its programs are traced once
    for all calls of functions that compute one state after the other.
    """
    return compile(mechanism, threads=1)


def _compiled_again(mechanism: Mechanism, settings: Mapping[str, Any]) -> CompiledMechanism:
    return CompiledMechanism(mechanism, **settings)

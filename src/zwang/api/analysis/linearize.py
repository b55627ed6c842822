"""Linear models of a mechanism about a state, from its exact derivatives.

Hard constraints reduce the state. With C dq = 0 at the level of positions and D dq + A dv = 0 at that of
velocities, the admissible states are x = T y, where y are independent entries of x (S x = y, S T = I), and

    x_dot = F x + G u,  x = T y      gives      y_dot = S F T y + S G u
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.linalg
from scipy.sparse.csgraph import connected_components

from zwang.algebra.dual_control_flow import parts, tangent_array, tangents
from zwang.api.analysis.constrained_dynamics import check_inertia
from zwang.api.analysis.linear_outputs import linear_outputs
from zwang.api.analysis.reference import frame_jacobian
from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import Parameters, with_numbers
from zwang.api.compilation.compiled import CompiledMechanism, compiled_on_one_thread
from zwang.api.derivatives.step_derivatives import StateDerivatives, StepDerivatives
from zwang.constraint.assembly import assemble_state
from zwang.constraint.coulomb_friction import coulomb_frictions
from zwang.constraint.friction import has_hard_friction
from zwang.constraint.hard import all_velocity_level_rows, hard_constraints, velocity_level_rows_at
from zwang.constraint.limit import has_hard_limits
from zwang.constraint.row_sizes import row_sizes
from zwang.dynamics.crba import crba
from zwang.errors import (
    DescriptionError,
    MissingExtraError,
    SimulationError,
    SimulationWarning,
    SolveError,
    StateError,
    UnknownNameError,
)
from zwang.kinematics.configuration import configuration_rate, integrate_configuration
from zwang.lazy_imports import import_module
from zwang.mechanism.lengths import displacement_sizes
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.applied_forces import activations
from zwang.simulation.constraint_stage import largest_violations
from zwang.simulation.controls import control_names
from zwang.simulation.impact_stage import has_hard_contacts

CONSISTENT = 1e-6  # largest violation and velocity residual of a state with a linear model, by size of a row
RANK = 1e-9  # singular values below this, relative to the largest, count as zero
SLIDE_WEIGHT = 1e-3  # of slides against angles in the choice of independent states
DISPLACEMENT = 1e-3  # [rad, or lengths of the mechanism] along the motion, over which A is compared
EQUILIBRIUM = 1e-6  # largest acceleration at rest that counts as zero [rad/s^2, lengths of the mechanism/s^2]
REST = 1e-3  # speed that counts as rest, relative to that after the displacement by the acceleration
LONGEST = 1e-2  # [s] of the motion from rest, over which A is compared
STEADY = 1e-4  # relative change of A for each rad or length of the motion, up to which it counts as constant
POLE_DECIMALS = 10  # of real parts, relative to the largest modulus, that order poles


def ordered_poles(poles: np.ndarray, *, discrete: bool = False) -> np.ndarray:
    """`poles` (..., n) by decreasing real part, or modulus if `discrete`; where those differ by rounding
    errors only, by imaginary part.
    """
    modulus = np.abs(poles)
    largest = modulus.max(axis=-1, keepdims=True, initial=0)
    size = (modulus if discrete else np.real(poles)) / np.where(largest > 0, largest, 1)
    order = np.lexsort((np.imag(poles), -np.round(size, POLE_DECIMALS)), axis=-1)
    return np.take_along_axis(poles, order, axis=-1)


@dataclass(frozen=True)
class LinearModel:
    """y_dot = A y + B u, or y[k + 1] = A y[k] + B u[k], and the outputs C y + D u: deviations from the motion
    through a state.

    A (n, n), B (n, m), C (p, n), D (p, m). states, inputs, outputs: their names. step [s]: of a discrete
    model, None for a continuous one. q, v, control: the state and the control about which it holds.
    displacement (N, n): T, the deviation (dq, dv, dz) of the whole state for each entry of y. switching:
    whether a constraint row is about to change its status, so that the model holds on one side only. steady:
    whether the blocks of A that have its eigenvalues stay constant along the motion, as in an equilibrium, in
    straight motion or in a steady turn.
    """

    A: np.ndarray
    B: np.ndarray
    C: np.ndarray
    D: np.ndarray
    states: tuple[str, ...]
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    step: float | None
    q: np.ndarray
    v: np.ndarray
    control: np.ndarray
    displacement: np.ndarray
    switching: bool
    steady: bool = True

    def __repr__(self) -> str:
        kind = "continuous" if self.step is None else f"of steps of {self.step:g} s"
        inputs = ", ".join(self.inputs) or "none"
        return (
            f"<linear model, {kind}: states {', '.join(self.states)}; inputs {inputs}; "
            f"{len(self.outputs)} outputs>"
        )

    @property
    def poles(self) -> np.ndarray:
        """The eigenvalues (n,) of A, ordered as by `ordered_poles`.

        Gives a SimulationWarning for a state that is not `steady`: its poles depend on the choice of states,
        and say nothing about stability.
        """
        if not self.steady:
            warnings.warn(
                "this state moves or accelerates, and the matrix A of its linear model changes along the "
                f"motion: its poles depend on the choice of the states ({', '.join(self.states)}) and say "
                "nothing about stability; choose states=... relative to the bodies, such as joint angles for "
                "positions in the world, or linearise about a steady motion or an equilibrium of zw.trim",
                SimulationWarning,
                stacklevel=2,
            )
        return ordered_poles(np.linalg.eigvals(self.A), discrete=self.step is not None)

    def frequency_response(self, frequencies: npt.ArrayLike) -> np.ndarray:
        """The complex amplitudes (k, p, m) of the outputs for inputs of amplitude one, at frequencies (k,)
        [rad/s].

        C (s I - A)^-1 B + D with s = i w, or s = exp(i w step) for a discrete model. Raises StateError for
        frequencies that are not finite numbers, ShapeError for arrays of more than one axis, and LinAlgError
        at an undamped pole.
        """
        w = np.atleast_1d(validation.real_values(frequencies, "frequencies"))
        validation.vector(w, w.size, "frequencies", "frequencies in rad/s")
        s = 1j * w if self.step is None else np.exp(1j * w * self.step)
        matrices = s[:, None, None] * np.eye(len(self.A)) - self.A
        states = np.linalg.solve(matrices, np.broadcast_to(self.B, (len(w), *self.B.shape)))
        return self.C @ states + self.D

    def to_control(self) -> Any:
        """The model as a `control.StateSpace`, with the same names, but "_" for ".", which it does not allow.

        Raises MissingExtraError if the package `control` is not installed.
        """
        if find_spec("control") is None:
            raise MissingExtraError("to_control() needs the package control: pip install 'zwang[control]'")
        control = import_module("control")

        def without_dots(names: Sequence[str]) -> list[str]:
            changed: list[str] = []
            for name in names:
                new = name.replace(".", "_")
                while new in changed or (new != name and new in names):
                    new += "_"
                changed.append(new)
            return changed

        return control.ss(
            self.A, self.B, self.C, self.D, 0 if self.step is None else self.step,
            states=without_dots(self.states), inputs=without_dots(self.inputs),
            outputs=without_dots(self.outputs),
        )  # fmt: skip


def numeric_linear_model(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike | None = None,
    control: npt.ArrayLike | None = None,
    *,
    step: float | None = None,
    integrator: str | None = None,
    activation: npt.ArrayLike | None = None,
    time: float = 0.0,
    states: Sequence[str] | None = None,
    inputs: Sequence[str] | None = None,
    outputs: Sequence[str] | None = None,
    params: Parameters | None = None,
) -> LinearModel:
    """The linear model in numbers; arguments, constraints and exceptions as for `zw.linearize`."""
    m = with_numbers(validation.checked_mechanism(mechanism), params)
    nv, nz, names = m.nv, len(activations(m)), control_names(m)
    configuration = validation.configuration(m, q)
    v, control, activation = validation.or_of_keyframe(m, q, v=v, control=control, activation=activation)
    velocity = np.zeros(nv) if v is None else validation.nv_vector(m, v, "v")
    u = validation.control_vector(m, {} if control is None else control)
    z = _vector(activation, nz, "activation")
    check_inertia(m, crba(m.tree, configuration))
    _check_satisfied(m, configuration, velocity, time)
    if step is None:
        _check_continuous(m)
    state = _LinearisedState(compiled_on_one_thread(m), configuration, velocity, u, z, time, step, integrator)
    found = state.derivatives()
    if not (np.isfinite(found.A).all() and np.isfinite(found.B).all()):
        raise SimulationError(
            "there is no linear model about this state: its accelerations are not determined, as the hard "
            "constraints contradict each other there, a joint moves no inertia, or the constraint solver "
            "fails; choose another state, or give the bodies inertia"
        )
    all_states = state_names(m)
    T, sizes = _admissible_states(m, configuration, velocity, time, nz)
    own = independent_states(T / sizes[:, None], m, all_states, states)
    T = T @ np.linalg.inv(T[own])
    columns = [number_of_name(name, names, "input") for name in (names if inputs is None else inputs)]
    wanted = [all_states[k] for k in own] if outputs is None else list(outputs)
    C, D, output_names = _outputs(state, wanted, all_states)
    return LinearModel(
        (found.A @ T)[own], found.B[np.ix_(own, columns)], C @ T, D[:, columns],
        tuple(all_states[k] for k in own), tuple(names[k] for k in columns), tuple(output_names),
        None if step is None else float(step), configuration, velocity, u, T, bool(found.switching),
        is_steady(
            lambda dt: state.moved(found, dt).reduced(own), m, velocity, state.accelerations(found), step
        ),
    )  # fmt: skip


class _LinearisedState(NamedTuple):
    """A state (q, v, z) with the control u at a time, and the step and integrator of a discrete model."""

    fast: CompiledMechanism
    q: np.ndarray
    v: np.ndarray
    u: np.ndarray
    z: np.ndarray
    time: float
    step: float | None
    integrator: str | None

    def derivatives(self) -> StateDerivatives | StepDerivatives:
        """Those of the whole state."""
        options: Any = {"activation": self.z, "time": self.time}
        if self.step is None:
            return self.fast.constrained_dynamics_derivatives(self.q, self.v, self.u, **options)
        options |= {"step": self.step, "integrator": self.integrator}
        return self.fast.step_derivatives(self.q, self.v, self.u, **options)

    def reduced(self, own: list[int]) -> np.ndarray:
        """S A T (n, n) for independent entries of the state."""
        T, _ = _admissible_states(self.fast.mechanism, self.q, self.v, self.time, len(self.z))
        return (self.derivatives().A @ T @ np.linalg.inv(T[own]))[own]

    def accelerations(self, by: StateDerivatives | StepDerivatives) -> np.ndarray:
        """The accelerations and the derivatives of the activations, of a step their means over it."""
        if isinstance(by, StateDerivatives):
            return np.concatenate([by.v_dot, by.z_dot])
        return np.concatenate([by.v - self.v, by.activation - self.z]) / self.step

    def moved(self, by: StateDerivatives | StepDerivatives, dt: float) -> _LinearisedState:
        """The state after dt [s] of its motion with constant rates; the constraints are closed there, as
        redundant ones would otherwise take freedom from it.
        """
        m, time = self.fast.mechanism, self.time + dt
        v_dot, z_dot = np.split(self.accelerations(by), [len(self.v)])
        q = integrate_configuration(m.tree, self.q, self.v + dt / 2 * v_dot, dt).astype(float)
        after = self._replace(q=q, v=self.v + dt * v_dot, z=self.z + dt * z_dot, time=time)
        if not hard_constraints(m):
            return after
        try:
            closed = assemble_state(m, after.q, after.v, time)
        except SolveError:  # as beyond a dead centre
            return after
        return after._replace(q=closed.q, v=closed.v)


def is_steady(
    moved: Callable[[float], np.ndarray],
    m: Mechanism,
    v: np.ndarray,
    rates: np.ndarray,
    step: float | None = None,
) -> bool:
    """Whether the diagonal blocks of A in block triangular form are constant along the motion of a state.

    They have the eigenvalues of A. Other entries may change, such as those of the heading in the velocity
    of a wheel. moved: A after a time [s] with constant rates. v (nv,): the velocities of the state. rates
    (n,): of these and of the activations.
    """
    sizes = np.ones(len(rates))
    sizes[: m.nv] = displacement_sizes(m)
    speed, rate = (float(np.abs(x).max(initial=0.0)) for x in (v / sizes[: m.nv], rates / sizes))
    if not speed and rate <= EQUILIBRIUM:
        return True
    if speed > REST * np.sqrt(rate * DISPLACEMENT):
        # errors of second order in dt cancel in the difference
        dt = DISPLACEMENT / max(1.0, speed)
        change = 2 * dt * speed
        return _is_constant(moved(-dt), moved(dt), change * STEADY + change * speed * (step or 0.0))
    # from rest A changes with the velocity, and to second order in dt; that of a step is 1 + step A
    dt = min(LONGEST, np.sqrt(2 * DISPLACEMENT / rate))
    now, displacement = moved(0.0), dt * dt * rate
    unit = np.eye(len(now)) * (step is not None)
    return all(_is_constant(now - unit, moved(t) - unit, displacement * STEADY) for t in (dt, -dt))


def _is_constant(A: np.ndarray, other: np.ndarray, tolerance: float) -> bool:
    """Whether the blocks that have the eigenvalues differ by no more than a share of the sizes of their rows,
    and rounding.
    """
    size = np.maximum(np.abs(A), np.abs(other))
    rounding = RANK * size.max(initial=0.0)
    _, block = connected_components(size > rounding, directed=True, connection="strong")
    same = block[:, None] == block
    scale = np.where(same, size, 0).max(axis=1, initial=0.0)
    change = np.where(same, np.abs(other - A), 0)
    return bool((change <= (tolerance * scale + rounding)[:, None]).all())


def _check_continuous(m: Mechanism) -> None:
    """Raises SimulationError for hard contacts, limits and friction, which act over a time step."""
    if has_hard_contacts(m) or has_hard_limits(m) or has_hard_friction(m) or coulomb_frictions(m):
        raise SimulationError(
            f"mechanism {m.name!r} has hard contacts, limits or friction, which act over a time step, so "
            "that it has no linear model in continuous time; give step=..., or give them a softness"
        )


def _check_satisfied(m: Mechanism, q: np.ndarray, v: np.ndarray, time: float) -> None:
    """Raises StateError, with a constraint's name, for a state that violates the hard constraints."""
    position, velocity = largest_violations(m, q, v, time)
    if position.relative > CONSISTENT:
        text = f"constraint {position.name!r} is violated by {position.amount:.3g} in this state"
    elif velocity.relative > CONSISTENT:
        text = f"the velocities of this state violate {velocity.name!r} by {velocity.amount:.3g}"
    else:
        return
    raise StateError(
        f"{text}, and a linear model describes motions that satisfy the constraints; start from "
        "zw.assemble(mechanism, q, v)"
    )


def _vector(values: Any, size: int, name: str) -> np.ndarray:
    """A vector (size,), zero where it is None."""
    return np.zeros(size) if values is None else validation.vector(values, size, name, name)


def state_names(m: Mechanism) -> list[str]:
    """The names of the entries of (dq, dv, dz). Raises DescriptionError for two entries of one name."""
    displacements, velocities = [], []
    for joint in m.joints:
        coordinates, speeds = m.coordinate_names[joint.q], m.speed_names[joint.v]
        for k, speed in enumerate(speeds):
            is_plain = k < joint.joint.nq - 4 or joint.joint.nq == joint.joint.nv
            displacements.append(coordinates[k] if is_plain else f"{speed}_angle")
            velocities.append(f"{speed}_dot" if speed in coordinates else speed)
    names = [*displacements, *velocities, *(f"{name} activation" for name in activations(m))]
    equal = next((name for name in names if names.count(name) > 1), None)
    if equal is not None:
        raise DescriptionError(
            f"two states of the linear model of {m.name!r} have the name {equal!r}: displacements are named "
            "after their coordinates, and velocities NAME_dot; rename the joint"
        )
    return names


def _admissible_states(
    m: Mechanism, q: np.ndarray, v: np.ndarray, t: float, nz: int
) -> tuple[np.ndarray, np.ndarray]:
    """A basis (N, n) of the states (dq, dv, dz) that satisfy the hard constraints to first order, and the
    sizes (N,) of deviations, relative to which it is orthonormal, so that the unit of length does not matter.
    """
    nv = m.nv
    if not hard_constraints(m):
        return np.eye(2 * nv + nz), np.ones(2 * nv + nz)
    displacements = displacement_sizes(m)
    sizes = np.array([*displacements, *displacements, *[1] * nz], dtype=float)
    A, C, by_q = (np.asarray(x, dtype=float) for x in constraint_gradients(m, q, v, t))
    G = np.block(
        [
            [C, np.zeros((len(C), nv + nz))],
            [by_q, A, np.zeros((len(A), nz))],
        ]
    )
    rows = all_velocity_level_rows(m, q, v, t)
    of_rows = np.array(row_sizes(m, hard_constraints(m), rows.A), dtype=float)
    violated = [k for k, position in enumerate(rows.position) if position is not None]
    scaled = G * sizes / np.concatenate([of_rows[violated], of_rows])[:, None]
    return sizes[:, None] * scipy.linalg.null_space(scaled, rcond=RANK), sizes


def constraint_gradients(m: Mechanism, q: Any, v: Any, t: Any) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A (k, nv) of all hard constraints, C (n, nv) of the holonomic ones, and the derivatives (k, nv) of
    A(q, t) v + a(q, t) by displacements dq; on any scalar.
    """
    if not hard_constraints(m):
        none = np.zeros((0, m.nv), int)
        return none, none, none
    rows = all_velocity_level_rows(m, q, v, t)
    C = rows.A[[k for k, position in enumerate(rows.position) if position is not None]]
    by_q = [_residual_rate(m, q, v, t, direction) for direction in np.eye(m.nv, dtype=int)]
    return rows.A, C, np.stack(by_q, axis=1)


def _residual_rate(m: Mechanism, q: Any, v: Any, t: Any, dq: np.ndarray) -> np.ndarray:
    """The derivative of A(q, t) v + a(q, t) along a displacement dq."""
    with tangents():
        moved = tangent_array(q, configuration_rate(m.tree, q, dq))
        A, a, _ = velocity_level_rows_at(m, moved, t)
        return np.array([parts(x)[1] for x in A @ v + a], dtype=object)


def independent_states(
    T: np.ndarray, m: Mechanism, names: list[str], chosen: Sequence[str] | None
) -> list[int]:
    """The numbers of the independent entries of the state. Raises DescriptionError.

    By default independent coordinates, then independent velocities, and all activations. Angles are preferred
    to slides: those of the base have directions fixed in the world, so that in a steady turn the model would
    change with the heading.
    """
    count, nv = T.shape[1], m.nv
    if chosen is None:
        if count == len(T):
            return list(range(count))
        weights = np.ones(nv)
        for link in m.tree.links:
            if link.joint.kind == "prismatic":
                weights[link.v] = SLIDE_WEIGHT
        held = T @ scipy.linalg.null_space(T[:nv], rcond=RANK)  # deviations of velocities alone
        coordinates = _independent_rows(T[:nv], count - held.shape[1], weights)
        velocities = _independent_rows(held[nv : 2 * nv], held.shape[1] - (len(T) - 2 * nv), weights)
        return [*coordinates, *(nv + k for k in velocities), *range(2 * nv, len(T))]
    own = [number_of_name(name, names, "state") for name in chosen]
    if len(own) != count or np.linalg.matrix_rank(T[own], tol=RANK) < count:
        raise DescriptionError(
            f"states: {len(own)} are given, and the constraints leave {count} free; give {count} that "
            "determine all others"
        )
    return own


def _independent_rows(T: np.ndarray, rank: int, weights: np.ndarray) -> list[int]:
    """The numbers of as many independent rows of T, preferably of large weights, by QR with pivoting."""
    order = scipy.linalg.qr((weights[:, None] * T).T, mode="r", pivoting=True)[-1]
    return sorted(int(k) for k in order[:rank])


def _outputs(
    state: _LinearisedState, wanted: list[str], states: list[str]
) -> tuple[np.ndarray, np.ndarray, list[str]]:
    """The derivatives (p, N) and (p, nu) of the outputs by the whole state and all controls, and their
    names.
    """
    fast, nu = state.fast, len(state.u)
    m, chosen = fast.mechanism, linear_outputs(fast.mechanism, states, wanted)
    sensed = None
    if any(output.sensors for output in chosen):
        sensed = fast.sensor_derivatives(
            state.q, state.v, state.u, state.z, state.time, step=state.step, integrator=state.integrator
        )
    C, D = [np.zeros((0, len(states)))], [np.zeros((0, nu))]
    for output in chosen:
        by_control = np.zeros((len(output.names), nu))
        if output.sensors and sensed is not None:
            rows = list(output.sensors)
            by_state, by_control = sensed.C[rows], sensed.D[rows]
        elif output.frame:
            J = frame_jacobian(m, state.q, output.frame)[list(output.axes)]
            by_state = np.hstack([J, np.zeros((len(J), len(states) - m.nv))])
        else:
            by_state = np.eye(len(states))[list(output.states)]
        C.append(by_state)
        D.append(by_control)
    return np.concatenate(C), np.concatenate(D), [name for output in chosen for name in output.names]


def number_of_name(name: str, names: Sequence[str], what: str) -> int:
    if name not in names:
        raise UnknownNameError(what, name, names)
    return list(names).index(name)

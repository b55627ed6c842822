"""Statics: joint torques of wrenches and gravity, payloads, and equilibria by virtual work.

In an equilibrium the virtual work vanishes: delta W = Q . delta q = 0 for every virtual displacement that
joint couplings and loop constraints allow. Q are the generalised forces of gravity, springs, loads and
torques.
Source: Fu, ME331 Robot Modeling and Control, Section 11, "Holonomic Constraints and Virtual Work".
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eig

from zwang.algebra.dual_control_flow import parts, tangent_array, tangents
from zwang.api.arguments import validation
from zwang.deprecation import renamed_attributes
from zwang.dynamics.crba import crba
from zwang.dynamics.generalised_forces import passive_forces
from zwang.dynamics.rnea import bias_forces
from zwang.errors import DescriptionError, ShapeError, StateError
from zwang.kinematics.configuration import configuration_rate
from zwang.kinematics.jacobians import frame_jacobian, placement_jacobian
from zwang.kinematics.poses import link_poses
from zwang.mechanism.lengths import (
    displacement_sizes,
    displacement_tolerances,
    largest_length,
    translations,
)
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Placement
from zwang.mechanism.type_validation import validated_arguments
from zwang.robot.independent_coordinates import coordinates_for
from zwang.robot.inverse_kinematics.levenberg_marquardt import (
    LoopConstraints,
    Problem,
    error_jacobian,
)
from zwang.robot.limited_motors import LimitedMotors
from zwang.robot.loop_constraints import loop_constraints_for
from zwang.robot.manipulability import ManipulabilityEllipsoid
from zwang.robot.velocity_transformation import rows_of_loops

FrameLoad = tuple[str, Sequence[float]]

LARGEST_ROTATION = 0.3  # [rad] of one iteration towards an equilibrium; translations by their sizes at most
STIFFNESS_ROUNDING = 1e-10  # of the stiffness, relative to its terms, and to weight times lever
EIGENVALUE_ROUNDING = 1e-14  # relative to the largest eigenvalue
RANK = 1e-9
CLOSURE_TOLERANCE = 1e-10  # of the sizes of the rows
LARGEST_VIOLATION = 1e-6  # of couplings and loops at a given configuration, by size
LEAST_LEVER = 1e-12  # [m] forces with smaller moments do not load the motors


@validated_arguments()
def joint_torques(mechanism: Mechanism, q: ArrayLike, frame: str, wrench: ArrayLike) -> np.ndarray:
    """Generalised forces J^T w (nv,) [N m, N] of a wrench on a frame.

    q (nq,): the configuration. frame: the name of a frame or body. wrench: (force, torque) (6,) [N, N m] at
    the frame's origin in world axes, or a force (3,). Actuators balance the wrench with the opposite torques.
    They are those of all joints of the tree, without forces in joint couplings and loops: B^T J^T w are the
    generalised forces along the displacements v = B u that these allow.
    Raises UnknownNameError and ShapeError.
    """
    m = validation.numeric_mechanism(mechanism)
    return _floats(frame_jacobian(m.tree, validation.configuration(m, q), frame)).T @ _wrench(wrench)


@validated_arguments()
def gravity_torques(mechanism: Mechanism, q: ArrayLike) -> np.ndarray:
    """Joint torques (nv,) [N m, N] of the tree that balance gravity at the configuration q (nq,), see
    `holding_torques`.
    """
    m = validation.numeric_mechanism(mechanism)
    return _floats(bias_forces(m.tree, validation.configuration(m, q), np.zeros(m.nv)))


@validated_arguments()
def holding_torques(mechanism: Mechanism, q: ArrayLike, loads: Sequence[FrameLoad] = ()) -> np.ndarray:
    """Joint torques (nv,) [N m, N] that balance gravity, springs and loads at the configuration q (nq,).

    loads: pairs (frame, wrench), the wrench as in `joint_torques`.

    They are those of all joints of the tree, and need no forces in joint couplings and loops. Where some of
    the joints are passive, `zw.inverse_dynamics` with `actuated` gives the forces of the motors, without
    loads, and `payload` what the motors can hold.
    """
    m = validation.numeric_mechanism(mechanism)
    q = validation.configuration(m, q)
    return -_floats(_applied_forces(m, q, loads, np.zeros(m.nv))).sum(axis=0)


@renamed_attributes(
    gravity="gravity_torques",
    limits="torque_limits",
    holds_itself="supports_own_weight",
    largest="largest_force",
)
@dataclass(frozen=True)
class Payload:
    """Forces on a frame that the joint torques can balance in addition to the mechanism's own weight.

    jacobian (3, nv): of the frame's position. gravity_torques (nv,): torques of all joints of the tree that
    balance the weight and springs. torque_limits (nv,): largest torques; 0 for passive joints, infinite for
    joints that hold any torque. velocity_transformation (nv, k): v = B u, whose columns are the displacements
    that joint couplings and loops allow.

    By virtual work torques tau balance a force f if B^T (tau + J^T f - gravity_torques) = 0.
    """

    jacobian: np.ndarray
    gravity_torques: np.ndarray
    torque_limits: np.ndarray
    velocity_transformation: np.ndarray

    @property
    def supports_own_weight(self) -> bool:
        """Whether the torques can balance the mechanism's own weight."""
        return self._weight is not None

    @property
    def ellipsoid(self) -> ManipulabilityEllipsoid:
        """An ellipsoid of forces [N] that can be balanced: sum (tau / r)^2 <= 1, r the remaining torques.

        tau are the torques that balance the force. The remaining torque of a joint is its limit minus the
        absolute torque that balances the weight. The length is 0 along axes in which no force can be
        balanced, and infinite where no limited motor is loaded.
        """
        if self._weight is None:
            return ManipulabilityEllipsoid(np.eye(3), np.zeros(3))
        remaining = self.torque_limits.copy()
        remaining[self._motors.moves] -= np.abs(self._weight)
        motors = LimitedMotors.of(self.velocity_transformation, np.maximum(remaining, 0))
        x, axes = motors.shares(-self.jacobian.T, self._largest_lever)
        count = x.shape[1]
        _, s, Vt = np.linalg.svd(x)
        s = np.concatenate([s, np.zeros(count)])[:count]
        with np.errstate(divide="ignore"):
            lengths = np.where(s > RANK * max(s.max(initial=0), 1e-300), 1 / s, np.inf)
        axes = np.concatenate([axes[:, :count] @ Vt[::-1].T, axes[:, count:]], axis=1)
        return ManipulabilityEllipsoid(axes, np.concatenate([lengths[::-1], np.zeros(3 - count)]))

    def largest_force(self, direction: ArrayLike) -> float:
        """The largest force [N] along a direction (3,) that can be balanced.

        There motors reach their torque limits; redundant ones share the load as their limits allow.

        It is 0 where the torques cannot balance the weight, or no motor holds what the force moves, and
        infinite where no limited motor is loaded. Raises ShapeError, or StateError for a direction of length
        zero.
        """
        d = validation.vector(direction, 3, "direction", "a direction in world axes")
        if not d.any():
            raise StateError("direction is zero; give a direction (3,) of any length")
        load = self._motors.balancing(-self.jacobian.T @ (d / np.linalg.norm(d)), self._largest_lever)
        if self._weight is None or load is None:
            return 0.0
        if np.abs(load).max(initial=0) <= LEAST_LEVER:
            return np.inf
        return self._motors.largest_factor(self._weight, load)

    @property
    def _largest_lever(self) -> float:
        return max(np.abs(self.jacobian).max(initial=0), LEAST_LEVER)

    @cached_property
    def _motors(self) -> LimitedMotors:
        return LimitedMotors.of(self.velocity_transformation, self.torque_limits)

    @cached_property
    def _weight(self) -> np.ndarray | None:
        """The torques of the limited motors that balance the weight; None if they cannot."""
        # rounding where there is no weight is small beside the weakest motor
        weakest = min(self._motors.limits, default=0.0)
        scale = max(np.abs(self.gravity_torques).max(initial=0), weakest)
        tau = self._motors.balancing(self.gravity_torques, scale)
        return None if tau is None else self._motors.least_used(tau)


@validated_arguments()
def payload(
    mechanism: Mechanism, q: ArrayLike, frame: str, torque_limits: ArrayLike | None = None
) -> Payload:
    """The forces on a frame that limited joint torques can balance at the configuration q (nq,), by virtual
    work along the displacements that joint couplings and loops allow.

    frame: the name of a frame or body. torque_limits (nv,) [N m, N]: by default each joint's `effort_limit`.
    Where there is none, it is 0 for a joint that couplings or loops keep from moving alone, which is passive,
    and infinite for others. A dictionary by name replaces some of these; give 0 for joints without a motor.

    Raises DescriptionError if there are no torque limits at all, and for a constraint of velocities or one
    that depends on the time; StateError for negative limits, and where q violates a coupling, a loop or a
    formula by more than 1e-6, relative to the size of its row (see `zwang.constraint.row_sizes`).
    """
    m = validation.numeric_mechanism(mechanism)
    q = validation.configuration(m, q)
    J = _floats(frame_jacobian(m.tree, q, frame))[:3]
    B = _StaticSystem.of(m, (), np.zeros(m.nv)).allowed(q)
    return Payload(J, holding_torques(m, q), _torque_limits(m, B, torque_limits), B)


@renamed_attributes(motions="velocity_transformation")
@dataclass(frozen=True)
class Equilibrium:
    """An equilibrium: a configuration q (nq,) at which the virtual work vanishes.

    converged: whether `residual` [N m, N], the largest remaining generalised force, is within the tolerance.
    stable: whether small vibrations, without damping, stay small: the omega^2 of K x = omega^2 M x are real
    and positive. With a potential, that is its strict minimum. False if one is negative (divergence) or a
    pair is complex (flutter), None if the stiffness does not decide, to 1e-10 of its terms: if it is
    singular, or, without a potential, if two omega^2 are equal.
    stiffness (k, k): K, derivative of the generalised forces along the allowed displacements, with opposite
    sign. It is not symmetric where forces have no potential, such as forces in the axes of a body, and
    moments on bodies that turn about several axes. velocity_transformation (nv, k): v = B u, whose columns
    are the allowed displacements.
    frequencies (k,): natural frequencies [rad/s] of small vibrations in the order of Re omega^2, 0 for
    neutral modes and nan for unstable ones.
    iterations: their number.
    """

    q: np.ndarray
    converged: bool
    residual: float
    stable: bool | None
    stiffness: np.ndarray
    velocity_transformation: np.ndarray
    frequencies: np.ndarray
    iterations: int


@validated_arguments()
def equilibrium(
    mechanism: Mechanism,
    q0: ArrayLike | None = None,
    *,
    loads: Sequence[FrameLoad] = (),
    torques: ArrayLike | None = None,
    tolerance: float = 1e-9,
    iterations: int = 200,
) -> Equilibrium:
    """Equilibrium near q0 under gravity, springs, loads and torques, by a modified Newton method.

    q0 (nq,): the start, by default the home configuration. loads: pairs (frame, wrench), the wrench (6,) [N,
    N m] in world axes. torques (nv,) [N m, N]: constant generalised forces, default 0. tolerance [N m, N]: of
    the largest remaining generalised force, default 1e-9. iterations: their largest number, default 200.

    The eigenvalues of the stiffness are replaced by their absolute values, so that each step decreases the
    potential and leads away from unstable equilibria, unless the start is one. Forces without a potential
    may act; the steps then are Newton's where the eigenvalues have positive real parts. Joint limits,
    friction and contacts do not act; loops, couplings and `Holonomic` constraints do, unless the description
    or the options switch them off.
    Raises DescriptionError if the loops do not close near the start, and for a constraint of velocities or
    one that depends on the time.
    Source: Fu, ME331, Section 11, "Holonomic Constraints and Virtual Work"; Dauphin et al. (2014) for the
    steps.
    """
    m = validation.numeric_mechanism(mechanism)
    q = validation.configuration(m, q0 if q0 is not None else (m.home or m.neutral))
    tau = np.zeros(m.nv) if torques is None else validation.nv_vector(m, torques, "torques")
    if iterations < 0 or not tolerance > 0:
        raise DescriptionError(
            f"iterations is {iterations} and tolerance is {tolerance}; give a number of iterations that "
            "is not negative and a positive tolerance"
        )
    system = _StaticSystem.of(m, loads, tau)
    q = system.closed(_floats(system.problem.coordinates.completed(q)))
    for iteration in range(iterations + 1):
        at = system.linearised(q)
        residual = float(np.abs(at.force).max(initial=0.0))
        if residual <= tolerance or iteration == iterations or not np.isfinite(residual):
            break
        step = at.N @ _newton_step(at.K, at.force)
        step *= min(1.0, 1 / max(np.abs(step / system.largest_step(q)).max(), 1e-300))
        q = system.closed(system.stepped(q, step))
    return _equilibrium(system, q, at, residual, tolerance, iteration)


def _newton_step(K: np.ndarray, force: np.ndarray) -> np.ndarray:
    """|K|^-1 f by the symmetric part of K, or K^-1 f where forces have no potential and all eigenvalues of K
    have positive real parts.
    """
    values, axes = np.linalg.eigh(_symmetric(K))
    least = 1e-6 * max(np.abs(values).max(), 1e-12)
    # with a potential, K - K^T comes from the force on rotations of ball and free joints, and is no larger
    if np.abs(K - K.T).max() > np.abs(force).max() and np.linalg.eigvals(K).real.min() > least:
        return np.linalg.solve(K, force)
    return axes @ ((axes.T @ force) / np.maximum(np.abs(values), least))


class _LinearisedForces(NamedTuple):
    """N (free, k): the allowed displacements. force (k,): N^T F. K (k, k): the stiffness. terms (k, k): the
    sum of the absolute values of its terms, those of gravity, loads, springs and loops.
    """

    N: np.ndarray
    force: np.ndarray
    K: np.ndarray
    terms: np.ndarray


@dataclass(frozen=True)
class _StaticSystem:
    """A mechanism with its loads and torques, in the independent velocities u of its joint couplings."""

    m: Mechanism
    loads: Sequence[FrameLoad]
    torques: np.ndarray
    problem: Problem

    @staticmethod
    def of(m: Mechanism, loads: Sequence[FrameLoad], torques: np.ndarray) -> _StaticSystem:
        names = tuple(body.name for body in m.bodies)
        loops: LoopConstraints | None = loop_constraints_for(m, names)[0]
        return _StaticSystem(
            m,
            loads,
            torques,
            Problem((), coordinates_for(m, names), float(largest_length(m)), loops, bounded=False),
        )

    def stepped(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        """q after a displacement u of the independent coordinates."""
        return _floats(self.problem.coordinates.stepped(q, u, bounded=False))

    def largest_step(self, q: np.ndarray) -> np.ndarray:
        """The largest displacement (free,) of an iteration."""
        free = list(self.problem.coordinates.free)
        sizes = np.array(displacement_sizes(self.m), dtype=float)
        slides = translations(self.m.tree)
        sizes[np.delete(np.arange(self.m.nv), list(slides))] = LARGEST_ROTATION
        for k, i in slides.items():
            sizes[k] = max(sizes[k], abs(q[i]))
        return sizes[free]

    def B(self, q: Any) -> np.ndarray:
        """The velocity transformation (nv, free) of the joint couplings; on any scalar."""
        return self.problem.coordinates.basis(q)

    def forces(self, q: Any) -> np.ndarray:
        """See `_applied_forces`."""
        return _applied_forces(self.m, q, self.loads, self.torques)

    def loop_forces(self, q: Any, lam: np.ndarray) -> np.ndarray:
        """A^T lambda (free,); on any scalar."""
        if self.problem.loops is None:
            return np.zeros(len(self.problem.coordinates.free))
        return error_jacobian(self.problem, link_poses(self.m.tree, q), q).T @ lam

    def allowed(self, q: np.ndarray) -> np.ndarray:
        """The displacements (nv, k) that couplings and loops allow, in columns. Raises StateError where q
        violates these.
        """
        rows = rows_of_loops(self.problem, q)
        deviation = np.abs(q - _floats(self.problem.coordinates.completed(q)))
        factors, tolerances = np.ones(len(q)), displacement_tolerances(self.m, q)
        for k, i in translations(self.m.tree).items():
            factors[i] = tolerances[k]
        if max(rows.violation, (deviation / factors).max(initial=0)) > LARGEST_VIOLATION:
            violation = max(deviation.max(initial=0), np.abs(rows.g).max(initial=0))
            raise StateError(
                f"q violates a coupling, loop or formula of mechanism {self.m.name!r} by {violation:.3g} m "
                "or rad; satisfy it first, with solve_ik or equilibrium, or a hard one with assemble"
            )
        return _floats(self.B(q)) @ rows.null_space

    def closed(self, q: np.ndarray) -> np.ndarray:
        """q with closed loops, by Gauss-Newton iterations. Raises DescriptionError if they do not close."""
        for _ in range(50):
            rows = rows_of_loops(self.problem, q)
            if rows.violation < CLOSURE_TOLERANCE:
                return q
            if not np.isfinite(rows.A).all():  # singular, as the distance of two coincident points
                break
            q = self.stepped(q, rows.correction)
        raise DescriptionError(
            f"the constraints of mechanism {self.m.name!r} are not satisfied near the start; give another q0"
        )

    def linearised(self, q: np.ndarray) -> _LinearisedForces:
        """The forces along the allowed displacements, and their derivatives by dual numbers."""
        rows, B = rows_of_loops(self.problem, q), _floats(self.B(q))
        F, N = B.T @ _floats(self.forces(q)).sum(axis=0), rows.null_space
        # the loop forces in equilibrium, A^T lambda = -F
        lam = np.linalg.lstsq(rows.A.T, -F, rcond=RANK)[0] if len(rows.A) else np.zeros(0)

        def balance(x: Any) -> np.ndarray:
            B = self.B(x)
            return np.array([*(B.T @ f for f in self.forces(x)), self.loop_forces(x, lam)])

        terms = [self._derivative(balance, q, B @ n) for n in N.T]
        K = np.stack(terms, axis=-1) if terms else np.zeros((4, len(F), 0))  # (4, free, k)
        return _LinearisedForces(N, N.T @ F, -N.T @ K.sum(axis=0), np.abs(N).T @ np.abs(K).sum(axis=0))

    def _derivative(self, function: Callable[[Any], np.ndarray], q: np.ndarray, v: np.ndarray) -> np.ndarray:
        """The derivative of an array function of the configuration along the velocities v (nv,)."""
        with tangents():
            found = function(tangent_array(q, configuration_rate(self.m.tree, q, v)))
            return np.vectorize(lambda x: float(parts(x)[1]), otypes=[float])(found)


def _equilibrium(
    system: _StaticSystem,
    q: np.ndarray,
    at: _LinearisedForces,
    residual: float,
    tolerance: float,
    iterations: int,
) -> Equilibrium:
    """The equilibrium with its stability, and its natural frequencies from K x = omega^2 M x."""
    B, K = _floats(system.B(q)) @ at.N, at.K
    M = B.T @ _floats(crba(system.m.tree, q)) @ B
    L = np.linalg.inv(np.linalg.cholesky(M)) if len(M) else M
    E = STIFFNESS_ROUNDING * (at.terms + _weight_terms(system, q, B))
    if (np.abs(K - K.T) <= E + E.T + residual).all():
        K = _symmetric(K)
        squares, modes = np.linalg.eigh(L @ K @ L.T)
        errors = _errors_of_squares(E, squares, L.T @ modes, L.T @ modes)
        coincident = False
    else:
        squares, modes, left, condition = _modes_without_potential(L @ K @ L.T)
        errors = _errors_of_squares(E, squares, L.T @ modes, L.T @ left)
        # the error of a double omega^2 is the square root of that of the matrix
        scale = max(np.abs(squares).max(), np.finfo(float).tiny)
        errors = errors / np.maximum(condition, np.sqrt(errors / scale))
        apart = np.abs(squares[:, None] - squares) + np.diag(np.full(len(squares), np.inf))
        coincident = bool((apart <= errors[:, None] + errors).any())
    neutral = np.abs(squares) <= errors
    unstable = (np.real(squares) < -errors) | (np.abs(np.imag(squares)) > errors)
    stable = False if unstable.any() else None if neutral.any() or coincident else True
    frequencies = np.sqrt(np.where(unstable, np.nan, np.where(neutral, 0.0, np.abs(np.real(squares)))))
    return Equilibrium(q, residual <= tolerance, residual, stable, K, B, frequencies, iterations)


def _symmetric(K: np.ndarray) -> np.ndarray:
    return (K + K.T) / 2


def _modes_without_potential(A: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The eigenvalues (k,) of A in the order of their real parts, right and left eigenvectors x, y of length
    1 in columns, and |y^H x| (k,), to whose inverse the errors of the eigenvalues are proportional.

    Source: Golub, Van Loan, Matrix Computations (2013), Section 7.2.2.
    """
    squares, left, modes = (np.asarray(x, dtype=complex) for x in eig(A, left=True, right=True))
    order = np.lexsort((np.imag(squares), np.real(squares)))
    squares, left, modes = squares[order], left[:, order], modes[:, order]
    return squares, modes, left, np.abs((left.conj() * modes).sum(axis=0))


def _errors_of_squares(E: np.ndarray, squares: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """Bounds (k,) of the errors of omega^2 = y^T K x, for bounds E (k, k) of the errors of K and modes in the
    columns of x and y. A stiff mode leaves the errors of soft ones as they are.
    """
    of_stiffness = ((E @ np.abs(x)) * np.abs(y)).sum(axis=0)
    return of_stiffness + EIGENVALUE_ROUNDING * np.abs(squares).max(initial=0.0)


def _weight_terms(system: _StaticSystem, q: np.ndarray, B: np.ndarray) -> np.ndarray:
    """The stiffness (k, k) of the weights if every lever turned with every displacement in the columns of B:
    a bound of the terms that cancel in the stiffness of gravity.
    """
    m, poses, gravity = system.m, link_poses(system.m.tree, q), np.linalg.norm(_floats(system.m.gravity))
    levers = np.zeros(m.nv)
    for body in m.bodies:
        base = m.tree.placement(body.name)
        centre = Placement(base.link, base.R, base.p + base.R @ np.array(body.com))
        J = _floats(placement_jacobian(m.tree, poses, centre))[:3]
        levers = levers + float(body.mass) * gravity * np.linalg.norm(J, axis=0)
    turns = (np.abs(B) / np.array(displacement_sizes(m), dtype=float)[:, None]).max(axis=0, initial=0)
    return np.outer(np.abs(B).T @ levers, turns)


def _applied_forces(m: Mechanism, q: Any, loads: Sequence[FrameLoad], torques: np.ndarray) -> np.ndarray:
    """The generalised forces (3, nv) at rest of gravity, of torques and loads, and of springs; on any
    scalar.
    """
    rest, loaded = np.zeros(m.nv), torques
    for frame, wrench in loads:
        loaded = loaded + frame_jacobian(m.tree, q, frame).T @ _wrench(wrench)
    return np.array([-bias_forces(m.tree, q, rest), loaded, passive_forces(m, q, rest)])


def _wrench(value: ArrayLike) -> np.ndarray:
    """A wrench (6,) from a wrench or a force (3,). Raises ShapeError for another shape."""
    array = validation.real_values(value, "a wrench")
    if array.shape == (3,):
        return np.concatenate([array, np.zeros(3)])
    if array.shape != (6,):
        raise ShapeError(f"a wrench must be (force, torque) (6,) or a force (3,); its shape is {array.shape}")
    return array


def _torque_limits(m: Mechanism, B: np.ndarray, given: ArrayLike | None) -> np.ndarray:
    """The given torque limits (nv,), or the effort limits of the joints; where there are none, infinite for
    joints that move alone by a displacement B u, and 0 for others.
    """
    efforts = np.full(m.nv, np.inf)
    by_others = np.linalg.norm(np.eye(m.nv) - B @ np.linalg.pinv(B), axis=0) > LARGEST_VIOLATION
    for index in m.joints:
        if by_others[index.v].any():
            efforts[index.v] = 0
        effort = getattr(index.joint, "effort_limit", None)
        if effort is not None:
            efforts[index.v] = float(effort)
    if given is None:
        if all(getattr(index.joint, "effort_limit", None) is None for index in m.joints):
            raise DescriptionError(
                f"no joint of mechanism {m.name!r} has an effort_limit; give torque_limits (nv,)"
            )
        return efforts
    named = validation.values_by_name(given, efforts, m.speed_names, "speed", "torque_limits")
    limits = validation.real_values(named, "torque_limits")
    if limits.shape != (m.nv,):
        raise ShapeError(
            f"torque_limits must have the shape ({m.nv},) (nv of mechanism {m.name!r}); its shape is "
            f"{limits.shape}"
        )
    if not (limits >= 0).all():
        k = int(np.flatnonzero(~(limits >= 0))[0])
        raise StateError(
            f"torque_limits[{k}] is {limits[k]}; give the largest absolute torque, infinite where there is "
            "no limit"
        )
    return limits


def _floats(array: Any) -> np.ndarray:
    return np.array(array, dtype=float)

"""Forces at rest: joint torques of wrenches and of gravity, payloads, and equilibria by virtual work.

At rest all virtual work vanishes: delta W = Q . delta q = 0 for every displacement that the couples and loops allow, with Q the
generalised forces of gravity, springs, loads and torques. Source: seed 004, Holonomic Constraints and Virtual Work.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.api import validation
from zwang.dynamics.crba import crba
from zwang.dynamics.generalised_forces import passive_forces
from zwang.dynamics.rnea import bias_forces
from zwang.errors import DescriptionError, ShapeError
from zwang.kinematics.jacobians import frame_jacobian
from zwang.kinematics.poses import link_poses
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.independent_coordinates import coordinates_for
from zwang.robot.levenberg_marquardt import LoopConstraints, Problem, errors_of, rows_of
from zwang.robot.loop_constraints import loop_constraints_for
from zwang.robot.manipulability import ManipulabilityEllipsoid
from zwang.robot.velocity_transformation import null_space

Load = tuple[str, Sequence[float]]

STEP = 1e-6  # of central differences [rad, m]
LARGEST_STEP = 0.3  # of one turn towards an equilibrium [rad, m]
RANK = 1e-9
CLOSED = 1e-10


@checked_arguments()
def joint_torques(mechanism: Mechanism, q: Any, frame: str, wrench: Any) -> np.ndarray:
    """J^T w (nv,) [N m, N]: what a wrench (force, torque) (6,) on a frame's origin, in world axes, does at the joints.

    A force (3,) alone is a wrench without torque. Actuators that hold against it give the opposite. Raises ShapeError.
    """
    m = validation.numeric_mechanism(mechanism)
    return _floats(frame_jacobian(m.tree, validation.configuration(m, q), frame)).T @ _wrench(wrench)


@checked_arguments()
def gravity_torques(mechanism: Mechanism, q: Any) -> np.ndarray:
    """The torques (nv,) [N m, N] that hold the mechanism against its own weight at q."""
    m = validation.numeric_mechanism(mechanism)
    return _floats(bias_forces(m.tree, validation.configuration(m, q), np.zeros(m.nv)))


@checked_arguments()
def holding_torques(mechanism: Mechanism, q: Any, loads: Sequence[Load] = ()) -> np.ndarray:
    """The torques (nv,) [N m, N] that hold the mechanism at q against its weight, springs, and loads (frame, wrench)."""
    m = validation.numeric_mechanism(mechanism)
    return -_generalised(m, validation.configuration(m, q), loads, np.zeros(m.nv))


@dataclass(frozen=True)
class Payload:
    """Which forces on a frame the joints can hold at q, besides the mechanism's own weight.

    jacobian (3, nv) of the frame's position; gravity (nv,): torques that hold the weight; limits (nv,): of the torques.
    """

    jacobian: np.ndarray
    gravity: np.ndarray
    limits: np.ndarray

    @property
    def supports_own_weight(self) -> bool:
        """Whether the torques suffice for the mechanism's own weight."""
        return bool((np.abs(self.gravity) <= self.limits).all())

    @property
    def ellipsoid(self) -> ManipulabilityEllipsoid:
        """Forces [N] that can surely be held: the torque that is spare at each joint, sum (J^T f / spare)^2 <= 1."""
        spare = np.maximum(self.limits - np.abs(self.gravity), 0)
        bounded = np.isfinite(spare)
        with np.errstate(divide="ignore", invalid="ignore"):
            A = np.where(bounded[:, None], self.jacobian.T / spare[:, None], 0.0)
        if not np.isfinite(A).all():
            return ManipulabilityEllipsoid(np.eye(3), np.zeros(3))
        _, s, Vt = np.linalg.svd(A)
        s = np.concatenate([s, np.zeros(3 - len(s))])
        with np.errstate(divide="ignore"):
            lengths = np.where(s > RANK * max(s[0], 1e-300), 1 / s, np.inf)
        return ManipulabilityEllipsoid(Vt[::-1].T, lengths[::-1])

    def largest(self, direction: Any) -> float:
        """The largest force [N] along a direction (3,) that can be held, exactly: the first joint that reaches its limit."""
        d = validation.array(direction, "direction")
        a = self.jacobian.T @ (d / np.linalg.norm(d))
        if not self.supports_own_weight:
            return 0.0
        with np.errstate(divide="ignore", invalid="ignore"):
            room = np.where(a > 0, self.limits + self.gravity, self.limits - self.gravity) / np.abs(a)
        return float(np.min(np.where(np.abs(a) > 1e-12, room, np.inf)))


@checked_arguments()
def payload(mechanism: Mechanism, q: Any, frame: str, torque_limits: Any = None) -> Payload:
    """Which forces on a frame can be held at q with torques (nv,) [N m, N] up to `torque_limits`.

    By default the joints' `effort_limit`, infinite where there is none. Raises DescriptionError if no joint has one.
    """
    m = validation.numeric_mechanism(mechanism)
    q = validation.configuration(m, q)
    limits = _effort_limits(m) if torque_limits is None else validation.speeds(m, torque_limits, "torque_limits")
    J = _floats(frame_jacobian(m.tree, q, frame))[:3]
    return Payload(J, holding_torques(m, q), limits)


@dataclass(frozen=True)
class Equilibrium:
    """A configuration q (nq,) at which the virtual work vanishes, found from a start.

    converged: whether the largest generalised force left, `residual` [N m, N], is within the tolerance. stiffness (k, k): how the forces
    push back along the motions that couples and loops allow, in the columns of `motions` (nv, k). stable: True if they
    do along all of these, False if along one they push away, None if along one there is no force to tell.
    frequencies (k,): of small vibrations [rad/s], nan where there are none. forces: of the loops, per row.
    """

    q: np.ndarray
    converged: bool
    residual: float
    stable: bool | None
    stiffness: np.ndarray
    motions: np.ndarray
    frequencies: np.ndarray
    iterations: int


@checked_arguments()
def equilibrium(
    mechanism: Mechanism,
    q0: Any = None,
    *,
    loads: Sequence[Load] = (),
    torques: Any = None,
    tolerance: float = 1e-9,
    iterations: int = 200,
) -> Equilibrium:
    """The equilibrium near q0 (by default home) under weight, springs, loads (frame, wrench in world axes) and torques (nv,).

    By Newton's steps on the stiffness with its eigenvalues made positive, which go downhill, away from unstable equilibria
    unless they start in one. Limits, friction and contacts do not act. Source: seed 004; Dauphin et al. (2014) for
    the steps.
    """
    m = validation.numeric_mechanism(mechanism)
    q = validation.configuration(m, q0 if q0 is not None else (m.home or m.neutral))
    tau = np.zeros(m.nv) if torques is None else validation.speeds(m, torques, "torques")
    if iterations < 0 or not tolerance > 0:
        raise DescriptionError(
            f"iterations is {iterations} and tolerance {tolerance}; the one must not be negative, the other positive"
        )
    body = _Body.of(m, loads, tau)
    q = body.closed(_floats(body.problem.coordinates.completed(q)))
    for turn in range(iterations + 1):
        N, force, K = body.state(q)
        residual = float(np.abs(force).max()) if len(force) else 0.0
        if residual <= tolerance or turn == iterations or not np.isfinite(residual):
            break
        values, axes = np.linalg.eigh(K)
        firm = np.maximum(np.abs(values), 1e-6 * max(np.abs(values).max(), 1e-12))
        step = N @ (axes @ ((axes.T @ force) / firm))
        step *= min(1.0, LARGEST_STEP / max(np.abs(step).max(), 1e-300))
        q = body.closed(body.moved(q, step))
    return _judged(body, q, residual, tolerance, N, K, turn)


@dataclass(frozen=True)
class _Body:
    """A mechanism with its loads and torques, in the speeds u that its couples leave free."""

    m: Mechanism
    loads: Sequence[Load]
    torques: np.ndarray
    problem: Problem

    @staticmethod
    def of(m: Mechanism, loads: Sequence[Load], torques: np.ndarray) -> _Body:
        names = tuple(body.name for body in m.bodies)
        loops: LoopConstraints | None = loop_constraints_for(m, names)[0]
        return _Body(m, loads, torques, Problem((), coordinates_for(m, names), 1.0, loops, bounded=False))

    def moved(self, q: np.ndarray, u: np.ndarray) -> np.ndarray:
        return _floats(self.problem.coordinates.stepped(q, u, bounded=False))

    def B(self, q: np.ndarray) -> np.ndarray:
        return _floats(self.problem.coordinates.columns(np.eye(self.m.nv), q))

    def force(self, q: np.ndarray) -> np.ndarray:
        """B^T Q."""
        return self.B(q).T @ _generalised(self.m, q, self.loads, self.torques)

    def loops(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """How far the loops are from closed, and the derivative of that."""
        free = len(self.problem.coordinates.free)
        if self.problem.loops is None:
            return np.zeros(0), np.zeros((0, free))
        poses = link_poses(self.m.tree, q)
        return -_floats(errors_of(self.problem, poses, q, ()).e), _floats(rows_of(self.problem, poses, q))

    def closed(self, q: np.ndarray) -> np.ndarray:
        """q with its loops closed, by Gauss and Newton. Raises DescriptionError if they do not close."""
        for _ in range(50):
            g, A = self.loops(q)
            if not len(g) or np.abs(g).max() < CLOSED:
                return q
            q = self.moved(q, -np.linalg.pinv(A, rcond=RANK) @ g)
        raise DescriptionError(
            f"the loops of mechanism {self.m.name!r} do not close near the start; give another q0"
        )

    def state(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The motions N that the loops allow, the force N^T B^T Q along them, and the stiffness."""
        _, A = self.loops(q)
        F = self.force(q)
        N = null_space(A)
        lam = np.linalg.lstsq(A.T, -F, rcond=RANK)[0] if len(A) else np.zeros(0)

        def balance(u: np.ndarray) -> np.ndarray:
            x = self.moved(q, u)
            return self.force(x) + self.loops(x)[1].T @ lam

        columns = [(balance(STEP * n) - balance(-STEP * n)) / (2 * STEP) for n in N.T]
        K = -N.T @ np.stack(columns, axis=1) if columns else np.zeros((0, 0))
        return N, N.T @ F, (K + K.T) / 2


def _judged(
    body: _Body, q: np.ndarray, residual: float, tolerance: float, N: np.ndarray, K: np.ndarray, turns: int
) -> Equilibrium:
    """The equilibrium with its stability, and the frequencies from K x = omega^2 H x."""
    motions = body.B(q) @ N
    H = motions.T @ _floats(crba(body.m.tree, q)) @ motions
    L = np.linalg.inv(np.linalg.cholesky(H)) if len(H) else H
    squares = np.linalg.eigvalsh(L @ K @ L.T)
    slack = 1e-7 * max(1.0, np.abs(squares).max() if len(squares) else 0.0)
    stable = bool((squares > slack).all()) if not (np.abs(squares) <= slack).any() else None
    stable = False if (squares < -slack).any() else stable
    with np.errstate(invalid="ignore"):
        frequencies = np.sqrt(squares)
    return Equilibrium(q, residual <= tolerance, residual, stable, K, motions, frequencies, turns)


def _generalised(m: Mechanism, q: np.ndarray, loads: Sequence[Load], torques: np.ndarray) -> np.ndarray:
    """Q (nv,) at rest: of weight, springs, loads and torques."""
    rest = np.zeros(m.nv)
    Q = torques - _floats(bias_forces(m.tree, q, rest)) + _floats(passive_forces(m, q, rest))
    for frame, wrench in loads:
        Q = Q + _floats(frame_jacobian(m.tree, q, frame)).T @ _wrench(wrench)
    return Q


def _wrench(value: Any) -> np.ndarray:
    array = validation.array(value, "a wrench")
    if array.shape == (3,):
        return np.concatenate([array, np.zeros(3)])
    if array.shape != (6,):
        raise ShapeError(f"a wrench is (force, torque) (6,) or a force (3,); its shape is {array.shape}")
    return array


def _effort_limits(m: Mechanism) -> np.ndarray:
    limits = np.full(m.nv, np.inf)
    for index in m.joints:
        effort = getattr(index.joint, "effort_limit", None)
        if effort is not None:
            limits[index.v] = float(effort)
    if not np.isfinite(limits).any():
        raise DescriptionError(
            f"no joint of mechanism {m.name!r} has an effort_limit; give torque_limits (nv,)"
        )
    return limits


def _floats(array: Any) -> np.ndarray:
    return np.array(array, dtype=float)

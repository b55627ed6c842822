"""Equilibria: configurations, controls and activations that keep a mechanism at rest.

The accelerations at rest, the rates of the activations and the violations of hard constraints are zero. They
are found by the method of Levenberg and Marquardt with exact derivatives, contacts included. Source: Nocedal,
Wright, Numerical Optimization (2006), Section 10.3.

The accelerations a are measured by a^T M a, Gauss's measure of a motion. A small link that accelerates counts
little then, and a fall of the whole mechanism much, so that the search does not leave the ground. Among the
many solutions it prefers those near the guess, because damping is the same for all displacements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.api.analysis.contacts import contacts
from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import Parameters, parameter_values
from zwang.api.compilation.compiled import CompiledMechanism, compiled_on_one_thread
from zwang.collision import candidate_pairs
from zwang.constraint.hard import all_velocity_level_rows
from zwang.errors import SolveError, UnknownNameError
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.force_elements import Actuator, Motor
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.simulation.applied_forces import activations
from zwang.simulation.constraint_stage import hard_constraints
from zwang.simulation.controls import control_names

ITERATIONS = 300
REFINEMENTS = 60  # steps at the rounding error of contact distances, of which the best is taken
TOLERANCE = 1e-8  # of a residual [rad/s^2, m/s^2], relative to gravity or 1 m/s^2
START_DAMPING = (0.1, 10.0)  # one after the other, if no equilibrium is found
SMALLEST_DAMPING, LARGEST_DAMPING = 1e-12, 1e12
SMALLEST_CHANGE = 1e-15  # of the unknowns, below which the residual is at its rounding error


class TrimPoint(NamedTuple):
    """An equilibrium: q (nq,), control (nu,), activation (nz,), and the largest acceleration that is left
    [rad/s^2, m/s^2].
    """

    q: np.ndarray
    control: np.ndarray
    activation: np.ndarray
    residual: float


class _TrimState(NamedTuple):
    """The unknowns, the residuals (accelerations a, rates of activations, violations), and r with its
    Jacobian by the free unknowns: the residuals with L^T a in the place of a, L L^T = M / mean inertia.
    """

    q: np.ndarray
    control: np.ndarray
    activation: np.ndarray
    residuals: np.ndarray
    r: np.ndarray
    J: np.ndarray

    @property
    def largest(self) -> float:
        """The largest residual."""
        return float(np.abs(self.residuals).max(initial=0.0))

    @property
    def is_finite(self) -> bool:
        """Whether the residual can be compared with others, and a step can be taken from it."""
        return bool(np.isfinite(self.r).all() and np.isfinite(self.J).all())


@validated_arguments()
def trim(
    mechanism: Mechanism,
    guess: npt.ArrayLike,
    *,
    control: npt.ArrayLike | None = None,
    fixed: Sequence[str] = (),
    params: Parameters | None = None,
) -> TrimPoint:
    """An equilibrium near a guess: the mechanism stays at rest under a constant control.

    guess: the configuration (nq,), by name, or the name of a keyframe. control (nu,): the guess of the
    control, by default, also of inputs that a dictionary leaves out, that of the keyframe, or zero; for a
    mechanism without inputs the generalised forces (nv,) [N m, N], which are kept. fixed: the names of
    coordinates and of controls that keep their value, such as ["elbow", "shoulder motor"]; all others are
    found, controls within their ranges, those of muscles with activation dynamics within 0 ... 1. Where
    several equilibria are near, it is one of them, stable or not. params: values of the symbols.

    Constraints, limits, dry friction and contacts act as in a simulation. Raises SolveError, with the joint
    that keeps accelerating most, where no equilibrium is found; UnknownNameError for a name.
    """
    m = validation.checked_mechanism(mechanism)
    values = parameter_values(m, params)
    m = m.subs({name: float(value) for name, value in values.items()}) if values else m
    names, nz = control_names(m), len(activations(m))
    q = validation.configuration(m, guess)
    control, activation = validation.or_of_keyframe(m, guess, control=control, activation=None)
    u = validation.control_vector(m, {} if control is None else control)
    z = np.zeros(nz) if activation is None else validation.vector(activation, nz, "activation", "activations")
    problem = _TrimProblem(compiled_on_one_thread(m), _free_unknowns(m, names, nz, fixed))
    scale = max(1.0, float(np.linalg.norm(np.asarray(m.gravity, float))))
    found = []
    for damping in START_DAMPING:
        found.append(_nearest(problem, problem.at(q, u, z), damping))
        if found[-1].largest <= TOLERANCE * scale:
            last = _refined(problem, found[-1])
            return TrimPoint(last.q, _within_ranges(m, last.control), last.activation, last.largest)
    raise SolveError(_reason(problem, found[0]))


def _nearest(problem: _TrimProblem, at: _TrimState, damping: float) -> _TrimState:
    """The state of the smallest residual that the method of Levenberg and Marquardt finds."""
    for _ in range(ITERATIONS):
        if not len(problem.free) or damping > LARGEST_DAMPING or not at.is_finite:
            break
        change = problem.step(at, damping)
        if np.abs(change).max() < SMALLEST_CHANGE:
            break
        new = problem.moved(at, change)
        better = new.is_finite and new.r @ new.r < at.r @ at.r
        at = new if better else at
        damping = max(damping / 3, SMALLEST_DAMPING) if better else damping * 5
    return at


def _refined(problem: _TrimProblem, at: _TrimState) -> _TrimState:
    """The state of the smallest residual of a few more steps, each with other rounding errors."""
    best = at
    for _ in range(REFINEMENTS if len(problem.free) else 0):
        if not at.is_finite:
            break
        at = problem.moved(at, problem.step(at, SMALLEST_DAMPING))
        best = at if at.largest < best.largest else best
    return best


class _TrimProblem(NamedTuple):
    """The compiled mechanism, and the numbers of the free ones among (dq, control, activation)."""

    fast: CompiledMechanism
    free: list[int]

    def at(self, q: np.ndarray, control: np.ndarray, activation: np.ndarray) -> _TrimState:
        """The residuals and their Jacobian."""
        m, nv = self.fast.mechanism, self.fast.mechanism.nv
        zero = np.zeros(nv)
        found = self.fast.constrained_dynamics_derivatives(q, zero, control, activation=activation, time=0.0)
        r = np.concatenate([found.v_dot, found.z_dot])
        J = np.hstack([found.A[nv:, :nv], found.B[nv:], found.A[nv:, 2 * nv :]])
        if hard_constraints(m):
            rows = all_velocity_level_rows(m, q, zero, 0.0)
            holonomic = [k for k, position in enumerate(rows.position) if position is not None]
            C = np.asarray(rows.A, float)[holonomic]
            r = np.concatenate([r, np.array([rows.position[k] for k in holonomic], float)])
            J = np.vstack([J, np.hstack([C, np.zeros((len(C), J.shape[1] - nv))])])
        M = np.asarray(self.fast.mass_matrix(q), float)
        L = np.linalg.cholesky(M / np.trace(M) * nv) if np.isfinite(r).all() else np.eye(nv)
        weighted, J_weighted = np.concatenate([L.T @ r[:nv], r[nv:]]), np.vstack([L.T @ J[:nv], J[nv:]])
        return _TrimState(q, control, activation, r, weighted, J_weighted[:, self.free])

    def step(self, at: _TrimState, damping: float) -> np.ndarray:
        """The change of the unknowns that minimises |r + J x|^2 + damping |D x|^2.

        D: for controls and activations the norms of their columns, for displacements the mean of these norms.
        """
        norms, nv = np.linalg.norm(at.J, axis=0), self.fast.mechanism.nv
        displaced = np.array(self.free) < nv
        if displaced.any():
            norms[displaced] = np.sqrt(np.mean(norms[displaced] ** 2))
        D = np.diag(np.sqrt(damping) * np.maximum(norms, 1e-6 * norms.max(initial=1e-300)))
        right = np.concatenate([-at.r, np.zeros(len(D))])
        return np.linalg.lstsq(np.vstack([at.J, D]), right, rcond=None)[0]

    def moved(self, at: _TrimState, change: np.ndarray) -> _TrimState:
        """The point after a change of the free unknowns."""
        nv, nu = self.fast.mechanism.nv, len(at.control)
        whole = np.zeros(nv + nu + len(at.activation))
        whole[self.free] = change
        q = np.asarray(integrate_configuration(self.fast.mechanism.tree, at.q, whole[:nv]), float)
        return self.at(q, at.control + whole[nv : nv + nu], at.activation + whole[nv + nu :])


def _within_ranges(m: Mechanism, control: np.ndarray) -> np.ndarray:
    """The control that acts: clipped to the control ranges of motors and actuators, and to 0 ... 1 by the
    activation dynamics of muscles.
    """
    return np.clip(control, *_control_ranges(m))


def _control_ranges(m: Mechanism) -> np.ndarray:
    """The least and the largest control (2, nu)."""
    drives = {f.name: f for f in m.forces if isinstance(f, Motor | Actuator)}
    limits = np.tile([-np.inf, np.inf], (len(control_names(m)), 1))
    for k, name in enumerate(control_names(m)):
        drive = drives.get(name)
        if drive is not None and drive.control_range is not None:
            limits[k] = np.array(drive.control_range, float)
        if isinstance(drive, Actuator) and drive.activation is not None and drive.activation[0] == "muscle":
            limits[k] = np.clip(limits[k], 0, 1)
    return limits.T


def _saturated(problem: _TrimProblem, control: np.ndarray) -> str:
    """The free controls that have reached an end of their range, as text."""
    m = problem.fast.mechanism
    lowest, highest = _control_ranges(m)
    at_end = np.flatnonzero((control <= lowest) | (control >= highest))
    names = [repr(control_names(m)[k]) for k in at_end if m.nv + k in problem.free]
    return f" ({', '.join(names)} at the end of the control range)" if names else ""


def _free_unknowns(m: Mechanism, names: Sequence[str], nz: int, fixed: Sequence[str]) -> list[int]:
    """The numbers of the unknowns that are not fixed. Raises UnknownNameError."""
    nu = len(names)
    held = set() if m.inputs else set(range(m.nv, m.nv + nu))
    for name in fixed:
        if name in names:
            held.add(m.nv + list(names).index(name))
        elif name in m.coordinate_names:
            held |= _displacements(m, m.coordinate_names.index(name))
        else:
            raise UnknownNameError("coordinate or control", name, [*m.coordinate_names, *names])
    return [k for k in range(m.nv + nu + nz) if k not in held]


def _displacements(m: Mechanism, k: int) -> set[int]:
    """The displacements that change coordinate k: all three of a quaternion."""
    joint = next(j for j in m.joints if j.q.start <= k < j.q.stop)
    plain = joint.joint.nq - (0 if joint.joint.nq == joint.joint.nv else 4)
    offset = k - joint.q.start
    return {joint.v.start + offset} if offset < plain else set(range(joint.v.start + plain, joint.v.stop))


def _reason(problem: _TrimProblem, at: _TrimState) -> str:
    m = problem.fast.mechanism
    if np.isfinite(at.r).all() and not at.is_finite:
        return (
            f"no equilibrium of {m.name!r} is found near the guess: a force or constraint has no derivative "
            "at a state of the search; give another guess"
        )
    k = int(np.argmax(np.abs(at.residuals))) if at.is_finite else 0
    what = f"{m.speed_names[k]!r} keeps accelerating" if k < m.nv else "an activation or a constraint is left"
    free = "no unknown is free" if not problem.free else f"{len(problem.free)} unknowns are free"
    remedy = "give another guess, or fix fewer coordinates and controls"
    if candidate_pairs(m) and not contacts(m, at.q, np.zeros(m.nv), np.zeros(m.nv)):
        remedy = "no contact is closed there: give a guess that touches what it is to rest on"
    return (
        f"no equilibrium of {m.name!r} is found near the guess: {what} with {at.largest:.3g} ({free})"
        f"{_saturated(problem, at.control)}; {remedy}"
    )

"""Equilibria: configurations, controls and activations that keep a mechanism at rest.

The accelerations at rest, the rates of the activations, the violations of hard constraints, and the
velocities that these prescribe are zero. They are found by the method of Levenberg and Marquardt with exact
derivatives, contacts included. Source: Nocedal, Wright, Numerical Optimization (2006), Section 10.3.

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
from zwang.api.analysis.linearize import constraint_gradients
from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import Parameters, with_numbers
from zwang.api.compilation.compiled import CompiledMechanism, compiled_on_one_thread
from zwang.collision import candidate_pairs
from zwang.constraint.hard import (
    VelocityLevelRows,
    all_velocity_level_rows,
    depends_on_time,
    hard_constraints,
)
from zwang.constraint.row_sizes import row_tolerances
from zwang.errors import ArgumentError, SolveError, UnknownNameError
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.constraints import Holonomic, Pfaffian
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.lengths import displacement_sizes, translations
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.scalar import is_zero
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names, control_ranges

ITERATIONS = 300
REFINEMENTS = 60  # steps at the rounding error of contact distances, of which the best is taken
TOLERANCE = 1e-8  # of a residual [rad/s^2, m/s^2], relative to gravity or 1 m/s^2
LARGEST_ROTATION = 0.3  # [rad] of one iteration, if the residual is not linear
LINEAR = 0.01  # relative difference of the change of the residual from the predicted one, up to which it is
PUSH = 1e-6  # [rad], and of translations by the size of the mechanism
START_DAMPING = (0.1, 10.0)  # one after the other, if no equilibrium is found
SMALLEST_DAMPING, LARGEST_DAMPING = 1e-12, 1e12
SMALLEST_CHANGE = 1e-15  # rad, m, or share of a control or activation: the residual is at its rounding error


class TrimPoint(NamedTuple):
    """An equilibrium: q (nq,), control (nu,), activation (nz,), and the largest acceleration that is left
    [rad/s^2, m/s^2].
    """

    q: np.ndarray
    control: np.ndarray
    activation: np.ndarray
    residual: float


class _TrimState(NamedTuple):
    """The unknowns, the residuals (accelerations a, rates of activations, and, relative to the sizes of the
    rows, violations of constraints and the velocities that they prescribe), and r with its Jacobian by the
    free unknowns: the residuals with L^T a in the place of a, L L^T = M / mean inertia.
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
    coordinates and of controls that keep their value, such as ["elbow", "shoulder motor"], or one of them;
    "elbow (coordinate)" and "elbow (control)" tell those of the same name apart. All others are found,
    controls and activations within their ranges, controls of muscles with activation dynamics within 0 ... 1;
    a guess beyond a range counts as its end. An activation at an end of its range, whose rate points out of
    it, stays there. Where several equilibria are near, it is one of them, stable or not. params: values of
    the symbols.

    Constraints, limits, dry friction and contacts act as in a simulation at the time 0. Raises SolveError,
    with the joint that keeps accelerating most, or the constraint that is violated or prescribes a velocity,
    where no equilibrium is found; UnknownNameError for a name, ArgumentError for one of both kinds.
    """
    m = with_numbers(validation.checked_mechanism(mechanism), params)
    nz = len(activations(m))
    q = validation.configuration(m, guess)
    control, activation = validation.or_of_keyframe(m, guess, control=control, activation=None)
    u = validation.control_vector(m, {} if control is None else control)
    z = np.zeros(nz) if activation is None else validation.vector(activation, nz, "activation", "activations")
    u, z = np.clip(u, *control_ranges(m)), np.clip(z, *_activation_ranges(m))
    lengths = np.array(displacement_sizes(m), float)
    problem = _TrimProblem(compiled_on_one_thread(m), _free_unknowns(m, nz, fixed), lengths)
    scale = max(1.0, float(np.linalg.norm(np.asarray(m.gravity, float))))
    found, guessed = [], problem.at(q, u, z)
    for start in (guessed, problem.pushed(guessed)):
        for damping in START_DAMPING:
            found.append(_nearest(problem, start, damping))
            if found[-1].largest <= TOLERANCE * scale:
                last = _refined(problem, found[-1])
                return TrimPoint(last.q, last.control, last.activation, last.largest)
    raise SolveError(_reason(problem, found[0]))


def _nearest(problem: _TrimProblem, at: _TrimState, damping: float) -> _TrimState:
    """The state of the smallest residual that the method of Levenberg and Marquardt finds.

    Rotations of one iteration are limited; the limit grows while the residual changes as predicted.
    """
    limit = LARGEST_ROTATION
    for _ in range(ITERATIONS):
        if not len(problem.free) or damping > LARGEST_DAMPING or not at.is_finite:
            break
        change = problem.limited(problem.step(at, damping), limit)
        if (np.abs(change) <= SMALLEST_CHANGE * problem.sizes(at)).all():
            break
        new = problem.moved(at, change)
        better = new.is_finite and new.r @ new.r < at.r @ at.r
        predicted = at.J @ change
        is_linear = np.linalg.norm(new.r - at.r - predicted) <= LINEAR * np.linalg.norm(predicted)
        limit = 2 * limit if is_linear else LARGEST_ROTATION
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
    """The compiled mechanism, the numbers of the free ones among (dq, control, activation), and the sizes of
    displacements (nv,): 1 rad of rotations, and the largest length of the mechanism of translations.
    """

    fast: CompiledMechanism
    free: list[int]
    lengths: np.ndarray

    def at(self, q: np.ndarray, control: np.ndarray, activation: np.ndarray) -> _TrimState:
        """The residuals and their Jacobian."""
        m, nv = self.fast.mechanism, self.fast.mechanism.nv
        zero = np.zeros(nv)
        found = self.fast.constrained_dynamics_derivatives(q, zero, control, activation=activation, time=0.0)
        r = np.concatenate([found.v_dot, found.z_dot])
        J = np.hstack([found.A[nv:, :nv], found.B[nv:], found.A[nv:, 2 * nv :]])
        kept = nv + np.flatnonzero(_is_held(_activation_ranges(m), activation, found.z_dot))
        r[kept], J[kept] = 0, 0
        if hard_constraints(m):
            violations, C = _constraint_residuals(m, q)
            r = np.concatenate([r, violations])
            J = np.vstack([J, np.hstack([C, np.zeros((len(C), J.shape[1] - nv))])])
        M = np.asarray(self.fast.mass_matrix(q), float)
        L = np.linalg.cholesky(M / np.trace(M) * nv) if np.isfinite(r).all() else np.eye(nv)
        weighted, J_weighted = np.concatenate([L.T @ r[:nv], r[nv:]]), np.vstack([L.T @ J[:nv], J[nv:]])
        return _TrimState(q, control, activation, r, weighted, J_weighted[:, self.free])

    def step(self, at: _TrimState, damping: float) -> np.ndarray:
        """The change of the unknowns that minimises |r + J x|^2 + damping |D x|^2, in which controls and
        activations that would leave their range stay.
        """
        change = self._unrestricted_step(at, damping)
        leaving = self._leaving(at, change)
        if not leaving.any():
            return change
        left = at._replace(J=np.where(leaving, 0.0, at.J))
        return np.where(leaving, 0.0, self._unrestricted_step(left, damping))

    def sizes(self, at: _TrimState) -> np.ndarray:
        """The sizes of the free unknowns: 1 rad or m for displacements, those of controls and activations."""
        displacements = np.ones(self.fast.mechanism.nv)
        return np.concatenate([displacements, np.abs(at.control), np.abs(at.activation)])[self.free]

    def _leaving(self, at: _TrimState, change: np.ndarray) -> np.ndarray:
        """Which of the free unknowns are controls and activations at an end of their range that would leave
        it.
        """
        m, (dq, du, dz) = self.fast.mechanism, self._parts(at, change)
        controls = _is_held(control_ranges(m), at.control, du)
        states = _is_held(_activation_ranges(m), at.activation, dz)
        return np.concatenate([np.zeros(len(dq), bool), controls, states])[self.free]

    def _parts(self, at: _TrimState, change: np.ndarray) -> list[np.ndarray]:
        """The displacement (nv,) and the changes of controls and activations, for one of the free
        unknowns.
        """
        nv, nu = self.fast.mechanism.nv, len(at.control)
        whole = np.zeros(nv + nu + len(at.activation))
        whole[self.free] = change
        return np.split(whole, [nv, nv + nu])

    def _unrestricted_step(self, at: _TrimState, damping: float) -> np.ndarray:
        """The change of the unknowns without regard to ranges.

        D: for controls and activations the norms of their columns, for displacements the mean of these norms.
        """
        norms, nv = np.linalg.norm(at.J, axis=0), self.fast.mechanism.nv
        displaced = np.array(self.free) < nv
        if displaced.any():
            norms[displaced] = np.sqrt(np.mean(norms[displaced] ** 2))
        D = np.diag(np.sqrt(damping) * np.maximum(norms, 1e-6 * norms.max(initial=1e-300)))
        right = np.concatenate([-at.r, np.zeros(len(D))])
        return np.linalg.lstsq(np.vstack([at.J, D]), right, rcond=None)[0]

    def limited(self, change: np.ndarray, limit: float) -> np.ndarray:
        """A change of the free unknowns, shortened if a rotation is above the limit [rad]: where the residual
        is flat, a linear step goes far, and passes the nearest equilibrium.
        """
        m = self.fast.mechanism
        slides = translations(m.tree)
        turned = [i for i, k in enumerate(self.free) if k < m.nv and k not in slides]
        largest = np.abs(change[turned]).max(initial=0.0)
        return change * min(1.0, limit / largest) if largest else change

    def pushed(self, at: _TrimState) -> _TrimState:
        """The state after a tiny displacement of the free coordinates along their accelerations: where the
        residual has no slope, as with shapes that just touch, it has one there.
        """
        displaced = [k for k in self.free if k < len(self.lengths)]
        push = at.residuals[displaced]
        largest = np.abs(push / self.lengths[displaced]).max(initial=0.0)
        if not np.isfinite(largest) or not largest:
            return at
        change = np.zeros(len(self.free))
        change[: len(displaced)] = push * PUSH / largest
        return self.moved(at, change)

    def moved(self, at: _TrimState, change: np.ndarray) -> _TrimState:
        """The point after a change of the free unknowns."""
        m, (dq, du, dz) = self.fast.mechanism, self._parts(at, change)
        q = np.asarray(integrate_configuration(m.tree, at.q, dq), float)
        control = np.clip(at.control + du, *control_ranges(m))
        return self.at(q, control, np.clip(at.activation + dz, *_activation_ranges(m)))


def _constraint_residuals(m: Mechanism, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The violations of holonomic constraints and the velocities a(q, 0) that constraints prescribe at rest
    (k,), in the order of `_constraint_texts`, and their derivatives (k, nv) by displacements; both relative
    to the sizes of the rows (see `_row_factors`).
    """
    still = np.zeros(m.nv)
    rows = all_velocity_level_rows(m, q, still, 0.0)
    violated, moved = _numbers_of_residuals(m, rows)
    of_position = np.array([rows.position[k] for k in violated], float)
    C, by_q = np.asarray(rows.A, float)[violated], np.zeros((0, m.nv))
    if moved:
        by_q = np.asarray(constraint_gradients(m, q, still, 0.0)[2], float)[moved]
    factors = _row_factors(m, q, rows)
    residuals = np.concatenate([of_position, np.asarray(rows.a, float)[moved]])
    return residuals / factors, np.concatenate([C, by_q]) / factors[:, None]


def _row_factors(m: Mechanism, q: np.ndarray, rows: VelocityLevelRows) -> np.ndarray:
    """The sizes for tolerances (k,) of the residuals of constraints."""
    factors = np.array(row_tolerances(m, hard_constraints(m), q, rows.A), float)
    return factors[[k for numbers in _numbers_of_residuals(m, rows) for k in numbers]]


def _numbers_of_residuals(m: Mechanism, rows: VelocityLevelRows) -> tuple[list[int], list[int]]:
    """The numbers of the rows with a violation, and of those that prescribe a velocity."""
    violated = [k for k, position in enumerate(rows.position) if position is not None]
    moving = {c.name for c in hard_constraints(m) if _prescribes_velocity(c)}
    return violated, [k for k, name in enumerate(rows.names) if name in moving]


def _prescribes_velocity(constraint: object) -> bool:
    """Whether a constraint A v + a = 0 may have an a that is not zero, so that it forbids rest."""
    if isinstance(constraint, Pfaffian):
        return not is_zero(constraint.rate)
    return isinstance(constraint, Holonomic) and depends_on_time(constraint)


def _constraint_texts(m: Mechanism, q: np.ndarray) -> list[str]:
    """What each residual of the constraints means."""
    if not hard_constraints(m):
        return []
    rows = all_velocity_level_rows(m, q, np.zeros(m.nv), 0.0)
    violated, moved = _numbers_of_residuals(m, rows)
    texts = [f"constraint {rows.names[k]!r} is violated by" for k in violated]
    return texts + [f"constraint {rows.names[k]!r} forbids rest: it prescribes the velocity" for k in moved]


def _activation_ranges(m: Mechanism) -> np.ndarray:
    """The least and the largest value (2, nz) of the states of actuators."""
    ranges = {
        name: f.activation_range
        for f in m.forces
        if isinstance(f, Actuator) and f.activation_range is not None
        for name in f.states
    }
    none = (-np.inf, np.inf)
    return np.array([ranges.get(name, none) for name in activations(m)], float).reshape(-1, 2).T


def _is_held(ranges: np.ndarray, values: np.ndarray, rate: np.ndarray) -> np.ndarray:
    """Which of the values (n,) are at an end of their ranges (2, n) with a rate out of it."""
    lowest, highest = ranges
    return ((values <= lowest) & (rate < 0)) | ((values >= highest) & (rate > 0))


def _saturated(problem: _TrimProblem, at: _TrimState) -> str:
    """The free controls and activations that have reached an end of their range, as text."""
    m, found = problem.fast.mechanism, ""
    first = m.nv
    for names, ranges, values, what in (
        (control_names(m), control_ranges(m), at.control, "control"),
        (activations(m), _activation_ranges(m), at.activation, "activation"),
    ):
        at_end = np.flatnonzero((values <= ranges[0]) | (values >= ranges[1]))
        own = [repr(names[k]) for k in at_end if first + k in problem.free]
        found += f" ({', '.join(own)} at the end of the {what} range)" if own else ""
        first += len(names)
    return found


def _free_unknowns(m: Mechanism, nz: int, fixed: Sequence[str]) -> list[int]:
    """The numbers of the unknowns that are not fixed. Raises UnknownNameError, and ArgumentError for a name
    of both a coordinate and a control.
    """
    coordinates = {name: _displacements(m, k) for k, name in enumerate(m.coordinate_names)}
    controls = {name: {m.nv + k} for k, name in enumerate(m.inputs)}
    known = {f"{name} ({kind})": own for kind, group in (("coordinate", coordinates), ("control", controls))
             for name, own in group.items()} | coordinates | controls  # fmt: skip
    nu = len(control_names(m))
    held = set() if m.inputs else set(range(m.nv, m.nv + nu))
    for name in fixed:
        if name in coordinates and name in controls:
            raise ArgumentError(
                f"fixed: {name!r} is a coordinate and a control of {m.name!r}; give '{name} (coordinate)' or "
                f"'{name} (control)', or both"
            )
        if name not in known:
            raise UnknownNameError("coordinate or control", name, [*coordinates, *controls])
        held |= known[name]
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
    if not at.is_finite:
        return (
            f"no equilibrium of {m.name!r} is found near the guess: its accelerations are no numbers at a "
            "state of the search, as where a constraint is singular or numbers overflow; give another guess"
        )
    k = int(np.argmax(np.abs(at.residuals)))
    texts = [f"{name!r} keeps accelerating with" for name in m.speed_names]
    texts += [f"activation {name!r} keeps changing with" for name in activations(m)]
    what, amount = [*texts, *_constraint_texts(m, at.q)][k], at.largest
    if k >= len(texts):
        rows = all_velocity_level_rows(m, at.q, np.zeros(m.nv), 0.0)
        amount *= float(_row_factors(m, at.q, rows)[k - len(texts)])
    free = "no unknown is free" if not problem.free else f"{len(problem.free)} unknowns are free"
    remedy = "give another guess, or fix fewer coordinates and controls"
    if candidate_pairs(m) and not contacts(m, at.q, np.zeros(m.nv), np.zeros(m.nv)):
        remedy = "no contact is closed there: give a guess that touches what it is to rest on"
    return (
        f"no equilibrium of {m.name!r} is found near the guess: {what} {amount:.3g} ({free})"
        f"{_saturated(problem, at)}; {remedy}"
    )

"""Constraint stabilisation by coordinate projection: the state is projected onto the hard constraints in the
metric of the mass matrix; on any scalar.

Both projections minimise  1/2 x^T M x + 1/2 |A x + y|^2 / R  with a small R, where y is the violation g(q,
t) for the displacement x = dq, or the residual A v + a for x = dv. With this regularisation rows may be
redundant, rows near a singular configuration are corrected gradually, and each iteration reduces the
violation by R / (R + A M^-1 A^T). Source: Eich, SIAM J. Numer. Anal. 30 (1993) 1467; Hairer, Wanner, Solving
Ordinary Differential Equations II, Section VII.2.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import factor, weighted_transpose
from zwang.algebra.norms import by_precision, max_abs
from zwang.constraint.hard import hard_constraints, velocity_level_rows_at
from zwang.constraint.inverse_weights import InverseWeights
from zwang.constraint.row_sizes import row_tolerances
from zwang.dynamics.crba import crba
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.lengths import displacement_sizes, translations
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import divide, logical_and, logical_or, maximum, minimum, where, while_loop

COMPLIANCE = 1e-8  # R, relative to a row's diagonal entry of A M^-1 A^T
SINGLE_PRECISION_COMPLIANCE = 1e-4  # the same in single precision
TANGENT_COMPLIANCE = 1e-7  # for derivatives, whose rounding errors it makes smaller
ITERATIONS = 50  # three suffice, except far from the constraints or at singular configurations
POSITION_TOLERANCE = 1e-11  # of the violation before the last iteration, relative to the sizes of the rows
SINGLE_POSITION_TOLERANCE = 3e-6  # the same in single precision
VELOCITY_TOLERANCE = 1e-7  # [1/s] of the velocity residual before the last iteration, relative to them too
SINGLE_VELOCITY_TOLERANCE = 3e-6  # the same, times the largest velocity [rad/s, 1/s], if that is above one
TANGENT_ITERATIONS = 3  # for derivatives: q follows its constraints after one, v those at that q after two
VIOLATION_LIMIT = 1e-5  # the same, and [1/s], above which the constraints cannot be satisfied
LARGEST_ROTATION = 0.3  # [rad] of any coordinate, in one iteration


class ProjectedState(NamedTuple):
    """q, v; violated: whether a violation or a velocity residual remains that the projection cannot
    correct.
    """

    q: Any
    v: Any
    violated: Any


class _ProjectionState(NamedTuple):
    """q, v; the largest violation and velocity residual before the last iteration, relative to the sizes of
    their rows; the number of iterations.
    """

    q: Any
    v: Any
    violation: Any
    residual: Any
    iterations: Any


def project_state(
    mechanism: Mechanism,
    inverse_weights: InverseWeights,
    q: Any,
    v: Any,
    t: Any = 0,
    *,
    tangents: bool = False,
) -> ProjectedState:
    """The state nearest to (q, v), in the metric of the mass matrix, on all hard constraints at the time t
    [s].

    q is corrected by Gauss-Newton steps along the configuration manifold, v by projection onto A v = -a.
    inverse_weights: those of the mechanism. Violations that cannot be corrected are made as small as
    possible. tangents: whether (q, v) are tangents, whose derivatives are to be projected too.
    """
    compliance = TANGENT_COMPLIANCE if tangents else COMPLIANCE
    slides = translations(mechanism.tree)
    sizes_of_velocities = [minimum(1, size) for size in displacement_sizes(mechanism)]
    speed = _ratio(v, sizes_of_velocities)
    position = by_precision(speed, POSITION_TOLERANCE, SINGLE_POSITION_TOLERANCE)
    velocity = by_precision(speed, VELOCITY_TOLERANCE, SINGLE_VELOCITY_TOLERANCE * maximum(1, speed))

    def unfinished(s: _ProjectionState) -> Any:
        off_constraints = logical_or(s.violation > position, s.residual > velocity)
        goes_on = (
            logical_or(off_constraints, s.iterations < TANGENT_ITERATIONS) if tangents else off_constraints
        )
        return logical_and(goes_on, s.iterations < ITERATIONS)

    def iterate(s: _ProjectionState) -> _ProjectionState:
        A, a, violation = velocity_level_rows_at(mechanism, s.q, t)
        correction = _corrector(mechanism, s.q, A, inverse_weights, compliance)
        residual = A @ s.v + a
        sizes = row_tolerances(mechanism, hard_constraints(mechanism), s.q, A)
        dq = correction(violation)
        rotation = max_abs([x for k, x in enumerate(dq) if k not in slides])
        step_scale = minimum(1, divide(LARGEST_ROTATION, maximum(rotation, LARGEST_ROTATION)))
        v = s.v + correction(residual)
        v = v + correction(A @ v + a)
        q = integrate_configuration(mechanism.tree, s.q, step_scale * dq)
        return _ProjectionState(q, v, _ratio(violation, sizes), _ratio(residual, sizes), s.iterations + 1)

    last = while_loop(unfinished, iterate, _ProjectionState(np.array(q), np.array(v), np.inf, np.inf, 0.0))
    speed = _ratio(last.v, sizes_of_velocities)
    violated = logical_or(last.violation > VIOLATION_LIMIT, last.residual > VIOLATION_LIMIT * (1 + speed))
    return ProjectedState(last.q, last.v, violated)


def project_velocity(
    mechanism: Mechanism, inverse_weights: InverseWeights, q: Any, v: Any, A: Any, a: Any
) -> np.ndarray:
    """The velocities nearest to v, in the metric of the mass matrix, with A v = -a; A (k, nv), a (k,)."""
    correction = _corrector(mechanism, q, A, inverse_weights)
    for _ in range(2):
        v = v + correction(A @ v + a)
    return v


def _ratio(values: Any, sizes: Sequence[Any]) -> Any:
    """The largest absolute value, relative to the sizes."""
    return max_abs([x * divide(1, size) for x, size in zip(values, sizes, strict=True)])


def _corrector(
    mechanism: Mechanism, q: Any, A: Any, inverse_weights: InverseWeights, compliance: float = COMPLIANCE
) -> Callable[[Any], np.ndarray]:
    """The function of y (k,) that gives the correction x (nv,) = -(M + A^T A / R)^-1 A^T y / R."""
    M = factor(crba(mechanism.tree, q), velocity_parents(mechanism.tree))
    # those of the home configuration are too large where the mass matrix is singular there
    bounds = [mechanism.nv * sum((divide(x * x, M.H[k][k]) for k, x in enumerate(row)), start=0) for row in A]
    row_inverse_weights = [minimum(x, y) for x, y in zip(inverse_weights.of_rows(A), bounds, strict=True)]
    largest = max_abs(row_inverse_weights)
    # rounding errors of the corrections grow as 1 / R
    R = by_precision(largest, compliance, SINGLE_PRECISION_COMPLIANCE)
    smallest = 1e-8 * where(largest > 0, largest, 1)  # rows that all vanish correct nothing
    D = [divide(1, R * maximum(w, smallest)) for w in row_inverse_weights]
    factors = M.update(A, D)
    return lambda y: -factors.solve(weighted_transpose(A, D, y))

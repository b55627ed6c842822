"""Drift of exact constraints taken back: the state projected onto them, in the metric of the mass matrix; on any scalar.

Both projections make  1/2 x^T M x + 1/2 |A x + y|^2 / R  least, with y the gap g(q, t) for the displacement x = dq, or A v + a for
x = dv, and a small R. In it redundant rows do no harm, rows near a singular position are taken back gently instead of by leaps, and what R
leaves shrinks by R / (R + A M^-1 A^T) a round. Source: Eich, SIAM J. Numer. Anal. 30 (1993) 1467; Hairer, Wanner, Solving ODEs II, VII.2.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import updated_solver
from zwang.constraint.hard import velocity_level_rows_at
from zwang.constraint.inverse_weights import InverseWeights
from zwang.dynamics.crba import crba
from zwang.kinematics.configuration import integrate_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import absolute, divide, is_zero, logical_and, logical_or, maximum, minimum, while_loop

SOFTENING = 1e-8  # R, relative to a row's share of A M^-1 A^T
ROUNDS = 50  # three do, but from far or at singular positions
CLOSED = 1e-11  # [rad or m] a gap that the round which finds it closes for good
OBEYED = 1e-7  # [rad/s or m/s] the same for speeds
OPEN = 1e-5  # [rad or m, and the same a second] what stays above this cannot be held
LONGEST_STEP = 0.3  # of any coordinate, in one round [rad or m]


class ProjectedState(NamedTuple):
    """q, v; open: whether a gap, or a missed speed, stays that no round takes back."""

    q: Any
    v: Any
    open: Any


class _State(NamedTuple):
    """q, v; the largest gap and missed speed before the last round; rounds so far."""

    q: Any
    v: Any
    gap: Any
    residual: Any
    rounds: Any


def project_state(mechanism: Mechanism, known: InverseWeights, q: Any, v: Any, t: Any = 0) -> ProjectedState:
    """q and v on all exact constraints at the time t [s], nearest to the given ones in the metric of the mass matrix.

    q by Gauss-Newton steps along the configuration manifold, v with A v = -a. known: `weights(mechanism)`. Gaps that cannot be closed
    stay as small as they get.
    """

    def wanted(s: _State) -> Any:
        far = logical_or(s.gap > CLOSED, s.residual > OBEYED)
        return logical_and(far, s.rounds < ROUNDS)

    def improve(s: _State) -> _State:
        A, a, gap = velocity_level_rows_at(mechanism, s.q, t)
        towards = _towards(crba(mechanism.tree, s.q), A, known)
        residual = A @ s.v + a
        dq = towards(gap)
        share = minimum(1, divide(LONGEST_STEP, maximum(_largest(dq), LONGEST_STEP)))
        v = s.v + towards(residual)
        v = v + towards(A @ v + a)
        q = integrate_configuration(mechanism.tree, s.q, share * dq)
        return _State(q, v, _largest(gap), _largest(residual), s.rounds + 1)

    last = while_loop(wanted, improve, _State(np.array(q), np.array(v), np.inf, np.inf, 0.0))
    still = logical_or(last.gap > OPEN, last.residual > OPEN * (1 + _largest(last.v)))
    return ProjectedState(last.q, last.v, still)


def _towards(M: Any, A: Any, known: InverseWeights) -> Callable[[Any], np.ndarray]:
    """The x (nv,) that takes back y, -(M + A^T A / R)^-1 A^T y / R, as a function of y."""
    shares = [
        sum((x * x * w for x, w in zip(row, known.speeds, strict=True) if not is_zero(x)), start=0)
        for row in A
    ]
    least = 1e-8 * _largest(shares)
    solved, pull = updated_solver(M, A, [divide(1, SOFTENING * maximum(share, least)) for share in shares])
    return lambda y: -solved(pull(y))


def _largest(values: Iterable[Any]) -> Any:
    size: Any = 0.0
    for value in values:
        size = maximum(size, absolute(value))
    return size

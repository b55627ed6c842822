"""The forces that a prescribed motion of a constrained mechanism needs, on any scalar.

Motors act on some of the generalised velocities, f = S tau, and hard constraints A v_dot = b have the forces
lambda. With the inverse dynamics tau(q, v, a) of the tree, and V a basis of the accelerations with A V = 0,

    S^T f + A^T lambda = tau,     and so     (S V)^T f = V^T tau

Of several f that satisfy this, redundant actuation, it is the one of least norm; then lambda is the one of
least norm, where the rows are redundant.
Source: Khalil, Dombre, Modeling, Identification and Control of Robots (2002), Section 10.3; Nakamura,
Ghodoussi, IEEE Trans. Robotics and Automation 5 (1989) 294.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.hard import VelocityLevelRows, all_velocity_level_rows, hard_constraints
from zwang.constraint.rows import rows_of_kind, scalar_array
from zwang.dynamics.generalised_forces import passive_forces
from zwang.dynamics.rnea import rnea
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import absolute, is_zero, where
from zwang.solver.coordinate_reduction import coordinate_reduction, forces_of

ROUNDING = 1e-12  # entries of V below this are rounding


class PrescribedMotionForces(NamedTuple):
    """The forces of a prescribed motion, and what shows whether it is one of the mechanism.

    forces (k,): of the motors. multipliers (r,): of the rows of the hard constraints. remainder (nv,): the
    generalised force that neither motors nor constraints can exert. violation (r,), velocity (r,),
    acceleration (r,): the residuals g(q, t), A v + a and A v_dot - b of the rows.
    """

    forces: Any
    multipliers: Any
    remainder: Any
    violation: Any
    velocity: Any
    acceleration: Any


def prescribed_motion_forces(
    mechanism: Mechanism, actuated: tuple[int, ...], q: Any, v: Any, a: Any, time: Any
) -> PrescribedMotionForces:
    """The forces of the motors and of the hard constraints at q, v, a and the time [s].

    actuated: the numbers of the generalised velocities on which motors act.
    """
    tau = rnea(mechanism.tree, q, v, a) - passive_forces(mechanism, q, v)
    rows = enabled_rows(mechanism, q, v, time)
    S = np.eye(mechanism.nv, dtype=int)[list(actuated)]
    if not len(rows.A):
        nothing = np.zeros(0)
        return PrescribedMotionForces(S @ tau, nothing, tau - S.T @ (S @ tau), nothing, nothing, nothing)
    positions = [0 if x is None else x for x in rows.position]
    # V depends on A alone: the right-hand side A v_dot never contradicts itself
    V = coordinate_reduction(rows_of_kind(rows.names, "equality", rows.A, rows.A @ a, position=positions)).V
    forces = forces_of(_without_rounding(S @ V), V.T @ tau)
    multipliers = forces_of(rows.A, tau - S.T @ forces)
    return PrescribedMotionForces(
        forces,
        multipliers,
        tau - S.T @ forces - rows.A.T @ multipliers,
        np.array(positions),
        rows.A @ v + rows.a,
        rows.A @ a - rows.b,
    )


def _without_rounding(V: np.ndarray) -> np.ndarray:
    """Rows of V, whose entries are of the size of 1, without those that are rounding: a motor that moves
    nothing shall exert nothing.
    """
    entries = [x if is_zero(x) else where(absolute(x) > ROUNDING, x, 0) for x in V.flat]
    return scalar_array(entries).reshape(V.shape)


def enabled_rows(mechanism: Mechanism, q: Any, v: Any, time: Any) -> VelocityLevelRows:
    """The rows of the hard constraints that the options enable."""
    if hard_constraints(mechanism):
        return all_velocity_level_rows(mechanism, q, v, time)
    return all_velocity_level_rows(mechanism.replace(constraints=()), q, v, time)

"""MuJoCo's softness parameters: solref and solimp to stiffness, damping, impedance, R and reference
acceleration.

A single soft row moves as  a1 + d (b v + k r) = (1 - d) a0:  the acceleration is a mean, with the share d,
of the free acceleration a0 and of that of a spring and damper per unit mass. Source: MuJoCo documentation,
Modeling, "Solver parameters"; where the documentation and MuJoCo differ, MuJoCo's numbers hold (in the
direct format k has the factor d(r)).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
from zwang.constraint.inverse_weights import LARGEST_IMPEDANCE
from zwang.constraint.rows import Rows, per_row, rows_of_kind
from zwang.mechanism.joints import Softness
from zwang.scalar import absolute, clip, divide, equal, logical_or, maximum, minimum, power, where

SMALLEST_IMPEDANCE = 0.0001  # MuJoCo's mjMINIMP
PENETRATION_CORRECTION = 0.2  # the part of a hard contact's penetration that is corrected in one step
IMPULSIVE_ACCELERATION = 1000.0  # [m/s^2 or rad/s^2] up to which a step could close a hard inequality
CRITICAL_DAMPING = 2.0  # of x'' = -c x' / h - x / h^2
LARGEST_CORRECTION_SPEED = 1.0  # [m/s or rad/s] of that correction, so that deep penetrations are not ejected


class Response(NamedTuple):
    """Stiffness K [1/s^2] and damping B [1/s] per unit mass, and impedance d, of a row.

    The reference acceleration is aref = -B v - K d r.
    """

    K: Any
    B: Any
    d: Any


def clamped(solimp: Any) -> tuple[Any, ...]:
    """solimp clamped to its valid range: impedances and midpoint in [1e-4, 0.9999], width >= 0,
    power >= 1.
    """
    d0, dw, width, midpoint, exponent = solimp
    d0, dw, midpoint = (clip(x, SMALLEST_IMPEDANCE, LARGEST_IMPEDANCE) for x in (d0, dw, midpoint))
    return d0, dw, maximum(0, width), midpoint, maximum(1, exponent)


def impedance(solimp: Any, r: Any) -> Any:
    """Impedance d(r) from d0 at r = 0 to d_width at |r| >= width, along two power functions that meet at the
    midpoint.

    With x = |r| / width: y = x^p / m^(p-1) up to x = m, then 1 - (1-x)^p / (1-m)^(p-1); y = x for p = 1;
    d = d0 + y (dw - d0), and (d0 + dw) / 2 without a width.
    """
    d0, dw, width, m, p = clamped(solimp)
    x = minimum(absolute(r) / maximum(width, TINY), 1)
    lower_part = divide(1, power(m, p - 1)) * power(x, p)
    upper_part = 1 - divide(1, power(1 - m, p - 1)) * power(1 - x, p)
    y = where(equal(p, 1), x, where(x <= m, lower_part, upper_part))
    return where(logical_or(equal(d0, dw), width <= TINY), (d0 + dw) / 2, d0 + y * (dw - d0))


def reference(solref: Any, solimp: Any, shortest_time: Any = 0) -> tuple[Any, Any]:
    """K [1/s^2] and B [1/s] of solref = (time constant, damping ratio) or (-stiffness, -damping).

    shortest_time [s]: the lower bound of the time constant (MuJoCo's refsafe: two time steps). A mixture of
    the two formats is replaced by the default (0.02, 1), as in MuJoCo.
    """
    first, second = solref
    is_mixture = where(first > 0, second <= 0, second > 0)
    first, second = (where(is_mixture, x, y) for x, y in zip(Softness().solref, solref, strict=True))
    dw = clamped(solimp)[1]
    time_constant = maximum(first, shortest_time)
    K = where(
        first > 0,
        divide(1, maximum(TINY, dw * dw * time_constant * time_constant * second * second)),
        -first / (dw * dw),
    )
    B = where(second > 0, divide(2, maximum(TINY, dw * time_constant)), -second / dw)
    return K, B


def response(softness: Softness, r: Any, shortest_time: Any = 0) -> Response:
    """K, B and d of a softness at the violation r."""
    K, B = reference(softness.solref, softness.solimp, shortest_time)
    return Response(K, B, impedance(softness.solimp, r))


def regularisation(d: Any, inverse_weight: Any, smallest_R: Any = TINY) -> Any:
    """R = (1 - d) / d times the inverse weight, the approximate diagonal of A; at least `smallest_R`."""
    return maximum(smallest_R, (1 - d) * inverse_weight / d)


def soft_rows(
    name: str,
    kind: str,
    J: Any,
    v: Any,
    position: Any,
    softness: Softness,
    *,
    inverse_weight: Any,
    margin: Any = 0,
    violation: Any = None,
    bias: Any = 0,
    shortest_time: Any = 0,
    bound: Any = 0,
    active: Any = True,
    smallest_R: Any = TINY,
    drift: Any = 0,
) -> Rows:
    """Rows of one constraint with a common softness: aref = -B (J v + drift) - K d (position - margin) -
    bias, and R from d and the inverse weights.

    J (n, nv); position (n,); inverse_weight, margin, bias, bound, active, smallest_R and drift are one for
    each row or one for all. violation: the r of d(r), by default position - margin of each row. bias: Jdot v,
    where it is included. drift: the rate of the constraint at v = 0, of time-dependent ones.
    shortest_time [s]: see `reference`. smallest_R: the lower bound of R.
    """
    J, n = np.array(J), len(position)
    velocity = J @ np.array(v) + np.array(per_row(drift, n))
    inverse_weights, margins, biases, least_R = (
        per_row(x, n) for x in (inverse_weight, margin, bias, smallest_R)
    )
    r = [p - m for p, m in zip(position, margins, strict=True)]
    responses = [response(softness, x if violation is None else violation, shortest_time) for x in r]
    if kind == "friction":
        responses = [response_of_row._replace(K=0) for response_of_row in responses]
    aref = [-a.B * u - a.K * a.d * x - b for a, u, x, b in zip(responses, velocity, r, biases, strict=True)]
    each = zip(responses, inverse_weights, least_R, strict=True)
    R = [regularisation(a.d, w, least) for a, w, least in each]
    return rows_of_kind(
        name, kind, J, aref, R=R, position=position, velocity=velocity, margin=margins,
        impedance=[a.d for a in responses], inverse_weight=inverse_weights, bound=bound, active=active,
    )  # fmt: skip


def hard_softness_rows(
    name: str,
    kind: str,
    J: Any,
    v: Any,
    position: Any,
    *,
    inverse_weight: Any,
    bias: Any = 0,
    timestep: Any = None,
    damping: Any = 1,
    settling_time: Any = None,
    bound: Any = 0,
    active: Any = True,
    restitution: Any = None,
) -> Rows:
    """Rows of one hard constraint, R = 0.

    An equality follows its second derivative, J a = -bias with bias = Jdot v; settling_time T [s] adds
    critically damped Baumgarte stabilisation, -2 v / T - r / T^2. Inequalities and friction are formulated
    on the velocity at the end of the step (Moreau's time stepping), v + h (J a + bias): it is at least
    -distance / timestep (or zero for friction), and a fifth of a penetration is corrected, at
    `LARGEST_CORRECTION_SPEED` at most. damping c: the coefficient of the velocity, -(c v + distance / h) / h.
    It is 1 in time stepping, and `CRITICAL_DAMPING` for integrators that evaluate the rows several times in
    a step: a distance then closes without penetration and rebound, and slip decays. restitution e, of impacts
    only: the first row has at least the velocity -e J v afterwards (Newton's law of impact). Source: Moreau,
    in Nonsmooth Mechanics and Applications (1988).
    """
    J, biases = np.array(J), per_row(bias, len(position))
    velocity = J @ np.array(v)
    if kind == "equality":
        aref = [-b for b in biases]
        if settling_time is not None:
            stabilisation = [
                2 * u / settling_time + r / settling_time**2 for u, r in zip(velocity, position, strict=True)
            ]
            aref = [a - x for a, x in zip(aref, stabilisation, strict=True)]
    else:
        # velocity after the step, in units per time: at least -distance / h
        target = [_target_velocity(kind, p, timestep) for p in position]
        if restitution is not None:
            target[0] = maximum(target[0], -restitution * velocity[0])
        aref = [(w - damping * u) / timestep - b for w, u, b in zip(target, velocity, biases, strict=True)]
    return rows_of_kind(
        name, kind, J, aref, position=position, velocity=velocity, inverse_weight=inverse_weight, bound=bound,
        active=active,
    )  # fmt: skip


def time_stepping_bias(velocity: Any, distance: Any, aref: Any, timestep: Any, damping: Any) -> Any:
    """The bias Jdot v of a hard contact or limit from the other values of its row, see
    `hard_softness_rows`.
    """
    return -closing_acceleration(velocity, distance, timestep, damping) - aref


def closing_acceleration(velocity: Any, distance: Any, timestep: Any, damping: Any) -> Any:
    """-aref of a hard contact or limit without its bias Jdot v, see `hard_softness_rows`."""
    return (damping * velocity - _target_velocity("contact", distance, timestep)) / timestep


def _target_velocity(kind: str, distance: Any, timestep: Any) -> Any:
    """The least velocity at the end of a step, or that of friction."""
    return -_allowed_displacement(kind, distance, timestep) / timestep


def can_close(distance: Any, u: Any, h: Any) -> Any:
    """Whether a step of size h [s] could close a hard inequality, at this distance and with the rate u."""
    return distance < 2 * h * absolute(u) + IMPULSIVE_ACCELERATION * h * h


def _allowed_displacement(kind: str, distance: Any, timestep: Any) -> Any:
    """The displacement that one step may make: to contact, or out of a penetration by the correction; 0 for
    friction.
    """
    if kind == "friction":
        return 0
    return where(
        distance < 0,
        maximum(PENETRATION_CORRECTION * distance, -LARGEST_CORRECTION_SPEED * timestep),
        distance,
    )

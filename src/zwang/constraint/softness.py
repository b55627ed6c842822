"""MuJoCo's numbers of softness: solref and solimp to stiffness, damping, impedance, R and the wanted acceleration.

A soft row, alone, moves as  a1 + d (b v + k r) = (1 - d) a0:  a share d of the way from the free acceleration a0 to that of a
spring and damper per unit of mass. Source: seed 002, with MuJoCo's numbers where they differ (direct format: k has the factor d(r)).
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.rows import Rows, array
from zwang.mechanism.joints import Softness
from zwang.scalar import absolute, are_constant, clip, divide, is_zero, maximum, minimum, power, where

SMALLEST_IMPEDANCE, LARGEST_IMPEDANCE = 0.0001, 0.9999
TINY = 1e-15
HARD_CORRECTION = 0.2  # the part of a hard contact's penetration that one step takes back
RESCUE = 1.0  # the speed [m/s or rad/s] with which it does so at most: the deep ones are not shot out


class Response(NamedTuple):
    """A spring's and damper's constants per unit of mass: stiffness K [1/s^2], damping B [1/s]; impedance d.

    The wanted acceleration is aref = -B v - K d r.
    """

    K: Any
    B: Any
    d: Any


def clamped(solimp: Any) -> tuple[Any, ...]:
    """solimp within its limits: impedances and midpoint in [1e-4, 0.9999], width >= 0, power >= 1."""
    d0, dw, width, midpoint, exponent = solimp
    d0, dw, midpoint = (clip(x, SMALLEST_IMPEDANCE, LARGEST_IMPEDANCE) for x in (d0, dw, midpoint))
    return d0, dw, maximum(0, width), midpoint, maximum(1, exponent)


def impedance(solimp: Any, r: Any) -> Any:
    """d(r), between d0 at r = 0 and d_width at |r| >= width, along two pieces of a power that meet at the midpoint.

    With x = |r| / width: y = x^p / m^(p-1) up to x = m, then 1 - (1-x)^p / (1-m)^(p-1); d = d0 + y (dw - d0).
    """
    d0, dw, width, m, p = clamped(solimp)
    if are_constant(d0, dw, width) and (d0 == dw or width <= TINY):
        return (d0 + dw) / 2
    x = minimum(absolute(r) / width, 1)
    if are_constant(p) and p == 1:
        return d0 + x * (dw - d0)
    rising = divide(1, power(m, p - 1)) * power(x, p)
    closing = 1 - divide(1, power(1 - m, p - 1)) * power(1 - x, p)
    return d0 + where(x <= m, rising, closing) * (dw - d0)


def reference(solref: Any, solimp: Any, shortest_time: Any = 0) -> tuple[Any, Any]:
    """K [1/s^2] and B [1/s] of solref = (time constant, damping ratio) or (-stiffness, -damping).

    shortest_time [s]: time constants are not taken below it (MuJoCo's refsafe: two time steps). A mixture of the two formats
    is replaced by the default (0.02, 1), as in MuJoCo.
    """
    first, second = solref
    if are_constant(first, second) and (first > 0) != (second > 0):
        first, second = Softness().solref
    dw = clamped(solimp)[1]
    time = maximum(first, shortest_time)
    K = where(
        first > 0, divide(1, maximum(TINY, dw * dw * time * time * second * second)), -first / (dw * dw)
    )
    B = where(second > 0, divide(2, maximum(TINY, dw * time)), -second / dw)
    return K, B


def response(softness: Softness, r: Any, shortest_time: Any = 0) -> Response:
    """K, B and d of a softness at the violation r."""
    K, B = reference(softness.solref, softness.solimp, shortest_time)
    return Response(K, B, impedance(softness.solimp, r))


def regularisation(d: Any, weight: Any, least: Any = TINY) -> Any:
    """R = (1 - d) / d times the approximate diagonal of A, and `least` at least."""
    return maximum(least, (1 - d) * weight / d)


def soft_rows(
    name: str, kind: str, J: Any, v: Any, position: Any, softness: Softness, *, weight: Any, margin: Any = 0,
    violation: Any = None, bias: Any = 0, shortest_time: Any = 0, bound: Any = 0, active: Any = True,
    least: Any = TINY,
) -> Rows:  # fmt: skip
    """Rows of one constraint with common softness: aref = -B J v - K d (position - margin) - bias, R from d and the weights.

    violation: the r of d(r), by default each row's position - margin. bias: Jdot v, where it counts. shortest_time [s]: see `reference`. least: of R. J (n, nv);
    position (n,); weight, margin, bias, bound, active are one for each row or one for all.
    """
    J, n = np.array(J), len(position)
    velocity = J @ np.array(v)
    weights, margins, bounds, actives = (_each(x, n) for x in (weight, margin, bound, active))
    r = [p - m for p, m in zip(position, margins, strict=True)]
    answers = [response(softness, x if violation is None else violation, shortest_time) for x in r]
    if kind == "friction":
        answers = [answer._replace(K=0) for answer in answers]
    biases = _each(bias, n)
    aref = [-a.B * u - a.K * a.d * x - b for a, u, x, b in zip(answers, velocity, r, biases, strict=True)]
    R = [regularisation(a.d, w, least) for a, w in zip(answers, weights, strict=True)]
    return Rows(
        (name,) * n, (kind,) * n, J, array(aref), array(R), array(list(position)), velocity, array(margins),
        array([a.d for a in answers]), array(weights), array(bounds), np.array(actives),
    )  # fmt: skip


def hard_softness_rows(
    name: str, kind: str, J: Any, v: Any, position: Any, *, weight: Any, bias: Any = 0, timestep: Any = None,
    settling_time: Any = None, bound: Any = 0, active: Any = True, restitution: Any = 0,
) -> Rows:  # fmt: skip
    """Rows of one hard constraint, R = 0.

    An equality follows its second derivative, J a = -bias with bias = Jdot v; settling_time [s] adds critically damped
    stabilisation, -2 v / T - r / T^2. An inequality, and friction, look one time step ahead: after it the row's velocity is not
    below -gap / timestep (or zero), and a fifth of a penetration is taken back, at RESCUE at most. restitution e: a first row that would
    close within the step has the velocity -e J v after it. Source: Moreau's time stepping; Newton's law of impact.
    """
    J, n = np.array(J), len(position)
    velocity = J @ np.array(v)
    if kind == "equality":
        aref = [-b for b in _each(bias, n)]
        if settling_time is not None:
            rates = [
                2 * u / settling_time + r / settling_time**2 for u, r in zip(velocity, position, strict=True)
            ]
            aref = [a - rate for a, rate in zip(aref, rates, strict=True)]
    else:
        least = [-_step_gap(kind, p, timestep) / timestep for p in position]
        if not is_zero(restitution):
            u = velocity[0]
            least[0] = where(u < least[0], maximum(least[0], -restitution * u), least[0])
        aref = [(w - u) / timestep for w, u in zip(least, velocity, strict=True)]
    zero, one = [0] * n, [1] * n
    return Rows(
        (name,) * n, (kind,) * n, J, array(aref), np.zeros(n, int), array(list(position)), velocity, array(zero),
        array(one), array(_each(weight, n)), array(_each(bound, n)), np.array(_each(active, n)),
    )  # fmt: skip


def _step_gap(kind: str, gap: Any, timestep: Any) -> Any:
    """What of a gap a step may close; of a penetration, what it takes back."""
    if kind == "friction":
        return 0
    return where(gap < 0, maximum(HARD_CORRECTION * gap, -RESCUE * timestep), gap)


def _each(value: Any, n: int) -> list[Any]:
    """One value for each of n rows."""
    return list(value) if np.ndim(value) else [value] * n

"""Touches of hard limits and contacts that turn round before they are closed.

Where integrators evaluate the rows several times in a step, a hard limit or contact closes along a critically
damped motion, which never reaches the distance zero. If a force drives the bodies apart again, the distance
r turns round at a positive value, though the motion that is approximated reaches zero; and so does the value
of an event that is zero in the closed limit or contact.

Let the force give the distance the acceleration a. The motion without the row is r + a s^2 / 2 at the time s
before it turns at r, and the row acts where 2 a s / h - (r + a s^2 / 2) / h^2 > a. So it has acted if
r < a h^2. A motion that without the row would turn just at zero turns at 0.88 a h^2, with rk4 at up to
`GRAZING` a h^2, and one that would pass zero, nearer, but not below a h^2 / 2. So each touch is found, and a
motion that without the row would turn less than a h^2 before zero may count as one.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import NamedTuple

import numpy as np

from zwang.constraint.context import StepForm, row_context
from zwang.constraint.inverse_weights import InverseWeights, inverse_weights
from zwang.constraint.limit import has_hard_limits
from zwang.constraint.rows import Rows
from zwang.constraint.rows_of_mechanism import constraint_rows
from zwang.dynamics.crba import crba_of
from zwang.integrator.root_location import locate_root
from zwang.kinematics.configuration import integrate_configuration
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.simulation.impact_stage import has_hard_contacts

GRAZING = 0.93  # measured; 0.878 in continuous time, by x'' = -2 x' - x from s = 2 + sqrt(2) until x'' = 1
CLOSED = 0.05  # of the value of an event where it turns, within which it is zero in the closed contact
WINDOW = 0.5  # steps on both sides of the turn, over which the acceleration is taken
DIFFERENCE = 1e-3  # steps, by which the state is moved for the rate of an event
SHARE_OF_FALL = 0.3  # of a value that it has at least fallen in the step before that in which it turns

StateAt = Callable[[float], tuple[np.ndarray, np.ndarray]]
"""q (nq,) and v (nv,) of one world at a time."""

ValueAt = Callable[[float, np.ndarray, np.ndarray], float]
"""The value of an event of one world at t, q, v."""


class Touch(NamedTuple):
    """The time [s] at which the value of an event turns round by a hard touch, and this value."""

    t: float
    value: float


def may_turn(before: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Whether values may turn round by a hard touch in a step, from those at its ends and one step before,
    where they may be NaN.

    A row that acts makes the absolute value fall by a h^2 / 2 or more in the step before, and it is then at
    most 1.4 a h^2.
    """
    falls = ~(np.abs(before) <= (1 + SHARE_OF_FALL) * np.abs(start))
    return (start * end > 0) & falls


class HardTouches:
    """Finds where the values of events turn round near zero because a hard limit or contact has acted.

    h [s]: the step size of hard rows. is_needed: whether the mechanism has any. told: the names of the events
    whose touches were warned of.
    """

    def __init__(self, mechanism: Mechanism, h: float):
        self.is_needed = has_hard_contacts(mechanism) or has_hard_limits(mechanism)
        self.told = set[str]()
        self._mechanism, self._h = mechanism, h
        self._model = lru_cache(maxsize=1)(self._new_model)

    def find(
        self, value: ValueAt, params: Mapping[str, float], span: tuple[float, float], start: float,
        at: StateAt, rates: dict[float, float],
    ) -> Touch | None:  # fmt: skip
        """Where in the span of time the value turns round by a hard touch, or None.

        params: the parameters of the world by name. span [s]: begin and end. start: the value at the begin,
        whose sign the value keeps in the span. rates: the rate of the value at the end of the span before,
        by its time, if it is known; then that of this span.
        """
        sign = float(np.sign(start))

        def rate(t: float) -> float:
            return sign * self._rate(value, t, *at(t))

        first = sign * rates[span[0]] if span[0] in rates else rate(span[0])
        rates.clear()
        if not first < 0:
            return None
        last = rate(span[1])
        rates[span[1]] = sign * last
        if not last >= 0:
            return None
        t = float(locate_root(rate, *span, first, last))
        q, v = at(t)
        turned, closed = value(t, q, v), self._closed_configuration(params, span, t, at)
        is_touch = closed is not None and sign * value(t, closed, v) <= CLOSED * sign * turned
        return Touch(t, turned) if is_touch else None

    def _rate(self, value: ValueAt, t: float, q: np.ndarray, v: np.ndarray) -> float:
        """The rate of the value at constant velocities, by central differences."""
        tree, dt = self._mechanism.tree, DIFFERENCE * self._h
        later, earlier = (value(t + s, integrate_configuration(tree, q, v, s), v) for s in (dt, -dt))
        return (later - earlier) / (2 * dt)

    def _closed_configuration(
        self, params: Mapping[str, float], span: tuple[float, float], t: float, at: StateAt
    ) -> np.ndarray | None:
        """The configuration (nq,) near that at the time t in which the distances of all rows that have turned
        round there are zero; None without such rows.

        It is the nearest one in the metric of the mass matrix, to first order.
        """
        begin, end = max(span[0], t - WINDOW * self._h), min(span[1], t + WINDOW * self._h)
        rows, M = self._hard_rows(params, t, *at(t))
        speeds = [self._hard_rows(params, time, *at(time))[0] for time in (begin, end)]
        J, r = [], []
        for number, (J_row, distance, _) in rows.items():
            if all(number in found for found in speeds):
                before, after = (found[number][2] for found in speeds)
                acceleration = (after - before) / (end - begin)
                if before < 0 <= after and distance < GRAZING * acceleration * self._h**2:
                    J.append(J_row)
                    r.append(distance)
        if not J:
            return None
        J_M = np.linalg.solve(M, np.array(J).T)
        displacement = -J_M @ np.linalg.lstsq(np.array(J) @ J_M, np.array(r))[0]
        q, _ = at(t)
        return np.asarray(integrate_configuration(self._mechanism.tree, q, displacement), float)

    def _hard_rows(
        self, params: Mapping[str, float], t: float, q: np.ndarray, v: np.ndarray
    ) -> tuple[dict[int, tuple[np.ndarray, float, float]], np.ndarray]:
        """J (nv,), distance and its rate of the hard limits and contacts that are active, by the number of
        the row; and the mass matrix (nv, nv).
        """
        mechanism, weights = self._model(tuple(params.items()))
        kinematics, form = Kinematics(mechanism.tree, q, v), StepForm(self._h, multistage=True)
        context = row_context(mechanism, kinematics, inverse_weights=weights, step=form, time=t)
        rows, numbers = constraint_rows(context).only_active()
        found = {
            numbers[k]: (rows.J[k].astype(float), float(rows.position[k]), float(rows.velocity[k]))
            for k in _hard_unilateral(rows)
        }
        return found, np.asarray(crba_of(kinematics), float)

    def _new_model(self, params: tuple[tuple[str, float], ...]) -> tuple[Mechanism, InverseWeights]:
        """The mechanism with the numbers of a world, and its inverse weights."""
        one = self._mechanism.subs(dict(params)) if params else self._mechanism
        return one, inverse_weights(one)


def _hard_unilateral(rows: Rows) -> list[int]:
    """The numbers of the hard rows of limits and of the normal directions of contacts."""
    normals = {cone.start for cone in rows.cones}
    return [
        k
        for k, (kind, hard) in enumerate(zip(rows.kinds, rows.hard, strict=True))
        if hard and (kind in ("limit", "contact") or (kind == "cone" and k in normals))
    ]

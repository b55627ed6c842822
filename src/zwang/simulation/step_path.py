"""The path of a world in a step, on which events are located. Impacts of hard contacts and stops of Coulomb
friction divide it into pieces.

In a piece the configuration follows Hermite's cubic on the configuration manifold, which has the positions
and the velocities of both ends. For the methods of Euler's kind, whose velocities lag half a step behind, it
is the parabola of the leapfrog method.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zwang.integrator.fixed_step import displacement_at
from zwang.kinematics.configuration import (
    difference_configuration,
    displacement_rate,
    integrate_configuration,
)
from zwang.mechanism.tree import Tree
from zwang.simulation.impact_stage import LoggedImpact

INVERSION_STEPS = 12  # of the velocity from the rate of the displacement; each gains about three digits


@dataclass(frozen=True)
class StepPath:
    """The path of one world during the time h [s], from (q0, v0) to (q1, v1).

    lag [s]: the time by which the velocities are those of before, half a step for Euler's method.
    """

    tree: Tree
    h: float
    lag: float
    q0: np.ndarray
    v0: np.ndarray
    q1: np.ndarray
    v1: np.ndarray

    def at(self, share: float) -> tuple[np.ndarray, np.ndarray]:
        """q and v after a share of the path."""
        if not self.h:
            return self.q1, self.v1
        displacement = np.asarray(difference_configuration(self.tree, self.q1, self.q0), float)
        lag = (self.v1 - self.v0) * (self.lag / self.h)
        end = self.v1 + lag
        if not self.lag:
            end = np.asarray(displacement_rate(self.tree, displacement, end), float)
        x, rate = displacement_at(displacement / self.h, self.v0 + lag, end, share, self.h)
        q = np.asarray(integrate_configuration(self.tree, self.q0, x), float)
        return q, (rate if self.lag else self._velocity(x, rate)) - lag

    def _velocity(self, x: np.ndarray, rate: np.ndarray) -> np.ndarray:
        """The velocities at which the displacement x has this rate, by fixed-point iteration."""
        v = rate
        for _ in range(INVERSION_STEPS):
            v = v + rate - np.asarray(displacement_rate(self.tree, x, v), float)
        return v


def pieces_between_impacts(path: StepPath, impacts: Sequence[LoggedImpact]) -> list[tuple[float, StepPath]]:
    """The pieces of the path of a step between its impacts and stops, each with its beginning [s] in the
    step.

    The velocities of an impact are those at its time; in the pieces they lag behind as those of the steps do.
    """
    tree, lag = path.tree, path.lag
    found, begin, q0, v0 = [], 0.0, path.q0, path.v0
    for k, impact in enumerate(impacts):
        size = max(impact.elapsed - begin, 0.0)
        # the acceleration from the velocities at both ends, of which that of the step lags behind
        span = size if k else size + lag
        a = (impact.v_before - v0) / span if span else 0 * v0
        start = v0 - lag * a if k else v0
        found.append((begin, StepPath(tree, size, lag, q0, start, impact.q, impact.v_before - lag * a)))
        begin, q0, v0 = impact.elapsed, impact.q, impact.v_after
    size = max(path.h - begin, 0.0)
    start = v0 - lag * _last_acceleration(path, size, q0, v0) if impacts else v0
    return [*found, (begin, StepPath(tree, size, lag, q0, start, path.q1, path.v1))]


def _last_acceleration(path: StepPath, size: float, q0: np.ndarray, v0: np.ndarray) -> np.ndarray:
    """The acceleration after the last impact, which leaves (q0, v0), to the lagging velocity of the end: by
    the velocities, or where these belong to nearly one time by the displacement.
    """
    if size < path.lag / 2 or not path.lag:
        return (path.v1 - v0) / (size - path.lag) if path.lag else 0 * v0
    displacement = np.asarray(difference_configuration(path.tree, path.q1, q0), float)
    return 2 * (displacement / size - v0) / size

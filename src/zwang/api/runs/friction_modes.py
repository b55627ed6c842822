"""The stick and slip modes of Coulomb friction in error-controlled integration.

Between two switches every law either slides with a fixed sign or is at rest, so that the state derivative is
smooth. Sliding ends where its speed becomes zero, and rest where the friction force reaches mu_s N.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from zwang.constraint.coulomb_friction import BREAKAWAY, REST_SPEED
from zwang.integrator.root_location import crosses, locate_root

SAMPLES = (
    4  # points of each step at which a switch is looked for; two within a quarter of a step are not noticed
)

FrictionFunction = Callable[[float, np.ndarray, np.ndarray], np.ndarray]
"""Sliding speeds, friction forces and bounds mu_s N (3 m,) at the time t, in the state y, in given modes."""


class _Switch(NamedTuple):
    """The law k changes its mode at the time t [s]."""

    t: float
    k: int


class FrictionModes:
    """The modes of m laws in one world: signs (m,) of the sliding speeds, 0 for a law at rest.

    h [s]: the largest step while a law is at rest. The state may then be constant, so that the estimated
    error does not bound the step, while a force of time exceeds mu_s N and falls below it again.
    """

    def __init__(self, friction: FrictionFunction, count: int, h: float):
        self._friction, self._next, self._h = friction, -1, h
        self.signs = np.zeros(count)

    @property
    def largest_step(self) -> float:
        """The largest step [s] in the present modes."""
        return np.inf if self.signs.all() else self._h

    def start(self, t: float, y: np.ndarray) -> None:
        """The modes in the initial state: a law slides if it has a sliding speed or cannot stick."""
        speeds = self._parts(t, y)[0]
        self.signs = np.where(np.abs(speeds) > REST_SPEED, np.sign(speeds), 0.0)
        self._release(t, y)

    def next_switch(self, t_old: float, t: float, state: Callable[[float], np.ndarray]) -> float | None:
        """The time of the first change of a mode within a step from t_old to t [s], or None.

        state(t): the solution within the step.
        """
        times = np.linspace(t_old, t, SAMPLES + 1)
        before = self._margins(t_old, state(t_old))
        for start, end in pairwise(times):
            after = self._margins(end, state(end))
            found = [_Switch(self._root(k, start, end, before[k], after[k], state), k)
                     for k in range(len(self.signs)) if crosses(before[k], after[k], -1)]  # fmt: skip
            # a law that begins to slide against the sign with which it was released is at rest
            found += [_Switch(end, k) for k in range(len(self.signs))
                      if before[k] <= 0 and after[k] < -REST_SPEED and not found]  # fmt: skip
            if found:
                first = min(found)
                self._next = first.k
                return first.t
            before = after
        return None

    def switch(self, t: float, y: np.ndarray) -> None:
        """Change the mode of the law that `next_switch` found, at the time t [s] in the state y."""
        if self.signs[self._next]:
            self.signs[self._next] = 0.0
        else:
            self.signs[self._next] = -np.sign(self._parts(t, y)[1][self._next])
        self._release(t, y)

    def _release(self, t: float, y: np.ndarray) -> None:
        """Let laws at rest slide whose friction force would have to exceed mu_s N."""
        for _ in self.signs:
            _, force, bound = self._parts(t, y)
            excess = np.where(self.signs == 0, np.abs(force) - (1 + BREAKAWAY) * bound, -np.inf)
            k = int(np.argmax(excess))
            if not excess[k] > 0:
                return
            self.signs[k] = -np.sign(force[k])

    def _margins(self, t: float, y: np.ndarray) -> np.ndarray:
        """For each law (m,) a number that is positive while its mode lasts."""
        speeds, force, bound = self._parts(t, y)
        return np.where(self.signs == 0, (1 + BREAKAWAY) * bound - np.abs(force), self.signs * speeds)

    def _root(
        self, k: int, start: float, end: float, before: float, after: float,
        state: Callable[[float], np.ndarray],
    ) -> float:  # fmt: skip
        return float(locate_root(lambda t: float(self._margins(t, state(t))[k]), start, end, before, after))

    def _parts(self, t: float, y: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        speeds, force, bound = np.split(self._friction(t, y, self.signs), 3)
        return speeds, force, bound

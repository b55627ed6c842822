"""Rounds of searches over the targets of a batch that are not solved yet.

Every target gets the same list of starts: first its q0, then numbers drawn once from the seed. A round gives each target that is
left its next start, or, when few are left, several at a time in parallel lanes; of those that converge the first one in the
list counts. So an answer depends on the target alone, not on the batch around it.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zwang.mechanism.mechanism import Mechanism
from zwang.robot.ik_functions import COST, STATUS, TURNS, IKFunctions, SearchResult
from zwang.robot.joint_limits import Limits
from zwang.robot.levenberg_marquardt import CONVERGED, Settings
from zwang.robot.sampling import configurations_from_uniform

PARALLEL = 64  # searches that a round has at least
PATIENT_TURNS = 200


@dataclass(frozen=True)
class SearchOptions:
    """What the caller wants: see `solve_ik`."""

    method: str = "lm"
    tolerance: tuple[float, float] = (1e-6, 1e-6)
    turns: int = 16
    restarts: int = 200
    seed: int = 0
    alpha: Any = 1.0

    @property
    def hasty(self) -> Settings:
        return Settings(*self.tolerance, float(self.turns), 0.0)

    @property
    def patient(self) -> Settings:
        return Settings(*self.tolerance, float(max(self.turns, PATIENT_TURNS)), 1.0)


class RestartSearch:
    """The best so far for every target of a batch, and the searches that better it.

    q (N, nq), numbers (N, 5) as `Found` has them, good (N,): solved; turns, starts (N,): spent so far.
    """

    def __init__(
        self, m: Mechanism, programs: IKFunctions, start: np.ndarray, targets: list[np.ndarray], options: SearchOptions
    ):
        self.m, self.programs, self.targets, self.options = m, programs, targets, options
        self.start = start
        self.limits = Limits.of(programs.problem.coordinates, m)
        self.q, self.numbers, self.good = start, np.full((len(start), 5), np.inf), np.zeros(len(start), bool)
        self.turns, self.starts = np.zeros(len(start)), np.zeros(len(start), int)

    @property
    def left(self) -> np.ndarray:
        """The numbers of the targets that are not solved."""
        return np.flatnonzero(~self.good)

    def first(self, settings: Settings) -> None:
        """Every target from its own start."""
        found, self.good = self._search(self.start, self.targets, self.start, settings)
        self.q, self.numbers = found.q, found.numbers
        self.turns += found.numbers[:, TURNS]
        self.starts += 1

    def restart(self) -> None:
        """Rounds from further starts, until all targets are solved or all starts used."""
        used = 0
        while used < self.options.restarts:
            left = self.left
            if not len(left):
                return
            width = min(max(1, PARALLEL // len(left)), self.options.restarts - used)
            if width == 1:
                self._next(left, self.list_of_starts[used])
            else:
                self._several(left, self.list_of_starts[used : used + width])
            used += width

    def refine(self) -> None:
        """Patient searches from the best that was found for the targets that are left."""
        left = self.left
        if len(left):
            targets = [x[left] for x in self.targets]
            found, good = self._search(self.q[left], targets, self.start[left], self.options.patient)
            self.turns[left] += found.numbers[:, TURNS]
            self.q[left], self.numbers[left], self.good[left] = found.q, found.numbers, good

    @cached_property
    def list_of_starts(self) -> np.ndarray:
        """Further starts (restarts, nq), the same for every target."""
        numbers = np.random.default_rng(self.options.seed).random((self.options.restarts, self.m.nq))
        return configurations_from_uniform(self.m, self.programs.problem.coordinates, numbers)

    def _next(self, left: np.ndarray, start: np.ndarray) -> None:
        """One further start for the targets that are left."""
        near, targets = self.start[left], [x[left] for x in self.targets]
        found, good = self._search(self._started(start, near), targets, near, self.options.hasty)
        self._enter(left, found, good)
        self.turns[left] += found.numbers[:, TURNS]
        self.starts[left] += 1

    def _several(self, left: np.ndarray, starts: np.ndarray) -> None:
        """Several further starts at once; the first that converges counts, else the nearest."""
        width, which = len(starts), np.repeat(left, len(starts))
        near, targets = self.start[which], [x[which] for x in self.targets]
        q = self._started(np.tile(starts, (len(left), 1)), near)
        found, good = self._search(q, targets, near, self.options.hasty)
        table, costs, turns = (
            x.reshape(-1, width) for x in (good, found.numbers[:, COST], found.numbers[:, TURNS])
        )
        any_good, first = table.any(axis=1), table.argmax(axis=1)
        chosen = np.arange(len(left)) * width + np.where(any_good, first, costs.argmin(axis=1))
        self._enter(left, SearchResult(found.q[chosen], found.numbers[chosen]), good[chosen])
        counted = np.where(any_good, first + 1, width)
        self.turns[left] += (turns * (np.arange(width) < counted[:, None])).sum(axis=1)
        self.starts[left] += counted

    def _search(
        self, start: np.ndarray, targets: list[np.ndarray], near: np.ndarray, settings: Settings
    ) -> tuple[SearchResult, np.ndarray]:
        """Searches; what was found, near to `near` where whole turns do not matter, and whether it is good."""
        found = self.programs.search(start, targets, settings)
        bounded = self.programs.problem.bounded
        q = self.limits.wrapped(found.q, near, all_turns=not bounded)
        good = found.numbers[:, STATUS] == CONVERGED
        return SearchResult(q, found.numbers), good & self.limits.hold(q) if bounded else good

    def _enter(self, targets: np.ndarray, found: SearchResult, good: np.ndarray) -> None:
        """Take what was found for these unsolved targets where it is good, or nearer than before."""
        take = np.flatnonzero(good | (found.numbers[:, COST] < self.numbers[targets, COST]))
        at = targets[take]
        self.q[at], self.numbers[at], self.good[at] = found.q[take], found.numbers[take], good[take]

    def _started(self, start: np.ndarray, near: np.ndarray) -> np.ndarray:
        """`start`, with the coordinates that the search leaves alone as the caller has them."""
        if not len(self._fixed):
            return start
        q = np.array(np.broadcast_to(start, near.shape))
        q[:, self._fixed] = near[:, self._fixed]
        return q

    @cached_property
    def _fixed(self) -> np.ndarray:
        c = self.programs.problem.coordinates
        tied = {tie.this for tie in c.ties}
        still = [link.q for link in self.m.tree.links if link.v.start not in set(c.free)]
        return np.array([i for q in still for i in range(q.start, q.stop) if i not in tied], dtype=int)

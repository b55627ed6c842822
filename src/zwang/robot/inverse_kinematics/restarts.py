"""Restarts: repeated Levenberg-Marquardt searches for the targets of a batch that are not solved yet.

Every target uses the same table of starts: first its own q0, then starts drawn once from the seed. Each pass
gives every unsolved target its next start. When few targets are unsolved, a pass tries several starts of each
in parallel lanes, and the first in the table that converges counts. So the solution of a target does not
depend on the batch.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zwang.mechanism.mechanism import Mechanism
from zwang.robot.inverse_kinematics.ik_functions import COST, ITERATIONS, STATUS, IKFunctions, SearchResult
from zwang.robot.inverse_kinematics.levenberg_marquardt import CONVERGED, Settings
from zwang.robot.joint_limits import JointLimits
from zwang.robot.sampling import configurations_from_uniform

PARALLEL_SEARCHES = 64  # smallest number of searches in one pass
REFINEMENT_ITERATIONS = 200

StepFactor = float | np.ndarray | Callable[[int], Any]


@dataclass(frozen=True)
class SearchOptions:
    """Options of a solution as `solve_ik` documents them."""

    method: str = "lm"
    tolerance: tuple[float, float] = (1e-6, 1e-6)
    iterations: int = 16
    restarts: int = 200
    seed: int = 0
    alpha: StepFactor = 1.0

    @property
    def restart_settings(self) -> Settings:
        """Settings of a search that terminates early, since another start may succeed."""
        return Settings(*self.tolerance, float(self.iterations), 0.0)

    @property
    def refinement_settings(self) -> Settings:
        """Settings of a search that continues until no step decreases the error."""
        return Settings(*self.tolerance, float(max(self.iterations, REFINEMENT_ITERATIONS)), 1.0)


class RestartSearch:
    """The best result so far for every target of a batch, and the searches that improve it.

    q (N, nq) and metrics (N, 5) as in `SearchResult`; converged (N,); iterations and starts (N,): used so
    far.
    """

    def __init__(
        self,
        m: Mechanism,
        functions: IKFunctions,
        start: np.ndarray,
        targets: list[np.ndarray],
        options: SearchOptions,
    ):
        self.m, self.functions, self.targets, self.options = m, functions, targets, options
        self.start = start
        self.limits = JointLimits.of(functions.problem.coordinates, m)
        self.q, self.metrics = start, np.full((len(start), 5), np.inf)
        self.converged = np.zeros(len(start), bool)
        self.iterations, self.starts = np.zeros(len(start)), np.zeros(len(start), int)

    @property
    def unsolved(self) -> np.ndarray:
        """The numbers of the targets without a solution."""
        return np.flatnonzero(~self.converged)

    def search_from_start(self, settings: Settings) -> None:
        """Search every target from its own start."""
        found, self.converged = self._search(self.start, self.targets, self.start, settings)
        self.q, self.metrics = found.q, found.metrics
        self.iterations += found.metrics[:, ITERATIONS]
        self.starts += 1

    def restart(self) -> None:
        """Search from further starts until all targets are solved or all starts are used."""
        used = 0
        while used < self.options.restarts:
            unsolved = self.unsolved
            if not len(unsolved):
                return
            width = min(max(1, PARALLEL_SEARCHES // len(unsolved)), self.options.restarts - used)
            if width == 1:
                self._search_next_start(unsolved, self.start_table[used])
            else:
                self._search_several_starts(unsolved, self.start_table[used : used + width])
            used += width

    def refine(self) -> None:
        """Continue the search for every unsolved target from its best result."""
        unsolved = self.unsolved
        if len(unsolved):
            targets = [x[unsolved] for x in self.targets]
            found, converged = self._search(
                self.q[unsolved], targets, self.start[unsolved], self.options.refinement_settings
            )
            self.iterations[unsolved] += found.metrics[:, ITERATIONS]
            self.q[unsolved], self.metrics[unsolved], self.converged[unsolved] = (
                found.q,
                found.metrics,
                converged,
            )

    @cached_property
    def start_table(self) -> np.ndarray:
        """Further starts (restarts, nq), the same for every target."""
        uniform = np.random.default_rng(self.options.seed).random((self.options.restarts, self.m.nq))
        return configurations_from_uniform(self.m, self.functions.problem.coordinates, uniform)

    def _search_next_start(self, unsolved: np.ndarray, start: np.ndarray) -> None:
        """Search the unsolved targets from one further start."""
        near, targets = self.start[unsolved], [x[unsolved] for x in self.targets]
        found, converged = self._search(
            self._with_fixed(start, near), targets, near, self.options.restart_settings
        )
        self._keep_better(unsolved, found, converged)
        self.iterations[unsolved] += found.metrics[:, ITERATIONS]
        self.starts[unsolved] += 1

    def _search_several_starts(self, unsolved: np.ndarray, starts: np.ndarray) -> None:
        """Search the unsolved targets from several starts at once.

        Of each target's searches the first that converges counts, and otherwise the one with the smallest
        cost.
        """
        width, which = len(starts), np.repeat(unsolved, len(starts))
        near, targets = self.start[which], [x[which] for x in self.targets]
        q = self._with_fixed(np.tile(starts, (len(unsolved), 1)), near)
        found, converged = self._search(q, targets, near, self.options.restart_settings)
        table, costs, iterations = (
            x.reshape(-1, width) for x in (converged, found.metrics[:, COST], found.metrics[:, ITERATIONS])
        )
        any_converged, first = table.any(axis=1), table.argmax(axis=1)
        chosen = np.arange(len(unsolved)) * width + np.where(any_converged, first, costs.argmin(axis=1))
        self._keep_better(unsolved, SearchResult(found.q[chosen], found.metrics[chosen]), converged[chosen])
        counted = np.where(any_converged, first + 1, width)
        self.iterations[unsolved] += (iterations * (np.arange(width) < counted[:, None])).sum(axis=1)
        self.starts[unsolved] += counted

    def _search(
        self, start: np.ndarray, targets: list[np.ndarray], near: np.ndarray, settings: Settings
    ) -> tuple[SearchResult, np.ndarray]:
        """The result of searches, with angles wrapped near to `near`, and whether each converged."""
        found = self.functions.search(start, targets, settings)
        bounded = self.functions.problem.bounded
        q = self.limits.wrapped(found.q, near, all_revolutions=not bounded)
        converged = found.metrics[:, STATUS] == CONVERGED
        return SearchResult(q, found.metrics), converged & self.limits.contain(q) if bounded else converged

    def _keep_better(self, targets: np.ndarray, found: SearchResult, converged: np.ndarray) -> None:
        """Store the results that converged, or whose cost is smaller than the best so far."""
        take = np.flatnonzero(converged | (found.metrics[:, COST] < self.metrics[targets, COST]))
        which = targets[take]
        self.q[which], self.metrics[which], self.converged[which] = (
            found.q[take], found.metrics[take], converged[take]
        )  # fmt: skip

    def _with_fixed(self, start: np.ndarray, near: np.ndarray) -> np.ndarray:
        """`start`, with the coordinates that the search does not change taken from `near`."""
        if not len(self._fixed):
            return start
        q = np.array(np.broadcast_to(start, near.shape))
        q[:, self._fixed] = near[:, self._fixed]
        return q

    @cached_property
    def _fixed(self) -> np.ndarray:
        """The numbers of the coordinates that the search does not change."""
        c = self.functions.problem.coordinates
        dependent = {coupling.dependent for coupling in c.couplings}
        fixed = [link.q for link in self.m.tree.links if link.v.start not in set(c.free)]
        return np.array([i for q in fixed for i in range(q.start, q.stop) if i not in dependent], dtype=int)

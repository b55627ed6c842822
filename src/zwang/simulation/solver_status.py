"""The status of the constraint solver, which every solved step has: converged, stagnated, or not converged.

A world whose accelerations must not be used fails (see `simulation.status`). A solver that has not converged
may still have found usable accelerations; the world then continues, and this status says so.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from functools import reduce
from typing import Any

import numpy as np

from zwang.scalar import equal, logical_and, logical_not, maximum, where
from zwang.solver.solution import Solution


class SolverStatus(IntEnum):
    """How the constraint solver terminated; a larger number is worse.

    NO_SOLUTION: nothing was solved, as before the first step. CONVERGED: the residual is within the solver's
    tolerance. STAGNATED: rounding prevented further progress before the residual was within the tolerance;
    the solution is as accurate as the numbers allow. NOT_CONVERGED: the iteration limit was reached, and the
    accelerations are less accurate than the tolerance; or a step reached its limit of impacts, and the rest
    of them is without rebound.
    """

    NO_SOLUTION = -1
    CONVERGED = 0
    STAGNATED = 1
    NOT_CONVERGED = 2

    @property
    def description(self) -> str:
        """The status as a sentence, with the remedy."""
        return DESCRIPTIONS[self]


DESCRIPTIONS = {
    SolverStatus.NO_SOLUTION: "nothing was solved",
    SolverStatus.CONVERGED: "converged",
    SolverStatus.STAGNATED: "stagnated at rounding: the residual is above the tolerance, and rounding errors "
    "prevent further progress",
    SolverStatus.NOT_CONVERGED: "not converged: the iteration limit, or the limit of impacts in a step, was "
    "reached; check masses and friction coefficients for very large ratios, or use a smaller step",
}

NO_SOLUTION, CONVERGED, STAGNATED, NOT_CONVERGED = -1, 0, 1, 2  # as plain numbers, for traced values


def solver_status(solution: Solution) -> Any:
    """The `SolverStatus` of a solution as a number, on any scalar."""
    reached = logical_and(solution.converged, logical_not(solution.failed))
    return where(reached, where(solution.stagnated, STAGNATED, CONVERGED), NOT_CONVERGED)


def worst_solver_status(statuses: Iterable[Any]) -> Any:
    """The worst of several statuses; CONVERGED if there are none."""
    return reduce(maximum, statuses, CONVERGED)


def initial_monitor(every: int) -> np.ndarray:
    """The monitor (3,) before the first step: worst status since the last record, steps since the last
    record, and the number of steps between two records.
    """
    return np.array([float(SolverStatus.NO_SOLUTION), 0.0, float(every)])


def is_recorded(monitor: Any) -> Any:
    """Whether the step that begins with this monitor (3,) ends with a record; on any scalar."""
    return equal(monitor[1] + 1, monitor[2])


def advanced_monitor(monitor: Any, status: Any) -> np.ndarray:
    """The monitor (3,) after a step whose solver had this status; on any scalar."""
    worst, steps, every = monitor
    worst = where(equal(steps, 0.0), status, maximum(worst, status))
    steps = where(equal(steps + 1, every), 0.0, steps + 1)
    return np.array([worst, steps, every])

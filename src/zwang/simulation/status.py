"""Why a world cannot go on: a number for each cause, so that compiled worlds can carry it, with its name and its mend.

Where several come together the larger number is told, as it causes the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

from zwang.errors import (
    DependentVelocitiesError,
    InconsistentConstraintsError,
    NonIdealForceError,
    SolveError,
)
from zwang.scalar import maximum, where


class FailureReason(NamedTuple):
    """A name for recordings, what happened, and what may help."""

    name: str
    what: str
    mend: str


FAILURE_REASONS = (
    FailureReason("none", "it ran to its end", ""),
    FailureReason(
        "not_converged",
        "the solver of constraints and contacts did not converge",
        "look for very large ratios of masses or friction, or take a smaller step",
    ),
    FailureReason(
        "open_constraint",
        "an exact constraint cannot be held",
        "start from zw.assemble(mechanism, q, v), check the lengths, or give the constraint a softness",
    ),
    FailureReason("left_bounds", "the motion left every bound", "look at what drives it"),
    FailureReason(
        "contradiction",
        "the exact constraints contradict each other",
        "give one of them a softness, leave one out, or start where they agree",
    ),
    FailureReason(
        "dependent_speeds",
        "the essential speeds became dependent",
        "choose others, or embedding=True, which chooses at each step",
    ),
    FailureReason(
        "no_working_force",
        "no force, or more than one, fits the law of a non-ideal constraint",
        "lower the friction, or give its constraint a softness",
    ),
    FailureReason("bad_control", "the control is not a number", "look at the function that gives it"),
    FailureReason("interrupted", "the run was interrupted", "run it again"),
)
NONE, NOT_CONVERGED, CONSTRAINT_VIOLATED, OUT_OF_BOUNDS, CONTRADICTION, DEPENDENT, NONIDEAL_FORCE, CONTROL, INTERRUPTED = range(len(FAILURE_REASONS))
REASON_OF_ERROR = {InconsistentConstraintsError: CONTRADICTION, DependentVelocitiesError: DEPENDENT, NonIdealForceError: NONIDEAL_FORCE}


def status_if(condition: Any, status: int) -> Any:
    """The fault where the condition holds, else none."""
    return where(condition, status, NONE)


def worst_status(statuses: Iterable[Any]) -> Any:
    """The largest of some faults, none of none."""
    return reduce(maximum, statuses, NONE)


def status_of_error(error: SolveError) -> int:
    """The fault that an error of the float path stands for."""
    return REASON_OF_ERROR.get(type(error), NOT_CONVERGED)

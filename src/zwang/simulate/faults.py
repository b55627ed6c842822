"""Why a world cannot go on: a number for each cause, so that compiled worlds can carry it, with its name and its mend.

Where several come together the larger number is told, as it causes the others.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

from zwang.errors import ContradictionError, DependentSpeedsError, SolveError, WorkingForceError
from zwang.scalar import maximum, where


class Cause(NamedTuple):
    """A name for recordings, what happened, and what may help."""

    name: str
    what: str
    mend: str


CAUSES = (
    Cause("none", "it ran to its end", ""),
    Cause(
        "not_converged",
        "the solver of constraints and contacts did not converge",
        "look for very large ratios of masses or friction, or take a smaller step",
    ),
    Cause(
        "open_constraint",
        "an exact constraint cannot be held",
        "start from zw.assemble(mechanism, q, v), check the lengths, or give the constraint a softness",
    ),
    Cause("left_bounds", "the motion left every bound", "look at what drives it"),
    Cause(
        "contradiction",
        "the exact constraints contradict each other",
        "give one of them a softness, leave one out, or start where they agree",
    ),
    Cause(
        "dependent_speeds",
        "the essential speeds became dependent",
        "choose others, or embedding=True, which chooses at each step",
    ),
    Cause(
        "no_working_force",
        "no force, or more than one, fits the law of a non-ideal constraint",
        "lower the friction, or give its constraint a softness",
    ),
    Cause("bad_control", "the control is not a number", "look at the function that gives it"),
)
NONE, NOT_CONVERGED, OPEN, LEFT, CONTRADICTION, DEPENDENT, WORKING, CONTROL = range(len(CAUSES))
OF_ERRORS = {ContradictionError: CONTRADICTION, DependentSpeedsError: DEPENDENT, WorkingForceError: WORKING}


def fault_if(condition: Any, fault: int) -> Any:
    """The fault where the condition holds, else none."""
    return where(condition, fault, NONE)


def worst(faults: Iterable[Any]) -> Any:
    """The largest of some faults, none of none."""
    return reduce(maximum, faults, NONE)


def fault_of(error: SolveError) -> int:
    """The fault that an error of the float path stands for."""
    return OF_ERRORS.get(type(error), NOT_CONVERGED)

"""The status of a simulated world: a number for each failure reason, with its name, description and remedy.

Compiled worlds carry the number. Where several failures occur in one step the largest number is reported,
because that failure is the cause of the others.
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
    """The name of a failure in recordings, a description, and a remedy."""

    name: str
    description: str
    remedy: str


FAILURE_REASONS = (
    FailureReason("none", "the world was simulated to the end", ""),
    FailureReason(
        "not_converged",
        "the constraint solver did not converge",
        "check masses and friction coefficients for very large ratios, or use a smaller step",
    ),
    FailureReason(
        "open_constraint",
        "a hard constraint cannot be satisfied",
        "start from zw.assemble(mechanism, q, v), check the lengths, or give the constraint a softness",
    ),
    FailureReason(
        "left_bounds", "the state exceeds all bounds", "check the forces that act on the mechanism"
    ),
    FailureReason(
        "contradiction",
        "the hard constraints contradict each other, or one of them is singular",
        "give one of them a softness, remove one, or start in a state where they are consistent and regular",
    ),
    FailureReason(
        "dependent_speeds",
        "the independent velocities became dependent",
        "choose others, or coordinate_reduction=True, which chooses them at each step",
    ),
    FailureReason(
        "no_working_force",
        "no force, or more than one force, satisfies the law of a non-ideal constraint, or it was not found",
        "reduce the friction, give its constraint a softness, or replace a formula for friction, which has "
        "no value at rest, by zw.CoulombFriction",
    ),
    FailureReason(
        "bad_control", "the control is not a finite number", "check the function that computes the control"
    ),
    FailureReason("interrupted", "the simulation was interrupted", "run it again"),
    FailureReason("terminal_event", "a terminal event occurred", ""),
    FailureReason(
        "rigid_friction",
        "rigid friction admits no acceleration, or several, at a contact that slides or would have to "
        "(Painleve's paradox, jamming)",
        "reduce the friction there, or use a soft contact",
    ),
    FailureReason(
        "too_many_contacts",
        "more contacts act at once than the constraint solver has memory for",
        "make hard contacts soft, or use fewer bodies",
    ),
)
"""The names are part of the format of recordings and never change."""

(
    NONE,
    NOT_CONVERGED,
    CONSTRAINT_VIOLATED,
    OUT_OF_BOUNDS,
    INCONSISTENT_CONSTRAINTS,
    DEPENDENT_VELOCITIES,
    NONIDEAL_FORCE,
    INVALID_CONTROL,
    INTERRUPTED,
    TERMINAL_EVENT,
    RIGID_FRICTION,
    TOO_MANY_CONTACTS,
) = range(len(FAILURE_REASONS))

STATUS_OF_ERROR = {
    InconsistentConstraintsError: INCONSISTENT_CONSTRAINTS,
    DependentVelocitiesError: DEPENDENT_VELOCITIES,
    NonIdealForceError: NONIDEAL_FORCE,
}


def status_if(condition: Any, status: int) -> Any:
    """The status where the condition is true, and NONE elsewhere."""
    return where(condition, status, NONE)


def worst_status(statuses: Iterable[Any]) -> Any:
    """The largest of several statuses; NONE if there are none."""
    return reduce(maximum, statuses, NONE)


def status_of_error(error: SolveError) -> int:
    """The status that corresponds to an exception of the evaluation on floats."""
    return STATUS_OF_ERROR.get(type(error), NOT_CONVERGED)

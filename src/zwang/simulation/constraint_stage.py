"""The stages of a step at which restrictions act: what restricts a mechanism, the efforts with which it does, and its drift taken back."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.coordinate_projection import ProjectedState, project_state
from zwang.constraint.equality import LOOPS
from zwang.constraint.hard import (
    VELOCITY_LEVEL,
    all_velocity_level_rows,
    is_hard_constraint,
    rheonomic_constraints,
)
from zwang.constraint.independent_velocities import IndependentVelocity, independent_velocities
from zwang.constraint.inverse_weights import InverseWeights, inverse_weights
from zwang.errors import SimulationError
from zwang.mechanism.constraints import NonIdeal
from zwang.mechanism.contact_pairs import ContactPair
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import MutableArray, are_constant, logical_not
from zwang.simulation.constrained import ConstrainedSolution, solve_constrained
from zwang.simulation.status import (
    CONTRADICTION,
    DEPENDENT,
    NONIDEAL_FORCE,
    NOT_CONVERGED,
    status_if,
    worst_status,
)

CONSTRAINT_TYPES = (*LOOPS, *VELOCITY_LEVEL, NonIdeal)
DRIFTS = ("projection", "stabilisation")
SETTLING_STEPS = 10  # an exact loop that has drifted apart closes again with this many steps as time constant


@dataclass(frozen=True)
class ConstraintModel:
    """A mechanism that something restricts, with the constants that its rows need; h [s]: the step.

    drift: whether exact constraints are kept by "projection" after each step, or by "stabilisation" of their forces.
    essential: the speeds by which they are embedded (see `independent_velocities`), or None where constraint forces hold them.
    """

    mechanism: Mechanism
    weights: InverseWeights
    h: float
    stabilization: str = "projection"
    independent: tuple[IndependentVelocity, ...] | None = None

    @property
    def settling_time(self) -> float | None:
        """The time constant [s] with which forces close gaps; None where projection does."""
        return SETTLING_STEPS * self.h if self.stabilization == "stabilisation" else None

    @property
    def exact(self) -> bool:
        """Whether some constraint holds exactly."""
        return bool(hard_constraints(self.mechanism))

    @property
    def projects(self) -> bool:
        """Whether there is something to project."""
        return self.stabilization == "projection" and self.exact


class ConstrainedMotion(NamedTuple):
    """The mass matrix M (nv, nv), the accelerations a (nv,) under all restrictions, the efforts J^T f (nv,) of these [N m or N].

    M a are the efforts of all that acts less h(q, v). fault: if these are not to be used. answers: how rows answered, where the solver tells.
    """

    M: np.ndarray
    a: np.ndarray
    efforts: np.ndarray
    status: Any
    row_status: MutableArray | None = None


def constraint_model_of(
    mechanism: Mechanism, h: float, stabilization: str = "projection", coordinate_reduction: Any = False
) -> ConstraintModel | None:
    """What restricts a mechanism, or None where nothing does. Raises SimulationError for what has no rows."""
    if not describe_constraints(mechanism):
        return None
    for constraint in mechanism.constraints:
        if not isinstance(constraint, CONSTRAINT_TYPES):
            raise SimulationError(
                f"constraint {constraint.name!r} of type {type(constraint).__name__} is not simulated; "
                f"those that are: {', '.join(kind.__name__ for kind in CONSTRAINT_TYPES)}"
            )
    return ConstraintModel(mechanism, inverse_weights(mechanism), h, stabilization, independent_velocities(mechanism, coordinate_reduction))


def hard_constraints(mechanism: Mechanism) -> list[Any]:
    """The constraints that hold exactly, less what the options switch off."""
    return [c for c in mechanism.constraints if is_hard_constraint(c)] if equalities_on(mechanism) else []


def time_or_error(constraint_model: ConstraintModel | None, t: Any) -> Any:
    """t, or 0 where it is None and nothing depends on it. Raises SimulationError, naming the constraint that does."""
    if t is not None:
        return t
    for name in rheonomic_constraints(constraint_model.mechanism) if constraint_model else ():
        raise SimulationError(
            f"constraint {name!r} depends on the time t, and this step is given none: give it, time=..."
        )
    return 0


def projected_onto_constraints(constraint_model: ConstraintModel | None, q: Any, v: Any, t: Any) -> ProjectedState:
    """q and v after a step, on the exact constraints at the time t again where drift is held by projection."""
    if constraint_model is None or not constraint_model.projects:
        return ProjectedState(q, v, False)
    return project_state(constraint_model.mechanism, constraint_model.weights, q, v, t)


def constrained_motion(constraint_model: ConstraintModel, q: Any, v: Any, tau: Any, t: Any = 0, begin: Any = None) -> ConstrainedMotion:
    """The accelerations that the restrictions allow under applied efforts tau [N m or N] at the time t, by Gauss's principle.

    a makes 1/2 (a - a_free)^T M (a - a_free) + sum s_i(J_i a - aref_i) least. begin: accelerations to look from, or how
    rows answered last. Source: seed 002; `zwang.solver`.
    """
    found = solved(constraint_model, q, v, tau, t, begin)
    solution = found.solution
    statuses = (
        status_if(solution.failed, NOT_CONVERGED),
        status_if(solution.inconsistent, CONTRADICTION),
        status_if(solution.dependent, DEPENDENT),
        status_if(logical_not(found.works), NONIDEAL_FORCE),
    )
    return ConstrainedMotion(
        found.problem.M, np.array(solution.acceleration), found.efforts, worst_status(statuses), solution.row_status
    )


def solved(constraint_model: ConstraintModel, q: Any, v: Any, tau: Any, t: Any = 0, begin: Any = None) -> ConstrainedSolution:
    """Gauss's problem of a step: its rows, and the solution with every row's force; begin: as for `solve`."""
    return solve_constrained(
        constraint_model.mechanism, q, v, tau, timestep=constraint_model.h, inverse_weights=constraint_model.weights,
        settling_time=constraint_model.settling_time, time=t, independent=constraint_model.independent, start=begin,
    )  # fmt: skip


def violated_at_start(
    mechanism: Mechanism, q: Any, v: Any, t: float = 0.0
) -> tuple[tuple[str, float], tuple[str, float]]:
    """The exact constraints furthest from holding at q, v and t [s], by name and amount.

    Of positions [rad or m], and of speeds [rad/s or m/s]; ("", 0.0) where there are none.
    """
    if not hard_constraints(mechanism):
        return ("", 0.0), ("", 0.0)
    rows = all_velocity_level_rows(mechanism, q, v, t)
    gaps = [(n, abs(float(r))) for n, r in zip(rows.names, rows.position, strict=True) if r is not None]
    missed = [(n, abs(float(x))) for n, x in zip(rows.names, rows.A @ v + rows.a, strict=True)]
    none = ("", 0.0)
    return max(gaps, default=none, key=_amount), max(missed, default=none, key=_amount)


def _amount(status: tuple[str, float]) -> float:
    return status[1]


def describe_constraints(mechanism: Mechanism) -> tuple[str, ...]:
    """Everything that may restrict the motion, each in words, less what the options switch off."""
    off = set(mechanism.options.disabled)
    if "constraint" in off:
        return ()
    found = [f"{type(c).__name__.lower()} {c.name!r}" for c in mechanism.constraints if "equality" not in off]
    parts = [(f"joint {j.name!r}", j.joint) for j in mechanism.joints]
    parts += [(f"tendon {t.name!r}", t) for t in mechanism.tendons]
    for name, part in parts:
        if "limit" not in off and has_limits(part.limits):
            found.append(f"limits of {name}")
        if "frictionloss" not in off and not (are_constant(part.friction) and part.friction == 0):
            found.append(f"dry friction of {name}")
    if contacts_on(mechanism) and may_touch(mechanism):
        found.append("contacts of shapes")
    return tuple(found)


def equalities_on(mechanism: Mechanism) -> bool:
    """Whether the options let constraints act."""
    return not {"constraint", "equality"} & set(mechanism.options.disabled)


def contacts_on(mechanism: Mechanism) -> bool:
    """Whether the options let contacts act."""
    return mechanism.options.contact and not {"constraint", "contact"} & set(mechanism.options.disabled)


def has_limits(limits: Any) -> bool:
    """Is there an end that a motion could reach?"""
    return limits is not None and any(not are_constant(end) or abs(end) < np.inf for end in limits)


def may_touch(mechanism: Mechanism) -> bool:
    """Are there two shapes on different bodies whose bit masks, or a pair, let them touch?"""
    if any(isinstance(contact, ContactPair) for contact in mechanism.contacts):
        return True
    groups = [mechanism.geometry, *(body.geometry for body in mechanism.bodies)]
    masks = {
        (k, g.surface.contype, g.surface.conaffinity)
        for k, group in enumerate(groups)
        for g in group
        if not g.visual_only
    }
    return any(a[0] != b[0] and (a[1] & b[2] or b[1] & a[2]) for a in masks for b in masks)

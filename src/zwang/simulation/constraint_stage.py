"""The stages of a step that concern constraints: collision, rows, solver, and stabilisation."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.bearings import ReleasedMechanism, released_mechanism
from zwang.constraint.context import StepForm, resting_speed
from zwang.constraint.coordinate_projection import (
    ProjectedState,
    project_state,
    project_velocity,
)
from zwang.constraint.coulomb_friction import FrictionState, SlidingModes, friction_laws
from zwang.constraint.equality import LOOPS
from zwang.constraint.hard import (
    VELOCITY_LEVEL,
    all_velocity_level_rows,
    hard_constraints,
    velocity_level_rows_at,
)
from zwang.constraint.impact import closes_by_impact
from zwang.constraint.independent_velocities import IndependentVelocity, independent_velocities
from zwang.constraint.inverse_weights import InverseWeights, inverse_weights
from zwang.constraint.row_sizes import row_tolerances
from zwang.errors import SimulationError
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.constraints import CoulombFriction, NonIdeal
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import MutableArray, equal, logical_not, where
from zwang.simulation.applied_forces import time_dependent_parts
from zwang.simulation.constrained import BearingLoads, ConstrainedSolution, solve_constrained
from zwang.simulation.constraint_options import describe_constraints
from zwang.simulation.settings import CoordinateReduction
from zwang.simulation.solver_status import CONVERGED, solver_status
from zwang.simulation.status import (
    DEPENDENT_VELOCITIES,
    INCONSISTENT_CONSTRAINTS,
    NONIDEAL_FORCE,
    NOT_CONVERGED,
    RIGID_FRICTION,
    TOO_MANY_CONTACTS,
    status_if,
    worst_status,
)

CONSTRAINT_TYPES = (*LOOPS, *VELOCITY_LEVEL, NonIdeal, CoulombFriction)


@dataclass(frozen=True)
class ConstraintModel:
    """A constrained mechanism, with the constants that its rows need.

    weights: inverse weights. step: how steps close hard constraints. independent: the independent velocities
    of a coordinate reduction, or None for constraint forces. released: the mechanism whose joints with
    Coulomb friction are released, if there are any.
    """

    mechanism: Mechanism
    weights: InverseWeights
    step: StepForm
    independent: tuple[IndependentVelocity, ...] | None = None
    released: ReleasedMechanism | None = None

    @property
    def hard(self) -> bool:
        """Whether some constraint is hard."""
        return bool(hard_constraints(self.mechanism))

    @property
    def projects(self) -> bool:
        """Whether the state is projected onto hard constraints after each step."""
        return self.step.stabilization == "projection" and self.hard


class ConstrainedMotion(NamedTuple):
    """The result of the constraint solver.

    M (nv, nv): mass matrix. a (nv,): constrained acceleration. constraint_force (nv,): the generalised force
    J^T f of all constraints [N m, N]. row_status: for the next warm start, from solvers that have one.
    solver_status: see `solver_status`. found: the problem and its solution. kinematics: of the state.
    friction: of the laws of Coulomb friction.
    closes: whether a hard contact acts on an approach faster than the resting speed.
    """

    M: np.ndarray
    a: np.ndarray
    constraint_force: np.ndarray
    status: Any
    row_status: MutableArray | None = None
    solver_status: Any = CONVERGED
    found: Any = None
    kinematics: Any = None
    friction: FrictionState | None = None
    closes: Any = False


def constraint_model_of(
    mechanism: Mechanism, step: StepForm, coordinate_reduction: CoordinateReduction = False
) -> ConstraintModel | None:
    """The constraint model of a mechanism; None if nothing constrains its motion.

    Raises SimulationError for a constraint of a type that is not simulated.
    """
    if not describe_constraints(mechanism):
        return None
    for constraint in mechanism.constraints:
        if not isinstance(constraint, CONSTRAINT_TYPES):
            raise SimulationError(
                f"constraint {constraint.name!r} of type {type(constraint).__name__} is not simulated; "
                f"those that are: {', '.join(kind.__name__ for kind in CONSTRAINT_TYPES)}"
            )
    independent = independent_velocities(mechanism, coordinate_reduction)
    weights, released = inverse_weights(mechanism), released_mechanism(mechanism)
    return ConstraintModel(mechanism, weights, step, independent, released)


def time_or_error(mechanism: Mechanism, t: Any) -> Any:
    """The time t; 0 if it is None and no part depends on time. Raises SimulationError if one does."""
    if t is not None:
        return t
    for part in time_dependent_parts(mechanism):
        raise SimulationError(f"{part} depends on the time t, and this step is given none: give it, time=...")
    return 0


def constrained_motion(
    model: ConstraintModel,
    kinematics: Kinematics,
    tau: Any,
    t: Any = 0,
    warm_start: Any = None,
    approaching_active: Any = True,
    *,
    modes: SlidingModes | None = None,
    bearings: BearingLoads | None = None,
    position_lag: Any = 0,
) -> ConstrainedMotion:
    """The constrained acceleration by Gauss's principle, under the applied generalised force tau (nv,) [N m,
    N].

    The acceleration minimises 1/2 (a - a_free)^T M (a - a_free) + sum_i s_i(J_i a - aref_i). warm_start: an
    initial acceleration, or the row statuses of the previous solution. modes, bearings: of Coulomb friction,
    see `solve_constrained`. position_lag: see `RowContext`. Source: MuJoCo documentation, Computation,
    "Constraint model"; `zwang.solver`.
    """
    found = solved(
        model, kinematics, tau, t, warm_start, approaching_active, modes=modes, bearings=bearings,
        position_lag=position_lag,
    )  # fmt: skip
    solution = found.solution
    statuses = (
        status_if(solution.failed, NOT_CONVERGED),
        status_if(solution.inconsistent, INCONSISTENT_CONSTRAINTS),
        status_if(solution.dependent, DEPENDENT_VELOCITIES),
        status_if(solution.undetermined, RIGID_FRICTION),
        status_if(solution.overfull, TOO_MANY_CONTACTS),
        status_if(logical_not(found.nonideal_force_is_finite), NONIDEAL_FORCE),
    )
    slow = resting_speed(model.mechanism, model.step.size, kinematics.v, found.problem.a_free)
    return ConstrainedMotion(
        found.problem.M,
        np.array(solution.acceleration),
        found.constraint_force,
        worst_status(statuses),
        solution.row_status,
        solver_status(solution),
        found,
        kinematics,
        found.friction,
        closes_by_impact(found.rows, solution.force_of, slow, model.step),
    )


def solved(
    model: ConstraintModel,
    kinematics: Kinematics,
    tau: Any,
    t: Any = 0,
    warm_start: Any = None,
    approaching_active: Any = True,
    *,
    modes: SlidingModes | None = None,
    bearings: BearingLoads | None = None,
    position_lag: Any = 0,
) -> ConstrainedSolution:
    """Gauss's problem of a step: collision, constraint rows, and the solution with every row's
    force.
    """
    return solve_constrained(
        model.mechanism, kinematics.q, kinematics.v, tau, kinematics=kinematics, step=model.step,
        inverse_weights=model.weights, time=t, independent=model.independent, start=warm_start,
        approaching_active=approaching_active, modes=modes, bearings=bearings, position_lag=position_lag,
    )  # fmt: skip


def stabilised(
    model: ConstraintModel | None, q: Any, v: Any, t: Any, *, tangents: bool = False
) -> ProjectedState:
    """(q, v) at the end of a step, projected onto the hard constraints at the time t [s] where the model
    asks for it. tangents: whether they are tangents, whose derivatives are to be projected too.
    """
    if model is None or not model.projects:
        return ProjectedState(q, v, False)
    return project_state(model.mechanism, model.weights, q, v, t, tangents=tangents)


def held_velocity(model: ConstraintModel, q: Any, v: Any, t: Any, signs: Any) -> np.ndarray:
    """The velocities (nv,) nearest to v at which every law of Coulomb friction at rest has the sliding speed
    0.

    signs (m,): of the sliding speeds, 0 at rest. The hard constraints stay satisfied.
    """
    laws = friction_laws(model.mechanism, q, v, t)
    A, a = laws.T, [where(equal(s, 0), 0, -u) for s, u in zip(signs, laws.speeds, strict=True)]
    if model.hard:
        hard_A, hard_a, _ = velocity_level_rows_at(model.mechanism, q, t)
        A, a = np.concatenate([A, hard_A]), [*a, *hard_a]
    return project_velocity(model.mechanism, model.weights, q, v, A, np.array(a))


class NamedViolation(NamedTuple):
    """The violation of a constraint, or its velocity residual: its name, the absolute value [rad, m, a
    second], and this relative to the size of the row for tolerances.
    """

    name: str = ""
    amount: float = 0.0
    relative: float = 0.0


def largest_violations(
    mechanism: Mechanism, q: Any, v: Any, t: float = 0.0
) -> tuple[NamedViolation, NamedViolation]:
    """The largest violation of a hard constraint, and the largest velocity residual, relative to the sizes of
    the rows; zero where there are no such constraints.
    """
    if not hard_constraints(mechanism):
        return NamedViolation(), NamedViolation()
    rows = all_velocity_level_rows(mechanism, q, v, t)
    sizes = row_tolerances(mechanism, hard_constraints(mechanism), q, rows.A)
    positions = [0 if r is None else r for r in rows.position]
    return _largest(rows.names, positions, sizes), _largest(rows.names, rows.A @ v + rows.a, sizes)


def _largest(names: Sequence[str], values: Iterable[Any], sizes: Iterable[Any]) -> NamedViolation:
    """The value that is the largest relative to its size, the first of those that are equal but for rounding
    errors.
    """
    found = [
        NamedViolation(name, abs(float(x)), abs(float(x)) / float(size))
        for name, x, size in zip(names, values, sizes, strict=True)
    ]
    return max(found, key=lambda violation: float(f"{violation.relative:.6g}"))

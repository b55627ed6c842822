"""Gauss's problem of a constrained mechanism: its data, its constraint rows, and the solution, on any
scalar.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import Factors, factor
from zwang.algebra.norms import norm
from zwang.constraint.bearings import BearingLoads, BearingState, bearing_state, released_mechanism
from zwang.constraint.context import RowContext, StepForm, row_context
from zwang.constraint.coulomb_friction import (
    FrictionResponse,
    FrictionState,
    SlidingModes,
    coulomb_frictions,
    differentiated_loads,
    friction_laws,
    is_still,
    row_bounds,
    sliding_force,
    solve_loads,
    with_friction_rows,
)
from zwang.constraint.hard import equality_enabled, hard_constraints
from zwang.constraint.independent_velocities import IndependentVelocity, independent_velocity_rows
from zwang.constraint.inverse_weights import InverseWeights
from zwang.constraint.nonideal import solve_nonideal_forces
from zwang.constraint.rows import Rows, scalar_array
from zwang.constraint.rows_of_mechanism import constraint_rows
from zwang.deprecation import renamed_attributes
from zwang.dynamics.crba import crba_of
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.gauss import GaussProblem
from zwang.dynamics.generalised_forces import controlled_forces, passive_forces
from zwang.dynamics.rnea import bias_forces_of
from zwang.errors import SimulationError
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.constraints import CoulombFriction, NonIdeal
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import absolute, is_zero, less, logical_and, where
from zwang.solver.linearised import KnownSolution
from zwang.solver.noslip import Noslip, without_slip
from zwang.solver.solution import Solution
from zwang.solver.solve import ReductionChoice, solve
from zwang.solver.warm_start import as_warm_start


@renamed_attributes(efforts="constraint_force", working="nonideal_force", works="nonideal_force_is_finite")
class ConstrainedSolution(NamedTuple):
    """Gauss's problem of a mechanism in one state, its constraint rows, and the solution.

    nonideal_force (nv,): the generalised force of non-ideal constraints, which is included in the problem's
    a_free. friction: what the laws of Coulomb friction do, if there are any.
    """

    problem: GaussProblem
    rows: Rows
    solution: Solution
    nonideal_force: Any = 0
    friction: FrictionState | None = None

    @property
    def constraint_force(self) -> np.ndarray:
        """The generalised force of all constraints, J^T f = M (a - a_free) (nv,) [N m, N]."""
        deviation = self.solution.acceleration - self.problem.a_free
        return self.problem.force_of(deviation) + self.nonideal_force

    def of_active_rows(self) -> tuple[Rows, np.ndarray]:
        """The active rows in one table, and the force of each; on floats."""
        rows, numbers = self.rows.only_active()
        return rows, np.array([float(self.solution.force_of(i)) for i in numbers])

    @property
    def nonideal_force_is_finite(self) -> Any:
        """Whether a force satisfies the laws of all non-ideal constraints; if traced, the force is NaN
        otherwise.
        """
        finite: Any = True
        for x in np.ravel(self.nonideal_force):
            finite = logical_and(finite, less(absolute(x), np.inf))
        return finite


class FreeMotion(NamedTuple):
    """The mass matrix M, its factors, the free acceleration, and the force M a_free, to which others are
    added.
    """

    M: np.ndarray
    factors: Factors
    parents: list[int]
    a_free: np.ndarray
    force: np.ndarray

    def under(self, force: Any) -> GaussProblem:
        """Gauss's problem with a further generalised force (nv,)."""
        a_free = self.a_free if is_zero(force) else self.a_free + self.factors.solve(np.asarray(force))
        return GaussProblem(self.M, a_free, tuple(self.parents), self.force + force)


def gauss_problem(kinematics: Kinematics, tau: Any) -> GaussProblem:
    """The data of Gauss's problem: M by CRBA, and a_free = M^-1 (tau - h(q, v)).

    tau (nv,): the applied generalised force, springs and dampers included [N m, N].
    """
    return free_motion(kinematics, tau).under(0)


def free_motion(kinematics: Kinematics, tau: Any) -> FreeMotion:
    """The mass matrix with its factors, and a_free = M^-1 (tau - h(q, v))."""
    M, parents = crba_of(kinematics), velocity_parents(kinematics.tree)
    factors, force = factor(M, parents), np.array(tau) - bias_forces_of(kinematics)
    return FreeMotion(M, factors, parents, factors.solve(force), force)


def solve_constrained(
    mechanism: Mechanism, q: Any, v: Any, tau: Any, *, solver: str = "newton",
    step: StepForm | None = None, kinematics: Kinematics | None = None,
    inverse_weights: InverseWeights | None = None, start: Any = None, time: Any = 0,
    independent: tuple[IndependentVelocity, ...] | None = None, approaching_active: Any = True,
    modes: SlidingModes | None = None, bearings: BearingLoads | None = None, position_lag: Any = 0,
) -> ConstrainedSolution:  # fmt: skip
    """Gauss's problem, constraint rows and solution under the applied generalised force tau (nv,), on any
    scalar.

    step: how a step closes hard constraints, by default of the size of the options. kinematics: of the
    mechanism's tree at (q, v), computed here by default. inverse_weights: those of the mechanism, computed
    here by default. start: initial guess or warm start, as for `solve`. time [s]: the t of time-dependent
    constraints. independent: the independent velocities of a coordinate reduction, or none of them for an
    automatic choice; None for constraint forces. approaching_active, position_lag: see `RowContext`. modes:
    of Coulomb friction, see `SlidingModes`. bearings: of the joints with Coulomb friction; by default those
    under the passive forces.
    """
    laws = coulomb_frictions(mechanism)
    repeated = laws or has_nonideal_constraints(mechanism)  # each step solves the problem several times
    if repeated and as_warm_start(start):
        start = None
    kinematics = Kinematics(mechanism.tree, q, v) if kinematics is None else kinematics
    context = row_context(
        mechanism,
        kinematics,
        inverse_weights=inverse_weights,
        step=step,
        time=time,
        approaching_active=approaching_active,
        position_lag=position_lag,
    )
    free = None
    if hard_constraints(mechanism):  # the inverse weights of their rows follow from the mass matrix
        free = free_motion(kinematics, tau)
        context = context._replace(mass_factors=free.factors)
    if context.step.without_impacts:
        free = free or free_motion(kinematics, tau)
        context = context._replace(approaching_active=False, free_acceleration=free.a_free)
    options = {"solver": solver, "start": start, "independent": independent}
    if laws:
        return _solution_with_friction(
            context, tau, modes, bearings or bearing_loads(mechanism, q, v), **options
        )
    # other solvers read all rows in groups
    by_world = solver == "newton" and not isinstance(start, KnownSolution) and independent is None
    rows = constraint_rows(context, by_world=by_world, nearest_only=as_warm_start(start) is not None)
    # the independent accelerations of a coordinate reduction have no links
    rows = rows if independent is None else rows.without_groups()
    return solution_of_rows(context, free or free_motion(kinematics, tau), rows, **options)


def solution_of_rows(
    context: RowContext, free: FreeMotion, rows: Rows, *, extra_force: Any = 0, solver: str = "newton",
    start: Any = None, independent: tuple[IndependentVelocity, ...] | None = None,
) -> ConstrainedSolution:  # fmt: skip
    """The solution of Gauss's problem under these rows; arguments as for `solve_constrained`.

    extra_force (nv,): a prescribed force of constraints, in addition to the applied forces.
    """
    mechanism, q, v = context.mechanism, context.q, context.v
    chosen = (
        None
        if independent is None
        else ReductionChoice(independent_velocity_rows(mechanism, independent, q) if independent else None)
    )

    def with_nonideal_force(force: Any) -> ConstrainedSolution:
        """The solution with these forces of non-ideal constraints added to tau."""
        problem = free.under(force)
        found = solve(
            problem,
            rows,
            solver=solver,
            start=start,
            independent=chosen,
            step=context.step,
        )
        if mechanism.options.noslip_iterations:
            found = _without_slip(context, problem, rows, found, start)
        return ConstrainedSolution(problem, rows, found, force)

    if not has_nonideal_constraints(mechanism):
        return with_nonideal_force(extra_force)
    # the force of a non-ideal constraint depends on the ideal forces f, which depend on it
    only_hard_equalities = not rows.row_groups and all(
        hard and kind == "equality" for hard, kind in zip(rows.hard, rows.kinds, strict=True)
    )
    force = solve_nonideal_forces(
        mechanism,
        q,
        v,
        rows.names,
        lambda x: with_nonideal_force(x + extra_force).solution.force,
        context.time,
        only_hard_equalities,
    )
    return with_nonideal_force(force + extra_force)


def _without_slip(
    context: RowContext, problem: GaussProblem, rows: Rows, found: Solution, start: Any
) -> Solution:
    """The solution after the noslip solver of the options."""
    if isinstance(start, KnownSolution):
        raise SimulationError(
            "the noslip solver (noslip_iterations) stops before it converges, so that the solution has no "
            "exact derivatives: set noslip_iterations to 0, or difference the step"
        )
    options = context.mechanism.options
    islands = "island" not in options.disabled
    noslip = Noslip(options.noslip_iterations, options.noslip_tolerance, islands)
    return without_slip(problem, rows, found, noslip)


# ------------------------------------------------------------------------------------ Coulomb friction


def bearing_loads(
    mechanism: Mechanism, q: Any, v: Any, control: Mapping[str, Any] | None = None
) -> BearingLoads:
    """The released mechanism of the joints with Coulomb friction, under its passive forces and those of
    inputs by name, 0 where omitted.
    """
    released = released_mechanism(mechanism)
    if released is None:
        return BearingLoads(None, np.zeros(0))
    state = released.mechanism, released.configuration(q), released.velocities(v)
    return BearingLoads(released, passive_forces(*state) + controlled_forces(*state, control or {}))


def _solution_with_friction(
    context: RowContext, tau: Any, modes: SlidingModes | None, bearings: BearingLoads, **options: Any
) -> ConstrainedSolution:
    """The solution with Coulomb friction, whose bounds follow the loads: the fixed point of the loads."""
    laws = friction_laws(context.mechanism, context.q, context.v, context.time)
    rows, state = _rows_and_bearings(context, bearings)
    n, nv = len(rows), context.mechanism.nv
    rows, free = with_friction_rows(context, rows, laws, modes), free_motion(context.kinematics, tau)

    def solved(loads: Any, bounds: Any = None) -> ConstrainedSolution:
        """The solution for the loads N (m,), with the bounds mu N of the friction rows, or these (m,)."""
        bounds = row_bounds(laws, modes, loads) if bounds is None else bounds
        bounds = scalar_array([*rows.bound[:n], *bounds])
        force = laws.T.T @ sliding_force(laws, modes, loads) if modes is not None else np.zeros(nv, int)
        return solution_of_rows(context, free, rows.replaced(bound=bounds), extra_force=force, **options)

    def response(loads: Any, bounds: Any = None) -> FrictionResponse:
        found = solved(loads, bounds).solution
        return FrictionResponse(
            np.array([_load(law, rows, state, found) for law in laws.laws]), found.force[n:],
            is_still(modes, rows.aref[n:], laws.T @ found.acceleration, laws.T @ free.a_free),
        )  # fmt: skip

    loads, is_solution = solve_loads(laws, modes, response, rows, norm(free.force))
    if isinstance(options["start"], KnownSolution):
        loads = differentiated_loads(loads, lambda x: response(x).loads)
    last = solved(loads)
    force = where(is_solution, last.nonideal_force + np.zeros(nv), np.nan)
    friction = last.solution.force[n:] + sliding_force(laws, modes, loads)
    state_of_friction = FrictionState(laws.speeds, friction, laws.kinetic * loads, laws.static * loads)
    return last._replace(nonideal_force=force, friction=state_of_friction)


def _rows_and_bearings(context: RowContext, bearings: BearingLoads) -> tuple[Rows, BearingState | None]:
    """The rows of all other constraints, and the state of the bearings, which follow from the rows of the
    released mechanism.
    """
    released = bearings.released
    if released is None:
        return constraint_rows(context).without_groups(), None
    kinematics, a_free = released.kinematics(context.q, context.v), context.free_acceleration
    rows = constraint_rows(
        context._replace(
            mechanism=released.mechanism,
            q=kinematics.q,
            v=kinematics.v,
            kinematics=kinematics.with_computed_poses(),
            inverse_weights=released.inverse_weights(context.inverse_weights),
            columns=tuple(released.columns),
            free_acceleration=None if a_free is None else released.velocities(a_free),
        )
    ).without_groups()
    state = bearing_state(released, kinematics, bearings.applied, rows)
    return rows.replaced(J=rows.J[:, released.columns]), state


def _load(law: CoulombFriction, rows: Rows, state: BearingState | None, found: Solution) -> Any:
    """The load N of a law: that of the bearing, or the magnitude of the force of its constraint."""
    if law.joint is not None:
        assert state is not None
        return state.load(law, found.acceleration, found.force[: len(state.J)])
    own = [i for i, name in enumerate(rows.names) if name == law.constraint]
    return norm(found.force[i] for i in own)


def has_nonideal_constraints(mechanism: Mechanism) -> bool:
    """Whether a constraint of the mechanism is non-ideal, and the options enable it."""
    return equality_enabled(mechanism) and any(isinstance(c, NonIdeal) for c in mechanism.constraints)

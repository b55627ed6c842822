"""Gauss's problem of a constrained mechanism: its data, its constraint rows, and the solution, on any
scalar.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import ltdl, ltdl_solve
from zwang.constraint.context import RowContext, row_context
from zwang.constraint.independent_velocities import IndependentVelocity, independent_velocity_rows
from zwang.constraint.inverse_weights import InverseWeights
from zwang.constraint.nonideal import solve_nonideal_forces
from zwang.constraint.rows import Rows
from zwang.constraint.rows_of_mechanism import constraint_rows
from zwang.deprecation import renamed_attributes
from zwang.dynamics.crba import crba_of
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.gauss import GaussProblem
from zwang.dynamics.rnea import bias_forces_of
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.constraints import NonIdeal
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import absolute, less, logical_and, value_is_constant
from zwang.solver.solution import Solution
from zwang.solver.solve import ReductionChoice, solve
from zwang.solver.warm_start import as_warm_start


@renamed_attributes(efforts="constraint_force", working="nonideal_force", works="nonideal_force_is_finite")
class ConstrainedSolution(NamedTuple):
    """Gauss's problem of a mechanism in one state, its constraint rows, and the solution.

    nonideal_force (nv,): the generalised force of non-ideal constraints, which is included in the problem's
    a_free.
    """

    problem: GaussProblem
    rows: Rows
    solution: Solution
    nonideal_force: Any = 0

    @property
    def constraint_force(self) -> np.ndarray:
        """The generalised force of all constraints, J^T f = M (a - a_free) (nv,) [N m, N]."""
        deviation = self.solution.acceleration - self.problem.a_free
        return self.problem.M @ deviation + self.nonideal_force

    @property
    def nonideal_force_is_finite(self) -> Any:
        """Whether a force satisfies the laws of all non-ideal constraints; if traced, the force is NaN
        otherwise.
        """
        finite: Any = True
        for x in np.ravel(self.nonideal_force):
            finite = logical_and(finite, less(absolute(x), np.inf))
        return finite


def gauss_problem(kinematics: Kinematics, tau: Any) -> GaussProblem:
    """The data of Gauss's problem: M by CRBA, and a_free = M^-1 (tau - h(q, v)).

    tau (nv,): the applied generalised force, springs and dampers included [N m, N].
    """
    M, parents = crba_of(kinematics), velocity_parents(kinematics.tree)
    free = ltdl_solve(*ltdl(M, parents), parents, np.array(tau) - bias_forces_of(kinematics))
    return GaussProblem(M, free, tuple(parents))


def solve_constrained(
    mechanism: Mechanism, q: Any, v: Any, tau: Any, *, solver: str = "newton", timestep: Any = None,
    kinematics: Kinematics | None = None,
    inverse_weights: InverseWeights | None = None, settling_time: Any = None, start: Any = None,
    time: Any = 0, independent: tuple[IndependentVelocity, ...] | None = None, approaching_act: Any = True,
) -> ConstrainedSolution:  # fmt: skip
    """Gauss's problem, constraint rows and solution under the applied generalised force tau (nv,), on any
    scalar.

    kinematics: of the mechanism's tree at (q, v), computed here by default.
    timestep [s]: the step size of unilateral hard constraints, by default that of the options.
    inverse_weights: those of the mechanism, computed here by default. settling_time [s]: time constant of
    Baumgarte stabilisation. start: initial guess or warm start, as for `solve`. time [s]: the t of
    time-dependent constraints. independent: the independent velocities of a coordinate reduction, or none of
    them for an automatic choice; None for constraint forces. approaching_act: see `RowContext`.
    """
    if has_nonideal_constraints(mechanism) and as_warm_start(
        start
    ):  # each step solves the problem several times
        start = None
    context = row_context(
        mechanism,
        Kinematics(mechanism.tree, q, v) if kinematics is None else kinematics,
        inverse_weights=inverse_weights,
        timestep=timestep,
        settling_time=settling_time,
        time=time,
        approaching_act=approaching_act,
    )
    rows = active_rows(context, warm_start=as_warm_start(start))
    # the independent accelerations of a coordinate reduction have no links
    rows = rows if independent is None else rows.without_groups()
    return solution_of_rows(context, tau, rows, solver=solver, start=start, independent=independent)


def active_rows(context: RowContext, *, warm_start: Any) -> Rows:
    """The constraint rows, contacts included; on floats only those that are active, in one table."""
    return without_inactive_rows(constraint_rows(context, warm_start=warm_start))


def without_inactive_rows(rows: Rows) -> Rows:
    """The active rows in one table, where it is known which are active, as on floats; else all rows."""
    if rows.compacted is not None:
        return rows
    known = [*rows.active, *(group.any_active for group in rows.row_groups)]
    return rows.only_active() if all(value_is_constant(active) for active in known) else rows


def solution_of_rows(
    context: RowContext, tau: Any, rows: Rows, *, solver: str = "newton", start: Any = None,
    independent: tuple[IndependentVelocity, ...] | None = None,
) -> ConstrainedSolution:  # fmt: skip
    """The solution of Gauss's problem under these rows; arguments as for `solve_constrained`."""
    mechanism, q, v = context.mechanism, context.q, context.v
    chosen = (
        None
        if independent is None
        else ReductionChoice(independent_velocity_rows(mechanism, independent, q) if independent else None)
    )

    def with_nonideal_force(force: Any) -> ConstrainedSolution:
        """The solution with these forces of non-ideal constraints added to tau."""
        problem = gauss_problem(context.kinematics, tau + force)
        found = solve(problem, rows, solver=solver, start=start, independent=chosen)
        return ConstrainedSolution(problem, rows, found, force)

    if not has_nonideal_constraints(mechanism):
        return with_nonideal_force(0)
    # the force of a non-ideal constraint depends on the ideal forces f, which depend on it
    only_hard_equalities = not rows.row_groups and all(
        hard and kind == "equality" for hard, kind in zip(rows.hard, rows.kinds, strict=True)
    )
    force = solve_nonideal_forces(
        mechanism,
        q,
        v,
        rows.names,
        lambda x: with_nonideal_force(x).solution.force,
        context.time,
        only_hard_equalities,
    )
    return with_nonideal_force(force)


def has_nonideal_constraints(mechanism: Mechanism) -> bool:
    """Whether a constraint of the mechanism is non-ideal."""
    return any(isinstance(c, NonIdeal) for c in mechanism.constraints)

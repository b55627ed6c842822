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
from zwang.dynamics.crba import crba
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.gauss import GaussProblem
from zwang.dynamics.rnea import bias_forces
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


def gauss_problem(mechanism: Mechanism, q: Any, v: Any, tau: Any) -> GaussProblem:
    """The data of Gauss's problem: M by CRBA, and a_free = M^-1 (tau - h(q, v)).

    tau (nv,): the applied generalised force, springs and dampers included [N m, N].
    """
    tree = mechanism.tree
    M, parents = crba(tree, q), velocity_parents(tree)
    free = ltdl_solve(*ltdl(M, parents), parents, np.array(tau) - bias_forces(tree, q, v))
    return GaussProblem(M, free, tuple(parents))


def solve_constrained(
    mechanism: Mechanism, q: Any, v: Any, tau: Any, *, solver: str = "newton", timestep: Any = None,
    inverse_weights: InverseWeights | None = None, settling_time: Any = None, start: Any = None, time: Any = 0,
    independent: tuple[IndependentVelocity, ...] | None = None,
) -> ConstrainedSolution:  # fmt: skip
    """Gauss's problem, constraint rows and solution under the applied generalised force tau (nv,), on any
    scalar.

    timestep [s]: the step size of unilateral hard constraints, by default that of the options. known: the
    inverse weights of the mechanism, if they are available. settling_time [s]: time constant of Baumgarte
    stabilisation.
    start: initial guess or warm start, as for `solve`. time [s]: the t of time-dependent constraints.
    essential: the independent velocities of a coordinate reduction, or `AUTOMATIC`; None for constraint
    forces.
    """
    if has_nonideal_constraints(mechanism) and as_warm_start(
        start
    ):  # each step solves the problem several times
        start = None
    context = constraint_kinematics(mechanism, q, v, inverse_weights, timestep, settling_time, time)
    rows = active_rows(context, grouped=independent is None, warm_start=as_warm_start(start))
    return solution_of_rows(
        mechanism, q, v, tau, rows, solver=solver, start=start, time=time, independent=independent
    )


def constraint_kinematics(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    weights: InverseWeights | None = None,
    timestep: Any = None,
    settling_time: Any = None,
    time: Any = 0,
) -> RowContext:
    """The poses of all links, and the other data from which constraint rows are assembled."""
    return row_context(
        mechanism, q, v, inverse_weights=weights, timestep=timestep, settling_time=settling_time, time=time
    )


def active_rows(context: RowContext, *, grouped: bool, warm_start: Any) -> Rows:
    """The constraint rows, contacts included; on floats only those that are active."""
    rows = constraint_rows(context, grouped=grouped, warm_start=warm_start)
    if all(value_is_constant(active) for active in rows.active):
        rows = rows.only_active()
    return rows


def solution_of_rows(
    mechanism: Mechanism, q: Any, v: Any, tau: Any, rows: Rows, *, solver: str = "newton", start: Any = None,
    time: Any = 0, independent: tuple[IndependentVelocity, ...] | None = None,
) -> ConstrainedSolution:  # fmt: skip
    """The solution of Gauss's problem under these rows; arguments as for `solve_constrained`."""
    chosen = (
        None
        if independent is None
        else ReductionChoice(independent_velocity_rows(mechanism, independent, q) if independent else None)
    )

    def with_nonideal_force(force: Any) -> ConstrainedSolution:
        """The solution with these forces of non-ideal constraints added to tau."""
        problem = gauss_problem(mechanism, q, v, tau + force)
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
        time,
        only_hard_equalities,
    )
    return with_nonideal_force(force)


<<<<<<< eb8da81bb0fad775dd467ae2f6ff44b25e0b5bb4
@dataclass(frozen=True)
class ConstrainedDynamics:
    """What Gauss's principle gives under all constraints, limits, friction and contacts.

    acceleration (nv,). forces: by constraint, one number a row [N, N m, or as the row]. rows: with J, aref, R, position,
    velocity and more, of those that act. force (n,): of all rows. zwang: Z of the acceleration [W/s]: bodies, by body (and "rotors"), each one's
    part in it, for its deviation from the free motion; shares, by constraint, what each one's softness adds to it: all together are what the
    acceleration makes least. kkt_residual: relative. converged: whether the solver reached its tolerance, in `iterations`.
    """

    acceleration: np.ndarray
    forces: dict[str, np.ndarray]
    rows: ActiveRows
    force: np.ndarray
    kkt_residual: float
    zwang: float
    bodies: dict[str, float]
    shares: dict[str, float]
    iterations: int
    converged: bool

    @property
    def active(self) -> tuple[str, ...]:
        """The constraints that push or pull: those with a force that is not zero."""
        return tuple(name for name, force in self.forces.items() if force.any())

    @property
    def status(self) -> str:
        """How it went, in a sentence."""
        if self.converged:
            return f"converged in {self.iterations} iterations, KKT residual {self.kkt_residual:.1e}"
        return (
            f"not converged in {self.iterations} iterations, KKT residual {self.kkt_residual:.1e}: constraints may contradict "
            "each other; give exact ones a softness, or check masses and friction for very large ratios"
        )


@dataclass(frozen=True)
class ActiveRows(Rows):
    """The rows that act, with their forces."""

    force: np.ndarray = field(default_factory=lambda: np.zeros(0))


@validated_arguments()
def constrained_dynamics(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    tau: Any,
    *,
    solver: str = "newton",
    time: float = 0.0,
    coordinate_reduction: Any = False,
) -> ConstrainedDynamics:
    """The acceleration under constraints, limits, dry friction and contacts, with every constraint's force.

    q (nq,), v (nv,), tau (nv,) added to what springs and dampers give. solver: "newton", "conjugate", "projected", of the same answer.
    time [s]: the t of constraints by formula. embedding: exact constraints by essential speeds instead of forces, as for `zw.simulate`.
    Raises UnknownNameError for the solver, StateError naming a speed for a mass matrix that is singular, SolveError naming exact constraints that contradict each other, or dependent essential
    speeds, ShapeError or StateError. Source: seed 002; MuJoCo's numbers.
    """
    m = validation.numeric_mechanism(mechanism)
    q, v, tau = validation.configuration(m, q), validation.nv_vector(m, v, "v"), validation.nv_vector(m, tau, "tau")
    speeds = independent_velocities(m, coordinate_reduction)
    if speeds:
        check_velocity_count(m, speeds, q, time)
    applied = tau + passive_forces(m, q, v)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # told below
        try:
            found = solve_constrained(m, q, v, applied, solver=solver, time=time, independent=speeds)
        except np.linalg.LinAlgError:
            _check_inertia(m, crba(m.tree, q))
            raise
    problem, rows, solution = found[:3]
    _check_inertia(m, problem.M, solution.acceleration)
    a, force = np.asarray(solution.acceleration, float), np.asarray(solution.force, float)
    forces: dict[str, list[float]] = {}
    shares: dict[str, float] = {}
    for name, f, share in zip(rows.names, force, row_costs(rows, a, force), strict=True):
        forces.setdefault(name, []).append(float(f))
        shares[name] = shares.get(name, 0.0) + float(share)
    return ConstrainedDynamics(
        acceleration=a,
        forces={name: np.array(values) for name, values in forces.items()},
        rows=ActiveRows(**vars(floats(rows)), force=force),
        force=force,
        kkt_residual=float(kkt_residual(problem, rows, a, force)),
        zwang=float(problem.zwang(a)),
        bodies={name: float(x) for name, x in kinetic_energy_by_body(m.tree, q, a - problem.a_free).items()},
        shares=shares,
        iterations=int(solution.iterations),
        converged=bool(solution.converged),
    )


def _check_inertia(m: Mechanism, M: Any, a: Any = 0.0) -> None:
    """Raises StateError, naming a speed, where the mass matrix M is singular, or an acceleration not finite."""
    M = np.asarray(M, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = 1 / np.asarray(ltdl(M, velocity_parents(m.tree))[1], float)
    idle = ~(pivots > SINGULAR * m.nv * np.diag(M))
    if not idle.any():
        idle = ~np.isfinite(np.asarray(a, float) + np.zeros(m.nv))
    if idle.any():
        first = int(np.flatnonzero(idle)[-1])  # in the order of elimination, from the leaves
        raise StateError(
            f"the mass matrix is singular, or numbers overflow, at speed {m.speed_names[first]!r}: what it moves has "
            "no inertia of its own in this configuration; give a body an inertia, the joint an armature, or leave out a joint that moves "
            "as another does"
        )


def floats(rows: Rows) -> Rows:
    """The same rows with arrays of floats."""
    numbers = ("J", "aref", "R", "position", "velocity", "margin", "impedance", "inverse_weight", "bound")
    return rows.replaced(**{name: np.asarray(getattr(rows, name), float) for name in numbers})
=======
def has_nonideal_constraints(mechanism: Mechanism) -> bool:
    """Whether a constraint of the mechanism is non-ideal."""
    return any(isinstance(c, NonIdeal) for c in mechanism.constraints)
>>>>>>> c728f0480c3ff1d5142c06b994ea418e9baef853

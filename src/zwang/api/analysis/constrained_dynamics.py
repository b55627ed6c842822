"""The acceleration and the constraint forces of a mechanism in one state, by Gauss's principle, on floats."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from zwang.algebra.factorization import factor
from zwang.api.arguments import validation
from zwang.constraint.bearings import BearingLoads, released_mechanism
from zwang.constraint.independent_velocities import check_velocity_count, independent_velocities
from zwang.constraint.rows import Rows
from zwang.deprecation import renamed_arguments
from zwang.dynamics.crba import crba
from zwang.dynamics.energy import kinetic_energy_by_body
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.dynamics.generalised_forces import passive_forces
from zwang.errors import ArgumentError, StateError
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.simulation.applied_forces import applied_forces, bearing_loads_of
from zwang.simulation.constrained import solve_constrained
from zwang.simulation.solver_status import SolverStatus, solver_status
from zwang.simulation.status import FAILURE_REASONS, RIGID_FRICTION
from zwang.solver.solution import kkt_residual, row_costs

SINGULAR = 4 * np.finfo(float).eps  # times nv: pivots below it, relative to the diagonal, are rounding


@dataclass(frozen=True)
class ActiveRows(Rows):
    """The active constraint rows, with their forces."""

    force: np.ndarray = field(default_factory=lambda: np.zeros(0))


@dataclass(frozen=True)
class ConstrainedDynamics:
    """The acceleration under all constraints, limits, friction and contacts, with the force of each.

    acceleration (nv,). forces: by constraint, one number for each row [N, N m, or as the row]. rows: the
    active rows with J, aref, R, position, velocity and more. force (n,): of all rows. kkt_residual:
    relative.
    zwang: Gauss's measure Z of the deviation from the unconstrained acceleration [W/s]. bodies: the part of
    each body in it, by name, and that of "rotors". shares: by constraint, the cost of its softness; Z and
    all shares together are the function that the acceleration minimises. iterations, converged: of the
    solver. solver_status: how it terminated, a `zw.SolverStatus`. undetermined: whether rigid friction admits
    no acceleration, or several, at a sliding hard contact (Painleve's paradox); the acceleration is then that
    of an impact within the step, and not converged.
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
    solver_status: SolverStatus = SolverStatus.CONVERGED
    undetermined: bool = False

    @property
    def active(self) -> tuple[str, ...]:
        """The names of the constraints with a force that is not zero."""
        return tuple(name for name, force in self.forces.items() if force.any())

    @property
    def status(self) -> str:
        """The result of the solver as a sentence."""
        if self.solver_status == SolverStatus.STAGNATED:
            return (
                f"stagnated at rounding in {self.iterations} iterations, KKT residual {self.kkt_residual:.1e}"
            )
        if self.converged:
            return f"converged in {self.iterations} iterations, KKT residual {self.kkt_residual:.1e}"
        if self.undetermined:
            reason = FAILURE_REASONS[RIGID_FRICTION]
            return f"{reason.description}: {reason.remedy}"
        return (
            f"not converged in {self.iterations} iterations, KKT residual {self.kkt_residual:.1e}: "
            f"constraints "
            "may contradict each other; give hard constraints a softness, or check masses and friction "
            "for very "
            "large ratios"
        )


@renamed_arguments(embedding="coordinate_reduction")
@validated_arguments()
def constrained_dynamics(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    tau: npt.ArrayLike | None = None,
    *,
    control: npt.ArrayLike | Mapping[str, float] | None = None,
    activation: npt.ArrayLike | None = None,
    solver: str = "newton",
    time: float = 0.0,
    coordinate_reduction: bool
    | str
    | PointSpeed
    | tuple[str | PointSpeed, ...]
    | list[str | PointSpeed] = False,
) -> ConstrainedDynamics:
    """The acceleration under constraints, limits, dry friction and contacts, by Gauss's principle, with all
    forces.

    mechanism: a mechanism without symbols.
    q: coordinates (nq,) [rad, m, unit quaternions].
    v: generalised velocities (nv,) [rad/s, m/s].
    tau: generalised forces (nv,) in addition to those of springs and dampers [N m, N].
    control: instead of tau, the values (nu,) of motors, actuators and controlled wrenches, also by name, the
        others zero; without any of these the generalised forces, as for `zw.simulate`. activation: with
        control, the states (nz,) of actuators that have some.
    solver: "newton" (default), "conjugate" or "projected"; all have the same solution.
    time: the t of time-dependent constraints [s], default 0.
    coordinate_reduction: False (default): constraint forces. True, or the independent velocities: hard
        constraints by coordinate reduction, as for `zw.simulate`.

    Returns a `ConstrainedDynamics`. Raises ArgumentError unless either tau or control is given;
    UnknownNameError for the solver or an input; StateError, with the name of a
    generalised velocity, for a singular mass matrix; SolveError, with their names, for inconsistent hard
    constraints or dependent independent velocities; ShapeError or StateError for arrays.
    Source: Gauss (1829); constraint model and softness as in the MuJoCo documentation, Computation.
    """
    m = validation.numeric_mechanism(mechanism)
    q = validation.configuration(m, q)
    v = validation.nv_vector(m, v, "v")
    applied, bearings = _applied_forces(m, q, v, tau, control, activation, time)
    independent = independent_velocities(m, coordinate_reduction)
    if independent:
        check_velocity_count(m, independent, q, time)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # reported by check_inertia
        try:
            found = solve_constrained(
                m, q, v, applied, solver=solver, time=time, independent=independent, bearings=bearings
            )
        except np.linalg.LinAlgError:
            check_inertia(m, crba(m.tree, q))
            raise
    problem, solution = found.problem, found.solution
    check_inertia(m, problem.M, solution.acceleration)
    a, (rows, force) = np.asarray(solution.acceleration, float), found.of_active_rows()
    forces: dict[str, list[float]] = {}
    shares: dict[str, float] = {}
    for name, f, share in zip(rows.names, force, row_costs(rows, a, force), strict=True):
        forces.setdefault(name, []).append(float(f))
        shares[name] = shares.get(name, 0.0) + float(share)
    return ConstrainedDynamics(
        acceleration=a,
        forces={name: np.array(values) for name, values in forces.items()},
        rows=ActiveRows(**vars(_rows_of_floats(rows)), force=force),
        force=force,
        kkt_residual=float(kkt_residual(problem, rows, a, force)),
        zwang=float(problem.zwang(a)),
        bodies={name: float(x) for name, x in kinetic_energy_by_body(m.tree, q, a - problem.a_free).items()},
        shares=shares,
        iterations=int(solution.iterations),
        converged=bool(solution.converged),
        solver_status=SolverStatus(int(solver_status(solution))),
        undetermined=bool(solution.undetermined),
    )


def _applied_forces(
    m: Mechanism, q: np.ndarray, v: np.ndarray, tau: Any, control: Any, activation: Any, time: float
) -> tuple[np.ndarray, BearingLoads | None]:
    """Passive forces and tau (nv,), or those of the actuators, and the loads of the bearings under them."""
    if (tau is None) == (control is None) or (control is None and activation is not None):
        raise ArgumentError(
            "constrained_dynamics needs either tau, the generalised forces, or control, the values of inputs "
            "such as {'motor': 2.0}, with activation=... for actuators that have states: give one of them"
        )
    if control is None:
        return validation.nv_vector(m, tau, "tau") + passive_forces(m, q, v), None
    z = validation.activation_vector(m, () if activation is None else activation)
    driven = z, validation.control_vector(m, control), time, m.options.timestep
    forces = applied_forces(m, Kinematics(m.tree, q, v), *driven)
    return forces, bearing_loads_of(released_mechanism(m), q, v, *driven)


def check_inertia(m: Mechanism, M: npt.ArrayLike, a: npt.ArrayLike = 0.0) -> None:
    """Raises StateError, with the name of a velocity, for a singular mass matrix M or a nonfinite
    acceleration.
    """
    M = np.asarray(M, float)
    with np.errstate(divide="ignore", invalid="ignore"):
        pivots = np.asarray(factor(M, velocity_parents(m.tree)).pivots(), float)
    singular = ~(pivots > SINGULAR * m.nv * np.diag(M))
    if singular.any():
        first = int(np.flatnonzero(singular)[-1])  # the elimination runs from the leaves to the root
        raise StateError(
            f"the mass matrix is singular, or numbers overflow, at speed {m.speed_names[first]!r}: what "
            f"it moves "
            "has no inertia of its own in this configuration; give a body an inertia, the joint an "
            "armature, or "
            "leave out a joint that moves as another does"
        )
    finite = np.isfinite(np.asarray(a, float) + np.zeros(m.nv))
    if not finite.all():
        raise StateError(
            f"the acceleration of speed {m.speed_names[int(np.argmin(finite))]!r} is not finite: numbers "
            "overflow, or a force has no direction, as that of a point spring whose points coincide; look at "
            "the passive forces in this state"
        )


def _rows_of_floats(rows: Rows) -> Rows:
    """The same rows with arrays of floats."""
    numbers = ("J", "aref", "R", "position", "velocity", "margin", "impedance", "inverse_weight", "bound")
    return rows.replaced(**{name: np.asarray(getattr(rows, name), float) for name in numbers})

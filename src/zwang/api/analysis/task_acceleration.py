"""Accelerations of frames by Gauss's principle, with tasks as hard, soft, one-sided or cone rows; for one
world or many worlds.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.algebra.factorization import factor
from zwang.algebra.norms import max_abs
from zwang.api.arguments import validation
from zwang.api.compilation.programs import compile_function
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.constraint.context import row_context
from zwang.constraint.hard import hard_constraints, rows_of_constraint
from zwang.constraint.rows import Cone, Rows, concatenated, no_rows, rows_of_kind, scalar_array
from zwang.constraint.rows_of_mechanism import is_idle
from zwang.deprecation import renamed_arguments, renamed_attributes
from zwang.dynamics.gauss import GaussProblem
from zwang.dynamics.generalised_forces import passive_forces
from zwang.errors import DescriptionError, ShapeError, SolveError
from zwang.kinematics.configuration import normalized_configuration
from zwang.kinematics.jacobians import frame_jacobian, frame_jacobian_rate
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import short_repr, validated, validated_arguments
from zwang.scalar import absolute, logical_or, maximum, where
from zwang.simulation.constrained import gauss_problem
from zwang.solver.solve import solve

KEPT = 16  # compiled tasks
TOLERANCE = 1e-6  # relative; larger residuals are not rounding
SMALLEST_WEIGHT = 1e-12  # of a row without effect in some state
KINDS = {"equality": "equality", "friction": "friction", "one_sided": "limit", "cone": "cone"}
"""The kinds of tasks, and of their constraint rows."""


@validated
@dataclass(frozen=True)
class TaskConstraint:
    """Rows of the acceleration of a frame in Gauss's problem, with their desired acceleration a*.

    frame: the name of a body or of a frame. desired: a* of the chosen rows (..., len(rows)), in world axes
    [m/s^2, rad/s^2]; one for each world, or one for all. rows: of (linear, angular), default (0, 1, 2); for a
    cone the normal first. With x for J a + Jdot v of the rows, kind is

        "equality"    x = a*
        "friction"    x = a* as far as forces |f| <= bound [N, N m] reach, as dry friction does
        "one_sided"   x >= a* with f >= 0, as of a limit or a contact without friction
        "cone"        one contact: x_0 >= a*_0 with f_0 >= 0, and sum (f_j / friction_j)^2 <= f_0^2 for the
                      other rows, whose x_j is a*_j inside the cone

    impedance: d in (0, 1]. 1 (default) is hard. A smaller one is soft, with R = (1 - d) / d times the
    diagonal of J M^-1 J^T, of the motions that the hard constraints allow, so that a single row has the
    acceleration d a* + (1 - d) a0 between the desired and the free one. Rows of a soft cone have the friction
    R_j friction_j^2 = R_0 friction_1^2, as in MuJoCo with impratio 1. A hard cone obeys Coulomb's law.
    Raises DescriptionError.
    Source: lecture note "Gauss's Principle of Least Constraint", primal problem and parameter computation;
    MuJoCo documentation, Computation, "Constraint model".
    """

    frame: str
    desired: Any = field(hash=False)
    rows: tuple[int, ...] = (0, 1, 2)
    kind: Literal["equality", "friction", "one_sided", "cone"] = "equality"
    impedance: float = 1.0
    bound: float = 0.0
    friction: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        where = f"task of frame {self.frame!r}"
        if self.kind not in KINDS:
            raise DescriptionError(f"kind of the {where} is {self.kind!r}; give one of {', '.join(KINDS)}")
        if not len(self.rows) or not set(self.rows) <= set(range(6)):
            raise DescriptionError(f"rows of the {where} are {self.rows!r}; give numbers from 0 to 5")
        if not 0 < self.impedance <= 1:
            raise DescriptionError(f"impedance of the {where} is {self.impedance}; it must lie in (0, 1]")
        if (self.bound > 0) != (self.kind == "friction") or not 0 <= self.bound < np.inf:
            raise DescriptionError(
                f"bound of the {where} is {self.bound}; give a positive bound for kind='friction', and none "
                "for others"
            )
        needed = len(self.rows) - 1 if self.kind == "cone" else 0
        if self.kind == "cone" and not needed:
            raise DescriptionError(f"the {where} is a cone of one row; give it tangents, or 'one_sided'")
        if len(self.friction) != needed or not all(0 < mu < np.inf for mu in self.friction):
            raise DescriptionError(
                f"friction of the {where} is {self.friction!r}; a cone needs a positive coefficient for each "
                f"row but the first ({needed} here), other kinds none"
            )

    @property
    def form(self) -> TaskForm:
        """The task without its desired acceleration."""
        return TaskForm(
            self.frame, tuple(self.rows), self.kind, self.impedance, self.bound, tuple(self.friction)
        )


class TaskForm(NamedTuple):
    """A `TaskConstraint` without its desired acceleration."""

    frame: str
    rows: tuple[int, ...]
    kind: str = "equality"
    impedance: float = 1.0
    bound: float = 0.0
    friction: tuple[float, ...] = ()


@renamed_attributes(missed="residual", efforts="generalised_force")
class TaskAcceleration(NamedTuple):
    """The joint accelerations of a task, or of several tasks, whose rows follow one another.

    acceleration (nv,); free (nv,): without the task, under the mechanism's hard constraints. force: of each
    row of the task [N, N m]. generalised_force (nv,): J^T force [N m, N]. zwang: Gauss's measure Z of the
    deviation from the free acceleration.
    residual: of each row, J a + Jdot v - desired; not zero for soft rows, for one-sided rows that are not
    active, for friction at its bound, and for rows that cannot be satisfied. Results of many worlds have the
    worlds first.
    """

    acceleration: np.ndarray
    free: np.ndarray
    force: np.ndarray
    generalised_force: np.ndarray
    zwang: Any
    residual: np.ndarray


@renamed_arguments(wanted="desired")
@validated_arguments("frame")
def task_acceleration(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    tau: npt.ArrayLike,
    frame: str | TaskConstraint | Sequence[TaskConstraint],
    desired: npt.ArrayLike | None = None,
    rows: Sequence[int] = (0, 1, 2),
    *,
    time: float = 0.0,
) -> TaskAcceleration:
    """The joint accelerations nearest to the free ones, in Gauss's measure, that give frames their desired
    accelerations.

    mechanism: a mechanism without symbols.
    q: coordinates (..., nq). v: generalised velocities (..., nv). tau: generalised forces (..., nv) [N m, N].
    frame: the name of a body or of a frame, with a hard task; or a `zw.TaskConstraint`, or several: hard,
        soft, one-sided, friction or cone rows.
    desired: J v_dot + Jdot v (..., len(rows)) of the chosen rows, in world axes [m/s^2, rad/s^2]; for a name.
    rows: of (linear, angular), default (0, 1, 2); redundant rows are allowed.
    time: the t of time-dependent constraints [s], default 0.

    The acceleration minimises Z(a) plus the costs of the softness of all rows, under the hard equality
    constraints of the mechanism: loops, couplings, rolling and formulas. Soft constraints, limits, dry
    friction, contacts, and the forces of `NonIdeal` and `CoulombFriction` are left out. Arrays with worlds
    first are evaluated in machine code; a world whose frame cannot have the acceleration is NaN there, except
    for `free` and `residual`. Raises SolveError for one world whose frame cannot have it, with the
    constraints that it contradicts, UnknownNameError, ShapeError, StateError or DescriptionError.
    """
    m = validation.numeric_mechanism(mechanism)
    tasks = _tasks(frame, desired, rows)
    for task in tasks:
        m.tree.placement(task.frame)
    forms = tuple(task.form for task in tasks)
    wanted = [validation.real_values(task.desired, "desired") for task in tasks]
    if max(validation.real_values(x, "q, v, tau, desired").ndim for x in (q, v, tau, *wanted)) > 1:
        return _of_many(m, forms, q, v, tau, [time], *wanted)
    q, v, tau = (
        validation.configuration(m, q),
        validation.nv_vector(m, v, "v"),
        validation.nv_vector(m, tau, "tau"),
    )
    for form, values in zip(forms, wanted, strict=True):
        if len(form.rows) == 0:
            raise ShapeError("rows is empty; give one or more of 0 ... 5")
        if values.shape != (len(form.rows),):
            raise ShapeError(
                f"desired must have {len(form.rows)} elements, one for each of the rows {form.rows}; its "
                f"shape is {values.shape}"
            )
    found = [np.asarray(x, dtype=float) for x in _task_dynamics(m, forms, q, v, tau, time, wanted)]
    if np.isnan(found[0]).any():
        raise SolveError(
            f"no joint acceleration satisfies {_unsatisfied(forms, found[5])} in this state; choose rows "
            "along which the mechanism can accelerate there, or give a zw.TaskConstraint an impedance below 1"
        )
    return TaskAcceleration(*found)._replace(zwang=float(found[4]))


def _unsatisfied(forms: tuple[TaskForm, ...], residual: np.ndarray) -> str:
    """The rows with a residual, with their frames, such as "task 0 of frame 'tool' (residual -1)"; all tasks,
    if the residual is one of the constraints.
    """
    of_row = [(form, k) for form in forms for k in form.rows]
    sizes = np.abs(residual)
    found = [
        f"task {k if len(forms) == 1 else number} of frame {form.frame!r} (residual {residual[number]:.3g})"
        for number, (form, k) in enumerate(of_row)
        if not sizes[number] <= TOLERANCE * sizes.max()
    ]
    return ", ".join(found) or "the tasks and the constraints of the mechanism"


def _tasks(frame: Any, desired: Any, rows: Sequence[int]) -> tuple[TaskConstraint, ...]:
    """The tasks of the arguments. Raises DescriptionError."""
    if isinstance(frame, str):
        if desired is None:
            raise DescriptionError(f"desired is missing: the acceleration of frame {frame!r}")
        return (TaskConstraint(frame, desired, tuple(rows)),)
    tasks = (frame,) if isinstance(frame, TaskConstraint) else frame
    if (
        not isinstance(tasks, Sequence)
        or not tasks
        or not all(isinstance(task, TaskConstraint) for task in tasks)
    ):
        raise DescriptionError(
            f"frame is {short_repr(frame)}; give the name of a frame, a zw.TaskConstraint, or a list of them"
        )
    if desired is not None:
        raise DescriptionError("desired is given beside a zw.TaskConstraint, which has its own; leave it out")
    return tuple(tasks)


def _task_dynamics(
    m: Mechanism, forms: tuple[TaskForm, ...], q: Any, v: Any, tau: Any, time: Any, desired: Sequence[Any]
) -> TaskAcceleration:
    """The result on any scalar; arguments as for `task_acceleration`."""
    kinematics = Kinematics(m.tree, q, v)
    unconstrained = gauss_problem(kinematics, tau + passive_forces(m, q, v))
    own = _constraint_rows(m, kinematics, time)
    # Z measured from the motion a0 under the constraints A a = b has the same minimum, as A (a - a0) = 0
    free = solve(unconstrained, own)
    problem = GaussProblem(unconstrained.M, free.acceleration, unconstrained.parents)
    parts, biases, number = [], [], 0
    for form, wanted in zip(forms, desired, strict=True):
        bias = np.array(frame_jacobian_rate(m.tree, q, v, form.frame))[list(form.rows)]
        J = np.array(frame_jacobian(m.tree, q, form.frame))[list(form.rows)]
        names = form.rows if len(forms) == 1 else range(number, number + len(form.rows))
        parts.append(
            _task_rows(problem, own, form, J, np.asarray(wanted) - bias, [f"task {k}" for k in names])
        )
        biases.append(bias)
        number += len(form.rows)
    rows, goal = concatenated(parts, m.nv), np.concatenate(list(desired))
    found = solve(problem, concatenated([rows, own], m.nv))
    residual = rows.J @ found.acceleration + np.concatenate(biases) - goal
    violations = [*_violations(forms, residual), *(own.J @ found.acceleration - own.aref)]
    far = TOLERANCE * (1 + max_abs([*goal, *own.aref]) + max_abs(found.acceleration))
    failed = logical_or(logical_or(free.failed, found.failed), max_abs(violations) > far)
    a, force = (
        scalar_array([where(failed, np.nan, x) for x in values])
        for values in (found.acceleration, found.force[: len(rows)])
    )
    return TaskAcceleration(a, problem.a_free, force, rows.J.T @ force, problem.zwang(a), residual)


def _constraint_rows(m: Mechanism, kinematics: Kinematics, time: Any) -> Rows:
    """The rows of the hard equality constraints of a mechanism."""
    constraints = [c for c in hard_constraints(m) if not is_idle(m, c)]
    if not constraints:
        return no_rows(m.nv)
    context = row_context(m, kinematics, time=time)
    return concatenated([rows_of_constraint(context, c) for c in constraints], m.nv)


def _task_rows(
    problem: GaussProblem, own: Rows, form: TaskForm, J: np.ndarray, aref: Any, names: list[str]
) -> Rows:
    """The constraint rows of one task: J a = aref, with R from the impedance. own: of the mechanism."""
    diagonal = _inverse_inertias(problem, own if form.impedance < 1 else no_rows(len(problem.M)), J)
    weights = [maximum(x, SMALLEST_WEIGHT * (1 + max_abs(diagonal))) for x in diagonal]
    d, mu = form.impedance, form.friction
    if form.kind == "cone":
        weights = [weights[0], *(weights[0] * mu[0] ** 2 / f**2 for f in mu)]
    R = 0 if d == 1 else [(1 - d) / d * x for x in weights]
    rows = rows_of_kind(
        names, KINDS[form.kind], J, list(aref), R=R, impedance=d, inverse_weight=weights, bound=form.bound
    )
    return rows.as_cone(Cone(0, mu, mu[0])) if form.kind == "cone" else rows


def _inverse_inertias(problem: GaussProblem, own: Rows, J: np.ndarray) -> list[Any]:
    """The diagonal of J M^-1 J^T; under constraints, of J times the accelerations by J^T that they allow."""
    factors = factor(problem.M, problem.parents)
    still = own.replaced(aref=0 * own.aref)
    found = []
    for row in J:
        response = GaussProblem(problem.M, factors.solve(row), problem.parents)
        found.append(row @ solve(response, still).acceleration)
    return found


def _violations(forms: tuple[TaskForm, ...], residual: Any) -> list[Any]:
    """The residuals that hard rows must not have."""
    found, at = [0.0], 0
    for form in forms:
        own = list(residual[at : at + len(form.rows)])
        at += len(form.rows)
        if form.impedance < 1 or form.kind == "friction":
            continue
        if form.kind == "equality":
            found += own
        else:  # one-sided rows, or the normal of a cone
            found += [maximum(-x, 0.0) for x in (own[:1] if form.kind == "cone" else own)]
    return [absolute(x) for x in found]


@lru_cache(KEPT)
def _compiled_task(m: Mechanism, forms: tuple[TaskForm, ...]) -> CompiledFunction:
    def function(q: Any, v: Any, tau: Any, time: Any, *desired: Any) -> dict[str, Any]:
        found = _task_dynamics(m, forms, normalized_configuration(m.tree, q), v, tau, time[0], desired)
        return {**found._asdict(), "zwang": np.array([found.zwang])}

    names = ["desired"] if len(forms) == 1 else [f"desired of task {k}" for k in range(len(forms))]
    sizes = {name: len(form.rows) for name, form in zip(names, forms, strict=True)}
    return compile_function(function, {"q": m.nq, "v": m.nv, "tau": m.nv, "time": 1, **sizes})


def _of_many(m: Mechanism, forms: tuple[TaskForm, ...], *given: Any) -> TaskAcceleration:
    found = TaskAcceleration(*_compiled_task(m, forms)(*given))
    return found._replace(zwang=found.zwang[..., 0])

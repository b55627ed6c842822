"""Accelerations of a frame by Gauss's principle, with the task as a hard constraint; for one world or many
worlds.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.algebra.factorization import ltdl, ltdl_solve
from zwang.api import validation
from zwang.api.programs import compile_function
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.constraint.rows import array, hard_rows
from zwang.deprecation import renamed_arguments, renamed_attributes
from zwang.dynamics.generalised_forces import passive_forces
from zwang.errors import ShapeError
from zwang.kinematics.configuration import normalized_configuration
from zwang.kinematics.jacobians import frame_jacobian, frame_jacobian_rate
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.scalar import logical_or, maximum, where
from zwang.simulation.constrained import gauss_problem
from zwang.solver.solution import max_abs
from zwang.solver.solve import solve

KEPT = 16  # compiled tasks
TOLERANCE = 1e-6  # relative; larger residuals are not rounding
SMALLEST_WEIGHT = 1e-12  # of a row without effect in some state


@renamed_attributes(missed="residual", efforts="generalised_force")
class TaskAcceleration(NamedTuple):
    """The joint accelerations of a task.

    acceleration (nv,); free (nv,): without the task. force: of each row of the task [N, N m].
    generalised_force (nv,): J^T force [N m, N]. zwang: Gauss's measure Z of the deviation from the free
    acceleration.
    residual: of each row, not zero for rows that cannot be satisfied. Results of many worlds have the
    worlds first.
    """

    acceleration: np.ndarray
    free: np.ndarray
    force: np.ndarray
    generalised_force: np.ndarray
    zwang: Any
    residual: np.ndarray


@renamed_arguments(wanted="desired")
@validated_arguments()
def task_acceleration(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    tau: npt.ArrayLike,
    frame: str,
    desired: npt.ArrayLike,
    rows: Sequence[int] = (0, 1, 2),
) -> TaskAcceleration:
    """The joint accelerations nearest to the free ones, in Gauss's measure, that give a frame a desired
    acceleration.

    mechanism: a mechanism without symbols.
    q: coordinates (..., nq). v: generalised velocities (..., nv). tau: generalised forces (..., nv) [N m, N].
    frame: the name of a body or of a frame.
    desired: J v_dot + Jdot v (..., len(rows)) of the chosen rows, in world axes [m/s^2, rad/s^2].
    rows: of (linear, angular), default (0, 1, 2); redundant rows are allowed.

    Arrays with worlds first are evaluated in machine code; a world whose frame cannot have the acceleration
    is NaN there, except for `free` and `residual`. Raises SolveError for one world whose frame cannot have
    it, UnknownNameError, ShapeError or StateError.
    """
    m = validation.numeric_mechanism(mechanism)
    m.tree.placement(frame)
    if max(validation.array(x, "q, v, tau, desired").ndim for x in (q, v, tau, desired)) > 1:
        return _of_many(m, frame, tuple(rows), q=q, v=v, tau=tau, desired=desired)
    q, v, tau = (
        validation.configuration(m, q),
        validation.nv_vector(m, v, "v"),
        validation.nv_vector(m, tau, "tau"),
    )
    desired = validation.array(desired, "desired")
    if len(rows) == 0:
        raise ShapeError("rows is empty; give one or more of 0 ... 5")
    if desired.shape != (len(rows),):
        raise ShapeError(
            f"desired must have {len(rows)} elements, one for each of the rows {tuple(rows)}; its shape "
            f"is {desired.shape}"
        )
    found = [np.asarray(x, dtype=float) for x in _task_dynamics(m, frame, tuple(rows), q, v, tau, desired)]
    return TaskAcceleration(*found)._replace(zwang=float(found[4]))


def _task_dynamics(
    m: Mechanism, frame: str, rows: tuple[int, ...], q: Any, v: Any, tau: Any, desired: Any
) -> TaskAcceleration:
    """The result on any scalar; arguments as for `task_acceleration`."""
    J = np.array(frame_jacobian(m.tree, q, frame))[list(rows)]
    bias = np.array(frame_jacobian_rate(m.tree, q, v, frame))[list(rows)]
    problem = gauss_problem(Kinematics(m.tree, q, v), tau + passive_forces(m, q, v))
    factors = ltdl(problem.M, problem.parents)
    own = [row @ ltdl_solve(*factors, problem.parents, row) for row in J]  # J M^-1 J^T
    inverse_weight = [maximum(x, SMALLEST_WEIGHT * (1 + max_abs(own))) for x in own]
    found = solve(
        problem,
        hard_rows([f"task {k}" for k in rows], J, array(desired - bias), inverse_weight=inverse_weight),
    )
    residual = J @ found.acceleration + bias - desired
    far = TOLERANCE * (1 + max_abs(desired) + max_abs(found.acceleration))
    failed = logical_or(found.failed, max_abs(residual) > far)
    a, force = (where(failed, np.nan, x) for x in (np.array(found.acceleration), np.array(found.force)))
    return TaskAcceleration(a, problem.a_free, force, J.T @ force, problem.zwang(a), residual)


@lru_cache(KEPT)
def _compiled_task(m: Mechanism, frame: str, rows: tuple[int, ...]) -> CompiledFunction:
    def function(q: Any, v: Any, tau: Any, desired: Any) -> dict[str, Any]:
        found = _task_dynamics(m, frame, rows, normalized_configuration(m.tree, q), v, tau, desired)
        return {**found._asdict(), "zwang": np.array([found.zwang])}

    return compile_function(function, {"q": m.nq, "v": m.nv, "tau": m.nv, "desired": len(rows)})


def _of_many(m: Mechanism, frame: str, rows: tuple[int, ...], **given: Any) -> TaskAcceleration:
    found = TaskAcceleration(*_compiled_task(m, frame, rows)(*given.values()))
    return found._replace(zwang=found.zwang[..., 0])

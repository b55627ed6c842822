"""Accelerations asked of a frame: Gauss's principle with the task as the constraint; of one world on floats, of many compiled."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import ltdl, ltdl_solve
from zwang.api import validation
from zwang.api.compiled import CompiledFunction, compile_function
from zwang.constraint.rows import array, hard_rows
from zwang.dynamics.generalised_forces import passive_forces
from zwang.errors import ShapeError
from zwang.kinematics.configuration import normalized_configuration
from zwang.kinematics.jacobians import frame_jacobian, frame_jacobian_rate
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.scalar import logical_or, maximum, where
from zwang.simulation.constrained import gauss_problem
from zwang.solver.solution import max_abs
from zwang.solver.solve import solve

KEPT = 16  # compiled tasks
MISSED = 1e-6  # relative: more than that is no rounding
SMALLEST_WEIGHT = 1e-12  # of a row that moves nothing in some state


class TaskAcceleration(NamedTuple):
    """acceleration (nv,); free (nv,): without the task; force: by row of the task [N, N m]; efforts (nv,) = J^T force;
    zwang: the deviation Z from the free acceleration; missed: by how much rows that cannot be held are missed. Of many worlds,
    each with these in front."""

    acceleration: np.ndarray
    free: np.ndarray
    force: np.ndarray
    efforts: np.ndarray
    zwang: Any
    missed: np.ndarray


@validated_arguments()
def task_acceleration(
    mechanism: Mechanism, q: Any, v: Any, tau: Any, frame: str, wanted: Any, rows: Sequence[int] = (0, 1, 2)
) -> TaskAcceleration:
    """The joint accelerations nearest, in Gauss's sense, to the free ones that give a frame an acceleration.

    wanted: J v_dot + J_dot v for the chosen rows of (linear, angular) in world axes [m/s^2, rad/s^2]. Redundant rows do no harm.
    Arrays with worlds in front, (..., n), are worked out in machine code, all worlds together; worlds whose frame cannot have
    the acceleration are nan there, but for `free` and `missed`. Raises SolveError where the frame of one world cannot have it,
    UnknownNameError, ShapeError or StateError. Source: seed 002, the 3R manipulator.
    """
    m = validation.numeric_mechanism(mechanism)
    m.tree.placement(frame)
    if max(validation.array(x, "q, v, tau, wanted").ndim for x in (q, v, tau, wanted)) > 1:
        return _of_many(m, frame, tuple(rows), q=q, v=v, tau=tau, wanted=wanted)
    q, v, tau = validation.configuration(m, q), validation.nv_vector(m, v, "v"), validation.nv_vector(m, tau, "tau")
    wanted = validation.array(wanted, "wanted")
    if wanted.shape != (len(rows),):
        raise ShapeError(
            f"wanted must have {len(rows)} elements, one for each of the rows {tuple(rows)}; its shape is {wanted.shape}"
        )
    found = [np.asarray(x, dtype=float) for x in _asked(m, frame, tuple(rows), q, v, tau, wanted)]
    return TaskAcceleration(*found)._replace(zwang=float(found[4]))


def _asked(
    m: Mechanism, frame: str, rows: tuple[int, ...], q: Any, v: Any, tau: Any, wanted: Any
) -> TaskAcceleration:
    """The text, on any scalar."""
    J = np.array(frame_jacobian(m.tree, q, frame))[list(rows)]
    stabilization = np.array(frame_jacobian_rate(m.tree, q, v, frame))[list(rows)]
    problem = gauss_problem(m, q, v, tau + passive_forces(m, q, v))
    factors = ltdl(problem.M, problem.parents)
    own = [row @ ltdl_solve(*factors, problem.parents, row) for row in J]  # J M^-1 J^T
    inverse_weight = [maximum(x, SMALLEST_WEIGHT * (1 + max_abs(own))) for x in own]
    found = solve(problem, hard_rows([f"task {k}" for k in rows], J, array(wanted - stabilization), inverse_weight=inverse_weight))
    missed = J @ found.acceleration + stabilization - wanted
    far = MISSED * (1 + max_abs(wanted) + max_abs(found.acceleration))
    failed = logical_or(found.failed, max_abs(missed) > far)
    a, force = (where(failed, np.nan, x) for x in (np.array(found.acceleration), np.array(found.force)))
    return TaskAcceleration(a, problem.a_free, force, J.T @ force, problem.zwang(a), missed)


@lru_cache(KEPT)
def _compiled_task(m: Mechanism, frame: str, rows: tuple[int, ...]) -> CompiledFunction:
    def function(q: Any, v: Any, tau: Any, wanted: Any) -> dict[str, Any]:
        found = _asked(m, frame, rows, normalized_configuration(m.tree, q), v, tau, wanted)
        return {**found._asdict(), "zwang": np.array([found.zwang])}

    return compile_function(function, {"q": m.nq, "v": m.nv, "tau": m.nv, "wanted": len(rows)})


def _of_many(m: Mechanism, frame: str, rows: tuple[int, ...], **given: Any) -> TaskAcceleration:
    found = TaskAcceleration(*_compiled_task(m, frame, rows)(*given.values()))
    return found._replace(zwang=found.zwang[..., 0])

"""Accelerations asked of a frame: Gauss's principle with the task as the constraint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang import door
from zwang.constraint.rows import hard_rows
from zwang.errors import ShapeError
from zwang.gauss.applied import passive_forces
from zwang.kinematics.jacobians import frame_jacobian, frame_jacobian_rate
from zwang.mechanism.mechanism import Mechanism
from zwang.simulate.constrained import gauss_problem
from zwang.solve.gauss import solve
from zwang.solve.solution import Solution


class TaskAcceleration(NamedTuple):
    """acceleration (nv,); free (nv,): without the task; force: by row of the task [N, N m]; efforts (nv,) = J^T force;
    zwang: the deviation Z from the free acceleration; missed: by how much rows that cannot be held are missed."""

    acceleration: np.ndarray
    free: np.ndarray
    force: np.ndarray
    efforts: np.ndarray
    zwang: float
    missed: np.ndarray


def task_acceleration(
    mechanism: Mechanism, q: Any, v: Any, tau: Any, frame: str, wanted: Any, rows: Sequence[int] = (0, 1, 2)
) -> TaskAcceleration:
    """The joint accelerations nearest, in Gauss's sense, to the free ones that give a frame an acceleration.

    wanted: J v_dot + J_dot v for the chosen rows of (linear, angular) in world axes [m/s^2, rad/s^2]. Redundant rows do no harm.
    Raises SolveError where the frame cannot have it, UnknownNameError, ShapeError or StateError. Source: seed 002, the 3R manipulator.
    """
    m = door.numeric(mechanism)
    q, v, tau = door.configuration(m, q), door.speeds(m, v, "v"), door.speeds(m, tau, "tau")
    wanted = np.asarray(wanted, dtype=float)
    if wanted.shape != (len(rows),):
        raise ShapeError(
            f"wanted must have {len(rows)} elements, one for each of the rows {tuple(rows)}; its shape is {wanted.shape}"
        )
    index = list(rows)
    J = np.asarray(frame_jacobian(m.tree, q, frame), dtype=float)[index]
    drift = np.asarray(frame_jacobian_rate(m.tree, q, v, frame), dtype=float)[index]
    problem = gauss_problem(m, q, v, tau + passive_forces(m, q, v))
    task = hard_rows([f"task {k}" for k in rows], J, wanted - drift)
    found: Solution = solve(problem, task)
    a, force = np.asarray(found.acceleration, float), np.asarray(found.force, float)
    return TaskAcceleration(
        a,
        np.asarray(problem.a_free, float),
        force,
        J.T @ force,
        float(problem.zwang(a)),
        J @ a + drift - wanted,
    )

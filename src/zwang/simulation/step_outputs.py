"""What a step computes beside the next state, if it is asked for: solver status and forces; on any scalar."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.constraint.context import row_context
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import cond, equal, value_is_constant, where
from zwang.simulation.constraint_stage import ConstrainedMotion, ConstraintModel
from zwang.simulation.quantities.constraint_forces import point_force_labels, point_forces
from zwang.simulation.solver_status import NO_SOLUTION
from zwang.simulation.status import NONE
from zwang.simulation.step import StepResult

STEP_OUTPUTS = ("solver_status", "constraint_force", "force")
"""The names of the outputs that a step may be asked for."""


def step_outputs(
    mechanism: Mechanism,
    model: ConstraintModel | None,
    result: StepResult,
    wanted: tuple[str, ...],
    recorded: Any = True,
) -> dict[str, np.ndarray]:
    """The wanted outputs of a step; forces are those at its beginning, and NaN if the step fails.

    solver_status (1,): the worst one of all stages. constraint_force (nv,): generalised force of all
    constraints [N m, N]. force (2 * 3 * n,): for each of `point_force_labels` the position [m] and the force
    [N]. recorded: whether `force` is wanted of this step; otherwise it is zero, and not computed.
    """
    found: dict[str, np.ndarray] = {}
    if "solver_status" in wanted:
        found["solver_status"] = np.array([NO_SOLUTION if model is None else result.solver_status])
    if "constraint_force" in wanted:
        force = np.zeros(mechanism.nv) if result.motion is None else result.motion.constraint_force
        found["constraint_force"] = _where_valid(result, force)
    if "force" in wanted:
        nothing = np.zeros(6 * len(point_force_labels(mechanism)))
        force = cond(recorded, lambda: _point_forces(mechanism, model, result.motion), lambda: nothing)
        found["force"] = _where_valid(result, force)
    return found


def _point_forces(
    mechanism: Mechanism, model: ConstraintModel | None, motion: ConstrainedMotion | None
) -> np.ndarray:
    """Position and force of each of `point_force_labels`, in one array."""
    if model is None or motion is None:
        return np.zeros(6 * len(point_force_labels(mechanism)))
    context = row_context(mechanism, motion.kinematics, inverse_weights=model.weights, step=model.step)
    points = point_forces(context, motion.found.rows, motion.found.solution)
    return np.array([x for point in points for x in (*point.position, *point.force)])


def _where_valid(result: StepResult, values: np.ndarray) -> np.ndarray:
    """The values; NaN if the step fails."""
    if value_is_constant(result.status) and int(result.status) == NONE:
        return values
    return np.array([where(equal(result.status, NONE), x, np.nan) for x in values])

"""What a compiled step or rollout returns: the state, and the outputs that were asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from zwang.errors import ArgumentError, UnknownNameError
from zwang.integrator.fixed_step import State
from zwang.mechanism.type_validation import short_repr
from zwang.simulation.step_outputs import STEP_OUTPUTS


class StepOutputs(State):
    """The state (q, v, z) after a step, and what `outputs` asked for; None for all else.

    solver_status: (...) integers, `zw.SolverStatus`. constraint_force: (..., nv), the generalised force of
    all constraints, limits, friction and contacts [N m, N]. force, force_position: (..., n, 3), of contacts
    and of constraints between points, in world axes [N, m]; `force_labels` names them. An inactive contact
    has no force and a meaningless position.
    """

    solver_status: Any = None
    constraint_force: Any = None
    force: Any = None
    force_position: Any = None


def checked_outputs(outputs: Sequence[str]) -> tuple[str, ...]:
    """The outputs in the order of `STEP_OUTPUTS`. Raises ArgumentError or UnknownNameError."""
    if isinstance(outputs, str):
        outputs = (outputs,)
    if not isinstance(outputs, Sequence):
        raise ArgumentError(
            f"outputs is {short_repr(outputs)}; give a list of names: {', '.join(STEP_OUTPUTS)}"
        )
    names = tuple(outputs)
    for name in names:
        if name not in STEP_OUTPUTS:
            raise UnknownNameError("output of a step", name, STEP_OUTPUTS)
    return tuple(name for name in STEP_OUTPUTS if name in names)


def shaped_outputs(state: Sequence[np.ndarray], found: Mapping[str, np.ndarray]) -> StepOutputs:
    """The state and the outputs of a step in their shapes."""
    outputs = StepOutputs(*state)
    if not found:
        return outputs
    if "constraint_force" in found:
        outputs.constraint_force = found["constraint_force"]
    if "solver_status" in found:
        outputs.solver_status = found["solver_status"][..., 0].astype(int)
    if "force" in found:
        both = found["force"].reshape(*found["force"].shape[:-1], -1, 2, 3)
        outputs.force_position, outputs.force = both[..., 0, :], both[..., 1, :]
    return outputs

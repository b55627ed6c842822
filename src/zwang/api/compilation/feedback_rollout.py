"""A rollout under a feedback about a reference trajectory: u = clip(control + gain (x - reference))."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.api.arguments import validation
from zwang.api.functions.function_table import ARGUMENTS
from zwang.errors import ArgumentError, ShapeError
from zwang.kinematics.configuration import difference_configuration
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import clip
from zwang.simulation.applied_forces import activations
from zwang.simulation.controls import control_names, control_ranges
from zwang.simulation.step_program import StepProgram

REFERENCE = {"q": "reference_q", "v": "reference_v", "activation": "reference_activation"}
"""The inputs of the step under feedback for the reference of each part of the state."""
APPLIED = "applied_control"
"""The output of the step under feedback for the control that acted."""


class FeedbackRollout(NamedTuple):
    """The states after each step, and the controls that acted in the steps: (..., steps, size) each."""

    q: np.ndarray
    v: np.ndarray
    activation: np.ndarray
    control: np.ndarray


def feedback_sizes(mechanism: Mechanism, step_inputs: Mapping[str, int]) -> dict[str, int]:
    """The inputs of the step under feedback, with their sizes; step_inputs: those of the step."""
    nu, n = step_inputs["control"], 2 * mechanism.nv + step_inputs["activation"]
    reference = {name: step_inputs[part] for part, name in REFERENCE.items()}
    return {**step_inputs, "gain": nu * n, **reference, "lowest": nu, "highest": nu}


def feedback_step(
    mechanism: Mechanism, h: float, integrator: str, values: Mapping[str, Any], carried: Any = None
) -> dict[str, Any]:
    """The state after a step under feedback, and the control that acted, by the names of the inputs."""
    (q, v, z), goal = ([values[name] for name in names] for names in (REFERENCE, REFERENCE.values()))
    # dx = x - reference on the tangent space
    dx = np.concatenate([difference_configuration(mechanism.tree, q, goal[0]), v - goal[1], z - goal[2]])
    # u = clip(control + K dx)
    u = values["control"] + values["gain"].reshape(-1, len(dx)) @ dx
    u = np.array([clip(*x) for x in zip(u, values["lowest"], values["highest"], strict=True)])
    time, clock = values.get("time"), values.get("clock")
    after = StepProgram(mechanism, h, integrator)(q, v, z, u, time=time, clock=clock, carried=carried)
    found = {"q": after["q"], "v": after["v"], "activation": after["z"], APPLIED: u}
    return found if clock is None else {**found, "clock": after["clock"]}


def feedback_arrays(
    mechanism: Mechanism,
    control: np.ndarray,
    gain: np.ndarray,
    reference: Sequence[npt.ArrayLike],
    bounds: tuple[npt.ArrayLike, npt.ArrayLike] | None,
) -> list[np.ndarray]:
    """The gains, the references and the bounds as inputs of the rollout. Raises ShapeError or
    StateError.
    """
    steps, nu = control.shape[-2:]
    sizes = (mechanism.nq, mechanism.nv, len(activations(mechanism)))
    n = sum(sizes[1:]) + mechanism.nv
    if gain.shape[-3:] != (steps, nu, n):
        raise ShapeError(f"gain must have the shape (..., {steps}, {nu}, {n}); its shape is {gain.shape}")
    if len(reference) != len(sizes):
        raise ShapeError(f"reference must be (q, v, activation); it has {len(reference)} parts")
    goals = []
    for given, name, size in zip(reference, REFERENCE, sizes, strict=True):
        values = ARGUMENTS[name].without_labels(mechanism, given, "reference")
        x = validation.real_values(values, "reference")
        if x.ndim < 2 or x.shape[-2] < steps or x.shape[-1] != size:
            raise ShapeError(
                f"{name} of the reference must have the shape (..., {steps} or more, {size}); its shape is "
                f"{x.shape}"
            )
        goals.append(x[..., :steps, :])
    return [gain.reshape(*gain.shape[:-2], nu * n), *goals, *checked_bounds(bounds, nu)]


def checked_bounds(bounds: Sequence[npt.ArrayLike] | None, nu: int) -> tuple[np.ndarray, np.ndarray]:
    """The lowest and the highest controls (nu,), each given as a number or (nu,); without bounds infinite.

    Raises ShapeError, StateError, or ArgumentError for bounds without room.
    """
    found = [validation.real_values(x, "bounds") for x in ((-np.inf, np.inf) if bounds is None else bounds)]
    if len(found) != 2 or any(x.shape not in ((), (nu,)) for x in found):
        raise ShapeError(
            f"bounds must be two numbers or arrays of the shape ({nu},); their shapes are "
            f"{', '.join(str(x.shape) for x in found)}"
        )
    lowest, highest = (np.broadcast_to(x, nu) for x in found)
    if not np.all(lowest < highest):
        raise ArgumentError(f"bounds are {bounds!r}; every lowest control must be below the highest one")
    return lowest, highest


def acting_bounds(
    mechanism: Mechanism, bounds: Sequence[npt.ArrayLike] | None
) -> tuple[np.ndarray, np.ndarray]:
    """`checked_bounds` within the control ranges of the inputs, except ranges of one value, in which no
    control acts. Also raises ArgumentError for bounds without room within a range.
    """
    names, (least, largest) = control_names(mechanism), control_ranges(mechanism)
    lowest, highest = checked_bounds(bounds, len(names))
    has_room = least < largest
    low = np.where(has_room, np.maximum(lowest, least), lowest)
    high = np.where(has_room, np.minimum(highest, largest), highest)
    for k in np.flatnonzero(low >= high):
        raise ArgumentError(
            f"the bounds {lowest[k]:g} and {highest[k]:g} of {names[k]!r} leave no room within its control "
            f"range, {least[k]:g} to {largest[k]:g}, beyond which a control acts as its end"
        )
    return low, high

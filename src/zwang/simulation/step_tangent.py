"""The derivative of one step along a direction of the state, the control and the parameters, exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual_control_flow import Tangent, parts, tangent_array, tangents
from zwang.integrator.fixed_step import State
from zwang.kinematics.configuration import configuration_rate, velocities_of_rate
from zwang.mechanism.tree import Tree
from zwang.simulation.step import step
from zwang.simulation.step_settings import StepSettings
from zwang.solver.linearised import KnownSolutions


class Direction(NamedTuple):
    """A direction: dq (nv,), a displacement in the tangent space of the configuration, dv (nv,), dz (nz,),
    and du (nu,) of the control.
    """

    dq: Any
    dv: Any
    dz: Any
    du: Any


def step_tangent(
    settings: Callable[[], StepSettings], state: State, control: Any, t: Any, known: KnownSolutions,
    direction: Direction,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The derivatives (dq, dv, dz) of the state after a step along a direction, dq in the tangent space.

    settings: of the step; called where parameters may be tangents. known: the solutions of the constraint
    solver in the stages of this step.
    """
    with tangents():
        s = settings()
        tree = s.mechanism.tree
        q_rate = configuration_rate(tree, state.q, direction.dq)
        moved = State(
            tangent_array(state.q, q_rate),
            tangent_array(state.v, direction.dv),
            tangent_array(state.z, direction.dz),
        )
        after = step(s, moved, tangent_array(control, direction.du), t, known).state
        return displacement(tree, after.q), derivatives_of(after.v), derivatives_of(after.z)


def displacement(tree: Tree, q: Any) -> np.ndarray:
    """The derivative (nv,) in the tangent space of a configuration (nq,) of tangents."""
    values = np.array([parts(x)[0] for x in q], dtype=object)
    return velocities_of_rate(tree, values, derivatives_of(q))


def derivatives_of(values: Any) -> np.ndarray:
    """The derivatives of an array of tangents."""
    return np.array([parts(x)[1] for x in values], dtype=object)


def tangent_parameter(value: Any, derivative: Any) -> Tangent:
    """A parameter with its derivative."""
    return Tangent(value, derivative)

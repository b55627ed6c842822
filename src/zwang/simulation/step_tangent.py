"""The derivatives of a step, of the state derivative and of the sensors along one direction, exactly."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.dual_control_flow import parts, tangent_array, tangents
from zwang.algebra.rotations import cross
from zwang.constraint.context import StepForm
from zwang.integrator.fixed_step import State
from zwang.kinematics.configuration import configuration_rate, velocities_of_rate
from zwang.mechanism.tree import Tree
from zwang.simulation.quantities.sensor_values import SensedState, sensor_values
from zwang.simulation.step import state_derivative, step
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
        moved, moved_control = _moved(s, state, control, direction)
        q, v, z = step(s, moved, moved_control, t, known).state
        q_values = np.array([parts(x)[0] for x in q], dtype=object)
        return (
            velocities_of_rate(s.mechanism.tree, q_values, _derivatives(q)),
            _derivatives(v),
            _derivatives(z),
        )


def state_derivative_tangent(
    settings: Callable[[], StepSettings], state: State, control: Any, t: Any, known: KnownSolutions,
    direction: Direction,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """The rates of the deviation (dq, dv, dz) of the state from its motion, that start along a direction.

    These are the right-hand sides of the variational equation, the limit of (`step_tangent` - direction) / h
    for small steps h where no rows depend on the step. Arguments as for `step_tangent`.
    """
    with tangents():
        s = settings()
        moved, moved_control = _moved(s, state, control, direction)
        found = state_derivative(s, *moved, moved_control, 0 if t is None else t, known.of_stage(0))
        dq_dot = deviation_rate(s.mechanism.tree, state.v, direction)
        return dq_dot, _derivatives(found.v_dot), _derivatives(found.z_dot)


def deviation_rate(tree: Tree, v: Any, direction: Direction) -> np.ndarray:
    """dq_dot (nv,): the rate of the deviation dq of the configuration from one that moves at v (nv,).

    It is dv but for ball joints, where dq is a rotation vector in body axes, which turn with the motion:
    with R' = R exp(dq), R_dot = R [v]x and R'_dot = R' [v + dv]x it is dv - v x dq to first order.
    Source: Marsden, Ratiu, Introduction to Mechanics and Symmetry (1999), Section 13.5.
    """
    dq_dot = np.array(direction.dv, dtype=object)
    for link in tree.links:
        if link.joint.kind == "ball":
            dq_dot[link.v] = direction.dv[link.v] - cross(v[link.v], direction.dq[link.v])
    return dq_dot


def sensor_tangent(
    settings: Callable[[], StepSettings], state: State, control: Any, t: Any, known: KnownSolutions,
    direction: Direction,
) -> np.ndarray:  # fmt: skip
    """The derivative of the values of all sensors along a direction. Arguments as for `step_tangent`."""
    with tangents():
        s = settings()
        moved, moved_control = _moved(s, state, control, direction)
        time = 0 if t is None else t
        form = StepForm(s.h) if s.constraint_model is None else s.constraint_model.step
        sensed = SensedState(s.mechanism, time, *moved, moved_control, form, start=known.of_stage(0))
        return _derivatives(sensor_values(sensed))


def _moved(s: StepSettings, state: State, control: Any, direction: Direction) -> tuple[State, np.ndarray]:
    """The state and the control as tangents along a direction."""
    q_rate = configuration_rate(s.mechanism.tree, state.q, direction.dq)
    both = ((state.q, q_rate), (state.v, direction.dv), (state.z, direction.dz))
    return State(*(tangent_array(*x) for x in both)), tangent_array(control, direction.du)


def _derivatives(values: Any) -> np.ndarray:
    """The derivatives of an array of tangents."""
    return np.array([parts(x)[1] for x in values], dtype=object)

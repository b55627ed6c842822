"""One step of a mechanism: every stage by name, in order.

    passive_forces      what pushes by itself: springs, dampers, constant wrenches
    actuator_forces     what is driven: motors and actuators at this control
    accelerations       the free motion; or, where something restricts it,
    restrained          the nearest to it, in Gauss's sense, under loops, couplings, friction, limits, contacts
    later_damped        damping (and, for implicit integrators, bias forces) as it is at the step's end
    activation_rates    the actuators' own states
    space               how to get along the new speeds to the new configuration
    projected           drift off exact constraints taken back

The text runs on floats, and traced it becomes the compiled step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import gaussian_elimination
from zwang.constraint.rows import WarmStart
from zwang.dynamics.bias_force_derivative import (
    bias_force_derivative,
    free_body_bias_force_derivative,
    standalone_free_bodies,
)
from zwang.dynamics.crba import crba
from zwang.dynamics.forward_dynamics import free_accelerations
from zwang.dynamics.forward_dynamics_crba import solve_mass_matrix, velocity_parents
from zwang.dynamics.generalised_forces import (
    activation_derivatives,
    actuator_forces,
    advance_activation,
    clip_to_actuator_ranges,
    passive_forces,
)
from zwang.dynamics.rnea import bias_forces
from zwang.integrator.fixed_step import State, StateSpace, runge_kutta_4, semi_implicit_euler
from zwang.kinematics.configuration import displacement_rate, integrate_configuration
from zwang.mechanism.force_elements import Actuator
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.scalar import MutableArray, is_zero
from zwang.simulation.constraint_stage import (
    ConstrainedMotion,
    ConstraintModel,
    constrained_motion,
    constraint_model_of,
    projected_onto_constraints,
    time_or_error,
)
from zwang.simulation.damping import damping_matrix, is_linear, joint_damping
from zwang.simulation.status import CONSTRAINT_VIOLATED, NONE, status_if, worst_status

STEPPERS = {
    "euler": semi_implicit_euler,
    "implicitfast": semi_implicit_euler,
    "implicit": semi_implicit_euler,
    "rk4": runge_kutta_4,
}


@dataclass(frozen=True)
class StepSettings:
    """What does not change from step to step: the mechanism, the step h [s], the integrator, and what these imply.

    tree: with the damping that the integrator takes implicitly. restraint: what restricts the motion, or None.
    """

    mechanism: Mechanism
    h: float
    integrator: str
    tree: Tree
    constraint_model: ConstraintModel | None


class StepResult(NamedTuple):
    """Where a step led, the fault if that is not to be used (see `faults`), and how rows answered at its end, where that is told."""

    point: State
    status: Any
    row_status: Sequence[Any] = ()


class StateDerivative(NamedTuple):
    """v_dot (nv,), z_dot (nz,) of the actuators' states, the fault if these are not to be used, and how rows answered, where that is told."""

    v_dot: np.ndarray
    z_dot: np.ndarray
    status: Any
    row_status: MutableArray | None = None

    @property
    def begin(self) -> Any:
        """What the next solution may begin with."""
        row_status = self.row_status
        return self.v_dot if row_status is None else lambda groups: row_status


def step_settings(
    mechanism: Mechanism,
    h: float,
    integrator: str = "euler",
    stabilization: str = "projection",
    coordinate_reduction: Any = False,
) -> StepSettings:
    """Steps of h [s]: "euler", semi-implicit with joint damping implicit; "implicitfast", with all damping implicit; "implicit",
    with all damping and the bias forces implicit; "rk4".

    Each means what MuJoCo's of that name means; the option "eulerdamp" among the disabled makes Euler's damping explicit. drift: how exact constraints are kept, "projection" or "stabilisation";
    embedding: whether, and by which essential speeds, they are embedded (see `zw.simulate`).
    """
    constant = integrator == "euler" and damped_at_end(mechanism) and is_linear(mechanism)
    tree = with_implicit_damping(mechanism, h) if constant else mechanism.tree
    return StepSettings(mechanism, h, integrator, tree, constraint_model_of(mechanism, h, stabilization, coordinate_reduction))


def step(s: StepSettings, at: State, control: Any, t: Any = None, warm_start: WarmStart | None = None) -> StepResult:
    """The point of the motion one step later, at a control held meanwhile, and the worst fault of all stages.

    control: for a mechanism with inputs one number an input (nu,), else efforts tau (nv,) [N m or N]. t [s]: the time at the step's
    beginning; only constraints with t in a formula ask for it. recall: how rows answered at the end of the step before, which saves
    iterations. Raises SimulationError if they do and there is none.
    """
    t = time_or_error(s.constraint_model, t)
    stages: list[StateDerivative] = []

    def rate(q: Any, v: Any, z: Any, dt: Any) -> tuple[Any, Any]:
        """Solvers that iterate begin where the stage before, or the step before, ended."""
        begin = stages[-1].begin if stages else warm_start
        stages.append(state_derivative(s, q, v, z, control, t + dt, begin))
        return stages[-1].v_dot, stages[-1].z_dot

    after = STEPPERS[s.integrator](rate, state_space(s.mechanism), at, s.h)
    q, v, still_open = projected_onto_constraints(s.constraint_model, after.q, after.v, t + s.h)
    statuses, row_status = [stage.status for stage in stages], stages[-1].row_status
    remembered = [] if row_status is None else [row_status[k] for k in range(row_status.shape[0])]
    return StepResult(State(q, v, after.z), worst_status([*statuses, status_if(still_open, CONSTRAINT_VIOLATED)]), remembered)


def state_derivative(s: StepSettings, q: Any, v: Any, z: Any, control: Any, t: Any = 0, begin: Any = None) -> StateDerivative:
    """The accelerations, and the rates of the actuators' states, at the time t [s]; begin: what solvers begin with."""
    tau = applied_forces(s.mechanism, q, v, z, control)
    z_dot = activation_rate(s.mechanism, z, control)
    if s.constraint_model is None:
        return StateDerivative(ACCELERATIONS[s.integrator](s, q, v, z, control, tau), z_dot, NONE)
    held = constrained_motion(s.constraint_model, q, v, tau, t, begin)
    if s.constraint_model.exact:  # rounding that multipliers leave in accelerations is not in those of their efforts
        return StateDerivative(ACCELERATIONS[s.integrator](s, q, v, z, control, tau + held.efforts), z_dot, held.status)
    a = with_end_of_step_damping(s, held, q, v, DAMPING[s.integrator](s, q, v, z, control))
    return StateDerivative(a, z_dot, held.status, held.row_status)


def with_end_of_step_damping(s: StepSettings, held: ConstrainedMotion, q: Any, v: Any, D: np.ndarray) -> np.ndarray:
    """a from (M + h D) a = M a_0, a_0 the accelerations under all restrictions: with damping D taken at the step's end."""
    if (not D.size or is_zero(D)) and not bias_at_end(s):
        return held.a
    return implicit_solution(s, q, v, held.M, D, held.M @ held.a)


def implicit_solution(s: StepSettings, q: Any, v: Any, M: Any, D: np.ndarray, b: np.ndarray) -> np.ndarray:
    """a from (M + h (D + B)) a = b, B the slope of the bias forces for "implicit", and for "implicitfast" that of free bodies.

    Entries of D across branches are left out. Source: MuJoCo, Computation, "implicit" and "implicitfast".
    """
    tree, A = s.mechanism.tree, M + s.h * D
    if s.integrator == "implicit":
        return gaussian_elimination(np.where(related(tree), A + s.h * bias_force_derivative(tree, q, v), 0), b)
    a = list(solve_mass_matrix(tree, A, b))
    for body in bias_at_end(s):
        block = A[body.v, body.v] + s.h * free_body_bias_force_derivative(body, q, v)
        a[body.v] = gaussian_elimination(block, b[body.v])
    return np.array(a)


def bias_at_end(s: StepSettings) -> tuple[Any, ...]:
    """Whose bias forces the integrator takes at the step's end: all ("implicit"), those of free bodies ("implicitfast"), none."""
    if s.integrator == "implicit":
        return s.tree.links
    return standalone_free_bodies(s.mechanism) if s.integrator == "implicitfast" else ()


def related(tree: Tree) -> np.ndarray:
    """Which pairs of speeds (nv, nv) are of one branch: one of the two carries the other, or they are one."""
    parents = velocity_parents(tree)
    found = np.eye(tree.nv, dtype=bool)
    for i in range(tree.nv):
        k = parents[i]
        while k >= 0:
            found[i, k] = found[k, i] = True
            k = parents[k]
    return found


def applied_forces(mechanism: Mechanism, q: Any, v: Any, z: Any, control: Any) -> np.ndarray:
    """tau (nv,) of all that pushes: springs, dampers, actuators; or, without inputs, the control itself [N m or N].

    Either is clipped to the joints' actuator ranges.
    """
    passive = passive_forces(mechanism, q, v)
    if not mechanism.inputs:
        return passive + clip_to_actuator_ranges(mechanism, np.asarray(control))
    return passive + actuator_forces(
        mechanism, q, v, controls_by_name(mechanism, control), named(activations(mechanism), z)
    )


def controls_by_name(mechanism: Mechanism, control: Any) -> Mapping[str, Any]:
    """The control by the names of the inputs; empty where there are none."""
    return named(mechanism.inputs, control) if mechanism.inputs else {}


def state_space(mechanism: Mechanism) -> StateSpace:
    """How a mechanism's configuration, and its actuators' states, move."""
    tree = mechanism.tree
    return StateSpace(
        integrate=lambda q, v, dt: integrate_configuration(tree, q, v, dt),
        advance=lambda z, z_dot, dt: next_activation(mechanism, z, z_dot, dt),
        displacement_rate=lambda u, v: displacement_rate(tree, u, v),
    )


def with_implicit_damping(mechanism: Mechanism, h: Any) -> Tree:
    """The tree whose rotors are heavier by h times the joints' damping: its accelerations belong to damping at the step's end.

    (M + h D) a = tau - D v - h(q, v)  is  M a + h(q, v) = tau - D (v + h a).  Source: MuJoCo, Computation, "Euler".
    """
    D = joint_damping(mechanism, np.zeros(mechanism.nv, int))
    heavier = [replace(link, armature=link.armature + h * D[link.v.start]) for link in mechanism.tree.links]
    return replace(mechanism.tree, links=tuple(heavier))


def tree_accelerations(s: StepSettings, q: Any, v: Any, z: Any, control: Any, tau: Any) -> np.ndarray:
    """a from M a + h(q, v) = tau, M with what the integrator adds to it."""
    return free_accelerations(s.tree, q, v, tau)


def euler_accelerations(s: StepSettings, q: Any, v: Any, z: Any, control: Any, tau: Any) -> np.ndarray:
    """a of `tree_accelerations`, whose rotors bring constant damping; with D at the speeds v where damping is not linear."""
    if is_linear(s.mechanism) or not damped_at_end(s.mechanism):
        return tree_accelerations(s, q, v, z, control, tau)
    return implicit_accelerations(s, q, v, z, control, tau)


def implicit_accelerations(s: StepSettings, q: Any, v: Any, z: Any, control: Any, tau: Any) -> np.ndarray:
    """a from (M + h D) a = tau - h(q, v), with the D = -d tau / d v that the integrator takes; see `implicit_solution`."""
    D, tree = DAMPING[s.integrator](s, q, v, z, control), s.mechanism.tree
    return implicit_solution(s, q, v, crba(tree, q), D, tau - bias_forces(tree, q, v))


def damped_at_end(mechanism: Mechanism) -> bool:
    """Whether Euler's method takes the damping of joints at the step's end, as it does unless the options disable "eulerdamp"."""
    return "eulerdamp" not in mechanism.options.disabled


def euler_damping(s: StepSettings, q: Any, v: Any, z: Any, control: Any) -> np.ndarray:
    """D (nv, nv) of the joints' dampers, or (0,) where it is not taken at the step's end."""
    return np.diag(joint_damping(s.mechanism, v)) if damped_at_end(s.mechanism) else np.zeros(0)


def all_damping(s: StepSettings, q: Any, v: Any, z: Any, control: Any) -> np.ndarray:
    """D (nv, nv) of all that pushes."""
    z_by_name = named(activations(s.mechanism), z)
    return damping_matrix(s.mechanism, q, v, controls_by_name(s.mechanism, control), z_by_name)


ACCELERATIONS = {
    "euler": euler_accelerations,
    "rk4": tree_accelerations,
    "implicitfast": implicit_accelerations,
    "implicit": implicit_accelerations,
}

DAMPING = {
    "euler": euler_damping,
    "rk4": lambda s, *at: np.zeros(0),
    "implicitfast": all_damping,
    "implicit": all_damping,
}


def activations(mechanism: Mechanism) -> tuple[str, ...]:
    """The names of the actuators with a state of their own, in order: the elements of z."""
    return tuple(f.name for f in mechanism.forces if isinstance(f, Actuator) and f.activation is not None)


def activation_rate(mechanism: Mechanism, z: Any, control: Any) -> np.ndarray:
    """z_dot (nz,) of the actuators' own states [1/s]."""
    names = activations(mechanism)
    if not names:
        return np.zeros(0)
    rates = activation_derivatives(mechanism, controls_by_name(mechanism, control), named(names, z))
    return np.array([rates[name] for name in names])


def next_activation(mechanism: Mechanism, z: Any, z_dot: Any, dt: Any) -> np.ndarray:
    """z (nz,) after dt, within the actuators' ranges."""
    actuators = [f for f in mechanism.forces if isinstance(f, Actuator) and f.activation is not None]
    rows = zip(actuators, z, z_dot, strict=True)
    return np.array([advance_activation(actuator, rate, value, dt) for actuator, value, rate in rows])


def named(names: tuple[str, ...], values: Any) -> Mapping[str, Any]:
    """Values by name, in order."""
    return dict(zip(names, values, strict=True))

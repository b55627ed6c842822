"""Reactions: the wrench that each joint transmits and that each constraint exerts on its bodies, with their
power.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from zwang.algebra.rotations import cross
from zwang.api.analysis.constrained_dynamics import check_inertia
from zwang.api.arguments import validation
from zwang.constraint.context import StepForm, row_context
from zwang.dynamics.actuators import Inputs
from zwang.dynamics.free_body_diagram import Load
from zwang.dynamics.generalised_forces import controlled_forces, passive_forces
from zwang.errors import StateError, UnknownNameError
from zwang.kinematics.jacobians import relative_jacobian
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.simulation.constrained import ConstrainedSolution, bearing_loads, solve_constrained
from zwang.simulation.quantities.joint_wrenches import (
    check_reactions,
    joint_wrenches,
    last_links,
    loads_on_bodies,
)


class Reaction(NamedTuple):
    """A wrench and its power: force (3,) [N] and torque (3,) [N m] in world axes, power [W] in the present
    motion.
    """

    force: np.ndarray
    torque: np.ndarray
    power: float


@dataclass(frozen=True)
class Reactions:
    """The reactions of all joints and constraints in one state.

    acceleration (nv,). joints: for each joint the wrench on the body that it carries, torque about the
    origin of the joint's moving frame; its opposite acts on the parent body. Motors, springs, dampers,
    limits and dry friction of the joint are included. constraints: for each constraint and contact between
    bodies its wrench on each of its bodies, torque about the body's centre of mass. power [W]: of every
    constraint, limit, friction and contact, by name; zero for ideal constraints at rest.
    """

    acceleration: np.ndarray
    joints: dict[str, Reaction]
    constraints: dict[str, dict[str, Reaction]]
    power: dict[str, float]


@validated_arguments()
def joint_reactions(
    mechanism: Mechanism,
    q: npt.ArrayLike,
    v: npt.ArrayLike,
    tau: npt.ArrayLike,
    *,
    control: Mapping[str, float] | None = None,
    solver: str = "newton",
    time: float = 0.0,
) -> Reactions:
    """The wrenches of all joints and constraints, by Euler's laws of the bodies from the leaves to the root.

    mechanism: a mechanism without symbols.
    q: coordinates (nq,) [rad, m, unit quaternions]. v: generalised velocities (nv,) [rad/s, m/s].
    tau: generalised forces (nv,) in addition to those of springs and dampers [N m, N].
    control: values of motors, actuators and controlled wrenches, by name; by default zero.
    solver, time: as for `constrained_dynamics`.

    The reactions of an over-constrained mechanism are not determined by rigid-body mechanics; those of least
    deviation are returned. Impacts of hard contacts are not included, see `contacts`. Raises what
    `constrained_dynamics` does, UnknownNameError for a control, and DescriptionError for couplings, limits
    and friction of spatial tendons, for adhesions, for gravity compensation by actuators, and for actuators
    on frames and along paths whose generalised force the `actuator_range` of a joint limits.
    Source: Featherstone, Rigid Body Dynamics Algorithms (2008), Table 5.1; projection-based derivation for
    the moving frame method, IMECE 2021-72324, Eq. 50.
    """
    m = validation.numeric_mechanism(mechanism)
    q, v, tau = (
        validation.configuration(m, q),
        validation.nv_vector(m, v, "v"),
        validation.nv_vector(m, tau, "tau"),
    )
    controls = _checked_control(m, control or {})
    check_reactions(m)
    applied_tau = tau + passive_forces(m, q, v) + controlled_forces(m, q, v, controls)
    kinematics = Kinematics(m.tree, q, v)
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):  # reported by check_inertia
        solution = solve_constrained(
            m, q, v, applied_tau, kinematics=kinematics, solver=solver, time=time,
            bearings=bearing_loads(m, q, v, controls), step=StepForm(m.options.timestep).for_forces,
        )  # fmt: skip
    check_inertia(m, solution.problem.M, solution.solution.acceleration)
    poses = kinematics.poses
    inputs = Inputs(controls, {}, time, m.options.timestep)
    loads, on_bodies = loads_on_bodies(row_context(m, kinematics, time=time), solution, inputs)
    loads += [load for by_body in on_bodies.values() for load in by_body.values()]
    a = np.asarray(solution.solution.acceleration, float)
    return Reactions(
        a,
        _of_joints(m, kinematics, v, joint_wrenches(kinematics, a, loads, last_links(m))),
        {name: {body: _on_body(m, poses, v, body, load) for body, load in by_body.items()}
         for name, by_body in on_bodies.items()},
        _powers(solution, v),
    )  # fmt: skip


def _checked_control(mechanism: Mechanism, control: Any) -> dict[str, float]:
    if not isinstance(control, Mapping):
        raise StateError(f"control is {control!r}; give a dictionary from names of inputs to numbers")
    for name in control:
        if name not in mechanism.inputs:
            raise UnknownNameError("control", name, mechanism.inputs)
    values = validation.vector(list(control.values()), len(control), "control", "one number for each name")
    return dict(zip(control, values.tolist(), strict=True))


def _powers(found: ConstrainedSolution, v: np.ndarray) -> dict[str, float]:
    """The power f . J v of the rows of each constraint."""
    powers: dict[str, float] = {}
    rows, force = found.of_active_rows()
    speeds = np.asarray(rows.J, float).reshape(len(rows.names), len(v)) @ v
    for name, f, speed in zip(rows.names, force, speeds, strict=True):
        powers[name] = powers.get(name, 0.0) + float(f) * float(speed)
    return powers


def _of_joints(
    m: Mechanism, kinematics: Kinematics, v: np.ndarray, wrenches: list[tuple[Any, Any]]
) -> dict[str, Reaction]:
    """The wrench of each joint with its power in the joint's motion."""
    tree, poses, found = m.tree, kinematics.poses, {}
    for joint, last, wrench in zip(m.joints, last_links(m), wrenches, strict=True):
        first = next(i for i, link in enumerate(tree.links) if link.v.start == joint.v.start)
        force, torque = (np.asarray(x, float) for x in wrench)
        motion = relative_jacobian(tree, poses, tree.links[first].parent, last, poses[last].p) @ v
        found[joint.name] = Reaction(force, torque, float(force @ motion[:3] + torque @ motion[3:]))
    return found


def _on_body(m: Mechanism, poses: list[Pose], v: np.ndarray, body: str, load: Load) -> Reaction:
    """A load on a body as a wrench about its centre of mass, with its power."""
    base = m.tree.placement(body)
    p = placement_pose(poses, base).p + placement_pose(poses, base).R @ np.array(m.body(body).com)
    torque = load.torque + cross(load.p - p, load.force)
    motion = relative_jacobian(m.tree, poses, -1, base.link, p) @ v
    return Reaction(
        np.asarray(load.force, float),
        np.asarray(torque, float),
        float(load.force @ motion[:3] + torque @ motion[3:]),
    )

"""The wrenches that joints transmit and that constraints and contacts exert on bodies, by Euler's laws.

All functions run on any scalar.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.constraint.body_loads import constraint_loads
from zwang.constraint.context import RowContext
from zwang.dynamics.actuators import Inputs
from zwang.dynamics.free_body_diagram import (
    BODY_CONSTRAINTS,
    Load,
    check_loads_on_bodies,
    free_body_diagram,
    subtree_loads,
)
from zwang.dynamics.generalised_forces import controlled_forces_of, passive_forces_of
from zwang.errors import DescriptionError
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.velocities import propagate_accelerations
from zwang.mechanism.force_elements import Actuator, GravityCompensation
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling
from zwang.mechanism.tree import WORLD
from zwang.simulation.constrained import ConstrainedSolution
from zwang.simulation.quantities.constraint_forces import forces_of_constraints
from zwang.simulation.quantities.contact_forces import contact_labels, contact_states

BodyLoads = dict[str, dict[str, Load]]


def check_reactions(mechanism: Mechanism) -> None:
    """Raises DescriptionError, with its name, for a part whose reactions are not computed."""
    paths = {t.name: t for t in mechanism.tendons if t.path}
    restricting = [name for name, t in paths.items() if t.limits is not None or t.friction or t.armature]
    restricting += [
        c.tendon
        for c in mechanism.constraints
        if isinstance(c, TendonCoupling) and {c.tendon, c.to} & paths.keys()
    ]
    if restricting:
        raise DescriptionError(
            f"tendon {restricting[0]!r} along a path has limits, friction, armature or a coupling, whose "
            f"reactions are not computed; "
            "remove them, or use constrained_dynamics for the forces by row"
        )
    for force in mechanism.forces:
        if isinstance(force, Actuator) and force.body is not None:
            raise DescriptionError(
                f"actuator {force.name!r} is an adhesion, whose reactions are not computed; leave it out"
            )
    check_loads_on_bodies(mechanism)
    if any(isinstance(f, GravityCompensation) for f in mechanism.forces):
        for joint in mechanism.joints:
            if joint.joint.actuator_gravity_compensation:
                raise DescriptionError(
                    f"the actuators of joint {joint.name!r} carry gravity compensation, whose reactions are "
                    "not computed; set actuator_gravity_compensation=False"
                )


def joint_wrenches(
    kinematics: Kinematics, a: Any, loads: Iterable[Load], joints: Iterable[int]
) -> list[tuple[Any, Any]]:
    """For each of the links `joints` the force and the torque about its origin, each (3,), that its parent
    exerts on it through the joint, in world axes.

    a (nv,): generalised accelerations. loads: all loads on the bodies but gravity. Source: Featherstone,
    Rigid Body Dynamics Algorithms (2008), Table 5.1.
    """
    inertial = inertial_loads(kinematics, a)
    carried = subtree_loads(
        kinematics.tree, kinematics.poses, [*inertial, *(load.reversed() for load in loads)]
    )
    return [carried[link] for link in joints]


def inertial_loads(kinematics: Kinematics, a: Any) -> list[Load]:
    """The inertial wrenches of all bodies: m (a_c - g) and I wd + w x I w."""
    tree, loads = kinematics.tree, []
    accelerations = propagate_accelerations(
        tree, kinematics.joint_poses, kinematics.motion_subspaces, kinematics.velocities, kinematics.v, a
    )
    for solid in tree.rigid_bodies:
        link = solid.placement.link
        if link == WORLD:
            continue
        acc, wd = accelerations[link]
        w, c = kinematics.velocities[link].angular, solid.placement.p
        R_link, (R, p) = kinematics.poses[link].R, kinematics.placement_pose(solid.placement)
        force = solid.mass * (R_link @ (acc + cross(wd, c) + cross(w, cross(w, c))) - tree.gravity)
        I, w = R @ solid.inertia @ R.T, R_link @ w
        loads.append(Load(link, p, force, I @ (R_link @ wd) + cross(w, I @ w)))
    return loads


def loads_on_bodies(
    context: RowContext,
    found: ConstrainedSolution,
    inputs: Inputs,
) -> tuple[list[Load], BodyLoads]:
    """The loads of forces that act on bodies, and those of constraints and contacts, by name and body.

    found: Gauss's problem and its solution.
    """
    mechanism, kinematics = context.mechanism, context.kinematics
    free = free_body_diagram(mechanism, kinematics.poses, kinematics.v)
    at = free.mechanism, Kinematics(free.mechanism.tree, free.q, free.v)
    applied = passive_forces_of(*at) + controlled_forces_of(*at, inputs)
    forces = {
        c.name: f
        for c, f in forces_of_constraints(context, found.solution)
        if isinstance(c, BODY_CONSTRAINTS)
    }
    by_name = constraint_loads(free, forces, context.time)
    by_name |= _contact_loads(context, found)
    return list(free.loads(applied).values()), by_name


def _contact_loads(context: RowContext, found: ConstrainedSolution) -> BodyLoads:
    """The loads of all candidate contacts on their bodies; without those that are not active on floats."""
    by_name: BodyLoads = {}
    labels = contact_labels(context.mechanism)
    for label, state in zip(labels, contact_states(context, found.rows, found.solution), strict=True):
        if isinstance(state.active, float) and not state.active:
            continue
        axes = np.array(state.frame).T
        force, torque = axes @ state.force[:3], axes @ state.force[3:]
        sides = ((label.pair.b, 1), (label.pair.a, -1))
        by_name[label.name] = {
            side.body: Load(side.placement.link, np.array(state.position), sign * force, sign * torque)
            for side, sign in sides
            if side.placement.link != WORLD
        }
    return by_name


def last_links(mechanism: Mechanism) -> list[int]:
    """For each joint the number of its last link, which carries the body."""
    return [
        max(i for i, link in enumerate(mechanism.tree.links) if joint.v.start <= link.v.start < joint.v.stop)
        for joint in mechanism.joints
    ]

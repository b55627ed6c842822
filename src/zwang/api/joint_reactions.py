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
from zwang.api import validation
from zwang.constraint.body_loads import constraint_loads, contact_loads
from zwang.constraint.context import row_context
from zwang.dynamics.free_body_diagram import Load, free_body_diagram, subtree_loads
from zwang.dynamics.generalised_forces import actuator_forces, passive_forces
from zwang.errors import DescriptionError, StateError, UnknownNameError
from zwang.kinematics.jacobians import placement_motion, relative_jacobian
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose, link_poses, placement_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling
from zwang.mechanism.type_validation import validated_arguments
from zwang.simulation.constrained import ConstrainedSolution, solve_constrained


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

    The reactions of an over-constrained mechanism are not determined by rigid-body mechanics; those of
    least deviation are returned. Raises what `constrained_dynamics` does, UnknownNameError for a control,
    and DescriptionError for couplings, limits and friction of spatial tendons, whose reactions are not
    computed.
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
    _check_tendons(m)
    applied_tau = tau + passive_forces(m, q, v) + actuator_forces(m, q, v, controls)
    kinematics = Kinematics(m.tree, q, v)
    solution = solve_constrained(m, q, v, applied_tau, kinematics=kinematics, solver=solver, time=time)
    poses = kinematics.poses
    free = free_body_diagram(m, poses, v)
    forces = _by_name(solution)
    on_bodies = constraint_loads(free, forces, time)
    on_bodies |= contact_loads(row_context(m, kinematics, time=time), forces)
    applied = passive_forces(free.mechanism, free.q, free.v)
    applied = applied + actuator_forces(free.mechanism, free.q, free.v, controls)
    loads = [
        *free.loads(applied).values(),
        *(load for by_body in on_bodies.values() for load in by_body.values()),
    ]
    a = np.asarray(solution.solution.acceleration, float)
    return Reactions(
        a,
        _of_joints(m, poses, v, [*_inertial(m, q, v, a), *(load.reversed() for load in loads)]),
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


def _check_tendons(mechanism: Mechanism) -> None:
    paths = {t.name: t for t in mechanism.tendons if t.path}
    restricting = [name for name, t in paths.items() if t.limits is not None or t.friction]
    restricting += [
        c.tendon
        for c in mechanism.constraints
        if isinstance(c, TendonCoupling) and {c.tendon, c.to} & paths.keys()
    ]
    if restricting:
        raise DescriptionError(
            f"tendon {restricting[0]!r} along a path has limits, friction or a coupling, whose "
            f"reactions are not computed; "
            "remove them, or use constrained_dynamics for the forces by row"
        )


def _by_name(found: ConstrainedSolution) -> dict[str, np.ndarray]:
    forces: dict[str, list[float]] = {}
    for name, f in zip(found.rows.names, np.asarray(found.solution.force, float), strict=True):
        forces.setdefault(name, []).append(float(f))
    return {name: np.array(values) for name, values in forces.items()}


def _powers(found: ConstrainedSolution, v: np.ndarray) -> dict[str, float]:
    """The power f . J v of the rows of each constraint."""
    powers: dict[str, float] = {}
    speeds = np.asarray(found.rows.J, float).reshape(-1, len(v)) @ v
    for name, f, speed in zip(found.rows.names, found.solution.force, speeds, strict=True):
        powers[name] = powers.get(name, 0.0) + float(f) * float(speed)
    return powers


def _inertial(m: Mechanism, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> list[Load]:
    """The inertial wrenches of all bodies: m (a_c - g) and I wd + w x I w."""
    loads = []
    for solid in m.tree.rigid_bodies:
        velocity, acceleration = placement_motion(m.tree, q, v, a, solid.placement)
        R, p = placement_pose(link_poses(m.tree, q), solid.placement)
        I, w = R @ solid.inertia @ R.T, velocity[3:]
        force = solid.mass * (acceleration[:3] - m.tree.gravity)
        loads.append(Load(solid.placement.link, p, force, I @ acceleration[3:] + cross(w, I @ w)))
    return loads


def _of_joints(m: Mechanism, poses: list[Pose], v: np.ndarray, loads: list[Load]) -> dict[str, Reaction]:
    tree, found = m.tree, {}
    carried = subtree_loads(tree, poses, loads)
    for joint in m.joints:
        own = [i for i, link in enumerate(tree.links) if joint.v.start <= link.v.start < joint.v.stop]
        last = own[-1]
        force, torque = (np.asarray(x, float) for x in carried[last])
        motion = relative_jacobian(tree, poses, tree.links[own[0]].parent, last, poses[last].p) @ v
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

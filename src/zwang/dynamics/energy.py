"""Energies, momentum, centre of mass, and Gauss's measure Z, as sums over the bodies."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross, skew
from zwang.dynamics.rnea import vee
from zwang.dynamics.tendon_armature import tendon_kinetic_energy, tendon_zwang
from zwang.errors import DescriptionError
from zwang.kinematics.jacobians import placement_jacobian, placement_motion
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import raise_if


class Energy(NamedTuple):
    """Kinetic energy [J] and potential energy [J], of gravity (zero at the world's origin) and of springs."""

    kinetic: Any
    potential: Any


def kinetic_energy(tree: Tree, q: Any, v: Any) -> Any:
    """Kinetic energy [J] of all links, rotors and tendons, at the configuration q (nq,) and generalised
    velocities v (nv,).
    """
    return kinetic_energy_of(Kinematics(tree, q, v))


def kinetic_energy_of(kinematics: Kinematics) -> Any:
    """Kinetic energy [J], as `kinetic_energy`, at a state whose link velocities are known."""
    tree, v = kinematics.tree, kinematics.v
    total = rotor_energy(tree, v) + tendon_kinetic_energy(kinematics, v)
    for link, (u, w) in zip(tree.links, kinematics.velocities, strict=True):
        # 1/2 integral |u + W r|^2 dm = 1/2 (m u.u + tr(W J W^T)) + u.W h,  W = [w]x
        W = skew(w)
        total = total + (link.mass * (u @ u) + np.trace(W @ link.J @ W.T)) / 2 + u @ (W @ link.h)
    return total


def rotor_energy(tree: Tree, x: Any) -> Any:
    """1/2 sum armature_k x_k^2: the part of the rotors in 1/2 x^T M x, for x (nv,)."""
    return sum((link.armature * y * y / 2 for link in tree.links for y in x[link.v]), start=0)


def potential_energy(tree: Tree, q: Any) -> Any:
    """Potential energy of gravity [J], -sum m g.c over all bodies, fixed ones included; zero at the world's
    origin.
    """
    return potential_energy_of(Kinematics(tree, q))


def potential_energy_of(kinematics: Kinematics) -> Any:
    """Potential energy of gravity [J], as `potential_energy`, at a configuration whose poses are known."""
    tree, poses = kinematics.tree, kinematics.poses
    return -sum(
        (body.mass * (tree.gravity @ placement_pose(poses, body.placement).p) for body in tree.rigid_bodies),
        start=0,
    )


def total_mass(tree: Tree) -> Any:
    """Mass of all bodies [kg]."""
    return sum((body.mass for body in tree.rigid_bodies), start=0)


def positive_total_mass(tree: Tree) -> Any:
    """Mass of all bodies [kg]. Raises DescriptionError if it is zero: then they have no centre of mass."""
    total = total_mass(tree)
    raise_if(
        total == 0,
        lambda: DescriptionError(
            "the mechanism has no mass, and so no centre of mass; give at least one of its bodies a mass"
        ),
    )
    return total


def mass_centre(tree: Tree, q: Any) -> np.ndarray:
    """Centre of mass of all bodies in the world (3,) [m], at the configuration q (nq,).

    Raises DescriptionError for a tree without mass.
    """
    total, poses = positive_total_mass(tree), link_poses(tree, q)
    moments = [body.mass * placement_pose(poses, body.placement).p for body in tree.rigid_bodies]
    return sum(moments[1:], start=moments[0]) / total


def momentum_matrix(tree: Tree, q: Any) -> np.ndarray:
    """Centroidal momentum matrix A (6, nv): A v is the linear momentum [kg m/s] and the angular momentum
    about the centre of mass [kg m^2/s], in world axes.

    Raises DescriptionError for a tree without mass.
    Source: Orin, Goswami, Lee, "Centroidal dynamics of a humanoid robot", Autonomous Robots 35 (2013) 161.
    """
    poses, c = link_poses(tree, q), mass_centre(tree, q)
    A = np.zeros((6, tree.nv), int)
    for body in tree.rigid_bodies:
        # A += (m J_v, R I R^T J_w + [p - c]x m J_v)
        J, (R, p) = placement_jacobian(tree, poses, body.placement), placement_pose(poses, body.placement)
        linear = body.mass * J[:3]
        angular = R @ body.inertia @ R.T @ J[3:] + np.stack(
            [cross(p - c, column) for column in linear.T], axis=1
        )
        A = A + np.concatenate([linear, angular])
    return A


def momentum(tree: Tree, q: Any, v: Any) -> np.ndarray:
    """Linear momentum and angular momentum about the centre of mass (6,), in world axes, by recursion over
    the links. Raises DescriptionError for a tree without mass.
    """
    kinematics = Kinematics(tree, q, v)
    parts = []
    for link, (u, w) in zip(tree.links, kinematics.velocities, strict=True):
        # (m u + W h, integral r x (u + W r) dm),  W = [w]x
        W = skew(w)
        parts.append((link.mass * u + W @ link.h, vee(W @ link.J + np.outer(u, link.h))))
    world = (np.zeros(3, int), np.zeros(3, int))
    # From the leaves to the world: momentum is transformed like a wrench and added to the parent's.
    for i, link in reversed(list(enumerate(tree.links))):
        R, p = kinematics.joint_poses[i]
        linear, angular = R @ parts[i][0], R @ parts[i][1]
        base = parts[link.parent] if link.parent != WORLD else world
        total = (base[0] + linear, base[1] + angular + cross(p, linear))
        if link.parent != WORLD:
            parts[link.parent] = total
        else:
            world = total
    return np.concatenate([world[0], world[1] - cross(mass_centre(tree, q), world[0])])


def mass_centre_jacobian(tree: Tree, q: Any) -> np.ndarray:
    """J (3, nv) of the centre of mass: its velocity is J v [m/s], in world axes.

    Raises DescriptionError for a tree without mass.
    """
    return mass_centre_with_jacobian(Kinematics(tree, q))[1]


def mass_centre_with_jacobian(kinematics: Kinematics) -> tuple[np.ndarray, np.ndarray]:
    """Centre of mass (3,) [m] and its Jacobian J (3, nv), by recursion over the links, in world axes.

    A joint moves the links of its subtree, of mass m and first moment h about the world's origin, with the
    momentum m u + w x h, where (u, w) is its motion subspace at the world's origin.
    Raises DescriptionError for a tree without mass.
    """
    tree = kinematics.tree
    total = positive_total_mass(tree)
    fixed = [body for body in tree.rigid_bodies if body.placement.link == WORLD]
    moment = sum((body.mass * body.placement.p for body in fixed), start=np.zeros(3, int))
    subtree = [
        [link.mass, R @ link.h + link.mass * p]
        for link, (R, p) in zip(tree.links, kinematics.poses, strict=True)
    ]
    columns: list[Any] = [np.zeros(3, int)] * tree.nv
    # From the leaves to the world: M J_k = m u + w x h, and m, h are added to the parent's.
    for i, link in reversed(list(enumerate(tree.links))):
        mass, h = subtree[i]
        for k, s in zip(
            range(link.v.start, link.v.stop), kinematics.world_motion_subspaces[i].T, strict=True
        ):
            columns[k] = (mass * s[:3] + cross(s[3:], h)) / total
        if link.parent == WORLD:
            moment = moment + h
        else:
            subtree[link.parent] = [subtree[link.parent][0] + mass, subtree[link.parent][1] + h]
    J = np.stack(columns, axis=1) if columns else np.zeros((3, 0), int)
    return moment / total, J


def kinetic_energy_by_body(tree: Tree, q: Any, v: Any) -> dict[str, Any]:
    """Part of each body in 1/2 v^T M v [J], by name, and that of rotors and tendons as "rotors".

    With the deviation of an acceleration from the free one in place of v, it is the part of each body in Z.
    """
    poses, parts = link_poses(tree, q), {}
    for body in tree.rigid_bodies:
        velocity = placement_jacobian(tree, poses, body.placement) @ v
        R = placement_pose(poses, body.placement).R
        u, w = velocity[:3], R.T @ velocity[3:]
        parts[body.body] = (body.mass * (u @ u) + w @ (body.inertia @ w)) / 2
    parts["rotors"] = rotor_energy(tree, v) + tendon_kinetic_energy(
        Kinematics.at_poses(tree, q, None, poses), v
    )
    return parts


def zwang_by_body(tree: Tree, q: Any, v: Any, tau: Any, a: Any) -> dict[str, Any]:
    """Part of each body in Gauss's measure Z(a) [kg m^2/s^4], and that of generalised forces, rotors and
    tendons as "generalised forces".

    A body's free acceleration is that of gravity and of its own gyroscopic torque. With the deviations d =
    a_c - g and e = wd + I^-1 (w x I w) the part is 1/2 (m d^2 + e^T I e), less the terms that do not depend
    on a. The entry "generalised forces" is sum(1/2 armature a^2 - tau a). The parts add up to
    `zwang_of`. Source: Gauss's principle for a tree of rigid bodies, V(qdd), with J^T w = tau.
    """
    parts: dict[str, Any] = {}
    for body in tree.rigid_bodies:
        vel, acc = placement_motion(tree, q, v, a, body.placement)
        R = placement_pose(link_poses(tree, q), body.placement).R
        d, w, wd = acc[:3] - tree.gravity, R.T @ vel[3:], R.T @ acc[3:]
        I = body.inertia
        n = cross(w, I @ w)
        rotation = wd @ (I @ wd) / 2 + wd @ n  # without the constant 1/2 n^T I^-1 n
        parts[body.body] = body.mass * (d @ d) / 2 + rotation
    forces = -sum((t * x for t, x in zip(tau, a, strict=True)), start=0)
    parts["generalised forces"] = forces + rotor_energy(tree, a) + tendon_zwang(Kinematics(tree, q, v), a)
    return parts


def zwang_of(tree: Tree, q: Any, v: Any, tau: Any, a: Any) -> Any:
    """Gauss's measure Z(a) [kg m^2/s^4] up to a constant: the true acceleration minimises it.

    q (nq,), v (nv,), tau (nv,), a (nv,): configuration, generalised velocities, forces and accelerations.
    """
    return sum(zwang_by_body(tree, q, v, tau, a).values(), start=0)

"""Energies, momentum, and the Zwang itself: sums over the bodies, as Gauss has them."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross, skew
from zwang.dynamics.rnea import vee
from zwang.kinematics.jacobians import frame_motion, placement_jacobian
from zwang.kinematics.poses import link_pose, link_poses, placement_pose
from zwang.kinematics.velocities import link_velocities
from zwang.mechanism.tree import WORLD, Placement, Tree


class Energy(NamedTuple):
    """Kinetic energy of the motion and potential energy of the height (zero at the world's origin) and of springs [J]."""

    kinetic: Any
    potential: Any


def kinetic_energy(tree: Tree, q: Any, v: Any) -> Any:
    """The energy of motion [J]: 1/2 the integral of |velocity|^2 over the mass, and of rotors 1/2 armature v^2.

    A link's points move with u + W r, W = [w]x, so its part is 1/2 (m u.u + 2 u.W h + tr(W J W^T)).
    """
    total = sum((link.armature * x * x / 2 for link in tree.links for x in v[link.v]), start=0)
    for link, (u, w) in zip(tree.links, link_velocities(tree, q, v), strict=True):
        W = skew(w)
        total = total + (link.mass * (u @ u) + np.trace(W @ link.J @ W.T)) / 2 + u @ (W @ link.h)
    return total


def potential_energy(tree: Tree, q: Any) -> Any:
    """-sum m g . c [J], over all bodies, also those fixed to the world; zero at the world's origin."""
    poses = link_poses(tree, q)
    return -sum((s.mass * (tree.gravity @ placement_pose(poses, s.place).p) for s in tree.rigid_bodies), start=0)


def total_mass(tree: Tree) -> Any:
    """The mass of all bodies [kg]."""
    return sum((solid.mass for solid in tree.rigid_bodies), start=0)


def mass_centre(tree: Tree, q: Any) -> np.ndarray:
    """The centre of mass of all bodies in the world (3,) [m]. Raises ZeroDivisionError without mass, and without bodies."""
    if not tree.rigid_bodies:
        raise ZeroDivisionError("without a body there is no centre of mass")
    poses = link_poses(tree, q)
    moments = [solid.mass * placement_pose(poses, solid.place).p for solid in tree.rigid_bodies]
    return sum(moments[1:], start=moments[0]) / total_mass(tree)


def momentum_matrix(tree: Tree, q: Any) -> np.ndarray:
    """A (6, nv): linear momentum [kg m/s] and angular momentum about the mass centre [kg m^2/s], world axes, are A v.

    Source: Orin, Goswami, Lee, Autonomous Robots 35 (2013) 161, the centroidal momentum matrix.
    """
    poses, c = link_poses(tree, q), mass_centre(tree, q)
    A = np.zeros((6, tree.nv), int)
    for solid in tree.rigid_bodies:
        J, (R, p) = placement_jacobian(tree, poses, solid.place), placement_pose(poses, solid.place)
        linear = solid.mass * J[:3]
        angular = R @ solid.inertia @ R.T @ J[3:] + np.stack(
            [cross(p - c, column) for column in linear.T], axis=1
        )
        A = A + np.concatenate([linear, angular])
    return A


def momentum(tree: Tree, q: Any, v: Any) -> np.ndarray:
    """Linear momentum and angular momentum about the mass centre (6,), in world axes.

    Each link's, m u + W h and the integral of r x (u + W r), is added to its parent's, as a wrench would be.
    """
    parts = []
    for link, (u, w) in zip(tree.links, link_velocities(tree, q, v), strict=True):
        W = skew(w)
        parts.append((link.mass * u + W @ link.h, vee(W @ link.J + np.outer(u, link.h))))
    world = (np.zeros(3, int), np.zeros(3, int))
    for i, link in reversed(list(enumerate(tree.links))):
        R, p = link_pose(link, q)
        linear, angular = R @ parts[i][0], R @ parts[i][1]
        base = parts[link.parent] if link.parent != WORLD else world
        moved = (base[0] + linear, base[1] + angular + cross(p, linear))
        if link.parent != WORLD:
            parts[link.parent] = moved
        else:
            world = moved
    return np.concatenate([world[0], world[1] - cross(mass_centre(tree, q), world[0])])


def mass_centre_jacobian(tree: Tree, q: Any) -> np.ndarray:
    """J (3, nv): the velocity of the mass centre is J v [m/s]."""
    return momentum_matrix(tree, q)[:3] / total_mass(tree)


def kinetic_energy_by_body(tree: Tree, q: Any, v: Any) -> dict[str, Any]:
    """Each body's part of 1/2 v^T M v, by name, and that of the rotors as "rotors"; with deviations for v, of the Zwang."""
    poses, parts = link_poses(tree, q), {}
    for solid in tree.rigid_bodies:
        motion, R = placement_jacobian(tree, poses, solid.place) @ v, placement_pose(poses, solid.place).R
        u, w = motion[:3], R.T @ motion[3:]
        parts[solid.body] = (solid.mass * (u @ u) + w @ (solid.inertia @ w)) / 2
    parts["rotors"] = sum((link.armature * x * x / 2 for link in tree.links for x in v[link.v]), start=0)
    return parts


def zwang_by_body(tree: Tree, q: Any, v: Any, tau: Any, a: Any) -> dict[str, Any]:
    """Each body's part of Z(a) [kg m^2/s^4], and of the efforts' in the entry "efforts"; their sum is `zwang_of`.

    A body's free acceleration is gravity's and its own gyroscopic one: with deviations d = a_c - g and
    e = wd + I^-1 (w x I w) the part is 1/2 (m d^2 + e^T I e). A speed's rotor and effort add 1/2 armature a^2 - tau a. Source: seed
    000, V(qdd), with J^T w the efforts.
    """
    parts: dict[str, Any] = {}
    for solid in tree.rigid_bodies:
        vel, acc = frame_motion(_with_place(tree, solid.place), q, v, a, "solid")
        R = placement_pose(link_poses(tree, q), solid.place).R
        d, w, wd = acc[:3] - tree.gravity, R.T @ vel[3:], R.T @ acc[3:]
        I = solid.inertia
        n = cross(w, I @ w)
        turning = wd @ (I @ wd) / 2 + wd @ n  # less the constant 1/2 n I^-1 n, which no acceleration changes
        parts[solid.body] = solid.mass * (d @ d) / 2 + turning
    efforts = -sum((t * x for t, x in zip(tau, a, strict=True)), start=0)
    rotors = sum((link.armature * x * x / 2 for link in tree.links for x in a[link.v]), start=0)
    parts["efforts"] = efforts + rotors
    return parts


def zwang_of(tree: Tree, q: Any, v: Any, tau: Any, a: Any) -> Any:
    """Z(a) [kg m^2/s^4], less what no acceleration changes: the quantity that the true motion makes least."""
    return sum(zwang_by_body(tree, q, v, tau, a).values(), start=0)


def _with_place(tree: Tree, place: Placement) -> Tree:
    return Tree(tree.links, {"solid": place}, tree.rigid_bodies, tree.gravity, tree.nq, tree.nv)

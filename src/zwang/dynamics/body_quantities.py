"""Quantities of every body as MuJoCo's mjData has them: centres of mass, cinert, cvel, and wrenches.

They are arrays with one row for each body, the world first. Spatial vectors are angular before linear, in
world axes, and about the centre of mass of the kinematic tree to which the body belongs. Source: MuJoCo
documentation, "mjData".
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.algebra.rotations import cross
from zwang.dynamics.sensed_motion import subtree_bodies
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Placement


def body_names(mechanism: Mechanism) -> tuple[str, ...]:
    """The names of the rows: the world, then the bodies in their order."""
    return ("world", *(body.name for body in mechanism.bodies))


def root_of_body(mechanism: Mechanism) -> dict[str, str]:
    """For each body its ancestor whose parent is the world, and the world for itself."""
    roots = {"world": "world"}
    for body in mechanism.bodies:
        roots[body.name] = body.name if body.parent == "world" else roots[body.parent]
    return roots


def centre_placements(mechanism: Mechanism) -> dict[str, Placement]:
    """The frame of each body with its origin at the centre of mass; that of the world is its own frame."""
    found = {"world": mechanism.tree.placement("world")}
    for body in mechanism.bodies:
        base = mechanism.tree.placement(body.name)
        found[body.name] = Placement(base.link, base.R, base.p + base.R @ np.array(body.com))
    return found


def mass_centres(mechanism: Mechanism, kinematics: Kinematics) -> np.ndarray:
    """Centre of mass of each body (bodies + 1, 3) [m], in world axes; MuJoCo's xipos."""
    places = centre_placements(mechanism)
    return np.array([kinematics.placement_pose(places[name]).p for name in body_names(mechanism)])


def subtree_centres(mechanism: Mechanism, kinematics: Kinematics) -> np.ndarray:
    """Centre of mass of each body's subtree (bodies + 1, 3) [m]; MuJoCo's subtree_com."""
    own = mass_centres(mechanism, kinematics)
    masses: dict[str, Any] = {"world": 0, **{body.name: body.mass for body in mechanism.bodies}}
    rows = {name: k for k, name in enumerate(body_names(mechanism))}
    found = []
    for name, centre in zip(body_names(mechanism), own, strict=True):
        heavy = [
            other
            for other in rows
            if other in subtree_bodies(mechanism, name) and not _is_massless(masses[other])
        ]
        total: Any = sum((masses[other] for other in heavy), start=0)
        moment = sum((masses[other] * own[rows[other]] for other in heavy), start=np.zeros(3, int))
        found.append(moment / total if heavy else centre)
    return np.array(found)


def _is_massless(mass: Any) -> bool:
    return isinstance(mass, int | float) and mass == 0


def body_inertias(mechanism: Mechanism, kinematics: Kinematics) -> np.ndarray:
    """Inertia of each body about the centre of mass of its kinematic tree (bodies + 1, 10); MuJoCo's cinert.

    A row is (xx, yy, zz, xy, xz, yz) [kg m^2], mass times offset (3) [kg m], mass [kg], in world axes.
    """
    centres, roots = subtree_centres(mechanism, kinematics), root_of_body(mechanism)
    rows = {name: k for k, name in enumerate(body_names(mechanism))}
    own, places = mass_centres(mechanism, kinematics), centre_placements(mechanism)
    found = [np.zeros(10, int)]
    for k, body in enumerate(mechanism.bodies, start=1):
        d = own[k] - centres[rows[roots[body.name]]]
        R = kinematics.placement_pose(places[body.name]).R
        # I = R I_c R^T + m (d.d 1 - d d^T)
        I = R @ np.array(body.inertia) @ R.T
        I = I + body.mass * ((d @ d) * np.eye(3, dtype=int) - np.outer(d, d))
        entries = (I[0, 0], I[1, 1], I[2, 2], I[0, 1], I[0, 2], I[1, 2])
        found.append(np.array([*entries, *(body.mass * d), body.mass]))
    return np.array(found)


def body_velocities(mechanism: Mechanism, kinematics: Kinematics) -> np.ndarray:
    """Velocity of each body (bodies + 1, 6): angular [rad/s], and linear [m/s] of its point at the centre of
    mass of its kinematic tree; MuJoCo's cvel.
    """
    centres, roots = subtree_centres(mechanism, kinematics), root_of_body(mechanism)
    rows = {name: k for k, name in enumerate(body_names(mechanism))}
    found = [np.zeros(6, int)]
    for body in mechanism.bodies:
        placement = mechanism.tree.placement(body.name)
        velocity, p = kinematics.placement_velocity(placement), kinematics.placement_pose(placement).p
        c = centres[rows[roots[body.name]]]
        found.append(np.concatenate([velocity[3:], velocity[:3] + cross(velocity[3:], c - p)]))
    return np.array(found)


def body_wrenches(
    mechanism: Mechanism, kinematics: Kinematics, wrenches: Mapping[str, np.ndarray]
) -> np.ndarray:
    """Wrench of each body (bodies + 1, 6): torque [N m] about the centre of mass of its kinematic tree, and
    force [N]; as MuJoCo's cfrc_ext.

    wrenches: force, and moment about the world's origin (6,), by body; 0 for others.
    """
    centres, roots = subtree_centres(mechanism, kinematics), root_of_body(mechanism)
    names = body_names(mechanism)
    rows = {name: k for k, name in enumerate(names)}
    found = []
    for name in names:
        wrench = wrenches.get(name, np.zeros(6, int))
        c = centres[rows[roots[name]]]
        found.append(np.concatenate([wrench[3:] - cross(c, wrench[:3]), wrench[:3]]))
    return np.array(found)

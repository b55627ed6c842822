"""Derivative of the bias forces with respect to the generalised velocities, d h(q, v) / d v, for implicit
integrators.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from zwang.algebra.rotations import skew
from zwang.dynamics.rnea_derivatives import RneaDerivatives
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Link


class FreeBody(NamedTuple):
    """A body on a free joint: the link that carries it, with its number, and the six generalised velocities
    of its joint.
    """

    name: str
    link: Link
    number: int
    v: slice


def bias_force_derivative(kinematics: Kinematics) -> np.ndarray:
    """d h / d v (nv, nv) of the Coriolis, centrifugal and gyroscopic terms of the bodies. As in MuJoCo, the
    term of tendons with armature is left out.
    """
    derivatives = RneaDerivatives(kinematics, np.zeros(kinematics.tree.nv, int))
    return derivatives.dense(derivatives.by_velocity())


def standalone_free_bodies(mechanism: Mechanism) -> tuple[FreeBody, ...]:
    """The bodies on a free joint in the world that have no descendants on joints, as MuJoCo's `mj_isFreeBody`
    finds them.
    """
    tree, found = mechanism.tree, []
    parents = {link.parent for link in tree.links}
    for joint in mechanism.joints:
        if joint.kind != "free":
            continue
        number = tree.placement(joint.body).link
        first = next(link for link in tree.links if link.v.start == joint.v.start)
        if first.parent == WORLD and number not in parents:
            found.append(FreeBody(joint.body, tree.links[number], number, joint.v))
    return tuple(found)


def free_body_bias_force_derivative(body: FreeBody, kinematics: Kinematics) -> np.ndarray:
    """d h / d v (6, 6) of a free body, in closed form.

    h = (R (w x (w x h1)), w x (I w)) with the attitude R, the first moment h1 = m c and the inertia I about
    the origin.
    """
    w, h, J = kinematics.v[body.v][3:], body.link.h, body.link.J
    R = kinematics.poses[body.number].R
    inertia = (J[0, 0] + J[1, 1] + J[2, 2]) * np.eye(3, dtype=int) - J
    B = np.zeros((6, 6), int).astype(object)
    # d (w x (w x h1)) / dw = -([w x h1]x + [w]x [h1]x),  d (w x I w) / dw = [w]x I - [I w]x
    B[:3, 3:] = -(R @ (skew(np.cross(w, h)) + skew(w) @ skew(h)))
    B[3:, 3:] = skew(w) @ inertia - skew(inertia @ w)
    return B

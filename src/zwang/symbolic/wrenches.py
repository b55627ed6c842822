"""Gamma of the projection method: the applied forces and torques on every body, in pairs of action and reaction."""

from __future__ import annotations

from typing import Any

import numpy as np

from zwang.kinematics.poses import motion_subspace
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import is_zero
from zwang.symbolic.derive import Motion, summed_poses, weights


def applied_wrenches(tree: Tree, motion: Motion, q: Any, efforts: Any) -> tuple[np.ndarray, np.ndarray]:
    """Gamma (6 N,) of weights and joint efforts, and the efforts (nv,) that are not in it.

    An effort on a link that carries a body acts on that body and, reversed, on the body of the link before it: along the same line,
    through the link's origin. Efforts on links without bodies stay efforts. Forces in world axes, torques about
    mass centres in body axes.
    """
    Gamma, rest = weights(tree), np.array(efforts, dtype=object).copy()
    poses, _ = summed_poses(tree, q)
    carried = _bodies_of_links(tree)
    for i, link in enumerate(tree.links):
        before = carried.get(link.parent)
        if i not in carried or link.move.kind == "screw" or (link.parent != WORLD and before is None):
            continue
        R, origin = poses[i]
        for k, s in zip(range(link.v.start, link.v.stop), motion_subspace(link).T, strict=True):
            if is_zero(rest[k]):
                continue
            force, torque = R @ s[:3] * rest[k], R @ s[3:] * rest[k]
            for body, sign in ((carried[i], 1), (before, -1)):
                if body is not None:
                    _add(Gamma, motion, body, sign * force, sign * torque, origin)
            rest[k] = 0
    return Gamma, rest


def _bodies_of_links(tree: Tree) -> dict[int, int]:
    """The first solid on each link."""
    found: dict[int, int] = {}
    for k, solid in enumerate(tree.solids):
        found.setdefault(solid.place.link, k)
    return found


def _add(Gamma: np.ndarray, motion: Motion, body: int, force: Any, torque: Any, point: Any) -> None:
    R, x = motion.poses[body]
    Gamma[6 * body : 6 * body + 3] = Gamma[6 * body : 6 * body + 3] + force
    moment = R.T @ (torque + np.cross(point - x, force))
    Gamma[6 * body + 3 : 6 * body + 6] = Gamma[6 * body + 3 : 6 * body + 6] + moment

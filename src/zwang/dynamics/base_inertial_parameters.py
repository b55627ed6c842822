"""Base inertial parameters: a tree with the same dynamics and the fewest nonzero inertial parameters.

Mass on the axis of a revolute joint does not move when the joint does. So the link's mass, its first moment
along the axis and its second moment along the axis can be assigned to the parent: M(q) and h(q, v) stay the
same for all q and v. The same holds for the second moment of a link on a prismatic joint, for the mass alone
of a link on a ball joint, and for nothing of a link on a screw joint. The remaining link has no mass and many
zeros, which fold away when the algorithms are traced. Source: Gautier, Khalil, "Direct calculation of minimum
set of inertial parameters of serial robots", IEEE Transactions on Robotics and Automation 6 (1990) 368.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from zwang.dynamics.crba import transform_inertia
from zwang.mechanism.tree import WORLD, Link, Tree


def with_base_parameters(tree: Tree) -> Tree:
    """A tree with the same mass matrix and bias forces, with its links reduced to base inertial parameters.

    The rigid bodies of the tree, from which energies and the scalar measure Z are computed, stay unchanged.
    """
    links = list(tree.links)
    # From the leaves to the world: subtract from link i what its parent can carry, and add it there.
    for i in reversed(range(len(links))):
        link = links[i]
        transferable = _transferable_moments(link)
        if transferable is None:
            continue
        m, h, J = transferable
        links[i] = replace(link, mass=link.mass - m, h=link.h - h, J=link.J - J)
        if link.parent != WORLD:
            base = links[link.parent]
            m, h, J = transform_inertia(m, h, J, link.R, link.p)
            links[link.parent] = replace(base, mass=base.mass + m, h=base.h + h, J=base.J + J)
    return replace(tree, links=tuple(links))


def _transferable_moments(link: Link) -> tuple[Any, np.ndarray, np.ndarray] | None:
    """Mass, first and second moments that the parent can carry instead, in the link's axes; None where there
    are none.
    """
    zero, nothing = np.zeros(3, int), np.zeros((3, 3), int)
    if link.joint.kind == "prismatic":
        return 0, zero, link.J
    if link.joint.kind == "ball":
        return link.mass, zero, nothing
    if link.joint.kind == "screw":
        return None
    a = np.array(link.joint.axis)
    return link.mass, (link.h @ a) * a, (a @ link.J @ a) * np.outer(a, a)

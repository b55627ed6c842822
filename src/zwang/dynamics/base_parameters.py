"""Equal dynamics with fewer numbers: what a joint cannot tell from its parent's mass is given to the parent.

Mass on a turning joint's axis stays where it is whatever the angle. So as much of it as gives the link's whole mass, its first
moment along the axis and its second moment along the axis can be counted with the parent, and H(q) and h(q, v) stay
what they are, for every q and v. The same holds for the second moments of a sliding link, and for
nothing of a screw's or a ball's but the ball's mass. What is left has no mass and many zeros, which fold away when the algorithms are traced.
Source: Gautier, Khalil, IEEE Trans. Robotics and Automation 6 (1990) 368, the base inertial parameters.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from zwang.dynamics.crba import transform_inertia
from zwang.mechanism.tree import WORLD, Link, Tree


def with_base_parameters(tree: Tree) -> Tree:
    """A tree with the same mass matrix and bias forces, and with the fewest inertial numbers.

    The solids (energies, the Zwang by body) are those of the tree given.
    """
    links = list(tree.links)
    for i in reversed(range(len(links))):
        link = links[i]
        shared = _shared(link)
        if shared is None:
            continue
        m, h, J = shared
        links[i] = replace(link, mass=link.mass - m, h=link.h - h, J=link.J - J)
        if link.parent != WORLD:
            base = links[link.parent]
            m, h, J = transform_inertia(m, h, J, link.R, link.p)
            links[link.parent] = replace(base, mass=base.mass + m, h=base.h + h, J=base.J + J)
    return replace(tree, links=tuple(links))


def _shared(link: Link) -> tuple[Any, np.ndarray, np.ndarray] | None:
    """Mass, first and second moments that the parent may carry as well, in the link's axes; None where there are none."""
    zero, nothing = np.zeros(3, int), np.zeros((3, 3), int)
    if link.move.kind == "slide":
        return 0, zero, link.J
    if link.move.kind == "ball":
        return link.mass, zero, nothing
    if link.move.kind == "screw":
        return None
    a = np.array(link.move.axis)
    return link.mass, (link.h @ a) * a, (a @ link.J @ a) * np.outer(a, a)

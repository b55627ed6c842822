"""Physical consistency of the inertia of bodies that are rigidly attached to each other."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np

from zwang.algebra.inertia import LEAST_MOMENT, TRIANGLE_TOLERANCE
from zwang.mechanism.bodies import Body
from zwang.mechanism.tree import Link, build_tree
from zwang.scalar import are_constant, maximum
from zwang.scalar.primitives import symmetric_eigenvalues


def bodies_of_impossible_parts(bodies: Iterable[Body]) -> frozenset[str]:
    """The names of the bodies on links with a negative mass or a negative principal moment of inertia.

    A link consists of a moving body and the bodies that are fixed to it. Links with symbolic inertia are not
    checked.
    """
    tree = build_tree(bodies)
    impossible = {i for i, link in enumerate(tree.links) if _has_negative_inertia(link)}
    return frozenset(name for name, placement in tree.placements.items() if placement.link in impossible)


def _has_negative_inertia(link: Link) -> bool:
    """Whether the mass or a principal moment of inertia about the centre of mass is negative."""
    if not are_constant(link.mass, *np.ravel(link.h), *np.ravel(link.J)):
        return False
    mass, h, J = link.mass, np.asarray(link.h), np.asarray(link.J)
    about = J - np.outer(h, h) / mass if mass > 0 else J
    if mass < 0 or not all(abs(x) < math.inf for x in about.flat):
        return True
    moments = symmetric_eigenvalues(np.trace(about) * np.eye(3) - about)
    largest = maximum(abs(moments[0]), abs(moments[2]))
    return bool(moments[0] < -TRIANGLE_TOLERANCE * largest - LEAST_MOMENT)

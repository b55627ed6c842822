"""The length and the rate of a mechanism, as units in which its motions and its parameters have the size 1.

In these units numbers that are large or small say something about the mechanism, and not about the units in
which it is described.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Link
from zwang.scalar import are_constant

POWERS_OF_LENGTH = {"mass": 0, "first moment": 1, "inertia": 2}
"""The power of the length in the unit of each kind of inertial parameter."""


class NaturalUnits(NamedTuple):
    """Units of a mechanism.

    length [m]: the largest offset of a joint from its parent's, of a centre of mass or of a radius of
    gyration from a joint; 1 m for none. rate [rad/s]: sqrt(g / length), at which gravity and inertia forces
    have one size, or 1 rad/s without gravity. displacements (nv,): 1 rad or the length, of each velocity.
    """

    length: float
    rate: float
    displacements: np.ndarray


def natural_units(m: Mechanism) -> NaturalUnits:
    """The units of a mechanism; numbers that are symbols count as 1."""
    lengths = [x for link in m.tree.links for x in _lengths(link)]
    length = max(lengths, default=0.0) or 1.0
    slides = [link.joint.kind == "prismatic" for link in m.tree.links for _ in range(link.joint.nv)]
    rate = np.sqrt(_size(m.tree.gravity) / length) or 1.0
    return NaturalUnits(length, float(rate), np.where(slides, length, 1.0))


def _lengths(link: Link) -> list[float]:
    """The offset of the joint, its pitch, and the distance and radius of gyration of the mass."""
    mass = _size([link.mass]) or np.inf
    offset = 0.0 if link.parent == WORLD else _size(link.p)
    radius = float(np.sqrt(_size(np.diag(link.J)) / mass))
    return [offset, _size([link.joint.pitch]), _size(link.h) / mass, radius]


def _size(values: Any) -> float:
    """The largest absolute value; symbols count as 1."""
    return max(abs(float(x)) if are_constant(x) else 1.0 for x in values)

"""The size of a mechanism, by which thresholds of lengths are chosen, and which of its velocities are lengths
a second; on any scalar.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import Any

from zwang.mechanism.constraints import Connect, Distance, NoSideSlip, Rolling, Weld
from zwang.mechanism.force_elements import PointSpring
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.scalar import absolute, is_zero, maximum, minimum

LARGE = 1e-4  # of a size: a tolerance of 1e-11 times this is above the rounding errors of a position
SMALLEST_LENGTH = 1e-9  # [m] in tolerances, of a mechanism whose description has no lengths


def largest_length(mechanism: Mechanism, default: float = 1.0) -> Any:
    """The largest length [m] in the description of a mechanism: of the positions of bodies, joints, centres
    of mass and frames, of the points of loops and springs, and of the translations in the home configuration;
    the default where there is none.
    """
    lengths = [absolute(x) for x in _lengths(mechanism) if not is_zero(x)]
    return reduce(maximum, lengths, SMALLEST_LENGTH) if lengths else default


def displacement_sizes(mechanism: Mechanism, q: Any, default: float = 1.0) -> list[Any]:
    """The size (nv,) of a large displacement along each generalised velocity: 1 rad of a rotation; of a
    translation the largest length of the mechanism, or its coordinate in q (nq,) where this is larger.
    """
    largest = largest_length(mechanism, default)
    sizes: list[Any] = [1] * mechanism.nv
    for k, i in translations(mechanism.tree).items():
        sizes[k] = maximum(largest, absolute(q[i]))
    return sizes


def displacement_tolerances(mechanism: Mechanism, q: Any) -> list[Any]:
    """The factors (nv,) of tolerances of displacements."""
    return tolerance_factors(displacement_sizes(mechanism, q, SMALLEST_LENGTH))


def tolerance_factors(sizes: Iterable[Any]) -> list[Any]:
    """The factors of tolerances for violations or displacements of these sizes: a size above 1 rad or m
    counts as that, so that large mechanisms are as accurate as those of ordinary size, up to their rounding
    errors.
    """
    return [maximum(minimum(1, size), LARGE * size) for size in sizes]


def translations(tree: Tree) -> dict[int, int]:
    """The generalised velocities that are lengths a second, with the coordinate of each."""
    return {link.v.start: link.q.start for link in tree.links if link.joint.kind == "prismatic"}


def _lengths(mechanism: Mechanism) -> Iterator[Any]:
    """The lengths in the description, which may be negative."""
    for body in mechanism.bodies:
        yield from (*body.position, *body.com, *(x for joint in body.joints for x in joint.position))
    for frame in mechanism.frames:
        yield from frame.position
    for part in (*mechanism.constraints, *mechanism.forces):
        match part:
            case Connect():
                yield from (*part.a[1], *part.b[1])
            case Weld():
                yield from (*part.position, *part.anchor)
            case Distance() | PointSpring():
                yield from (*part.a[1], *part.b[1], part.length)
            case NoSideSlip():
                yield from part.point
            case Rolling():
                yield from (part.radius, *part.centre, *part.plane_point)
    if mechanism.home is not None:
        yield from (mechanism.home[i] for i in translations(mechanism.tree).values())

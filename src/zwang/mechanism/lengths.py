"""The size of a mechanism, by which thresholds of lengths are chosen, and which of its velocities are lengths
a second; on any scalar.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import reduce
from typing import Any

from zwang.algebra.norms import by_precision
from zwang.mechanism.constraints import Connect, Distance, NoSideSlip, Rolling, Weld
from zwang.mechanism.force_elements import PointSpring
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.scalar import absolute, is_zero, maximum, minimum

SMALLEST_LENGTH = 1e-9  # [m] in place of 0
ROUNDING = 1e-4, 1.0  # of positions: 1e-11 times this is above their errors, in single precision 1e-5 times


def largest_length(mechanism: Mechanism) -> Any:
    """The largest length [m] in the description of the moving parts of a mechanism: of the positions of their
    bodies, joints, centres of mass and frames, and of the points of loops and springs on them. It does not
    depend on the origin. Of a mechanism without such lengths it is its distance from the origin, or else 1 m.
    """
    lengths = [x for x in _lengths(mechanism) if not is_zero(x)]
    return reduce(maximum, map(absolute, lengths), SMALLEST_LENGTH) if lengths else _distance(mechanism, 1.0)


def displacement_sizes(mechanism: Mechanism) -> list[Any]:
    """The size (nv,) of a large displacement along each generalised velocity: 1 rad of a rotation, and the
    largest length of the mechanism of a translation.
    """
    largest, slides = largest_length(mechanism), translations(mechanism.tree)
    return [largest if k in slides else 1 for k in range(mechanism.nv)]


def displacement_tolerances(mechanism: Mechanism, q: Any) -> list[Any]:
    """The factors (nv,) of tolerances of displacements from q (nq,); see `tolerance_factor`."""
    slides, farthest = translations(mechanism.tree), farthest_position(mechanism, q)
    return [
        tolerance_factor(size, farthest if k in slides else 0)
        for k, size in enumerate(displacement_sizes(mechanism))
    ]


def tolerance_factor(size: Any, position: Any) -> Any:
    """The factor of tolerances for violations or displacements of this size, at coordinates that add up to
    `position` in the same unit.

    A size above 1 rad or m counts as that, so that large mechanisms are as accurate as those of ordinary
    size, up to their rounding errors.
    """
    largest = maximum(size, position)
    return maximum(minimum(1, size), by_precision(largest, *ROUNDING) * largest)


def translations(tree: Tree) -> dict[int, int]:
    """The generalised velocities that are lengths a second, with the coordinate of each."""
    return {link.v.start: link.q.start for link in tree.links if link.joint.kind == "prismatic"}


def farthest_position(mechanism: Mechanism, q: Any) -> Any:
    """The largest coordinate [m] of a slide in q (nq,), or of what is fixed to the world."""
    slides = [absolute(q[i]) for i in translations(mechanism.tree).values()]
    return reduce(maximum, slides, _distance(mechanism, 0.0))


def _distance(mechanism: Mechanism, default: float) -> Any:
    """The largest length [m] in the description of what is fixed to the world, the default without any."""
    lengths = [x for x in _world_lengths(mechanism) if not is_zero(x)]
    return reduce(maximum, map(absolute, lengths), SMALLEST_LENGTH) if lengths else default


def _lengths(mechanism: Mechanism) -> Iterator[Any]:
    """The lengths in the description of moving parts, which may be negative."""
    for body in mechanism.bodies:
        yield from (*body.com, *(x for joint in body.joints for x in joint.position))
    yield from (x for part, p in _points(mechanism) if part != "world" for x in p)
    for part in (*mechanism.constraints, *mechanism.forces):
        match part:
            case Distance() | PointSpring():
                yield part.length
            case Rolling():
                yield part.radius


def _world_lengths(mechanism: Mechanism) -> Iterator[Any]:
    """The coordinates of points of the world in the description, and of slides in the home configuration."""
    yield from (x for part, p in _points(mechanism) if part == "world" for x in p)
    if mechanism.home is not None:
        yield from (mechanism.home[i] for i in translations(mechanism.tree).values())


def _points(mechanism: Mechanism) -> Iterator[tuple[str, Any]]:
    """The points (3,) in the description, each with the body in whose frame it is."""
    yield from ((body.parent, body.position) for body in mechanism.bodies)
    yield from ((frame.body, frame.position) for frame in mechanism.frames)
    for part in (*mechanism.constraints, *mechanism.forces):
        match part:
            case Connect() | Distance() | PointSpring():
                yield from (part.a, part.b)
            case Weld():
                yield from ((part.a, part.position), (part.b, part.anchor))
            case NoSideSlip():
                yield part.body, part.point
            case Rolling():
                yield from ((part.body, part.centre), (part.on, part.plane_point))

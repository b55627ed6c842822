"""The paths of spatial tendons, resolved to the links of a tree.

The length of a tendon changes by the motion of the ends of its strands. A strand is straight: from one frame
of the path to the next, or from a frame to the body around which the tendon wraps, and from there on.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from zwang.mechanism.tendon_elements import Tendon, Wrap
from zwang.mechanism.tree import WORLD, Placement, Tree
from zwang.scalar import are_constant


class WrappingBody(NamedTuple):
    """The body around which a segment may wrap.

    frame: the name of its frame. side: of the frame on whose side the tendon passes it, if any. inside:
    whether that frame is within the radius; None if the mechanism does not tell.
    """

    frame: str
    kind: Literal["sphere", "cylinder"]
    radius: Any
    side: str | None
    inside: bool | None


class PathSegment(NamedTuple):
    """A segment of a tendon's path: the frames at its ends, the body around which it may wrap, and the
    divisor of its branch.
    """

    first: str
    last: str
    around: WrappingBody | None
    divisor: Any

    @property
    def strands(self) -> tuple[tuple[str, str], ...]:
        """The frames at the ends of each strand."""
        if self.around is None:
            return ((self.first, self.last),)
        return (self.first, self.around.frame), (self.around.frame, self.last)

    def links(self, tree: Tree) -> set[int]:
        """The links of all its frames."""
        around = () if self.around is None else (self.around.frame, self.around.side)
        return {tree.placement(f).link for f in (self.first, self.last, *around) if f is not None}


def path_segments(tree: Tree, tendon: Tendon) -> tuple[PathSegment, ...]:
    """The segments of a spatial tendon; none of a fixed one."""
    wraps = {wrap.at: wrap for wrap in tendon.wraps}
    divisors = iter(tendon.divisors or (1,))
    divisor = next(divisors) if tendon.path and tendon.path[0] is not None else 1
    found: list[PathSegment] = []
    last: str | None = None
    around: WrappingBody | None = None
    for k, name in enumerate(tendon.path):
        if name is None:  # a pulley: the next branch begins
            last, divisor = None, next(divisors)
            continue
        if k in wraps:
            around = _wrapping_body(tree, wraps[k], name)
            continue
        if last is not None:
            found.append(PathSegment(last, name, around, divisor))
        last, around = name, None
    return tuple(found)


def _wrapping_body(tree: Tree, wrap: Wrap, frame: str) -> WrappingBody:
    return WrappingBody(frame, wrap.kind, wrap.radius, wrap.side, side_is_inside(tree, wrap, frame))


def side_is_inside(tree: Tree, wrap: Wrap, frame: str) -> bool | None:
    """Whether the side frame is within the radius of a wrapping body; None if the mechanism does not tell.

    frame: of the wrapping body.
    """
    if wrap.side is None:
        return False
    d = _constant_offset(tree, tree.placement(frame), tree.placement(wrap.side))
    if d is None or not are_constant(wrap.radius):
        return None
    return bool(d @ d < wrap.radius * wrap.radius)


def _constant_offset(tree: Tree, a: Placement, b: Placement) -> np.ndarray | None:
    """The offset (3,) between two origins in one configuration, if their distance is that in all of them:
    both are on one link, or one of them is on the axis of the joint between their links. None if it varies,
    or depends on symbols.
    """
    if a.link == b.link:
        d = b.p - a.p
        return d if are_constant(*d) else None
    for outer, inner in ((a, b), (b, a)):
        if outer.link == WORLD or tree.links[outer.link].parent != inner.link:
            continue
        link = tree.links[outer.link]
        kind, axis, pitch, *_ = link.joint
        c = link.R.T @ (inner.p - link.p)  # the inner point in the axes of the outer link
        if not are_constant(*outer.p, *c, *axis, pitch) or kind == "prismatic" or pitch != 0:
            return None
        off_axis = [p if kind == "ball" else np.cross(axis, p) for p in (outer.p, c)]
        return c - outer.p if any(not np.any(x) for x in off_axis) else None
    return None


class MomentTerm(NamedTuple):
    """What a strand adds to a moment arm: the number of the moment arm and of the strand, the link whose
    joint has the velocity, the column of its motion subspace, and the sign.
    """

    moment: int
    strand: int
    link: int
    column: int
    sign: int


@dataclass(frozen=True, eq=False)
class TendonPaths:
    """All spatial tendons of a mechanism.

    segments: of all tendons, each with the number of its tendon and of its first strand, without those whose
    frames are on one link. rigid: those, with the numbers of their tendons. moments: of each tendon, by the
    index of the generalised velocity, the number of the moment arm; a joint that moves both ends of every
    strand, or none, has no moment arm. terms: of the sums that are the moment arms.
    """

    names: tuple[str, ...]
    segments: tuple[tuple[int, int, PathSegment], ...]
    rigid: tuple[tuple[int, PathSegment], ...]
    moments: tuple[dict[int, int], ...]
    terms: tuple[MomentTerm, ...]

    @property
    def strand_count(self) -> int:
        """Number of strands."""
        return sum(len(segment.strands) for *_, segment in self.segments)

    @property
    def moment_count(self) -> int:
        """Number of moment arms that are not zero."""
        return sum(map(len, self.moments))


def tendon_paths(tree: Tree, tendons: Sequence[Tendon]) -> TendonPaths:
    """The paths of the spatial tendons."""
    spatial = [tendon for tendon in tendons if tendon.path]
    segments: list[tuple[int, int, PathSegment]] = []
    rigid: list[tuple[int, PathSegment]] = []
    moments: list[dict[int, int]] = []
    terms: list[MomentTerm] = []
    strand = arm = 0
    for t, tendon in enumerate(spatial):
        own: dict[int, int] = {}
        for segment in path_segments(tree, tendon):
            if len(segment.links(tree)) == 1:
                rigid.append((t, segment))
                continue
            segments.append((t, strand, segment))
            for ends in segment.strands:
                for sign, link in _moving(tree, *(tree.placement(frame).link for frame in ends)):
                    velocities = tree.links[link].v
                    for column, k in enumerate(range(velocities.start, velocities.stop)):
                        arm += k not in own
                        terms.append(MomentTerm(own.setdefault(k, arm - 1), strand, link, column, sign))
                strand += 1
        moments.append(own)
    names = tuple(tendon.name for tendon in spatial)
    return TendonPaths(names, tuple(segments), tuple(rigid), tuple(moments), tuple(terms))


def _moving(tree: Tree, first: int, last: int) -> list[tuple[int, int]]:
    """The links whose joints move one link and not the other: (-1, link) for the first, (1, link) for the
    last.
    """
    before, after = tree.path(first), tree.path(last)
    return [(-1, i) for i in before if i not in after] + [(1, i) for i in after if i not in before]

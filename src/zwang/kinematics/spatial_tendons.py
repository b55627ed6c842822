"""Lengths and moment arms of all spatial tendons of a mechanism at one configuration, by loops over their
segments.

A strand with the ends a and b on two links, the unit vector n from a to b and the divisor c of its branch has
the velocity n . (b' - a') / c. A joint with the origin o that turns the link of b alone with the angular
velocity w, and gives it the velocity u at o, has the moment arm n . (u + w x (b - o)) / c; one that moves the
link of a alone has the negative one. As a and b are on one line along n, one point of the strand serves for
both.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY, max_abs
from zwang.algebra.rotations import cross
from zwang.kinematics.poses import IDENTITY, Pose, motion_subspace, placement_pose
from zwang.kinematics.wrapping import WrapShape, wrap_around
from zwang.mechanism.tendon_paths import PathSegment, TendonPaths, WrappingBody
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import (
    MutableArray,
    are_constant,
    divide,
    empty,
    fori_loop,
    less,
    minimum,
    sqrt,
    where,
    zeros,
)
from zwang.scalar.stacked_pytree import StackedPytree

COINCIDENT = 1e-12  # relative distance of points that coincide but for rounding
_STRAND = 6  # numbers of a strand: n / c, and a point

Strands = list[tuple[np.ndarray, np.ndarray]]  # the unit vector along each strand, and a point on it


@dataclass(frozen=True, eq=False)
class SpatialTendons:
    """All spatial tendons at one configuration.

    lengths: of every tendon [m], without its rigid segments. rigid_lengths: of these. strands: of every
    strand of the other segments the unit vector along it, divided by the divisor, and a point on it in the
    world [m]. rigid: for each rigid segment the pose of its link, and the unit vectors and points of its
    strands in the frame of the link. moments: the moment arms that are not zero.
    """

    paths: TendonPaths
    lengths: MutableArray
    rigid_lengths: Sequence[Any]
    strands: MutableArray
    rigid: Sequence[tuple[Pose, Strands]]
    moments: MutableArray

    def length_and_jacobian(self, tendon: str, nv: int) -> tuple[Any, np.ndarray]:
        """Length [m] of a tendon, and its Jacobian (nv,)."""
        number = self.paths.names.index(tendon)
        moment: list[Any] = [0] * nv
        for k, arm in self.paths.moments[number].items():
            moment[k] = self.moments[arm]
        return self.lengths[number] + self.rigid_lengths[number], np.array(moment)

    def strand_forces(self, tendon: str) -> Iterator[tuple[tuple[str, str], np.ndarray, np.ndarray]]:
        """Of every strand of a tendon: the frames (a, b) at its ends, a point (3,) [m] on it, and the force
        (3,) at unit tension on the body of a, in world axes.

        The opposite force acts on the body of b.
        """
        number = self.paths.names.index(tendon)
        for t, first, segment in self.paths.segments:
            if t == number:
                for strand, ends in enumerate(segment.strands, first):
                    pull, point = _strand(self.strands, strand)
                    yield ends, point, pull
        for (t, segment), ((R, p), strands) in zip(self.paths.rigid, self.rigid, strict=True):
            if t == number:
                for ends, (n, point) in zip(segment.strands, strands, strict=True):
                    yield ends, p + R @ point, R @ (n / segment.divisor)


def spatial_tendons(tree: Tree, paths: TendonPaths, poses: Sequence[Pose]) -> SpatialTendons:
    """The tendons at the configuration with these world poses of all links."""
    lengths, strands = zeros(len(paths.names)), empty((paths.strand_count, _STRAND))
    frames = _Frames(tree, poses, [segment for *_, segment in paths.segments])
    groups: dict[Hashable, list[tuple[int, int, PathSegment]]] = {}
    for numbered in paths.segments:
        groups.setdefault(_form(numbered[-1].around), []).append(numbered)
    for group in groups.values():
        lengths, strands = _over_segments(frames, group, lengths, strands)
    moments = _moments(tree, paths, poses, strands)
    rigid_lengths, rigid = _rigid_segments(tree, paths, poses)
    return SpatialTendons(paths, lengths, rigid_lengths, strands, rigid, moments)


def least_span(
    tree: Tree, paths: TendonPaths, poses: Sequence[Pose], others: Sequence[Sequence[Pose]]
) -> Any:
    """The least distance [m] between the ends of a segment; infinite without segments.

    others: poses at other configurations; segments whose ends coincide there, as on the axis of the joint
    between their bodies, have no length and are left out.
    """
    segments = [numbered for numbered in paths.segments if not _coincides(tree, others, numbered[-1])]
    if not segments:
        return np.inf
    frames = _Frames(tree, poses, [segment for *_, segment in segments])
    both = StackedPytree(
        [(frames.point(segment.first), frames.point(segment.last)) for *_, segment in segments]
    )

    def shorter(k: Any, least: Any) -> Any:
        first, last = (frames.position(end) for end in both[k])
        return minimum(least, distance_and_direction(first, last)[0])

    return fori_loop(0, len(segments), shorter, np.inf)


def _coincides(tree: Tree, configurations: Sequence[Sequence[Pose]], segment: PathSegment) -> bool:
    """Whether the ends of a segment are known to coincide at all these configurations."""
    placements = [tree.placement(frame) for frame in (segment.first, segment.last)]
    for poses in configurations:
        first, last = (placement_pose(poses, placement).p for placement in placements)
        scale = 1 + max_abs(first) + max_abs(last)
        if not are_constant(*first, *last) or max_abs(last - first) > COINCIDENT * scale:
            return False
    return True


def _rigid_segments(
    tree: Tree, paths: TendonPaths, poses: Sequence[Pose]
) -> tuple[list[Any], list[tuple[Pose, Strands]]]:
    """The length of the rigid segments of every tendon, and for each of these segments the pose of its link
    and its strands; lengths and strands are computed in the frames of the links.
    """
    lengths: list[Any] = [0] * len(paths.names)
    rigid: list[tuple[Pose, Strands]] = []
    frames = _Frames(tree, [IDENTITY] * len(tree.links), [segment for _, segment in paths.rigid])
    for tendon, segment in paths.rigid:
        length, strands = _length_and_strands(frames, segment.around, frames.data((tendon, 0, segment)))
        lengths[tendon] = lengths[tendon] + length / segment.divisor
        link = tree.placement(segment.first).link
        rigid.append((IDENTITY if link == WORLD else poses[link], strands))
    return lengths, rigid


def _form(around: WrappingBody | None) -> Hashable:
    """What the segments of one loop have in common."""
    return around and (around.kind, around.side is None, around.inside)


class _Point(NamedTuple):
    """A point p (3,) of a link, which has a number among those of `_Frames`."""

    link: int
    p: np.ndarray


class _SegmentData(NamedTuple):
    """The numbers of a segment: of its tendon and its first strand; the points at its ends, and the divisor;
    the frame of the wrapping body in that of its link, the point on its side, and its radius.
    """

    tendon: int
    strand: int
    first: _Point
    last: _Point
    divisor: Any
    body: tuple[int, Pose] | None
    side: _Point | None
    radius: Any


class _Frames:
    """The frames of segments, and the poses of the links that have them."""

    def __init__(self, tree: Tree, poses: Sequence[Pose], segments: Sequence[PathSegment]) -> None:
        self.tree, self.numbers = tree, dict[int, int]()
        for segment in segments:
            around = segment.around and (segment.around.frame, segment.around.side)
            for frame in (segment.first, segment.last, *(around or ())):
                if frame is not None:
                    self.numbers.setdefault(tree.placement(frame).link, len(self.numbers))
        self.poses = StackedPytree([IDENTITY if link == WORLD else poses[link] for link in self.numbers])

    def data(self, numbered: tuple[int, int, PathSegment]) -> _SegmentData:
        """The numbers of a segment."""
        tendon, strand, segment = numbered
        body, side, radius = None, None, 0
        if segment.around is not None:
            placement, radius = self.tree.placement(segment.around.frame), segment.around.radius
            body = self.numbers[placement.link], Pose(placement.R, placement.p)
            side = None if segment.around.side is None else self.point(segment.around.side)
        ends = self.point(segment.first), self.point(segment.last)
        return _SegmentData(tendon, strand, *ends, segment.divisor, body, side, radius)

    def point(self, frame: str) -> _Point:
        """The origin of a frame."""
        placement = self.tree.placement(frame)
        return _Point(self.numbers[placement.link], placement.p)

    def position(self, point: _Point) -> np.ndarray:
        """The position (3,) of a point in the world."""
        R, p = self.poses[point.link]
        return p + R @ point.p


def _over_segments(
    frames: _Frames,
    group: Sequence[tuple[int, int, PathSegment]],
    lengths: MutableArray,
    strands: MutableArray,
) -> tuple[MutableArray, MutableArray]:
    """The lengths and the strands after those of the segments of one form are added."""
    data, around = StackedPytree([frames.data(numbered) for numbered in group]), group[0][-1].around

    def visit(k: Any, carry: tuple[MutableArray, MutableArray]) -> tuple[MutableArray, MutableArray]:
        lengths, strands = carry
        segment = data[k]
        length, found = _length_and_strands(frames, around, segment)
        for strand, (n, p) in enumerate(found):
            for i, x in enumerate([*(n / segment.divisor), *p]):
                strands = strands.set((segment.strand + strand, i), x)
        total = lengths[segment.tendon] + length / segment.divisor
        return lengths.set(segment.tendon, total), strands

    return fori_loop(0, len(group), visit, (lengths, strands))


def _length_and_strands(
    frames: _Frames, around: WrappingBody | None, segment: _SegmentData
) -> tuple[Any, Strands]:
    """Length of a segment, and the direction and a point of each strand."""
    first, last = frames.position(segment.first), frames.position(segment.last)
    distance, n = distance_and_direction(first, last)
    if around is None:
        return distance, [(n, first)]
    return _wrapped(frames, around, segment, (first, last, distance, n))


def _wrapped(
    frames: _Frames, around: WrappingBody, segment: _SegmentData, straight: tuple[Any, ...]
) -> tuple[Any, Strands]:
    """Length of a segment that may wrap around a body, and the directions and points of both strands.

    straight: both ends, their distance, and the direction. The points of tangency do no work when they slide
    along the surface: they count as fixed to the body. Without contact both strands are the straight segment,
    so that their sum has exactly no moment arm about a joint of the body.
    """
    first, last, distance, n = straight
    assert segment.body is not None
    link, frame = segment.body
    R, p = frames.poses[link]
    pose = Pose(R @ frame.R, p + R @ frame.p)
    side = None if segment.side is None else frames.position(segment.side)
    shape = WrapShape(around.kind, segment.radius)
    wrapped = wrap_around(shape, pose, first, last, side, around.inside)
    before, n_before = distance_and_direction(first, wrapped.first)
    after, n_after = distance_and_direction(wrapped.last, last)
    length = where(wrapped.touches, before + wrapped.length + after, distance)

    def chosen(bent: np.ndarray, otherwise: np.ndarray) -> np.ndarray:
        return np.array([where(wrapped.touches, x, y) for x, y in zip(bent, otherwise, strict=True)])

    return length, [(chosen(n_before, n), first), (chosen(n_after, n), chosen(last, first))]


def distance_and_direction(first: np.ndarray, last: np.ndarray) -> tuple[Any, np.ndarray]:
    """Distance of two points, and the unit vector (3,) from the first to the last.

    Where they coincide, the distance is 0, and the vector (1, 0, 0) stands for the direction, which does not
    exist there: so the inverse weight of a tendon that has no length in the home configuration is not 0.
    Source: MuJoCo, `mju_normalize3`.
    """
    d = last - first
    square = d @ d
    apart = less(TINY * TINY, square)
    distance = sqrt(where(apart, square, 1.0))
    n = [where(apart, divide(x, distance), e) for x, e in zip(d, (1, 0, 0), strict=True)]
    return where(apart, distance, 0.0), np.array(n)


def _strand(strands: MutableArray, number: Any) -> tuple[np.ndarray, np.ndarray]:
    """The direction of a strand, divided by the divisor, and a point on it."""
    x = [strands[number, k] for k in range(_STRAND)]
    return np.array(x[:3]), np.array(x[3:])


def _moments(tree: Tree, paths: TendonPaths, poses: Sequence[Pose], strands: MutableArray) -> MutableArray:
    """The moment arms, summed over the strands."""
    axes = list(dict.fromkeys((term.link, term.column) for term in paths.terms))
    number = {axis: k for k, axis in enumerate(axes)}
    columns = StackedPytree([_column(tree, poses, *axis) for axis in axes])
    terms = StackedPytree([(t.moment, t.strand, number[t.link, t.column], t.sign) for t in paths.terms])

    def add(k: Any, moments: MutableArray) -> MutableArray:
        moment, strand, axis, sign = terms[k]
        (u, w, origin), (n, p) = columns[axis], _strand(strands, strand)
        return moments.set(moment, moments[moment] + sign * (n @ (u + cross(w, p - origin))))

    return fori_loop(0, len(paths.terms), add, zeros(paths.moment_count))


def _column(tree: Tree, poses: Sequence[Pose], link: int, column: int) -> tuple[np.ndarray, ...]:
    """Velocity of the origin and angular velocity of a joint per generalised velocity, and its origin, in the
    world.
    """
    R, p = poses[link]
    s = motion_subspace(tree.links[link])[:, column]
    return R @ s[:3], R @ s[3:], p

"""Which shapes of a mechanism may touch, and the parameters of their contact, by MuJoCo's rules."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import TINY
from zwang.collision.shapes import (
    CONVEX,
    COUNTS,
    MANIFOLDS,
    ORDER,
    SEVERAL,
    radius,
    sizes_of,
    type_of_shape,
)
from zwang.errors import UnknownNameError, UnsupportedError
from zwang.mechanism.contact_pairs import ContactExclude, ContactPair
from zwang.mechanism.geometry import Geometry, HeightField, Surface
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.mocap import mocap_groups
from zwang.mechanism.numbers import Names, Numbers, clipped_solimp
from zwang.mechanism.tree import WORLD, Placement, Tree
from zwang.scalar import are_constant, divide, less_equal, logical_and, maximum, minimum, where

SMALLEST_FRICTION = 1e-5  # MuJoCo's mjMINMU
MOST_PRISMS = 2000  # of a height field under one shape
MOST_CANDIDATES = 600_000
"""The largest number of pairs of shapes: about 6 microseconds and 600 bytes each before the first step."""


@dataclass(frozen=True)
class CollisionShape:
    """A shape on a link: its kind ("sphere", ...), half sizes, placement, body, and description.

    The half sizes of a mesh are its convex hull, a `Polyhedron`. index: its number among
    the shapes.
    """

    kind: str
    sizes: Any
    placement: Placement
    body: str
    shape: Geometry
    index: int

    @property
    def name(self) -> str:
        """The shape's name, or its kind, number and body."""
        return self.shape.name or f"{self.kind} {self.index} of {self.body}"


@dataclass(frozen=True)
class Pair:
    """Two shapes that may touch, and the parameters of their contact; friction: sliding twice, torsional,
    rolling twice. single: whether shapes without a closed form have one contact point, instead of a manifold.
    explicit: whether the mechanism names the pair. in_order: whether the order of its points matters, as
    it does for the noslip solver. points: the number of contact points of shapes of one of several kinds.
    """

    a: CollisionShape
    b: CollisionShape
    condim: int
    friction: Numbers
    solref: Numbers
    solreffriction: Numbers
    solimp: Numbers
    margin: Any
    gap: Any
    name: str = ""
    single: bool = False
    explicit: bool = False
    in_order: bool = False
    points: int = 0

    @property
    def links(self) -> tuple[int, int]:
        """The links of both shapes."""
        return self.a.placement.link, self.b.placement.link

    @property
    def reach(self) -> Any:
        """The distance [m] within which its contact points are found; those within the margin are active."""
        return self.margin + self.gap

    @property
    def kinds(self) -> tuple[str, str]:
        """The kinds of both shapes, in MuJoCo's order."""
        return self.a.kind, self.b.kind

    @property
    def is_iterated(self) -> bool:
        """Whether its contact points are found by iteration on support functions, which one loop does for all
        kinds of shapes.
        """
        return SEVERAL in self.kinds or self.kinds in CONVEX

    @property
    def is_costly(self) -> bool:
        """Whether its contact points take long to find: by iteration or, of two boxes, among twelve
        candidates.
        """
        return self.is_iterated or self.kinds == ("box", "box")

    @property
    def count(self) -> int:
        """The largest number of contact points of this pair."""
        if SEVERAL in self.kinds:
            return self.points
        return 1 if self.single and self.kinds in MANIFOLDS else COUNTS[self.kinds]


def collision_shapes(mechanism: Mechanism) -> tuple[CollisionShape, ...]:
    """The shapes of the mechanism that may touch another one.

    Their numbers are MuJoCo's: the world's shapes first, then by body; shapes that touch nothing are counted
    too.
    """
    tree = mechanism.tree
    named = {name for pair in mechanism.contacts if isinstance(pair, ContactPair) for name in pair.geometry}
    shapes = [("world", shape) for shape in mechanism.geometry]
    shapes += [(body.name, shape) for body in mechanism.bodies for shape in body.geometry]
    found = []
    for number, (body, shape) in enumerate(shapes):
        masked = shape.visual_only or not (shape.surface.contype or shape.surface.conaffinity)
        if masked and not (shape.name and shape.name in named):
            continue
        base = tree.placements[body]
        R = base.R @ np.array(shape.orientation)
        place = Placement(base.link, R, base.p + base.R @ np.array(shape.position))
        found.append(CollisionShape(type_of_shape(shape), sizes_of(shape), place, body, shape, number))
    return tuple(found)


def candidate_pairs(mechanism: Mechanism) -> tuple[Pair, ...]:
    """Pairs of shapes that may touch, in MuJoCo's order of bodies.

    Explicit pairs are excluded if fixed to the same link, or both to the world. Other pairs are excluded if
    fixed to the same link or to parent and child (the world is no parent, a mocap body is), by an explicit
    exclusion, or by their bit masks. Raises UnknownNameError for an unknown name in a pair or an exclusion,
    and UnsupportedError for a pair whose contact points another algorithm is to find (MuJoCo's flag
    `nativeccd`), and, at once, for more than 600,000 pairs.
    Source: MuJoCo documentation, Computation, "Selection" of collisions, and Modeling, "Contact parameters".
    """
    if not mechanism.options.contact:
        return ()
    shapes = collision_shapes(mechanism)
    if (count := sum(map(len, _partners(shapes)))) > MOST_CANDIDATES:
        raise UnsupportedError(
            f"mechanism {mechanism.name!r} has {len(shapes):,} shapes, of which {count:,} pairs may touch; "
            f"contacts of at most {MOST_CANDIDATES:,} pairs are computed. Give shapes that need not touch "
            "each other bits that do not match (zw.Surface(contype=..., conaffinity=...)), or make them "
            "visual only"
        )
    explicit = [_explicit(pair, shapes) for pair in mechanism.contacts if isinstance(pair, ContactPair)]
    explicit = [pair for pair in explicit if pair.a.placement.link != pair.b.placement.link]
    explicit_indices = {frozenset((pair.a.index, pair.b.index)) for pair in explicit}
    excluded = _exclusions(mechanism)
    parents = _ParentFilter.of(mechanism)
    pairs = list(explicit)
    for first, others in zip(shapes, _partners(shapes), strict=True):
        for second in (shapes[k] for k in others):
            if (
                frozenset((first.index, second.index)) in explicit_indices
                or frozenset((first.body, second.body)) in excluded
            ):
                continue
            if _may_touch(mechanism, first, second, parents):
                pairs.append(_mixed_pair(*_ordered(first, second)))
    pairs = [_with_flags(pair, mechanism.options.disabled) for pair in pairs]
    if mechanism.options.noslip_iterations:
        pairs = [replace(pair, in_order=True) for pair in pairs]
    found = []
    for pair in pairs:
        found += _prism_pairs(pair) if isinstance(pair.a.shape, HeightField) else [pair]
    numbers = {"world": 0, **{body.name: k + 1 for k, body in enumerate(mechanism.bodies)}}
    order = _Order(numbers, _shape_counts(mechanism), "midphase" not in mechanism.options.disabled)
    return tuple(sorted(found, key=order.key))


def candidate_count(mechanism: Mechanism) -> int:
    """The number of pairs of shapes on different links whose bit masks match: at least that of
    `candidate_pairs` without explicit pairs, and found without building them.
    """
    return sum(map(len, _partners(collision_shapes(mechanism)))) if mechanism.options.contact else 0


def _partners(shapes: tuple[CollisionShape, ...]) -> Iterator[np.ndarray]:
    """For each shape the indices of later shapes on other links whose bit masks match its own."""
    links = np.array([shape.placement.link for shape in shapes], int)
    kinds = np.array([shape.shape.surface.contype for shape in shapes], int)
    wanted = np.array([shape.shape.surface.conaffinity for shape in shapes], int)
    for i in range(len(shapes)):
        later = slice(i + 1, None)
        match = (kinds[later] & wanted[i]) | (wanted[later] & kinds[i])
        yield i + 1 + np.flatnonzero((links[later] != links[i]) & (match != 0))


def _with_flags(pair: Pair, disabled: Names) -> Pair:
    """The pair as the flags of the option element require. Raises UnsupportedError."""
    if "nativeccd" in disabled and pair.kinds in CONVEX:
        raise UnsupportedError(
            f"the flag nativeccd of the option element is disabled, and {pair.a.name!r} with "
            f"{pair.b.name!r} ({' with '.join(pair.kinds)}) would have the contact points of MuJoCo's "
            "earlier algorithm, which zwang does not have; enable the flag, or exclude the contact"
        )
    surfaces = [shape.shape.surface for shape in (pair.a, pair.b)]
    if any(s.hard for s in surfaces) and any(s.is_moving for s in surfaces):
        raise UnsupportedError(
            f"the contact of {pair.a.name!r} with {pair.b.name!r} is hard, and one surface has a velocity, "
            "which only soft contacts have; give both surfaces a softness, or exclude the contact"
        )
    return replace(pair, single=True) if "multiccd" in disabled else pair


class _Order(NamedTuple):
    """MuJoCo's order of contacts. bodies: their numbers; shapes: how many each has; midphase: whether the
    shapes of two bodies are found by their bounding boxes, and then sorted.
    """

    bodies: dict[str, int]
    shapes: dict[str, int]
    midphase: bool

    def key(self, pair: Pair) -> tuple[int, ...]:
        """By the bodies; then explicit pairs first, in their order; then by the shapes, where those of two
        bodies with several shapes are in the order of the kinds.
        """
        bodies = sorted((self.bodies[pair.a.body], self.bodies[pair.b.body]))
        if pair.explicit:
            return (*bodies, 0, 0, 0)
        shapes = [pair.a.index, pair.b.index]
        several = any(self.shapes[shape.body] > 1 for shape in (pair.a, pair.b))
        return (*bodies, 1, *(shapes if self.midphase and several else sorted(shapes)))


def _shape_counts(mechanism: Mechanism) -> dict[str, int]:
    """The number of shapes of every body."""
    found = {body.name: len(body.geometry) for body in mechanism.bodies}
    return {**found, "world": len(mechanism.geometry)}


def _may_touch(
    mechanism: Mechanism, first: CollisionShape, second: CollisionShape, parents: _ParentFilter
) -> bool:
    """Whether masks, kinds and links let two shapes touch."""
    one, two = first.shape, second.shape
    if one.visual_only or two.visual_only:
        return False
    if not (one.surface.contype & two.surface.conaffinity or two.surface.contype & one.surface.conaffinity):
        return False
    if {first.kind, second.kind} <= {"plane", "heightfield"}:
        return False
    if first.placement.link == second.placement.link:
        return False
    return "filterparent" in mechanism.options.disabled or not parents.excludes(first, second)


class _ParentFilter(NamedTuple):
    """What excludes contacts of parent and child. links: see `_parent_links`. mocap: see `mocap_groups`.
    carried: for each link that a mocap body carries, the name of this body.
    """

    links: dict[int, int]
    mocap: dict[str, str]
    carried: dict[int, str]

    @staticmethod
    def of(mechanism: Mechanism) -> _ParentFilter:
        """The filter of a mechanism."""
        tree, mocap = mechanism.tree, mocap_groups(mechanism.bodies)
        carried = {
            tree.placements[body.name].link: mocap[body.parent]
            for body in mechanism.bodies
            if body.joints and body.parent in mocap
        }
        return _ParentFilter(_parent_links(tree), mocap, carried)

    def excludes(self, first: CollisionShape, second: CollisionShape) -> bool:
        """Whether one of two shapes on different links is fixed to the parent of the other; the world is no
        parent, but a mocap body is.
        """
        a, b = first.placement.link, second.placement.link
        if WORLD not in (a, b):
            return self.links[a] == b or self.links[b] == a
        fixed, link = (first.body, b) if a == WORLD else (second.body, a)
        return link in self.carried and self.carried[link] == self.mocap.get(fixed)


def _parent_links(tree: Tree) -> dict[int, int]:
    """For each link with bodies the next such link towards the world; the joints of one body may be several
    links.
    """
    carrying = {place.link for place in tree.placements.values()}
    parent_links = {}
    for link in carrying - {WORLD}:
        link_above = tree.links[link].parent
        while link_above != WORLD and link_above not in carrying:
            link_above = tree.links[link_above].parent
        parent_links[link] = link_above
    return parent_links


def _exclusions(mechanism: Mechanism) -> set[frozenset[str]]:
    """The pairs of bodies that are excluded from contact."""
    names = ("world", *(body.name for body in mechanism.bodies))
    excluded = set()
    for item in mechanism.contacts:
        if isinstance(item, ContactExclude):
            for name in item.bodies:
                if name not in names:
                    raise UnknownNameError("body", name, names)
            excluded.add(frozenset(item.bodies))
    return excluded


def _ordered(first: CollisionShape, second: CollisionShape) -> tuple[CollisionShape, CollisionShape]:
    """Both shapes in MuJoCo's order of kinds."""
    return (first, second) if ORDER.index(first.kind) <= ORDER.index(second.kind) else (second, first)


def _explicit(pair: ContactPair, shapes: tuple[CollisionShape, ...]) -> Pair:
    """The pair of an explicit contact pair."""
    named = {shape.shape.name: shape for shape in shapes if shape.shape.name}
    for name in pair.geometry:
        if name not in named:
            raise UnknownNameError("shape", name, named)
    a, b = _ordered(*(named[name] for name in pair.geometry))
    friction = tuple(maximum(SMALLEST_FRICTION, x) for x in pair.friction)
    return Pair(
        a,
        b,
        pair.condim,
        friction,
        pair.solref,
        pair.solreffriction,
        pair.solimp,
        pair.margin,
        pair.gap,
        pair.name,
        explicit=True,
    )


def _mixed_pair(a: CollisionShape, b: CollisionShape) -> Pair:
    """Pair with the contact parameters of two surfaces: those of the higher priority, or else mixed."""
    one, two = a.shape.surface, b.shape.surface
    margin, gap = one.margin + two.margin, one.gap + two.gap
    if one.priority != two.priority:
        dominant = one if one.priority > two.priority else two
        return _pair(a, b, dominant.condim, dominant.friction, dominant.solref, dominant.solimp, margin, gap)
    weight = _mixing_weight(one, two)
    have_times = logical_and(one.solref[0] > 0, two.solref[0] > 0)  # in the format (time constant, ...)
    means = _weighted_mean(weight, one.solref, two.solref)
    triples = zip(means, one.solref, two.solref, strict=True)
    solref = tuple(where(have_times, mean, minimum(x, y)) for mean, x, y in triples)
    friction = tuple(maximum(x, y) for x, y in zip(one.friction, two.friction, strict=True))
    solimp = _weighted_mean(weight, one.solimp, two.solimp)
    return _pair(a, b, max(one.condim, two.condim), friction, solref, solimp, margin, gap)


def _mixing_weight(one: Surface, two: Surface) -> Any:
    """Weight of the first surface's softness by solmix; one with solmix below 1e-15 yields to the other."""
    first, second = (less_equal(TINY, x.solmix) for x in (one, two))
    total = where(first, one.solmix, 1) + where(second, two.solmix, 0)
    mixed = where(second, divide(one.solmix, total), 1)
    return where(first, mixed, where(second, 0, 0.5))


def _weighted_mean(weight: Any, one: Numbers, two: Numbers) -> tuple[Any, ...]:
    """weight one + (1 - weight) two."""
    return tuple(weight * x + (1 - weight) * y for x, y in zip(one, two, strict=True))


def _pair(
    a: CollisionShape,
    b: CollisionShape,
    condim: int,
    friction: Any,
    solref: Any,
    solimp: Any,
    margin: Any,
    gap: Any,
) -> Pair:
    """Pair with friction of (sliding, torsional, rolling) and default friction softness."""
    slide, spin, roll = (maximum(SMALLEST_FRICTION, x) for x in friction)
    friction = slide, slide, spin, roll, roll
    return Pair(a, b, condim, friction, tuple(solref), (), clipped_solimp(solimp), margin, gap)


def _prism_pairs(pair: Pair) -> list[Pair]:
    """The pairs of a height field and another shape, one for each prism that may be under it.

    Raises UnsupportedError for a hard surface, a size or margin that is a symbol, and more prisms than
    `MOST_PRISMS`.
    """
    field = pair.a.shape
    assert isinstance(field, HeightField)
    what = f"the contact of the height field {pair.a.name!r} with {pair.b.name!r}"
    size = radius(pair.b.kind, pair.b.sizes) + maximum(pair.reach, 0)
    if not are_constant(size):
        raise UnsupportedError(f"{what} has a size, margin or gap that is a symbol; give a number")
    if pair.a.shape.surface.hard or pair.b.shape.surface.hard:
        raise UnsupportedError(f"{what} is hard, which is not supported; give both surfaces a softness")
    # an interval of this length touches at most so many cells
    counts = [
        min(n - 1, math.ceil(2 * float(size) / (2 * half) * (n - 1)) + 1)
        for half, n in zip(field.extent, reversed(field.grid), strict=True)
    ]
    if 2 * counts[0] * counts[1] > MOST_PRISMS:
        raise UnsupportedError(
            f"{what} may have {2 * counts[0] * counts[1]} prisms of the grid under the shape; the limit is "
            f"{MOST_PRISMS}: give the field a coarser grid, or the shape smaller parts"
        )
    name = pair.name or f"contact of {pair.a.name} and {pair.b.name}"
    slots = [(r, c, side) for r in range(counts[1]) for c in range(counts[0]) for side in (0, 1)]
    return [
        replace(pair, a=replace(pair.a, sizes=tuple(map(float, slot))), name=f"{name} #{k + 1}")
        for k, slot in enumerate(slots)
    ]

"""Which shapes of a mechanism may touch, and the numbers of their contact, by MuJoCo's rules."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from zwang.collision.shapes import COUNTS, ORDER, sizes_of, type_of_shape
from zwang.errors import UnknownNameError
from zwang.mechanism.constraints import ContactExclude, ContactPair
from zwang.mechanism.geometry import Geometry, Surface
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD, Placement, Tree
from zwang.scalar import is_zero

MINIMAL_FRICTION = 1e-5


@dataclass(frozen=True)
class CollisionShape:
    """A shape where it is: its kind ("sphere", ...), half sizes, place on a link, body, and what the file said of it.

    The half sizes of a mesh are the corners of its convex hull (n, 3) in its frame.
    """

    kind: str
    sizes: Any
    place: Placement
    body: str
    shape: Geometry
    index: int

    @property
    def name(self) -> str:
        """The shape's name, or its number among the shapes of the mechanism (the world's come first)."""
        return self.shape.name or f"{self.kind} {self.index} of {self.body}"


@dataclass(frozen=True)
class Pair:
    """Two shapes that may touch, and the numbers of their contact; friction: sliding twice, torsional, rolling twice."""

    a: CollisionShape
    b: CollisionShape
    condim: int
    friction: tuple[Any, ...]
    solref: tuple[Any, ...]
    solreffriction: tuple[Any, ...]
    solimp: tuple[Any, ...]
    margin: Any
    gap: Any
    name: str = ""

    @property
    def kinds(self) -> tuple[str, str]:
        """The kinds of both shapes, in MuJoCo's order."""
        return self.a.kind, self.b.kind

    @property
    def count(self) -> int:
        """How many gaps this pair can have."""
        return COUNTS[self.kinds]


def collision_shapes(mechanism: Mechanism) -> tuple[CollisionShape, ...]:
    """The shapes of the mechanism that may touch anything, where they are.

    They are numbered as MuJoCo does it: the world's first, then by body, those that touch nothing counted too.
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
    """The pairs of shapes that may touch, in MuJoCo's order of bodies.

    Explicit pairs unless fixed to the same link, or both to the world; others unless fixed to the same link, to parent and child (the world is no parent), excluded,
    or kept apart by their bit masks. Raises UnknownNameError for a pair or an exclusion of names that are not there.
    Source: MuJoCo documentation, "Selection" of collisions and "Parameters" of contacts.
    """
    if not mechanism.options.contact:
        return ()
    shapes = collision_shapes(mechanism)
    explicit = [_explicit(pair, shapes) for pair in mechanism.contacts if isinstance(pair, ContactPair)]
    explicit = [pair for pair in explicit if pair.a.place.link != pair.b.place.link]
    taken = {frozenset((pair.a.index, pair.b.index)) for pair in explicit}
    excluded = _exclusions(mechanism)
    above = _links_above(mechanism.tree)
    found = list(explicit)
    for i, first in enumerate(shapes):
        for second in shapes[i + 1 :]:
            if (
                frozenset((first.index, second.index)) in taken
                or frozenset((first.body, second.body)) in excluded
            ):
                continue
            if _may_touch(mechanism, first, second, above):
                found.append(_mixed(*_ordered(first, second)))
    return tuple(sorted(found, key=lambda pair: _order(mechanism, pair)))


def _order(mechanism: Mechanism, pair: Pair) -> tuple[int, ...]:
    numbers = {"world": 0, **{body.name: k + 1 for k, body in enumerate(mechanism.bodies)}}
    bodies = sorted((numbers[pair.a.body], numbers[pair.b.body]))
    return (*bodies, *sorted((pair.a.index, pair.b.index)))


def _may_touch(mechanism: Mechanism, first: CollisionShape, second: CollisionShape, above: dict[int, int]) -> bool:
    one, two = first.shape, second.shape
    if one.visual_only or two.visual_only:
        return False
    if not (one.surface.contype & two.surface.conaffinity or two.surface.contype & one.surface.conaffinity):
        return False
    if (first.kind, second.kind) == ("plane", "plane"):
        return False
    a, b = first.place.link, second.place.link
    if a == b:
        return False
    if "filterparent" in mechanism.options.disabled or WORLD in (a, b):
        return True
    return above[a] != b and above[b] != a


def _links_above(tree: Tree) -> dict[int, int]:
    """For each link that carries bodies the next such link towards the world (a body's joints may be several links)."""
    carrying = {place.link for place in tree.placements.values()}
    above = {}
    for link in carrying - {WORLD}:
        at = tree.links[link].parent
        while at != WORLD and at not in carrying:
            at = tree.links[at].parent
        above[link] = at
    return above


def _exclusions(mechanism: Mechanism) -> set[frozenset[str]]:
    names = ("world", *(body.name for body in mechanism.bodies))
    found = set()
    for item in mechanism.contacts:
        if isinstance(item, ContactExclude):
            for name in item.bodies:
                if name not in names:
                    raise UnknownNameError("body", name, names)
            found.add(frozenset(item.bodies))
    return found


def _ordered(first: CollisionShape, second: CollisionShape) -> tuple[CollisionShape, CollisionShape]:
    return (first, second) if ORDER.index(first.kind) <= ORDER.index(second.kind) else (second, first)


def _explicit(pair: ContactPair, shapes: tuple[CollisionShape, ...]) -> Pair:
    named = {solid.shape.name: solid for solid in shapes if solid.shape.name}
    for name in pair.geometry:
        if name not in named:
            raise UnknownNameError("shape", name, named)
    a, b = _ordered(*(named[name] for name in pair.geometry))
    friction = tuple(max(MINIMAL_FRICTION, x) for x in pair.friction)
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
    )


def _mixed(a: CollisionShape, b: CollisionShape) -> Pair:
    """The numbers of a contact from those of two surfaces: the higher priority's, or else mixed."""
    one, two = a.shape.surface, b.shape.surface
    margin, gap = one.margin + two.margin, one.gap + two.gap
    if one.priority != two.priority:
        lead = one if one.priority > two.priority else two
        return _pair(a, b, lead.condim, lead.friction, lead.solref, lead.solimp, margin, gap)
    share = _share(one, two)
    if one.solref[0] > 0 and two.solref[0] > 0:
        solref = _blend(share, one.solref, two.solref)
    else:
        solref = tuple(min(x, y) for x, y in zip(one.solref, two.solref, strict=True))
    friction = tuple(max(x, y) for x, y in zip(one.friction, two.friction, strict=True))
    solimp = _blend(share, one.solimp, two.solimp)
    return _pair(a, b, max(one.condim, two.condim), friction, solref, solimp, margin, gap)


def _share(one: Surface, two: Surface) -> Any:
    """The weight of the first surface's softness: solmix, where zero yields to the other."""
    first, second = not is_zero(one.solmix), not is_zero(two.solmix)
    if first and second:
        return one.solmix / (one.solmix + two.solmix)
    return 0.5 if first == second else float(first)


def _blend(share: Any, one: tuple[Any, ...], two: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(share * x + (1 - share) * y for x, y in zip(one, two, strict=True))


def _pair(
    a: CollisionShape, b: CollisionShape, condim: int, friction: Any, solref: Any, solimp: Any, margin: Any, gap: Any
) -> Pair:
    slide, spin, roll = (max(MINIMAL_FRICTION, x) for x in friction)
    return Pair(a, b, condim, (slide, slide, spin, roll, roll), tuple(solref), (), tuple(solimp), margin, gap)

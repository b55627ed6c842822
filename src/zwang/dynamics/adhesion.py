"""The moment arms of adhesion, which pulls a body towards all that it touches."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.rotations import cross
from zwang.collision import (
    ContactPoint,
    Pair,
    PairGroup,
    StoredPlacements,
    candidate_pairs,
    contact_points_between,
    if_volumes_overlap,
    over_near_pairs,
    pair_groups,
)
from zwang.kinematics.kinematics import Kinematics
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import WORLD
from zwang.scalar import MutableArray, cond, is_zero, less, where, zeros
from zwang.scalar.stacked_pytree import StackedPytree


class _NormalSums(NamedTuple):
    """Sums over the contacts of bodies: their numbers (n,), by body, and the wrenches (n, 6) about the
    world's origin of unit normal forces, which push the shapes apart, on the links of these contacts, body by
    body. Both have as many rows as the larger one needs, and a last one that is not read.
    """

    counts: MutableArray
    wrenches: MutableArray


def adhesion_moments(
    mechanism: Mechanism, kinematics: Kinematics, bodies: Sequence[str]
) -> dict[str, np.ndarray]:
    """By body the moment arms (nv,) of its adhesion: minus the mean of the Jacobians of the normal distances
    of all contacts of its shapes, those at a distance from margin to margin + gap included; zeros without
    contacts.

    Source: MuJoCo documentation, XML reference, "adhesion".
    """
    pairs = adhesive_pairs(mechanism, bodies) if bodies else ()
    links = {(body, link) for body in bodies for pair in pairs for link in _links(pair) if _has(pair, body)}
    rows = {key: k for k, key in enumerate(sorted(key for key in links if key[1] != WORLD))}
    kinematics = kinematics.with_computed_poses()
    sums = _sums(pairs, kinematics, bodies, rows) if pairs else None
    found = {}
    for k, body in enumerate(bodies):
        moment: Any = np.array([0] * mechanism.nv)
        for (of, link), row in rows.items():
            if of == body and sums is not None:
                W, p = np.array([sums.wrenches[row, k] for k in range(6)]), kinematics.poses[link].p
                J = kinematics.point_jacobian(link, p)
                moment = moment + J.T @ np.concatenate([W[:3], W[3:] - cross(p, W[:3])])
        if not is_zero(moment) and sums is not None:
            moment = moment * (-1 / where(less(0, sums.counts[k]), sums.counts[k], 1.0))
        found[body] = moment
    return found


def _links(pair: Pair) -> tuple[int, int]:
    return pair.a.placement.link, pair.b.placement.link


def _has(pair: Pair, body: str) -> bool:
    return body in (pair.a.body, pair.b.body)


def _sums(
    pairs: Sequence[Pair], kinematics: Kinematics, bodies: Sequence[str], rows: dict[tuple[str, int], int]
) -> _NormalSums:
    """The sums over all contacts of the pairs."""
    shapes = StoredPlacements(pairs, kinematics.poses)
    size = max(len(bodies), len(rows)) + 1  # one, so that one table has the indices of both
    found = _NormalSums(zeros(size), zeros((size, 6)))
    for group in pair_groups(pairs, [None] * len(pairs)):
        places = StackedPytree([_places(pair, bodies, rows) for pair in group.pairs])

        def visit(
            number: Any, found: _NormalSums, group: PairGroup = group, places: Any = places
        ) -> _NormalSums:
            pair, (a, b) = group.pair(number), group.placed(number, shapes)

            def visit_points(found: _NormalSums) -> _NormalSums:
                for point in contact_points_between(pair, a, b):
                    touches = less(point.distance, pair.margin)
                    found = cond(
                        touches, lambda t, p=point: _with_contact(t, places[number], p), lambda t: t, found
                    )
                return found

            return if_volumes_overlap(pair, a, b, visit_points, found)

        found = over_near_pairs(group, shapes, visit, found)
    return found


def _places(pair: Pair, bodies: Sequence[str], rows: dict[tuple[str, int], int]) -> tuple[Any, ...]:
    """For each body of a pair the place of its number of contacts, and the rows of both links."""
    found = []
    for body in (pair.a.body, pair.b.body):
        place = bodies.index(body) if body in bodies else len(bodies)
        found.append((place, *(rows.get((body, link), len(rows)) for link in _links(pair))))
    return tuple(found)


def _with_contact(found: _NormalSums, places: tuple[Any, ...], point: ContactPoint) -> _NormalSums:
    """The sums with those of a contact; places: see `_places`."""
    n, (counts, wrenches) = point.frame[0], found
    wrench = np.concatenate([n, cross(point.position, n)])
    for place, *rows in places:
        counts = counts.set(place, counts[place] + 1.0)
        for row, sign in zip(rows, (-1, 1), strict=True):
            for k, x in enumerate(wrench):
                wrenches = wrenches.set((row, k), wrenches[row, k] + sign * x)
    return _NormalSums(counts, wrenches)


def adhesive_pairs(mechanism: Mechanism, bodies: Collection[str]) -> tuple[Pair, ...]:
    """The pairs with a shape of one of the bodies, each with the distance at which contacts are found as its
    margin, and without the parameters of the contact.
    """
    if {"contact", "constraint"} & set(mechanism.options.disabled):
        return ()
    return tuple(
        replace(
            pair, condim=1, friction=(), solref=(), solreffriction=(), solimp=(),
            margin=pair.margin + pair.gap, gap=0,
        )
        for pair in candidate_pairs(mechanism)
        if not {pair.a.body, pair.b.body}.isdisjoint(bodies)
    )  # fmt: skip

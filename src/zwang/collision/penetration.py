"""Thickness of shapes: penetrations so deep that the contact normal is unreliable, and the search distance
of hard contacts.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.broad_phase import passes_broad_phase
from zwang.collision.convex.polyhedra import polyhedron_of
from zwang.collision.narrow_phase import contact_points
from zwang.collision.pairs import CollisionShape, Pair, candidate_pairs
from zwang.collision.shapes import SizesOfKinds
from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import minimum


class Penetration(NamedTuple):
    """Two shapes by name, and their penetration depth [m]."""

    a: str
    b: str
    depth: float


def deepest_penetration(
    mechanism: Mechanism, q: Any, pairs: Sequence[Pair] | None = None
) -> Penetration | None:
    """The deepest penetration at q (nq,) that exceeds half the thickness of the thinner shape; None if there
    is none. Floats.

    pairs: by default those of `candidate_pairs`.
    """
    poses = link_poses(mechanism.tree, np.asarray(q, float))
    found = []
    for pair in candidate_pairs(mechanism) if pairs is None else pairs:
        if not passes_broad_phase(pair, poses):
            continue
        depth = -min(float(point.distance) for point in contact_points(pair, poses))
        if depth > min(half_thickness(pair.a), half_thickness(pair.b)):
            found.append(Penetration(pair.a.name, pair.b.name, depth))
    return max(found, key=lambda overlap: overlap.depth, default=None)


def with_search_margin(pair: Pair) -> Pair:
    """The pair with half the thickness of the thinner shape as margin, within which contact points are found
    before they close.
    """
    return replace(pair, margin=minimum(half_thickness(pair.a), half_thickness(pair.b)))


def half_thickness(shape: CollisionShape) -> Any:
    """Half of the smallest extent of a shape [m]; inf for a plane or a height field."""
    if shape.kind in ("plane", "heightfield"):
        return np.inf
    if isinstance(shape.sizes, SizesOfKinds):
        several = shape.sizes
        return several.by_kind(
            lambda kind: 1.0 * half_thickness(replace(shape, kind=kind, sizes=several.sizes_as(kind)))
        )
    if shape.kind == "mesh":
        return polyhedron_of(shape.sizes).half_thickness
    return shape.sizes[0] if shape.kind == "capsule" else reduce(minimum, shape.sizes)

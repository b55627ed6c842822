"""How thick shapes are, and what follows: overlaps so deep that the way out is a guess, and how far to look ahead of a contact."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from zwang.collision.broad_phase import passes_broad_phase
from zwang.collision.narrow_phase import contact_points
from zwang.collision.pairs import CollisionShape, Pair, candidate_pairs
from zwang.kinematics.poses import link_poses
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import minimum


class Penetration(NamedTuple):
    """Two shapes by name, and how deep they overlap [m]."""

    a: str
    b: str
    depth: float


def deepest_penetration(mechanism: Mechanism, q: Any, pairs: Sequence[Pair] | None = None) -> Penetration | None:
    """The deepest of the overlaps at q (nq,) that are deeper than half the thinner shape is thick; None if there is none. Floats.

    pairs: those of `candidate_pairs`, to save working them out again.
    """
    poses = link_poses(mechanism.tree, np.asarray(q, float))
    found = []
    for pair in candidate_pairs(mechanism) if pairs is None else pairs:
        if not passes_broad_phase(pair, poses):
            continue
        depth = -min(float(gap.distance) for gap in contact_points(pair, poses))
        if depth > min(half_thickness(pair.a), half_thickness(pair.b)):
            found.append(Penetration(pair.a.name, pair.b.name, depth))
    return max(found, key=lambda overlap: overlap.depth, default=None)


def with_search_margin(pair: Pair) -> Pair:
    """The pair with a margin by which its gaps are found while they are open: half the thinner shape's thickness."""
    return replace(pair, margin=minimum(half_thickness(pair.a), half_thickness(pair.b)))


def half_thickness(solid: CollisionShape) -> Any:
    """Half of the least of a shape's extents [m]; a plane has no end."""
    if solid.kind == "plane":
        return np.inf
    if solid.kind == "mesh":
        return float(np.ptp(np.asarray(solid.sizes, float), axis=0).min() / 2)
    return solid.sizes[0] if solid.kind == "capsule" else reduce(minimum, solid.sizes)

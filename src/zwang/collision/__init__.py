"""Collision detection: which pairs of shapes may touch, and where they do. Geometry only, no forces.

    # a tuple of Pair, fixed for a mechanism (MuJoCo's filters)
    pairs = candidate_pairs(mechanism)
    for pair in pairs:
        for point in contact_points(pair, poses):   # poses: `link_poses(tree, q)`; a tuple of ContactPoint
            ...

A `Pair` has two `CollisionShape`s a and b (kind, sizes, placement on a link, body name) and the parameters
of their contact: `condim`, `friction` (5: sliding twice, torsional, rolling twice), `solref`,
`solreffriction`, `solimp`, `margin`, `gap`. Shape a is the one that MuJoCo calls geom 0. `pair.count` is the
number of contact points that `contact_points` returns. It is constant, so that the function can be traced.

A `ContactPoint` is (distance, position, frame): the signed distance [m], negative where the shapes overlap;
the point midway between the two surfaces, in the world; and the contact frame (3, 3). The first ROW of the
frame is the normal from a to b, the other rows are the tangents, as in MuJoCo. A contact point that does not
exist, such as the fourth corner of a box that stands on an edge, has the distance FAR and a finite position
and frame. A contact is active where `distance < pair.margin`. The velocity of b relative to a in contact
axes is frame @ (J_b - J_a) v, with the Jacobians of the point `position` fixed to either body.

`contact_points` works on every scalar. `passes_broad_phase(pair, poses)` is false where the pair cannot
touch. `contact_points_between` and `bounding_volumes_overlap` are the same for shapes already placed in the
world, such as those of a `PairGroup`: the pairs of one type, in one loop; `if_volumes_overlap` is a branch.
`over_near_pairs` is a loop over those that may be near each other.
"""

from zwang.collision.broad_phase import bounding_volumes_overlap, if_volumes_overlap, passes_broad_phase
from zwang.collision.contact_point import FAR, ContactPoint, contact_frame
from zwang.collision.narrow_phase import contact_points, contact_points_between
from zwang.collision.pair_groups import PairGroup, StoredPlacements, is_fixed_to_world, pair_groups
from zwang.collision.pairs import CollisionShape, Pair, candidate_count, candidate_pairs
from zwang.collision.shapes import PlacedShape
from zwang.collision.sweep import is_swept, over_near_pairs

__all__ = [
    "FAR",
    "CollisionShape",
    "ContactPoint",
    "Pair",
    "PairGroup",
    "PlacedShape",
    "StoredPlacements",
    "bounding_volumes_overlap",
    "candidate_count",
    "candidate_pairs",
    "contact_frame",
    "contact_points",
    "contact_points_between",
    "if_volumes_overlap",
    "is_fixed_to_world",
    "is_swept",
    "over_near_pairs",
    "pair_groups",
    "passes_broad_phase",
]

"""Which shapes may touch, and where they do: geometry only, no forces.

    pairs = candidate_pairs(mechanism)         # a tuple of Pair, fixed for a mechanism: MuJoCo's filters, parameters mixed
    for pair in pairs:
        for gap in gaps(pair, poses):          # poses: `link_poses(tree, q)`; a tuple of Gap
            ...

A `Pair` has two `Solid`s (a, b: shape, sizes, Place on a link, and body name), and the numbers of their contact:
`condim`, `friction` (5: sliding twice, torsional, rolling twice), `solref`, `solreffriction`, `solimp`, `margin`, `gap`.
The a-side is the one that MuJoCo calls geom 0. `pair.count` is how many gaps `gaps` gives, always the same number, so
that it can be traced.

A `Gap` is (distance, position, frame): the signed distance [m] (negative when shapes overlap), the point midway
between the two surfaces, in the world, and the contact frame (3, 3): its first ROW is the normal, from a to b, the
other rows the tangents, as MuJoCo makes them. A gap that is not there at all (the fourth corner of a box that stands
on an edge) has the distance FAR, with finite position and frame. A contact acts when `distance < pair.margin`.
The velocity of b against a at the contact, in contact axes, is frame @ (J_b - J_a) v, with the Jacobians of the point
`position` fixed to either body.

`gaps` works on every scalar. `near(pair, poses)` is false where the pair cannot touch. `contact_points_between` and `bounding_spheres_overlap` are the same for shapes
already placed in the world, as those of a `Family` are: pairs alike but for their numbers, gone through in one loop.
"""

from zwang.collision.broad_phase import bounding_spheres_overlap, passes_broad_phase
from zwang.collision.contact_point import FAR, ContactPoint, contact_frame
from zwang.collision.narrow_phase import contact_points, contact_points_between
from zwang.collision.pair_groups import PairGroup, StoredPlacements, is_fixed_to_world, pair_groups
from zwang.collision.pairs import CollisionShape, Pair, candidate_pairs
from zwang.collision.shapes import PlacedShape

__all__ = [
    "FAR",
    "PairGroup",
    "ContactPoint",
    "Pair",
    "PlacedShape",
    "CollisionShape",
    "StoredPlacements",
    "bounding_spheres_overlap",
    "candidate_pairs",
    "contact_frame",
    "pair_groups",
    "contact_points",
    "contact_points_between",
    "passes_broad_phase",
    "is_fixed_to_world",
]

"""Kinematics of the links as arrays, which loops over contacts read by index."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from zwang.collision import Pair, PairGroup, StoredPlacements
from zwang.constraint.contact import is_hard_contact, link_screws_at
from zwang.constraint.contact_bias import LinkMotion, link_motion
from zwang.constraint.context import RowContext
from zwang.constraint.rows import JointScrews
from zwang.mechanism.tree import WORLD, Tree
from zwang.scalar import MutableArray, mutable_array
from zwang.scalar.stacked_pytree import StackedPytree


class GroupKinematics(NamedTuple):
    """Arrays that the pairs read by index: placements of the shapes; motion subspaces `screws` (nv, 6) of
    the velocities; spatial velocities (links + 1, 6) of the links, the world's last; v (nv,); spatial_rates:
    of the spatial velocities at constant v, where there are hard contacts. accelerations: J a of the links
    with the free acceleration of the context.
    """

    shapes: StoredPlacements
    screws: MutableArray
    spatial_velocities: MutableArray
    v: MutableArray
    spatial_rates: MutableArray | None = None
    accelerations: MutableArray | None = None

    def motion(self, link: Any) -> LinkMotion:
        """The motion of the link with this index."""
        assert self.spatial_rates is not None
        velocity, rate = (
            np.array([values[link, e] for e in range(6)])
            for values in (self.spatial_velocities, self.spatial_rates)
        )
        return LinkMotion(velocity, rate)

    def relative_velocity(self, links: tuple[Any, Any]) -> np.ndarray:
        """Spatial velocity (6,) of the second of two links, by their indices, relative to the first."""
        at_rest = self.spatial_velocities.shape[0] - 1
        V_a, V_b = (
            np.zeros(6, int)
            if isinstance(link, int) and link == at_rest
            else np.array([self.spatial_velocities[link, e] for e in range(6)])
            for link in links
        )
        return V_b - V_a


def group_kinematics(context: RowContext, pairs: Sequence[Pair]) -> GroupKinematics:
    """The kinematics of these pairs as arrays."""
    screws, rates, accelerations = link_screws_at(context), None, None
    if any(map(is_hard_contact, pairs)):
        if context.free_acceleration is not None:
            accelerations = spatial_motions(screws, context.free_acceleration)
        links = range(len(context.mechanism.tree.links))
        rates = mutable_array([*(link_motion(context.kinematics, i).rate for i in links), np.zeros(6)])
    return GroupKinematics(
        StoredPlacements(pairs, context.poses),
        mutable_array([column for S in screws.columns for column in S.T]),
        spatial_motions(screws, context.v),
        mutable_array(context.v),
        rates,
        accelerations,
    )


def spatial_motions(screws: JointScrews, x: Any) -> MutableArray:
    """The array (links + 1, 6) of the spatial velocities, or accelerations, J x of all links, the world's
    last.
    """
    return mutable_array([*screws.spatial_velocities(np.array(x)), np.zeros(6)])


def links_of(tree: Tree, group: PairGroup) -> StackedPytree:
    """The links (a, b) of every pair as indices of spatial velocities; that of the world, at rest, is the
    last.
    """
    both = [(pair.a.placement.link, pair.b.placement.link) for pair in group.pairs]
    return StackedPytree([tuple(len(tree.links) if i == WORLD else i for i in links) for links in both])

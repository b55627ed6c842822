"""The virtual power of the forces of all soft contacts at known accelerations, contact by contact.

The rows of a contact are a function of the poses of two bodies, of their relative velocity, and of their
relative acceleration. Their forces f at a residual J a - aref have the power f^T J v for virtual velocities v
of the mechanism. No row is stored, so that a reverse sweep visits each contact once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from zwang.collision import ContactPoint, Pair, PairGroup, over_near_pairs
from zwang.constraint.contact import link_screws_at, pair_inverse_weights
from zwang.constraint.contact_groups import (
    contact_groups,
    in_contact_axes,
    over_active_contacts,
    rows_by_contact_velocity,
    surface_velocity_in,
)
from zwang.constraint.context import RowContext
from zwang.constraint.group_kinematics import GroupKinematics, group_kinematics, links_of, spatial_motions
from zwang.scalar.stacked_pytree import StackedPytree
from zwang.solver.cones import forces_of_rows


def contact_power(context: RowContext, pairs: Sequence[Pair], a: Any, v: Any) -> Any:
    """The power of the forces of all contacts at the accelerations a (nv,) for virtual velocities v (nv,).

    All pairs must be soft.
    """
    kinematics, screws = group_kinematics(context, pairs), link_screws_at(context)
    motions = [kinematics._replace(spatial_velocities=spatial_motions(screws, x)) for x in (a, v)]
    power: Any = 0.0
    for group in contact_groups(pairs, [0] * len(pairs)):
        power = _with_group(context, group, (kinematics, *motions), power)
    return power


def _with_group(
    context: RowContext, group: PairGroup, kinematics: tuple[GroupKinematics, ...], power: Any
) -> Any:
    """The power with that of the contacts of a pair-type group. kinematics: with the spatial velocities, the
    spatial accelerations, and the virtual spatial velocities.
    """
    links, at = links_of(context.mechanism.tree, group), kinematics[0]
    weights = StackedPytree(pair_inverse_weights(context, group.pairs))

    def visit(number: Any, power: Any) -> Any:
        def add(power: Any, k: Any, pair: Pair, point: ContactPoint) -> Any:
            motions = (own.relative_velocity(links[number]) for own in kinematics)
            V, A, virtual = (in_contact_axes(point, motion) for motion in motions)
            surface = surface_velocity_in(group, at, number, point)
            rows = rows_by_contact_velocity(context, pair, point, V, weights[number], surface)
            force = forces_of_rows(rows, rows.J @ A - rows.aref)
            return power + force @ (rows.J @ virtual)

        return over_active_contacts(context, group, at, number, add, power)

    return over_near_pairs(group, at.shapes, visit, power)

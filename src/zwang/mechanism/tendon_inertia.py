"""The inertia of tendons with armature, whose path is resolved to the links of a tree.

A tendon of length l(q) with the armature a adds the kinetic energy a/2 (dl/dt)^2. With J = dl/dq, this adds
a J^T J to the mass matrix, and a J^T (Jdot v) to the bias forces. The mass matrix keeps the sparsity of the
tree if all joints that change the length are on one branch.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from zwang.errors import DescriptionError
from zwang.mechanism.joint_index import JointIndex
from zwang.mechanism.tendon_elements import Tendon
from zwang.mechanism.tendon_paths import path_segments
from zwang.mechanism.tree import Placement, Tree
from zwang.scalar import is_zero


@dataclass(frozen=True)
class TendonSegment:
    """A straight segment of a spatial tendon between frames fixed to two links, and its branch's divisor."""

    first: Placement
    last: Placement
    divisor: Any


@dataclass(frozen=True)
class TendonInertia:
    """The inertia of one tendon.

    name: of the tendon. armature [kg, or kg m^2 for the angle of a fixed tendon]. coefficients: ((index of a
    velocity, dl/dq), ...) of a fixed tendon. segments: of a spatial tendon.
    """

    name: str
    armature: Any
    coefficients: tuple[tuple[int, Any], ...]
    segments: tuple[TendonSegment, ...]


def tendon_inertias(
    tree: Tree, tendons: Sequence[Tendon], joints: Mapping[str, JointIndex]
) -> tuple[TendonInertia, ...]:
    """The inertias of the tendons with armature.

    Raises DescriptionError for a tendon whose length is changed by joints on different branches of the tree.
    """
    found = []
    for tendon in tendons:
        if is_zero(tendon.armature):
            continue
        coefficients = tuple((joints[name].v.start, c) for name, c in tendon.joints)
        inertia = TendonInertia(tendon.name, tendon.armature, coefficients, _segments(tree, tendon))
        if not _is_on_one_branch(tree, inertia):
            raise DescriptionError(
                f"armature of tendon {tendon.name!r} is {tendon.armature}, and joints on different branches "
                "of the tree change its length; a tendon with armature must lie along one branch"
            )
        found.append(inertia)
    return tuple(found)


def _segments(tree: Tree, tendon: Tendon) -> tuple[TendonSegment, ...]:
    """The segments of a spatial tendon whose ends are fixed to different links."""
    placed = [
        TendonSegment(tree.placement(segment.first), tree.placement(segment.last), segment.divisor)
        for segment in path_segments(tree, tendon)
    ]
    return tuple(segment for segment in placed if segment.first.link != segment.last.link)


def _is_on_one_branch(tree: Tree, inertia: TendonInertia) -> bool:
    """Whether all links whose joints change the length are on the path from the world to one of them."""
    moved = {k for k, link in enumerate(tree.links) for v, _ in inertia.coefficients if link.v.start == v}
    for segment in inertia.segments:
        moved |= set(tree.path(segment.first.link)) ^ set(tree.path(segment.last.link))
    return not moved or moved <= set(tree.path(max(moved)))

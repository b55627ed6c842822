"""The loop constraints that affect the motion of given frames."""

from __future__ import annotations

from typing import Any

from zwang.constraint.hard import acting_constraints
from zwang.constraint.inverse_weights import inverse_weights
from zwang.mechanism.constraints import Connect, Distance, NoSideSlip, Rolling, Weld
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling
from zwang.robot.holonomic_constraints import HolonomicConstraint, checked_holonomic, compared_joints
from zwang.robot.independent_coordinates import determining_couplings
from zwang.robot.inverse_kinematics.levenberg_marquardt import LoopConstraints


def loop_constraints_for(
    mechanism: Mechanism, frames: tuple[str, ...]
) -> tuple[LoopConstraints | None, tuple[str, ...]]:
    """The constraints that affect these frames, and the names of all frames and bodies concerned.

    A constraint affects a frame if it shares a joint, or one coupled to it, with the path to the frame, or
    with another constraint that does. The couplings that determine the dependent coordinates are not
    included; they are satisfied by the choice of coordinates. Raises DescriptionError for a constraint that
    is not holonomic.
    """
    determining = determining_couplings(mechanism)
    coupled = [
        {mechanism.tree.placement(index.body).link for index in compared_joints(mechanism, c)}
        for c in determining
    ]
    waiting = [c for c in acting_constraints(mechanism) if c not in determining]
    bodies = list(frames)
    found: list[HolonomicConstraint] = []
    moving = _with_coupled(_links(mechanism, frames), coupled)
    while connected := [c for c in waiting if _links(mechanism, _attachments(mechanism, c)) & moving]:
        found += [checked_holonomic(c) for c in connected]
        waiting = [c for c in waiting if c not in connected]
        bodies += [body for c in connected for body in _attachments(mechanism, c)]
        moving = _with_coupled(_links(mechanism, tuple(bodies)), coupled)
    if not found:
        return None, tuple(bodies)
    return LoopConstraints(mechanism, tuple(found), inverse_weights(mechanism)), tuple(bodies)


def _attachments(mechanism: Mechanism, constraint: Any) -> tuple[str, ...]:
    """The frames and bodies that a constraint connects."""
    if isinstance(constraint, Connect | Weld | Distance):
        return tuple(end if isinstance(end, str) else end[0] for end in (constraint.a, constraint.b))
    if isinstance(constraint, NoSideSlip | Rolling):
        return constraint.body, constraint.on
    joints = tuple(index.body for index in compared_joints(mechanism, constraint))
    if isinstance(constraint, TendonCoupling):
        ends = {constraint.tendon, constraint.to}
        tendons = [t for t in mechanism.tendons if t.name in ends]
        return (*joints, *(name for t in tendons for name in t.path if name is not None))
    return joints


def _with_coupled(links: set[int], coupled: list[set[int]]) -> set[int]:
    """The links, and those whose joints are coupled to theirs."""
    found = set(links)
    while more := [pair for pair in coupled if pair & found and not pair <= found]:
        found |= set().union(*more)
    return found


def _links(mechanism: Mechanism, bodies: tuple[str, ...]) -> set[int]:
    """The links on the paths from the world to these bodies."""
    tree = mechanism.tree
    return {link for body in bodies for link in tree.path(tree.placement(body).link)}

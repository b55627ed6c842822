"""The loop constraints that affect the motion of given frames."""

from __future__ import annotations

from zwang.constraint.inverse_weights import inverse_weights
from zwang.mechanism.constraints import Connect, Distance, Weld
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tendon_elements import TendonCoupling
from zwang.robot.inverse_kinematics.levenberg_marquardt import LoopConstraint, LoopConstraints

LOOPS = (Connect, Weld, Distance, TendonCoupling)


def loop_constraints_for(
    mechanism: Mechanism, frames: tuple[str, ...]
) -> tuple[LoopConstraints | None, tuple[str, ...]]:
    """The loop constraints that affect these frames, and the names of all frames and bodies concerned.

    A loop constraint affects a frame if it shares a joint with the path to the frame, or with another loop
    constraint that does. Joint couplings are not included; they are satisfied by the choice of coordinates.
    """
    waiting = [c for c in mechanism.constraints if isinstance(c, LOOPS)]
    bodies = list(frames)
    found: list[LoopConstraint] = []
    moving = _links(mechanism, frames)
    while connected := [c for c in waiting if _links(mechanism, _attachments(mechanism, c)) & moving]:
        found += connected
        waiting = [c for c in waiting if c not in connected]
        bodies += [body for c in connected for body in _attachments(mechanism, c)]
        moving = _links(mechanism, tuple(bodies))
    if not found:
        return None, tuple(bodies)
    return LoopConstraints(mechanism, tuple(found), inverse_weights(mechanism)), tuple(bodies)


def _attachments(mechanism: Mechanism, constraint: LoopConstraint) -> tuple[str, ...]:
    """The frames and bodies that a constraint connects."""
    if isinstance(constraint, TendonCoupling):
        names = {constraint.tendon, constraint.to}
        tendons = [t for t in mechanism.tendons if t.name in names]
        joints = [mechanism.joint(name).body for t in tendons for name, _ in t.joints]
        return (*joints, *(name for t in tendons for name in t.path if name is not None))
    return tuple(end if isinstance(end, str) else end[0] for end in (constraint.a, constraint.b))


def _links(mechanism: Mechanism, bodies: tuple[str, ...]) -> set[int]:
    """The links on the paths from the world to these bodies."""
    tree = mechanism.tree
    return {link for body in bodies for link in tree.path(tree.placement(body).link)}

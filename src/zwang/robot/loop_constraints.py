"""Which loops and couplings a task on some frames has to respect."""

from __future__ import annotations

from typing import Any

from zwang.constraint.inverse_weights import inverse_weights
from zwang.mechanism.constraints import Connect, Distance, TendonCoupling, Weld
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.levenberg_marquardt import LoopConstraints

LOOPS = (Connect, Weld, Distance, TendonCoupling)


def loop_constraints_for(mechanism: Mechanism, frames: tuple[str, ...]) -> tuple[LoopConstraints | None, tuple[str, ...]]:
    """The loops that share joints with the ways to these frames, or with another such loop; and all bodies concerned.

    Couples of joints are none of them: they are solved by choosing coordinates.
    """
    waiting = [c for c in mechanism.constraints if isinstance(c, LOOPS)]
    bodies = list(frames)
    found: list[Any] = []
    moving = _links(mechanism, frames)
    while near := [c for c in waiting if _links(mechanism, _ends(mechanism, c)) & moving]:
        found += near
        waiting = [c for c in waiting if c not in near]
        bodies += [body for c in near for body in _ends(mechanism, c)]
        moving = _links(mechanism, tuple(bodies))
    if not found:
        return None, tuple(bodies)
    return LoopConstraints(mechanism, tuple(found), inverse_weights(mechanism)), tuple(bodies)


def _ends(mechanism: Mechanism, constraint: Any) -> tuple[str, ...]:
    if isinstance(constraint, TendonCoupling):
        names = {constraint.tendon, constraint.to}
        tendons = [t for t in mechanism.tendons if t.name in names]
        joints = [mechanism.joint(name).body for t in tendons for name, _ in t.joints]
        return (*joints, *(name for t in tendons for name in t.path if name is not None))
    return tuple(end if isinstance(end, str) else end[0] for end in (constraint.a, constraint.b))


def _links(mechanism: Mechanism, bodies: tuple[str, ...]) -> set[int]:
    tree = mechanism.tree
    return {link for body in bodies for link in tree.path(tree.place(body).link)}

"""Where MuJoCo is not exact: the reader refuses what the writer must not write."""

from __future__ import annotations

from collections.abc import Sequence

WORLD_TORQUE = "MuJoCo refers the torque at a site of the world to several points"


def has_joint_after_ball(is_ball: Sequence[bool]) -> bool:
    """Whether a body has another joint after a ball joint; MuJoCo lets these be slide joints alone.

    is_ball: for each joint of the body in order. A slide turns with the ball; MuJoCo 4 leaves this out of the
    derivative of the Jacobian of the connect and weld constraints that move the body.
    """
    return any(is_ball) and not is_ball[-1]


def is_torque_of_world(kind: str, body: str) -> bool:
    """Whether a sensor of this kind at a frame of this body is a torque sensor at the world."""
    return kind == "torque" and body == "world"

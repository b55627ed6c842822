"""Essential speeds of an embedding: those that a user names, as rows S(q) of u = S v."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from zwang.constraint.hard import all_velocity_level_rows
from zwang.errors import DescriptionError, ParameterError, UnknownNameError
from zwang.kinematics.configuration import integrate_configuration
from zwang.kinematics.jacobians import placement_jacobian
from zwang.kinematics.poses import link_poses, placement_pose
from zwang.mechanism.constraints import PointSpeed
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Placement
from zwang.scalar import symbols_of

IndependentVelocity = str | PointSpeed
AUTOMATIC: tuple[IndependentVelocity, ...] = ()
RANK, NUDGE = 1e-8, 0.01  # of constraint rows; how far off a state looks at whether it is a singular one


def independent_velocities(mechanism: Mechanism, embedding: Any) -> tuple[IndependentVelocity, ...] | None:
    """None for no embedding (False or None), `AUTOMATIC` for a choice made at each step (True), or the speeds given, checked.

    Speeds are a mechanism's own by name, or velocities of points, `PointSpeed`. Raises UnknownNameError or DescriptionError.
    """
    if embedding is None or isinstance(embedding, bool):
        return AUTOMATIC if embedding else None
    if isinstance(embedding, str | PointSpeed):
        embedding = (embedding,)
    if not isinstance(embedding, Sequence):
        raise DescriptionError(
            f"embedding is {embedding!r}; it is True (essential speeds chosen at each step), False (constraint forces), or a list of speeds"
        )
    for speed in embedding:
        if isinstance(speed, PointSpeed):
            mechanism.tree.place(speed.body)
            _check_numbers(speed)
        elif speed not in mechanism.speed_names:
            raise UnknownNameError("speed", speed, mechanism.speed_names)
    if not embedding:
        raise DescriptionError(
            "embedding is an empty list; give essential speeds, or True to have them chosen at each step"
        )
    return tuple(embedding)


def _check_numbers(speed: PointSpeed) -> None:
    unknown = sorted({str(s) for x in (*speed.point, *speed.direction) for s in symbols_of(x)})
    if unknown:
        raise ParameterError(
            f"the essential speed {speed.name!r} has the symbols {', '.join(unknown)} in its point or direction; a motion needs numbers there"
        )


def check_velocity_count(mechanism: Mechanism, speeds: Sequence[IndependentVelocity], q: Any, t: float = 0.0) -> None:
    """Raise DescriptionError where there are more or fewer essential speeds than freedoms, at q and anywhere near it; on floats."""
    nudged = integrate_configuration(mechanism.tree, q, NUDGE * np.cos(np.arange(1, mechanism.nv + 1)), 1.0)
    found = set()
    for state in (q, nudged):
        A = np.asarray(all_velocity_level_rows(mechanism, state, np.zeros(mechanism.nv), t).A, dtype=float)
        found.add(mechanism.nv - (int(np.linalg.matrix_rank(A, tol=RANK)) if A.size else 0))
    if len(speeds) not in found:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has {min(found)} freedoms ({mechanism.nv} speeds less what exact constraints fix), and "
            f"{len(speeds)} essential speeds are given; give as many, or embedding=True to have them chosen at each step"
        )


def independent_velocity_rows(mechanism: Mechanism, speeds: Sequence[IndependentVelocity], q: Any) -> np.ndarray:
    """S (m, nv) of u = S v at q."""
    return np.array([velocity_row(mechanism, speed, q) for speed in speeds])


def velocity_row(mechanism: Mechanism, speed: IndependentVelocity, q: Any) -> np.ndarray:
    """The row (nv,) that gives an essential speed from v."""
    if isinstance(speed, str):
        return np.array([1 if name == speed else 0 for name in mechanism.speed_names])
    tree, poses = mechanism.tree, link_poses(mechanism.tree, q)
    base = tree.place(speed.body)
    place = Placement(base.link, base.R, base.p + base.R @ np.array(speed.point))
    J = placement_jacobian(tree, poses, place)[:3]
    d = np.array(speed.direction)
    return (placement_pose(poses, place).R @ d if speed.axes == "body" else d) @ J

"""Independent velocities u = S(q) v of a coordinate reduction, as the user names them."""

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
RANK_TOLERANCE = 1e-8  # of the constraint rows
PERTURBATION = 0.01  # of the state at which the rank is determined again, in case the first is singular


def independent_velocities(mechanism: Mechanism, selection: Any) -> tuple[IndependentVelocity, ...] | None:
    """Validated selection of independent velocities.

    selection: None or False for no coordinate reduction (the result is None), True for a selection made at
    each step (the result is `AUTOMATIC`), or a sequence of velocities: names of the mechanism's generalised
    velocities, or velocities of points, `PointSpeed`. Raises UnknownNameError for a name, DescriptionError
    for another selection, and ParameterError for symbols in a point or direction.
    """
    if selection is None or isinstance(selection, bool):
        return AUTOMATIC if selection else None
    if isinstance(selection, str | PointSpeed):
        selection = (selection,)
    if not isinstance(selection, Sequence):
        raise DescriptionError(
            f"coordinate_reduction is {selection!r}; it must be True (independent velocities chosen at each "
            "step), "
            "False (constraint forces), or a list of velocities"
        )
    for speed in selection:
        if isinstance(speed, PointSpeed):
            mechanism.tree.placement(speed.body)
            _check_numbers(speed)
        elif speed not in mechanism.speed_names:
            raise UnknownNameError("speed", speed, mechanism.speed_names)
    if not selection:
        raise DescriptionError(
            "coordinate_reduction is an empty list; give independent velocities, or True to have them chosen "
            "at each "
            "step"
        )
    return tuple(selection)


def _check_numbers(speed: PointSpeed) -> None:
    """Raise ParameterError where a point or direction has symbols."""
    unknown = sorted({str(s) for x in (*speed.point, *speed.direction) for s in symbols_of(x)})
    if unknown:
        raise ParameterError(
            f"the independent velocity {speed.name!r} has the symbols {', '.join(unknown)} in its point or "
            "direction; "
            "a simulation needs numbers there"
        )


def check_velocity_count(
    mechanism: Mechanism, speeds: Sequence[IndependentVelocity], q: Any, t: float = 0.0
) -> None:
    """Raise DescriptionError where the independent velocities are not as many as the degrees of freedom; on
    floats.

    The degrees of freedom are determined at q and at a nearby state, in case one of them is singular.
    """
    perturbed = integrate_configuration(
        mechanism.tree, q, PERTURBATION * np.cos(np.arange(1, mechanism.nv + 1)), 1.0
    )
    found = set()
    for state in (q, perturbed):
        A = np.asarray(all_velocity_level_rows(mechanism, state, np.zeros(mechanism.nv), t).A, dtype=float)
        found.add(mechanism.nv - (int(np.linalg.matrix_rank(A, tol=RANK_TOLERANCE)) if A.size else 0))
    if len(speeds) not in found:
        raise DescriptionError(
            f"mechanism {mechanism.name!r} has {min(found)} degrees of freedom ({mechanism.nv} velocities "
            "less the "
            f"rank of the hard constraints), and {len(speeds)} independent velocities are given; give as "
            "many, or "
            "coordinate_reduction=True to have them chosen at each step"
        )


def independent_velocity_rows(
    mechanism: Mechanism, speeds: Sequence[IndependentVelocity], q: Any
) -> np.ndarray:
    """S (m, nv) of u = S v at q."""
    return np.array([velocity_row(mechanism, speed, q) for speed in speeds])


def velocity_row(mechanism: Mechanism, speed: IndependentVelocity, q: Any) -> np.ndarray:
    """The row (nv,) that gives one independent velocity from v."""
    if isinstance(speed, str):
        return np.array([1 if name == speed else 0 for name in mechanism.speed_names])
    tree, poses = mechanism.tree, link_poses(mechanism.tree, q)
    base = tree.placement(speed.body)
    placement = Placement(base.link, base.R, base.p + base.R @ np.array(speed.point))
    J = placement_jacobian(tree, poses, placement)[:3]
    d = np.array(speed.direction)
    return (placement_pose(poses, placement).R @ d if speed.axes == "body" else d) @ J

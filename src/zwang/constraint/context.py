"""Mechanism, state and settings from which constraint rows are built."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.norms import norm
from zwang.constraint.inverse_weights import InverseWeights
from zwang.constraint.inverse_weights import inverse_weights as inverse_weights_at_home
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose
from zwang.mechanism.mechanism import Mechanism


class RowContext(NamedTuple):
    """A mechanism at the state (q, v), with the quantities that all rows need.

    kinematics: of the links at (q, v). timestep [s]: the step size h that softness and hard inequalities
    use. settling_time [s]: of the stabilisation of hard equalities, or None for none.
    time [s]: the t of formulas. approaching_active: whether hard contacts that approach faster than
    `resting_speed` constrain the acceleration; where they do not, they close by an impact. impulsive: the
    rows are those of an impact, whose unknown is the change of v; see `constraint.impact`. widening [m, rad]:
    added to the distances at which limits and soft contacts become active.
    """

    mechanism: Mechanism
    q: np.ndarray
    v: np.ndarray
    kinematics: Kinematics
    inverse_weights: InverseWeights
    timestep: Any
    settling_time: Any = None
    time: Any = 0
    approaching_active: Any = True
    impulsive: bool = False
    widening: Any = 0

    @property
    def resting_speed(self) -> Any:
        """The approach speed [m/s] up to which a hard contact comes to rest without an impact: |g| h.

        A rebound of this speed is shorter than two steps, so that the steps do not show it.
        """
        return resting_speed(self.mechanism, self.timestep)

    @property
    def poses(self) -> list[Pose]:
        """World poses of the links."""
        return self.kinematics.poses

    @property
    def shortest_time(self) -> Any:
        """The shortest time constant of softness [s]: two steps, unless the options disable MuJoCo's
        refsafe.
        """
        return 0 if "refsafe" in self.mechanism.options.disabled else 2 * self.timestep


def resting_speed(mechanism: Mechanism, h: Any) -> Any:
    """The approach speed |g| h [m/s] up to which a hard contact comes to rest without an impact."""
    return h * norm(mechanism.gravity)


def row_context(
    mechanism: Mechanism,
    kinematics: Kinematics,
    *,
    inverse_weights: InverseWeights | None = None,
    timestep: Any = None,
    settling_time: Any = None,
    time: Any = 0,
    approaching_active: Any = True,
    impulsive: bool = False,
    widening: Any = 0,
) -> RowContext:
    """Context at the state (q, v) of `kinematics`.

    inverse_weights: those of the mechanism, computed here by default. timestep [s]: by default that of the
    options.
    """
    step = mechanism.options.timestep if timestep is None else timestep
    return RowContext(
        mechanism,
        kinematics.q,
        kinematics.v,
        kinematics.with_computed_poses(),
        inverse_weights_at_home(mechanism) if inverse_weights is None else inverse_weights,
        step,
        settling_time,
        time,
        approaching_active,
        impulsive,
        widening,
    )

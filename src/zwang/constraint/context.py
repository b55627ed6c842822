"""What the makers of rows need to know of a mechanism at one instant."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.constraint.inverse_weights import InverseWeights, inverse_weights
from zwang.kinematics.poses import Pose, link_poses
from zwang.mechanism.mechanism import Mechanism


class RowContext(NamedTuple):
    """A mechanism at q and v. timestep [s]: the step that softness and hard inequalities look ahead.

    settling_time [s]: of the stabilisation of hard equalities, or None for none. time [s]: the t of formulas.
    """

    mechanism: Mechanism
    q: np.ndarray
    v: np.ndarray
    poses: list[Pose]
    weights: InverseWeights
    timestep: Any
    settling_time: Any = None
    time: Any = 0

    @property
    def shortest_time(self) -> Any:
        """The shortest time constant of softness: two steps, unless the options disable MuJoCo's refsafe."""
        return 0 if "refsafe" in self.mechanism.options.disabled else 2 * self.timestep


def row_context(
    mechanism: Mechanism,
    q: Any,
    v: Any,
    *,
    known: InverseWeights | None = None,
    timestep: Any = None,
    settling_time: Any = None,
    time: Any = 0,
) -> RowContext:
    """The instant at q (nq,) and v (nv,); `known` weights save working them out again."""
    step = mechanism.options.timestep if timestep is None else timestep
    poses = link_poses(mechanism.tree, q)
    return RowContext(
        mechanism, q, v, poses, inverse_weights(mechanism) if known is None else known, step, settling_time, time
    )

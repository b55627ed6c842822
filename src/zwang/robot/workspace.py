"""Where a frame can be: by sampling the joints."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zwang.algebra.convex_hull import convex_hull
from zwang.api import validation
from zwang.errors import DescriptionError
from zwang.kinematics.poses import frame_pose
from zwang.mechanism.declared import checked_arguments
from zwang.mechanism.mechanism import Mechanism
from zwang.robot.ik_functions import shaped
from zwang.robot.manipulability import Manipulability, manipulability
from zwang.robot.sampling import random_configurations

MOST_SAMPLES = 10_000_000


@dataclass(frozen=True)
class Workspace:
    """Random configurations q (N, nq) and the frame's poses there: positions (N, 3) [m], rotations (N, 3, 3)."""

    mechanism: Mechanism
    frame: str
    q: np.ndarray
    positions: np.ndarray
    rotations: np.ndarray

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The smallest box (lower, upper) around the positions [m]."""
        return self.positions.min(axis=0), self.positions.max(axis=0)

    def reach(self, centre: Any = (0, 0, 0)) -> tuple[float, float]:
        """The smallest and the largest distance from a point that was found [m]."""
        distances = np.linalg.norm(self.positions - validation.array(centre, "centre"), axis=1)
        return float(distances.min()), float(distances.max())

    @cached_property
    def hull_volume(self) -> float:
        """The volume of the convex hull [m^3]; of a planar workspace 0. An upper bound of what can be reached, but for the sampling."""
        return convex_hull(self.positions).volume

    def manipulability(self, **options: Any) -> Manipulability:
        """The manipulability at all samples; options as of `manipulability`."""
        return manipulability(self.mechanism, self.q, self.frame, **options)


@checked_arguments()
def workspace(mechanism: Mechanism, frame: str, *, samples: int = 10_000, seed: int = 0) -> Workspace:
    """Poses of a frame at random joints within their limits, uniform in the joints (not in space).

    Joints without limits turn by a whole turn and slide 1 m either way. Raises UnknownNameError.
    """
    m = validation.numeric_mechanism(mechanism)
    m.tree.place(frame)
    if not 1 <= samples <= MOST_SAMPLES or seed < 0:
        raise DescriptionError(
            f"samples is {samples} and seed is {seed}; give 1 to {MOST_SAMPLES:,} samples, and a seed that is not negative"
        )
    q = random_configurations(m, samples, seed)
    R, p = shaped(lambda x: tuple(frame_pose(m.tree, x, frame)), {"q": (m.nq,)})(q)
    return Workspace(m, frame, q, p, R)

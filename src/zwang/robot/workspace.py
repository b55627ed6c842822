"""The workspace of a frame, by sampling the joint coordinates."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from zwang.algebra.convex_hull import convex_hull
from zwang.api.arguments import validation
from zwang.errors import DescriptionError
from zwang.kinematics.poses import frame_pose
from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.type_validation import validated_arguments
from zwang.robot.batch_functions import compiled_over_batch
from zwang.robot.loop_constraints import loop_constraints_for
from zwang.robot.manipulability import Manipulability, manipulability
from zwang.robot.sampling import random_configurations

LARGEST_SAMPLE_COUNT = 10_000_000


@dataclass(frozen=True)
class Workspace:
    """A sampled workspace: random configurations and the poses of the frame there.

    q (N, nq): the configurations. positions (N, 3) [m] and rotations (N, 3, 3): the frame in the world.
    """

    mechanism: Mechanism
    frame: str
    q: np.ndarray
    positions: np.ndarray
    rotations: np.ndarray

    def __repr__(self) -> str:
        sides = zip("xyz", *self.bounds, strict=True)
        box = ", ".join(f"{axis} {lower:.4g} ... {upper:.4g}" for axis, lower, upper in sides)
        return f"<workspace of {self.frame!r}: {len(self.q):,} samples, {box} m>"

    @property
    def bounds(self) -> tuple[np.ndarray, np.ndarray]:
        """The axis-aligned bounding box (lower, upper) of the positions, each (3,) [m]."""
        return self.positions.min(axis=0), self.positions.max(axis=0)

    def reach(self, centre: Any = (0, 0, 0)) -> tuple[float, float]:
        """The smallest and the largest distance [m] of the sampled positions from a point (3,) [m]."""
        distances = np.linalg.norm(self.positions - validation.real_values(centre, "centre"), axis=1)
        return float(distances.min()), float(distances.max())

    @cached_property
    def hull_volume(self) -> float:
        """The volume [m^3] of the convex hull of the positions; 0 for a planar workspace.

        Apart from the sampling error it is an upper bound of the volume of the workspace.
        """
        return convex_hull(self.positions).volume

    def manipulability(self, **options: Any) -> Manipulability:
        """The manipulability at all samples; options as in `manipulability`."""
        return manipulability(self.mechanism, self.q, self.frame, **options)


@validated_arguments()
def workspace(mechanism: Mechanism, frame: str, *, samples: int = 10_000, seed: int = 0) -> Workspace:
    """The workspace of a frame, sampled uniformly in the joint coordinates (not in space).

    frame: name of a frame or body. samples: their number, default 10,000. seed: of the random numbers,
    default 0. Joints with limits are sampled between them, ball joints uniformly among the rotations within
    their largest angle; others rotate by a whole revolution or move 1 m in either direction. Joint couplings
    are satisfied.
    Raises UnknownNameError for an unknown frame, and DescriptionError for an invalid number of samples or
    seed, and for a frame whose joints a closed loop or a formula restricts.
    """
    m = validation.numeric_mechanism(mechanism)
    m.tree.placement(frame)
    if not 1 <= samples <= LARGEST_SAMPLE_COUNT or seed < 0:
        raise DescriptionError(
            f"samples is {samples} and seed is {seed}; give 1 to {LARGEST_SAMPLE_COUNT:,} samples and a seed "
            "that is not negative"
        )
    loops, _ = loop_constraints_for(m, (frame,))
    if loops is not None:
        named = ", ".join(f"{type(c).__name__} {c.name!r}" for c in loops.constraints)
        raise DescriptionError(
            f"the joints of frame {frame!r} are restricted by {named}, which random joint coordinates do not "
            "satisfy; test positions with solve_ik, or remove them with mechanism.replace(constraints=...)"
        )
    q = random_configurations(m, samples, seed)
    R, p = compiled_over_batch(lambda x: tuple(frame_pose(m.tree, x, frame)), {"q": (m.nq,)})(q)
    return Workspace(m, frame, q, p, R)

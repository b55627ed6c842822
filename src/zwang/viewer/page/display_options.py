"""What the scene on viser's page shows beside the shapes, and what its annotations know of the scene."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from zwang.viewer.playback import Poses


@dataclass
class DisplayOptions:
    """What is shown beside the shapes.

    overlay: all worlds at the same position, the selected one opaque. arrow_scale: lengths of the arrows
    relative to the default.
    """

    names: bool = False
    frames: bool = False
    mass: bool = False
    contacts: bool = True
    constraints: bool = True
    ellipsoids: bool = False
    paths: bool = True
    contact_shapes: bool = False
    overlay: bool = False
    follow: bool = False
    arrow_scale: float = 1.0


class WorldArrangement(Protocol):
    """The worlds of a scene as the annotations need them: their models, and their poses on display."""

    models: list[dict[str, Any]]
    offsets: np.ndarray
    root: np.ndarray

    @property
    def worlds(self) -> int:
        """The number of worlds."""
        ...

    def to_display(self, poses: Poses, world: int) -> Poses:
        """Poses of a world, moved to where the world is displayed."""
        ...

"""The state in which a simulation starts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class InitialState:
    """The state of N worlds at time zero, and the values of their parameters.

    q: coordinates (N, nq) [rad, m, unit quaternions]. v: generalised velocities (N, nv) [rad/s, m/s].
    z: activations of the actuators (N, nz). params: for each symbol, by name, its values (N,).
    """

    q: np.ndarray
    v: np.ndarray
    z: np.ndarray
    params: dict[str, np.ndarray]

    @property
    def worlds(self) -> int:
        """The number of worlds."""
        return len(self.q)

    def parameters_of_world(self, world: int) -> dict[str, float]:
        """The value of each symbol in one world, by name."""
        return {name: float(values[world]) for name, values in self.params.items()}

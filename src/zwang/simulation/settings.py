"""The settings of a simulation: time steps, integrator, constraint stabilisation, recorded quantities."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from zwang.constraint.context import StepForm
from zwang.integrator.adaptive_step import Adaptive
from zwang.mechanism.constraints import PointSpeed

CoordinateReduction = bool | tuple[str | PointSpeed, ...]
"""False: constraint forces. True: independent velocities chosen at each step. A tuple: the independent
velocities.
"""


@dataclass(frozen=True)
class RecordedQuantities:
    """The derived quantities that are recorded beside the state, the control and the energies.

    frames: names of the frames whose positions are recorded. constraints: generalised forces of all
    constraints.
    forces: forces of contacts and of constraints between points. zwang: Gauss's measure Z by body.
    violations: violations and residuals of the constraints. step: how steps close hard constraints.
    reactions: wrenches of the joints. sensors: names of the sensors whose values are recorded. multipliers:
    forces of the rows of the constraints.
    """

    frames: tuple[str, ...] = ()
    constraints: bool = False
    forces: bool = False
    zwang: bool = False
    violations: bool = False
    step: StepForm = StepForm(0.0)
    reactions: bool = False
    sensors: tuple[str, ...] = ()
    multipliers: bool = False


@dataclass(frozen=True)
class SimulationSettings:
    """The settings of a simulation of duration steps * step.

    step: step size [s]. steps: number of steps. every: every k-th step is recorded, and the last one.
    integrator: name of a fixed-step method, or an error-controlled one. wanted: recorded derived quantities.
    stabilization: "projection" or "baumgarte". coordinate_reduction: see `CoordinateReduction`.
    """

    step: float
    steps: int
    every: int
    integrator: str | Adaptive
    wanted: RecordedQuantities = RecordedQuantities()
    stabilization: str = "projection"
    coordinate_reduction: CoordinateReduction = False

    @cached_property
    def samples(self) -> np.ndarray:
        """The step counts after which the state is recorded, beginning with 0."""
        regular = np.arange(0, self.steps + 1, self.every)
        return regular if regular[-1] == self.steps else np.append(regular, self.steps)

    @property
    def times(self) -> np.ndarray:
        """The recorded times [s]."""
        return self.samples * self.step

    @property
    def adaptive(self) -> Adaptive | None:
        """The error-controlled integrator, or None for one of fixed step size."""
        return self.integrator if isinstance(self.integrator, Adaptive) else None

"""The settings of a time step, which are constant during a simulation."""

from __future__ import annotations

from dataclasses import dataclass

from zwang.mechanism.mechanism import Mechanism
from zwang.mechanism.tree import Tree
from zwang.simulation.constraint_stage import ConstraintModel
from zwang.simulation.sleep_rule import SleepRule


@dataclass(frozen=True)
class StepSettings:
    """The mechanism, the step size h [s], the integrator, and what these imply.

    tree: the mechanism's tree, with an increased armature where the integrator treats constant joint damping
    implicitly. constraint_model: the constraints that act, or None for an unconstrained mechanism.
    has_impacts: whether hard contacts may close by impacts within a step. sleep: the rule of trees that may
    sleep, if there are any. continuous: whether the derivative is that of continuous time.
    """

    mechanism: Mechanism
    h: float
    integrator: str
    tree: Tree
    constraint_model: ConstraintModel | None
    has_impacts: bool = False
    sleep: SleepRule | None = None
    continuous: bool = False

    @property
    def actuator_step(self) -> float | None:
        """The size of the time step on which actuators depend [s], see `Inputs`; None in continuous time."""
        return None if self.continuous else self.h

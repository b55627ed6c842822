"""Mechanism, state and settings from which constraint rows are built."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.algebra.factorization import Factors, factor
from zwang.algebra.norms import by_precision, max_abs, norm
from zwang.constraint.inverse_weights import InverseWeights, hard_inverse_weights
from zwang.constraint.inverse_weights import inverse_weights as inverse_weights_at_home
from zwang.constraint.softness import CRITICAL_DAMPING
from zwang.dynamics.crba import crba_of
from zwang.dynamics.forward_dynamics_crba import velocity_parents
from zwang.kinematics.kinematics import Kinematics
from zwang.kinematics.poses import Pose
from zwang.mechanism.mechanism import Mechanism
from zwang.scalar import maximum

ROUNDING = 1e-10, 3e-6  # of speeds at contacts, relative to the largest generalised velocity, by precision
STABILIZATIONS = ("projection", "baumgarte")
SETTLING_STEPS = 10  # time constant of Baumgarte stabilisation, in steps


class StepForm(NamedTuple):
    """How a step closes hard constraints.

    size [s]: the step size h, which softness and hard inequalities use. stabilization: of hard equalities, by
    coordinate "projection" after each step, or by "baumgarte" terms in their reference accelerations.
    multistage: whether the integrator evaluates the rows several times in a step, so that the velocity at its
    end cannot be prescribed. continuous: whether it integrates the dynamics of continuous time, with steps of
    its own choice. without_impacts: whether contacts that strike are left out, see `for_forces`.
    """

    size: Any
    stabilization: str = "projection"
    multistage: bool = False
    continuous: bool = False
    without_impacts: bool = False

    @property
    def settling_time(self) -> Any:
        """The time constant of Baumgarte stabilisation [s]; None for coordinate projection."""
        return SETTLING_STEPS * self.size if self.stabilization == "baumgarte" else None

    @property
    def actuator_step(self) -> Any | None:
        """The size of the time step on which actuators depend [s], see `Inputs`; None in continuous time."""
        return None if self.continuous else self.size

    @property
    def for_forces(self) -> StepForm:
        """The form for forces at the beginning of a step, without those of hard contacts that strike within
        it: that approach faster than the forces and the curvature of the surfaces explain, see `RowContext`.
        Only steps of fixed size have impacts.
        """
        return self if self.continuous else self._replace(without_impacts=True)

    @property
    def closing_damping(self) -> Any:
        """The damping with which hard limits and contacts close, see `hard_softness_rows`."""
        return CRITICAL_DAMPING if self.multistage else 1


class RowContext(NamedTuple):
    """A mechanism at the state (q, v), with the quantities that all rows need.

    kinematics: of the links at (q, v). time [s]: the t of formulas. approaching_active: whether hard contacts
    that approach faster than `resting_speed` constrain the acceleration; where they do not, they close by an
    impact. impulsive: the rows are those of an impact, whose unknown is the change of v; see
    `constraint.impact`. widening [m, rad]: added to the distances at which limits and soft contacts become
    active. position_lag [s^2]: of the stage of an integrator, see `StageNode`. free_acceleration (nv,): where
    it is given, hard contacts also act up to the approach speed by which it changes the velocity of the
    contact in a step. mass_factors: those of the mass matrix at q, computed by default where rows need them.
    columns: the generalised velocities of that mass matrix, all by default.
    """

    mechanism: Mechanism
    q: np.ndarray
    v: np.ndarray
    kinematics: Kinematics
    inverse_weights: InverseWeights
    step: StepForm
    time: Any = 0
    approaching_active: Any = True
    impulsive: bool = False
    widening: Any = 0
    position_lag: Any = 0
    free_acceleration: Any = None
    mass_factors: Factors | None = None
    columns: tuple[int, ...] | None = None

    def distance_on_motion(self, distance: Any, bias: Any) -> Any:
        """The distance of a closed hard contact or limit with the bias Jdot v, at the configuration of the
        motion at the time of a stage: that of the stage is off by J a position_lag, and J a = -bias.
        """
        return distance - self.position_lag * bias

    def hard_inverse_weights(self, A: Any, squares: Any = None) -> list[Any]:
        """The inverse weights (k,) of hard rows A (k, nv), see the function of this name."""
        factors = self.mass_factors
        if factors is None:
            factors = factor(crba_of(self.kinematics), velocity_parents(self.kinematics.tree))
        if self.columns is not None:
            A = A[:, self.columns]
            squares = squares and [[row[k] for k in self.columns] for row in squares]
        return hard_inverse_weights(factors, A, squares)

    @property
    def resting_speed(self) -> Any:
        """The approach speed [m/s] up to which a hard contact comes to rest without an impact, see the
        function of this name.
        """
        return resting_speed(self.mechanism, self.step.size, self.v, self.free_acceleration)

    @property
    def poses(self) -> list[Pose]:
        """World poses of the links."""
        return self.kinematics.poses

    @property
    def shortest_time(self) -> Any:
        """The shortest time constant of softness [s]: two steps, unless the options disable MuJoCo's
        refsafe.
        """
        return 0 if "refsafe" in self.mechanism.options.disabled else 2 * self.step.size


def resting_speed(mechanism: Mechanism, h: Any, v: Any, free_acceleration: Any = None) -> Any:
    """The approach speed [m/s] up to which a hard contact comes to rest without an impact: |g| h, and at
    least the rounding of approach speeds at the generalised velocities v (nv,) and at what the
    free_acceleration (nv,) adds to them in a step.

    A rebound of the speed |g| h is shorter than two steps, so that the steps do not show it. Without gravity
    the rounding that a plastic impact or a pressed contact leaves would be followed by further impacts.
    """
    fastest = max_abs(v)
    if free_acceleration is not None:
        fastest = maximum(fastest, h * max_abs(free_acceleration))
    rounding = by_precision(fastest, *ROUNDING) * fastest
    return maximum(h * norm(mechanism.gravity), rounding)


def row_context(
    mechanism: Mechanism,
    kinematics: Kinematics,
    *,
    inverse_weights: InverseWeights | None = None,
    step: StepForm | None = None,
    time: Any = 0,
    approaching_active: Any = True,
    impulsive: bool = False,
    widening: Any = 0,
    position_lag: Any = 0,
) -> RowContext:
    """Context at the state (q, v) of `kinematics`.

    inverse_weights: those of the mechanism, computed here by default. step: by default of the size of the
    options.
    """
    return RowContext(
        mechanism,
        kinematics.q,
        kinematics.v,
        kinematics.with_computed_poses(),
        inverse_weights_at_home(mechanism) if inverse_weights is None else inverse_weights,
        StepForm(mechanism.options.timestep) if step is None else step,
        time,
        approaching_active,
        impulsive,
        widening,
        position_lag,
    )

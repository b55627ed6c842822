"""The exact derivatives of a mechanism's functions, compiled."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from zwang.api.arguments import validation
from zwang.api.arguments.parameter_values import Parameters
from zwang.api.arguments.settings_validation import step_form
from zwang.api.compilation.compiled_programs import ArrayLike, CompiledPrograms
from zwang.api.compilation.programs import Key
from zwang.api.derivatives.step_derivatives import (
    CONTINUOUS,
    SensorDerivatives,
    StateDerivatives,
    StepDerivatives,
    sensor_derivatives,
    step_derivatives,
)
from zwang.constraint.context import StepForm
from zwang.simulation.step import MULTISTAGE, STEPPERS

FEWEST_VELOCITIES = 12
"""From this number on the rows of A, B and P take less time in reverse mode than columns in forward mode."""


class Derivatives(NamedTuple):
    """Derivatives of a (or tau) by displacements dq in the tangent space, by v, by tau (or a), and by the
    symbols.

    dq, dv, dtau: (..., nv, nv). parameters: (..., nv, symbols), in the order of `mechanism.symbols`.
    """

    dq: np.ndarray
    dv: np.ndarray
    dtau: np.ndarray
    parameters: np.ndarray


class CompiledDerivatives(CompiledPrograms):
    """The derivatives of dynamics, steps and sensors."""

    def forward_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *, params: Parameters | None = None
    ) -> Derivatives:
        """Derivatives of forward dynamics by displacements of q in the tangent space, by v, tau and the
        symbols.

        q: (..., nq). v, tau: (..., nv). They are those of `forward_dynamics`: limits, dry friction and
        contacts are not included. Raises DescriptionError for a mechanism with constraints (loops,
        couplings, rolling ...).
        """
        a = self._call("forward_dynamics", (q, v, tau), params)
        return Derivatives(*self._call("forward_dynamics_derivatives", (q, v, a), params))

    def inverse_dynamics_derivatives(
        self, q: ArrayLike, v: ArrayLike, a: ArrayLike, *, params: Parameters | None = None
    ) -> Derivatives:
        """Derivatives of inverse dynamics by displacements of q in the tangent space, by v, a and the
        symbols.

        q: (..., nq). v, a: (..., nv). They are those of `inverse_dynamics`: constraints, limits, dry
        friction and contacts are not included.
        """
        return Derivatives(*self._call("inverse_dynamics_derivatives", (q, v, a), params))

    def step_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        control: ArrayLike,
        *,
        activation: ArrayLike = (),
        time: ArrayLike | None = None,
        step: float | None = None,
        integrator: str | None = None,
        params: Parameters | None = None,
    ) -> StepDerivatives:
        """The state one step later and its exact derivatives A, B, P by state, control and symbols.

        Arguments as for `step`. Derivatives are on the tangent space: the state is x = (dq, dv, dz) with a
        displacement dq (nv,) of the configuration. Limits, friction, contacts, constraints and the
        integrator's implicit terms are included, at the status that the rows have at the solution, by the
        implicit function theorem; so is the time of the impacts by which hard contacts close within the step,
        and that of the stops of laws of Coulomb friction, at which a step of Runge and Kutta is divided.
        `switching` marks worlds in which a row is about to change its status, or an impact or a stop the step
        in which it happens. It does not mark a control, force or activation at an end of its range, where the
        derivative is that on the inside; beyond the range it is zero. Nor does it mark a symbol for the
        friction of a shape that equals that of the other one: there the derivative is that of one side. The
        results of a world whose step fails are NaN. Raises SimulationError, with the reason, where a step has
        no exact derivatives, as with the noslip solver.
        Source: Griewank, Walther, Evaluating Derivatives (2008), Section 15.1.
        """
        options = self._step_key(step, integrator)[1:]
        return self._derivatives(options, q, v, control, activation, time, params)

    def constrained_dynamics_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        control: ArrayLike,
        *,
        activation: ArrayLike = (),
        time: ArrayLike | None = None,
        params: Parameters | None = None,
    ) -> StateDerivatives:
        """Accelerations and rates of activations under all constraints, and their exact derivatives.

        Arguments, constraints, and what is refused: as for `step_derivatives`. A, B and P are those of the
        variational equation of continuous time, x_dot = A x + B du + P dp, of the deviations x = (dq, dv, dz)
        from the motion through this state, in the tangent space of `step_derivatives`: at every time dq is
        the displacement from the configuration of that time. The softness of constraints is that of the
        options' timestep, and hard contacts, limits and friction act over this timestep, as in
        `constrained_dynamics`.
        """
        options = (self.mechanism.options.timestep, CONTINUOUS)
        found = self._derivatives(options, q, v, control, activation, time, params)
        return StateDerivatives(found.v, found.activation, *found[3:])

    def sensor_derivatives(
        self,
        q: ArrayLike,
        v: ArrayLike,
        control: ArrayLike | None = None,
        activation: ArrayLike | None = None,
        time: ArrayLike = 0.0,
        *,
        step: float | None = None,
        integrator: str | None = None,
        params: Parameters | None = None,
    ) -> SensorDerivatives:
        """The values of all sensors, one after the other, and their exact derivatives C, D, P by state,
        control and symbols.

        Arguments as for `sensors`; the tangent space, the constraints and what is refused as for
        `step_derivatives`. step, integrator: of the steps in which constraints act on accelerations and
        forces; if one is given, the other one is that of the options, as for `step`. Without both constraints
        act as in `sensors`, with the options' timestep. `zw.linearize` takes sensors by name as outputs.
        """
        form = StepForm(self.mechanism.options.timestep)
        if step is not None or integrator is not None:
            form = step_form(*self._step_key(step, integrator)[1:])
        u, z = self._inputs(control, activation)
        arrays, t = (*self._validated(q, v, z, u), *self._time(time)), validation.real_values(time, "time")
        parameters = self._symbol_values(params)
        return sensor_derivatives(self.mechanism, self._call_compiled, form, arrays, t, parameters)

    def _derivatives(
        self, options: Any, q: Any, v: Any, control: Any, activation: Any, time: Any, params: Any
    ) -> StepDerivatives:
        arrays = (*self._validated(q, v, activation, control), *self._time(time))
        parameters = self._symbol_values(params)
        h, integrator = options
        sparse = self.compiled_or_none(("step_jacobian", h, integrator))
        by_rows = sparse is None and integrator in STEPPERS and integrator not in MULTISTAGE
        by_rows = by_rows and self.mechanism.nv >= FEWEST_VELOCITIES
        adjoint = self.compiled_or_none(("rollout_adjoint", h, integrator)) if by_rows else None
        return step_derivatives(
            self.mechanism, self._call_compiled, options, arrays, parameters, adjoint, sparse
        )

    def _validated(self, q: Any, v: Any, activation: Any, control: Any) -> list[np.ndarray]:
        self._check_activation(activation)
        given = {"q": q, "v": v, "activation": activation, "control": control}
        return [validation.real_values(self._positional(x, name), name) for name, x in given.items()]

    def _symbol_values(self, params: Parameters | None) -> list[np.ndarray]:
        return self._parameters(params) if params is not None or self._symbolic else []

    def _call_compiled(self, key: Key, arrays: tuple[np.ndarray, ...]) -> Any:
        return self._compiled(key)(*arrays)

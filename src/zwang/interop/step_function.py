"""The step of a compiled mechanism as a function of flat arrays, with contacts and constraints."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np

from zwang.api.compilation.compiled import compile_function
from zwang.compiler.ir.program import Program
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.errors import TraceError
from zwang.interop.array_function import ArrayFunction, CompiledArrayFunction, ValuesAndJacobian
from zwang.kinematics.configuration import configuration_rate, normalized_configuration


class StepFunction(CompiledArrayFunction):
    """A step. Where its program has loops its derivatives are those of `step_derivatives`, by the elements of
    the arrays instead of displacements in the tangent space.
    """

    def differentiated(self, inputs: tuple[int, ...]) -> ArrayFunction:
        """The derivative: of the expression graph, or by the implicit function theorem.

        Raises TraceError for coordinate reductions and constraints that depend on the time, and
        SimulationError for steps that have no exact derivatives, as with the noslip solver.
        """
        try:
            return super().differentiated(inputs)
        except TraceError as error:
            if "time" in [port.name for port in self.program.inputs]:
                raise self._without_derivative("parts of the mechanism depend on the time") from error
            if len(self.key) > 3:
                raise self._without_derivative("it reduces the coordinates") from error
        return StepJacobian(self, self._jacobian, inputs)

    def _without_derivative(self, reason: str) -> TraceError:
        return TraceError(
            f"{self.name} cannot be differentiated: its program has loops or branches, and {reason}. Its "
            "values are available; for derivatives by state and control use the step_derivatives of "
            "zw.compile(...), with time=..., or give jacobian=..."
        )

    def _jacobian(
        self, q: np.ndarray, v: np.ndarray, z: np.ndarray, control: np.ndarray, *parameters: np.ndarray
    ) -> np.ndarray:
        """The matrix (..., nq + nv + nz, nq + nv + nz + nu + symbols) of a step.

        With q_dot = G(q) v a displacement dq of the tangent space changes q by G(q) dq, and a change of the
        elements of q is the displacement G(q)^+ dq, per length of the quaternion before its normalisation.
        """
        _, h, integrator = self.key
        symbols = self.mechanism.mechanism.symbols
        params = {name: parameters[0][..., k] for k, name in enumerate(symbols)} or None
        found = self.mechanism.step_derivatives(
            q, v, control, activation=z, step=h, integrator=integrator, params=params
        )
        n = v.shape[-1]
        J = np.concatenate([found.A, found.B, found.P], axis=-1)
        J = np.concatenate([self._rate(found.q) @ J[..., :n, :], J[..., n:, :]], axis=-2)
        return np.concatenate([J[..., :n] @ self._displacement(q), J[..., n:]], axis=-1)

    def _rate(self, q: np.ndarray) -> np.ndarray:
        """G(q), (..., nq, nv)."""
        found: Any = self._of_configuration(q)
        return found.reshape(*q.shape, -1)

    def _displacement(self, q: np.ndarray) -> np.ndarray:
        """The displacements (..., nv, nq) by the elements of q."""
        scale = np.ones(q.shape)
        for joint in self.mechanism.mechanism.joints:
            if joint.kind in ("ball", "free"):
                part = slice(joint.q.stop - 4, joint.q.stop)
                # G^T G is 1/4 for a unit quaternion
                scale[..., part] = 4 / np.linalg.norm(q[..., part], axis=-1, keepdims=True)
        return np.swapaxes(self._rate(q) * scale[..., None], -1, -2)

    @cached_property
    def _of_configuration(self) -> CompiledFunction:
        """The compiled G of normalised configurations."""
        m = self.mechanism.mechanism

        def rates(q: np.ndarray) -> np.ndarray:
            unit = normalized_configuration(m.tree, q)
            columns = [configuration_rate(m.tree, unit, direction) for direction in np.eye(m.nv, dtype=int)]
            return np.stack(columns, axis=1)

        return compile_function(rates, {"q": m.nq}, dtype=self.dtype.name)

    @property
    def rates(self) -> Program:
        """The program of G(q), of normalised configurations."""
        return self._of_configuration.program


class StepJacobian(ValuesAndJacobian):
    """A step and its Jacobian, by programs that evaluate it along one direction after the other.

    solution: of the arguments of the step; the state after it, the accelerations of the constraint solver,
    and whether a row is switching. tangent: of the arguments of the step, these accelerations and a
    direction in the tangent space of state, control and parameters; the displacement of the state after the
    step. rates: G(q). Raises SimulationError for hard contacts and Coulomb friction.
    """

    def __init__(self, step: StepFunction, jacobian: Callable[..., np.ndarray], inputs: tuple[int, ...]):
        super().__init__(step, jacobian, inputs)
        compiled, options = step.mechanism, step.key[1:]
        self.mechanism = compiled.mechanism
        self.solution = compiled.compiled_function(("step_solution", *options)).program
        self.tangent = compiled.compiled_function(("step_tangent", *options)).program
        self.rates = step.rates

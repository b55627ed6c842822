"""The step of a compiled mechanism as a function of flat arrays, with contacts and constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property, partial
from typing import Any

import numpy as np

from zwang.api.compilation.compiled import compile_function
from zwang.api.compilation.programs import PARAMETERS, Key
from zwang.api.derivatives.step_derivatives import time_derivative
from zwang.compiler.ir.program import Program
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.errors import TraceError
from zwang.interop.array_function import ArrayFunction, CompiledArrayFunction, ValuesAndJacobian
from zwang.kinematics.configuration import configuration_rate, normalized_configuration
from zwang.simulation.constraint_options import describe_constraints


class StepFunction(CompiledArrayFunction):
    """A step. Where its program has loops its derivatives are those of `step_derivatives`, by the elements of
    the arrays instead of displacements in the tangent space.
    """

    def differentiated(self, inputs: tuple[int, ...]) -> ArrayFunction:
        """The derivative: of the expression graph, or by the implicit function theorem.

        Raises TraceError for coordinate reductions, and SimulationError for steps that have no exact
        derivatives, as with the noslip solver.
        """
        try:
            return super().differentiated(inputs)
        except TraceError as error:
            if len(self.key) > 3:
                raise TraceError(
                    f"{self.name} cannot be differentiated: its program has loops or branches, and it "
                    "reduces the coordinates. Its values are available; for derivatives omit "
                    "coordinate_reduction=..., or give jacobian=..."
                ) from error
        by_time = "time" in [self.program.inputs[k].name for k in inputs]
        return StepJacobian(self, partial(self._jacobian, by_time), inputs, by_time)

    def _jacobian(self, by_time: bool, *arrays: np.ndarray) -> np.ndarray:
        """The Jacobian matrix (..., m, n) of a step: its results q, v, z and, if parts depend on it, the time
        by the inputs q, v, z, control and, if there are any, the time and the symbols. by_time: whether the
        column of the time is computed; it is NaN otherwise.

        With q_dot = G(q) v a displacement dq of the tangent space changes q by G(q) dq, and a change of the
        elements of q is the displacement G(q)^+ dq, per length of the quaternion before its normalisation.
        """
        _, h, integrator = self.key
        given = dict(zip([port.name for port in self.program.inputs], arrays, strict=True))
        symbols = self.mechanism.mechanism.symbols
        params = {name: given[PARAMETERS][..., k] for k, name in enumerate(symbols)} or None
        q, v, z, control = arrays[:4]
        time = given["time"][..., 0] if "time" in given else None
        found = self.mechanism.step_derivatives(
            q, v, control, activation=z, time=time, step=h, integrator=integrator, params=params
        )
        n = v.shape[-1]
        columns = [found.A, found.B, found.P]
        if time is not None:
            columns.insert(2, self._by_time(arrays, found.A) if by_time else found.A[..., :1] * np.nan)
        J = np.concatenate(columns, axis=-1)
        J = np.concatenate([self._rate(found.q) @ J[..., :n, :], J[..., n:, :]], axis=-2)
        if time is not None:  # after the step it is t + h
            row = np.zeros((*J.shape[:-2], 1, J.shape[-1]))
            row[..., found.A.shape[-1] + found.B.shape[-1]] = 1
            J = np.concatenate([J, row], axis=-2)
        return np.concatenate([J[..., :n] @ self._displacement(q), J[..., n:]], axis=-1)

    def _by_time(self, arrays: Sequence[np.ndarray], A: np.ndarray) -> np.ndarray:
        """The derivatives of the state after the step by the time, as a column (..., n, 1) beside A."""

        def call(key: Key, given: tuple[np.ndarray, ...]) -> Any:
            return self.mechanism.compiled_function(key)(*given)

        _, h, integrator = self.key
        found = time_derivative(call, (h, integrator), tuple(arrays[:5]), list(arrays[5:]))
        return np.broadcast_to(found[..., None], (*A.shape[:-1], 1))

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
    step. by_time: of the arguments of the step and these accelerations; the derivative of the state after
    the step by the time; None if it is not asked for. rates: G(q). Raises SimulationError for hard contacts
    and Coulomb friction.

    Where nothing restrains the motion, it has derivatives too: those of the step without loops, whose
    expression graph may be large.
    """

    def __init__(
        self,
        step: StepFunction,
        jacobian: Callable[..., np.ndarray],
        inputs: tuple[int, ...],
        by_time: bool,
    ):
        super().__init__(step, jacobian, inputs)
        compiled, options = step.mechanism, step.key[1:]
        self.mechanism = compiled.mechanism
        self._step, self._inputs = step, inputs
        self.solution = compiled.compiled_function(("step_solution", *options)).program
        self.tangent = compiled.compiled_function(("step_tangent", *options)).program
        self.by_time = compiled.compiled_function(("time_tangent", *options)).program if by_time else None
        self.rates = step.rates

    def differentiated(self, inputs: tuple[int, ...]) -> ArrayFunction:
        """The second derivatives of the step; raises TraceError for a step with constraints."""
        if describe_constraints(self.mechanism):
            return super().differentiated(inputs)
        step = self._step
        return step.without_loops().derivative(self._inputs).derivative(inputs)

"""Functions of a compiled mechanism in CasADi, with exact sparse Jacobians, for `Opti` and Ipopt.

A function is a `casadi.Callback`. Its Jacobian is such a function again, whose sparsity pattern follows from
the structural zeros of the expression graph; so is the Jacobian of that one, which an exact Hessian needs.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from zwang.api.function_table import FUNCTIONS
from zwang.errors import ArgumentError, MissingExtraError
from zwang.interop.array_function import ArrayFunction
from zwang.interop.bound_function import BoundFunction, bound_function

try:
    import casadi
except ImportError as error:
    raise MissingExtraError(
        f"zwang.interop.casadi needs CasADi ({error}): pip install 'zwang[casadi]'"
    ) from None

__all__ = ["function"]

ZERO = -1  # the position of an element that is always zero
_CREATED: list[CasadiFunction] = []
"""All functions: CasADi does not keep the Python objects alive that its expressions call."""


def function(
    method: Callable[..., Any],
    *,
    name: str = "",
    jacobian: Callable[..., np.ndarray] | None = None,
    **options: Any,
) -> casadi.Function:
    """A method of a compiled mechanism as a `casadi.Function` of column vectors.

    method: such as `fast.forward_dynamics` with `fast = zw.compile(mechanism)`, or `fast.step`, in double
    precision. name: of the function in CasADi, by default that of the method. options: the arguments of the
    method that are not arrays: frame, axes; step [s], integrator and coordinate_reduction of a step.
    jacobian: the derivatives (m, n) of all results by all inputs, as a function of the flat NumPy inputs in
    the order of the program; by default the exact ones of the expression graph.

    The function has the inputs and outputs of the method, without empty ones, and the input `parameters`, the
    values of the symbols in the order of `mechanism.symbols`, if there are any. Vectors are columns, matrices
    have their shape; the values of `sensors` are one vector. Derivatives are ordinary partial derivatives by
    the elements of the inputs: q has nq elements, whose quaternions are normalised first.

    Raises ArgumentError for another object than such a method and for single precision. A step has
    derivatives with contacts and constraints, too, those of `step_derivatives`. If a second derivative of
    such a step is taken, or a derivative of another function with loops, CasADi raises a RuntimeError with
    the text of a TraceError.
    """
    bound = bound_function(method, options, jacobian)
    if bound.function.dtype != np.float64:
        raise ArgumentError(
            f"{bound.function.name} computes in {bound.function.dtype.name}, and CasADi in float64: give "
            'zw.compile(mechanism, dtype="float64")'
        )
    program = [argument.name for argument in bound.inputs]
    order = [argument.name for argument in bound.arguments if argument.size]
    order += [argument.name for argument in bound.inputs[len(bound.arguments) :] if argument.size]
    positions = [order.index(name) if name in order else None for name in program]
    columns = [bound.inputs[program.index(name)].size for name in order]
    outputs, at = {}, 0
    zeros = bound.function.structural_zeros()
    names = _output_names(bound)
    for output, shape, size in zip(names, bound.shapes, bound.function.results, strict=True):
        entries = np.where(zeros[at : at + size], ZERO, np.arange(at, at + size))
        if size:
            outputs[output] = entries.reshape(_matrix_shape(shape))
        at += size
    ports = _Ports(order, [(size, 1) for size in columns], list(outputs), list(outputs.values()))
    return CasadiFunction(name or bound.name, bound.function, positions, ports)


def _matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape of an array as a matrix: vectors are columns."""
    return shape if len(shape) == 2 else (int(np.prod(shape)), 1)


def _output_names(bound: BoundFunction) -> list[str]:
    if bound.name == "step":
        return ["q_next", "v_next", "z_next"]
    return [re.sub(r"\W+", "_", result.name) for result in FUNCTIONS[bound.name].results]


class _Ports:
    """The inputs and outputs of a function by name.

    inputs: shapes. outputs: for each a matrix of positions in the results of the array function, which stand
    one after the other; `ZERO` for a structural zero.
    """

    def __init__(
        self,
        input_names: Sequence[str],
        inputs: Sequence[tuple[int, int]],
        output_names: Sequence[str],
        outputs: Sequence[np.ndarray],
    ):
        self.input_names, self.inputs = list(input_names), list(inputs)
        self.output_names, self.outputs = list(output_names), list(outputs)

    def sparsity(self, k: int) -> casadi.Sparsity:
        """The pattern of an output."""
        rows, columns = np.nonzero(self.outputs[k] != ZERO)
        count, width = self.outputs[k].shape
        return casadi.Sparsity.triplet(count, width, rows.tolist(), columns.tolist())

    def positions(self, k: int) -> np.ndarray:
        """The positions of the nonzero elements of an output, column by column, as CasADi stores them."""
        by_columns = self.outputs[k].T.ravel()
        return by_columns[by_columns != ZERO]


class CasadiFunction(casadi.Callback):
    """A function of flat arrays in CasADi.

    positions: for each input of the array function the number of the input that it is; None for an empty one.
    """

    def __init__(self, name: str, function: ArrayFunction, positions: Sequence[int | None], ports: _Ports):
        casadi.Callback.__init__(self)
        self._function, self._inputs, self._ports = function, list(positions), ports
        self._picked = [ports.positions(k) for k in range(len(ports.outputs))]
        _CREATED.append(self)
        self.construct(name, {})

    def get_n_in(self) -> int:
        """The number of inputs."""
        return len(self._ports.inputs)

    def get_n_out(self) -> int:
        """The number of outputs."""
        return len(self._ports.outputs)

    def get_name_in(self, k: int) -> str:
        """The name of an input."""
        return self._ports.input_names[k]

    def get_name_out(self, k: int) -> str:
        """The name of an output."""
        return self._ports.output_names[k]

    def get_sparsity_in(self, k: int) -> casadi.Sparsity:
        """The shape of an input, which is dense."""
        return casadi.Sparsity.dense(*self._ports.inputs[k])

    def get_sparsity_out(self, k: int) -> casadi.Sparsity:
        """The pattern of an output."""
        return self._ports.sparsity(k)

    def has_eval_buffer(self) -> bool:
        """Whether the memory of the numbers is used as it is."""
        return True

    def eval_buffer(self, arguments: Sequence[Any], results: Sequence[Any]) -> int:
        """Evaluate: write the nonzero elements of the outputs."""
        sizes = self._function.sizes
        arrays = [
            np.zeros(size) if k is None or arguments[k] is None else np.frombuffer(arguments[k])
            for k, size in zip(self._inputs, sizes, strict=True)
        ]
        found = np.concatenate(self._function(*arrays))
        for memory, picked in zip(results, self._picked, strict=True):
            if memory is not None and picked.size:
                np.frombuffer(memory)[:] = found[picked]
        return 0

    def has_jacobian(self) -> bool:
        """Whether there is a Jacobian."""
        return True

    def get_jacobian(
        self, name: str, inames: Sequence[str], onames: Sequence[str], opts: Any
    ) -> CasadiFunction:
        """The function of the inputs, and of the outputs, which it does not need, that returns the Jacobian
        of each output by each input.
        """
        used = [k for k, position in enumerate(self._inputs) if position is not None]
        derivative = self._function.derivative(tuple(used))
        sizes = [self._function.sizes[k] for k in used]
        begin = sum(self._function.results)
        matrix = np.arange(begin, begin + begin * sum(sizes)).reshape(begin, sum(sizes))
        zeros = derivative.structural_zeros()[begin:].reshape(matrix.shape)
        matrix = np.where(zeros, ZERO, matrix)
        ends = np.cumsum([0, *sizes])
        by_input = {self._inputs[k]: matrix[:, ends[i] : ends[i + 1]] for i, k in enumerate(used)}
        blocks = [
            _block(output, by_input.get(k), rows * columns)
            for output in self._ports.outputs
            for k, (rows, columns) in enumerate(self._ports.inputs)
        ]
        shapes = [*self._ports.inputs, *(output.shape for output in self._ports.outputs)]
        ports = _Ports(inames, shapes, onames, blocks)
        return CasadiFunction(name, derivative, self._inputs, ports)


def _block(output: np.ndarray, derivatives: np.ndarray | None, count: int) -> np.ndarray:
    """The positions of the derivatives of an output, column by column, by an input with `count` elements.

    derivatives: positions of the derivatives of all results by this input; None for an input without effect.
    """
    elements = output.T.ravel()
    block = np.full((elements.size, count), ZERO)
    if derivatives is not None:
        block[elements != ZERO] = derivatives[elements[elements != ZERO]]
    return block

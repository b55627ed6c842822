"""A function of flat arrays as one of column vectors and sparse matrices, with Jacobians, as CasADi has it.

A matrix is stored as CasADi has it: its structural nonzeros, column by column.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from zwang.api.functions.function_table import FUNCTIONS
from zwang.interop.array_function import ArrayFunction
from zwang.interop.bound_function import BoundFunction

ZERO = -1  # the position of an element that is always zero


@dataclass(frozen=True)
class Ports:
    """The inputs and outputs of a function by name.

    inputs: their shapes. outputs: for each a matrix of positions in the results of the array function, which
    stand one after the other; `ZERO` for a structural zero.
    """

    input_names: tuple[str, ...]
    inputs: tuple[tuple[int, int], ...]
    output_names: tuple[str, ...]
    outputs: tuple[np.ndarray, ...]

    def pattern(self, k: int) -> tuple[np.ndarray, np.ndarray]:
        """The rows and columns of the nonzero elements of an output, column by column."""
        columns, rows = np.nonzero(self.outputs[k].T != ZERO)
        return rows, columns

    def positions(self, k: int) -> np.ndarray:
        """The positions of the nonzero elements of an output in the results, column by column."""
        by_columns = self.outputs[k].T.ravel()
        return by_columns[by_columns != ZERO]


@dataclass(frozen=True)
class ColumnFunction:
    """A function of flat arrays with named ports.

    positions: for each input of the array function the number of the port that it is; None for an empty one.
    """

    function: ArrayFunction
    positions: tuple[int | None, ...]
    ports: Ports

    def jacobian(self, inames: Sequence[str] = (), onames: Sequence[str] = ()) -> ColumnFunction:
        """The function of the inputs, and of the outputs, which it does not need, that returns the Jacobian
        of each output by each input, for all inputs of the first output, then of the second ...

        inames, onames: the names of its inputs and outputs, by default those of CasADi: out_y and jac_y_x.
        Raises what `ArrayFunction.derivative` raises.
        """
        ports = self.ports
        inames = inames or (*ports.input_names, *(f"out_{y}" for y in ports.output_names))
        onames = onames or [f"jac_{y}_{x}" for y in ports.output_names for x in ports.input_names]
        used = [k for k, position in enumerate(self.positions) if position is not None]
        derivative = self.function.derivative(tuple(used))
        sizes = [self.function.sizes[k] for k in used]
        begin = sum(self.function.results)
        matrix = np.arange(begin, begin + begin * sum(sizes)).reshape(begin, sum(sizes))
        zeros = derivative.structural_zeros()[begin:].reshape(matrix.shape)
        matrix = np.where(zeros, ZERO, matrix)
        ends = np.cumsum([0, *sizes])
        by_input = {self.positions[k]: matrix[:, ends[i] : ends[i + 1]] for i, k in enumerate(used)}
        blocks = [
            _block(output, by_input.get(k), rows * columns)
            for output in ports.outputs
            for k, (rows, columns) in enumerate(ports.inputs)
        ]
        shapes = (*ports.inputs, *(output.shape for output in ports.outputs))
        return ColumnFunction(
            derivative, self.positions, Ports(tuple(inames), shapes, tuple(onames), tuple(blocks))
        )


def column_function(bound: BoundFunction) -> ColumnFunction:
    """The function of columns that a method with its options is, without its empty inputs and outputs.

    The inputs are in the order of the method; the last one, `parameters`, are the values of the symbols.
    """
    program = [argument.name for argument in bound.inputs]
    order = [argument.name for argument in bound.arguments if argument.size]
    order += [argument.name for argument in bound.inputs[len(bound.arguments) :] if argument.size]
    positions = tuple(order.index(name) if name in order else None for name in program)
    shapes = tuple((bound.inputs[program.index(name)].size, 1) for name in order)
    outputs, at = {}, 0
    zeros = bound.function.structural_zeros()
    # the time after a step, which comes last if parts depend on it, is no output
    names = _output_names(bound, order)
    for output, shape, size in zip(names, bound.shapes, bound.function.results, strict=False):
        entries = np.where(zeros[at : at + size], ZERO, np.arange(at, at + size))
        if size:
            outputs[output] = entries.reshape(_matrix_shape(shape))
        at += size
    ports = Ports(tuple(order), shapes, tuple(outputs), tuple(outputs.values()))
    return ColumnFunction(bound.function, positions, ports)


def _matrix_shape(shape: tuple[int, ...]) -> tuple[int, int]:
    """The shape of an array as a matrix: vectors are columns."""
    return (shape[0], shape[1]) if len(shape) == 2 else (int(np.prod(shape)), 1)


def _output_names(bound: BoundFunction, inputs: Sequence[str]) -> list[str]:
    """The names of the outputs, none of which is that of an input."""
    if bound.name == "step":
        return ["q_next", "v_next", "z_next"]
    words = [re.sub(r"\W+", "_", result.name) for result in FUNCTIONS[bound.name].results]
    return [f"{word}_out" if word in inputs else word for word in words]


def _block(output: np.ndarray, derivatives: np.ndarray | None, count: int) -> np.ndarray:
    """The positions of the derivatives of an output, column by column, by an input with `count` elements.

    derivatives: positions of the derivatives of all results by this input; None for an input without effect.
    """
    elements = output.T.ravel()
    block = np.full((elements.size, count), ZERO)
    if derivatives is not None:
        block[elements != ZERO] = derivatives[elements[elements != ZERO]]
    return block

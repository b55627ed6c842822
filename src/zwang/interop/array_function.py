"""Functions of flat arrays with their Jacobians: what the modules of this package make available elsewhere.

The derivatives are ordinary partial derivatives of a function as it is computed, by the elements of its
arrays: q has nq elements, and its quaternions are normalised first, so that the derivative along a
quaternion is zero.
"""

from __future__ import annotations

import hashlib
import uuid
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import cached_property
from typing import Any

import numpy as np

from zwang.api.compilation.compiled import CompiledMechanism
from zwang.api.compilation.programs import Key
from zwang.errors import ShapeError, TraceError
from zwang.mechanism.report import Report


class ArrayFunction(ABC):
    """A function of arrays (..., size), with results (..., size), all of the type `dtype`.

    name: for messages. sizes, results: the sizes of the inputs and of the results.
    """

    def __init__(self, name: str, dtype: Any, sizes: Sequence[int], results: Sequence[int]):
        self.name, self.dtype = name, np.dtype(dtype)
        self.sizes, self.results = tuple(sizes), tuple(results)
        self._derivatives: dict[tuple[int, ...], ArrayFunction] = {}

    @abstractmethod
    def compute_into(self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Write the results into arrays with the common leading shape of all arrays."""

    @abstractmethod
    def differentiated(self, inputs: tuple[int, ...]) -> ArrayFunction:
        """A new `derivative`."""

    @cached_property
    def identity(self) -> str:
        """A text that no function with other results has, in any process."""
        return uuid.uuid4().hex

    def structural_zeros(self) -> np.ndarray:
        """For every element of the results, one after the other, whether it is zero for all arguments."""
        return np.zeros(sum(self.results), dtype=bool)

    def derivative(self, inputs: tuple[int, ...]) -> ArrayFunction:
        """The function of the same inputs whose results are those of this function, and then the Jacobian.

        Its last result is the matrix (m, n), row by row: the derivatives of all results, one after the other,
        by the elements of these inputs, one after the other. Raises TraceError if they are not known.
        """
        if inputs not in self._derivatives:
            self._derivatives[inputs] = self.differentiated(inputs)
        return self._derivatives[inputs]

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The results in new arrays; the leading shapes of the arrays broadcast."""
        batch = np.broadcast_shapes(*(array.shape[:-1] for array in arrays))
        results = [np.empty((*batch, size), self.dtype) for size in self.results]
        self.compute_into(arrays, results)
        return results


class CompiledArrayFunction(ArrayFunction):
    """A function of a compiled mechanism; its derivatives are compiled from its expression graph."""

    def __init__(self, mechanism: CompiledMechanism, key: Key, name: str):
        self.mechanism, self.key = mechanism, key
        self.compiled = mechanism.compiled_function(key)
        self.program = self.compiled.program
        sizes = [port.size for port in self.program.inputs]
        results = [port.size for port in self.program.outputs]
        super().__init__(name, self.compiled.dtype, sizes, results)

    @cached_property
    def identity(self) -> str:
        """A digest of the mechanism without its reader's report, of the function and of the settings of its
        code. It does not depend on the computer, as the program may.
        """
        mechanism = self.mechanism.mechanism.replace(report=Report()).to_json()
        code = [self.mechanism.settings[name] for name in ("dtype", "lanes", "threads")]
        parts = (mechanism, self.key, code, self.sizes, self.results)
        return hashlib.sha256(repr(parts).encode()).hexdigest()

    def compute_into(self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Write the results into arrays with the common leading shape of all arrays."""
        self.compiled.compute_into(arrays, results)

    def __call__(self, *arrays: np.ndarray) -> list[np.ndarray]:
        """The results in new arrays, in the order of memory that NumPy chooses for theirs."""
        found = self.compiled(*arrays)
        return list(found) if isinstance(found, tuple) else [found]

    def structural_zeros(self) -> np.ndarray:
        """The elements that are the constant zero in the expression graph."""
        body = self.program.body
        zeros = {
            number
            for instruction in body.instructions
            if instruction.op == "const" and instruction.data == 0
            for number in instruction.out
        }
        return np.array([number in zeros for number in body.results], dtype=bool)

    def without_loops(self) -> CompiledArrayFunction:
        """The function without loops of constant length, such as those over the stages of a long step."""
        return CompiledArrayFunction(self.mechanism, ("unrolled", self.key), self.name)

    def differentiated(self, inputs: tuple[int, ...]) -> ArrayFunction:
        """The derivative; raises TraceError for a program with loops or branches, and CompileError."""
        key = ("jacobian", self.key, tuple(self.program.inputs[k].name for k in inputs))
        try:
            return CompiledArrayFunction(self.mechanism, key, f"the derivative of {self.name}")
        except TraceError as error:
            raise TraceError(
                f"{self.name} cannot be differentiated: its program has loops or branches, as those of "
                "constraints, limits, dry friction, contacts and wrapped tendons have. Its values are "
                "available; for derivatives use a step, give jacobian=..., or a mechanism without these parts"
            ) from error


class FunctionWithJacobian(ArrayFunction):
    """A function, and its Jacobian by another function of the same arrays.

    jacobian(*arrays): the matrix (..., m, n) of the derivatives of all results by the elements of all inputs.
    Its derivatives are not known.
    """

    def __init__(self, function: ArrayFunction, jacobian: Callable[..., np.ndarray]):
        super().__init__(function.name, function.dtype, function.sizes, function.results)
        self._function, self._jacobian = function, jacobian

    def compute_into(self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Write the results into arrays with the common leading shape of all arrays."""
        self._function.compute_into(arrays, results)

    def differentiated(self, inputs: tuple[int, ...]) -> ArrayFunction:
        """The derivative by the given Jacobian."""
        return ValuesAndJacobian(self._function, self._jacobian, inputs)


class ValuesAndJacobian(ArrayFunction):
    """The results of a function, and the columns of its Jacobian for some inputs."""

    def __init__(self, function: ArrayFunction, jacobian: Callable[..., np.ndarray], inputs: tuple[int, ...]):
        self._function, self._jacobian = function, jacobian
        ends = np.cumsum([0, *function.sizes])
        self._columns = np.concatenate([np.arange(ends[k], ends[k + 1]) for k in inputs])
        self._shape = sum(function.results), int(ends[-1])
        results = (*function.results, self._shape[0] * len(self._columns))
        super().__init__(f"the derivative of {function.name}", function.dtype, function.sizes, results)

    def compute_into(self, arrays: Sequence[np.ndarray], results: Sequence[np.ndarray]) -> None:
        """Write the results into arrays with the common leading shape of all arrays."""
        *values, columns = results
        self._function.compute_into(arrays, values)
        J = np.asarray(self._jacobian(*arrays))
        if J.shape[-2:] != self._shape:
            raise ShapeError(
                f"jacobian returned an array of the shape {J.shape}; for {self._function.name} it must be "
                f"(..., {self._shape[0]}, {self._shape[1]}): all results, flat, by all inputs"
            )
        chosen = J[..., self._columns]
        columns[...] = chosen.reshape(*chosen.shape[:-2], -1)

    def differentiated(self, inputs: tuple[int, ...]) -> ArrayFunction:
        """Raises TraceError: only first derivatives were given."""
        raise TraceError(f"{self.name} cannot be differentiated: only the first derivatives are known")

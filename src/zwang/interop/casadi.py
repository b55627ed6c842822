"""Functions of a compiled mechanism in CasADi, with exact sparse Jacobians, for `Opti` and Ipopt.

A function has one of three forms: a function of a shared library that is compiled from C99 code; a
`casadi.Callback` on zwang's machine code, whose derivatives are compiled when CasADi asks for them; or an
expression of CasADi's SX symbols. Sparsity patterns follow from the structural zeros of the expression graph.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np

from zwang.errors import ArgumentError, MissingExtraError
from zwang.interop.bound_function import BoundFunction, bound_function
from zwang.interop.casadi_library import IDENTITY, short_library, write_library
from zwang.interop.column_function import ColumnFunction, column_function
from zwang.interop.scalar_expressions import scalar_expressions
from zwang.mechanism.type_validation import short_repr

try:
    import casadi
except ImportError as error:
    raise MissingExtraError(
        f"zwang.interop.casadi needs CasADi ({error}): pip install 'zwang[casadi]'"
    ) from None

__all__ = ["function"]

_CREATED: list[CasadiFunction] = []
"""All callbacks: CasADi does not keep the Python objects alive that its expressions call."""


def function(
    method: Callable[..., Any],
    *,
    name: str = "",
    library: str | os.PathLike[str] | Literal[False] | None = None,
    derivatives: int | None = None,
    symbolic: bool = False,
    jacobian: Callable[..., np.ndarray] | None = None,
    **options: Any,
) -> casadi.Function:
    """A method of a compiled mechanism as a `casadi.Function` of column vectors.

    method: such as `fast.forward_dynamics` with `fast = zw.compile(mechanism)`, or `fast.step`, in double
    precision. name: of the function in CasADi, by default that of the method. options: the arguments of the
    method that are not arrays: frame, axes; step [s], integrator and coordinate_reduction of a step.
    library: the path of a shared library, which is written, with its C code beside it, and loaded. The
        function then does without Python: in parallel maps, in other programs, and after serialisation for
        as long as the library is there. False: a callback of zwang's machine code, for which no C compiler
        is needed, with derivatives of all orders that the function has. By default it is a library with the
        first and second derivatives, in zwang's cache, where there is a C compiler that takes a second for it
        (up to 5,000 lines of C code); otherwise a callback. All have the same values, bit for bit.
    derivatives: the highest order in a library that is written: 0, 1 for Jacobians, or 2 for exact Hessians;
        functions with loops have none, steps with contacts or constraints the first. By default 1, or 0 where
        there are none.
    symbolic: whether the function is an expression of SX symbols, which CasADi itself differentiates, and
        which `.expand()` and SX arguments need; for functions without loops.
    jacobian: the derivatives (m, n) of all results by all inputs, as a function of the flat NumPy inputs in
        the order of the program; by default the exact ones of the expression graph.

    The function has the inputs and outputs of the method, without empty ones, and the input `parameters`, the
    values of the symbols in the order of `mechanism.symbols`, if there are any. Vectors are columns, matrices
    have their shape; the values of `sensors` are one vector. Derivatives are ordinary partial derivatives by
    the elements of the inputs: q has nq elements, whose quaternions are normalised first.

    Raises ArgumentError for another object than such a method, for single precision, for arguments that
    exclude each other, for a name that CasADi or the C code of a library does not allow, and for a library
    whose path holds another one in this process; MissingExtraError for a library without a C compiler;
    CompileError; WriteError; TraceError for an expression of a function with loops, and for a library with
    derivatives that the function does not have. A step has derivatives with contacts and constraints, too,
    those of `step_derivatives`. If a second derivative of such a step is taken, or a derivative of another
    function with loops, CasADi raises a RuntimeError, for a callback with the text of a TraceError.
    """
    bound = bound_function(method, options, jacobian)
    name = name or bound.name
    _check(bound, name, symbolic, alone=not library and jacobian is None)
    if derivatives is not None and not library:
        raise ArgumentError(
            "derivatives= is of a library that is written: give library= its path, or leave it out"
        )
    column = column_function(bound)
    if symbolic:
        return _expression(name, column)
    if library is False:
        return CasadiFunction(name, column)
    if library is None:
        short = short_library(column, name)
        return _external(name, *short) if short else CasadiFunction(name, column)
    return _external(name, *write_library(column, name, library, derivatives))


def _check(bound: BoundFunction, name: str, symbolic: bool, alone: bool) -> None:
    """Raises ArgumentError for single precision, a name that CasADi does not take, and symbolic=True where it
    is not alone.
    """
    if bound.function.dtype != np.float64:
        raise ArgumentError(
            f"{bound.function.name} computes in {bound.function.dtype.name}, and CasADi in float64: give "
            'zw.compile(mechanism, dtype="float64")'
        )
    if not isinstance(name, str) or not casadi.Function.check_name(name):
        raise ArgumentError(
            f"name is {short_repr(name)}; a function of CasADi has letters, digits and single underscores in "
            "its name, and begins with a letter"
        )
    if symbolic and not alone:
        raise ArgumentError(
            "symbolic=True is an expression of CasADi, with CasADi's derivatives: omit library= and jacobian="
        )


def _external(name: str, path: Path, digest: list[float]) -> casadi.Function:
    """The function of a shared library. Raises ArgumentError if it is not the one with this digest."""
    loaded = np.array(casadi.external(f"{IDENTITY}{name}", str(path))()["words"]).ravel()
    if loaded.tolist() != digest:
        raise ArgumentError(
            f"library is {str(path)!r}, and this process uses an older library of this path: delete the "
            "functions of that one first, or give another path"
        )
    return casadi.external(name, str(path))


def _expression(name: str, column: ColumnFunction) -> casadi.Function:
    """The function as an expression of SX symbols. Raises TraceError."""
    ports = column.ports
    arguments = [
        casadi.SX.sym(port, *shape) for port, shape in zip(ports.input_names, ports.inputs, strict=True)
    ]
    flat = [[] if k is None else casadi.vertsplit(arguments[k]) for k in column.positions]
    found = scalar_expressions(column.function, flat, casadi)
    results = []
    for k in range(len(ports.outputs)):
        x = casadi.SX(sparsity(column, k))
        x.nz[:] = casadi.vertcat(*(found[i] for i in column.ports.positions(k)))
        results.append(x)
    return casadi.Function(name, arguments, results, list(ports.input_names), list(ports.output_names))


def sparsity(column: ColumnFunction, k: int) -> casadi.Sparsity:
    """The pattern of an output."""
    rows, columns = column.ports.pattern(k)
    count, width = column.ports.outputs[k].shape
    return casadi.Sparsity.triplet(count, width, rows.tolist(), columns.tolist())


class CasadiFunction(casadi.Callback):
    """A function of columns in CasADi, which calls machine code."""

    def __init__(self, name: str, column: ColumnFunction):
        casadi.Callback.__init__(self)
        self._column, self._ports = column, column.ports
        self._picked = [column.ports.positions(k) for k in range(len(column.ports.outputs))]
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
        return sparsity(self._column, k)

    def has_eval_buffer(self) -> bool:
        """Whether the memory of the numbers is used as it is."""
        return True

    def eval_buffer(self, arguments: Sequence[Any], results: Sequence[Any]) -> int:
        """Evaluate: write the nonzero elements of the outputs."""
        compiled = self._column.function
        arrays = [
            np.zeros(size) if k is None or arguments[k] is None else np.frombuffer(arguments[k])
            for k, size in zip(self._column.positions, compiled.sizes, strict=True)
        ]
        found = np.concatenate(compiled(*arrays))
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
        """The function that returns the Jacobian of each output by each input."""
        return CasadiFunction(name, self._column.jacobian(inames, onames))


def __dir__() -> list[str]:
    return sorted(__all__)

"""The machine code of an observation, which has the same values whenever it is called in the same state."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NoReturn

import numpy as np

from zwang.api.batch.observation import OBSERVED
from zwang.compiler.frontend.trace import trace
from zwang.compiler.ir.interpreter import interpret
from zwang.compiler.ir.program import Program
from zwang.compiler.pipeline import optimise, without_garbage_collection
from zwang.compiler.runtime.compiled_function import CompiledFunction
from zwang.errors import ArgumentError, TraceError

REMEDY = (
    "Functions of a WorldView are called when they are compiled, and not in the steps, so that a random "
    "number or a counter in them would be a constant: write it to `commands` and read it by "
    "WorldView.command, or add it to the observation outside"
)


def compiled_observation(
    function: Callable[..., Any], sizes: Mapping[str, int], settings: Mapping[str, Any]
) -> CompiledFunction:
    """A function of `ObservedState` in machine code. sizes: of its arguments. settings: dtype and threads.

    What `observe` computes without traced values, such as a random number, would be a constant of the
    program. So it is traced twice. Raises ArgumentError if the traces have different values.
    """
    with without_garbage_collection():
        first = trace(function, sizes)
        try:
            again = trace(function, sizes)
        except TraceError as error:  # `observe` has kept values of the first trace
            raise ArgumentError(f"{error}. The function keeps values of an earlier call. {REMEDY}") from error
        if again != first:
            _check_values(first, again)
        return CompiledFunction(optimise(first), **settings)


def _check_values(first: Program, again: Program) -> None:
    """Raises ArgumentError if two programs of the same inputs have different values in one state."""
    if [(x.name, x.shape) for x in first.outputs] != [(x.name, x.shape) for x in again.outputs]:
        _refuse([port.name for port in first.outputs])
    rng = np.random.default_rng(0)
    state = {port.name: rng.uniform(0.1, 1, port.size) for port in first.inputs}
    values, others = interpret(first, state), interpret(again, state)
    if different := [
        name for name, x in values.items() if not np.allclose(x, others[name], 1e-6, 1e-9, equal_nan=True)
    ]:
        _refuse(different)


def _refuse(outputs: list[str]) -> NoReturn:
    names = ", ".join(repr(name.removeprefix(OBSERVED)) for name in outputs)
    raise ArgumentError(f"{names} differ when they are observed twice in the same state. {REMEDY}")

"""Compiled functions whose inputs and outputs have the shapes of the program's ports."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from zwang.api.arguments import validation
from zwang.compiler.ir.program import Program
from zwang.compiler.runtime.compiled_function import CompiledFunction


class ShapedFunction:
    """A compiled function with inputs and outputs in the shapes of the program's ports; compiled code has
    flat ones.
    """

    def __init__(self, compiled: CompiledFunction):
        self.compiled = compiled
        self._outputs = [port.shape for port in compiled.program.outputs]

    @staticmethod
    def of(program: Program, settings: Mapping[str, Any]) -> ShapedFunction | CompiledFunction:
        """The compiled function, as it is if all its ports are flat."""
        compiled = CompiledFunction(program, **settings)
        flat = all(len(port.shape) == 1 for port in (*program.inputs, *program.outputs))
        return compiled if flat else ShapedFunction(compiled)

    def prepare(self, *, worlds: int) -> None:
        """Compile for one world or for many worlds."""
        self.compiled.prepare(worlds=worlds)

    @staticmethod
    def direct(arrays: Any) -> None:
        """None, because every call needs the changes of shape in `__call__`."""

    def __call__(self, *arrays: Any) -> Any:
        given = [
            validation.real_values(a, port.name)[..., None]
            if port.shape == ()
            else (validation.real_values(a, port.name) if isinstance(a, np.ma.MaskedArray) else a)
            for a, port in zip(arrays, self.compiled.program.inputs, strict=True)
        ]
        computed = self.compiled(*given)
        results = computed if isinstance(computed, tuple) else (computed,)
        shaped = [r.reshape(r.shape[:-1] + shape) for r, shape in zip(results, self._outputs, strict=True)]
        return shaped[0] if len(shaped) == 1 else tuple(shaped)

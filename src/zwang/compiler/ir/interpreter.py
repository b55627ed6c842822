"""The reference interpreter: it executes a program on Python floats, one lane after the other."""

from __future__ import annotations

import math
import operator
import struct
from collections.abc import Callable, Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from zwang.compiler.ir.program import Block, Instruction, Program
from zwang.errors import ShapeError
from zwang.scalar import FloatBackend
from zwang.scalar.arrays import clamped_index


def interpret(program: Program, inputs: Mapping[str, Any], dtype: Any = "float64") -> dict[str, np.ndarray]:
    """The outputs of a program by interpretation, lane by lane.

    inputs: for each input of the program an array of shape (size,) or (lanes, size). dtype: "float64" or
    "float32"; every operation is rounded to it once. The result maps each output's name to an array (size,)
    or (lanes, size).

    Each lane is interpreted alone, so an operation across lanes (`compact`, `lane_maximum`) sees one lane
    only. Elementary functions are those of Python's math module, rounded to `dtype`. Raises ShapeError for a
    wrong size.
    """
    dtype = np.dtype(dtype)
    arrays = {port.name: _lanes(port.name, port.size, inputs) for port in program.inputs}
    lanes = max((array.shape[0] for array in arrays.values() if array.ndim == 2), default=None)
    results = []
    for lane in range(lanes or 1):
        rows = [array[lane] if array.ndim == 2 else array for array in arrays.values()]
        machine = _Machine([row.astype(dtype).tolist() for row in rows], dtype)
        found = machine.run(program.body, ())
        results.append([x for result in found for x in (result if isinstance(result, list) else [result])])
    table = np.array(results, dtype=dtype).reshape(lanes or 1, -1)
    out, start = {}, 0
    for port in program.outputs:
        columns = table[:, start : start + port.size]
        out[port.name] = columns[0] if lanes is None else columns
        start += port.size
    return out


def _lanes(name: str, size: int, inputs: Mapping[str, Any]) -> np.ndarray:
    array = np.asarray(inputs[name], dtype=float)
    array = array.reshape(-1) if array.ndim == 0 else array
    if array.ndim > 2 or array.shape[-1] != size:
        raise ShapeError(
            f"input {name!r} has the shape {array.shape}; it should be ({size},) or (lanes, {size})"
        )
    return array


def fused(a: float, b: float, c: float) -> float:
    """a*b + c, rounded once to a double."""
    if not (math.isfinite(a) and math.isfinite(b) and math.isfinite(c)):
        return a * b + c
    exact = Fraction(a) * Fraction(b) + Fraction(c)
    if exact == 0:
        return a * b + c if c == 0 or a * b == 0 else 0.0
    try:
        return exact.numerator / exact.denominator
    except OverflowError:
        return math.inf if exact > 0 else -math.inf


def _fused_single(a: float, b: float, c: float) -> float:
    """a*b + c of single-precision numbers as a double, rounded to odd so that rounding it to single is
    exact.
    """
    product = a * b
    total = product + c
    if not math.isfinite(total):
        return total
    back = total - product
    rounding_error = (product - (total - back)) + (c - back)
    if rounding_error and np.float64(total).view(np.int64) % 2 == 0:
        return math.nextafter(total, math.inf if rounding_error > 0 else -math.inf)
    return total


_real = FloatBackend
REALS: dict[str, Callable[..., Any]] = {
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
    "div": _real.divide,
    "neg": operator.neg,
    "abs": abs,
    "min": _real.minimum,
    "max": _real.maximum,
    "pow": _real.power,
    **{
        name: getattr(_real, name)
        for name in ("sqrt", "floor", "sin", "cos", "tan", "asin", "acos", "exp", "log")
    },
    **{name: getattr(_real, name) for name in ("sinh", "cosh", "tanh", "sech", "asinh", "acosh", "atanh")},
    **{name: getattr(_real, name) for name in ("atan2", "copysign")},
}
_OTHERS: dict[str, Callable[..., Any]] = {
    "lt": operator.lt,
    "le": operator.le,
    "eq": operator.eq,
    "ne": operator.ne,
    "and": operator.and_,
    "or": operator.or_,
    "xor": operator.xor,
    "not": operator.not_,
    "true": lambda: True,
    "false": lambda: False,
    "iadd": operator.add,
    "isub": operator.sub,
    "imul": operator.mul,
    "select": lambda p, a, b: a if p else b,
    "load": lambda array, i: array[i],
}


_ON_BITS: dict[str, Callable[[int, int], int]] = {
    "bit": lambda bits, n: bits >> n & 1,
    "bit_and": operator.and_,
    "bit_or": operator.or_,
    "bit_add": operator.add,
    "shift_left": operator.lshift,
    "shift_right": operator.rshift,
}


class _Machine:
    """The execution of a program for one lane."""

    def __init__(self, inputs: list[list[float]], dtype: np.dtype) -> None:
        self.inputs = inputs
        self.round: Callable[[float], float] = (
            float if dtype == np.float64 else lambda x: float(np.float32(x))
        )
        self.fused = fused if dtype == np.float64 else _fused_single
        self.codes = ("<d", "<Q", 64) if dtype == np.float64 else ("<f", "<I", 32)

    def run(self, block: Block, arguments: tuple) -> list[Any]:
        values = dict(zip(block.parameters, arguments, strict=True))
        for instruction in block.instructions:
            args = [values[a] for a in instruction.args]
            results = self.step(instruction, args)
            values.update(zip(instruction.out, results, strict=True))
        return [values[r] for r in block.results]

    def step(self, instruction: Instruction, args: list[Any]) -> list[Any]:
        op, data = instruction.op, instruction.data
        if op in REALS:
            with np.errstate(all="ignore"):
                return [self.round(REALS[op](*args))]
        if op in ("fma", "fms", "fnma"):
            a, b, c = args
            with np.errstate(all="ignore"):
                return [self.round(self.fused(-a if op == "fnma" else a, b, -c if op == "fms" else c))]
        if op in _OTHERS:
            return [_OTHERS[op](*args)]
        if op in _ON_BITS:
            return [self._on_bits(op, data, args[0])]
        return getattr(self, f"_{op}")(data, *args)

    def _on_bits(self, op: str, data: int, value: float) -> float | bool:
        real, whole, size = self.codes
        [bits] = struct.unpack(whole, struct.pack(real, value))
        result = _ON_BITS[op](bits, data % 2**size)
        return bool(result) if op == "bit" else struct.unpack(real, struct.pack(whole, result % 2**size))[0]

    def _const(self, data: float) -> list[float]:
        with np.errstate(all="ignore"):
            return [self.round(data)]

    def _index(self, data: int) -> list[int]:
        return [data]

    def _input(self, data: tuple[int, int]) -> list[float]:
        return [self.inputs[data[0]][data[1]]]

    def _input_array(self, data: tuple[int, int, int]) -> list[list[float]]:
        number, first, length = data
        return [self.inputs[number][first : first + length]]

    def _table(self, data: tuple, i: int) -> list[float]:
        return [self.round(data[i])]

    def _index_table(self, data: tuple, i: int) -> list[int]:
        return [data[i]]

    def _array(self, data: int) -> list[list[float]]:
        return [[0.0] * data]

    def _empty(self, data: int) -> list[list[float]]:
        return [[math.nan] * data]

    def _compact(self, data: int, array: list[float], n: int) -> list[list[float]]:
        found = [float(i) for i in range(n) if array[i] > 0]
        return [[*found, *[0.0] * (data - len(found)), float(len(found))]]

    def _active_index(self, data: int, array: list[float], i: int) -> list[int]:
        return [int(array[i])]

    def _active_count(self, data: int, array: list[float]) -> list[int]:
        return [int(array[-1])]

    def _store(self, data: None, array: list[float], i: int, value: float) -> list[list[float]]:
        array[i] = value
        return [array]

    def _gather(self, data: None, array: list[float], position: float) -> list[float]:
        return [array[clamped_index(position, len(array))]]

    def _scatter(self, data: None, array: list[float], position: float, value: float) -> list[list[float]]:
        array[clamped_index(position, len(array))] = value
        return [array]

    def _lane(self, data: None) -> list[float]:
        return [0.0]

    def _lane_maximum(self, data: int, value: float) -> list[int]:
        return [clamped_index(value, data + 1)]

    def _while(self, data: Any, *args: Any) -> list[Any]:
        carry, captured = list(args[: data.carried]), args[data.carried :]
        while self.run(data.condition, (*carry, *captured))[0]:
            carry = self.run(data.body, (*carry, *captured))
        return carry

    def _cond(self, data: Any, p: bool, *captured: Any) -> list[Any]:
        return self.run(data.then if p else data.otherwise, captured)

    def _for(self, data: Any, *args: Any) -> list[Any]:
        carry, captured = list(args[: data.carried]), args[data.carried :]
        indices = range(*captured[:2]) if data.dynamic else range(data.count)
        if data.reverse:
            indices = reversed(indices)
        if data.over_active:
            indices = map(int, captured[0][: int(captured[0][-1])])
        for i in indices:
            carry = self.run(data.body, (i, *carry, *captured))
        return carry

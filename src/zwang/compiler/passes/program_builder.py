"""Instructions written in Python's arithmetic notation, so that formulas in compiler passes read as
formulas.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Kind
from zwang.scalar.arrays import Entries


@dataclass
class ProgramBuilder:
    """The block that is being written, and the numbering of its values."""

    dtype: str
    kinds: dict[int, Kind]
    lengths: dict[int, int]
    next_value: int
    instructions: list[Instruction] = field(default_factory=list)
    constants: dict[Any, int] = field(default_factory=dict)

    def value(self, kind: Kind) -> int:
        number = self.next_value
        self.next_value += 1
        self.kinds[number] = kind
        return number

    def write(self, op: str, args: tuple[int, ...], kind: Kind = "real", data: Any = None) -> Operand:
        out = self.value(kind)
        self.instructions.append(Instruction(op, args, (out,), data))
        return Operand(self, out)

    def number(self, value: float) -> Operand:
        """A constant, emitted once per block."""
        key = (repr(float(value)),)
        if key not in self.constants:
            self.constants[key] = self.write("const", (), "real", float(value)).value
        return Operand(self, self.constants[key])

    def position(self, index: int) -> Operand:
        """A constant index, emitted once per block."""
        if index not in self.constants:
            self.constants[index] = self.write("index", (), "index", index).value
        return Operand(self, self.constants[index])

    @contextmanager
    def block(self) -> Iterator[None]:
        """A context in which instructions go into a nested block, with constants of its own."""
        outer = self.instructions, self.constants
        self.instructions, self.constants = [], {}
        try:
            yield
        finally:
            self.instructions, self.constants = outer

    def loop(
        self,
        count: int,
        carry: Sequence[Operand],
        captured: Sequence[Operand],
        body: Callable[..., list[Operand]],
    ) -> list[Operand]:
        """A `for` loop of `count` iterations; body(index, carry, captured) returns the new carry."""
        with self.block():
            index = self.value("index")
            parameters = [self._like(term) for term in (*carry, *captured)]
            results = body(Operand(self, index), parameters[: len(carry)], parameters[len(carry) :])
            block = self._block_of((index, *(t.value for t in parameters)), results)
        return self._control("for", [*carry, *captured], carry, For(count, block, len(carry)))

    def rare_cond(
        self,
        condition: Operand,
        arguments: Sequence[Operand],
        otherwise: Sequence[Operand],
        then: Callable[..., list[Operand]],
    ) -> list[Operand]:
        """A `cond` with `then` out of line: then(arguments, otherwise) where the condition is true, else
        `otherwise`.
        """
        captured = [*arguments, *otherwise]
        with self.block():
            parameters = [self._like(term) for term in captured]
            results = then(parameters[: len(arguments)], parameters[len(arguments) :])
            block = self._block_of([t.value for t in parameters], results)
        plain = [self._like(term).value for term in captured]
        keep = Block(tuple(plain), (), tuple(plain[len(arguments) :]))
        return self._control("cond", [condition, *captured], otherwise, Cond(block, keep, rare=True))

    def _block_of(self, parameters: Sequence[int], results: Sequence[Operand]) -> Block:
        return Block(tuple(parameters), tuple(self.instructions), tuple(term.value for term in results))

    def _like(self, term: Operand) -> Operand:
        value = self.value(self.kinds[term.value])
        if term.value in self.lengths:
            self.lengths[value] = self.lengths[term.value]
        return Operand(self, value)

    def _control(self, op: str, args: Sequence[Operand], like: Sequence[Operand], data: Any) -> list[Operand]:
        out = [self._like(term) for term in like]
        values = tuple(term.value for term in out)
        self.instructions.append(Instruction(op, tuple(term.value for term in args), values, data))
        return out


@dataclass(frozen=True)
class Operand:
    """A value of the program that is being written."""

    builder: ProgramBuilder
    value: int

    def _write(self, op: str, *others: Any, kind: Kind = "real", data: Any = None) -> Operand:
        return self.builder.write(op, (self.value, *(self.lift(o).value for o in others)), kind, data)

    def lift(self, other: Any) -> Operand:
        return other if isinstance(other, Operand) else self.builder.number(other)

    def __add__(self, other: Any) -> Operand:
        return self._write("add", other)

    def __radd__(self, other: Any) -> Operand:
        return self.lift(other) + self

    def __sub__(self, other: Any) -> Operand:
        return self._write("sub", other)

    def __rsub__(self, other: Any) -> Operand:
        return self.lift(other) - self

    def __mul__(self, other: Any) -> Operand:
        return self._write("mul", other)

    def __rmul__(self, other: Any) -> Operand:
        return self.lift(other) * self

    def __truediv__(self, other: Any) -> Operand:
        return self._write("div", other)

    def __rtruediv__(self, other: Any) -> Operand:
        return self.lift(other) / self

    def __neg__(self) -> Operand:
        return self._write("neg")

    def __abs__(self) -> Operand:
        return self._write("abs")

    def __lt__(self, other: Any) -> Operand:
        return self._write("lt", other, kind="bool")

    def __le__(self, other: Any) -> Operand:
        return self._write("le", other, kind="bool")

    def __gt__(self, other: Any) -> Operand:
        return self.lift(other) < self

    def __ge__(self, other: Any) -> Operand:
        return self.lift(other) <= self

    def equals(self, other: Any) -> Operand:
        return self._write("eq", other, kind="bool")

    def differs(self, other: Any) -> Operand:
        return self._write("ne", other, kind="bool")

    def __and__(self, other: Operand) -> Operand:
        return self._write("and", other, kind="bool")

    def __or__(self, other: Operand) -> Operand:
        return self._write("or", other, kind="bool")

    def __xor__(self, other: Operand) -> Operand:
        return self._write("xor", other, kind="bool")

    def __invert__(self) -> Operand:
        return self._write("not", kind="bool")

    def bit(self, number: int) -> Operand:
        return self._write("bit", kind="bool", data=number)

    def on_bits(self, op: str, data: int) -> Operand:
        """The operation `op` on the bits: bit_and, bit_or, bit_add, shift_left or shift_right."""
        return self._write(op, data=data)

    def load(self, index: Operand) -> Operand:
        return self._write("load", index)

    def store(self, index: Operand, entry: Operand) -> Operand:
        stored = self._write("store", index, entry, kind="array")
        self.builder.lengths[stored.value] = self.builder.lengths[self.value]
        return stored


def fma(a: Operand, b: Any, c: Any) -> Operand:
    """a*b + c, rounded once."""
    return a.builder.write("fma", (a.value, a.lift(b).value, a.lift(c).value))


def fnma(a: Operand, b: Any, c: Any) -> Operand:
    """c - a*b, rounded once."""
    return a.builder.write("fnma", (a.value, a.lift(b).value, a.lift(c).value))


def fms(a: Operand, b: Any, c: Any) -> Operand:
    """a*b - c, rounded once."""
    return a.builder.write("fms", (a.value, a.lift(b).value, a.lift(c).value))


def sqrt(a: Operand) -> Operand:
    return a.builder.write("sqrt", (a.value,))


def floor(a: Operand) -> Operand:
    return a.builder.write("floor", (a.value,))


def smaller(a: Operand, b: Any) -> Operand:
    return a.builder.write("min", (a.value, a.lift(b).value))


def larger(a: Operand, b: Any) -> Operand:
    return a.builder.write("max", (a.value, a.lift(b).value))


def copysign(a: Operand, b: Operand) -> Operand:
    return a.builder.write("copysign", (a.value, b.value))


def select(condition: Operand, a: Any, b: Any) -> Operand:
    """a where the condition is true, else b; for reals or truth values."""
    first, second = condition.lift(a), condition.lift(b)
    kind = condition.builder.kinds[first.value]
    return condition.builder.write("select", (condition.value, first.value, second.value), kind)


def table_value(values: Sequence[float], index: Operand) -> Operand:
    return index.builder.write("table", (index.value,), "real", Entries(values))


def polynomial(x: Operand, coefficients: Sequence[float]) -> Operand:
    """The polynomial in x with these coefficients, lowest power first, by Horner's rule with fused
    multiply-adds.
    """
    result = x.builder.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    return result

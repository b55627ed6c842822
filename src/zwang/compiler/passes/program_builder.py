"""Python's arithmetic notation for writing instructions, so that formulas in a back end read as formulas."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from zwang.compiler.ir.program import Block, Cond, For, Instruction, Kind


@dataclass
class ProgramBuilder:
    """Where instructions are written: the block that is open, and the numbering of values."""

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
        """A constant; written once a block."""
        key = (repr(float(value)),)
        if key not in self.constants:
            self.constants[key] = self.write("const", (), "real", float(value)).value
        return Operand(self, self.constants[key])

    def position(self, index: int) -> Operand:
        if index not in self.constants:
            self.constants[index] = self.write("index", (), "index", index).value
        return Operand(self, self.constants[index])

    @contextmanager
    def block(self) -> Iterator[None]:
        """A nested block: closed, so constants are written anew in it."""
        kept = self.instructions, self.constants
        self.instructions, self.constants = [], {}
        try:
            yield
        finally:
            self.instructions, self.constants = kept

    def loop(self, count: int, carry: Sequence[Operand], captured: Sequence[Operand], body: Any) -> list[Operand]:
        """`for`: body(index, carry, captured) gives the new carry."""
        with self.block():
            index = self.value("index")
            inside = [self._like(term) for term in (*carry, *captured)]
            results = body(Operand(self, index), inside[: len(carry)], inside[len(carry) :])
            block = self._closed((index, *(t.value for t in inside)), results)
        return self._owner("for", [*carry, *captured], carry, For(count, block, len(carry)))

    def rarely(
        self, condition: Operand, given: Sequence[Operand], otherwise: Sequence[Operand], then: Any
    ) -> list[Operand]:
        """`when`, out of line: then(given, otherwise) where the condition holds, else what `otherwise` has."""
        captured = [*given, *otherwise]
        with self.block():
            inside = [self._like(term) for term in captured]
            results = then(inside[: len(given)], inside[len(given) :])
            block = self._closed([t.value for t in inside], results)
        plain = [self._like(term).value for term in captured]
        keep = Block(tuple(plain), (), tuple(plain[len(given) :]))
        return self._owner("cond", [condition, *captured], otherwise, Cond(block, keep, rare=True))

    def _closed(self, parameters: Sequence[int], results: Sequence[Operand]) -> Block:
        return Block(tuple(parameters), tuple(self.instructions), tuple(term.value for term in results))

    def _like(self, term: Operand) -> Operand:
        value = self.value(self.kinds[term.value])
        if term.value in self.lengths:
            self.lengths[value] = self.lengths[term.value]
        return Operand(self, value)

    def _owner(self, op: str, args: Sequence[Operand], like: Sequence[Operand], data: Any) -> list[Operand]:
        out = [self._like(term) for term in like]
        values = tuple(term.value for term in out)
        self.instructions.append(Instruction(op, tuple(term.value for term in args), values, data))
        return out


@dataclass(frozen=True)
class Operand:
    """A value of the program being written."""

    page: ProgramBuilder
    value: int

    def _write(self, op: str, *others: Any, kind: Kind = "real", data: Any = None) -> Operand:
        return self.page.write(op, (self.value, *(self.lift(o).value for o in others)), kind, data)

    def lift(self, other: Any) -> Operand:
        return other if isinstance(other, Operand) else self.page.number(other)

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
        """bit_and, bit_or, bit_add, shift_left, shift_right."""
        return self._write(op, data=data)

    def load(self, index: Operand) -> Operand:
        return self._write("load", index)

    def store(self, index: Operand, entry: Operand) -> Operand:
        stored = self._write("store", index, entry, kind="array")
        self.page.lengths[stored.value] = self.page.lengths[self.value]
        return stored


def fma(a: Operand, b: Any, c: Any) -> Operand:
    """a*b + c, rounded once."""
    return a.page.write("fma", (a.value, a.lift(b).value, a.lift(c).value))


def fnma(a: Operand, b: Any, c: Any) -> Operand:
    """c - a*b, rounded once."""
    return a.page.write("fnma", (a.value, a.lift(b).value, a.lift(c).value))


def fms(a: Operand, b: Any, c: Any) -> Operand:
    """a*b - c, rounded once."""
    return a.page.write("fms", (a.value, a.lift(b).value, a.lift(c).value))


def sqrt(a: Operand) -> Operand:
    return a.page.write("sqrt", (a.value,))


def floor(a: Operand) -> Operand:
    return a.page.write("floor", (a.value,))


def smaller(a: Operand, b: Any) -> Operand:
    return a.page.write("min", (a.value, a.lift(b).value))


def larger(a: Operand, b: Any) -> Operand:
    return a.page.write("max", (a.value, a.lift(b).value))


def copysign(a: Operand, b: Operand) -> Operand:
    return a.page.write("copysign", (a.value, b.value))


def select(condition: Operand, a: Any, b: Any) -> Operand:
    """a where the condition holds, else b; of reals or truth values."""
    first, second = condition.lift(a), condition.lift(b)
    kind = condition.page.kinds[first.value]
    return condition.page.write("select", (condition.value, first.value, second.value), kind)


def table(values: Sequence[float], index: Operand) -> Operand:
    return index.page.write("table", (index.value,), "real", tuple(values))


def polynomial(x: Operand, coefficients: Sequence[float]) -> Operand:
    """By Horner's rule, lowest power first."""
    result = x.page.number(coefficients[-1])
    for coefficient in reversed(coefficients[:-1]):
        result = fma(result, x, coefficient)
    return result

"""The numbering of the values of a program that a pass changes."""

from __future__ import annotations

from dataclasses import dataclass

from zwang.compiler.ir.program import Kind, Program


@dataclass
class Values:
    """The kinds of all values, the lengths of arrays, and the next free number."""

    kinds: dict[int, Kind]
    lengths: dict[int, int]
    next_value: int

    @classmethod
    def of(cls, program: Program) -> Values:
        """Those of a program, to which values may be added."""
        return cls(dict(program.kinds), dict(program.lengths), max(program.kinds, default=0) + 1)

    def new(self, kind: Kind, length: int | None = None) -> int:
        """A new value; length: of an array."""
        number = self.next_value
        self.next_value += 1
        self.kinds[number] = kind
        if length is not None:
            self.lengths[number] = length
        return number

    def like(self, value: int) -> int:
        """A new value of the kind, and with the length, of another one."""
        return self.new(self.kinds[value], self.lengths.get(value))

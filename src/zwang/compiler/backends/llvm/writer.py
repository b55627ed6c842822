"""One LLVM function being written, row by row, and where the values of the program are to be found in it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.ir.program import Kind

ALIGNMENT = 128


@dataclass(frozen=True)
class StackSlot:
    """A value that waits in scratch memory, `offset` bytes from its start."""

    kind: Kind
    offset: int


@dataclass(frozen=True)
class InputElement:
    """A value that is an element of an input."""

    port: int
    element: int


@dataclass(frozen=True)
class ArraySlot:
    """An array in scratch memory. Its place never changes: stores are made in place."""

    offset: int
    length: int


Location = str | StackSlot | InputElement | ArraySlot  # a string is an operand: %name or a constant


@dataclass
class StackFrame:
    """The scratch memory that all functions of a module share; slots that are free again are used again."""

    lanes: Lanes
    size: int = 0
    free: list[int] = field(default_factory=list)

    def slot(self, kind: Kind) -> StackSlot:
        return StackSlot(kind, self.free.pop() if self.free else self._take(max(8, self.lanes.bytes)))

    def array(self, length: int) -> ArraySlot:
        return ArraySlot(self._take(max(length, 1) * self.lanes.bytes), length)

    def release(self, slot: StackSlot) -> None:
        self.free.append(slot.offset)

    def _take(self, size: int) -> int:
        unit = max(8, min(self.lanes.bytes, ALIGNMENT))
        offset = -(-self.size // unit) * unit
        self.size = offset + size
        return offset


class FunctionSignature(Protocol):
    """How a function reaches the inputs and outputs of the program."""

    parameters: str  # as LLVM text, in the function's head; also %scratch
    arguments: str  # the same in a call

    def load(self, writer: FunctionWriter, element: InputElement) -> str: ...

    def store(self, writer: FunctionWriter, position: int, operand: str) -> None: ...


class FunctionWriter:
    """One function: its rows, the block that is open, the mask of lanes that count, and what each value is.

    Scopes nest with the blocks of the program: what is learned in a branch (a value loaded from memory, say) is
    forgotten after it, because the branch may not have been taken.
    """

    def __init__(self, lanes: Lanes, door: FunctionSignature, values: dict[int, Location]):
        self.lanes, self.door = lanes, door
        self.rows: list[str] = []
        self.scopes: list[dict[int, Location]] = [values]
        self.mask: str | None = None  # None: all lanes
        self.exports: dict[int, list[StackSlot | int]] = {}  # to slots, or to positions in the output
        self.label = "entry"
        self._names = 0

    # -------------------------------------------------------------------------------------------- rows

    def fresh(self) -> str:
        self._names += 1
        return f"%t{self._names}"

    def row(self, text: str) -> None:
        self.rows.append(f"  {text}")

    def let(self, text: str) -> str:
        """A row that gives a value; returns its name."""
        self._names += 1
        name = f"%t{self._names}"
        self.rows.append(f"  {name} = {text}")
        return name

    def new_label(self) -> str:
        self._names += 1
        return f"b{self._names}"

    def open(self, label: str) -> None:
        """Begin the block of that label."""
        self.rows.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        self.row(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, *, rare: bool = False) -> None:
        weights = ", !prof !0" if rare else ""
        self.row(f"br i1 {condition}, label %{yes}, label %{no}{weights}")

    def reserve(self) -> int:
        """Keep a row for a phi whose second half is known only later."""
        self.rows.append("")
        return len(self.rows) - 1

    def text(self, head: str) -> str:
        return "\n".join([f"{head} {{", "entry:", *self.rows, "  ret void", "}", ""])

    # ------------------------------------------------------------------------------------------ values

    @contextmanager
    def scope(self) -> Iterator[None]:
        """Whatever becomes known inside is forgotten afterwards, and the mask is as before."""
        mask = self.mask
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()
            self.mask = mask

    def define(self, value: int, location: Location) -> None:
        self.scopes[-1][value] = location
        if value in self.exports and not isinstance(location, ArraySlot):
            operand = self.get(value)
            for target in self.exports.pop(value):
                self.deliver(target, operand)

    def deliver(self, target: StackSlot | int, operand: str) -> None:
        if isinstance(target, StackSlot):
            self.put(target, operand)
        else:
            self.door.store(self, target, operand)

    def where(self, value: int) -> Location:
        for scope in reversed(self.scopes):
            if value in scope:
                return scope[value]
        raise KeyError(f"value {value} is used before it is defined")

    def home(self, value: int, scratch: StackFrame, kind: Kind) -> tuple[Location, StackSlot | None]:
        """Where another function finds the value. The slot that was taken for it now, if any, is the second."""
        for scope in reversed(self.scopes):
            location = scope.get(value)
            if location is not None and not (isinstance(location, str) and location[0] == "%"):
                return location, None
        slot = scratch.slot(kind)
        self.put(slot, self.get(value))
        return slot, slot

    def get(self, value: int) -> str:
        """The value as an operand; loaded if it is in memory."""
        location = self.where(value)
        if isinstance(location, str):
            return location
        if isinstance(location, StackSlot):
            operand = self.load(location)
        elif isinstance(location, InputElement):
            operand = self.door.load(self, location)
        else:
            raise TypeError(f"value {value} is an array, which is no operand")
        self.scopes[-1][value] = operand
        return operand

    def array(self, value: int) -> ArraySlot:
        location = self.where(value)
        if not isinstance(location, ArraySlot):
            raise TypeError(f"value {value} is no array")
        return location

    # ------------------------------------------------------------------------------------------ memory

    def address(self, offset: int) -> str:
        return self.let(f"getelementptr inbounds i8, ptr %scratch, i64 {offset}")

    def element_address(self, array: ArraySlot, index: str) -> str:
        base = self.address(array.offset)
        return self.let(f"getelementptr inbounds {self.lanes.real}, ptr {base}, i64 {index}")

    def load(self, slot: StackSlot) -> str:
        address = self.address(slot.offset)
        if slot.kind == "bool":
            byte = self.lanes.vector("i8")
            return self.let(f"trunc {byte} {self.let(f'load {byte}, ptr {address}')} to {self.lanes.truth}")
        return self.let(f"load {self.lanes.kind(slot.kind)}, ptr {address}")

    def put(self, slot: StackSlot, operand: str) -> None:
        address = self.address(slot.offset)
        kind = self.lanes.kind(slot.kind)
        if slot.kind == "bool":
            kind, was = self.lanes.vector("i8"), kind
            operand = self.let(f"zext {was} {operand} to {kind}")
        self.row(f"store {kind} {operand}, ptr {address}")

    # ------------------------------------------------------------------------------------------- masks

    def masked(self, condition: str) -> str:
        """The lanes that count and have the condition."""
        if self.mask is None:
            return condition
        return self.let(f"and {self.lanes.truth} {condition}, {self.mask}")

    def negate(self, condition: str) -> str:
        return self.let(f"xor {self.lanes.truth} {condition}, {self.lanes.true}")

    def any(self, condition: str) -> str:
        width = self.lanes.width
        if width == 1:
            return condition
        packed = self.let(f"bitcast {self.lanes.truth} {condition} to i{width}")
        return self.let(f"icmp ne i{width} {packed}, 0")

    def choose(self, condition: str, kind: str, yes: str, no: str) -> str:
        if yes == no:
            return yes
        return self.let(f"select {self.lanes.truth} {condition}, {kind} {yes}, {kind} {no}")

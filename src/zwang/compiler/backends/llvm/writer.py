"""The writer of one LLVM function: its lines, and the location of each value of the program."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Protocol

from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.ir.program import Kind

ALIGNMENT = 128
ALIGNED_STACK = """
!llvm.module.flags = !{!2}
!2 = !{i32 1, !"override-stack-alignment", i32 64}
"""
"""Functions of a module with this text expect and keep a stack that is aligned to a cache line, to which the
entry points align it. Otherwise all registers of 64 bytes that are saved on the stack may lie across two
lines, which makes large programs a tenth slower.
"""


@dataclass(frozen=True)
class StackSlot:
    """A value stored in the stack frame at `offset` bytes."""

    kind: Kind
    offset: int


@dataclass(frozen=True)
class InputElement:
    """A value that is an element of an input port."""

    port: int
    element: int


@dataclass(frozen=True)
class ArraySlot:
    """An array stored in the stack frame at `offset` bytes; it is updated in place."""

    offset: int
    length: int


Location = str | StackSlot | InputElement | ArraySlot  # a string is an LLVM operand: %name or a constant


@dataclass
class StackFrame:
    """The stack frame that all functions of a module share; released slots are reused."""

    lanes: Lanes
    size: int = 0
    free: list[int] = field(default_factory=list)

    def slot(self, kind: Kind) -> StackSlot:
        """A free slot for one value."""
        return StackSlot(kind, self.free.pop() if self.free else self._allocate(max(8, self.lanes.bytes)))

    def array(self, length: int) -> ArraySlot:
        """Space for an array of this length."""
        return ArraySlot(self._allocate(max(length, 1) * self.lanes.bytes), length)

    def release(self, slot: StackSlot) -> None:
        """Mark a slot as free."""
        self.free.append(slot.offset)

    def _allocate(self, size: int) -> int:
        unit = max(8, min(self.lanes.bytes, ALIGNMENT))
        offset = -(-self.size // unit) * unit
        self.size = offset + size
        return offset


class FunctionSignature(Protocol):
    """The parameters of a function, and its access to the inputs and outputs of the program."""

    parameters: str  # LLVM text of the parameters, %frame included
    arguments: str  # LLVM text of the same arguments in a call

    def load_input(self, writer: FunctionWriter, element: InputElement) -> str: ...

    def store_output(self, writer: FunctionWriter, position: int, operand: str) -> None: ...

    def load_input_at(self, writer: FunctionWriter, element: InputElement, index: str) -> str:
        """The element that follows `element` by this number."""
        ...

    def store_output_at(self, writer: FunctionWriter, position: int, index: str, operand: str) -> None:
        """Store an operand at the position that follows `position` by this number, in the same output."""
        ...


class FunctionWriter:
    """The text of one LLVM function: lines, current basic block, mask of active lanes, and locations of
    values.

    Scopes nest as the blocks of the program do: a location found inside a branch (such as a value loaded from
    memory) is discarded after the branch, because the branch may not have been taken.
    """

    def __init__(self, lanes: Lanes, signature: FunctionSignature, values: dict[int, Location]):
        self.lanes, self.signature = lanes, signature
        self.lines: list[str] = []
        self.scopes: list[dict[int, Location]] = [values]
        self.mask: str | None = None  # None: all lanes are active
        self.exports: dict[
            int, list[StackSlot | int]
        ] = {}  # values to be stored in slots or at positions of the output
        self.label = "entry"
        self._name_count = 0

    # -------------------------------------------------------------------------------------------- rows

    def new_name(self) -> str:
        """A new local name."""
        self._name_count += 1
        return f"%t{self._name_count}"

    def line(self, text: str) -> None:
        """Append an instruction."""
        self.lines.append(f"  {text}")

    def assign(self, text: str) -> str:
        """Append an instruction that has a result; returns the name of the result."""
        self._name_count += 1
        name = f"%t{self._name_count}"
        self.lines.append(f"  {name} = {text}")
        return name

    def new_label(self) -> str:
        """A new label."""
        self._name_count += 1
        return f"b{self._name_count}"

    def begin_block(self, label: str) -> None:
        """Begin the basic block with this label."""
        self.lines.append(f"{label}:")
        self.label = label

    def jump(self, label: str) -> None:
        """Append an unconditional branch."""
        self.line(f"br label %{label}")

    def branch(self, condition: str, yes: str, no: str, *, rare: bool = False) -> None:
        """Append a conditional branch; `rare` marks `yes` as unlikely."""
        weights = ", !prof !0" if rare else ""
        self.line(f"br i1 {condition}, label %{yes}, label %{no}{weights}")

    def reserve_line(self) -> int:
        """Reserve a line for a phi instruction that is completed later; returns its position."""
        self.lines.append("")
        return len(self.lines) - 1

    def text(self, head: str) -> str:
        """The LLVM text of the function with this head (`define ...`)."""
        return "\n".join([f"{head} {{", "entry:", *self.lines, "  ret void", "}", ""])

    # ------------------------------------------------------------------------------------------ values

    @contextmanager
    def scope(self) -> Iterator[None]:
        """A context whose locations of values, and whose mask, are discarded at its end."""
        mask = self.mask
        self.scopes.append({})
        try:
            yield
        finally:
            self.scopes.pop()
            self.mask = mask

    def define(self, value: int, location: Location) -> None:
        """Set the location of a value, and export the value if another function or the output needs it."""
        self.scopes[-1][value] = location
        if value in self.exports and not isinstance(location, ArraySlot):
            operand = self.operand(value)
            for target in self.exports.pop(value):
                self.export_value(target, operand)

    def export_value(self, target: StackSlot | int, operand: str) -> None:
        """Store an operand in a slot or at a position of the output."""
        if isinstance(target, StackSlot):
            self.store_slot(target, operand)
        else:
            self.signature.store_output(self, target, operand)

    def location_of(self, value: int) -> Location:
        """The location of a value."""
        for scope in reversed(self.scopes):
            if value in scope:
                return scope[value]
        raise KeyError(f"value {value} is used before it is defined")

    def shared_location(self, value: int, frame: StackFrame, kind: Kind) -> tuple[Location, StackSlot | None]:
        """A location of the value that other functions can access, and the slot that was newly allocated for
        it, if any.
        """
        for scope in reversed(self.scopes):
            location = scope.get(value)
            if location is not None and not (isinstance(location, str) and location[0] == "%"):
                return location, None
        slot = frame.slot(kind)
        self.store_slot(slot, self.operand(value))
        return slot, slot

    def operand(self, value: int) -> str:
        """The value as an LLVM operand, loaded if it is in memory."""
        location = self.location_of(value)
        if isinstance(location, str):
            return location
        if isinstance(location, StackSlot):
            operand = self.load_slot(location)
        elif isinstance(location, InputElement):
            operand = self.signature.load_input(self, location)
        else:
            raise TypeError(f"value {value} is an array and cannot be an operand")
        self.scopes[-1][value] = operand
        return operand

    def array(self, value: int) -> ArraySlot:
        """The location of an array."""
        location = self.location_of(value)
        if not isinstance(location, ArraySlot):
            raise TypeError(f"value {value} is not an array")
        return location

    # ------------------------------------------------------------------------------------------ memory

    def address(self, offset: int) -> str:
        """An address in the stack frame."""
        return self.assign(f"getelementptr inbounds i8, ptr %frame, i64 {offset}")

    def element_address(self, array: ArraySlot, index: str) -> str:
        """The address of an element, a lane vector, of an array."""
        base = self.address(array.offset)
        return self.assign(f"getelementptr inbounds {self.lanes.real}, ptr {base}, i64 {index}")

    def load_slot(self, slot: StackSlot) -> str:
        """The value of a slot as an operand; truth values are stored as bytes."""
        address = self.address(slot.offset)
        if slot.kind == "bool":
            byte = self.lanes.vector("i8")
            return self.assign(
                f"trunc {byte} {self.assign(f'load {byte}, ptr {address}')} to {self.lanes.truth}"
            )
        return self.assign(f"load {self.lanes.kind(slot.kind)}, ptr {address}")

    def store_slot(self, slot: StackSlot, operand: str) -> None:
        """Store an operand in a slot; truth values are stored as bytes."""
        address = self.address(slot.offset)
        kind = self.lanes.kind(slot.kind)
        if slot.kind == "bool":
            kind, truth = self.lanes.vector("i8"), kind
            operand = self.assign(f"zext {truth} {operand} to {kind}")
        self.line(f"store {kind} {operand}, ptr {address}")

    # ------------------------------------------------------------------------------------------- masks

    def active_condition(self, condition: str) -> str:
        """The mask of the active lanes in which the condition is true."""
        if self.mask is None:
            return condition
        return self.assign(f"and {self.lanes.truth} {condition}, {self.mask}")

    def negation(self, condition: str) -> str:
        """The negated condition."""
        return self.assign(f"xor {self.lanes.truth} {condition}, {self.lanes.true}")

    def any_lane(self, condition: str) -> str:
        """Whether the condition is true in some lane, as i1."""
        width = self.lanes.width
        if width == 1:
            return condition
        packed = self.assign(f"bitcast {self.lanes.truth} {condition} to i{width}")
        return self.assign(f"icmp ne i{width} {packed}, 0")

    def select_lanes(self, condition: str, kind: str, yes: str, no: str) -> str:
        """`yes` in the lanes where the condition is true, else `no`."""
        if yes == no:
            return yes
        return self.assign(f"select {self.lanes.truth} {condition}, {kind} {yes}, {kind} {no}")

"""LLVM IR of straight-line code, split into several functions where it is long.

Straight-line code of more than `FUNCTION_SIZE_LIMIT` instructions is split into functions that exchange
values through the stack frame, so that the compile time grows linearly and not quadratically with the length.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zwang.compiler.backends.array_storage import array_storage
from zwang.compiler.backends.llvm.constant_tables import LONG, table_data, table_name
from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.writer import (
    ArraySlot,
    FunctionSignature,
    FunctionWriter,
    InputElement,
    Location,
    StackFrame,
    StackSlot,
)
from zwang.compiler.ir.program import Block, Instruction, Kind, Program, blocks_of
from zwang.scalar.arrays import Entries

FUNCTION_SIZE_LIMIT = 8000

TEMPLATES = {
    "add": "fadd {R} {0}, {1}",
    "sub": "fsub {R} {0}, {1}",
    "mul": "fmul {R} {0}, {1}",
    "div": "fdiv {R} {0}, {1}",
    "neg": "fneg {R} {0}",
    "sqrt": "call {R} @llvm.sqrt.{S}({R} {0})",
    "abs": "call {R} @llvm.fabs.{S}({R} {0})",
    "floor": "call {R} @llvm.floor.{S}({R} {0})",
    "copysign": "call {R} @llvm.copysign.{S}({R} {0}, {R} {1})",
    "fma": "call {R} @llvm.fma.{S}({R} {0}, {R} {1}, {R} {2})",
    "lt": "fcmp olt {R} {0}, {1}",
    "le": "fcmp ole {R} {0}, {1}",
    "eq": "fcmp oeq {R} {0}, {1}",
    "ne": "fcmp une {R} {0}, {1}",
    "and": "and {B} {0}, {1}",
    "or": "or {B} {0}, {1}",
    "xor": "xor {B} {0}, {1}",
    "not": "xor {B} {0}, {true}",
    "iadd": "add i64 {0}, {1}",
    "isub": "sub i64 {0}, {1}",
    "imul": "mul i64 {0}, {1}",
}
INTRINSICS = {"sqrt": ("sqrt", 1), "abs": ("fabs", 1), "floor": ("floor", 1), "copysign": ("copysign", 2)} | {
    op: ("fma", 3) for op in ("fma", "fms", "fnma")
}
BIT_OPERATIONS = {
    "bit_and": "and",
    "bit_or": "or",
    "bit_add": "add",
    "shift_left": "shl",
    "shift_right": "lshr",
}


class StraightLineEmitter:
    """The emitter of all functions of one program, whose elementary functions have been expanded.

    The method `_op_NAME` emits the operation NAME; subclasses add arrays and control flow.
    """

    def __init__(
        self, program: Program, lanes: Lanes, signature: FunctionSignature, limit: int = FUNCTION_SIZE_LIMIT
    ):
        self.program, self.lanes, self.signature, self.limit = program, lanes, signature, limit
        self.storage = array_storage(program, longest_on_stack=0)
        self.frame = StackFrame(lanes, self.storage.size * lanes.bytes)
        self.functions: list[str] = []
        self.tables: dict[str, Entries] = {}  # by their names
        self.intrinsics: set[str] = set()
        self._sizes: dict[int, int] = {}
        # for the offset of each array the function and the mask under which it was allocated
        self.allocated_in: dict[int, tuple[FunctionWriter, str | None]] = {}
        names = {"R": lanes.real, "B": lanes.truth, "S": lanes.suffix, "true": lanes.true}
        self._templates = {op: _bind_types(text, names) for op, text in TEMPLATES.items()}
        self._emitters: dict[str, Callable[[FunctionWriter, Instruction], None]] = {
            name.removeprefix("_op_"): getattr(self, name) for name in dir(self) if name.startswith("_op_")
        }

    # ---------------------------------------------------------------------------------------- functions

    def body(self, head: str, prologue: Sequence[str] = (), label: str = "entry") -> None:
        """Emit the program's body as one function, which may call others.

        head: the LLVM text up to and including the parameters; prologue: first lines of the function, which
        end in the basic block `label`.
        """
        writer = FunctionWriter(self.lanes, self.signature, {})
        writer.lines.extend(prologue)
        writer.label = label
        block, arrays, position = self.program.body, list[tuple[int, int]](), 0
        for result in block.results:
            if self._kind(result) == "array":
                arrays.append((result, position))
                position += self.program.lengths[result]
            else:
                writer.exports.setdefault(result, []).append(position)
                position += 1
        self.block(writer, block)
        for result, position in arrays:
            self.export_array(writer, writer.array(result), position)
        self._finish(writer, head)

    def text(self) -> str:
        """The LLVM text of the module with all tables."""
        return self.module_text(self.functions, self.table_texts(is_given=False))

    def module_text(self, functions: Sequence[str], heads: Sequence[str]) -> str:
        """The LLVM text of a module of some functions; heads: tables and functions that they use."""
        declared = [f"declare {declaration}" for declaration in sorted(self.intrinsics)]
        weights = '!0 = !{!"branch_weights", i32 1, i32 100000}'
        attributes = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
        return "\n".join([*heads, *functions, *declared, attributes, weights, "!1 = !{}", ""])

    def export_array(self, writer: FunctionWriter, array: ArraySlot, position: int) -> None:
        """Store all elements of an array in the output, from this position on."""
        raise NotImplementedError

    def _finish(self, writer: FunctionWriter, head: str) -> None:
        """Store the values that are still to be exported, and complete the function."""
        for value, targets in writer.exports.items():
            for target in targets:
                writer.export_value(target, writer.operand(value))
        self.functions.append(writer.text(f"{head} #0"))

    def table_texts(self, *, is_given: bool) -> list[str]:
        """The constant tables as global variables, long ones as their bytes, which LLVM reads faster;
        is_given: long ones as external variables (see `long_tables`).
        """
        return [self._table_text(entries, is_given) for entries in self.tables.values()]

    def _table_text(self, entries: Entries, is_given: bool) -> str:
        name, scalar = table_name(entries), "i64" if entries.are_indices else self.lanes.scalar
        if len(entries) < LONG:
            values = entries if entries.are_indices else map(self.lanes.literal, entries)
            text = f"[{len(entries)} x {scalar}] [{', '.join(f'{scalar} {value}' for value in values)}]"
        elif is_given:
            return f"{name} = external constant [{len(entries)} x {scalar}], align 8"
        else:
            data = table_data(entries, self.lanes)
            text = f'[{data.nbytes} x i8] c"\\{data.tobytes().hex(chr(92))}"'
        return f"{name} = private unnamed_addr constant {text}, align 8"

    # ------------------------------------------------------------------------------------------- blocks

    def size_of(self, instruction: Instruction) -> int:
        """The number of instructions, including those of nested blocks."""
        blocks = blocks_of(instruction)
        if not blocks:
            return 1
        key = id(instruction)
        if key not in self._sizes:
            self._sizes[key] = 1 + sum(self.block_size(block) for block in blocks)
        return self._sizes[key]

    def block_size(self, block: Block) -> int:
        """The number of instructions of a block, including those of nested blocks."""
        return sum(self.size_of(instruction) for instruction in block.instructions)

    def block(self, writer: FunctionWriter, block: Block) -> None:
        """Emit a block, here or, if it is too large, in functions that are called here."""
        if self.block_size(block) > self.limit:
            self._emit_split(writer, block)
        else:
            for instruction in block.instructions:
                self.instruction(writer, instruction)

    def instruction(self, writer: FunctionWriter, instruction: Instruction) -> None:
        """Emit one instruction. Raises ValueError for an unknown operation."""
        op = instruction.op
        if op in INTRINSICS:
            self._declare(*INTRINSICS[op])
        template = self._templates.get(op)
        if template is not None:
            operands = [writer.operand(argument) for argument in instruction.args]
            writer.define(instruction.out[0], writer.assign(template(*operands)))
        elif op in self._emitters:
            self._emitters[op](writer, instruction)
        elif op in BIT_OPERATIONS:
            self._emit_bit_operation(writer, instruction)
        else:
            raise ValueError(f"unknown operation: {op!r}")

    def _emit_split(self, writer: FunctionWriter, block: Block) -> None:
        """Emit a block in pieces, each a function of its own; values are exchanged through the stack
        frame.
        """
        pieces = self._split_instructions(block.instructions)
        last_use = _last_uses(pieces, block.results)
        expiring: dict[int, list[StackSlot]] = {}
        for number, piece in enumerate(pieces):
            defined = {value for instruction in piece for value in instruction.out}
            used = {argument for instruction in piece for argument in instruction.args}
            incoming = sorted(used - defined)
            exported = sorted(v for v in defined if last_use.get(v, -1) > number)
            slots = self._emit_piece(writer, piece, incoming, exported)
            for value, slot in slots:
                expiring.setdefault(max(number, last_use[value]), []).append(slot)
            for slot in expiring.pop(number, ()):
                self.frame.release(slot)

    def _split_instructions(self, instructions: Sequence[Instruction]) -> list[list[Instruction]]:
        """The instructions in consecutive pieces of at most `limit` instructions."""
        pieces: list[list[Instruction]] = [[]]
        size = 0
        for instruction in instructions:
            size_of = self.size_of(instruction)
            if pieces[-1] and size + size_of > self.limit:
                pieces.append([])
                size = 0
            pieces[-1].append(instruction)
            size += size_of
        return pieces

    def _emit_piece(
        self, writer: FunctionWriter, piece: list[Instruction], incoming: list[int], exported: list[int]
    ) -> list[tuple[int, StackSlot]]:
        """Emit a piece as a function and call it; returns the newly allocated slots with their values."""
        allocated = []
        values: dict[int, Location] = {}
        for value in incoming:
            values[value], slot = writer.shared_location(value, self.frame, self._kind(value))
            if slot is not None:
                writer.scopes[-1][value] = slot
                allocated.append((value, slot))
        callee = self._new_callee(writer, values)
        for value in exported:
            if self._kind(value) != "array":
                slot = self.frame.slot(self._kind(value))
                callee.exports[value] = [slot]
                allocated.append((value, slot))
        defined = {out for instruction in piece for out in instruction.out}
        for value in [v for v in writer.exports if v in defined]:
            callee.exports.setdefault(value, []).extend(writer.exports.pop(value))
        for instruction in piece:
            self.instruction(callee, instruction)
        slot_of = dict(allocated)
        for value in exported:
            writer.scopes[-1][value] = slot_of[value] if value in slot_of else callee.location_of(value)
        self._call_function(writer, callee)
        return allocated

    def _new_callee(self, writer: FunctionWriter, values: dict[int, Location]) -> FunctionWriter:
        """A function to be called from the current position of the writer, under the same mask."""
        callee = FunctionWriter(self.lanes, self.signature, values)
        if writer.mask is not None:
            slot = self.frame.slot("bool")
            writer.store_slot(slot, writer.mask)
            callee.mask = callee.load_slot(slot)
        return callee

    def _call_function(self, writer: FunctionWriter, callee: FunctionWriter, attributes: str = "") -> None:
        """Complete the function `callee` and call it."""
        name = f"@piece{len(self.functions)}"
        self._finish(
            callee, f"define internal void {name}({self.signature.parameters}) {attributes}".rstrip()
        )
        writer.line(f"call void {name}({self.signature.arguments})")

    # ------------------------------------------------------------------------------- simple instructions

    def _kind(self, value: int) -> Kind:
        return self.program.kinds[value]

    def _declare(self, name: str, arity: int) -> None:
        real = self.lanes.real
        self.intrinsics.add(f"{real} @llvm.{name}.{self.lanes.suffix}({', '.join([real] * arity)})")

    def _op_const(self, writer: FunctionWriter, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self.lanes.number(instruction.data))

    def _op_true(self, writer: FunctionWriter, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self.lanes.true)

    def _op_false(self, writer: FunctionWriter, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self.lanes.false)

    def _op_index(self, writer: FunctionWriter, instruction: Instruction) -> None:
        writer.define(instruction.out[0], str(instruction.data))

    def _op_input(self, writer: FunctionWriter, instruction: Instruction) -> None:
        writer.define(instruction.out[0], InputElement(*instruction.data))

    def _op_fms(self, writer: FunctionWriter, instruction: Instruction) -> None:
        a, b, c = (writer.operand(argument) for argument in instruction.args)
        negated = writer.assign(f"fneg {self.lanes.real} {c}")
        writer.define(instruction.out[0], writer.assign(self._templates["fma"](a, b, negated)))

    def _op_fnma(self, writer: FunctionWriter, instruction: Instruction) -> None:
        a, b, c = (writer.operand(argument) for argument in instruction.args)
        negated = writer.assign(f"fneg {self.lanes.real} {a}")
        writer.define(instruction.out[0], writer.assign(self._templates["fma"](negated, b, c)))

    def _op_min(self, writer: FunctionWriter, instruction: Instruction) -> None:
        self._emit_extremum(writer, instruction, "olt")

    def _op_max(self, writer: FunctionWriter, instruction: Instruction) -> None:
        self._emit_extremum(writer, instruction, "ogt")

    def _emit_extremum(self, writer: FunctionWriter, instruction: Instruction, order: str) -> None:
        a, b = (writer.operand(argument) for argument in instruction.args)
        real = self.lanes.real
        chosen = writer.select_lanes(writer.assign(f"fcmp {order} {real} {a}, {b}"), real, a, b)
        nan = writer.assign(f"fcmp uno {real} {a}, {a}")
        writer.define(instruction.out[0], writer.select_lanes(nan, real, a, chosen))

    def _op_select(self, writer: FunctionWriter, instruction: Instruction) -> None:
        condition, yes, no = (writer.operand(argument) for argument in instruction.args)
        kind = self.lanes.kind(self._kind(instruction.out[0]))
        writer.define(instruction.out[0], writer.select_lanes(condition, kind, yes, no))

    def _op_bit(self, writer: FunctionWriter, instruction: Instruction) -> None:
        lanes = self.lanes
        word = writer.assign(f"bitcast {lanes.real} {writer.operand(instruction.args[0])} to {lanes.word}")
        active_condition = writer.assign(f"and {lanes.word} {word}, {lanes.integer(1 << instruction.data)}")
        found = writer.assign(f"icmp ne {lanes.word} {active_condition}, {lanes.integer(0)}")
        writer.define(instruction.out[0], found)

    def _emit_bit_operation(self, writer: FunctionWriter, instruction: Instruction) -> None:
        lanes, name = self.lanes, BIT_OPERATIONS[instruction.op]
        word = writer.assign(f"bitcast {lanes.real} {writer.operand(instruction.args[0])} to {lanes.word}")
        changed = writer.assign(f"{name} {lanes.word} {word}, {lanes.integer(instruction.data)}")
        writer.define(instruction.out[0], writer.assign(f"bitcast {lanes.word} {changed} to {lanes.real}"))


def _bind_types(text: str, names: dict[str, str]) -> Callable[..., str]:
    """The template of an instruction with the types filled in, to be called with the operands."""
    filled = text
    for key, name in names.items():
        filled = filled.replace("{" + key + "}", name)
    return filled.format


def _last_uses(pieces: Sequence[Sequence[Instruction]], results: Sequence[int]) -> dict[int, int]:
    """For each value the number of the last piece that uses it; results count as used after the last
    piece.
    """
    last = {a: number for number, piece in enumerate(pieces) for i in piece for a in i.args}
    return last | dict.fromkeys(results, len(pieces))

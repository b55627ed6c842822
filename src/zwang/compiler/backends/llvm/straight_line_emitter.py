"""Straight-line instructions as LLVM IR, in as many functions as it takes.

A straight piece of more than `LIMIT` instructions is cut into several functions that pass values on through
scratch memory, so that the time to compile grows with the length, and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from zwang.compiler.backends.llvm.lanes import Lanes
from zwang.compiler.backends.llvm.writer import (
    FunctionSignature,
    FunctionWriter,
    InputElement,
    Location,
    StackFrame,
    StackSlot,
)
from zwang.compiler.ir.program import Block, Cond, For, Instruction, Kind, Program, While

LIMIT = 8000

PLAIN = {
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
ON_BITS = {"bit_and": "and", "bit_or": "or", "bit_add": "add", "shift_left": "shl", "shift_right": "lshr"}


class StraightLineEmitter:
    """All functions of one program. `program` has no elementary functions left.

    The method `_op_NAME` writes the operation NAME; subclasses add arrays and control flow.
    """

    def __init__(self, program: Program, lanes: Lanes, door: FunctionSignature, limit: int = LIMIT):
        self.program, self.lanes, self.door, self.limit = program, lanes, door, limit
        self.scratch = StackFrame(lanes)
        self.functions: list[str] = []
        self.tables: dict[tuple[str, tuple], str] = {}
        self.intrinsics: set[str] = set()
        self._weights: dict[int, int] = {}
        self.born: dict[
            int, tuple[FunctionWriter, str | None]
        ] = {}  # by an array's offset: where, and under which mask
        names = {"R": lanes.real, "B": lanes.truth, "S": lanes.suffix, "true": lanes.true}
        self._plain = {op: _with_arguments(text, names) for op, text in PLAIN.items()}
        self._special: dict[str, Callable[[FunctionWriter, Instruction], None]] = {
            name.removeprefix("_op_"): getattr(self, name) for name in dir(self) if name.startswith("_op_")
        }

    # ---------------------------------------------------------------------------------------- functions

    def body(self, head: str, prologue: Sequence[str] = (), label: str = "entry") -> None:
        """The program's whole body as one function, which may call others.

        head: up to the parameters, and with them; prologue: rows to begin with, which end in the block of this label.
        """
        writer = FunctionWriter(self.lanes, self.door, {})
        writer.rows.extend(prologue)
        writer.label = label
        block = self.program.body
        for position, result in enumerate(block.results):
            writer.exports.setdefault(result, []).append(position)
        self.block(writer, block)
        self._finish(writer, head)

    def text(self) -> str:
        data = [text for text in self._table_texts()]
        declared = [f"declare {signature}" for signature in sorted(self.intrinsics)]
        weights = '!0 = !{!"branch_weights", i32 1, i32 100000}'
        attributes = 'attributes #0 = { nounwind "prefer-vector-width"="512" }'
        return "\n".join([*data, *self.functions, *declared, attributes, weights, "!1 = !{}", ""])

    def _finish(self, writer: FunctionWriter, head: str) -> None:
        for value, targets in writer.exports.items():
            for target in targets:
                writer.deliver(target, writer.get(value))
        self.functions.append(writer.text(f"{head} #0"))

    def _table_texts(self) -> list[str]:
        rows = []
        for (kind, values), name in self.tables.items():
            scalar = self.lanes.scalar if kind == "table" else "i64"
            shown = ", ".join(f"{scalar} {self.lanes.literal(v) if kind == 'table' else v}" for v in values)
            rows.append(f"{name} = private unnamed_addr constant [{len(values)} x {scalar}] [{shown}]")
        return rows

    # ------------------------------------------------------------------------------------------- blocks

    def weight(self, instruction: Instruction) -> int:
        """The number of instructions, those of its blocks included."""
        blocks = _blocks(instruction)
        if not blocks:
            return 1
        key = id(instruction)
        if key not in self._weights:
            self._weights[key] = 1 + sum(self.block_weight(block) for block in blocks)
        return self._weights[key]

    def block_weight(self, block: Block) -> int:
        return sum(self.weight(instruction) for instruction in block.instructions)

    def block(self, writer: FunctionWriter, block: Block) -> None:
        """Write the instructions of a block, here or, if they are too many, in functions that are called here."""
        if self.block_weight(block) > self.limit:
            self._split(writer, block)
        else:
            for instruction in block.instructions:
                self.instruction(writer, instruction)

    def instruction(self, writer: FunctionWriter, instruction: Instruction) -> None:
        op = instruction.op
        if op in INTRINSICS:
            self._declare(*INTRINSICS[op])
        plain = self._plain.get(op)
        if plain is not None:
            operands = [writer.get(argument) for argument in instruction.args]
            writer.define(instruction.out[0], writer.let(plain(*operands)))
        elif op in self._special:
            self._special[op](writer, instruction)
        elif op in ON_BITS:
            self._on_bits(writer, instruction)
        else:
            raise ValueError(f"no such operation: {op!r}")

    def _split(self, writer: FunctionWriter, block: Block) -> None:
        """A block in pieces: each a function of its own, values passed on in scratch memory."""
        pieces = self._pieces(block.instructions)
        last_use = _last_uses(pieces, block.results)
        leaving: dict[int, list[StackSlot]] = {}
        for number, piece in enumerate(pieces):
            defined = {value for instruction in piece for value in instruction.out}
            used = {argument for instruction in piece for argument in instruction.args}
            if len(piece) == 1 and _blocks(piece[0]):
                self.instruction(writer, piece[0])
                homes = []
            else:
                incoming = sorted(used - defined)
                exported = sorted(v for v in defined if last_use.get(v, -1) > number)
                homes = self._call_piece(writer, piece, incoming, exported)
            for value, slot in homes:
                leaving.setdefault(max(number, last_use[value]), []).append(slot)
            for slot in leaving.pop(number, ()):
                self.scratch.release(slot)

    def _pieces(self, instructions: Sequence[Instruction]) -> list[list[Instruction]]:
        pieces: list[list[Instruction]] = [[]]
        size = 0
        for instruction in instructions:
            weight = self.weight(instruction)
            if pieces[-1] and size + weight > self.limit:
                pieces.append([])
                size = 0
            pieces[-1].append(instruction)
            size += weight
        return pieces

    def _call_piece(
        self, writer: FunctionWriter, piece: list[Instruction], incoming: list[int], exported: list[int]
    ) -> list[tuple[int, StackSlot]]:
        """Write the piece as a function and call it. Returns the slots taken, with their values."""
        taken = []
        values: dict[int, Location] = {}
        for value in incoming:
            values[value], slot = writer.home(value, self.scratch, self._kind(value))
            if slot is not None:
                writer.scopes[-1][value] = slot
                taken.append((value, slot))
        callee = self._callee(writer, values)
        for value in exported:
            if self._kind(value) != "array":
                slot = self.scratch.slot(self._kind(value))
                callee.exports[value] = [slot]
                taken.append((value, slot))
        made = {out for instruction in piece for out in instruction.out}
        for value in [v for v in writer.exports if v in made]:
            callee.exports.setdefault(value, []).extend(writer.exports.pop(value))
        for instruction in piece:
            self.instruction(callee, instruction)
        mine = dict(taken)
        for value in exported:
            writer.scopes[-1][value] = mine[value] if value in mine else callee.where(value)
        self._call(writer, callee)
        return taken

    def _callee(self, writer: FunctionWriter, values: dict[int, Location]) -> FunctionWriter:
        """A function to be called from where the writer is, under the same mask."""
        callee = FunctionWriter(self.lanes, self.door, values)
        if writer.mask is not None:
            slot = self.scratch.slot("bool")
            writer.put(slot, writer.mask)
            callee.mask = callee.load(slot)
        return callee

    def _call(self, writer: FunctionWriter, callee: FunctionWriter, attributes: str = "") -> None:
        name = f"@piece{len(self.functions)}"
        self._finish(callee, f"define internal void {name}({self.door.parameters}) {attributes}".rstrip())
        writer.row(f"call void {name}({self.door.arguments})")

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
        a, b, c = (writer.get(argument) for argument in instruction.args)
        minus = writer.let(f"fneg {self.lanes.real} {c}")
        writer.define(instruction.out[0], writer.let(self._plain["fma"](a, b, minus)))

    def _op_fnma(self, writer: FunctionWriter, instruction: Instruction) -> None:
        a, b, c = (writer.get(argument) for argument in instruction.args)
        minus = writer.let(f"fneg {self.lanes.real} {a}")
        writer.define(instruction.out[0], writer.let(self._plain["fma"](minus, b, c)))

    def _op_min(self, writer: FunctionWriter, instruction: Instruction) -> None:
        self._extreme(writer, instruction, "olt")

    def _op_max(self, writer: FunctionWriter, instruction: Instruction) -> None:
        self._extreme(writer, instruction, "ogt")

    def _extreme(self, writer: FunctionWriter, instruction: Instruction, order: str) -> None:
        a, b = (writer.get(argument) for argument in instruction.args)
        real = self.lanes.real
        chosen = writer.choose(writer.let(f"fcmp {order} {real} {a}, {b}"), real, a, b)
        nan = writer.let(f"fcmp uno {real} {a}, {a}")
        writer.define(instruction.out[0], writer.choose(nan, real, a, chosen))

    def _op_select(self, writer: FunctionWriter, instruction: Instruction) -> None:
        condition, yes, no = (writer.get(argument) for argument in instruction.args)
        kind = self.lanes.kind(self._kind(instruction.out[0]))
        writer.define(instruction.out[0], writer.choose(condition, kind, yes, no))

    def _op_bit(self, writer: FunctionWriter, instruction: Instruction) -> None:
        lanes = self.lanes
        word = writer.let(f"bitcast {lanes.real} {writer.get(instruction.args[0])} to {lanes.word}")
        masked = writer.let(f"and {lanes.word} {word}, {lanes.integer(1 << instruction.data)}")
        found = writer.let(f"icmp ne {lanes.word} {masked}, {lanes.integer(0)}")
        writer.define(instruction.out[0], found)

    def _on_bits(self, writer: FunctionWriter, instruction: Instruction) -> None:
        lanes, name = self.lanes, ON_BITS[instruction.op]
        word = writer.let(f"bitcast {lanes.real} {writer.get(instruction.args[0])} to {lanes.word}")
        changed = writer.let(f"{name} {lanes.word} {word}, {lanes.integer(instruction.data)}")
        writer.define(instruction.out[0], writer.let(f"bitcast {lanes.word} {changed} to {lanes.real}"))


def _with_arguments(text: str, names: dict[str, str]) -> Callable[..., str]:
    """A template with the types filled in, to be called with the operands."""
    filled = text
    for key, name in names.items():
        filled = filled.replace("{" + key + "}", name)
    return filled.format


def _blocks(instruction: Instruction) -> tuple[Block, ...]:
    data = instruction.data
    if isinstance(data, Cond):
        return data.then, data.otherwise
    if isinstance(data, While):
        return data.condition, data.body
    return (data.body,) if isinstance(data, For) else ()


def _last_uses(pieces: Sequence[Sequence[Instruction]], results: Sequence[int]) -> dict[int, int]:
    """The number of the last piece that uses each value; the results are used after the last."""
    last = {a: number for number, piece in enumerate(pieces) for i in piece for a in i.args}
    return last | dict.fromkeys(results, len(pieces))

"""A program as LLVM IR: text, a row an instruction, on vectors with one world a lane.

No flag that allows LLVM to change a result is set anywhere; fused multiply-adds are those of the program. So the
same program gives the same bits at every number of lanes (all NaNs counting as the same).

A straight piece of more than `LIMIT` instructions is cut into several functions that pass values on through
scratch memory, so that the time to compile grows with the length, and not with its square.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from zwang.compile.expand import expand
from zwang.compile.lanes import Lanes
from zwang.compile.program import Block, For, Instruction, Kind, Program, When, While
from zwang.compile.writer import Door, Element, Location, Scratch, Slot, Stored, Writer

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


@dataclass(frozen=True)
class Emitted:
    """LLVM IR and what its caller must know: the scratch memory that `body` needs, in bytes."""

    text: str
    scratch: int


class Buffers:
    """The door of a processor: inputs and outputs are arrays of lane vectors, all ports one after the other."""

    parameters = "ptr noalias readonly %in, ptr noalias %out, ptr noalias %scratch"
    arguments = "ptr %in, ptr %out, ptr %scratch"

    def __init__(self, program: Program):
        self.starts = [sum(port.size for port in program.inputs[:n]) for n in range(len(program.inputs))]

    def load(self, writer: Writer, element: Element) -> str:
        position = self.starts[element.port] + element.element
        real = writer.lanes.real
        address = writer.let(f"getelementptr inbounds {real}, ptr %in, i64 {position}")
        return writer.let(f"load {real}, ptr {address}")

    def store(self, writer: Writer, position: int, operand: str) -> None:
        real = writer.lanes.real
        address = writer.let(f"getelementptr inbounds {real}, ptr %out, i64 {position}")
        writer.row(f"store {real} {operand}, ptr {address}")


def emit(program: Program, lanes: Lanes, *, limit: int = LIMIT) -> Emitted:
    """The function `body(in, out, scratch)` of the program, on lane vectors.

    in, out: the elements of all ports one after the other, each a lane vector; scratch: as many bytes as the result
    says. All three are aligned to 128 bytes. At most about `limit` instructions go into one LLVM function.
    """
    expanded = expand(program, lanes.dtype)
    module = Module(expanded, lanes, Buffers(expanded), limit)
    module.body(f"define void @body({module.door.parameters})")
    return Emitted(module.text(), module.scratch.size)


class Module:
    """All functions of one program. `program` has no elementary functions left."""

    def __init__(self, program: Program, lanes: Lanes, door: Door, limit: int = LIMIT):
        self.program, self.lanes, self.door, self.limit = program, lanes, door, limit
        self.scratch = Scratch(lanes)
        self.functions: list[str] = []
        self.tables: dict[tuple[str, tuple], str] = {}
        self.intrinsics: set[str] = set()
        self._weights: dict[int, int] = {}
        names = {"R": lanes.real, "B": lanes.truth, "S": lanes.suffix, "true": lanes.true}
        self._plain = {op: _with_arguments(text, names) for op, text in PLAIN.items()}
        self._special: dict[str, Callable[[Writer, Instruction], None]] = {
            name.removeprefix("_op_"): getattr(self, name) for name in dir(self) if name.startswith("_op_")
        }

    # ---------------------------------------------------------------------------------------- functions

    def body(self, head: str, prologue: Sequence[str] = (), label: str = "entry") -> None:
        """The program's whole body as one function, which may call others.

        head: up to the parameters, and with them; prologue: rows to begin with, which end in the block of this label.
        """
        writer = Writer(self.lanes, self.door, {})
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

    def _finish(self, writer: Writer, head: str) -> None:
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

    def block(self, writer: Writer, block: Block) -> None:
        """Write the instructions of a block, here or, if they are too many, in functions that are called here."""
        if self.block_weight(block) > self.limit:
            self._split(writer, block)
        else:
            for instruction in block.instructions:
                self.instruction(writer, instruction)

    def instruction(self, writer: Writer, instruction: Instruction) -> None:
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

    def _split(self, writer: Writer, block: Block) -> None:
        """A block in pieces: each a function of its own, values passed on in scratch memory."""
        pieces = self._pieces(block.instructions)
        last_use = _last_uses(pieces, block.results)
        leaving: dict[int, list[Slot]] = {}
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
        self, writer: Writer, piece: list[Instruction], incoming: list[int], exported: list[int]
    ) -> list[tuple[int, Slot]]:
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
        for value in [v for v in writer.exports if any(v in i.out for i in piece)]:
            callee.exports.setdefault(value, []).extend(writer.exports.pop(value))
        for instruction in piece:
            self.instruction(callee, instruction)
        for value in exported:
            location = callee.where(value)
            mine = [slot for v, slot in taken if v == value]
            writer.scopes[-1][value] = mine[0] if mine else location
        self._call(writer, callee)
        return taken

    def _callee(self, writer: Writer, values: dict[int, Location]) -> Writer:
        """A function to be called from where the writer is, under the same mask."""
        callee = Writer(self.lanes, self.door, values)
        if writer.mask is not None:
            slot = self.scratch.slot("bool")
            writer.put(slot, writer.mask)
            callee.mask = callee.load(slot)
        return callee

    def _call(self, writer: Writer, callee: Writer, attributes: str = "") -> None:
        name = f"@piece{len(self.functions)}"
        self._finish(callee, f"define internal void {name}({self.door.parameters}) {attributes}".rstrip())
        writer.row(f"call void {name}({self.door.arguments})")

    # ------------------------------------------------------------------------------- simple instructions

    def _kind(self, value: int) -> Kind:
        return self.program.kinds[value]

    def _declare(self, name: str, arity: int) -> None:
        real = self.lanes.real
        self.intrinsics.add(f"{real} @llvm.{name}.{self.lanes.suffix}({', '.join([real] * arity)})")

    def _op_const(self, writer: Writer, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self.lanes.number(instruction.data))

    def _op_true(self, writer: Writer, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self.lanes.true)

    def _op_false(self, writer: Writer, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self.lanes.false)

    def _op_index(self, writer: Writer, instruction: Instruction) -> None:
        writer.define(instruction.out[0], str(instruction.data))

    def _op_input(self, writer: Writer, instruction: Instruction) -> None:
        writer.define(instruction.out[0], Element(*instruction.data))

    def _op_fms(self, writer: Writer, instruction: Instruction) -> None:
        a, b, c = (writer.get(argument) for argument in instruction.args)
        minus = writer.let(f"fneg {self.lanes.real} {c}")
        writer.define(instruction.out[0], writer.let(self._plain["fma"](a, b, minus)))

    def _op_fnma(self, writer: Writer, instruction: Instruction) -> None:
        a, b, c = (writer.get(argument) for argument in instruction.args)
        minus = writer.let(f"fneg {self.lanes.real} {a}")
        writer.define(instruction.out[0], writer.let(self._plain["fma"](minus, b, c)))

    def _op_min(self, writer: Writer, instruction: Instruction) -> None:
        self._extreme(writer, instruction, "olt")

    def _op_max(self, writer: Writer, instruction: Instruction) -> None:
        self._extreme(writer, instruction, "ogt")

    def _extreme(self, writer: Writer, instruction: Instruction, order: str) -> None:
        a, b = (writer.get(argument) for argument in instruction.args)
        real = self.lanes.real
        chosen = writer.choose(writer.let(f"fcmp {order} {real} {a}, {b}"), real, a, b)
        nan = writer.let(f"fcmp uno {real} {a}, {a}")
        writer.define(instruction.out[0], writer.choose(nan, real, a, chosen))

    def _op_select(self, writer: Writer, instruction: Instruction) -> None:
        condition, yes, no = (writer.get(argument) for argument in instruction.args)
        kind = self.lanes.kind(self._kind(instruction.out[0]))
        writer.define(instruction.out[0], writer.choose(condition, kind, yes, no))

    def _op_bit(self, writer: Writer, instruction: Instruction) -> None:
        lanes = self.lanes
        word = writer.let(f"bitcast {lanes.real} {writer.get(instruction.args[0])} to {lanes.word}")
        masked = writer.let(f"and {lanes.word} {word}, {lanes.integer(1 << instruction.data)}")
        found = writer.let(f"icmp ne {lanes.word} {masked}, {lanes.integer(0)}")
        writer.define(instruction.out[0], found)

    def _on_bits(self, writer: Writer, instruction: Instruction) -> None:
        lanes, name = self.lanes, ON_BITS[instruction.op]
        word = writer.let(f"bitcast {lanes.real} {writer.get(instruction.args[0])} to {lanes.word}")
        changed = writer.let(f"{name} {lanes.word} {word}, {lanes.integer(instruction.data)}")
        writer.define(instruction.out[0], writer.let(f"bitcast {lanes.word} {changed} to {lanes.real}"))

    # ------------------------------------------------------------------------------- tables and arrays

    def _table_entry(self, writer: Writer, instruction: Instruction, scalar: str) -> str:
        key = (instruction.op, tuple(instruction.data))
        name = self.tables.setdefault(key, f"@table{len(self.tables)}")
        index = writer.get(instruction.args[0])
        address = writer.let(f"getelementptr inbounds {scalar}, ptr {name}, i64 {index}")
        return writer.let(f"load {scalar}, ptr {address}")

    def _op_itable(self, writer: Writer, instruction: Instruction) -> None:
        writer.define(instruction.out[0], self._table_entry(writer, instruction, "i64"))

    def _op_table(self, writer: Writer, instruction: Instruction) -> None:
        lanes = self.lanes
        entry = self._table_entry(writer, instruction, lanes.scalar)
        if lanes.width > 1:
            first = writer.let(f"insertelement {lanes.real} poison, {lanes.scalar} {entry}, i64 0")
            zeros = f"<{lanes.width} x i32> zeroinitializer"
            entry = writer.let(f"shufflevector {lanes.real} {first}, {lanes.real} poison, {zeros}")
        writer.define(instruction.out[0], entry)

    def _op_array(self, writer: Writer, instruction: Instruction) -> None:
        array = self.scratch.array(instruction.data)
        real = self.lanes.real

        def clear(index: str) -> None:
            writer.row(f"store {real} {self.lanes.zero}, ptr {writer.element_address(array, index)}")

        self._each(writer, array.length, clear)
        writer.define(instruction.out[0], array)

    def _op_load(self, writer: Writer, instruction: Instruction) -> None:
        array, index = instruction.args
        address = writer.element_address(writer.array(array), writer.get(index))
        writer.define(instruction.out[0], writer.let(f"load {self.lanes.real}, ptr {address}"))

    def _op_store(self, writer: Writer, instruction: Instruction) -> None:
        array, index, value = instruction.args
        place = writer.array(array)
        self._store(writer, writer.element_address(place, writer.get(index)), writer.get(value))
        writer.define(instruction.out[0], place)

    def _store(self, writer: Writer, address: str, operand: str) -> None:
        """To the lanes that count only."""
        real = self.lanes.real
        if writer.mask is not None:
            old = writer.let(f"load {real}, ptr {address}")
            operand = writer.choose(writer.mask, real, operand, old)
        writer.row(f"store {real} {operand}, ptr {address}")

    def _copy(self, writer: Writer, target: Stored, source: Stored) -> None:
        def copy(index: str) -> None:
            entry = writer.let(f"load {self.lanes.real}, ptr {writer.element_address(source, index)}")
            self._store(writer, writer.element_address(target, index), entry)

        self._each(writer, source.length, copy)

    def _copies(self, writer: Writer, targets: list[Stored], sources: list[Stored]) -> None:
        """Array by array, as if all at once."""
        moves = [(t, s) for t, s in zip(targets, sources, strict=True) if t != s]
        if any(t == s for t, _ in moves for _, s in moves):
            between = [self.scratch.array(s.length) for _, s in moves]
            self._copies(writer, between, [s for _, s in moves])
            moves = [(t, b) for (t, _), b in zip(moves, between, strict=True)]
        for target, source in moves:
            self._copy(writer, target, source)

    def _each(self, writer: Writer, count: int, body: Callable[[str], None]) -> None:
        """The body for every index below the count; a loop where they are many."""
        if count <= 4:
            for index in range(count):
                body(str(index))
            return
        before, turn, after = writer.label, writer.new_label(), writer.new_label()
        index, following = writer.fresh(), writer.fresh()
        writer.jump(turn)
        writer.open(turn)
        writer.row(f"{index} = phi i64 [ 0, %{before} ], [ {following}, %{turn} ]")
        body(index)
        writer.row(f"{following} = add i64 {index}, 1")
        writer.branch(writer.let(f"icmp ult i64 {following}, {count}"), turn, after)
        writer.open(after)

    # ----------------------------------------------------------------------------------------- branches

    def _op_when(self, writer: Writer, instruction: Instruction) -> None:
        condition = writer.get(instruction.args[0])
        when: When = instruction.data
        captured = [writer.where(argument) for argument in instruction.args[1:]]
        kinds = [self._kind(out) for out in instruction.out]
        self._forbid_index(kinds, "when")
        merged = [self._merge_array(when, captured, n) if k == "array" else None for n, k in enumerate(kinds)]
        yes = self._arm(writer, when.then, condition, instruction, merged, rare=when.rare)
        no = self._arm(writer, when.otherwise, writer.negate(condition), instruction, merged)
        for out, kind, array, a, b in zip(instruction.out, kinds, merged, yes, no, strict=True):
            if array is not None:
                writer.define(out, array)
            else:
                writer.define(out, writer.choose(condition, self.lanes.kind(kind), a, b))

    def _merge_array(self, when: When, captured: list[Location], n: int) -> Stored:
        """Where an array that leaves both arms lives: in place if both give the same, else in a new one."""
        places = []
        for block in (when.then, when.otherwise):
            value = block.results[n]
            while value not in block.parameters:
                maker = next(i for i in block.instructions if value in i.out)
                if maker.op != "store":
                    break
                value = maker.args[0]
            places.append(captured[block.parameters.index(value)] if value in block.parameters else None)
        if places[0] is not None and places[0] == places[1]:
            assert isinstance(places[0], Stored)
            return places[0]
        length = self.program.lengths[when.then.results[n]]
        return self.scratch.array(length)

    def _arm(
        self,
        writer: Writer,
        block: Block,
        condition: str,
        instruction: Instruction,
        merged: list[Stored | None],
        *,
        rare: bool = False,
    ) -> list[str]:
        """One side of a `when`, run if any lane wants it. Returns the results (of arrays: an empty text)."""
        active = writer.masked(condition)
        before, inside, after = writer.label, writer.new_label(), writer.new_label()
        if self._gives_parameters(block, merged):
            where = dict(zip(block.parameters, instruction.args[1:], strict=True))
            return [writer.get(where[r]) for r in block.results]
        writer.branch(writer.any(active), inside, after, rare=rare)
        writer.open(inside)
        with writer.scope():
            writer.mask = active if self.lanes.width > 1 else None
            if rare:
                results = self._out_of_line(writer, block, instruction.args[1:])
            else:
                results = self._inline(writer, block, instruction.args[1:])
            wanted = [(t, results[n]) for n, t in enumerate(merged) if t is not None]
            self._copies(writer, [t for t, _ in wanted], [s for _, s in wanted if isinstance(s, Stored)])
        end = writer.label
        writer.jump(after)
        writer.open(after)
        kinds = [self._kind(r) for r in block.results]
        return [
            self._phi(writer, kind, [(operand, end), (self._nothing(kind), before)])
            if isinstance(operand, str)
            else ""
            for kind, operand in zip(kinds, results, strict=True)
        ]

    def _gives_parameters(self, block: Block, merged: list[Stored | None]) -> bool:
        return not block.instructions and all(array is None for array in merged)

    def _nothing(self, kind: Kind) -> str:
        return self.lanes.zero if kind == "real" else self.lanes.false

    def _phi(self, writer: Writer, kind: Kind, ways: list[tuple[str, str]]) -> str:
        shown = ", ".join(f"[ {operand}, %{label} ]" for operand, label in ways)
        return writer.let(f"phi {self.lanes.kind(kind)} {shown}")

    def _inline(self, writer: Writer, block: Block, arguments: Sequence[int]) -> list[str | Stored]:
        """The block, here; its results, as operands."""
        for parameter, argument in zip(block.parameters, arguments, strict=True):
            writer.define(parameter, writer.where(argument))
        self.block(writer, block)
        return [self._result(writer, result) for result in block.results]

    def _result(self, writer: Writer, value: int) -> str | Stored:
        return writer.array(value) if self._kind(value) == "array" else writer.get(value)

    def _out_of_line(self, writer: Writer, block: Block, arguments: Sequence[int]) -> list[str | Stored]:
        """The block as a function of its own, called here; its results, as operands."""
        values: dict[int, Location] = {}
        for parameter, argument in zip(block.parameters, arguments, strict=True):
            values[parameter], _ = writer.home(argument, self.scratch, self._kind(parameter))
        callee = self._callee(writer, values)
        self.block(callee, block)
        results: list[Slot | Stored] = []
        for value in block.results:
            if self._kind(value) == "array":
                results.append(callee.array(value))
            else:
                slot = self.scratch.slot(self._kind(value))
                callee.put(slot, callee.get(value))
                results.append(slot)
        self._call(writer, callee, "cold noinline")
        return [writer.load(place) if isinstance(place, Slot) else place for place in results]

    # -------------------------------------------------------------------------------------------- loops

    def _op_for(self, writer: Writer, instruction: Instruction) -> None:
        loop: For = instruction.data
        if loop.count == 0:
            for out, argument in zip(instruction.out, instruction.args[: loop.carried], strict=True):
                writer.define(out, writer.where(argument))
            return
        carry = _Carry(self, writer, instruction, loop.carried)
        turn, after = writer.new_label(), writer.new_label()
        before = writer.label
        writer.jump(turn)
        writer.open(turn)
        counter = writer.reserve()
        index, following = writer.fresh(), writer.fresh()
        with writer.scope():
            carry.enter(before, loop.body.parameters[1:])
            writer.define(loop.body.parameters[0], index)
            self.block(writer, loop.body)
            results = carry.leave(loop.body.results)
        writer.row(f"{following} = add i64 {index}, 1")
        writer.rows[counter] = f"  {index} = phi i64 [ 0, %{before} ], [ {following}, %{writer.label} ]"
        carry.close(results)
        writer.branch(writer.let(f"icmp ult i64 {following}, {loop.count}"), turn, after)
        writer.open(after)
        carry.define(instruction.out, results)

    def _op_while(self, writer: Writer, instruction: Instruction) -> None:
        loop: While = instruction.data
        carry = _Carry(self, writer, instruction, loop.carried)
        self._forbid_index([self._kind(a) for a in instruction.args[: loop.carried]], "while")
        turn, inside, after = writer.new_label(), writer.new_label(), writer.new_label()
        before = writer.label
        writer.jump(turn)
        writer.open(turn)
        with writer.scope():
            olds = carry.enter(before, loop.condition.parameters)
            self.block(writer, loop.condition)
            active = writer.masked(writer.get(loop.condition.results[0]))
            writer.branch(writer.any(active), inside, after)
            writer.open(inside)
            with writer.scope():
                carry.bind(loop.body.parameters, olds)
                writer.mask = active if self.lanes.width > 1 else None
                self.block(writer, loop.body)
                news = carry.leave(loop.body.results)
        if self.lanes.width > 1:
            news = carry.blend(active, news, olds)
        carry.close(news)
        writer.jump(turn)
        writer.open(after)
        carry.define(instruction.out, olds)

    def _forbid_index(self, kinds: Sequence[Kind], op: str) -> None:
        if "index" in kinds:
            raise ValueError(f"an index is the same in all lanes, so {op!r} cannot give one; use a real")


class _Carry:
    """The values that a loop carries: phis at its head for numbers, memory for arrays."""

    def __init__(self, module: Module, writer: Writer, instruction: Instruction, carried: int):
        self.module, self.writer = module, writer
        self.captured = [writer.where(argument) for argument in instruction.args[carried:]]
        self.kinds = [module._kind(argument) for argument in instruction.args[:carried]]
        self.starts: list[str | Stored] = [module._result(writer, a) for a in instruction.args[:carried]]

    def enter(self, before: str, parameters: Sequence[int]) -> list[str | Stored]:
        """At the head of the loop: a phi for each number; returns what the carry is inside."""
        self.before = before
        self.phis = [self.writer.reserve() if isinstance(start, str) else -1 for start in self.starts]
        self.inside: list[str | Stored] = [
            self.writer.fresh() if isinstance(start, str) else start for start in self.starts
        ]
        self.bind(parameters, self.inside)
        return self.inside

    def bind(self, parameters: Sequence[int], carry: list[str | Stored]) -> None:
        for parameter, location in zip(parameters, [*carry, *self.captured], strict=True):
            self.writer.scopes[-1][parameter] = location

    def leave(self, results: Sequence[int]) -> list[str | Stored]:
        """The results of one turn; arrays that are not where they were are copied there, in the lanes that count."""
        news = [self.module._result(self.writer, result) for result in results]
        moves = [(o, n) for o, n in zip(self.inside, news, strict=True) if isinstance(o, Stored)]
        self.module._copies(
            self.writer, [o for o, _ in moves], [n for _, n in moves if isinstance(n, Stored)]
        )
        return [o if isinstance(o, Stored) else n for o, n in zip(self.inside, news, strict=True)]

    def blend(self, active: str, news: list[str | Stored], olds: list[str | Stored]) -> list[str | Stored]:
        """The new carry where a lane is active, the old where it is done."""
        lanes = self.module.lanes
        return [
            self.writer.choose(active, lanes.kind(kind), new, old)
            if isinstance(new, str) and isinstance(old, str)
            else new
            for kind, new, old in zip(self.kinds, news, olds, strict=True)
        ]

    def close(self, results: list[str | Stored]) -> None:
        """At the end of a turn: complete the phis."""
        for kind, row, name, start, result in zip(
            self.kinds, self.phis, self.inside, self.starts, results, strict=True
        ):
            if row >= 0:
                ways = f"[ {start}, %{self.before} ], [ {result}, %{self.writer.label} ]"
                self.writer.rows[row] = f"  {name} = phi {self.module.lanes.kind(kind)} {ways}"

    def define(self, out: Sequence[int], results: list[str | Stored]) -> None:
        for value, result in zip(out, results, strict=True):
            self.writer.define(value, result)


def _with_arguments(text: str, names: dict[str, str]) -> Callable[..., str]:
    """A template with the types filled in, to be called with the operands."""
    filled = text
    for key, name in names.items():
        filled = filled.replace("{" + key + "}", name)
    return filled.format


def _blocks(instruction: Instruction) -> tuple[Block, ...]:
    data = instruction.data
    if isinstance(data, When):
        return data.then, data.otherwise
    if isinstance(data, While):
        return data.condition, data.body
    return (data.body,) if isinstance(data, For) else ()


def _last_uses(pieces: Sequence[Sequence[Instruction]], results: Sequence[int]) -> dict[int, int]:
    """The number of the last piece that uses each value; the results are used after the last."""
    last = {a: number for number, piece in enumerate(pieces) for i in piece for a in i.args}
    return last | dict.fromkeys(results, len(pieces))
